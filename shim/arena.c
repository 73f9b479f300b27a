/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory: capacity from configuration or what memory and cgroup
 * leave; segments registered with the driver on demand; a first-fit list of
 * free extents.  Guarded by arena_lock.
 */
#include "shim/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/stats.h"

#define AUTO_MOST (32ull << 30)

struct extent {
	uint64_t offset;
	uint64_t size;
	struct extent *next;	/* by rising offset; never touching */
};

/* What is registered with the driver as one. */
struct segment {
	uint64_t start;
	uint64_t size;
};

static struct lock arena_lock = LOCK_INITIALIZER(LOCK_ARENA, "arena");
static pthread_cond_t arena_cond;	/* ready once arena.base is set */
static struct {
	uint8_t *base;		/* NULL until the first spill */
	uint64_t capacity;
	uint64_t pinned;	/* bytes registered, from base on */
	struct segment *segments;	/* owned; those, one after the other */
	size_t nr_segments, max_segments;
	uint64_t live;		/* with what is lent */
	uint64_t lent;		/* pinned by others */
	struct extent *free;	/* owned */
	bool failed;		/* the driver refused to pin: no more tries */
	bool pinning;		/* a thread is pinning, without the lock */
} arena GUARDED_BY(arena_lock);

/* ---- how much memory there is ---- */

/* The number after `key` in a file such as /proc/meminfo; 0 where absent. */
static uint64_t file_number(const char *path, const char *key)
{
	char text[4096], *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = *key == '\0' ? text : strstr(text, key);
	return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* What a cgroup leaves, or UINT64_MAX: no limit, or none that can be read. */
static uint64_t cgroup_room(const char *limit, const char *usage,
	const char *stat, const char *cache)
{
	uint64_t most = file_number(limit, "");
	uint64_t used = file_number(usage, "");
	uint64_t cached = file_number(stat, cache);

	if (most == 0 || most >= 1ull << 60)
		return UINT64_MAX;	/* "max", or no such file */
	used -= cached < used ? cached : used;
	return most > used ? most - used : 0;
}

static uint64_t memory_room(void)
{
	uint64_t room = file_number("/proc/meminfo", "MemAvailable:") << 10;
	uint64_t v2 = cgroup_room("/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory.current",
		"/sys/fs/cgroup/memory.stat", "inactive_file ");
	uint64_t v1 = cgroup_room(
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"/sys/fs/cgroup/memory/memory.usage_in_bytes",
		"/sys/fs/cgroup/memory/memory.stat", "total_inactive_file ");

	if (v2 < room)
		room = v2;
	return v1 < room ? v1 : room;
}

static uint64_t capacity_choose(void)
{
	uint64_t total = file_number("/proc/meminfo", "MemTotal:") << 10;
	uint64_t size = conf.arena;

	if (size == CONF_AUTO) {
		size = memory_room() / 2;
		if (size > AUTO_MOST)
			size = AUTO_MOST;
	} else if (size > total && total > 0) {
		log_warn("an arena of %llu bytes is more than the host's "
			"memory: it has %llu", (unsigned long long)size,
			(unsigned long long)total);
		size = total;
	}
	return size & ~(uint64_t)4095;
}

/* Addresses for *capacity bytes, halved until there are; or MAP_FAILED. */
static void *capacity_reserve(uint64_t *capacity)
{
	uint64_t wanted = *capacity;
	void *p = MAP_FAILED;

	while (*capacity > 0) {
		p = mmap(NULL, *capacity, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED)
			break;
		*capacity = *capacity / 2 & ~(uint64_t)4095;
	}
	if (*capacity != wanted)
		log_warn("no address space for an arena of %llu bytes: it has "
			"%llu", (unsigned long long)wanted,
			(unsigned long long)*capacity);
	return p;
}

/* ---- pinning ---- */

static bool arena_start(void) REQUIRES(&arena_lock)
{
	void *p;

	if (arena.base != NULL)
		return true;
	if (arena.failed)
		return false;
	arena.capacity = capacity_choose();
	p = capacity_reserve(&arena.capacity);
	if (p == MAP_FAILED) {
		arena.failed = true;
		arena.capacity = 0;
		return false;
	}
	/* A forked child has no use for it; copying pinned pages is slow. */
	madvise(p, arena.capacity, MADV_DONTFORK);
	madvise(p, arena.capacity, MADV_HUGEPAGE);
	cond_init(&arena_cond);
	arena.base = p;
	stat_set(arena_capacity, arena.capacity);
	return true;
}

static void free_add(uint64_t offset, uint64_t size) REQUIRES(&arena_lock);

/*
 * Bytes of a segment that are given out.  One that ends elsewhere than at a
 * border, since more was lent then, leaves a gap, so that nothing in it ever
 * touches what is in the next.
 */
static uint64_t segment_room(const struct segment *s) REQUIRES(&arena_lock)
{
	uint64_t end = s->start + s->size;

	return arena_border(end) || end == arena.capacity ? s->size :
		s->size - ARENA_ALIGN;
}

static bool segments_grow(void) REQUIRES(&arena_lock)
{
	size_t max = arena.max_segments * 2 + 16;
	struct segment *grown;

	if (arena.nr_segments < arena.max_segments)
		return true;
	grown = realloc(arena.segments, max * sizeof(*grown));
	if (grown == NULL)
		return false;
	arena.segments = grown;
	arena.max_segments = max;
	return true;
}

/* 0, or why a segment cannot be pinned.  No lock is held. */
static CUresult segment_pin(uint8_t *at, uint64_t size)
{
	CUresult r;

	/* Populate first: the driver's own pinning faults page by page. */
	if (madvise(at, size, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = real.cuMemHostRegister_v2(at, size, CU_MEMHOSTREGISTER_PORTABLE);
	if (r != CUDA_SUCCESS)
		madvise(at, size, MADV_DONTNEED);
	return r;
}

/*
 * Pins one more segment, or waits for the thread that does.  false: the arena
 * is full or the driver refuses.  Drops and retakes arena_lock.
 */
static bool segment_add(void) REQUIRES(&arena_lock)
{
	uint64_t size = arena.capacity - arena.pinned - arena.lent;
	uint8_t *at = arena.base + arena.pinned;
	struct segment *last;
	CUresult r;

	if (arena.pinning) {
		lock_wait(&arena_lock, &arena_cond,
			lock_now_ns() + 1000000000);
		return true;
	}
	if (size > ARENA_SEGMENT - arena.pinned % ARENA_SEGMENT)
		size = ARENA_SEGMENT - arena.pinned % ARENA_SEGMENT;
	if (size <= ARENA_ALIGN || arena.failed || !segments_grow())
		return false;
	arena.pinning = true;
	lock_release(&arena_lock);
	r = segment_pin(at, size);
	lock_acquire(&arena_lock);
	arena.pinning = false;
	pthread_cond_broadcast(&arena_cond);
	if (r != CUDA_SUCCESS) {
		log_err("no more host memory can be pinned after %llu bytes of "
			"an arena of %llu: %s",
			(unsigned long long)arena.pinned,
			(unsigned long long)arena.capacity,
			api_result_name(r));
		arena.failed = true;
		return false;
	}
	last = &arena.segments[arena.nr_segments++];
	*last = (struct segment){ arena.pinned, size };
	free_add(last->start, segment_room(last));
	arena.pinned += size;
	stat_set(arena_pinned, arena.pinned);
	return true;
}

/* ---- extents ---- */

/* Segments are registered one by one: free space never joins over a border. */
static void free_add(uint64_t offset, uint64_t size)
{
	struct extent **at = &arena.free, *e, *prev = NULL;

	while (*at != NULL && (*at)->offset < offset) {
		prev = *at;
		at = &(*at)->next;
	}
	e = *at;
	if (prev != NULL && prev->offset + prev->size == offset &&
	    !arena_border(offset)) {
		prev->size += size;
		if (e != NULL && offset + size == e->offset &&
		    !arena_border(e->offset)) {
			prev->size += e->size;
			prev->next = e->next;
			free(e);
		}
		return;
	}
	if (e != NULL && offset + size == e->offset &&
	    !arena_border(e->offset)) {
		e->offset = offset;
		e->size += size;
		return;
	}
	e = malloc(sizeof(*e));
	if (e == NULL) {
		log_err("%llu bytes of the arena are lost: no memory for a "
			"list entry", (unsigned long long)size);
		return;
	}
	e->offset = offset;
	e->size = size;
	e->next = *at;
	*at = e;
}

static uint64_t free_take(uint64_t size) REQUIRES(&arena_lock)
{
	for (struct extent **at = &arena.free; *at != NULL; at = &(*at)->next) {
		struct extent *e = *at;
		uint64_t offset = e->offset;

		if (e->size < size)
			continue;
		e->offset += size;
		e->size -= size;
		if (e->size == 0) {
			*at = e->next;
			free(e);
		}
		return offset;
	}
	return ARENA_NONE;
}

static uint64_t rounded(size_t size)
{
	return (size + ARENA_ALIGN - 1) & ~(uint64_t)(ARENA_ALIGN - 1);
}

uint64_t arena_alloc(size_t size)
{
	uint64_t need = rounded(size), offset = ARENA_NONE;

	if (size == 0 || need < size || need > ARENA_SEGMENT)
		return ARENA_NONE;
	lock_acquire(&arena_lock);
	if (arena_start())
		do
			offset = free_take(need);
		while (offset == ARENA_NONE && segment_add());
	if (offset != ARENA_NONE) {
		arena.live += need;
		stat_set(arena_live, arena.live);
	}
	lock_release(&arena_lock);
	return offset;
}

void arena_reserve(uint64_t size)
{
	lock_acquire(&arena_lock);
	if (arena_start())
		while (arena.pinned + arena.lent - arena.live < size &&
		       segment_add())
			;
	lock_release(&arena_lock);
}

void arena_free(uint64_t offset, size_t size)
{
	uint64_t need = rounded(size);

	lock_acquire(&arena_lock);
	free_add(offset, need);
	arena.live -= need;
	stat_set(arena_live, arena.live);
	lock_release(&arena_lock);
}

bool arena_lend(uint64_t size)
{
	uint64_t taken;
	bool ok;

	lock_acquire(&arena_lock);
	ok = arena_start();
	taken = arena.pinned + arena.lent;
	if (arena.pinning)
		taken += ARENA_SEGMENT;
	ok = ok && taken <= arena.capacity && size <= arena.capacity - taken;
	if (ok) {
		arena.lent += size;
		arena.live += size;
		stat_set(arena_live, arena.live);
	}
	lock_release(&arena_lock);
	return ok;
}

void arena_return(uint64_t size)
{
	lock_acquire(&arena_lock);
	arena.lent -= size;
	arena.live -= size;
	stat_set(arena_live, arena.live);
	lock_release(&arena_lock);
}

void *arena_ptr(uint64_t offset) NO_THREAD_SAFETY
{
	/* Set once before any offset exists. */
	return arena.base + offset;
}

uint64_t arena_capacity(void)
{
	uint64_t n;

	lock_acquire(&arena_lock);
	n = arena.capacity;
	lock_release(&arena_lock);
	return n;
}

uint64_t arena_live(void)
{
	uint64_t n;

	lock_acquire(&arena_lock);
	n = arena.live;
	lock_release(&arena_lock);
	return n;
}

uint64_t arena_room(void)
{
	uint64_t n;

	lock_acquire(&arena_lock);
	if (arena.base == NULL)
		n = arena.failed ? 0 : capacity_choose();
	else
		n = (arena.failed ? arena.pinned + arena.lent :
			arena.capacity) - arena.live;
	lock_release(&arena_lock);
	return n;
}

uint64_t arena_spare(void)
{
	uint64_t n, taken;

	lock_acquire(&arena_lock);
	taken = arena.pinned + arena.lent + (arena.pinning ? ARENA_SEGMENT : 0);
	n = taken < arena.capacity ? arena.capacity - taken : 0;
	lock_release(&arena_lock);
	return n;
}

/* Takes the last segment off the free list, if all of it is there. */
static bool segment_take(const struct segment *s) REQUIRES(&arena_lock)
{
	for (struct extent **at = &arena.free; *at != NULL; at = &(*at)->next) {
		struct extent *e = *at;

		if (e->offset != s->start || e->size != segment_room(s))
			continue;
		*at = e->next;
		free(e);
		return true;
	}
	return false;
}

void arena_trim(void)
{
	CUresult r = CUDA_SUCCESS;

	lock_acquire(&arena_lock);
	while (r == CUDA_SUCCESS && !arena.pinning && arena.nr_segments > 0) {
		struct segment s = arena.segments[arena.nr_segments - 1];

		if (!segment_take(&s))
			break;
		arena.pinning = true;
		lock_release(&arena_lock);
		r = real.cuMemHostUnregister(arena_ptr(s.start));
		if (r == CUDA_SUCCESS)
			madvise(arena_ptr(s.start), s.size, MADV_DONTNEED);
		lock_acquire(&arena_lock);
		arena.pinning = false;
		if (r == CUDA_SUCCESS) {
			arena.nr_segments--;
			arena.pinned -= s.size;
		} else {
			free_add(s.start, segment_room(&s));
		}
		stat_set(arena_pinned, arena.pinned);
		pthread_cond_broadcast(&arena_cond);
	}
	lock_release(&arena_lock);
}

void arena_stop(void)
{
	lock_acquire(&arena_lock);
	for (size_t i = 0; i < arena.nr_segments; i++)
		real.cuMemHostUnregister(arena.base + arena.segments[i].start);
	arena.nr_segments = 0;
	arena.pinned = 0;
	lock_release(&arena_lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector clocks and shadow memory, see race.h.  A shadow is cut into pages;
 * each page has a sorted list of segments with the last write and the reads
 * since that no other remembered read or write is known to follow.  A kernel's
 * accesses go into bitmaps of one bit a byte, and become segments when it has
 * run, so that a kernel that reads a whole page costs one segment.
 */
#include "test/softcuda/race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/object.h"
#include "test/softcuda/report.h"

#define PAGE (1u << 20)
#define WORDS (PAGE / 64)

struct race_stamp {
	unsigned refs;
	uint32_t actor, tick;
	uint64_t op, stream, when;
	char what[64];
};

/* Immutable once shared by segments. */
struct readers {
	unsigned refs;
	unsigned nr;
	struct race_stamp *by[];	/* counted */
};

struct segment {
	uint32_t from, to;
	struct race_stamp *writer;	/* counted, NULL: none yet */
	struct readers *readers;	/* counted, NULL: none since */
};

struct bits {
	uint64_t word[WORDS];
	struct bits *next;		/* in the pool */
};

struct page {
	struct segment *seg;
	size_t nr, cap;
	struct bits *bits[2];		/* of the kernel at work: read, write */
	uint32_t first[2], last[2];	/* words that may be non-zero */
	uint64_t address;		/* of the page, as it was accessed */
	bool listed;
};

struct shadow {
	size_t nr;
	struct page **page;
};

/* ---- clocks ------------------------------------------------------------------ */

static uint32_t *free_actors, *last_ticks;
static size_t nr_free, cap_free, nr_actors, cap_actors;

static void widen(struct race_clock *c, uint32_t len)
{
	uint32_t *tick;

	if (len <= c->len)
		return;
	len = (len + 7) & ~7u;
	tick = object_alloc(len * sizeof(*tick));
	if (c->len)
		memcpy(tick, c->tick, c->len * sizeof(*tick));
	free(c->tick);
	c->tick = tick;
	c->len = len;
}

void race_clock_join(struct race_clock *into, const struct race_clock *from)
{
	uint32_t i;

	widen(into, from->len);
	for (i = 0; i < from->len; i++)
		if (into->tick[i] < from->tick[i])
			into->tick[i] = from->tick[i];
}

void race_clock_free(struct race_clock *c)
{
	free(c->tick);
	c->tick = NULL;
	c->len = 0;
}

uint32_t race_actor_get(void)
{
	if (nr_free)
		return free_actors[--nr_free];
	last_ticks = object_grow(last_ticks, nr_actors, &cap_actors,
		sizeof(*last_ticks));
	last_ticks[nr_actors] = 0;
	return (uint32_t)nr_actors++;
}

void race_actor_put(uint32_t actor)
{
	free_actors = object_grow(free_actors, nr_free, &cap_free,
		sizeof(*free_actors));
	free_actors[nr_free++] = actor;
}

uint32_t race_step(uint32_t actor, struct race_clock *c)
{
	widen(c, actor + 1);
	return c->tick[actor] = ++last_ticks[actor];
}

static bool known(const struct race_stamp *s, const struct race_clock *c)
{
	return s->actor < c->len && s->tick <= c->tick[s->actor];
}

/* ---- stamps ------------------------------------------------------------------- */

struct race_stamp *race_stamp_create(const struct race_who *who)
{
	struct race_stamp *s = object_alloc(sizeof(*s));

	s->refs = 1;
	s->actor = who->actor;
	s->tick = who->tick;
	s->op = who->op;
	s->stream = who->stream;
	s->when = who->when;
	snprintf(s->what, sizeof(s->what), "%s", who->what);
	return s;
}

void race_stamp_put(struct race_stamp *s)
{
	if (s && !--s->refs)
		free(s);
}

static struct race_stamp *stamp_get(struct race_stamp *s)
{
	if (s)
		s->refs++;
	return s;
}

static struct readers *readers_get(struct readers *r)
{
	if (r)
		r->refs++;
	return r;
}

static void readers_put(struct readers *r)
{
	unsigned i;

	if (!r || --r->refs)
		return;
	for (i = 0; i < r->nr; i++)
		race_stamp_put(r->by[i]);
	free(r);
}

/* `old` and one more; readers that the new one follows are left out. */
static struct readers *readers_add(const struct readers *old,
	struct race_stamp *s, const struct race_clock *c)
{
	unsigned i, n = old ? old->nr : 0;
	struct readers *r = object_alloc(sizeof(*r)
		+ (n + 1) * sizeof(r->by[0]));

	r->refs = 1;
	for (i = 0; i < n; i++)
		if (!known(old->by[i], c))
			r->by[r->nr++] = stamp_get(old->by[i]);
	r->by[r->nr++] = stamp_get(s);
	return r;
}

/* ---- one access against a page -------------------------------------------------- */

/* What is being merged; the memo makes equal segments cost one look. */
struct merge {
	struct race_stamp *stamp;
	const struct race_clock *clock;
	bool write;
	uint64_t address;		/* of the page */
	struct readers *memo_old, *memo_new;	/* counted */
	const struct race_stamp *reported;
	struct segment *out;
	size_t nr, cap;
};

static void conflict(struct merge *m, const struct race_stamp *old,
	bool old_write, uint32_t from, uint32_t to)
{
	if (m->reported == old)
		return;
	m->reported = old;
	report_rule("race", "%s (operation %llu, stream %llu) %s [%#llx, %#llx)"
		" that %s (operation %llu, stream %llu) %s, in no order",
		m->stamp->what, (unsigned long long)m->stamp->op,
		(unsigned long long)m->stamp->stream,
		m->write ? "writes" : "reads",
		(unsigned long long)(m->address + from),
		(unsigned long long)(m->address + to), old->what,
		(unsigned long long)old->op, (unsigned long long)old->stream,
		old_write ? "writes" : "reads");
}

static void check(struct merge *m, const struct segment *s, uint32_t from,
	uint32_t to)
{
	unsigned i;

	if (s->writer && !known(s->writer, m->clock))
		conflict(m, s->writer, true, from, to);
	if (!m->write || !s->readers || s->readers == m->memo_old)
		return;
	for (i = 0; i < s->readers->nr; i++)
		if (!known(s->readers->by[i], m->clock))
			conflict(m, s->readers->by[i], false, from, to);
	readers_put(m->memo_old);
	m->memo_old = readers_get(s->readers);
}

/* Takes over the references in `s`. */
static void emit(struct merge *m, struct segment s)
{
	struct segment *last = m->nr ? &m->out[m->nr - 1] : NULL;

	if (s.from >= s.to || (last && last->to == s.from
	    && last->writer == s.writer && last->readers == s.readers)) {
		if (s.from < s.to)
			last->to = s.to;
		race_stamp_put(s.writer);
		readers_put(s.readers);
		return;
	}
	m->out = object_grow(m->out, m->nr, &m->cap, sizeof(*m->out));
	m->out[m->nr++] = s;
}

/* The part [from, to) of `s`, accessed: `s` may be an empty segment. */
static void emit_accessed(struct merge *m, const struct segment *s,
	uint32_t from, uint32_t to)
{
	struct segment n = { .from = from, .to = to };

	check(m, s, from, to);
	if (m->write) {
		n.writer = stamp_get(m->stamp);
		emit(m, n);
		return;
	}
	n.writer = stamp_get(s->writer);
	if (!m->memo_new || m->memo_old != s->readers) {
		readers_put(m->memo_old);
		readers_put(m->memo_new);
		m->memo_old = readers_get(s->readers);
		m->memo_new = readers_add(s->readers, m->stamp, m->clock);
	}
	n.readers = readers_get(m->memo_new);
	emit(m, n);
}

static void emit_kept(struct merge *m, const struct segment *s, uint32_t from,
	uint32_t to)
{
	emit(m, (struct segment) { .from = from, .to = to,
		.writer = stamp_get(s->writer),
		.readers = readers_get(s->readers) });
}

struct run {
	uint32_t from, to;
};

static void drop_segments(struct segment *seg, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		race_stamp_put(seg[i].writer);
		readers_put(seg[i].readers);
	}
}

/*
 * One pass over old segments and sorted runs together.  With m->stamp NULL the
 * runs' bytes are forgotten.
 */
static void merge_page(struct page *p, const struct run *run, size_t nr_runs,
	struct merge *m)
{
	static const struct segment none;
	size_t i = 0, r;
	uint32_t at, to;

	for (r = 0; r < nr_runs; r++) {
		at = run[r].from;
		for (; i < p->nr && p->seg[i].to <= at; i++)
			emit_kept(m, &p->seg[i], p->seg[i].from, p->seg[i].to);
		if (i < p->nr && p->seg[i].from < at)
			emit_kept(m, &p->seg[i], p->seg[i].from, at);
		while (at < run[r].to) {
			const struct segment *s = i < p->nr ? &p->seg[i] : NULL;
			bool inside = s && s->from <= at;

			to = inside ? s->to : s ? s->from : run[r].to;
			if (to > run[r].to)
				to = run[r].to;
			if (m->stamp)
				emit_accessed(m, inside ? s : &none, at, to);
			at = to;
			if (inside && s->to == at)
				i++;
		}
		/* What is left of a segment that the run ended in. */
		if (i < p->nr && p->seg[i].from < at)
			p->seg[i].from = at;
	}
	for (; i < p->nr; i++)
		emit_kept(m, &p->seg[i], p->seg[i].from, p->seg[i].to);
	drop_segments(p->seg, p->nr);
	free(p->seg);
	readers_put(m->memo_old);
	readers_put(m->memo_new);
	m->memo_old = m->memo_new = NULL;
	p->seg = m->out;
	p->nr = m->nr;
	p->cap = m->cap;
	m->out = NULL;
	m->nr = m->cap = 0;
}

/* ---- shadows ---------------------------------------------------------------------- */

static struct page *page_at(struct shadow **shadow, uint64_t offset)
{
	size_t i = offset / PAGE, nr;
	struct shadow *s = *shadow;

	if (!s)
		s = *shadow = object_alloc(sizeof(*s));
	if (i >= s->nr) {
		nr = s->nr;
		s->nr = i + 1 > 2 * nr ? i + 1 : 2 * nr;
		s->page = realloc(s->page, s->nr * sizeof(*s->page));
		if (!s->page)
			abort();
		memset(&s->page[nr], 0, (s->nr - nr) * sizeof(*s->page));
	}
	if (!s->page[i])
		s->page[i] = object_alloc(sizeof(**s->page));
	return s->page[i];
}

void race_access(struct shadow **shadow, uint64_t offset, uint64_t size,
	bool write, struct race_stamp *stamp, const struct race_clock *c,
	uint64_t where)
{
	struct merge m = { .stamp = stamp, .clock = c, .write = write };
	struct page *p;
	struct run run;
	uint64_t n;

	for (; size; offset += n, size -= n, where += n) {
		p = page_at(shadow, offset);
		run.from = (uint32_t)(offset % PAGE);
		n = PAGE - run.from < size ? PAGE - run.from : size;
		run.to = run.from + (uint32_t)n;
		m.address = where - run.from;
		merge_page(p, &run, 1, &m);
	}
}

static uint64_t page_last_write(const struct page *p, uint32_t from,
	uint32_t to)
{
	uint64_t when = 0;
	size_t i;

	for (i = 0; i < p->nr; i++) {
		const struct segment *s = &p->seg[i];

		if (s->from < to && from < s->to && s->writer
		    && s->writer->when >= when)
			when = s->writer->when + 1;
	}
	return when;
}

uint64_t race_last_write(const struct shadow *shadow, uint64_t offset,
	uint64_t size)
{
	uint64_t when = 0, w, n;
	uint32_t from;
	size_t i;

	for (; shadow && size; offset += n, size -= n) {
		i = offset / PAGE;
		from = (uint32_t)(offset % PAGE);
		n = PAGE - from < size ? PAGE - from : size;
		if (i >= shadow->nr || !shadow->page[i])
			continue;
		w = page_last_write(shadow->page[i], from,
			from + (uint32_t)n);
		if (w > when)
			when = w;
	}
	return when;
}

void race_acquire(const struct shadow *shadow, uint64_t offset, uint64_t size,
	struct race_clock *c)
{
	uint32_t from = (uint32_t)(offset % PAGE);
	const struct race_stamp *w;
	const struct page *p;
	size_t i;

	if (!shadow || offset / PAGE >= shadow->nr
	    || !shadow->page[offset / PAGE])
		return;
	p = shadow->page[offset / PAGE];
	for (i = 0; i < p->nr; i++) {
		w = p->seg[i].writer;
		if (!w || p->seg[i].to <= from || p->seg[i].from >= from + size)
			continue;
		widen(c, w->actor + 1);
		if (c->tick[w->actor] < w->tick)
			c->tick[w->actor] = w->tick;
	}
}

void race_forget(struct shadow *shadow, uint64_t offset, uint64_t size)
{
	struct merge m = { .stamp = NULL };
	struct run run;
	uint64_t n;
	size_t i;

	for (; shadow && size; offset += n, size -= n) {
		i = offset / PAGE;
		run.from = (uint32_t)(offset % PAGE);
		n = PAGE - run.from < size ? PAGE - run.from : size;
		run.to = run.from + (uint32_t)n;
		if (i < shadow->nr && shadow->page[i])
			merge_page(shadow->page[i], &run, 1, &m);
	}
}

void race_shadow_free(struct shadow *shadow)
{
	size_t i;

	if (!shadow)
		return;
	for (i = 0; i < shadow->nr; i++) {
		if (!shadow->page[i])
			continue;
		drop_segments(shadow->page[i]->seg, shadow->page[i]->nr);
		free(shadow->page[i]->seg);
		free(shadow->page[i]);
	}
	free(shadow->page);
	free(shadow);
}

/* ---- kernels ------------------------------------------------------------------------ */

static struct bits *pool;
static struct page **touched;
static size_t nr_touched, cap_touched;
static struct run *runs;
static size_t cap_runs;

static struct bits *take_bits(void)
{
	struct bits *b = pool;

	if (b)
		pool = b->next;
	else
		b = object_alloc(sizeof(*b));
	return b;
}

static void start_bits(struct page *p, int kind, uint64_t address)
{
	p->bits[kind] = take_bits();
	p->first[kind] = WORDS;
	p->last[kind] = 0;
	p->address = address;
	if (p->listed)
		return;
	p->listed = true;
	touched = object_grow(touched, nr_touched, &cap_touched,
		sizeof(*touched));
	touched[nr_touched++] = p;
}

static void set_bits(uint64_t *word, uint32_t from, uint32_t to)
{
	uint32_t a = from / 64, b = (to - 1) / 64;
	uint64_t head = ~0ull << from % 64;
	uint64_t tail = ~0ull >> (63 - (to - 1) % 64);

	if (a == b) {
		word[a] |= head & tail;
		return;
	}
	word[a] |= head;
	for (a++; a < b; a++)
		word[a] = ~0ull;
	word[b] |= tail;
}

void race_touch(struct shadow **shadow, uint64_t offset, uint64_t size,
	bool write, uint64_t where)
{
	uint32_t from, to;
	struct page *p;

	while (size) {
		p = page_at(shadow, offset);
		from = (uint32_t)(offset % PAGE);
		to = size < PAGE - from ? from + (uint32_t)size : PAGE;
		if (!p->bits[write])
			start_bits(p, write, where - from);
		if (from / 64 < p->first[write])
			p->first[write] = from / 64;
		if ((to - 1) / 64 > p->last[write])
			p->last[write] = (to - 1) / 64;
		set_bits(p->bits[write]->word, from, to);
		offset += to - from;
		where += to - from;
		size -= to - from;
	}
}

/* Runs of set bits; the words are zero afterwards. */
static size_t collect(struct page *p, int kind)
{
	uint64_t *word = p->bits[kind]->word, w;
	uint32_t i, from = 0, bit, zeros;
	bool in = false;
	size_t nr = 0;

	for (i = p->first[kind]; i <= p->last[kind] + 1; i++) {
		w = i < WORDS ? word[i] : 0;
		if (i < WORDS)
			word[i] = 0;
		if (w == (in ? ~0ull : 0))
			continue;
		for (bit = 0; bit < 64; ) {
			zeros = (in ? ~w : w) >> bit
				? (uint32_t)__builtin_ctzll((in ? ~w : w) >> bit)
				: 64 - bit;
			bit += zeros;
			if (bit == 64)
				break;
			if (!in) {
				from = i * 64 + bit;
			} else {
				runs = object_grow(runs, nr, &cap_runs,
					sizeof(*runs));
				runs[nr++] = (struct run) { from, i * 64 + bit };
			}
			in = !in;
		}
	}
	if (in) {
		runs = object_grow(runs, nr, &cap_runs, sizeof(*runs));
		runs[nr++] = (struct run) { from, PAGE };
	}
	return nr;
}

void race_touch_done(struct race_stamp *stamp, const struct race_clock *c)
{
	struct merge m = { .stamp = stamp, .clock = c };
	struct page *p;
	size_t i, nr;
	int kind;

	for (i = 0; i < nr_touched; i++) {
		p = touched[i];
		p->listed = false;
		m.address = p->address;
		for (kind = 0; kind < 2; kind++) {
			if (!p->bits[kind])
				continue;
			nr = collect(p, kind);
			m.write = kind;
			merge_page(p, runs, nr, &m);
			p->bits[kind]->next = pool;
			pool = p->bits[kind];
			p->bits[kind] = NULL;
		}
	}
	nr_touched = 0;
}

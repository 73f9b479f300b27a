/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before Ballast by the failure sweep.  Of the calls of malloc,
 * calloc, realloc, posix_memalign and mmap that come from libballast.so, the
 * one whose number FAILALLOC_NTH gives fails; all others, and those of the
 * program, the driver and libc, work.  What failed is said on standard error.
 * No locks: one atomic counter.
 */
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

/* glibc's own, which no library replaces. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static uintptr_t text, text_end;	/* of libballast.so; set once */
static int looked;
static unsigned long nth, nr_calls;

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');

	if (name == NULL || strcmp(name, "/libballast.so") != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		text = info->dlpi_addr + h->p_vaddr;
		text_end = text + h->p_memsz;
	}
	return 1;
}

/* On the first call of all: then every preloaded library is mapped. */
static void look(void)
{
	const char *value = getenv("FAILALLOC_NTH");

	__atomic_store_n(&looked, 1, __ATOMIC_RELAXED);
	dl_iterate_phdr(find_library, NULL);
	nth = value == NULL ? 0 : strtoul(value, NULL, 10);
}

static int fails(const char *what, size_t size, uintptr_t caller)
{
	char line[160];
	int n;

	if (!__atomic_load_n(&looked, __ATOMIC_RELAXED))
		look();
	if (caller - text >= text_end - text || nth == 0 ||
	    __atomic_add_fetch(&nr_calls, 1, __ATOMIC_RELAXED) != nth)
		return 0;
	n = snprintf(line, sizeof(line), "failalloc: %s of %zu bytes at "
		"text + %#lx: failure injected\n", what, size,
		(unsigned long)(caller - text));
	if (write(STDERR_FILENO, line, (size_t)n) != n)
		return 0;
	errno = ENOMEM;
	return 1;
}

EXPORT void *malloc(size_t size)
{
	return fails("malloc", size, CALLER) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	return fails("calloc", n * size, CALLER) ? NULL :
		__libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
	return fails("realloc", size, CALLER) ? NULL :
		__libc_realloc(p, size);
}

EXPORT int posix_memalign(void **p, size_t align, size_t size)
{
	void *got = fails("posix_memalign", size, CALLER) ? NULL :
		__libc_memalign(align, size);

	if (got == NULL)
		return ENOMEM;
	*p = got;
	return 0;
}

EXPORT void *mmap(void *at, size_t size, int prot, int flags, int fd,
	off_t offset)
{
	if (fails("mmap", size, CALLER))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes, lock annotations and small macros.  No logic, no includes of
 * ours.  The lock annotations mean something to clang -Wthread-safety only.
 */
#ifndef BALLAST_COMPILER_H
#define BALLAST_COMPILER_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WARN_UNUSED __attribute__((warn_unused_result))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))
#define CACHE_LINE 64

#if defined(__clang__)
#define CAPABILITY(name) __attribute__((capability(name)))
#define ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define TRY_ACQUIRES(...) \
	__attribute__((try_acquire_capability(__VA_ARGS__)))
#define RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define GUARDED_BY(x) __attribute__((guarded_by(x)))
#define NO_THREAD_SAFETY __attribute__((no_thread_safety_analysis))
#else
#define CAPABILITY(name)
#define ACQUIRES(...)
#define TRY_ACQUIRES(...)
#define RELEASES(...)
#define REQUIRES(...)
#define EXCLUDES(...)
#define GUARDED_BY(x)
#define NO_THREAD_SAFETY
#endif
/* A struct member guarded by a lock that its comment names. */
#define GUARDED

#endif

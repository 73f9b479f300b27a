/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter layouts by function.  A hash table of records whose layout never
 * changes: readers follow it without a lock, writers hold kernarg_lock.
 * Forgetting starts a new generation; a record of an older one is taken up
 * again when its function turns out to look as it did.
 */
#include "shim/kernarg.h"

#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/lock.h"
#include "shim/log.h"

#define BUCKETS 4096u
#define MAX_PARAMS 4096u	/* an argument buffer has 32764 bytes at most */

static struct lock kernarg_lock = LOCK_INITIALIZER(LOCK_HANDLES, "functions");
static struct kernarg *buckets[BUCKETS];	/* atomic heads */
static uint32_t generation_now;			/* atomic */

static unsigned bucket_of(CUfunction f)
{
	uint64_t h = (uint64_t)(uintptr_t)f * 0x9e3779b97f4a7c15ull;

	return (unsigned)(h >> 52) & (BUCKETS - 1);
}

static struct kernarg *lookup(CUfunction f)
{
	uint32_t now = __atomic_load_n(&generation_now, __ATOMIC_ACQUIRE);
	struct kernarg *k = __atomic_load_n(&buckets[bucket_of(f)],
		__ATOMIC_ACQUIRE);

	while (k != NULL && (k->function != f ||
	       __atomic_load_n(&k->generation, __ATOMIC_RELAXED) != now))
		k = k->next;
	return k;
}

/* Kernel handles, open addressing; 0 is free.  Guarded by kernarg_lock. */
static uintptr_t *kernels GUARDED_BY(kernarg_lock);
static size_t nr_kernels GUARDED_BY(kernarg_lock);
static size_t max_kernels GUARDED_BY(kernarg_lock);

static size_t kernel_slot(const uintptr_t *table, size_t max, uintptr_t k)
{
	size_t i = (size_t)((uint64_t)k * 0x9e3779b97f4a7c15ull >> 20) %
		max;

	while (table[i] != 0 && table[i] != k)
		i = (i + 1) % max;
	return i;
}

static bool kernels_grow(void) REQUIRES(&kernarg_lock)
{
	size_t max = max_kernels == 0 ? 256 : 2 * max_kernels;
	uintptr_t *grown = calloc(max, sizeof(*grown));

	if (grown == NULL)
		return false;
	for (size_t i = 0; i < max_kernels; i++)
		if (kernels[i] != 0)
			grown[kernel_slot(grown, max, kernels[i])] =
				kernels[i];
	free(kernels);
	kernels = grown;
	max_kernels = max;
	return true;
}

void kernarg_kernel_known(CUkernel k)
{
	size_t i;

	lock_acquire(&kernarg_lock);
	if (2 * nr_kernels < max_kernels || kernels_grow()) {
		i = kernel_slot(kernels, max_kernels, (uintptr_t)k);
		nr_kernels += kernels[i] == 0;
		kernels[i] = (uintptr_t)k;
	}
	lock_release(&kernarg_lock);
}

static bool is_kernel(CUfunction f)
{
	bool found;

	lock_acquire(&kernarg_lock);
	found = max_kernels > 0 && kernels[kernel_slot(kernels, max_kernels,
		(uintptr_t)f)] != 0;
	lock_release(&kernarg_lock);
	return found;
}

/* Asks the driver.  Until an index is refused there is one more parameter. */
static struct kernarg *inquire(CUfunction f)
{
	struct kernarg *k = calloc(1, sizeof(*k)), *grown;
	size_t offset, size;
	CUresult r = CUDA_SUCCESS;
	bool kernel = is_kernel(f);
	uint32_t i;

	if (k == NULL)
		return NULL;
	k->function = f;
	k->generation = UINT32_MAX;
	for (i = 0; i < MAX_PARAMS; i++) {
		r = kernel ? real.cuKernelGetParamInfo((CUkernel)f, i,
			&offset, &size) :
			real.cuFuncGetParamInfo(f, i, &offset, &size);
		if (i == 0 && kernel && r == CUDA_ERROR_INVALID_HANDLE) {
			/* The kernel has gone, and a function has its handle. */
			kernel = false;
			r = real.cuFuncGetParamInfo(f, i, &offset, &size);
		}
		if (r != CUDA_SUCCESS)
			break;
		if (offset + size > k->params_size)
			k->params_size = (uint32_t)(offset + size);
		if (size < sizeof(uint64_t))
			continue;
		grown = realloc(k, sizeof(*k) +
			(k->nr + 1) * sizeof(k->params[0]));
		if (grown == NULL) {
			free(k);
			return NULL;
		}
		k = grown;
		k->params[k->nr++] = (struct kernarg_param){
			.offset = (uint32_t)offset,
			.size = (uint32_t)size,
			.index = i,
		};
	}
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		/* Code is loaded when it is first asked for; not for good. */
		free(k);
		return NULL;
	}
	k->known = r == CUDA_ERROR_INVALID_VALUE && api_has(kernel ?
		(const void *)real.cuKernelGetParamInfo :
		(const void *)real.cuFuncGetParamInfo);
	if (!k->known)
		log_warn("parameters of function %p are unknown (%s): what it "
			"touches cannot be seen", (void *)f,
			api_result_name(r));
	return k;
}

static bool same_layout(const struct kernarg *a, const struct kernarg *b)
{
	return a->function == b->function && a->known == b->known &&
		a->nr == b->nr && a->params_size == b->params_size &&
		memcmp(a->params, b->params, a->nr * sizeof(a->params[0])) == 0;
}

/* Enters `made`, or takes up a record that says the same and frees `made`. */
static struct kernarg *enter(struct kernarg *made) REQUIRES(&kernarg_lock)
{
	unsigned b = bucket_of(made->function);
	struct kernarg *k = lookup(made->function);

	if (k == NULL)
		for (k = buckets[b]; k != NULL; k = k->next)
			if (same_layout(k, made))
				break;
	if (k != NULL) {
		free(made);
	} else {
		k = made;
		k->next = buckets[b];
		__atomic_store_n(&buckets[b], k, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&k->generation, generation_now, __ATOMIC_RELEASE);
	return k;
}

const struct kernarg *kernarg_find(CUfunction f)
{
	struct kernarg *k = lookup(f);

	if (likely(k != NULL))
		return k;
	k = inquire(f);
	if (k == NULL)
		return NULL;
	lock_acquire(&kernarg_lock);
	k = enter(k);
	lock_release(&kernarg_lock);
	return k;
}

void kernarg_forget_all(void)
{
	__atomic_fetch_add(&generation_now, 1, __ATOMIC_ACQ_REL);
}

const uint8_t *kernarg_packed(void **extra, size_t *size)
{
	const uint8_t *buffer = NULL;

	*size = 0;
	if (extra == NULL)
		return NULL;
	while (*extra != CU_LAUNCH_PARAM_END) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			*size = extra[1] == NULL ? 0 : *(size_t *)extra[1];
		else
			return NULL;
		extra += 2;
	}
	return buffer;
}

bool kernarg_walk(const struct kernarg *k, void **params, void **extra,
	kernarg_visit_fn *visit, void *arg)
{
	size_t packed_size = 0;
	const uint8_t *packed = params == NULL ?
		kernarg_packed(extra, &packed_size) : NULL;

	for (uint32_t i = 0; i < k->nr; i++) {
		const struct kernarg_param *p = &k->params[i];
		const uint8_t *at = packed == NULL ?
			(params == NULL ? NULL : params[p->index]) :
			packed + p->offset;

		if (at == NULL || (packed != NULL &&
		    (uint64_t)p->offset + p->size > packed_size))
			continue;
		for (uint32_t off = 0; off + 8 <= p->size; off++)
			if (!visit(arg, kernarg_word(at + off)))
				return false;
	}
	return true;
}

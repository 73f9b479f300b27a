/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of loop.c and the weights they ask for: models of layers of
 * tensors, each uploaded by itself, with the sums by which the host follows
 * what the kernels make of them.
 */
#ifndef LOOP_MODEL_H
#define LOOP_MODEL_H

#include <stdbool.h>

#include "test/e2e/loop_ptx.h"

enum {
	LOOP_MAX_LAYERS = 64,
	LOOP_MAX_TENSORS = 12,	/* that a layer may use */
	LOOP_MAX_MODELS = 2,
};

/* What they do stands in loop.c.  Read only once threads run. */
static struct loop_options {
	uint64_t layers, tensors, bytes, iters, work, seed, acts;
	uint64_t sizes, packed, tied, experts, stacked, grow, models;
	uint64_t streams, halves, threads, phases, train, backward;
	uint64_t order, shuffle, free, alloc, alloc_bytes, spare, beside;
	uint64_t batch, move, handover, away, poll;
} loop;

struct loop_tensor {
	CUdeviceptr data;
	size_t size, off;	/* off: in the packed buffer */
	unsigned int nr_parts;	/* LOOP_EXPERTS where stacked, else 1 */
	struct loop_sums sums[LOOP_EXPERTS];
};

struct loop_layer {
	struct loop_tensor own[LOOP_MAX_TENSORS];
	unsigned int nr_own;
	/* What a pass reads; borrowed, of this layer or (tied) another one. */
	struct loop_tensor *use[LOOP_MAX_TENSORS];
	unsigned int nr_use;
	/* Rows that passes append and read, if --grow. */
	struct loop_tensor cache;
	size_t rows;
};

struct loop_model {
	struct loop_layer layer[LOOP_MAX_LAYERS];
	CUdeviceptr packed;
};

static inline size_t loop_words(const struct loop_tensor *t)
{
	return t->size / t->nr_parts / 4;
}

/* ---- sizes --------------------------------------------------------------- */

/* As many values below 2^20 as above: 64 KiB to 8 MiB, multiples of 256. */
static inline size_t loop_random_size(uint64_t *seed)
{
	uint64_t r = e2e_random(seed);
	size_t base = (size_t)65536 << r % 7;

	return base + (r >> 8) % base / 256 * 256;
}

static inline void loop_layer_sizes(struct loop_layer *y, uint64_t *seed)
{
	unsigned int nr = loop.tensors;

	if (loop.sizes)
		nr = 2 + e2e_random(seed) % 3;
	for (unsigned int i = 0; i < nr; i++) {
		y->own[i].size = loop.sizes ? loop_random_size(seed) :
			loop.bytes;
		y->own[i].nr_parts = 1;
	}
	if (loop.experts)
		for (unsigned int i = 0; i < LOOP_EXPERTS; i++, nr++) {
			y->own[nr].size = loop.bytes;
			y->own[nr].nr_parts = 1;
		}
	if (loop.stacked) {
		y->own[nr].size = loop.bytes * LOOP_EXPERTS;
		y->own[nr++].nr_parts = LOOP_EXPERTS;
	}
	y->nr_own = nr;
}

/* One after another, aligned to 256 bytes only, some gaps between them. */
static inline size_t loop_pack(struct loop_model *m)
{
	size_t off = 256, nr = 0;

	for (size_t l = 0; l < loop.layers; l++)
		for (size_t i = 0; i < m->layer[l].nr_own; i++, nr++) {
			m->layer[l].own[i].off = off;
			off += m->layer[l].own[i].size + nr % 5 * 256;
			off = (off + 255) / 256 * 256;
		}
	return off;
}

/* ---- contents ------------------------------------------------------------ */

static inline void loop_tensor_upload(struct loop_tensor *t, uint64_t *seed)
{
	uint32_t *host = e2e_host(t->size);

	e2e_fill_random(host, t->size, seed);
	for (unsigned int i = 0; i < t->nr_parts; i++) {
		t->sums[i] = (struct loop_sums){ 0 };
		loop_sums_add(&t->sums[i], host + i * loop_words(t),
			loop_words(t), 0);
	}
	CU(cuMemcpyHtoD, t->data, host, t->size);
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
	free(host);
}

static inline void loop_layer_create(struct loop_model *m, size_t nr,
	uint64_t *seed)
{
	struct loop_layer *y = &m->layer[nr];

	for (unsigned int i = 0; i < y->nr_own; i++) {
		struct loop_tensor *t = &y->own[i];

		t->data = m->packed ? m->packed + t->off : e2e_alloc(t->size);
		loop_tensor_upload(t, seed);
		/* Experts are chosen pass by pass. */
		if (!loop.experts || i < y->nr_own - LOOP_EXPERTS)
			y->use[y->nr_use++] = t;
	}
	if (loop.tied && nr && nr == loop.layers - 1)
		y->use[y->nr_use++] = &m->layer[0].own[0];
	if (loop.grow) {
		/* Each pass may come twice, forward and backward. */
		y->cache.size = loop.grow * loop.iters;
		y->cache.nr_parts = 1;
		y->cache.data = e2e_alloc(y->cache.size);
	}
}

static inline struct loop_model *loop_model_create(uint64_t seed)
{
	struct loop_model *m = e2e_host(sizeof(*m));
	uint64_t shape = loop.sizes;

	for (size_t l = 0; l < loop.layers; l++)
		loop_layer_sizes(&m->layer[l], &shape);
	if (loop.packed)
		m->packed = e2e_alloc(loop_pack(m));
	for (size_t l = 0; l < loop.layers; l++)
		loop_layer_create(m, l, &seed);
	return m;
}

/* Other values, and most likely other addresses. */
static inline void loop_layer_renew(struct loop_layer *y, uint64_t seed)
{
	for (unsigned int i = 0; i < y->nr_own; i++)
		CU(cuMemFree, y->own[i].data);
	for (unsigned int i = y->nr_own; i-- > 0; ) {
		y->own[i].data = e2e_alloc(y->own[i].size);
		loop_tensor_upload(&y->own[i], &seed);
	}
}

static inline void loop_model_destroy(struct loop_model *m)
{
	for (size_t l = 0; l < loop.layers; l++) {
		struct loop_layer *y = &m->layer[l];

		for (unsigned int i = 0; i < y->nr_own && !m->packed; i++)
			CU(cuMemFree, y->own[i].data);
		if (loop.grow)
			CU(cuMemFree, y->cache.data);
	}
	if (m->packed)
		CU(cuMemFree, m->packed);
	free(m);
}

static inline size_t loop_model_size(const struct loop_model *m)
{
	size_t size = 0;

	for (size_t l = 0; l < loop.layers; l++)
		for (unsigned int i = 0; i < m->layer[l].nr_own; i++)
			size += m->layer[l].own[i].size;
	return size;
}

#endif

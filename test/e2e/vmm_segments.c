/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expandable segments, as caching allocators have them: one large reservation
 * that grows by handles mapped one after another.  Tensors lie across the
 * handles' borders.  Handles under freed tensors are unmapped and released,
 * and other handles fill the holes.  Everything is checked against a model in
 * host memory: --unit is the smallest handle, --handles how many at first.
 */
#include "test/e2e/e2e_vmm.h"

enum { MAX_PIECES = 64, MAX_TENSORS = 64 };

static struct e2e_vmm v;
static CUdeviceptr segment, out;
static size_t segment_size;
static unsigned char *model;
static uint64_t seed = 11;
static CUstream streams[2];

struct piece {
	size_t at, size;
	CUmemGenericAllocationHandle handle;
	int mapped;
};

struct tensor {
	size_t at, size;
};

static struct piece pieces[MAX_PIECES];
static int nr_pieces;
static struct tensor tensors[MAX_TENSORS];
static int nr_tensors;

static void piece_map(size_t at, size_t size)
{
	struct piece *p = &pieces[nr_pieces++];

	p->at = at;
	p->size = size;
	p->handle = e2e_vmm_create(&v, size);
	e2e_vmm_map(&v, segment + at, size, p->handle);
	p->mapped = 1;
}

static void tensor_make(size_t at, size_t size)
{
	struct tensor *t = &tensors[nr_tensors++];

	t->at = at;
	t->size = size;
	e2e_fill_random(model + at, size, &seed);
	/* In two uploads, the second one queued. */
	CU(cuMemcpyHtoD, segment + at, model + at, size / 3 & ~3u);
	CU(cuMemcpyHtoDAsync, segment + at + (size / 3 & ~3u),
		model + at + (size / 3 & ~3u), size - (size / 3 & ~3u),
		streams[0]);
	CU(cuStreamSynchronize, streams[0]);
}

/* Kernels over all tensors; the even ones are also changed. */
static void use_all(uint32_t round)
{
	for (int i = 0; i < nr_tensors; i++) {
		const struct tensor *t = &tensors[i];
		CUstream s = streams[i & 1];
		uint32_t got, want, *w = (uint32_t *)(model + t->at);

		if (i % 2 == 0) {
			e2e_vmm_add(&v, s, segment + t->at, t->size, round);
			for (size_t k = 0; k < t->size / 4; k++)
				w[k] += round;
		}
		got = e2e_digest_now(v.digest, s, out, segment + t->at,
			t->size, round);
		want = e2e_digest(w, t->size, round);
		if (got != want)
			E2E_FAIL("round %u, tensor %d: %#x, not %#x", round, i,
				got, want);
	}
}

static uint64_t check_all(void)
{
	uint64_t hash = E2E_HASH;

	for (int i = 0; i < nr_tensors; i++) {
		const struct tensor *t = &tensors[i];
		unsigned char *back = e2e_host(t->size);

		CU(cuMemcpyDtoH, back, segment + t->at, t->size);
		if (memcmp(back, model + t->at, t->size))
			E2E_FAIL("tensor %d lost its bytes", i);
		hash = e2e_hash(hash, back, t->size);
		free(back);
	}
	return hash;
}

/* Drops the tensors that touch a piece, then the piece. */
static void piece_drop(struct piece *p)
{
	int n = 0;

	for (int i = 0; i < nr_tensors; i++)
		if (tensors[i].at >= p->at + p->size ||
		    tensors[i].at + tensors[i].size <= p->at)
			tensors[n++] = tensors[i];
	nr_tensors = n;
	CU(cuCtxSynchronize);
	CU(cuMemUnmap, segment + p->at, p->size);
	CU(cuMemRelease, p->handle);
	p->mapped = 0;
}

/* Tensors over [from, to), none a multiple of the handles' size. */
static void tensors_fill(size_t from, size_t to, size_t unit)
{
	size_t sizes[] = { unit / 2, unit + unit / 4, 3 * unit - 512, 512 * 3 };

	for (int i = 0; from < to && nr_tensors < MAX_TENSORS; i++) {
		size_t size = sizes[i % E2E_LEN(sizes)];

		if (size > to - from)
			size = to - from;
		tensor_make(from, size);
		from += size;
	}
}

static void grow(size_t unit, int handles)
{
	size_t top = 0;

	for (int i = 0; i < handles; i++) {
		size_t size = unit * (size_t)(1 + i % 3);

		piece_map(top, size);
		tensors_fill(top, top + size - (i % 2 ? 0 : unit / 8), unit);
		top += size;
	}
	/* Over every border but the last: one tensor each. */
	for (int i = 0; i + 1 < handles && nr_tensors < MAX_TENSORS; i += 2) {
		size_t border = pieces[i + 1].at;
		int n = 0;

		for (int k = 0; k < nr_tensors; k++)
			if (tensors[k].at >= border + unit / 4 ||
			    tensors[k].at + tensors[k].size <=
			    border - unit / 4)
				tensors[n++] = tensors[k];
		nr_tensors = n;
		tensor_make(border - unit / 4, unit / 2);
	}
}

static void refuse_too_much(void)
{
	CUmemGenericAllocationHandle h;
	CUresult r = cuMemCreate(&h, (size_t)1 << 42, &v.prop, 0);

	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		E2E_FAIL("4 TiB: %s", e2e_error_name(r));
}

static void close_all(void)
{
	for (int i = 0; i < nr_pieces; i++)
		if (pieces[i].mapped)
			piece_drop(&pieces[i]);
	CU(cuMemAddressFree, segment, segment_size);
	CU(cuMemFree, out);
	for (int i = 0; i < 2; i++)
		CU(cuStreamDestroy, streams[i]);
	free(model);
}

int main(int argc, char **argv)
{
	uint64_t unit = 0, handles = 8, hash;
	struct e2e_option opts[] = {
		{ "unit", &unit, 0 }, { "handles", &handles, 0 },
	};
	CUdevice dev;
	int first;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	if (unit == 0)
		unit = 2u << 20;
	unit = (unit + v.grain - 1) / v.grain * v.grain;
	if (handles < 4 || handles > 20)
		E2E_FAIL("--handles is from 4 to 20");
	segment_size = unit * 3 * (handles + 4);
	segment = e2e_vmm_reserve(segment_size);
	model = e2e_host(segment_size);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	CU(cuStreamCreate, &streams[0], CU_STREAM_NON_BLOCKING);
	CU(cuStreamCreate, &streams[1], CU_STREAM_DEFAULT);

	grow(unit, (int)handles);
	use_all(1);
	refuse_too_much();
	use_all(2);
	/* Holes, then other handles in them: a large one becomes small ones. */
	first = nr_pieces;
	for (int i = 2; i < first; i += 3) {
		size_t at = pieces[i].at, size = pieces[i].size;

		piece_drop(&pieces[i]);
		use_all(3);
		for (size_t off = 0; off < size; off += unit)
			piece_map(at + off, unit);
		tensors_fill(at, at + size, unit);
	}
	use_all(4);
	use_all(5);
	hash = check_all();
	printf("checksum: %016llx\n", (unsigned long long)hash);
	close_all();
	e2e_close(dev);
	return 0;
}

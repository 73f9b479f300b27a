/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes copied between host and device and on the device, with offsets in all
 * three directions and different pitches and heights on both sides; the same
 * by the peer functions within one device and as batches.  A mirror on the
 * host must agree byte for byte.
 */
#include "test/e2e/e2e_util.h"

struct volume {
	CUdeviceptr data;
	size_t pitch, height, depth;
	unsigned char *mirror;
};

static uint64_t seed = 3;

static size_t size_of(const struct volume *v)
{
	return v->pitch * v->height * v->depth;
}

static struct volume volume_create(size_t pitch, size_t height, size_t depth)
{
	struct volume v = { .pitch = pitch, .height = height, .depth = depth };

	v.data = e2e_alloc(size_of(&v));
	v.mirror = e2e_host(size_of(&v));
	e2e_fill_random(v.mirror, size_of(&v), &seed);
	CU(cuMemcpyHtoD, v.data, v.mirror, size_of(&v));
	return v;
}

static void volume_check(const struct volume *v, const char *step)
{
	unsigned char *got = e2e_host(size_of(v));

	CU(cuMemcpyDtoH, got, v->data, size_of(v));
	for (size_t i = 0; i < size_of(v); i++)
		if (got[i] != v->mirror[i])
			E2E_FAIL("%s: byte %zu of row %zu of slice %zu", step,
				i % v->pitch, i / v->pitch % v->height,
				i / v->pitch / v->height);
	free(got);
}

static void volume_destroy(struct volume *v)
{
	CU(cuMemFree, v->data);
	free(v->mirror);
}

struct box {
	size_t from[3], to[3], size[3];
};

static struct box any_box(const struct volume *a, const struct volume *b)
{
	size_t la[3] = { a->pitch, a->height, a->depth };
	size_t lb[3] = { b->pitch, b->height, b->depth };
	struct box x;

	for (int i = 0; i < 3; i++) {
		size_t most = la[i] < lb[i] ? la[i] : lb[i];

		x.size[i] = 1 + e2e_random(&seed) % most;
		x.from[i] = e2e_random(&seed) % (la[i] - x.size[i] + 1);
		x.to[i] = e2e_random(&seed) % (lb[i] - x.size[i] + 1);
	}
	return x;
}

static unsigned char *at(unsigned char *base, const struct volume *v,
	const size_t *pos, size_t y, size_t z)
{
	return base + ((pos[2] + z) * v->height + pos[1] + y) * v->pitch
		+ pos[0];
}

static void mirror(const struct volume *to, unsigned char *dst,
	const struct volume *from, unsigned char *src, const struct box *x)
{
	for (size_t z = 0; z < x->size[2]; z++)
		for (size_t y = 0; y < x->size[1]; y++)
			memmove(at(dst, to, x->to, y, z),
				at(src, from, x->from, y, z), x->size[0]);
}

static CUDA_MEMCPY3D shape(const struct volume *to, const struct volume *from,
	const struct box *x)
{
	return (CUDA_MEMCPY3D) {
		.srcXInBytes = x->from[0], .srcY = x->from[1],
		.srcZ = x->from[2], .srcPitch = from->pitch,
		.srcHeight = from->height,
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from->data,
		.dstXInBytes = x->to[0], .dstY = x->to[1],
		.dstZ = x->to[2], .dstPitch = to->pitch,
		.dstHeight = to->height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to->data,
		.WidthInBytes = x->size[0], .Height = x->size[1],
		.Depth = x->size[2],
	};
}

static void through_host(struct volume *v, unsigned char *host, CUstream s)
{
	struct volume h = { .pitch = 333, .height = 40, .depth = 12 };
	struct box x = any_box(&h, v);
	CUDA_MEMCPY3D c = shape(v, &h, &x);

	e2e_fill_random(host, size_of(&h), &seed);
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = host;
	c.srcDevice = 0;
	if (s)
		CU(cuMemcpy3DAsync, &c, s);
	else
		CU(cuMemcpy3D, &c);
	CU(cuStreamSynchronize, s);
	mirror(v, v->mirror, &h, host, &x);

	h.mirror = e2e_host(size_of(&h));
	x = any_box(v, &h);
	memcpy(h.mirror, host, size_of(&h));
	mirror(&h, h.mirror, v, v->mirror, &x);
	c = shape(&h, v, &x);
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = host;
	c.dstDevice = 0;
	if (s)
		CU(cuMemcpy3DAsync, &c, s);
	else
		CU(cuMemcpy3D, &c);
	CU(cuStreamSynchronize, s);
	if (memcmp(host, h.mirror, size_of(&h)))
		E2E_FAIL("a box came to the host wrong");
	free(h.mirror);
}

static void on_device(struct volume *to, struct volume *from, CUstream s,
	int how)
{
	struct box x = any_box(from, to);
	CUDA_MEMCPY3D c = shape(to, from, &x);
	CUDA_MEMCPY3D_PEER p;
	CUcontext ctx;

	CU(cuCtxGetCurrent, &ctx);
	/* Two structs of one layout, but for the contexts. */
	memcpy(&p, &c, sizeof(p));
	p.srcContext = ctx;
	p.dstContext = ctx;
	if (how == 0)
		CU(cuMemcpy3D, &c);
	else if (how == 1)
		CU(cuMemcpy3DAsync, &c, s);
	else if (how == 2)
		CU(cuMemcpy3DPeer, &p);
	else
		CU(cuMemcpy3DPeerAsync, &p, s);
	CU(cuCtxSynchronize);
	mirror(to, to->mirror, from, from->mirror, &x);
}

static void batches(struct volume *to, struct volume *from, CUstream s)
{
	CUdeviceptr dst[3], src[3];
	size_t size[3] = { 100, 4097, 1 }, first = 0;
	CUmemcpyAttributes how = {
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
	};
	CUcontext ctx;

	for (size_t i = 0; i < 3; i++) {
		dst[i] = to->data + i * 9000;
		src[i] = from->data + i * 8000 + 5;
		memcpy(to->mirror + i * 9000, from->mirror + i * 8000 + 5,
			size[i]);
	}
	CU(cuMemcpyBatchAsync, dst, src, size, 3, &how, &first, 1, s);
	CU(cuStreamSynchronize, s);
	CU(cuCtxGetCurrent, &ctx);
	memcpy(to->mirror + 50000, from->mirror + 7, 12345);
	CU(cuMemcpyPeer, to->data + 50000, ctx, from->data + 7, ctx, 12345);
	CU(cuCtxSynchronize);
}

/* A wrong list is refused, also where the copies do not fit at once. */
static void batches_refused(struct volume *to, struct volume *from, CUstream s)
{
	CUdeviceptr dst[2] = { to->data, to->data + 140000 };
	CUdeviceptr src[2] = { from->data, from->data + 140000 };
	size_t size[2] = { 140000, 140000 }, first[2] = { 1, 1 };
	CUmemcpyAttributes how[2] = {
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
	};

	for (size_t nr = 0; nr < 3; nr++) {
		/* No group, one that begins late, two that begin at once. */
		first[0] = nr == 1;
		first[1] = 0;
		if (cuMemcpyBatchAsync(dst, src, size, 2, how, first, nr, s)
		    != CUDA_ERROR_INVALID_VALUE)
			E2E_FAIL("%zu groups of copies: not refused", nr);
	}
}

/*
 * Boxes of one layer and of two, whose heights are not given.  What a driver
 * takes them to be is not written down, so there is no mirror: runs are
 * compared.
 */
static void heights_unsaid(CUstream s)
{
	struct volume to = volume_create(4096, 70, 3);
	struct volume from = volume_create(4096, 70, 3);
	struct box x = {
		.from = { 9, 3, 1 }, .to = { 5, 1, 1 }, .size = { 4000, 61, 1 },
	};

	for (int how = 0; how < 4; how++, x.from[1] += 2) {
		CUDA_MEMCPY3D c = shape(&to, &from, &x);
		CUresult r;

		if (how != 3)
			c.srcHeight = 0;
		c.dstHeight = 0;
		c.Depth += how / 2;
		r = how % 2 == 0 ? cuMemcpy3D(&c) : cuMemcpy3DAsync(&c, s);
		CU(cuCtxSynchronize);
		CU(cuMemcpyDtoH, to.mirror, to.data, size_of(&to));
		printf("heights unsaid: %s %016llx\n", e2e_error_name(r),
			(unsigned long long)e2e_hash(E2E_HASH, to.mirror,
			size_of(&to)));
	}
	volume_destroy(&to);
	volume_destroy(&from);
}

int main(int argc, char **argv)
{
	uint64_t steps = 10;
	const struct e2e_option opts[] = { { "steps", &steps, 0 } };
	struct volume a, b;
	unsigned char *plain, *pinned;
	CUstream s;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	a = volume_create(512, 60, 20);
	b = volume_create(300, 90, 11);
	plain = e2e_host(333 * 40 * 12);
	CU(cuMemAllocHost, (void **)&pinned, 333 * 40 * 12);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	for (uint64_t i = 0; i < steps; i++) {
		through_host(&a, i & 1 ? plain : pinned, i & 2 ? s : NULL);
		on_device(&b, &a, s, (int)(i % 4));
		batches(&a, &b, s);
		volume_check(&a, "through the host");
		volume_check(&b, "on the device");
	}
	batches_refused(&b, &a, s);
	heights_unsaid(s);
	printf("checksum: %016llx\n", (unsigned long long)e2e_hash(E2E_HASH,
		b.mirror, size_of(&b)));
	CU(cuStreamDestroy, s);
	CU(cuMemFreeHost, pinned);
	volume_destroy(&a);
	volume_destroy(&b);
	e2e_close(dev);
	free(plain);
	return 0;
}

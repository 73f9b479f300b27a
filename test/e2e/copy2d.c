/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectangles copied and filled in every direction: between host memory and
 * rows at a pitch on the device, from one pitch to another, with offsets in x
 * and y; the gaps between rows must stay what they were.  A mirror on the host
 * takes the same steps and must agree byte for byte.
 */
#include "test/e2e/e2e_util.h"

#define WIDTH 1000
#define HEIGHT 300
#define HOST_PITCH 1111

struct image {
	CUdeviceptr data;
	size_t pitch;
	unsigned char *mirror;	/* pitch * HEIGHT bytes */
};

static uint64_t seed = 7;

static struct image image_create(void)
{
	struct image m;

	CU(cuMemAllocPitch, &m.data, &m.pitch, WIDTH, HEIGHT, 16);
	if (m.pitch < WIDTH)
		E2E_FAIL("a pitch of %zu for rows of %d", m.pitch, WIDTH);
	m.mirror = e2e_host(m.pitch * HEIGHT);
	e2e_fill_random(m.mirror, m.pitch * HEIGHT, &seed);
	CU(cuMemcpyHtoD, m.data, m.mirror, m.pitch * HEIGHT);
	return m;
}

static void image_check(const struct image *m, const char *step)
{
	unsigned char *got = e2e_host(m->pitch * HEIGHT);

	CU(cuMemcpyDtoH, got, m->data, m->pitch * HEIGHT);
	for (size_t i = 0; i < m->pitch * HEIGHT; i++)
		if (got[i] != m->mirror[i])
			E2E_FAIL("%s: byte %zu of row %zu is %d, not %d", step,
				i % m->pitch, i / m->pitch, got[i],
				m->mirror[i]);
	free(got);
}

/* A rectangle somewhere, that fits at two places. */
struct rect {
	size_t x1, y1, x2, y2, width, height;
};

static struct rect any_rect(void)
{
	struct rect r;

	r.width = 1 + e2e_random(&seed) % 700;
	r.height = 1 + e2e_random(&seed) % 200;
	r.x1 = e2e_random(&seed) % (WIDTH - r.width);
	r.x2 = e2e_random(&seed) % (WIDTH - r.width);
	r.y1 = e2e_random(&seed) % (HEIGHT - r.height);
	r.y2 = e2e_random(&seed) % (HEIGHT - r.height);
	return r;
}

static void to_device(struct image *m, unsigned char *host, CUstream s,
	int how)
{
	struct rect r = any_rect();
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host,
		.srcPitch = HOST_PITCH, .srcXInBytes = r.x1, .srcY = r.y1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = m->data,
		.dstPitch = m->pitch, .dstXInBytes = r.x2, .dstY = r.y2,
		.WidthInBytes = r.width, .Height = r.height,
	};

	e2e_fill_random(host, HOST_PITCH * HEIGHT, &seed);
	if (how == 0)
		CU(cuMemcpy2D, &c);
	else if (how == 1)
		CU(cuMemcpy2DUnaligned, &c);
	else
		CU(cuMemcpy2DAsync, &c, s);
	CU(cuStreamSynchronize, s);
	for (size_t y = 0; y < r.height; y++)
		memcpy(m->mirror + (r.y2 + y) * m->pitch + r.x2,
			host + (r.y1 + y) * HOST_PITCH + r.x1, r.width);
}

static void to_host(struct image *m, unsigned char *host, CUstream s, int how)
{
	struct rect r = any_rect();
	unsigned char *want = e2e_host(HOST_PITCH * HEIGHT);
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = m->data,
		.srcPitch = m->pitch, .srcXInBytes = r.x1, .srcY = r.y1,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host,
		.dstPitch = HOST_PITCH, .dstXInBytes = r.x2, .dstY = r.y2,
		.WidthInBytes = r.width, .Height = r.height,
	};

	memcpy(want, host, HOST_PITCH * HEIGHT);
	for (size_t y = 0; y < r.height; y++)
		memcpy(want + (r.y2 + y) * HOST_PITCH + r.x2,
			m->mirror + (r.y1 + y) * m->pitch + r.x1, r.width);
	if (how == 0)
		CU(cuMemcpy2D, &c);
	else
		CU(cuMemcpy2DAsync, &c, s);
	CU(cuStreamSynchronize, s);
	if (memcmp(want, host, HOST_PITCH * HEIGHT))
		E2E_FAIL("a rectangle came to the host wrong");
	free(want);
}

static void across(struct image *to, struct image *from, CUstream s, int how)
{
	struct rect r = any_rect();
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from->data,
		.srcPitch = from->pitch, .srcXInBytes = r.x1, .srcY = r.y1,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to->data,
		.dstPitch = to->pitch, .dstXInBytes = r.x2, .dstY = r.y2,
		.WidthInBytes = r.width, .Height = r.height,
	};

	if (how == 0)
		CU(cuMemcpy2D, &c);
	else if (how == 1)
		CU(cuMemcpy2DUnaligned, &c);
	else
		CU(cuMemcpy2DAsync, &c, s);
	CU(cuStreamSynchronize, s);
	CU(cuStreamSynchronize, NULL);
	for (size_t y = 0; y < r.height; y++)
		memcpy(to->mirror + (r.y2 + y) * to->pitch + r.x2,
			from->mirror + (r.y1 + y) * from->pitch + r.x1,
			r.width);
}

static void fill(struct image *m, CUstream s, int unit, int async)
{
	struct rect r = any_rect();
	uint32_t v = (uint32_t)e2e_random(&seed);
	size_t n = r.width / (size_t)unit, x = r.x2 / 4 * 4;
	CUdeviceptr at = m->data + r.y2 * m->pitch + x;

	if (unit == 1 && async)
		CU(cuMemsetD2D8Async, at, m->pitch, v, n, r.height, s);
	else if (unit == 1)
		CU(cuMemsetD2D8, at, m->pitch, v, n, r.height);
	else if (unit == 2 && async)
		CU(cuMemsetD2D16Async, at, m->pitch, v, n, r.height, s);
	else if (unit == 2)
		CU(cuMemsetD2D16, at, m->pitch, v, n, r.height);
	else if (async)
		CU(cuMemsetD2D32Async, at, m->pitch, v, n, r.height, s);
	else
		CU(cuMemsetD2D32, at, m->pitch, v, n, r.height);
	CU(cuCtxSynchronize);
	for (size_t y = 0; y < r.height; y++)
		for (size_t i = 0; i < n * (size_t)unit; i++)
			m->mirror[(r.y2 + y) * m->pitch + x + i] =
				(unsigned char)(v >> 8 * (i % (size_t)unit));
}

/* What must be refused is, and changes nothing. */
static void refuse(struct image *m, unsigned char *host)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host,
		.srcPitch = HOST_PITCH,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = m->data,
		.dstPitch = 10, .WidthInBytes = 11, .Height = 2,
	};

	if (cuMemcpy2D(&c) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("rows that are longer than their pitch were copied");
	c.WidthInBytes = 0;
	CU(cuMemcpy2D, &c);
}

int main(int argc, char **argv)
{
	uint64_t steps = 12;
	const struct e2e_option opts[] = { { "steps", &steps, 0 } };
	struct image a, b;
	unsigned char *plain, *pinned;
	uint64_t hash = E2E_HASH;
	CUstream s;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	a = image_create();
	b = image_create();
	plain = e2e_host(HOST_PITCH * HEIGHT);
	CU(cuMemAllocHost, (void **)&pinned, HOST_PITCH * HEIGHT);
	memset(pinned, 1, HOST_PITCH * HEIGHT);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	for (uint64_t i = 0; i < steps; i++) {
		to_device(&a, i & 1 ? plain : pinned, s, (int)(i % 3));
		across(&b, &a, s, (int)(i % 3));
		fill(&b, s, 1 << i % 3, (int)(i / 3 & 1));
		to_host(&b, i & 1 ? pinned : plain, s, (int)(i & 1));
		image_check(&a, "to device");
		image_check(&b, "on device");
	}
	refuse(&a, plain);
	image_check(&a, "refused");
	hash = e2e_hash(hash, b.mirror, b.pitch * HEIGHT);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	CU(cuStreamDestroy, s);
	CU(cuMemFreeHost, pinned);
	CU(cuMemFree, a.data);
	CU(cuMemFree, b.data);
	e2e_close(dev);
	free(plain);
	free(a.mirror);
	free(b.mirror);
	return 0;
}

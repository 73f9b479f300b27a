/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that reach memory without a kernel or a copy: batches of values that a
 * stream writes and waits for, textures over linear memory, compressed bytes,
 * multicast objects and sparse arrays over the program's own handles.  What
 * the driver here cannot do it says, and the memory is as it was.  In between
 * kernels walk through more memory than a small device holds.  --held: what
 * such objects would hold; --full: textures over all of the memory.
 */
#include "test/e2e/e2e_vmm.h"

enum { MAX = 32 };

static struct e2e_vmm v;
static CUstream stream;
static CUdeviceptr out;
static uint64_t size = 2 << 20, nr = 8, seed = 3, held, full;
static CUdeviceptr data[MAX];
static uint32_t *model[MAX];

static void check(const char *when)
{
	for (uint64_t i = 0; i < nr; i++)
		if (e2e_digest_now(v.digest, stream, out, data[i], size, i)
		    != e2e_digest(model[i], size, i))
			E2E_FAIL("buffer %d has other bytes %s", (int)i, when);
}

/* The last word of one buffer, the first two of the next, and two waits. */
static void values(uint64_t i, uint32_t value)
{
	CUstreamBatchMemOpParams op[4];
	uint64_t next = (i + 1) % nr, wide = (uint64_t)value << 32 | i;

	memset(op, 0, sizeof(op));
	op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[0].writeValue.address = data[i] + size - 4;
	op[0].writeValue.value64 = value;
	op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[1].writeValue.address = data[next];
	op[1].writeValue.value64 = wide;
	op[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[2].waitValue.address = data[i] + size - 4;
	op[2].waitValue.value64 = value;
	op[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[3].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	op[3].waitValue.address = data[next];
	op[3].waitValue.value64 = wide;
	op[3].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	CU(cuStreamBatchMemOp, stream, 4, op, 0);
	CU(cuStreamSynchronize, stream);
	model[i][size / 4 - 1] = value;
	memcpy(model[next], &wide, sizeof(wide));
}

static void textures(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {
		.Width = 1024, .Height = size / 4096, .Format = 0x20,
		.NumChannels = 1,
	};

	/* There is no such reference; who looks at the memory does so first. */
	for (uint64_t i = 0; i < nr; i++)
		cuTexRefSetAddress2D(NULL, &d, data[i], 4096);
	for (uint64_t i = 0; i < nr; i++)
		cuTexRefSetAddress2D_v2(NULL, &d, data[i], 4096);
}

/* The bytes of model[i] as an LZ4 block of one run; its size. */
static size_t block_of(uint64_t i, uint8_t *to, size_t bytes)
{
	size_t n = 0, left = bytes - 15;

	to[n++] = 15 << 4;
	for (; left >= 255; left -= 255)
		to[n++] = 255;
	to[n++] = (uint8_t)left;
	memcpy(to + n, model[i], bytes);
	return n + bytes;
}

/* Half of the buffers get the bytes of the others, all in one call. */
static void compressed(CUdevice dev)
{
	CUmemDecompressParams op[MAX];
	size_t failed, bytes = size - size / 255 - 64;
	uint32_t *length;
	CUdeviceptr got;
	uint8_t *block;
	int can = 0;

	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, dev);
	if (!(can & CU_MEM_DECOMPRESS_ALGORITHM_LZ4))
		return;
	got = e2e_alloc(nr / 2 * sizeof(*length));
	block = e2e_host(size);
	length = e2e_host(nr / 2 * sizeof(*length));
	memset(op, 0, sizeof(op));
	for (uint64_t i = 0; i < nr / 2; i++) {
		op[i].srcNumBytes = block_of(i, block, bytes);
		CU(cuMemcpyHtoD, data[i], block, op[i].srcNumBytes);
		op[i].dstNumBytes = bytes;
		op[i].src = (void *)(uintptr_t)data[i];
		op[i].dst = (void *)(uintptr_t)data[nr / 2 + i];
		op[i].dstActBytes = (void *)(uintptr_t)(got + i * 4);
		op[i].algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4;
		memcpy(model[nr / 2 + i], model[i], bytes);
		memcpy(model[i], block, op[i].srcNumBytes);
	}
	CU(cuMemBatchDecompressAsync, op, nr / 2, 0, &failed, stream);
	CU(cuStreamSynchronize, stream);
	CU(cuMemcpyDtoH, length, got, nr / 2 * sizeof(*length));
	for (uint64_t i = 0; i < nr / 2; i++)
		if (length[i] != bytes)
			E2E_FAIL("block %d became %u bytes", (int)i, length[i]);
	op[1 % (nr / 2)].dstNumBytes = 0;
	if (cuMemBatchDecompressAsync(op, nr / 2, 0, &failed, stream) !=
	    CUDA_ERROR_INVALID_VALUE || failed != 1 % (nr / 2))
		E2E_FAIL("nothing wrong with a block that becomes nothing");
	CU(cuStreamSynchronize, stream);
	CU(cuMemFree, got);
	free(length);
	free(block);
	check("after they were decompressed");
}

static void lasting(void)
{
	size_t n = (size + v.grain - 1) / v.grain * v.grain;
	CUmemGenericAllocationHandle h = e2e_vmm_create(&v, n);
	CUdeviceptr p = e2e_vmm_reserve(n);
	CUarrayMapInfo info;
	uint32_t digest;

	memset(&info, 0, sizeof(info));
	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.memHandle.memHandle = h;
	info.deviceBitMask = 1;
	e2e_vmm_map(&v, p, n, h);
	digest = e2e_upload_random(p, size, 9, &seed);
	if (cuMulticastBindMem(0, 0, h, 0, n, 0) == CUDA_SUCCESS ||
	    cuMulticastBindAddr(0, 0, p, n, 0) == CUDA_SUCCESS ||
	    cuMulticastBindAddr(0, 0, data[0], size, 0) == CUDA_SUCCESS ||
	    cuMemMapArrayAsync(&info, 1, stream) == CUDA_SUCCESS)
		E2E_FAIL("memory was bound to what does not exist");
	check("after it was not bound");
	if (e2e_digest_now(v.digest, stream, out, p, size, 9) != digest)
		E2E_FAIL("mapped memory has other bytes");
	CU(cuMemUnmap, p, n);
	CU(cuMemRelease, h);
	CU(cuMemAddressFree, p, n);
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "bytes", &size, 0 }, { "buffers", &nr, 0 },
		{ "held", &held, 1 }, { "full", &full, 1 },
	};
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (nr < 2 || nr > MAX || size % 4096 || size == 0)
		E2E_FAIL("2 to 32 buffers of whole pages");
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (uint64_t i = 0; i < nr; i++) {
		data[i] = e2e_alloc(size);
		model[i] = e2e_host(size);
		e2e_fill_random(model[i], size, &seed);
		CU(cuMemcpyHtoD, data[i], model[i], size);
		/* What follows depends on what the device can do. */
		printf("buffer %d: %08x\n", (int)i,
			e2e_digest(model[i], size, i));
	}
	check("after the upload");
	compressed(dev);
	if (held)
		lasting();
	for (uint64_t i = 0; i < 2; i++) {
		values(i * (nr / 2), (uint32_t)i + 77);
		check("after values were written");
	}
	if (full)
		textures();
	check("at the end");
	for (uint64_t i = 0; i < nr; i++) {
		CU(cuMemFree, data[i]);
		free(model[i]);
	}
	CU(cuMemFree, out);
	e2e_close(dev);
	return 0;
}

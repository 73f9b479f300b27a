/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that others get hold of: what may be shared with another process and
 * how, what a network card keeps, and what is accounted.
 */
#include "test/unit/softcuda.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define WRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE

extern softcuda_dma_open_fn softcuda_dma_open;
extern softcuda_dma_read_fn softcuda_dma_read;
extern softcuda_dma_write_fn softcuda_dma_write;

/* Of the other process, which begins before this one has a driver. */
static int line[2];
static pid_t child;

/* What it is told to open. */
struct order {
	CUipcMemHandle handle;
	CUresult result;
	uint32_t word;
};

/* It adds one to the first word of what it is given. */
static void serve(void)
{
	struct order o;
	CUdeviceptr p;

	soft_open();
	while (read(line[0], &o, sizeof(o)) == sizeof(o)) {
		o.result = cuIpcOpenMemHandle_v2(&p, o.handle, 1);
		if (!o.result) {
			OK(cuMemcpyDtoH_v2(&o.word, p, 4));
			o.word++;
			OK(cuMemcpyHtoD_v2(p, &o.word, 4));
			IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
			OK(cuIpcCloseMemHandle(p));
			IS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
		}
		if (write(line[0], &o, sizeof(o)) != sizeof(o))
			break;
	}
	_exit(0);
}

static void setup(void)
{
	soft_env();
	soft_open();
}

static void setup_two(void)
{
	soft_env();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, line), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(line[1]);
		serve();
	}
	close(line[0]);
	soft_open();
}

static CUmemGenericAllocationHandle create(int types, int rdma)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.requestedHandleTypes = (CUmemAllocationHandleType)types,
	};
	CUmemGenericAllocationHandle h = 0;

	prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
	OK(cuMemCreate(&h, GRAIN, &prop, 0));
	return h;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
	CUdeviceptr p = soft_reserve(GRAIN);

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	return p;
}

static uint32_t word(CUdeviceptr p)
{
	uint32_t w;

	OK(cuMemcpyDtoH_v2(&w, p, 4));
	return w;
}

START_TEST(descriptors)
{
	CUmemGenericAllocationHandle h = create(FD_TYPE, 0), again;
	CUmemGenericAllocationHandle plain = create(0, 0);
	CUdeviceptr a = map(h), b;
	int fd, other;

	OK(cuMemsetD32_v2(a, 17, GRAIN / 4));
	IS(cuMemExportToShareableHandle(&fd, plain, FD_TYPE, 0),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuMemExportToShareableHandle(&fd, h, FD_TYPE, 1),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_FABRIC, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemExportToShareableHandle(&fd, h, FD_TYPE, 0));
	OK(cuMemExportToShareableHandle(&other, h, FD_TYPE, 0));
	ck_assert_int_ne(fd, other);
	close(other);
	IS(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)other,
		FD_TYPE), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemImportFromShareableHandle(&again, (void *)0, FD_TYPE),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd,
		FD_TYPE));
	close(fd);
	b = map(again);
	ck_assert_uint_eq(word(b), 17);
	OK(cuMemsetD32_v2(b, 18, 1));
	ck_assert_uint_eq(word(a), 18);
	OK(cuMemRelease(h));
	OK(cuMemRelease(again));
	IS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
}
END_TEST

START_TEST(types)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
	};
	CUmemGenericAllocationHandle h;

	IS(cuMemCreate(&h, GRAIN, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

static struct order ask(const CUipcMemHandle *h)
{
	struct order o = { .handle = *h };

	ck_assert_int_eq(write(line[1], &o, sizeof(o)), sizeof(o));
	ck_assert_int_eq(read(line[1], &o, sizeof(o)), sizeof(o));
	return o;
}

/* Large and small allocations; what is freed cannot be opened. */
START_TEST(handles)
{
	CUdeviceptr first = soft_alloc(1000), small = soft_alloc(1000);
	CUdeviceptr large = soft_alloc(3 * GRAIN), p;
	CUmemGenericAllocationHandle vmm = create(FD_TYPE, 0);
	CUipcMemHandle h, bad;

	OK(cuMemsetD32_v2(first, 1, 1));
	OK(cuMemsetD32_v2(small, 100, 1));
	OK(cuMemsetD32_v2(large, 200, 1));
	OK(cuCtxSynchronize());
	OK(cuIpcGetMemHandle(&h, small));
	IS(cuIpcOpenMemHandle_v2(&p, h, 1), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuIpcOpenMemHandle_v2(&p, h, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(ask(&h).word, 101);
	ck_assert_uint_eq(word(small), 101);
	ck_assert_uint_eq(word(first), 1);
	OK(cuIpcGetMemHandle(&h, large + 5));
	ck_assert_uint_eq(ask(&h).word, 201);
	ck_assert_uint_eq(word(large), 201);
	OK(cuMemFree_v2(large));
	IS(ask(&h).result, CUDA_ERROR_INVALID_HANDLE);
	memset(&bad, 7, sizeof(bad));
	IS(ask(&bad).result, CUDA_ERROR_INVALID_HANDLE);
	IS(cuIpcGetMemHandle(&h, map(vmm)), CUDA_ERROR_INVALID_VALUE);
	IS(cuIpcGetMemHandle(&h, large), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
	close(line[1]);
	waitpid(child, NULL, 0);
}
END_TEST

static size_t free_bytes(void)
{
	size_t f, total;

	OK(cuMemGetInfo_v2(&f, &total));
	return f;
}

/* The card keeps the physical memory, whatever is mapped there later. */
START_TEST(card)
{
	CUmemGenericAllocationHandle h = create(0, 1), i = create(0, 1);
	CUmemGenericAllocationHandle no = create(0, 0);
	CUdeviceptr p = map(h), q = map(no);
	uint32_t w = 0;
	int fd;

	OK(cuMemsetD32_v2(p, 5, GRAIN / 4));
	OK(cuCtxSynchronize());
	ck_assert_int_eq(softcuda_dma_open(q, GRAIN), -1);
	ck_assert_int_eq(softcuda_dma_open(p, 2 * GRAIN), -1);
	fd = softcuda_dma_open(p + 4096, 8192);
	ck_assert_int_ge(fd, 0);
	OK(cuMemUnmap(p, GRAIN));
	OK(cuMemMap(p, GRAIN, 0, i, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuMemsetD32_v2(p, 6, GRAIN / 4));
	OK(cuCtxSynchronize());
	ck_assert_int_eq(softcuda_dma_read(fd, 8188, &w, 4), 0);
	ck_assert_uint_eq(w, 5);
	ck_assert_int_eq(softcuda_dma_read(fd, 8189, &w, 4), -1);
	w = 9;
	ck_assert_int_eq(softcuda_dma_write(fd, 0, &w, 4), 0);
	ck_assert_uint_eq(word(p + 4096), 6);
	OK(cuMemUnmap(p, GRAIN));
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	ck_assert_uint_eq(word(p + 4096), 9);
	close(fd);
	ck_assert_int_eq(softcuda_dma_read(fd, 0, &w, 4), -1);
}
END_TEST

START_TEST(card_accounts)
{
	CUdeviceptr p = soft_alloc(8 << 20), q;
	size_t before = free_bytes();
	int fd = -1;

	IS(cuMemGetHandleForAddressRange(&fd, p + 1, 4096,
		CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemGetHandleForAddressRange(&fd, p, 8 << 20,
		CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	OK(cuMemFree_v2(p));
	ck_assert_uint_eq(free_bytes(), before);
	IS(cuMemAlloc_v2(&q, 9 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	close(fd);
	q = soft_alloc(9 << 20);
	OK(cuMemFree_v2(q));
}
END_TEST

START_TEST(events)
{
	CUipcEventHandle h, bad = { { 0 } };
	CUevent e = soft_event(), opened;

	IS(cuIpcGetEventHandle(&h, e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuIpcGetEventHandle(&h, e));
	IS(cuIpcOpenEventHandle(&opened, h), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuIpcOpenEventHandle(&opened, bad), CUDA_ERROR_INVALID_HANDLE);
	/* Its own records are as those of any event. */
	OK(cuEventQuery(e));
	OK(cuEventRecord(e, NULL));
	OK(cuEventSynchronize(e));
	OK(cuEventQuery(e));
	OK(cuEventDestroy_v2(e));
	IS(cuIpcGetEventHandle(&h, e), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { descriptors, types, card, card_accounts, events } },
		{ setup_two, { handles } },
	};

	return soft_run_cases("softcuda share", cases,
		sizeof(cases) / sizeof(cases[0]));
}

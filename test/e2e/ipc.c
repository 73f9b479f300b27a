/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory shared with another process: of cuMemCreate by descriptor, of a pool
 * that is shared, of cuMemAlloc by the older handles, where the driver gives one.  Both processes
 * change it in turn, while kernels walk through more memory than a small device
 * holds.  What cannot be shared is refused, says so beforehand, and keeps its
 * bytes.
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { MAX = 64 };

enum kind { BY_DESCRIPTOR, BY_HANDLE, BY_POOL };

/* What goes to the child, a descriptor beside it; it adds `value`. */
struct message {
	enum kind kind;
	uint32_t value;
	uint64_t size;
	CUipcMemHandle handle;
	CUmemPoolPtrExportData pointer;
};

static struct e2e_vmm v;
static CUdeviceptr out;
static CUstream stream;
static uint64_t size = 3 << 20, weights = 8, seed = 23;
static CUdeviceptr weight[MAX];
static uint32_t digest[MAX];
static int line[2];

/* ---- the two processes ------------------------------------------------------ */

static void send_message(int to, const struct message *m, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { { 0 } };
	struct iovec v1 = { (void *)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &v1, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		h.msg_control = u.room;
		h.msg_controllen = sizeof(u.room);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	if (sendmsg(to, &h, 0) != (ssize_t)sizeof(*m))
		E2E_FAIL("sendmsg");
}

/* The descriptor or -1 to *fd; 0 when the other side is gone. */
static int receive(int from, struct message *m, int *fd)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec v1 = { m, sizeof(*m) };
	struct msghdr h = {
		.msg_iov = &v1, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *c;

	*fd = -1;
	if (recvmsg(from, &h, MSG_WAITALL) != (ssize_t)sizeof(*m))
		return 0;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return 1;
}

static void add_mapped(const struct message *m, int fd)
{
	CUdeviceptr p = e2e_vmm_reserve(m->size);
	CUmemGenericAllocationHandle h;

	CU(cuMemImportFromShareableHandle, &h, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	e2e_vmm_map(&v, p, m->size, h);
	CU(cuMemRelease, h);
	e2e_vmm_add(&v, stream, p, m->size, m->value);
	CU(cuStreamSynchronize, stream);
	CU(cuMemUnmap, p, m->size);
	CU(cuMemAddressFree, p, m->size);
	close(fd);
}

static void add_opened(const struct message *m)
{
	CUdeviceptr p, again;

	CU(cuIpcOpenMemHandle, &p, m->handle,
		CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	CU(cuIpcOpenMemHandle, &again, m->handle,
		CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (p != again)
		E2E_FAIL("one handle at two addresses");
	CU(cuIpcCloseMemHandle, again);
	e2e_vmm_add(&v, stream, p, m->size, m->value);
	CU(cuStreamSynchronize, stream);
	CU(cuIpcCloseMemHandle, p);
}

/* The pool comes with the first message. */
static void add_from_pool(struct message *m, int fd)
{
	static CUmemoryPool pool;
	CUdeviceptr p, none;

	if (!pool) {
		CU(cuMemPoolImportFromShareableHandle, &pool,
			(void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (cuMemAllocFromPoolAsync(&none, 4096, pool, stream)
		    != CUDA_ERROR_INVALID_VALUE)
			E2E_FAIL("an imported pool gives memory");
	}
	close(fd);
	CU(cuMemPoolImportPointer, &p, pool, &m->pointer);
	e2e_vmm_add(&v, stream, p, m->size, m->value);
	CU(cuMemFreeAsync, p, stream);
	CU(cuStreamSynchronize, stream);
}

static void child(void)
{
	struct message m;
	int fd;

	while (receive(line[1], &m, &fd)) {
		if (!stream) {
			e2e_vmm_open(&v, e2e_open());
			CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
		}
		if (m.kind == BY_DESCRIPTOR)
			add_mapped(&m, fd);
		else if (m.kind == BY_POOL)
			add_from_pool(&m, fd);
		else
			add_opened(&m);
		send_message(line[1], &m, -1);
	}
	/* Not the driver's end of this process: nothing to report. */
	_exit(0);
}

static void child_adds(struct message *m, uint32_t *model, int fd)
{
	struct message back;
	int none;

	m->size = size;
	m->value = (uint32_t)e2e_random(&seed);
	send_message(line[0], m, fd);
	if (!receive(line[0], &back, &none))
		E2E_FAIL("the child has failed");
	for (size_t i = 0; i < size / 4; i++)
		model[i] += m->value;
}

/* ---- this process ----------------------------------------------------------- */

static void expect(CUdeviceptr p, const uint32_t *model, const char *what)
{
	uint32_t *back = e2e_host(size);

	if (e2e_digest_now(v.digest, stream, out, p, size, 5)
	    != e2e_digest(model, size, 5))
		E2E_FAIL("a kernel reads other bytes %s", what);
	CU(cuMemcpyDtoH, back, p, size);
	if (memcmp(back, model, size))
		E2E_FAIL("a copy reads other bytes %s", what);
	free(back);
}

static void change(CUdeviceptr p, uint32_t *model)
{
	uint32_t by = (uint32_t)e2e_random(&seed);

	e2e_vmm_add(&v, stream, p, size, by);
	CU(cuStreamSynchronize, stream);
	for (size_t i = 0; i < size / 4; i++)
		model[i] += by;
}

static void pressure(void)
{
	for (uint64_t i = 0; i < weights; i++)
		if (e2e_digest_now(v.digest, stream, out, weight[i], size, i)
		    != digest[i])
			E2E_FAIL("weights %d are wrong", (int)i);
}

static uint32_t *upload(CUdeviceptr p)
{
	uint32_t *model = e2e_host(size);

	e2e_fill_random(model, size, &seed);
	CU(cuMemcpyHtoD, p, model, size);
	pressure();
	return model;
}

/* Here it is at two addresses, and in the child at a third. */
static void by_descriptor(void)
{
	CUdeviceptr a = e2e_vmm_reserve(size), b = e2e_vmm_reserve(size);
	CUmemGenericAllocationHandle h, again;
	struct message m = { .kind = BY_DESCRIPTOR };
	struct e2e_vmm s = v;
	uint32_t *model;
	int fd;

	s.prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	h = e2e_vmm_create(&s, size);
	e2e_vmm_map(&s, a, size, h);
	model = upload(a);
	CU(cuMemExportToShareableHandle, &fd, h,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	CU(cuMemImportFromShareableHandle, &again, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	e2e_vmm_map(&s, b, size, again);
	expect(b, model, "at the imported address");
	for (int i = 0; i < 3; i++) {
		change(i & 1 ? a : b, model);
		pressure();
		expect(i & 1 ? b : a, model, "at the other address");
		child_adds(&m, model, fd);
		pressure();
		expect(a, model, "after the child wrote");
	}
	close(fd);
	CU(cuMemUnmap, a, size);
	CU(cuMemRelease, h);
	CU(cuMemRelease, again);
	expect(b, model, "when the first handle is gone");
	CU(cuMemUnmap, b, size);
	CU(cuMemAddressFree, a, size);
	CU(cuMemAddressFree, b, size);
	free(model);
}

/* Memory that was not made to be shared is not. */
static void not_shareable(void)
{
	CUmemGenericAllocationHandle h = e2e_vmm_create(&v, size);
	CUdeviceptr p = e2e_vmm_reserve(size);
	uint32_t *model;
	int fd;

	e2e_vmm_map(&v, p, size, h);
	model = upload(p);
	if (cuMemExportToShareableHandle(&fd, h,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	    != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("memory is exported that must not be");
	pressure();
	expect(p, model, "after it was not exported");
	CU(cuMemUnmap, p, size);
	CU(cuMemRelease, h);
	CU(cuMemAddressFree, p, size);
	free(model);
}

/* Two allocations of one pool; the child gets them as they are then. */
static void by_pool(CUdevice dev)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev },
	};
	struct message m = { .kind = BY_POOL };
	CUmemPoolPtrExportData none;
	CUdeviceptr p[2], q;
	uint32_t *model[2];
	CUmemoryPool pool;
	int fd;

	CU(cuMemPoolCreate, &pool, &props);
	CU(cuMemPoolExportToShareableHandle, &fd, pool,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	for (int i = 0; i < 2; i++) {
		CU(cuMemAllocFromPoolAsync, &p[i], size, pool, stream);
		CU(cuStreamSynchronize, stream);
		model[i] = upload(p[i]);
	}
	for (int i = 0; i < 4; i++) {
		change(p[i & 1], model[i & 1]);
		CU(cuMemPoolExportPointer, &m.pointer, p[i & 1]);
		child_adds(&m, model[i & 1], fd);
		pressure();
		expect(p[i & 1], model[i & 1], "after the child wrote");
	}
	/* Only a pool that was made to be shared is. */
	CU(cuMemAllocAsync, &q, size, stream);
	if (cuMemPoolExportPointer(&none, q) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("memory of the default pool is exported");
	CU(cuMemFreeAsync, q, stream);
	for (int i = 0; i < 2; i++) {
		CU(cuMemFreeAsync, p[i], stream);
		free(model[i]);
	}
	CU(cuStreamSynchronize, stream);
	CU(cuMemPoolDestroy, pool);
	close(fd);
}

/* What a pointer says of itself must agree with what happens. */
static int handle_of(CUipcMemHandle *h, CUdeviceptr p)
{
	unsigned char can = 0;
	CUresult r;

	CU(cuPointerGetAttribute, &can,
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	r = cuIpcGetMemHandle(h, p);
	if (r != (can ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED))
		E2E_FAIL("a pointer that can be shared: %d; the call: %s",
			can, e2e_error_name(r));
	return can;
}

static void by_handle(void)
{
	struct message m = { .kind = BY_HANDLE };
	CUdeviceptr p = e2e_alloc(size), small = e2e_alloc(4096), q;
	uint32_t *model = upload(p);

	/* Small memory is shared in any case, but not with oneself. */
	if (!handle_of(&m.handle, small))
		E2E_FAIL("4096 bytes cannot be shared");
	if (cuIpcOpenMemHandle(&q, m.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
	    != CUDA_ERROR_INVALID_CONTEXT)
		E2E_FAIL("a process opens its own handle");
	for (int i = 0; i < 3; i++) {
		change(p, model);
		if (handle_of(&m.handle, p))
			child_adds(&m, model, -1);
		pressure();
		expect(p, model, "after the child could write");
	}
	CU(cuMemFree, small);
	CU(cuMemFree, p);
	free(model);
}

static void events(void)
{
	CUipcEventHandle h;
	CUevent e;

	CU(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	if (cuIpcGetEventHandle(&h, e) != CUDA_ERROR_INVALID_HANDLE)
		E2E_FAIL("any event can be shared");
	CU(cuEventDestroy, e);
	CU(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	CU(cuIpcGetEventHandle, &h, e);
	CU(cuEventRecord, e, stream);
	CU(cuEventSynchronize, e);
	CU(cuEventDestroy, e);
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "bytes", &size, 0 }, { "weights", &weights, 0 },
	};
	CUdevice dev;
	pid_t pid;
	int status, can;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, line))
		E2E_FAIL("socketpair");
	pid = fork();
	close(line[pid != 0]);
	if (pid == 0)
		child();
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	size = (size + v.grain - 1) / v.grain * v.grain;
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (uint64_t i = 0; i < weights; i++) {
		weight[i] = e2e_alloc(size);
		digest[i] = e2e_upload_random(weight[i], size, i, &seed);
	}
	not_shareable();
	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
		dev);
	if (can)
		by_descriptor();
	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, dev);
	if (can & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		by_pool(dev);
	by_handle();
	events();
	for (uint64_t i = 0; i < weights; i++) {
		CU(cuMemFree, weight[i]);
		printf("weights %d: %08x\n", (int)i, digest[i]);
	}
	close(line[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		E2E_FAIL("the child ended with status %#x", status);
	CU(cuMemFree, out);
	e2e_close(dev);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes take turns at memory that both have mapped, in the order of
 * events that both know; no host waits in between.  Then the other process's
 * event comes only after this one has done something else first: what it does
 * may wait for a while, and say so, but not for ever.
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { MAX = 64, TURNS = 4 };

/* What the child is told, a descriptor beside the first. */
struct message {
	enum { OPEN, ADD, ADD_LATER, END } what;
	uint32_t value;
	uint64_t size;
	CUipcEventHandle go, back;
};

static struct e2e_vmm v;
static CUdeviceptr out, out_other;
static CUstream stream, other;
static uint64_t size = 2 << 20, weights = 8, seed = 41;
static CUdeviceptr weight[MAX];
static uint32_t digest[MAX];
static int line[2], gate[2];

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

/* ---- the child ------------------------------------------------------------- */

static void CUDA_CB wait_at_gate(void *arg)
{
	char byte;

	if (read(gate[0], &byte, 1) != 1)
		E2E_FAIL("nobody opened the gate");
}

/* Queues its turn and answers; it does not wait for the GPU. */
static void turn(const struct message *m, CUdeviceptr p, CUevent go,
	CUevent back)
{
	CU(cuStreamWaitEvent, stream, go, 0);
	if (m->what == ADD_LATER)
		CU(cuLaunchHostFunc, stream, wait_at_gate, NULL);
	e2e_vmm_add(&v, stream, p, m->size, m->value);
	CU(cuEventRecord, back, stream);
}

static void child(void)
{
	CUmemGenericAllocationHandle h;
	CUevent go = NULL, back = NULL;
	CUdeviceptr p = 0;
	struct message m;
	int fd;

	while (receive(line[1], &m, &fd) && m.what != END) {
		if (m.what != OPEN) {
			turn(&m, p, go, back);
		} else {
			e2e_vmm_open(&v, e2e_open());
			CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
			CU(cuIpcOpenEventHandle, &go, m.go);
			CU(cuIpcOpenEventHandle, &back, m.back);
			p = e2e_vmm_reserve(m.size);
			CU(cuMemImportFromShareableHandle, &h,
				(void *)(intptr_t)fd,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
			e2e_vmm_map(&v, p, m.size, h);
			close(fd);
		}
		send_message(line[1], &m, -1);
	}
	if (stream)
		CU(cuStreamSynchronize, stream);
	/* Not the driver's end of this process: nothing to report. */
	_exit(0);
}

/* ---- this process ------------------------------------------------------------ */

static void tell(const struct message *m, int fd)
{
	struct message answer;
	int none;

	send_message(line[0], m, fd);
	if (!receive(line[0], &answer, &none))
		E2E_FAIL("the child has failed");
}

static void model_add(uint32_t *model, uint32_t by)
{
	for (size_t i = 0; i < size / 4; i++)
		model[i] += by;
}

static CUdeviceptr share(struct message *m, CUevent *go, CUevent *back)
{
	struct e2e_vmm s = v;
	CUmemGenericAllocationHandle h;
	CUdeviceptr p = e2e_vmm_reserve(size);
	CUevent again;
	int fd;

	s.prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	h = e2e_vmm_create(&s, size);
	e2e_vmm_map(&s, p, size, h);
	CU(cuEventCreate, go, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	CU(cuEventCreate, back,
		CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	CU(cuIpcGetEventHandle, &m->go, *go);
	CU(cuIpcGetEventHandle, &m->back, *back);
	if (cuIpcOpenEventHandle(&again, m->go) == CUDA_SUCCESS)
		E2E_FAIL("a process opens its own event");
	CU(cuMemExportToShareableHandle, &fd, h,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	m->what = OPEN;
	m->size = size;
	tell(m, fd);
	close(fd);
	CU(cuMemRelease, h);
	return p;
}

/* On a small device the last of them makes way for the first. */
static CUresult walk(CUstream s, CUdeviceptr to)
{
	for (uint64_t i = 0; i < weights; i++) {
		uint32_t words = size / 16 * 4, salt = i;
		void *args[] = { &to, &weight[i], &words, &salt };
		CUresult r = cuLaunchKernel(v.digest, E2E_DIGEST_BLOCKS, 1, 1,
			E2E_DIGEST_THREADS, 1, 1, 0, s, args, NULL);

		if (r != CUDA_SUCCESS)
			return r;
	}
	return CUDA_SUCCESS;
}

static void check_weights(void)
{
	for (uint64_t i = 0; i < weights; i++)
		if (e2e_digest_now(v.digest, stream, out, weight[i], size, i)
		    != digest[i])
			E2E_FAIL("weights %d are wrong", (int)i);
}

static void one_turn(struct message *m, CUdeviceptr p, uint32_t *model,
	CUevent go, CUevent back)
{
	uint32_t by = (uint32_t)e2e_random(&seed);

	e2e_vmm_add(&v, stream, p, size, by);
	model_add(model, by);
	CU(cuEventRecord, go, stream);
	m->value = (uint32_t)e2e_random(&seed);
	tell(m, -1);
	model_add(model, m->value);
	CU(cuStreamWaitEvent, stream, back, 0);
}

/*
 * The stream waits for the child, whose event comes when the gate is opened,
 * and then has work on all weights; so has another stream.
 */
static void late_turn(struct message *m, CUdeviceptr p, uint32_t *model,
	CUevent go, CUevent back)
{
	CUresult r;

	m->what = ADD_LATER;
	one_turn(m, p, model, go, back);
	if (cuEventQuery(back) != CUDA_ERROR_NOT_READY)
		E2E_FAIL("the gate is open");
	r = walk(stream, out);
	if (r == CUDA_SUCCESS)
		r = walk(other, out_other);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_LAUNCH_TIMEOUT)
		E2E_FAIL("while a stream waits: %s", e2e_error_name(r));
	if (write(gate[1], "", 1) != 1)
		E2E_FAIL("write");
	CU(cuEventSynchronize, back);
	CU(cuEventQuery, back);
	CU(cuCtxSynchronize);
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "bytes", &size, 0 }, { "weights", &weights, 0 },
	};
	struct message m = { .what = OPEN };
	CUevent go, back;
	CUdeviceptr p;
	uint32_t *model;
	CUdevice dev;
	pid_t pid;
	int status;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (weights > MAX)
		E2E_FAIL("up to %d weights", MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, line) || pipe(gate))
		E2E_FAIL("socketpair");
	pid = fork();
	close(line[pid != 0]);
	if (pid == 0)
		child();
	/* Whoever waits for ever is ended. */
	alarm(60);
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	size = (size + v.grain - 1) / v.grain * v.grain;
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CU(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	out_other = e2e_alloc(E2E_DIGEST_SIZE);
	for (uint64_t i = 0; i < weights; i++) {
		weight[i] = e2e_alloc(size);
		digest[i] = e2e_upload_random(weight[i], size, i, &seed);
	}
	p = share(&m, &go, &back);
	model = e2e_host(size);
	e2e_fill_random(model, size, &seed);
	CU(cuMemcpyHtoD, p, model, size);
	CU(cuCtxSynchronize);
	m.what = ADD;
	for (int i = 0; i < TURNS; i++)
		one_turn(&m, p, model, go, back);
	if (e2e_digest_now(v.digest, stream, out, p, size, 5)
	    != e2e_digest(model, size, 5))
		E2E_FAIL("turns were taken in another order");
	check_weights();
	late_turn(&m, p, model, go, back);
	if (e2e_digest_now(v.digest, stream, out, p, size, 5)
	    != e2e_digest(model, size, 5))
		E2E_FAIL("the late turn was not waited for");
	check_weights();
	m.what = END;
	send_message(line[0], &m, -1);
	if (waitpid(pid, &status, 0) != pid || status)
		E2E_FAIL("the child ended with %#x", status);
	printf("checksum: %016llx\n", (unsigned long long)e2e_hash(E2E_HASH,
		model, size));
	CU(cuEventDestroy, go);
	CU(cuEventDestroy, back);
	CU(cuMemUnmap, p, size);
	CU(cuMemAddressFree, p, size);
	for (uint64_t i = 0; i < weights; i++)
		CU(cuMemFree, weight[i]);
	CU(cuMemFree, out);
	CU(cuMemFree, out_other);
	CU(cuStreamDestroy, stream);
	CU(cuStreamDestroy, other);
	free(model);
	e2e_close(dev);
	return 0;
}

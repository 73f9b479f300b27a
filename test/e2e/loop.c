/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same weights in the same order, again and again, and every way in which
 * a program may do that or cease to.  The host follows each step (loop_ptx.h)
 * and compares; every iteration prints a digest of all its results.
 *
 *	--layers, --tensors, --bytes	of a model; a tensor's bytes
 *	--iters, --work, --seed, --acts	passes, times that words are read,
 *					activation bytes
 *	--sizes SEED	tensors of 64 KiB to 8 MiB, two to four a layer
 *	--packed	one buffer for a model's tensors
 *	--tied		the last layer uses the first one's first tensor again
 *	--experts	a layer uses two of eight more tensors; the host asks
 *	--stacked	the same in one tensor; the kernel chooses
 *	--grow BYTES	each pass adds so much to a cache of its layer
 *	--models 2	in turn, then the second alone
 *	--streams N	layers go round N streams
 *	--halves	two halves that meet once in an iteration
 *	--threads N	each with weights and streams of its own
 *	--phases K	every K-th iteration has other kernels and more work
 *	--train		weights change after use
 *	--backward	from the last layer to the first as well
 *	--order K	iterations K to 2 K - 1 have another order
 *	--shuffle	the order is another one each time
 *	--free K	before iteration K a layer gets new memory and values
 *	--alloc K, --alloc-bytes	every K-th iteration needs a large buffer
 *	--beside N	N tensors on another device, each read once, at first
 *	--spare K	before iteration K a buffer is freed that was made first
 *			and never used
 *	--batch K, --move K, --handover K, --away K	from iteration K on
 *			there is twice the work, another stream, another thread;
 *			launches of library kernels, while a context is current
 *			that is not the stream's
 *	--poll		the host does not wait but asks, and there are no events
 *			where one stream does all
 */
#include <pthread.h>

#include "test/e2e/loop_model.h"

enum {
	MAX_STREAMS = 8,
	MAX_THREADS = 8,
	MAX_BESIDE = 64,
	MAX_LANES = 2,
	MAX_ITERS = 1000,
};

/* A state and where it is worked on. */
struct lane {
	CUstream stream[MAX_STREAMS + 1];	/* the last: --move's */
	CUevent done;		/* of the last step */
	unsigned int turn;
	CUdeviceptr x, parts;
	uint32_t host_x[LOOP_STATE];
};

/* What one thread does; all else is constant while it runs. */
struct run {
	pthread_t thread;
	struct loop_model *model[LOOP_MAX_MODELS];
	struct lane lane[MAX_LANES];
	CUevent start, end;
	CUdeviceptr acts, past;	/* past: the states after each step */
	uint32_t *want, *got;	/* the same on the host; got is pinned */
	size_t nr_steps, max_steps;
	uint64_t it, seed;
	uint64_t digest[MAX_ITERS];
};

static CUcontext ctx, away;
static CUdeviceptr spare;
static CUfunction kernel[LOOP_KERNELS];

/* ---- steps --------------------------------------------------------------- */

/* Whether events put steps in order; else all go to one stream. */
static bool ordered(void)
{
	return !loop.poll || loop.streams > 1 || loop.move || loop.halves;
}

static CUstream lane_begin(struct run *r, struct lane *l)
{
	CUstream s = l->stream[l->turn++ % loop.streams];

	if (loop.move && r->it >= loop.move)
		s = l->stream[MAX_STREAMS];
	if (ordered())
		CU(cuStreamWaitEvent, s, l->done, 0);
	return s;
}

static void lane_end(struct lane *l, CUstream s)
{
	if (ordered())
		CU(cuEventRecord, l->done, s);
}

/*
 * Until everything on s is done.  Who polls makes no other call than that, and
 * by turns an event that is recorded for it.
 */
static void lane_wait(const struct run *r, const struct lane *l, CUstream s)
{
	bool event = r->it % 2;
	CUresult e = CUDA_ERROR_NOT_READY;

	if (!loop.poll) {
		CU(cuStreamSynchronize, s);
		return;
	}
	if (event)
		CU(cuEventRecord, l->done, s);
	while (e == CUDA_ERROR_NOT_READY)
		e = event ? cuEventQuery(l->done) : cuStreamQuery(s);
	if (e != CUDA_SUCCESS)
		E2E_FAIL("polling: %s", e2e_error_name(e));
}

static void launch(const struct run *r, CUstream s, enum loop_kernel k,
	size_t blocks, unsigned int threads, void **args)
{
	bool there = loop.away && r->it >= loop.away;

	if (there)
		CU(cuCtxSetCurrent, away);
	CU(cuLaunchKernel, kernel[k], blocks, 1, 1, threads, 1, 1, 0, s, args,
		NULL);
	if (there)
		CU(cuCtxSetCurrent, ctx);
}

/* Parts of one step, before they are folded. */
struct step {
	struct lane *lane;
	CUstream stream;
	unsigned int nr_parts, nr_mixes;
	uint32_t sum;
};

static uint32_t work_now(const struct run *r, bool wide)
{
	uint32_t work = loop.work;

	if (loop.batch && r->it >= loop.batch)
		work *= 2;
	return wide ? work * 4 : work;
}

static void mix_words(struct run *r, struct step *p, enum loop_kernel k,
	struct loop_tensor *t, uint32_t words)
{
	const uint32_t *x = p->lane->host_x;
	CUdeviceptr parts = p->lane->parts + p->nr_parts * 4;
	unsigned int me = p->nr_mixes++ % LOOP_STATE;
	unsigned int work = work_now(r, k == LOOP_WIDE);
	void *args[] = { &parts, &t->data, &p->lane->x, &me, &words, &work };

	launch(r, p->stream, k, loop_mix_blocks(k), LOOP_THREADS, args);
	p->nr_parts += loop_mix_blocks(k) * LOOP_THREADS / 32;
	p->sum += loop_host_mix(k, &t->sums[k == LOOP_PICK ? x[me] >> 29 : 0],
		x[me], work);
}

static void mix(struct run *r, struct step *p, struct loop_tensor *t)
{
	bool wide = loop.phases && r->it % loop.phases == 0;

	mix_words(r, p, t->nr_parts > 1 ? LOOP_PICK :
		wide ? LOOP_WIDE : LOOP_MIX, t, loop_words(t));
}

/* Ends a step: `nr` words at `parts`, the host's sum of them, go into x. */
static void fold(struct run *r, struct lane *l, CUstream s, CUdeviceptr parts,
	unsigned int nr, uint32_t sum)
{
	CUdeviceptr past = r->past + r->nr_steps * LOOP_STATE * 4;
	uint32_t salt = r->it * 1000 + r->nr_steps;
	void *args[] = { &l->x, &past, &parts, &nr, &salt };

	if (r->nr_steps == r->max_steps)
		E2E_FAIL("more than %zu steps", r->max_steps);
	launch(r, s, LOOP_FOLD, 1, LOOP_STATE, args);
	loop_host_fold(l->host_x, sum, salt);
	memcpy(r->want + r->nr_steps * LOOP_STATE, l->host_x,
		sizeof(l->host_x));
	r->nr_steps++;
}

static void update(const struct run *r, struct step *p, struct loop_tensor *t)
{
	uint32_t words = loop_words(t) * t->nr_parts;
	void *args[] = { &t->data, &p->lane->x, &words };

	/* Four words a thread. */
	launch(r, p->stream, LOOP_UPDATE,
		(words / 4 + LOOP_THREADS - 1) / LOOP_THREADS, LOOP_THREADS,
		args);
	loop_host_update(&t->sums[0], words, p->lane->host_x[0]);
}

static void append(const struct run *r, struct step *p, struct loop_layer *y)
{
	uint32_t words = loop.grow / 4;
	CUdeviceptr at = y->cache.data + y->rows * loop.grow;
	void *args[] = { &at, &p->lane->x, &words };

	launch(r, p->stream, LOOP_APPEND,
		(words + LOOP_THREADS - 1) / LOOP_THREADS, LOOP_THREADS, args);
	loop_host_append(&y->cache.sums[0], p->lane->host_x, words,
		y->rows++ * words);
}

/* Two of the layer's last eight tensors, by the state as the GPU has it. */
static void mix_experts(struct run *r, struct step *p, struct loop_layer *y)
{
	struct loop_tensor *first = &y->own[y->nr_own - LOOP_EXPERTS];
	uint32_t *x = r->got;
	unsigned int a, b;

	CU(cuMemcpyDtoHAsync, x, p->lane->x, LOOP_STATE * 4, p->stream);
	lane_wait(r, p->lane, p->stream);
	if (memcmp(x, p->lane->host_x, LOOP_STATE * 4))
		E2E_FAIL("iteration %llu, before step %zu: wrong state",
			(unsigned long long)r->it, r->nr_steps);
	a = x[1] % LOOP_EXPERTS;
	b = (a + 1 + x[2] % (LOOP_EXPERTS - 1)) % LOOP_EXPERTS;
	mix(r, p, &first[a]);
	mix(r, p, &first[b]);
}

static void layer_step(struct run *r, struct lane *l, struct loop_layer *y,
	bool forward)
{
	struct step p = { .lane = l, .stream = lane_begin(r, l) };

	if (loop.grow && forward)
		append(r, &p, y);
	for (unsigned int i = 0; i < y->nr_use; i++)
		mix(r, &p, y->use[i]);
	if (loop.experts)
		mix_experts(r, &p, y);
	if (loop.grow)
		mix_words(r, &p, LOOP_MIX, &y->cache,
			y->rows * loop.grow / 4);
	fold(r, l, p.stream, l->parts, p.nr_parts, p.sum);
	if (loop.train && (!loop.backward || !forward))
		for (unsigned int i = 0; i < y->nr_use; i++)
			update(r, &p, y->use[i]);
	lane_end(l, p.stream);
}

/* ---- iterations ---------------------------------------------------------- */

static void iteration_order(const struct run *r, unsigned int *order)
{
	uint64_t seed = loop.seed + r->it * 77;
	unsigned int n = loop.layers;

	for (unsigned int i = 0; i < n; i++)
		order[i] = i;
	if (loop.order && r->it >= loop.order && r->it < 2 * loop.order)
		seed = loop.seed;
	else if (!loop.shuffle)
		return;
	for (unsigned int i = n - 1; i > 0; i--) {
		unsigned int j = e2e_random(&seed) % (i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

static struct loop_model *iteration_model(struct run *r)
{
	if (loop.models == 1)
		return r->model[0];
	return r->model[r->it < loop.iters * 2 / 3 ? r->it % 2 : 1];
}

/* Both halves take in what the other one has; the second one waits for it. */
static void join(struct run *r)
{
	struct lane *a = &r->lane[0], *b = &r->lane[1];
	CUstream s = lane_begin(r, a);

	CU(cuStreamWaitEvent, s, b->done, 0);
	for (int turn = 0; turn < 2; turn++) {
		uint32_t sum = 0;

		for (int i = 0; i < LOOP_STATE; i++)
			sum += b->host_x[i];
		fold(r, a, s, b->x, LOOP_STATE, sum);
		a = b;
		b = &r->lane[0];
	}
	lane_end(&r->lane[0], s);
	lane_end(&r->lane[1], s);
}

static void large_create(struct run *r, struct loop_tensor *t)
{
	struct step p = { .lane = &r->lane[0] };

	t->size = loop.alloc_bytes;
	t->nr_parts = 1;
	t->data = e2e_alloc(t->size);
	p.stream = lane_begin(r, p.lane);
	CU(cuMemsetD32Async, t->data, 0x1234567, loop_words(t), p.stream);
	t->sums[0] = loop_host_memset(loop_words(t), 0x1234567);
	update(r, &p, t);
	lane_end(p.lane, p.stream);
}

static void large_use(struct run *r, struct loop_tensor *t)
{
	struct lane *l = &r->lane[0];
	struct step p = { .lane = l, .stream = lane_begin(r, l) };

	mix_words(r, &p, LOOP_MIX, t, loop_words(t));
	fold(r, l, p.stream, l->parts, p.nr_parts, p.sum);
	lane_end(l, p.stream);
}

static void pass(struct run *r, struct loop_model *m)
{
	unsigned int order[LOOP_MAX_LAYERS], n = loop.layers;

	iteration_order(r, order);
	for (unsigned int i = 0; i < n; i++)
		layer_step(r, &r->lane[loop.halves && i >= n / 2],
			&m->layer[order[i]], true);
	for (unsigned int i = n; loop.backward && i-- > 0; )
		layer_step(r, &r->lane[loop.halves && i >= n / 2],
			&m->layer[order[i]], false);
	if (loop.halves)
		join(r);
}

static void iteration_check(struct run *r)
{
	const size_t size = r->nr_steps * LOOP_STATE * 4;
	struct lane *l = &r->lane[0];
	CUstream s = lane_begin(r, l);
	size_t i = 0;

	CU(cuMemcpyDtoHAsync, r->got, r->past, size, s);
	lane_end(l, s);
	lane_wait(r, l, s);
	while (i < size / 4 && r->got[i] == r->want[i])
		i++;
	if (i < size / 4)
		E2E_FAIL("seed %llu, iteration %llu, step %zu of %zu: wrong "
			"state", (unsigned long long)r->seed,
			(unsigned long long)r->it, i / LOOP_STATE, r->nr_steps);
	r->digest[r->it] = e2e_hash(E2E_HASH, r->got, size);
}

static void iteration(struct run *r)
{
	bool large = loop.alloc && r->it && r->it % loop.alloc == 0;
	struct loop_tensor big = { 0 };
	struct loop_model *m = iteration_model(r);

	r->nr_steps = 0;
	if (loop.free && r->it == loop.free)
		loop_layer_renew(&m->layer[loop.layers / 2], r->seed + 99);
	if (loop.spare && r->it == loop.spare && loop.threads == 1)
		CU(cuMemFree, spare);
	if (large)
		large_create(r, &big);
	pass(r, m);
	if (large)
		large_use(r, &big);
	iteration_check(r);
	if (large)
		CU(cuMemFree, big.data);
	if (loop.threads == 1) {
		printf("%llu: %016llx\n", (unsigned long long)r->it,
			(unsigned long long)r->digest[r->it]);
		fflush(stdout);
	}
}

static void iterations(struct run *r, uint64_t end)
{
	for (; r->it < end; r->it++) {
		if (r->it == loop.iters - (loop.iters + 2) / 3)
			CU(cuEventRecord, r->start, r->lane[0].stream[0]);
		iteration(r);
	}
}

static void *handed_over(void *arg)
{
	CU(cuCtxSetCurrent, ctx);
	iterations(arg, loop.iters);
	return NULL;
}

static void *work(void *arg)
{
	struct run *r = arg;
	pthread_t other;

	CU(cuCtxSetCurrent, ctx);
	if (loop.handover && loop.handover < loop.iters) {
		iterations(r, loop.handover);
		if (pthread_create(&other, NULL, handed_over, r))
			E2E_FAIL("no thread");
		pthread_join(other, NULL);
	}
	iterations(r, loop.iters);
	CU(cuEventRecord, r->end, r->lane[0].stream[0]);
	CU(cuEventSynchronize, r->end);
	return NULL;
}

/* ---- the run ------------------------------------------------------------- */

static void lane_create(struct lane *l, CUdeviceptr x, uint64_t *seed)
{
	l->x = x;
	l->parts = x + LOOP_STATE * 4;
	CU(cuEventCreate, &l->done, CU_EVENT_DISABLE_TIMING);
	for (unsigned int i = 0; i <= MAX_STREAMS; i++)
		if (i < loop.streams || (i == MAX_STREAMS && loop.move))
			CU(cuStreamCreate, &l->stream[i],
				CU_STREAM_NON_BLOCKING);
	e2e_fill_random(l->host_x, sizeof(l->host_x), seed);
	CU(cuMemcpyHtoD, l->x, l->host_x, sizeof(l->host_x));
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
}

static void lane_destroy(struct lane *l)
{
	CU(cuEventDestroy, l->done);
	for (unsigned int i = 0; i <= MAX_STREAMS; i++)
		if (l->stream[i])
			CU(cuStreamDestroy, l->stream[i]);
}

/* The activations in one buffer: both lanes' state and parts, then the past. */
static void run_create(struct run *r, uint64_t seed)
{
	const size_t room = LOOP_STATE * 4 +
		(LOOP_MAX_TENSORS + 2) * LOOP_MAX_PARTS * 4;
	const size_t past = (r->max_steps = 2 * loop.layers + 4) *
		LOOP_STATE * 4;
	size_t size = MAX_LANES * room + past;

	r->seed = seed;
	for (unsigned int i = 0; i < loop.models; i++)
		r->model[i] = loop_model_create(seed + i * 10);
	r->acts = e2e_alloc(size > loop.acts ? size : loop.acts);
	r->past = r->acts + MAX_LANES * room;
	r->want = e2e_host(past);
	CU(cuMemAllocHost, (void **)&r->got, past);
	for (unsigned int i = 0; i <= loop.halves; i++)
		lane_create(&r->lane[i], r->acts + i * room, &seed);
	CU(cuEventCreate, &r->start, CU_EVENT_DEFAULT);
	CU(cuEventCreate, &r->end, CU_EVENT_DEFAULT);
}

static void run_destroy(struct run *r)
{
	for (unsigned int i = 0; i < loop.models; i++)
		loop_model_destroy(r->model[i]);
	for (unsigned int i = 0; i <= loop.halves; i++)
		lane_destroy(&r->lane[i]);
	CU(cuMemFree, r->acts);
	CU(cuMemFreeHost, r->got);
	CU(cuEventDestroy, r->start);
	CU(cuEventDestroy, r->end);
	free(r->want);
}

static void report(const struct run *runs)
{
	const uint64_t third = (loop.iters + 2) / 3;
	size_t size = 0;
	float most = 0;

	for (uint64_t it = 0; it < loop.iters && loop.threads > 1; it++) {
		uint64_t hash = E2E_HASH;

		for (uint64_t i = 0; i < loop.threads; i++)
			hash = e2e_hash(hash, &runs[i].digest[it],
				sizeof(hash));
		printf("%llu: %016llx\n", (unsigned long long)it,
			(unsigned long long)hash);
	}
	for (uint64_t i = 0; i < loop.threads; i++) {
		float ms;

		CU(cuEventElapsedTime, &ms, runs[i].start, runs[i].end);
		if (ms > most)
			most = ms;
		for (uint64_t m = 0; m < loop.models; m++)
			size += loop_model_size(runs[i].model[m]);
	}
	printf("weights_bytes: %zu\n", size);
	printf("ms_per_iter: %.4f\n", most / third);
}

static void check_options(void)
{
	uint64_t used = loop.tensors + loop.tied + loop.stacked + !!loop.grow +
		(loop.experts ? LOOP_EXPERTS : 0);

	if (!loop.layers || loop.layers > LOOP_MAX_LAYERS || !loop.tensors ||
	    used > LOOP_MAX_TENSORS || (loop.sizes && loop.tensors > 4))
		E2E_FAIL("up to %d layers of up to %d tensors in all",
			LOOP_MAX_LAYERS, LOOP_MAX_TENSORS);
	if (loop.bytes < 16 || loop.bytes % 16 || loop.grow % 16 ||
	    loop.alloc_bytes < 16 || loop.alloc_bytes % 16)
		E2E_FAIL("bytes are multiples of 16");
	if (!loop.streams || loop.streams > MAX_STREAMS || !loop.threads ||
	    loop.threads > MAX_THREADS || !loop.models ||
	    loop.models > LOOP_MAX_MODELS || !loop.work || !loop.iters ||
	    loop.iters > MAX_ITERS)
		E2E_FAIL("up to %d streams, %d threads, %d models, %d iters",
			MAX_STREAMS, MAX_THREADS, LOOP_MAX_MODELS, MAX_ITERS);
	/* The host follows a stacked tensor's parts, not its updates. */
	if ((loop.train && (loop.stacked || loop.tied)) && loop.halves)
		E2E_FAIL("halves that share weights cannot change them");
	if (loop.train && loop.stacked)
		E2E_FAIL("stacked experts are not trained");
	if (loop.beside > MAX_BESIDE)
		E2E_FAIL("up to %d tensors beside", MAX_BESIDE);
	if (loop.free && loop.packed)
		E2E_FAIL("no part of a packed buffer can be freed");
}

static void open_away(CUdevice dev)
{
	CUlibrary lib;

	CU(cuLibraryLoadData, &lib, loop_ptx, NULL, NULL, 0, NULL, NULL, 0);
	for (int k = 0; k < LOOP_KERNELS; k++)
		CU(cuLibraryGetKernel, (CUkernel *)&kernel[k], lib,
			loop_kernels[k]);
	CU(cuCtxCreate_v2, &away, 0, dev);
	CU(cuCtxSetCurrent, ctx);
}

static struct beside {
	CUcontext ctx;
	CUdeviceptr data[MAX_BESIDE], x;
} beside;

/* Does not go on: what is learnt of that device stays unfinished. */
static void open_beside(void)
{
	uint32_t words = loop.bytes / 4, me = 0, work = 1;
	CUdeviceptr parts;
	CUfunction mix;
	CUdevice dev;

	CU(cuDeviceGet, &dev, 1);
	CU(cuDevicePrimaryCtxRetain, &beside.ctx, dev);
	CU(cuCtxSetCurrent, beside.ctx);
	mix = e2e_kernel(e2e_module(loop_ptx), loop_kernels[LOOP_MIX]);
	beside.x = e2e_alloc((LOOP_STATE + LOOP_MAX_PARTS) * 4);
	parts = beside.x + LOOP_STATE * 4;
	CU(cuMemsetD32, beside.x, 0, LOOP_STATE + LOOP_MAX_PARTS);
	for (uint64_t i = 0; i < loop.beside; i++) {
		beside.data[i] = e2e_alloc(loop.bytes);
		CU(cuMemsetD32, beside.data[i], 1, loop.bytes / 4);
	}
	for (uint64_t i = 0; i < loop.beside; i++) {
		void *args[] = { &parts, &beside.data[i], &beside.x, &me,
			&words, &work };

		CU(cuLaunchKernel, mix, loop_mix_blocks(LOOP_MIX), 1, 1,
			LOOP_THREADS, 1, 1, 0, NULL, args, NULL);
	}
	CU(cuCtxSynchronize);
	CU(cuCtxSetCurrent, ctx);
}

static void close_beside(void)
{
	CU(cuCtxSetCurrent, beside.ctx);
	for (uint64_t i = 0; i < loop.beside; i++)
		CU(cuMemFree, beside.data[i]);
	CU(cuMemFree, beside.x);
	CU(cuCtxSetCurrent, ctx);
	CU(cuDevicePrimaryCtxRelease, 1);
}

int main(int argc, char **argv)
{
	static struct run runs[MAX_THREADS];
	const struct e2e_option opts[] = {
		{ "layers", &loop.layers, 0 }, { "tensors", &loop.tensors, 0 },
		{ "bytes", &loop.bytes, 0 }, { "iters", &loop.iters, 0 },
		{ "work", &loop.work, 0 }, { "seed", &loop.seed, 0 },
		{ "acts", &loop.acts, 0 }, { "sizes", &loop.sizes, 0 },
		{ "packed", &loop.packed, 1 }, { "tied", &loop.tied, 1 },
		{ "experts", &loop.experts, 1 },
		{ "stacked", &loop.stacked, 1 }, { "grow", &loop.grow, 0 },
		{ "models", &loop.models, 0 }, { "streams", &loop.streams, 0 },
		{ "halves", &loop.halves, 1 }, { "threads", &loop.threads, 0 },
		{ "phases", &loop.phases, 0 }, { "train", &loop.train, 1 },
		{ "backward", &loop.backward, 1 }, { "order", &loop.order, 0 },
		{ "shuffle", &loop.shuffle, 1 }, { "free", &loop.free, 0 },
		{ "alloc", &loop.alloc, 0 },
		{ "alloc-bytes", &loop.alloc_bytes, 0 },
		{ "spare", &loop.spare, 0 }, { "beside", &loop.beside, 0 },
		{ "batch", &loop.batch, 0 }, { "move", &loop.move, 0 },
		{ "handover", &loop.handover, 0 }, { "away", &loop.away, 0 },
		{ "poll", &loop.poll, 1 },
	};
	CUdevice dev;
	CUmodule mod;

	loop = (struct loop_options){
		.layers = 8, .tensors = 2, .bytes = 2 << 20, .iters = 12,
		.work = 1, .seed = 1, .acts = 2 << 20, .models = 1,
		.streams = 1, .threads = 1, .alloc_bytes = 12 << 20,
	};
	e2e_options(argc, argv, opts, E2E_LEN(opts));
	check_options();
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	mod = e2e_module(loop_ptx);
	for (int k = 0; k < LOOP_KERNELS; k++)
		kernel[k] = e2e_kernel(mod, loop_kernels[k]);
	if (loop.away)
		open_away(dev);
	if (loop.beside)
		open_beside();
	if (loop.spare && loop.threads == 1)
		spare = e2e_alloc(loop.alloc_bytes);
	for (uint64_t i = 0; i < loop.threads; i++)
		run_create(&runs[i], loop.seed + i * 100);
	for (uint64_t i = 1; i < loop.threads; i++)
		if (pthread_create(&runs[i].thread, NULL, work, &runs[i]))
			E2E_FAIL("no thread %llu", (unsigned long long)i);
	work(&runs[0]);
	for (uint64_t i = 1; i < loop.threads; i++)
		pthread_join(runs[i].thread, NULL);
	report(runs);
	for (uint64_t i = 0; i < loop.threads; i++)
		run_destroy(&runs[i]);
	CU(cuModuleUnload, mod);
	if (loop.beside)
		close_beside();
	if (loop.away)
		CU(cuCtxDestroy, away);
	e2e_close(dev);
	return 0;
}

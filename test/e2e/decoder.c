/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small transformer decoder as a plain CUDA driver-API program: seeded f32
 * weights, one allocation and one upload for each tensor, then greedy tokens
 * from a fixed prompt.  It prints the tokens and a checksum over every step's
 * logits, so two runs can be compared bit for bit.  Kernels: decoder_ptx.h.
 */
#include <stdbool.h>

#include "test/e2e/decoder_ptx.h"
#include "test/e2e/e2e_util.h"

enum {
	DIM = 512,		/* of the residual stream */
	HEADS = 16,
	HEAD_DIM = 64,		/* fixed in the kernels */
	WIDTH = HEADS * HEAD_DIM,
	HIDDEN = 2048,
	VOCAB = 1024,
	POSITIONS = 64,		/* of the KV cache */
	MAX_LAYERS = 64,
	LAYERS = 6,
	TOKENS = 24,
	SEED = 1,
};

static const unsigned int prompt[] = { 17, 401, 929, 256 };

/* ---- kernels ------------------------------------------------------------- */

enum kernel {
	EMBED,
	RMSNORM,
	MATVEC,
	ROPE,
	ATTENTION,
	GATE,
	ADD,
	ARGMAX,
	NR_KERNELS,
};

static const char *const kernel_names[NR_KERNELS] = {
	"embed", "rmsnorm", "matvec", "rope", "attention", "gate", "add",
	"argmax",
};

/* ---- the model ----------------------------------------------------------- */

struct tensor {
	CUdeviceptr data;
	size_t size;
};

struct layer {
	struct tensor att_norm, wq, wk, wv, wo;
	struct tensor mlp_norm, gate, up, down;
};

struct model {
	CUdevice dev;
	CUmodule mod;
	CUfunction kernel[NR_KERNELS];
	CUstream stream;
	unsigned int nr_layers;
	struct tensor embedding, last_norm, head;
	struct layer layer[MAX_LAYERS];
	/* Not weights. */
	struct tensor cache;	/* [layer][k, v][POSITIONS][WIDTH] */
	struct tensor x, norm, q, mixed, out, wide, up, logits, token;
	/* Pinned host memory for what a step returns. */
	float *host_logits;
	unsigned int *host_token;
	size_t weights_size, other_size;
};

static void tensor_create(struct tensor *t, size_t size, size_t *total)
{
	t->data = e2e_alloc(size);
	t->size = size;
	*total += size;
}

static void tensor_destroy(struct tensor *t)
{
	CU(cuMemFree, t->data);
}

/* Uniform in [center - reach, center + reach), then uploaded. */
static void tensor_fill(struct tensor *t, float *host, uint64_t *seed,
	float center, float reach)
{
	const float unit = reach / 2147483648.0f;
	uint64_t state = e2e_random(seed);

	for (size_t i = 0; i < t->size / sizeof(float); i++)
		host[i] = center + unit * (int32_t)(e2e_random(&state) >> 32);
	CU(cuMemcpyHtoD, t->data, host, t->size);
}

/*
 * A matrix whose outputs have `gain` times the deviation of its inputs: a
 * uniform variable's is reach / sqrt(3), a sum of `cols` products adds up to
 * sqrt(cols) of them.
 */
static void matrix_create(struct model *m, struct tensor *t, float *host,
	uint64_t *seed, size_t rows, size_t cols, float gain)
{
	tensor_create(t, rows * cols * sizeof(float), &m->weights_size);
	tensor_fill(t, host, seed, 0, gain * __builtin_sqrtf(3.0f / cols));
}

static void norm_create(struct model *m, struct tensor *t, float *host,
	uint64_t *seed)
{
	tensor_create(t, DIM * sizeof(float), &m->weights_size);
	tensor_fill(t, host, seed, 1, 0.25f);
}

/*
 * The gains keep attention sharp and every layer's share of the residual
 * stream large, so that a token depends on all tokens before it and on every
 * matrix.
 */
static void layer_create(struct model *m, struct layer *l, float *host,
	uint64_t *seed)
{
	norm_create(m, &l->att_norm, host, seed);
	matrix_create(m, &l->wq, host, seed, WIDTH, DIM, 3);
	matrix_create(m, &l->wk, host, seed, WIDTH, DIM, 3);
	matrix_create(m, &l->wv, host, seed, WIDTH, DIM, 2);
	matrix_create(m, &l->wo, host, seed, DIM, WIDTH, 1.5f);
	norm_create(m, &l->mlp_norm, host, seed);
	matrix_create(m, &l->gate, host, seed, HIDDEN, DIM, 2);
	matrix_create(m, &l->up, host, seed, HIDDEN, DIM, 2);
	matrix_create(m, &l->down, host, seed, DIM, HIDDEN, 1.5f);
}

static void layer_destroy(struct layer *l)
{
	tensor_destroy(&l->att_norm);
	tensor_destroy(&l->wq);
	tensor_destroy(&l->wk);
	tensor_destroy(&l->wv);
	tensor_destroy(&l->wo);
	tensor_destroy(&l->mlp_norm);
	tensor_destroy(&l->gate);
	tensor_destroy(&l->up);
	tensor_destroy(&l->down);
}

static void buffer_create(struct model *m, struct tensor *t, size_t len)
{
	tensor_create(t, len * sizeof(float), &m->other_size);
}

static void model_create_buffers(struct model *m)
{
	buffer_create(m, &m->cache,
		(size_t)m->nr_layers * 2 * POSITIONS * WIDTH);
	buffer_create(m, &m->x, DIM);
	buffer_create(m, &m->norm, DIM);
	buffer_create(m, &m->q, WIDTH);
	buffer_create(m, &m->mixed, WIDTH);
	buffer_create(m, &m->out, DIM);
	buffer_create(m, &m->wide, HIDDEN);
	buffer_create(m, &m->up, HIDDEN);
	buffer_create(m, &m->logits, VOCAB);
	buffer_create(m, &m->token, 1);
	CU(cuMemAllocHost, (void **)&m->host_logits, VOCAB * sizeof(float));
	CU(cuMemAllocHost, (void **)&m->host_token, sizeof(*m->host_token));
}

static void model_create(struct model *m, unsigned int nr_layers, uint64_t seed)
{
	float *host = e2e_host(sizeof(float) * HIDDEN * DIM);

	m->dev = e2e_open();
	m->nr_layers = nr_layers;
	m->mod = e2e_module(decoder_ptx);
	for (int k = 0; k < NR_KERNELS; k++)
		m->kernel[k] = e2e_kernel(m->mod, kernel_names[k]);
	CU(cuStreamCreate, &m->stream, CU_STREAM_NON_BLOCKING);

	matrix_create(m, &m->embedding, host, &seed, VOCAB, DIM, 22);
	for (unsigned int i = 0; i < nr_layers; i++)
		layer_create(m, &m->layer[i], host, &seed);
	norm_create(m, &m->last_norm, host, &seed);
	matrix_create(m, &m->head, host, &seed, VOCAB, DIM, 1);
	free(host);
	model_create_buffers(m);
	/* The uploads went through another stream. */
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
}

static void model_destroy(struct model *m)
{
	tensor_destroy(&m->embedding);
	for (unsigned int i = 0; i < m->nr_layers; i++)
		layer_destroy(&m->layer[i]);
	tensor_destroy(&m->last_norm);
	tensor_destroy(&m->head);
	tensor_destroy(&m->cache);
	tensor_destroy(&m->x);
	tensor_destroy(&m->norm);
	tensor_destroy(&m->q);
	tensor_destroy(&m->mixed);
	tensor_destroy(&m->out);
	tensor_destroy(&m->wide);
	tensor_destroy(&m->up);
	tensor_destroy(&m->logits);
	tensor_destroy(&m->token);
	CU(cuMemFreeHost, m->host_logits);
	CU(cuMemFreeHost, m->host_token);
	CU(cuStreamDestroy, m->stream);
	CU(cuModuleUnload, m->mod);
	e2e_close(m->dev);
}

/* ---- one token ----------------------------------------------------------- */

static void launch(struct model *m, enum kernel k, unsigned int blocks,
	unsigned int threads, void **args)
{
	CU(cuLaunchKernel, m->kernel[k], blocks, 1, 1, threads, 1, 1, 0,
		m->stream, args, NULL);
}

static void rmsnorm(struct model *m, CUdeviceptr y, CUdeviceptr x,
	CUdeviceptr w)
{
	unsigned int dim = DIM;
	void *args[] = { &y, &x, &w, &dim };

	launch(m, RMSNORM, 1, 256, args);
}

static void matvec(struct model *m, CUdeviceptr y, CUdeviceptr w,
	CUdeviceptr x, unsigned int rows, unsigned int cols)
{
	void *args[] = { &y, &w, &x, &rows, &cols };

	/* Eight rows a warp, four warps a block. */
	launch(m, MATVEC, (rows + 31) / 32, 128, args);
}

/* gate or add: a = a op b, size elements. */
static void elements(struct model *m, enum kernel k, CUdeviceptr a,
	CUdeviceptr b, unsigned int size)
{
	void *args[] = { &a, &b, &size };

	launch(m, k, (size + 255) / 256, 256, args);
}

static void attend(struct model *m, unsigned int nr, unsigned int pos)
{
	const size_t row = WIDTH * sizeof(float);
	struct layer *l = &m->layer[nr];
	CUdeviceptr k = m->cache.data + nr * 2 * POSITIONS * row;
	CUdeviceptr v = k + POSITIONS * row;
	CUdeviceptr k_now = k + pos * row, v_now = v + pos * row;
	unsigned int positions = pos + 1, width = WIDTH;
	void *rope_args[] = { &m->q.data, &k_now, &pos };
	void *att_args[] = {
		&m->mixed.data, &m->q.data, &k, &v, &positions, &width,
	};

	rmsnorm(m, m->norm.data, m->x.data, l->att_norm.data);
	matvec(m, m->q.data, l->wq.data, m->norm.data, WIDTH, DIM);
	matvec(m, k_now, l->wk.data, m->norm.data, WIDTH, DIM);
	matvec(m, v_now, l->wv.data, m->norm.data, WIDTH, DIM);
	launch(m, ROPE, 2, WIDTH / 2, rope_args);
	launch(m, ATTENTION, HEADS, 32, att_args);
	matvec(m, m->out.data, l->wo.data, m->mixed.data, DIM, WIDTH);
	elements(m, ADD, m->x.data, m->out.data, DIM);
}

static void feed_forward(struct model *m, struct layer *l)
{
	rmsnorm(m, m->norm.data, m->x.data, l->mlp_norm.data);
	matvec(m, m->wide.data, l->gate.data, m->norm.data, HIDDEN, DIM);
	matvec(m, m->up.data, l->up.data, m->norm.data, HIDDEN, DIM);
	elements(m, GATE, m->wide.data, m->up.data, HIDDEN);
	matvec(m, m->out.data, l->down.data, m->wide.data, DIM, HIDDEN);
	elements(m, ADD, m->x.data, m->out.data, DIM);
}

/* Queues one token at position `pos`; nothing waits. */
static void feed(struct model *m, unsigned int token, unsigned int pos)
{
	unsigned int dim = DIM;
	void *args[] = { &m->x.data, &m->embedding.data, &token, &dim };

	launch(m, EMBED, DIM / 128, 128, args);
	for (unsigned int i = 0; i < m->nr_layers; i++) {
		attend(m, i, pos);
		feed_forward(m, &m->layer[i]);
	}
}

/* The token that follows the ones fed so far; waits for it. */
static unsigned int next_token(struct model *m, uint64_t *hash)
{
	unsigned int size = VOCAB;
	void *args[] = { &m->token.data, &m->logits.data, &size };

	rmsnorm(m, m->norm.data, m->x.data, m->last_norm.data);
	matvec(m, m->logits.data, m->head.data, m->norm.data, VOCAB, DIM);
	launch(m, ARGMAX, 1, 256, args);
	CU(cuMemcpyDtoHAsync, m->host_logits, m->logits.data, m->logits.size,
		m->stream);
	CU(cuMemcpyDtoHAsync, m->host_token, m->token.data, m->token.size,
		m->stream);
	CU(cuStreamSynchronize, m->stream);
	*hash = e2e_hash(*hash, m->host_logits, m->logits.size);
	return *m->host_token;
}

/* ---- the run ------------------------------------------------------------- */

struct result {
	unsigned int token[POSITIONS];
	uint64_t hash;
	float first_ms;		/* prompt and first token */
	float rest_ms;		/* all tokens after it */
};

static void generate(struct model *m, unsigned int nr, struct result *r)
{
	const unsigned int nr_prompt = E2E_LEN(prompt);
	CUevent start, first, end;

	CU(cuEventCreate, &start, CU_EVENT_DEFAULT);
	CU(cuEventCreate, &first, CU_EVENT_DEFAULT);
	CU(cuEventCreate, &end, CU_EVENT_DEFAULT);
	r->hash = E2E_HASH;
	CU(cuEventRecord, start, m->stream);
	for (unsigned int i = 0; i < nr_prompt; i++)
		feed(m, prompt[i], i);
	r->token[0] = next_token(m, &r->hash);
	CU(cuEventRecord, first, m->stream);
	for (unsigned int i = 1; i < nr; i++) {
		feed(m, r->token[i - 1], nr_prompt + i - 1);
		r->token[i] = next_token(m, &r->hash);
	}
	CU(cuEventRecord, end, m->stream);
	CU(cuEventSynchronize, end);
	CU(cuEventElapsedTime, &r->first_ms, start, first);
	CU(cuEventElapsedTime, &r->rest_ms, first, end);
	CU(cuEventDestroy, start);
	CU(cuEventDestroy, first);
	CU(cuEventDestroy, end);
}

static unsigned int count_distinct(const unsigned int *token, unsigned int nr)
{
	bool seen[VOCAB] = { false };
	unsigned int distinct = 0;

	for (unsigned int i = 0; i < nr; i++) {
		if (token[i] >= VOCAB)
			E2E_FAIL("token %u is out of range", token[i]);
		distinct += !seen[token[i]];
		seen[token[i]] = true;
	}
	return distinct;
}

static void report(const struct model *m, const struct result *r,
	unsigned int nr, bool csv)
{
	unsigned int distinct = count_distinct(r->token, nr);
	double ms = nr > 1 ? r->rest_ms / (nr - 1) : r->first_ms;
	size_t gpu_size;

	CU(cuDeviceTotalMem, &gpu_size, m->dev);
	if (csv) {
		printf("tokens,distinct,logits,weights_bytes,other_bytes,"
			"gpu_bytes,first_ms,rest_ms,ms_per_token\n");
		printf("%u,%u,%016llx,%zu,%zu,%zu,%.4f,%.4f,%.4f\n", nr,
			distinct, (unsigned long long)r->hash, m->weights_size,
			m->other_size, gpu_size, r->first_ms, r->rest_ms, ms);
		return;
	}
	printf("distinct: %u\n", distinct);
	printf("weights_bytes: %zu\n", m->weights_size);
	printf("other_bytes: %zu\n", m->other_size);
	printf("gpu_bytes: %zu\n", gpu_size);
	printf("first_ms: %.4f\n", r->first_ms);
	printf("rest_ms: %.4f\n", r->rest_ms);
	printf("ms_per_token: %.4f\n", ms);
}

int main(int argc, char **argv)
{
	static struct model m;
	static struct result r;
	uint64_t tokens = TOKENS, layers = LAYERS, seed = SEED;
	uint64_t quiet = 0, csv = 0;
	const struct e2e_option opts[] = {
		{ "tokens", &tokens, 0 }, { "layers", &layers, 0 },
		{ "seed", &seed, 0 }, { "quiet", &quiet, 1 },
		{ "csv", &csv, 1 },
	};

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	/* The last token is not fed. */
	if (!tokens || tokens > POSITIONS + 1 - E2E_LEN(prompt) || !layers ||
	    layers > MAX_LAYERS) {
		fprintf(stderr, "%s: 1 to %zu tokens, 1 to %d layers\n",
			argv[0], POSITIONS + 1 - E2E_LEN(prompt), MAX_LAYERS);
		return 2;
	}

	model_create(&m, layers, seed);
	generate(&m, tokens, &r);
	if (!csv) {
		printf("tokens:");
		for (unsigned int i = 0; i < tokens; i++)
			printf(" %u", r.token[i]);
		printf("\nlogits: %016llx\n", (unsigned long long)r.hash);
	}
	if (!quiet || csv)
		report(&m, &r, tokens, csv);
	model_destroy(&m);
	return 0;
}

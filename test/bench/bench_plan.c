/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the strategy `optimal` takes: the worst budget of the 500-layer case
 * and of the case with most tensors, the former without a budget, and a model of
 * 20,000 layers; and the worst case of the strategy `adaptive`.  The clock is
 * the thread's own, so that other work on the machine counts little.  run.sh
 * collects the lines.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test/unit/plan_cases.h"

#define RUNS 7
#define MANY 20000u

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double once(const struct plan_input *in)
{
	static const struct plan_params p = {
		.chunk_bytes = 2 << 20,
		.margin = 0.05,
		.wrap = true,
		.seed = 42,
	};
	struct plan_arena *arena = plan_arena_create();
	struct strategy_result r = { 0 };
	double begin = now_ms();
	enum plan_status status = plan_optimal(in, &p, arena, &r);
	double ms = now_ms() - begin;

	if (status != PLAN_OK && status != PLAN_INFEASIBLE) {
		fprintf(stderr, "%s\n", plan_status_message(status));
		exit(1);
	}
	plan_arena_destroy(arena);
	return ms;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of the slowest budget's runs. */
static void row(const char *name, struct plan_input *in,
	const uint64_t *budgets, uint32_t nr, int runs, const char *limit)
{
	double worst = 0, spread = 0;

	for (uint32_t k = 0; k < nr; k++) {
		double ms[RUNS];

		in->max_gpu_mem_bytes = budgets[k];
		for (int i = 0; i < runs; i++)
			ms[i] = once(in);
		qsort(ms, (size_t)runs, sizeof(*ms), ascending);
		if (ms[runs / 2] > worst) {
			worst = ms[runs / 2];
			spread = (ms[runs - 1] - ms[0]) / worst;
		}
	}
	printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"ms\","
		"\"better\":\"lower\",\"limit\":%s,\"spread\":%.3f}\n",
		name, worst, limit, spread);
}

static void case_row(const char *name, const char *file, const char *limit)
{
	struct plan_case *c = plan_case_load(file);
	struct plan_input in = { c->layers, c->nr, &c->memory_stats, 0 };
	uint32_t nr = 0;

	/* The last one is no budget, a row of its own. */
	while (nr < c->nr_budgets && c->budgets[nr] != PLAN_NO_LIMIT)
		nr++;
	row(name, &in, c->budgets, nr, RUNS, limit);
	plan_case_free(c);
}

/* Latency mode: as little memory as costs no time. */
static void latency_row(const char *name, const char *file, const char *limit)
{
	struct plan_case *c = plan_case_load(file);
	struct plan_input in = { c->layers, c->nr, &c->memory_stats, 0 };
	uint64_t none = PLAN_NO_LIMIT;

	row(name, &in, &none, 1, RUNS, limit);
	plan_case_free(c);
}

static void many_layers(void)
{
	struct layer_statistics *l = calloc(MANY, sizeof(*l));
	struct tensor_statistics *t = calloc(MANY, sizeof(*t));
	struct transfer_time points[2] = { { 1 << 20, 0.052 },
		{ 1 << 30, 42.96 } };
	struct memory_stats stats = { points, 2 };
	struct plan_input in = { l, MANY, &stats, 0 };
	uint64_t budgets[2], sum = 0;

	if (!l || !t)
		exit(1);
	for (uint32_t i = 0; i < MANY; i++) {
		t[i].id = i;
		t[i].size_bytes = (24 + i * 7 % 17) * 1048576ull;
		l[i].tensors = &t[i];
		l[i].nr = 1;
		l[i].duration_ms = 1 + 0.1 * (i % 5);
		sum += t[i].size_bytes;
	}
	budgets[0] = sum / 2;
	budgets[1] = sum / 8;
	row("plan_optimal_20k_layers_ms", &in, budgets, 2, 1, "null");
	free(l);
	free(t);
}

static double adaptive_once(const struct plan_input *in)
{
	const struct plan_strategy *s = plan_strategy_find("adaptive");
	struct plan_arena *arena = plan_arena_create();
	struct strategy_result r;
	double begin = now_ms(), ms;

	plan_compute(s, in, NULL, arena, &r);
	ms = now_ms() - begin;
	plan_arena_destroy(arena);
	return ms;
}

/* Every case under every budget; the slowest of them again. */
static void adaptive_worst(void)
{
	static const char *const cases[] = {
		"deep500", "embed_heavy", "flux1_dev", "gpt2xl_tied",
		"llama3_70b_prefill2k", "llama3_8b_decode",
		"llama3_8b_prefill4k", "one_layer", "qwen15_moe_a2p7b",
		"sdxl_unet", "two_layer", "uneven_seed7", "vit_small", "wan14b",
	};
	double ms[3], worst = 0, spread = 0;

	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct plan_case *c = plan_case_load(cases[k]);
		struct plan_input in = { c->layers, c->nr, &c->memory_stats,
			0 };

		for (uint32_t b = 0; b < c->nr_budgets; b++) {
			in.max_gpu_mem_bytes = c->budgets[b];
			ms[0] = adaptive_once(&in);
			if (ms[0] <= worst)
				continue;
			ms[1] = adaptive_once(&in);
			ms[2] = adaptive_once(&in);
			qsort(ms, 3, sizeof(*ms), ascending);
			if (ms[1] <= worst)
				continue;
			worst = ms[1];
			spread = (ms[2] - ms[0]) / worst;
		}
		plan_case_free(c);
	}
	printf("{\"name\":\"plan_adaptive_worst_ms\",\"value\":%.2f,"
		"\"unit\":\"ms\",\"better\":\"lower\",\"limit\":1000,"
		"\"spread\":%.3f}\n", worst, spread);
}

int main(void)
{
	case_row("plan_optimal_deep500_ms", "deep500", "50");
	latency_row("plan_optimal_latency_deep500_ms", "deep500", "50");
	case_row("plan_optimal_moe_ms", "qwen15_moe_a2p7b", "200");
	adaptive_worst();
	many_layers();
	return 0;
}

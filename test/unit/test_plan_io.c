/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles and plans as files: what is refused and where, what is kept, and that
 * a plan of every strategy is the same after a round trip.
 */
#include "planner/plan_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/timeline.h"
#include "test/unit/unit.h"

static struct plan_arena *arena;
static char warned[4096];

static void setup(void)
{
	arena = plan_arena_create();
	ck_assert_ptr_nonnull(arena);
	warned[0] = '\0';
}

static void teardown(void)
{
	plan_arena_destroy(arena);
}

static void warn(void *arg, const char *text)
{
	size_t n = strlen(warned);

	snprintf(warned + n, sizeof(warned) - n, "%s\n", text);
}

static int parse(const char *text, struct plan_io *io, struct plan_profile *p)
{
	*io = (struct plan_io){ .file = "f", .warn = warn };
	return plan_io_parse_profile(io, text, strlen(text), arena, p);
}

static void refused(const char *text, const char *error)
{
	struct plan_profile p;
	struct plan_io io;

	ck_assert_int_eq(parse(text, &io, &p), -EINVAL);
	if (strcmp(io.error, error))
		ck_abort_msg("%s\n gives '%s'\n not   '%s'", text, io.error,
			error);
}

#define LAYERS(x) "{\"layers\": [\n{\"label\": \"a\", " x "}]}"
#define TENSOR(x) LAYERS("\"duration_ms\": 1, \"tensors\": [{" x "}]")

START_TEST(test_numbers)
{
	refused(LAYERS("\"duration_ms\": -1, \"tensors\": []"),
		"f:2:31: \"duration_ms\" must not be negative");
	refused(LAYERS("\"duration_ms\": NaN, \"tensors\": []"),
		"f:2:31: \"duration_ms\" is not a number (NaN)");
	refused(LAYERS("\"duration_ms\": 1e400, \"tensors\": []"),
		"f:2:31: \"duration_ms\" is too large for a number");
	refused(LAYERS("\"duration_ms\": Infinity, \"tensors\": []"),
		"f:2:31: \"duration_ms\" is too large for a number");
	refused(LAYERS("\"duration_ms\": \"1\", \"tensors\": []"),
		"f:2:31: \"duration_ms\" must be a number");
	refused(LAYERS("\"tensors\": []"),
		"f:2:1: \"duration_ms\" is missing here");
	refused(TENSOR("\"bytes\": -3"),
		"f:2:56: \"bytes\" must not be negative");
	refused(TENSOR("\"bytes\": 1.5"),
		"f:2:56: \"bytes\" must be a whole number");
	refused(TENSOR("\"bytes\": 9223372036854775808"), "f:2:56: \"bytes\" "
		"is too large; at most 9223372036854775807");
	refused(TENSOR("\"bytes\": 99999999999999999999999999"), "f:2:56: "
		"\"bytes\" is too large; at most 9223372036854775807");
	refused(TENSOR("\"bytes\": 1e19"), "f:2:56: \"bytes\" must be smaller");
	refused(TENSOR("\"bytes\": null"), "f:2:46: \"bytes\" is missing here");
	refused(TENSOR("\"bytes\": [1]"),
		"f:2:56: \"bytes\" must be a whole number");
	refused("{\"layers\": [{\"label\": \"a\", \"duration_ms\": 1, "
		"\"tensors\": []}],\n \"budgets\": [1, 0]}",
		"f:2:17: a budget must be above 0");
	refused("{\"layers\": [{\"label\": \"a\", \"duration_ms\": 1, "
		"\"tensors\": []}],\n\"memory_stats\": [{\"bytes\": 0, "
		"\"ms\": 1}]}", "f:2:18: bytes and ms of a copy must be above "
		"0");
}
END_TEST

/* Found by fuzzing: "-0" was written, and read back as 0. */
START_TEST(test_minus_zero)
{
	struct plan_profile p;
	struct plan_io io;
	char *out;

	ck_assert_int_eq(parse(LAYERS("\"duration_ms\": -0.0, \"tensors\": []"),
		&io, &p), 0);
	out = plan_io_print_profile(&p);
	ck_assert_ptr_nonnull(strstr(out, "\"duration_ms\": 0,"));
	free(out);
}
END_TEST

START_TEST(test_structure)
{
	refused("", "f:1:1: the file is empty");
	refused(" \n ", "f:1:1: the file is empty");
	refused("[]", "f:1:1: an object must stand here");
	refused("{}", "f:1:1: \"layers\" is missing here");
	refused("{\"layers\": []}", "f:1:12: there are no layers");
	refused("{\"layers\": [\n {\"label\": \"a\"", "f:2:15: the file ends in "
		"the middle");
	refused("{\"layers\": [\n {\"lab", "f:2:7: the file ends in the "
		"middle");
	refused("{\"layers\": [1]}",
		"f:1:13: entry 0 of this list must be an object");
	refused("{\"layers\": {}}", "f:1:12: \"layers\" must be a list");
	refused("{\"ballast_profile\": 2, \"layers\": []}", "f:1:21: profiles "
		"of version 2 are not known to this program, which reads "
		"version 1");
	refused("{\"ballast_plan\": 1}",
		"f:1:18: this is a plan, not a profile");
	refused("{\"name\": \"x\\u0000y\", \"layers\": []}",
		"f:1:10: \"name\" has a zero character");
}
END_TEST

START_TEST(test_twice)
{
	static const char labels[] = "{\"layers\": [\n"
		"{\"label\": \"a\", \"duration_ms\": 1, \"tensors\": []},\n"
		"{\"label\": \"b\", \"duration_ms\": 1, \"tensors\": []},\n"
		"{\"label\": \"a\", \"duration_ms\": 1, \"tensors\": []}]}";

	refused(labels, "f:4:11: two layers are called \"a\"");
	refused("{\"name\": \"x\",\n \"layers\": [],\n \"name\": \"y\"}",
		"f:3:2: the key \"name\" stands twice in one object");
	refused("{\"layers\": [{\"label\": \"a\",\n \"label\": \"a\"}]}",
		"f:2:2: the key \"label\" stands twice in one object");
	refused("{\"layers\": [], \"x\": {\"y\": 1, \"\\u0079\": 2}}",
		"f:1:21: a key stands twice in this object");
	refused(LAYERS("\"duration_ms\": 1, \"tensors\": [{\"id\": 1, "
		"\"bytes\": 2}, {\"id\": 1, \"bytes\": 2}]"), "f:1:12: layer "
		"a: a tensor stands there twice");
	refused(LAYERS("\"duration_ms\": 1, \"tensors\": [{\"id\": 1, "
		"\"bytes\": 2}, {\"bytes\": 2}]"), "f:2:69: either all tensors "
		"have an \"id\" or none");
}
END_TEST

/* Not one prefix of a good file is taken for a whole one. */
START_TEST(test_truncated)
{
	static const char text[] = "{\"name\": \"\xc3\xa4\\n\", \"layers\": "
		"[{\"label\": \"a\", \"duration_ms\": 1.25e0, \"tensors\": "
		"[{\"bytes\": 12, \"name\": \"t\"}]}], \"budgets\": [null, 5]}";
	struct plan_profile p;
	struct plan_io io;
	char *part;

	ck_assert_int_eq(parse(text, &io, &p), 0);
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		part = strndup(text, n);
		ck_assert_int_eq(parse(part, &io, &p), -EINVAL);
		ck_assert_msg(!strncmp(io.error, "f:1:", 4), "%s", io.error);
		free(part);
	}
}
END_TEST

START_TEST(test_unknown)
{
	static const char text[] = "{\"layers\": [\n{\"label\": \"a\", "
		"\"duration_ms\": 1, \"colour\": [1, 2.50],\n \"tensors\": "
		"[{\"bytes\": 2, \"dtype\": \"f16\"}]}],\n \"later\": {\"x\": "
		"null}, \"nothing\": null, \"phases\": [{\"iterations\": 3}]}";
	struct plan_profile p, q;
	struct plan_io io;
	char *out, *second;

	ck_assert_int_eq(parse(text, &io, &p), 0);
	ck_assert_str_eq(warned,
		"f:3:36: the key \"dtype\" is unknown and only kept\n"
		"f:2:44: the key \"colour\" is unknown and only kept\n"
		"f:4:11: the key \"later\" is unknown and only kept\n"
		"f:1:1: the key \"nothing\" is unknown and only kept\n");
	out = plan_io_print_profile(&p);
	ck_assert_ptr_nonnull(strstr(out, "\"dtype\": \"f16\""));
	ck_assert_ptr_nonnull(strstr(out, "\"colour\": [1, 2.50]"));
	ck_assert_ptr_nonnull(strstr(out, "\"later\": {\"x\": null}"));
	/* Known, though nothing is computed from it: kept, without a word. */
	ck_assert_ptr_nonnull(strstr(out, "\"phases\": [{\"iterations\": 3}]"));
	ck_assert_int_eq(parse(out, &io, &q), 0);
	second = plan_io_print_profile(&q);
	ck_assert_str_eq(out, second);
	free(out);
	free(second);
}
END_TEST

/* ---- the cases and plans of them ---- */

static const char *const cases[] = {
	"deep500", "embed_heavy", "flux1_dev", "gpt2xl_tied",
	"llama3_70b_prefill2k", "llama3_8b_decode", "llama3_8b_prefill4k",
	"one_layer", "qwen15_moe_a2p7b", "sdxl_unet", "two_layer",
	"uneven_seed7", "vit_small", "wan14b",
};

static void load(const char *name, struct plan_profile *p)
{
	struct plan_io io = { .warn = warn };
	char path[128], *text;
	size_t len;

	snprintf(path, sizeof(path), "test/data/cases/%s.json", name);
	io.file = path;
	ck_assert_int_eq(plan_io_load(&io, path, &text, &len), 0);
	ck_assert_msg(!plan_io_parse_profile(&io, text, len, arena, p), "%s",
		io.error);
	free(text);
}

START_TEST(test_cases)
{
	struct plan_profile p, q;
	struct plan_io io;
	char *out, *second;

	load(cases[_i], &p);
	ck_assert_str_eq(warned, "");
	ck_assert_str_eq(p.name, cases[_i]);
	ck_assert_uint_eq(p.nr_budgets, 5);
	ck_assert(p.budgets[4] == PLAN_NO_LIMIT);
	out = plan_io_print_profile(&p);
	ck_assert_int_eq(parse(out, &io, &q), 0);
	ck_assert_str_eq(warned, "");
	second = plan_io_print_profile(&q);
	ck_assert_str_eq(out, second);
	ck_assert(plan_io_fingerprint(p.layers, p.nr_layers) ==
		plan_io_fingerprint(q.layers, q.nr_layers));
	free(out);
	free(second);
}
END_TEST

START_TEST(test_tied)
{
	const struct layer_statistics *last;
	struct plan_profile p;
	bool found = false;

	load("gpt2xl_tied", &p);
	last = &p.layers[p.nr_layers - 1];
	for (uint32_t j = 0; j < last->nr; j++)
		found |= last->tensors[j].id == p.layers[0].tensors[0].id;
	ck_assert(found);
	ck_assert_uint_eq(plan_io_unique_bytes(&p), 3134320000);
}
END_TEST

START_TEST(test_link_only)
{
	struct plan_profile p;
	struct plan_io io;

	ck_assert_int_eq(parse("{\"link_gbps\": 25, \"layers\": [{\"label\": "
		"\"a\", \"duration_ms\": 1, \"tensors\": [{\"bytes\": "
		"1048576}]}]}", &io, &p), 0);
	/* 10 us and 1 MiB at 25 GB/s. */
	ck_assert_double_eq_tol(p.layers[0].tensors[0].load_time_ms,
		0.01 + 1.048576 / 25, 1e-9);
}
END_TEST

static void make_file(const struct plan_profile *p, const char *strategy,
	uint64_t budget, struct plan_file *f)
{
	const struct plan_strategy *s = plan_strategy_find(strategy);
	struct plan_input in = plan_io_input(p, budget);
	struct memory_transfer_interpolator *ip;

	memset(f, 0, sizeof(*f));
	f->profile = *p;
	f->strategy = strategy;
	f->params = s->defaults;
	f->budget = budget;
	f->fingerprint = plan_io_fingerprint(p->layers, p->nr_layers);
	if (plan_compute(s, &in, NULL, arena, &f->result))
		return;
	ck_assert_int_eq(plan_interpolator_of(&in, arena, &ip), PLAN_OK);
	ck_assert_int_eq(evaluate_strategy_result(&f->result, &in, strategy,
		ip, &f->score), PLAN_OK);
	f->period_ms = f->result.period_ms;
	f->bound_ms = f->result.bound_ms;
}

static double period_of(const struct plan_file *f)
{
	struct plan_input in = plan_io_input(&f->profile, f->budget);
	struct timeline_options opt = { .wrap = true };
	struct timeline_times times;
	struct timeline t;

	if (timeline_link_of(&in, arena, &opt.link) ||
	    timeline_of_result(&f->result, &in, &opt, arena, &t) ||
	    plan_timeline(&t, false, arena, &times))
		return -1;
	return times.period_ms;
}

static void round_trip(const struct plan_file *f, const char *what)
{
	struct plan_io io = { .file = "f", .warn = warn };
	struct plan_input in = plan_io_input(&f->profile, f->budget);
	struct strategy_score score;
	struct memory_transfer_interpolator *ip;
	char *out = plan_io_print_plan(f), *second;
	struct plan_file g, h;

	ck_assert_msg(!plan_io_parse_plan(&io, out, strlen(out), NULL, arena,
		&g), "%s: %s", what, io.error);
	second = plan_io_print_plan(&g);
	ck_assert_str_eq(out, second);
	free(second);
	/* The same for another profile of the same weights. */
	ck_assert_int_eq(plan_io_parse_plan(&io, out, strlen(out), &f->profile,
		arena, &h), 0);
	ck_assert_int_eq(plan_interpolator_of(&in, arena, &ip), PLAN_OK);
	ck_assert_int_eq(evaluate_strategy_result(&h.result, &in, f->strategy,
		ip, &score), PLAN_OK);
	ck_assert(score.peak_memory_bytes == f->score.peak_memory_bytes);
	ck_assert(score.estimated_overhead == f->score.estimated_overhead);
	ck_assert(score.is_valid == f->score.is_valid);
	ck_assert(period_of(f) == period_of(&g));
	ck_assert(period_of(f) == period_of(&h));
	ck_assert_str_eq(warned, "");
	free(out);
}

START_TEST(test_plans)
{
	static const char *const some[] = {
		"embed_heavy", "gpt2xl_tied", "sdxl_unet", "two_layer",
	};
	uint32_t nr = 0;

	for (uint32_t c = 0; c < sizeof(some) / sizeof(*some); c++) {
		struct plan_profile p;

		load(some[c], &p);
		for (uint32_t b = 0; b < p.nr_budgets; b++) {
			const char *name = plan_strategy(_i)->name;
			struct plan_file f;

			make_file(&p, name, p.budgets[b], &f);
			if (!f.score.name)
				continue;
			round_trip(&f, name);
			nr++;
		}
	}
	ck_assert_uint_gt(nr, 4);
}
END_TEST

/* The text with the n-th `from` replaced; the caller frees it. */
static char *edit(const char *text, const char *from, const char *to, int n)
{
	const char *at = text;
	char *out;

	for (at = strstr(at, from); at && n > 0; n--)
		at = strstr(at + 1, from);
	ck_assert_msg(at != NULL, "no %s", from);
	out = malloc(strlen(text) + strlen(to) + 1);
	sprintf(out, "%.*s%s%s", (int)(at - text), text, to,
		at + strlen(from));
	return out;
}

/* Where tensors lie is kept with the profile, also inside a plan. */
START_TEST(test_program)
{
	static const struct plan_part parts[] = {
		{ 0, 0, 3, 5000, 4096, 8192 }, { 7, 8192, 1, 9, 0, 4096 },
	};
	struct plan_io io = { .file = "f", .warn = warn };
	struct plan_profile p, q;
	struct plan_file f, g;
	char *text, *second, *wrong;

	load("two_layer", &p);
	p.program = (struct plan_program){ 4096, 12288, parts, 2 };
	text = plan_io_print_profile(&p);
	ck_assert_int_eq(plan_io_parse_profile(&io, text, strlen(text), arena,
		&q), 0);
	ck_assert_str_eq(warned, "");
	ck_assert_uint_eq(q.program.page_bytes, 4096);
	ck_assert_uint_eq(q.program.uploaded_bytes, 12288);
	ck_assert_uint_eq(q.program.nr_parts, 2);
	ck_assert_int_eq(memcmp(q.program.parts, parts, sizeof(parts)), 0);

	make_file(&q, "optimal", q.budgets[0], &f);
	second = plan_io_print_plan(&f);
	ck_assert_int_eq(plan_io_parse_plan(&io, second, strlen(second), NULL,
		arena, &g), 0);
	ck_assert_str_eq(warned, "");
	ck_assert_uint_eq(g.profile.program.nr_parts, 2);
	free(second);

	wrong = edit(text, "\"allocation\": 3", "\"allocation\": 0", 0);
	ck_assert_int_eq(plan_io_parse_profile(&io, wrong, strlen(wrong),
		arena, &q), -EINVAL);
	free(wrong);
	wrong = edit(text, "\"version\": 1", "\"version\": 2", 0);
	ck_assert_int_eq(plan_io_parse_profile(&io, wrong, strlen(wrong),
		arena, &q), 0);
	ck_assert_uint_eq(q.program.nr_parts, 0);
	ck_assert_ptr_nonnull(strstr(warned, "version 2"));
	free(wrong);
	free(text);
}
END_TEST

/* ---- plans that are wrong ---- */

static void plan_refused(const char *text, const char *from, const char *to,
	int n, const char *error)
{
	char *wrong = edit(text, from, to, n);
	struct plan_io io = { .file = "f" };
	struct plan_file f;

	ck_assert_msg(plan_io_parse_plan(&io, wrong, strlen(wrong), NULL, arena,
		&f) == -EINVAL, "%s -> %s", from, to);
	ck_assert_msg(strstr(io.error, error) && !strncmp(io.error, "f:", 2),
		"%s -> %s: %s", from, to, io.error);
	free(wrong);
}

START_TEST(test_wrong_plans)
{
	struct plan_profile p;
	struct plan_file f;
	char *text;

	load("vit_small", &p);
	make_file(&p, "optimal", p.budgets[1], &f);
	text = plan_io_print_plan(&f);
	plan_refused(text, "\"ballast_plan\": 1", "\"ballast_plan\": 9", 0,
		"version 9");
	plan_refused(text, "\"optimal\"", "\"best\"", 0, "no strategy");
	plan_refused(text, "\"fingerprint\": \"", "\"fingerprint\": \"0", 0,
		"16 hexadecimal digits");
	plan_refused(text, "\"label\": \"", "\"label\": \"x", 0,
		"the plan is for other layers");
	plan_refused(text, "\"slot\": \"", "\"slot\": \"x", 0, "no layer");
	plan_refused(text, "\"id\": ", "\"id\": 77", 0, "no tensor");
	plan_refused(text, "\"offset\": 0", "\"offset\": 99999999999", 0,
		"beyond the tensor");
	plan_refused(text, "\"length\": ", "\"length\": 9999999", 0,
		"beyond the tensor");
	plan_refused(text, "\"nr_chunks\": ", "\"nr_chunks\": 9999", 0,
		"multiple");
	plan_refused(text, "\"chunk_bytes\": ", "\"chunk_bytes\": 3", 1,
		"\"chunks\" is not");
	plan_refused(text, "\"position\": 0", "\"position\": 1", 0,
		"overlaps");
	plan_refused(text, "\"place\": 1", "\"place\": 2", 0,
		"each byte once");
	plan_refused(text, "\"pieces\": [", "\"pieces\": [{\"place\": 0, "
		"\"offset\": 0, \"length\": 1},", 0, "each byte once");
	plan_refused(text, "\"place\": 0, \"offset\": 0",
		"\"place\": 0, \"offset\": 1", 0, "not a part of a place");
	plan_refused(text, "\"streamed_bytes\": ", "\"streamed_bytes\": 1", 0,
		"sum of the places");
	plan_refused(text, "\"margin\": 0.05", "\"margin\": 2", 0, "margin");
	plan_refused(text, "\"is_valid\": true", "\"is_valid\": 1", 0,
		"true or false");
	free(text);

	make_file(&p, "knapsack", p.budgets[2], &f);
	text = plan_io_print_plan(&f);
	plan_refused(text, "\"block\": 1", "\"block\": 9", 0, "no block 9");
	plan_refused(text, "\"block_sizes\": [", "\"block_sizes\": [1, ", 0,
		"do not fit block 0");
	plan_refused(text, "\"bytes\": ", "\"bytes\": 1", 0, "add up to");
	free(text);
}
END_TEST

START_TEST(test_params)
{
	const struct plan_strategy *s =
		plan_strategy_find("global_tensor_selection_de");
	struct plan_params p = s->defaults;
	struct plan_io io = { 0 };
	char buf[64];

	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "seed", "7"), 0);
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "window", "gap_aware"),
		0);
	ck_assert_ptr_eq(p.window.compute, plan_window_gap_aware);
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "assignment",
		"optimized:0.25"), 0);
	ck_assert_str_eq(plan_io_param_text(PLAN_PARAM_assignment, &p, buf,
		sizeof(buf)), "optimized:0.25");
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "scale", "1e999"),
		-EINVAL);
	ck_assert_str_eq(io.error, "scale is '1e999', but must be a number");
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "n_blocks", "4x"),
		-EINVAL);
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "chunk_bytes", "2M"),
		-EINVAL);
	ck_assert_ptr_nonnull(strstr(io.error, "takes no parameter"));
	s = plan_strategy_find("optimal");
	ck_assert_int_eq(plan_io_set_param(&io, s, &p, "chunk_bytes", "2M"), 0);
	ck_assert_uint_eq(p.chunk_bytes, 2 << 20);
	/* What is printed is read back as the same, for all of all. */
	for (uint32_t i = 0; i < plan_nr_strategies(); i++)
		for (uint32_t k = 0; k < PLAN_NR_PARAMS; k++) {
			s = plan_strategy(i);
			p = s->defaults;
			if (!(s->params >> k & 1))
				continue;
			plan_io_param_text(k, &p, buf, sizeof(buf));
			ck_assert_msg(!plan_io_set_param(&io, s, &p,
				plan_param(k)->name, buf), "%s", io.error);
			ck_assert_int_eq(memcmp(&p, &s->defaults, sizeof(p)),
				0);
		}
}
END_TEST

START_TEST(test_files)
{
	struct plan_io io = { 0 };
	char folder[] = "/tmp/ballast-io.XXXXXX", path[64], *text;
	struct stat st;
	size_t len;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/plan", folder);
	ck_assert_int_eq(plan_io_load(&io, path, &text, &len), -ENOENT);
	ck_assert_ptr_nonnull(strstr(io.error, path));
	ck_assert_int_eq(plan_io_save(&io, path, "one\n"), 0);
	ck_assert_int_eq(chmod(path, 0600), 0);
	ck_assert_int_eq(plan_io_save(&io, path, "two\n"), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(plan_io_load(&io, path, &text, &len), 0);
	ck_assert_str_eq(text, "two\n");
	ck_assert_uint_eq(len, 4);
	free(text);
	ck_assert_int_eq(plan_io_load(&io, folder, &text, &len), -EISDIR);
	ck_assert_int_lt(plan_io_save(&io, folder, "x"), 0);
	ck_assert_int_eq(unlink(path), 0);
	/* Nothing else is left there. */
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan_io");
	TCase *t = tcase_create("plan_io");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_numbers);
	tcase_add_test(t, test_minus_zero);
	tcase_add_test(t, test_structure);
	tcase_add_test(t, test_twice);
	tcase_add_test(t, test_truncated);
	tcase_add_test(t, test_unknown);
	tcase_add_loop_test(t, test_cases, 0,
		sizeof(cases) / sizeof(*cases));
	tcase_add_test(t, test_tied);
	tcase_add_test(t, test_link_only);
	tcase_add_loop_test(t, test_plans, 0, (int)plan_nr_strategies());
	tcase_add_test(t, test_program);
	tcase_add_test(t, test_wrong_plans);
	tcase_add_test(t, test_params);
	tcase_add_test(t, test_files);
	suite_add_tcase(s, t);
	return unit_run(s);
}

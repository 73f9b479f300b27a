/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders to files and back; see phase_file.h.
 *
 * A plan of a file is checked twice: plan_io looks whether it agrees with its
 * profile, and here whether it can run in this much memory, since schedules
 * take pages and slots from it as they are.
 */
#include "shim/phase_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_io.h"
#include "shim/alloc.h"
#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/convert.h"
#include "shim/log.h"
#include "shim/outfile.h"
#include "shim/schedule.h"

/* ---- the strategy ---- */

const struct plan_strategy *file_strategy(struct plan_params *params,
	char *message)
{
	return plan_io_strategy(conf.strategy.text, params, message);
}

/* ---- describing ---- */

bool file_keys(void)
{
	return file_wants_profile() || conf.plan_in.text[0] != '\0' ||
		conf.plan_out.text[0] != '\0';
}

bool file_wants_profile(void)
{
	return conf.profile_out.text[0] != '\0';
}

static uint64_t uploaded_bytes(struct device *d)
{
	uint32_t end = alloc_end_page(d);
	uint64_t n = 0;

	for (uint32_t page = 0; page < end; page++)
		n += (device_word(d, page) & PAGE_TIER_MASK) != TIER_NONE &&
			__atomic_load_n(&d->pages[page].uploaded,
			__ATOMIC_RELAXED);
	return n << d->page_shift;
}

/* Where the tensors lie; without memory for it the files say nothing of it. */
static void describe_parts(struct plan_order *o, struct device *d)
{
	struct plan_part *parts;
	uint32_t max = 0, n = 0;

	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		max += o->profile.tensors[i].nr;
	parts = plan_arena_alloc(o->arena, max, sizeof(*parts));
	for (uint32_t i = 0; parts != NULL && i < o->profile.nr_tensors; i++) {
		const struct observe_tensor *t = &o->profile.tensors[i];

		for (uint32_t k = 0; k < t->nr; k++) {
			const struct alloc *a = alloc_at(d,
				device_address(d, t->first + k));
			struct plan_part *last = n > 0 ? &parts[n - 1] : NULL;

			if (a == NULL)
				return;
			if (last != NULL && last->id == i &&
			    last->allocation == a->serial) {
				last->bytes += d->page_size;
				continue;
			}
			parts[n++] = (struct plan_part){
				.id = i,
				.offset = (uint64_t)k << d->page_shift,
				.allocation = a->serial,
				.allocation_bytes = a->size,
				.at = (uint64_t)(t->first + k - a->first) <<
					d->page_shift,
				.bytes = d->page_size,
			};
		}
	}
	o->program = (struct plan_program){ d->page_size, uploaded_bytes(d),
		parts, parts != NULL ? n : 0 };
}

void file_describe(struct plan_order *o, struct device *d)
{
	if (!file_wants_profile() && conf.plan_out.text[0] == '\0')
		return;
	if (real.cuDeviceGetName(o->device_name, sizeof(o->device_name),
	    d->ordinal) != CUDA_SUCCESS)
		o->device_name[0] = '\0';
	o->device_name[sizeof(o->device_name) - 1] = '\0';
	o->device_bytes = d->total;
	describe_parts(o, d);
}

/* budgets: room for two; the profile borrows it. */
static struct plan_profile profile_of(const struct plan_order *o,
	uint64_t *budgets)
{
	uint32_t n = 0;

	if (o->budget > 0)
		budgets[n++] = o->budget;
	if (o->budget_least > o->budget)
		budgets[n++] = o->budget_least;
	return (struct plan_profile){
		.name = program_invocation_short_name,
		.note = "",
		.device = o->device_name,
		.device_bytes = o->device_bytes,
		.layers = o->profile.layers,
		.nr_layers = o->profile.nr_layers,
		.memory_stats = { o->gauge.points, o->gauge.nr },
		.budgets = budgets,
		.nr_budgets = n,
		.program = o->program,
	};
}

/* ---- writing ---- */

/*
 * Of a program with several phases, how long each takes: for people, since the
 * layers have the times of one.  NULL: one phase, or no memory.
 */
static const char *phases_text(const struct observe_profile *p,
	struct plan_arena *arena)
{
	size_t size = 64, at = 0;
	char *text;

	for (uint32_t i = 0; i < p->nr_phases; i++)
		size += 64 + (size_t)p->nr_layers * 28;
	text = p->nr_phases < 2 ? NULL : plan_arena_alloc(arena, size, 1);
	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < p->nr_phases; i++) {
		const struct observe_phase *f = &p->phases[i];

		at += (size_t)snprintf(text + at, size - at,
			"%s{\"iterations\": %u, \"layer_ms\": [", i == 0 ? "[" :
			", ", f->nr);
		for (uint32_t l = 0; l < p->nr_layers; l++)
			at += (size_t)snprintf(text + at, size - at, "%s%.6g",
				l == 0 ? "" : ", ", f->layer_ms[l]);
		at += (size_t)snprintf(text + at, size - at, "]}");
	}
	snprintf(text + at, size - at, "]");
	return text;
}

void file_save_profile(const struct plan_order *o)
{
	uint64_t budgets[2];
	struct plan_profile p;
	struct plan_io_extra phases = {
		.place = PLAN_IO_TOP,
		.key = "phases",
	};

	if (!file_wants_profile())
		return;
	p = profile_of(o, budgets);
	phases.value = phases_text(&o->profile, o->arena);
	if (phases.value != NULL)
		p.extras = (struct plan_io_extras){ 1, 1, &phases };
	outfile_save("profile_out", conf.profile_out.text, (int)o->device,
		plan_io_print_profile(&p));
}

void file_save_plan(const struct plan_order *o)
{
	struct memory_transfer_interpolator *ip = NULL;
	struct plan_file f = {
		.strategy = o->strategy->name,
		.params = o->params,
		.budget = o->budget_used,
		.result = o->result,
		.period_ms = o->predicted_ms,
		.cold_ms = o->times.cold_ms,
		.bound_ms = o->bound_ms,
		.fingerprint = plan_io_fingerprint(o->profile.layers,
			o->profile.nr_layers),
	};
	uint64_t budgets[2];
	struct plan_input in;
	enum plan_status status;

	if (conf.plan_out.text[0] == '\0')
		return;
	f.profile = profile_of(o, budgets);
	in = plan_io_input(&f.profile, f.budget);
	status = plan_interpolator_of(&in, o->arena, &ip);
	if (status == PLAN_OK)
		status = evaluate_strategy_result(&f.result, &in, f.strategy,
			ip, &f.score);
	if (status != PLAN_OK)
		log_warn("plan_out: the plan cannot be judged (%s)",
			plan_status_message(status));
	else
		outfile_save("plan_out", conf.plan_out.text, (int)o->device,
			plan_io_print_plan(&f));
}

/* ---- reading ---- */

static void say_warning(void *arg, const char *text)
{
	log_info("plan_in: %s", text);
}

/* The file's text, owned by the caller; NULL: there is none (logged). */
static char *load(int device, struct plan_io *io, char *path, size_t size,
	size_t *len)
{
	char *text;
	int r;

	if (!outfile_name(conf.plan_in.text, device, path, size)) {
		log_once(LOG_WARN, "plan_in: the file's name is too long");
		return NULL;
	}
	io->file = path;
	io->warn = say_warning;
	r = plan_io_load(io, path, &text, len);
	if (r == 0)
		return text;
	log_at(r == -ENOENT ? LOG_INFO : LOG_WARN, "plan_in: %s; the program "
		"is observed", io->error);
	return NULL;
}

/* Slots of pool or blocks are counted in 32 bits; and all must fit anyway. */
static bool sane(const struct strategy_result *r, uint64_t budget)
{
	const struct block_strategy_data *b = r->block_data;
	uint64_t left = budget;

	if (r->pool != NULL)
		return r->pool->nr_chunks == 0 || r->pool->chunk_bytes <=
			budget / r->pool->nr_chunks;
	for (uint32_t i = 0; b != NULL && i < b->nr_blocks; i++) {
		if (b->block_sizes[i] > left)
			return false;
		left -= b->block_sizes[i];
	}
	return true;
}

/* convert_plan() takes them one by one. */
static bool places_match(const struct strategy_result *r)
{
	const struct strategy_map *m = &r->strategy_map;

	if (r->pool == NULL)
		return true;
	if (m->nr != r->pool->nr_places)
		return false;
	for (uint32_t i = 0; i < m->nr; i++)
		if (m->slots[i].nr == 0)
			return false;
	return true;
}

/* Whether the file's plan can run here; o->message says why not. */
static bool usable(struct plan_order *o, const struct plan_file *f,
	uint64_t budget)
{
	struct plan_input in = plan_io_input(&f->profile, budget);
	struct convert c = {
		.result = &o->result,
		.in = &in,
		.tensors = o->profile.tensors,
		.nr_tensors = o->profile.nr_tensors,
		.page_bytes = o->page_bytes,
		.budget = budget,
	};
	struct timeline_options opt = { .wrap = true,
		.release_ms = f->params.release_ms };
	struct timeline line;

	o->result = f->result;
	o->status = PLAN_INFEASIBLE;
	if (sane(&f->result, budget))
		o->status = places_match(&f->result) ? PLAN_OK : PLAN_BAD_PLAN;
	if (o->status == PLAN_OK && timeline_link_of(&in, o->arena,
	    &opt.link) == PLAN_OK)
		o->status = timeline_of_result(&f->result, &in, &opt,
			o->arena, &line);
	if (o->status == PLAN_OK)
		o->status = convert_plan(&c, &o->schedule);
	snprintf(o->message, sizeof(o->message), "%s",
		o->status == PLAN_INFEASIBLE ?
		"it needs more GPU memory than there is" :
		plan_status_message(o->status));
	return o->status == PLAN_OK;
}

/* On success the rest of what planning gives. */
static bool take(struct plan_order *o, const struct plan_file *f)
{
	o->budget_used = o->budget;
	if (!usable(o, f, o->budget)) {
		o->budget_used = o->budget_least;
		if (o->status != PLAN_INFEASIBLE ||
		    o->budget_least <= o->budget ||
		    !usable(o, f, o->budget_least))
			return false;
	}
	o->strategy = plan_strategy_find(f->strategy);
	o->params = f->params;
	o->bound_ms = f->bound_ms;
	o->from_file = true;
	o->message[0] = '\0';
	return true;
}

bool file_take_plan(struct plan_order *o)
{
	char path[CONF_TEXT_MAX + 32], *text;
	struct plan_io io = { .guest = true };
	uint64_t budgets[2];
	struct plan_profile p;
	struct plan_file f;
	size_t len;
	bool ok;

	if (conf.plan_in.text[0] == '\0')
		return false;
	text = load((int)o->device, &io, path, sizeof(path), &len);
	if (text == NULL)
		return false;
	p = profile_of(o, budgets);
	ok = plan_io_parse_plan(&io, text, len, &p, o->arena, &f) == 0;
	free(text);
	if (!ok) {
		log_warn("plan_in is refused, and a plan made: %s", io.error);
		return false;
	}
	if (take(o, &f))
		return true;
	log_warn("plan_in is refused, and a plan made: %s: %s", path,
		o->message);
	schedule_destroy(o->schedule);
	o->schedule = NULL;
	return false;
}

/* ---- recognising ---- */

struct file_plan {
	struct plan_arena *arena;	/* owned, until an order has it */
	struct plan_file file;
	uint32_t generation;		/* d->reach_gen of the last look */
	bool looked;
	char path[CONF_TEXT_MAX + 32];
};

static void refuse(const struct file_plan *f, const char *why)
{
	log_warn("plan_in is not used from the start: %s: %s", f->path, why);
}

void file_close(struct file_plan *f)
{
	if (f == NULL)
		return;
	plan_arena_destroy(f->arena);
	free(f);
}

struct file_plan *file_open(const struct device *d)
{
	struct plan_io io = { .guest = true };
	struct file_plan *f;
	char *text = NULL;
	bool ok = false;
	size_t len;

	if (conf.plan_in.text[0] == '\0')
		return NULL;
	f = calloc(1, sizeof(*f));
	if (f != NULL)
		f->arena = plan_arena_create();
	if (f != NULL && f->arena != NULL)
		text = load(d->ordinal, &io, f->path, sizeof(f->path), &len);
	if (text != NULL) {
		ok = plan_io_parse_plan(&io, text, len, NULL, f->arena,
			&f->file) == 0;
		if (!ok)
			log_warn("plan_in is refused: %s", io.error);
		else if (f->file.profile.program.nr_parts == 0)
			log_info("plan_in: %s does not say where the program "
				"has its tensors: it is used when they have "
				"been observed", f->path);
		ok = ok && f->file.profile.program.nr_parts > 0;
		free(text);
	}
	if (ok)
		return f;
	file_close(f);
	return NULL;
}

/* The pages of a part; why: FILE_REFUSED's reason. */
static enum file_match find_part(struct device *d, const struct plan_part *q,
	uint32_t *first, uint32_t *nr, const char **why)
{
	uint64_t made;
	struct alloc *a = alloc_by_serial(d, q->allocation, &made);
	uint32_t end;

	*why = "the program has other allocations, or in another order";
	if (a == NULL)
		return q->allocation > made ? FILE_LATER : FILE_REFUSED;
	if (a->size != q->allocation_bytes || q->bytes % d->page_size != 0 ||
	    q->at % d->page_size != 0 ||
	    q->at / d->page_size >= a->nr_pages ||
	    q->bytes / d->page_size > a->nr_pages - q->at / d->page_size)
		return FILE_REFUSED;
	*first = a->first + (uint32_t)(q->at >> d->page_shift);
	*nr = (uint32_t)(q->bytes >> d->page_shift);
	end = *first + *nr;
	for (uint32_t page = *first; page < end; page++) {
		uint64_t word = device_word(d, page);

		if ((word & PAGE_TIER_MASK) == TIER_NONE ||
		    !__atomic_load_n(&d->pages[page].uploaded,
		    __ATOMIC_RELAXED))
			return FILE_LATER;
		if (alloc_of_word(d, word) != a || d->pages[page].fixed) {
			*why = "memory of its weights has to stay on the GPU";
			return FILE_REFUSED;
		}
	}
	return FILE_MATCHES;
}

/* Fills tensors by id. */
static enum file_match find_parts(struct device *d,
	const struct plan_program *p, struct observe_tensor *tensors,
	uint32_t nr_tensors, const char **why)
{
	for (uint32_t i = 0; i < p->nr_parts; i++) {
		const struct plan_part *q = &p->parts[i];
		struct observe_tensor *t;
		enum file_match m;
		uint32_t first, nr;

		*why = "its list of allocations is wrong";
		if (q->id < 0 || q->id >= nr_tensors)
			return FILE_REFUSED;
		m = find_part(d, q, &first, &nr, why);
		if (m != FILE_MATCHES)
			return m;
		t = &tensors[q->id];
		if (q->offset != (uint64_t)t->nr << d->page_shift ||
		    (t->nr > 0 && t->first + t->nr != first)) {
			*why = "the program's allocations lie otherwise";
			return FILE_REFUSED;
		}
		if (t->nr == 0)
			t->first = first;
		t->nr += nr;
	}
	return FILE_MATCHES;
}

/* Whether the tensors of the layers are those that were found. */
static bool layers_match(const struct plan_profile *p, uint64_t page_bytes,
	const struct observe_tensor *tensors, uint32_t nr_tensors)
{
	for (uint32_t i = 0; i < p->nr_layers; i++)
		for (uint32_t k = 0; k < p->layers[i].nr; k++) {
			const struct tensor_statistics *t =
				&p->layers[i].tensors[k];

			if (t->id < 0 || t->id >= nr_tensors ||
			    tensors[t->id].nr * page_bytes != t->size_bytes)
				return false;
		}
	return true;
}

static struct plan_order *order_of(struct file_plan *f, struct device *d,
	struct observe_tensor *tensors, uint32_t nr_tensors)
{
	struct plan_order *o = calloc(1, sizeof(*o));
	const struct plan_profile *p = &f->file.profile;

	if (o == NULL)
		return NULL;
	o->device = (uint32_t)d->ordinal;
	o->arena = f->arena;
	f->arena = NULL;
	o->profile.layers = (struct layer_statistics *)(uintptr_t)p->layers;
	o->profile.nr_layers = p->nr_layers;
	o->profile.tensors = tensors;
	o->profile.nr_tensors = nr_tensors;
	for (uint32_t i = 0; i < p->nr_layers; i++)
		o->profile.iteration_ms += p->layers[i].duration_ms;
	o->gauge.nr = p->memory_stats.nr < GAUGE_POINTS ? p->memory_stats.nr :
		GAUGE_POINTS;
	if (o->gauge.nr > 0)
		memcpy(o->gauge.points, p->memory_stats.points,
			o->gauge.nr * sizeof(*o->gauge.points));
	o->page_bytes = d->page_size;
	schedule_room(d, tensors, nr_tensors, &o->budget, &o->budget_least);
	return o;
}

static uint32_t count_tensors(const struct plan_program *p)
{
	int64_t most = -1;

	/* Each has a part, and ids are counted from 0: no more than parts. */
	for (uint32_t i = 0; i < p->nr_parts; i++)
		if (p->parts[i].id > most && p->parts[i].id < p->nr_parts)
			most = p->parts[i].id;
	return (uint32_t)(most + 1);
}

enum file_match file_match(struct file_plan *f, struct device *d,
	struct plan_order **out)
{
	const struct plan_program *p = &f->file.profile.program;
	uint32_t nr = count_tensors(p), generation;
	struct observe_tensor *tensors;
	enum file_match m;
	const char *why = "its chunks have another size";

	/* Until something is allocated or uploaded, the answer is the same. */
	generation = __atomic_load_n(&d->reach_gen, __ATOMIC_SEQ_CST);
	if (f->looked && f->generation == generation)
		return FILE_LATER;
	f->looked = true;
	f->generation = generation;
	tensors = plan_arena_alloc(f->arena, nr, sizeof(*tensors));
	m = tensors == NULL || p->page_bytes != d->page_size ? FILE_REFUSED :
		find_parts(d, p, tensors, nr, &why);
	if (m == FILE_MATCHES && !layers_match(&f->file.profile, d->page_size,
	    tensors, nr)) {
		m = FILE_REFUSED;
		why = "its layers and its list of allocations do not agree";
	}
	if (m == FILE_MATCHES && uploaded_bytes(d) > p->uploaded_bytes) {
		m = FILE_REFUSED;
		why = "the program has other weights as well";
	}
	if (m == FILE_REFUSED)
		refuse(f, why);
	if (m != FILE_MATCHES)
		return m;
	*out = order_of(f, d, tensors, nr);
	if (*out != NULL && take(*out, &f->file)) {
		order_judge(*out);
		return FILE_MATCHES;
	}
	refuse(f, *out == NULL ? "no memory" : (*out)->message);
	order_destroy(*out);
	*out = NULL;
	return FILE_REFUSED;
}

# SPDX-License-Identifier: Apache-2.0
#
# One Makefile, no recursion, no globbing.  All output goes below build/.
#
#   make [all]       the library, the launcher, the software driver, the tests
#   make demo        the demonstration, without a GPU
#   make check       every test; CC=clang, SAN=address|undefined|thread and
#                    LOCK_DEBUG=1 (locks know their order) too
#   make soak        every failure, the long matrices
#   make bench       the measurements, also as build/bench.jsonl
#   make fuzz        broken profiles and plans, 20 s each (clang)
#   make install     DESTDIR and PREFIX are honoured; also uninstall
#   make deps        install missing build packages (Debian, Ubuntu)
#
# V=1 shows commands, WERROR=1 makes warnings errors, MUTANT=n builds a library
# with one safety rule removed, for the tests that must notice.

-include config.mak

VERSION := 0.1.0
PREFIX ?= /usr/local
libdir ?= $(PREFIX)/lib/ballast
bindir ?= $(PREFIX)/bin
mandir ?= $(PREFIX)/share/man
completiondir ?= $(PREFIX)/share/bash-completion/completions
sysconfdir ?= $(if $(filter /usr /usr/local,$(PREFIX:/=)),/etc,$(PREFIX)/etc)

ifeq ($(origin CC),default)
CC := gcc
endif
SAN ?=
comma := ,
ifneq ($(filter-out address undefined thread,$(SAN)),)
$(error SAN must be address, undefined or thread)
endif
MUTANT ?=

CCNAME := $(notdir $(firstword $(CC)))
VARIANT := $(CCNAME)$(if $(SAN),-$(SAN))$(if $(LOCK_DEBUG),-locks)$(if $(MUTANT),-mutant$(MUTANT))
# The default variant's results lie directly below build/.
B := build$(if $(filter-out gcc,$(VARIANT)),/$(VARIANT))
O := build/obj/$(VARIANT)

ARCH := $(shell uname -m)
ifneq ($(ARCH),x86_64)
$(error Ballast is built for x86-64 Linux; this machine is $(ARCH))
endif

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wwrite-strings -Wpointer-arith -Wno-unused-parameter
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -I. -fPIC -fvisibility=hidden -fno-common \
	-fno-strict-aliasing -fno-math-errno -D_GNU_SOURCE $(WARN) $(CFLAGS) \
	$(if $(WERROR),-Werror) $(if $(MUTANT),-DMUTANT=$(MUTANT)) \
	$(if $(SAN)$(MUTANT)$(LOCK_DEBUG),-DLOCK_DEBUG) $(if $(SAN),-DSAN_BUILD)
# The address variant looks for undefined behaviour too: one build less.
SANITIZERS := $(if $(filter address,$(SAN)),address$(comma)undefined,$(SAN))
LD_SAN := $(if $(SAN),-fsanitize=$(SANITIZERS))
ALL_CFLAGS += $(LD_SAN) $(if $(findstring undefined,$(SANITIZERS)),-fno-sanitize-recover=all)
ifeq ($(CCNAME),clang)
ALL_CFLAGS += -Wthread-safety
endif
DEFS := $(if $(SAN),,-Wl,-z,defs)

# ---- sources: sorted, one a line, closed by EOL -----------------------------

BASE_SRCS := \
	shim/conf.c \
	shim/conf_value.c \
	shim/lock.c \
	shim/log.c \
	shim/stats.c \
	shim/status.c \
	# EOL

DISPATCH_SRCS := \
	shim/api_table.c \
	shim/init.c \
	shim/resolve.c \
	# EOL

DISPATCH_ASM := \
	shim/resolve_x86_64.S \
	# EOL

STATE_SRCS := \
	shim/alloc.c \
	shim/arena.c \
	shim/chunk.c \
	shim/context.c \
	shim/demote.c \
	shim/device.c \
	shim/event.c \
	shim/fetch.c \
	shim/fix.c \
	shim/issue.c \
	shim/issue_green.c \
	shim/issue_mem.c \
	shim/issue_pointer.c \
	shim/issue_pool.c \
	shim/issue_share.c \
	shim/issue_touch.c \
	shim/issue_unit.c \
	shim/issue_vmm.c \
	shim/kernarg.c \
	shim/mover.c \
	shim/observe.c \
	shim/observe_backbone.c \
	shim/observe_profile.c \
	shim/observe_set.c \
	shim/observe_times.c \
	shim/page_set.c \
	shim/period.c \
	shim/host.c \
	shim/in_place.c \
	shim/policy.c \
	shim/pool.c \
	shim/pool_place.c \
	shim/section.c \
	shim/convert.c \
	shim/convert_unit.c \
	shim/gauge.c \
	shim/timing.c \
	shim/outfile.c \
	shim/trace.c \
	shim/phase_file.c \
	shim/phase_plan.c \
	shim/phase.c \
	shim/phase_mix.c \
	shim/phase_order.c \
	shim/phase_trial.c \
	shim/phase_turn.c \
	shim/pool_size.c \
	shim/release.c \
	shim/unit.c \
	shim/schedule.c \
	shim/schedule_make.c \
	shim/prefetch.c \
	shim/tenancy.c \
	shim/tenancy_pair.c \
	shim/tenancy_part.c \
	shim/visit.c \
	shim/turn.c \
	shim/vmm.c \
	shim/vmm_map.c \
	shim/vmm_native.c \
	# EOL

HOOK_SRCS := \
	shim/hook_batch.c \
	shim/hook_copy.c \
	shim/hook_copy2d.c \
	shim/hook_ctx.c \
	shim/hook_graph.c \
	shim/hook_launch.c \
	shim/hook_mem.c \
	shim/hook_module.c \
	shim/hook_pointer.c \
	shim/hook_sync.c \
	shim/hook_vmm.c \
	# EOL

SHIM_SRCS := $(BASE_SRCS) $(DISPATCH_SRCS) $(STATE_SRCS) $(HOOK_SRCS)

# Pure: no driver, no files, no clock.
PLANNER_SRCS := \
	planner/bound.c \
	planner/bound_fluid.c \
	planner/bound_solve.c \
	planner/cycle.c \
	planner/link.c \
	planner/optimal.c \
	planner/optimal_latency.c \
	planner/optimal_move.c \
	planner/optimal_replay.c \
	planner/optimal_search.c \
	planner/optimal_tied.c \
	planner/optimal_seed.c \
	planner/optimal_trial.c \
	planner/plan_adaptive.c \
	planner/plan_arena.c \
	planner/plan_assign.c \
	planner/plan_budget.c \
	planner/plan_budget_search.c \
	planner/plan_build.c \
	planner/plan_eval.c \
	planner/plan_global.c \
	planner/plan_ids.c \
	planner/plan_input.c \
	planner/plan_interp.c \
	planner/plan_knapsack.c \
	planner/plan_math.c \
	planner/plan_search.c \
	planner/plan_selection.c \
	planner/plan_selection_start.c \
	planner/plan_simple.c \
	planner/plan_spread.c \
	planner/plan_status.c \
	planner/plan_strategy.c \
	planner/plan_subset.c \
	planner/plan_transfer.c \
	planner/plan_window.c \
	planner/ring.c \
	planner/timeline.c \
	# EOL

# Profiles and plans as files; needs json-c.
PLAN_IO_SRCS := \
	planner/plan_io.c \
	planner/plan_io_params.c \
	planner/plan_io_plan.c \
	planner/plan_io_pool.c \
	planner/plan_io_print.c \
	planner/plan_io_profile.c \
	planner/plan_io_program.c \
	planner/plan_json.c \
	planner/plan_json_value.c \
	planner/plan_text.c \
	# EOL

# What of the planner the library has.
SHIM_PLANNER_SRCS := $(PLANNER_SRCS) $(PLAN_IO_SRCS)

# Grammar and interpreter; pure, no driver in it.
PTX_SRCS := \
	test/softcuda/ptx_atom.c \
	test/softcuda/ptx_control.c \
	test/softcuda/ptx_cvt.c \
	test/softcuda/ptx_decl.c \
	test/softcuda/ptx_decode.c \
	test/softcuda/ptx_decode_flow.c \
	test/softcuda/ptx_decode_mem.c \
	test/softcuda/ptx_exec.c \
	test/softcuda/ptx_lane.c \
	test/softcuda/ptx_lex.c \
	test/softcuda/ptx_mem.c \
	test/softcuda/ptx_module.c \
	test/softcuda/ptx_operand.c \
	test/softcuda/ptx_parse.c \
	test/softcuda/ptx_print.c \
	test/softcuda/ptx_sym.c \
	test/softcuda/ptx_table.c \
	test/softcuda/ptx_vec.c \
	test/softcuda/ptx_vec_avx2.c \
	# EOL

SOFTCUDA_SRCS := \
	test/softcuda/access.c \
	test/softcuda/block.c \
	test/softcuda/call.c \
	test/softcuda/context.c \
	test/softcuda/ctxprop.c \
	test/softcuda/decompress.c \
	test/softcuda/device.c \
	test/softcuda/event.c \
	test/softcuda/exports.c \
	test/softcuda/function.c \
	test/softcuda/green.c \
	test/softcuda/hostfn.c \
	test/softcuda/hostmem.c \
	test/softcuda/image.c \
	test/softcuda/ipcevent.c \
	test/softcuda/jit.c \
	test/softcuda/knobs.c \
	test/softcuda/launch.c \
	test/softcuda/library.c \
	test/softcuda/link.c \
	test/softcuda/linker.c \
	test/softcuda/memcpy.c \
	test/softcuda/memcpy1d.c \
	test/softcuda/memcpy2d.c \
	test/softcuda/memop.c \
	test/softcuda/mempool.c \
	test/softcuda/mempool_api.c \
	test/softcuda/mempool_share.c \
	test/softcuda/memory.c \
	test/softcuda/memset.c \
	test/softcuda/module.c \
	test/softcuda/object.c \
	test/softcuda/occupancy.c \
	test/softcuda/paging.c \
	test/softcuda/pointer.c \
	test/softcuda/procaddr.c \
	test/softcuda/race.c \
	test/softcuda/report.c \
	test/softcuda/share.c \
	test/softcuda/sim.c \
	test/softcuda/space.c \
	test/softcuda/stream.c \
	test/softcuda/streamprop.c \
	test/softcuda/trace.c \
	test/softcuda/vmm.c \
	# EOL

TOOL_SRCS := \
	tools/ballast.c \
	tools/child.c \
	tools/cli.c \
	tools/cmd_compare.c \
	tools/cmd_config.c \
	tools/cmd_plan.c \
	tools/cmd_run.c \
	tools/cmd_show.c \
	tools/cmd_simulate.c \
	tools/cmd_stats.c \
	tools/environ.c \
	tools/inspect.c \
	tools/offline.c \
	tools/plan_chart.c \
	tools/report.c \
	tools/show_html.c \
	tools/stats_view.c \
	# EOL

E2E := \
	async_copies \
	attributes \
	binds \
	blind \
	contexts \
	copies \
	copy2d \
	copy3d \
	corners \
	decoder \
	fatbin \
	faults \
	fork \
	green \
	held \
	hostfunc \
	ipc \
	ipc_events \
	layers \
	library \
	linker \
	loop \
	matmul \
	memset \
	mtstreams \
	occupancy \
	onebuf \
	peer \
	pools \
	procaddr \
	rdma \
	reuse \
	spill \
	streams \
	struct_args \
	threads \
	train \
	vecadd \
	vmm \
	vmm_contexts \
	vmm_reuse \
	vmm_segments \
	vmm_threads \
	# EOL

# Questions to a real driver; nothing of it is linked in.
PROBE_SRCS := \
	test/gpu/probe.c \
	test/gpu/probe_calls.c \
	test/gpu/probe_capture.c \
	test/gpu/probe_copy.c \
	test/gpu/probe_cost.c \
	test/gpu/probe_dev.c \
	test/gpu/probe_entry.c \
	test/gpu/probe_graph.c \
	test/gpu/probe_order.c \
	test/gpu/probe_out.c \
	test/gpu/probe_pin.c \
	test/gpu/probe_vmm.c \
	test/gpu/probe_wait.c \
	# EOL

UNIT := \
	test_alloc \
	test_arena \
	test_between \
	test_conf \
	test_convert \
	test_event \
	test_kernarg \
	test_lock \
	test_log \
	test_observe \
	test_observe_random \
	test_page_set \
	test_period \
	test_phase_mix \
	test_phase_plan \
	test_plan_io \
	test_plan_math \
	test_plan_optimal \
	test_plan_parts \
	test_plan_property \
	test_plan_reference \
	test_plan_strategy \
	test_plan_threads \
	test_plan_timeline \
	test_ptx_atomic \
	test_ptx_barrier \
	test_ptx_float \
	test_ptx_flow \
	test_ptx_int \
	test_ptx_mem \
	test_ptx_seen \
	test_ptx_vec \
	test_ptx_warp \
	test_section \
	test_softcuda_image \
	test_softcuda_kernel \
	test_softcuda_memory \
	test_softcuda_paging \
	test_softcuda_pool \
	test_softcuda_procaddr \
	test_softcuda_race \
	test_softcuda_share \
	test_softcuda_sim \
	test_softcuda_threads \
	test_softcuda_vmm \
	test_stats \
	test_status \
	test_undone \
	test_visit \
	# EOL

# test/check-NAME.sh
CHECKS := \
	abi \
	conf \
	elf \
	exports \
	flip \
	gpu \
	held \
	layers \
	matrix \
	plans \
	preempt \
	purity \
	softcuda \
	style \
	sweep \
	thread-safety \
	# EOL

# test/tools/NAME.sh
TOOL_TESTS := \
	test_config \
	test_docs \
	test_exit \
	test_files \
	test_inspect \
	test_options \
	test_plan \
	test_signals \
	test_stats \
	test_status \
	# EOL

# cases of test/dispatch/run.sh
DISPATCH := \
	absent \
	close \
	cudart-shared \
	cudart-static \
	deepbind \
	deepbind-keep \
	default \
	dlsym \
	early \
	exit \
	fork \
	fork-first \
	inert \
	interposer \
	linked \
	names \
	next \
	none \
	origin \
	own-exports \
	plugin \
	plugin-old \
	procaddr \
	runtime \
	strict \
	threads \
	versions \
	# EOL

MANPAGES := \
	tools/ballast-files.5 \
	tools/ballast-plan.1 \
	tools/ballast.1 \
	tools/preload.conf.5 \
	# EOL

obj = $(patsubst %.S,$(O)/%.o,$(patsubst %.c,$(O)/%.o,$(1)))

.PHONY: all demo check bench fuzz install uninstall deps clean soak check-gpu update-conf
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:

all: $(B)/libballast.so $(B)/ballast $(B)/softcuda/libcuda.so.1 \
	$(E2E:%=$(B)/e2e/%) $(UNIT:%=$(B)/unit/%)

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(OBJ_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$<)
	$(Q)$(CC) -I. -MMD -MP -c -o $@ $<

$(call obj,$(SHIM_SRCS)): OBJ_CFLAGS := -ftls-model=initial-exec
# Sanitizers call dlsym before they are ready, so its hook has none of them.
$(call obj,shim/resolve.c): OBJ_CFLAGS += $(if $(SAN),-fno-sanitize=all)

# ---- the library -------------------------------------------------------------

$(B)/libballast.so: $(call obj,$(SHIM_SRCS) $(SHIM_PLANNER_SRCS) \
		$(DISPATCH_ASM)) shim/shim.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(LD_SAN) $(DEFS) \
		-Wl,-soname,libballast.so -Wl,--version-script,shim/shim.map \
		-Wl,-Bsymbolic-functions -Wl,-z,relro -Wl,-z,now \
		-Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,-Bstatic -linih \
		-ljson-c -Wl,-Bdynamic -ldl

# ---- the planner -------------------------------------------------------------

$(B)/libplanner.a: $(call obj,$(PLANNER_SRCS))
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# ---- the launcher ------------------------------------------------------------

$(call obj,$(TOOL_SRCS)): OBJ_CFLAGS := -DBALLAST_VERSION='"$(VERSION)"' \
	-DBALLAST_LIBDIR='"$(libdir)"'
$(B)/ballast: $(call obj,$(TOOL_SRCS) $(BASE_SRCS) $(PLAN_IO_SRCS)) \
		$(B)/libplanner.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -Wl,-Bstatic -linih -ljson-c \
		-Wl,-Bdynamic -lm -ldl

# ---- the software driver -----------------------------------------------------

SOFTCUDA_LIBS := -lzstd -llz4 -lm
# Products and sums stay apart, so that every build computes the same bits.
$(call obj,$(PTX_SRCS)): OBJ_CFLAGS := -O3 -ffp-contract=off \
	-fno-trapping-math
$(call obj,test/softcuda/ptx_vec_avx2.c): OBJ_CFLAGS += -mavx2 -mfma -mbmi \
	-mbmi2 -mpopcnt
$(B)/softcuda/libcuda.so.1: $(call obj,$(SOFTCUDA_SRCS) $(PTX_SRCS))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LD_SAN) $(DEFS) -Wl,-soname,libcuda.so.1 \
		-Wl,-Bsymbolic -Wl,-z,nodelete $(SOFTCUDA_LIBS) -lpthread
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

# ---- tests -------------------------------------------------------------------

$(B)/e2e/%: $(O)/test/e2e/%.o $(B)/softcuda/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(B)/softcuda -lcuda -lm -lpthread

$(O)/test/e2e/%.o: OBJ_CFLAGS := -Itest/include

# Unit tests use Check; what they link besides themselves is listed here.
UNIT_OBJS_test_arena := shim/lock.c shim/log.c shim/stats.c
# All of the state, with the test's turns before some functions.
UNIT_OBJS_test_between := $(BASE_SRCS) $(STATE_SRCS) $(SHIM_PLANNER_SRCS)
UNIT_LIBS_test_between := -ljson-c -Wl,--wrap=lock_acquire \
	-Wl,--wrap=lock_wait -Wl,--wrap=schedule_destroy
UNIT_OBJS_test_undone := $(UNIT_OBJS_test_between)
UNIT_LIBS_test_undone := -ljson-c
UNIT_OBJS_test_kernarg := shim/lock.c shim/log.c
UNIT_OBJS_test_section := shim/lock.c shim/log.c
UNIT_OBJS_test_alloc := shim/lock.c shim/log.c
UNIT_OBJS_test_conf := shim/conf.c shim/conf_value.c
UNIT_OBJS_test_lock := shim/log.c
UNIT_OBJS_test_log := shim/log.c
OBSERVE_OBJS := shim/observe.c shim/observe_backbone.c shim/observe_profile.c \
	shim/observe_set.c shim/observe_times.c
UNIT_OBJS_test_observe := $(OBSERVE_OBJS) $(PLANNER_SRCS)
UNIT_OBJS_test_observe_random := $(OBSERVE_OBJS) $(PLANNER_SRCS)
UNIT_OBJS_test_period := shim/period.c
UNIT_OBJS_test_visit := shim/visit.c
UNIT_OBJS_test_convert := shim/convert.c shim/convert_unit.c \
	shim/schedule_make.c shim/visit.c $(PLANNER_SRCS)
UNIT_OBJS_test_event := shim/lock.c shim/log.c shim/stats.c
UNIT_OBJS_test_phase_mix := $(PLANNER_SRCS)
UNIT_OBJS_test_phase_plan := shim/lock.c shim/log.c $(PLANNER_SRCS)
UNIT_OBJS_test_page_set := shim/page_set.c
PLAN_CASES := test/unit/plan_cases.c $(PLANNER_SRCS)
# Without it the tests do without the linear program.
GLPK := $(if $(wildcard /usr/include/glpk.h),-lglpk)
UNIT_OBJS_test_plan_io := $(PLAN_IO_SRCS) $(PLANNER_SRCS)
UNIT_LIBS_test_plan_io := -ljson-c
UNIT_OBJS_test_plan_parts := $(PLANNER_SRCS)
UNIT_OBJS_test_plan_optimal := $(PLAN_CASES) test/unit/plan_check.c \
	test/unit/plan_lp.c
UNIT_LIBS_test_plan_optimal := -ljson-c $(GLPK)
UNIT_OBJS_test_plan_property := test/unit/plan_same.c $(PLAN_IO_SRCS) \
	$(PLANNER_SRCS)
UNIT_LIBS_test_plan_property := -ljson-c
UNIT_OBJS_test_plan_threads := test/unit/plan_same.c $(PLAN_IO_SRCS) \
	$(PLANNER_SRCS)
UNIT_LIBS_test_plan_threads := -ljson-c
UNIT_OBJS_test_plan_reference := $(PLAN_CASES)
UNIT_LIBS_test_plan_reference := -ljson-c
UNIT_OBJS_test_plan_timeline := $(PLANNER_SRCS)
UNIT_OBJS_test_plan_strategy := $(PLANNER_SRCS)
UNIT_OBJS_test_softcuda_memory := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_paging := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_pool := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_procaddr := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_race := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_share := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_sim := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_vmm := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_ptx_atomic := $(PTX_SRCS)
UNIT_OBJS_test_ptx_barrier := $(PTX_SRCS)
UNIT_OBJS_test_ptx_float := $(PTX_SRCS)
UNIT_OBJS_test_ptx_flow := $(PTX_SRCS)
UNIT_OBJS_test_ptx_int := $(PTX_SRCS)
UNIT_OBJS_test_ptx_mem := $(PTX_SRCS)
UNIT_OBJS_test_ptx_seen := $(PTX_SRCS)
UNIT_OBJS_test_ptx_vec := $(PTX_SRCS)
UNIT_OBJS_test_ptx_warp := $(PTX_SRCS)
UNIT_OBJS_test_softcuda_image := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_kernel := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_memory := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_procaddr := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_race := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_sim := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_threads := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_softcuda_vmm := $(SOFTCUDA_SRCS) $(PTX_SRCS)
UNIT_OBJS_test_stats := shim/stats.c
UNIT_OBJS_test_status := shim/status.c

CHECK_LIBS = $(shell pkg-config --libs check)

.SECONDEXPANSION:
$(B)/unit/%: $(O)/test/unit/%.o $$(call obj,$$(UNIT_OBJS_$$*))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) $(CHECK_LIBS) $(UNIT_LIBS_$*) \
		$(if $(filter test_softcuda%,$*),$(SOFTCUDA_LIBS)) \
		-Wl,-Bstatic -linih \
		-Wl,-Bdynamic -lm -lpthread -ldl

# ---- the null driver and the measurements ------------------------------------

$(B)/bench/libcuda.so.1: $(call obj,test/bench/null.c test/bench/null_names.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LD_SAN) $(DEFS) -Wl,-soname,libcuda.so.1 \
		-Wl,-Bsymbolic
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

$(O)/test/bench/bench_launch.o: OBJ_CFLAGS := -Itest/include
$(B)/bench/bench_launch: $(O)/test/bench/bench_launch.o \
		$(B)/bench/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(B)/bench -lcuda

$(O)/test/bench/bench_swap.o: OBJ_CFLAGS := -Itest/include
$(B)/bench/bench_swap: $(O)/test/bench/bench_swap.o \
		$(B)/bench/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(B)/bench -lcuda

$(O)/test/bench/bench_threads.o: OBJ_CFLAGS := -Itest/include
$(B)/bench/bench_threads: $(O)/test/bench/bench_threads.o \
		$(B)/bench/libcuda.so.1
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(B)/bench -lcuda -lpthread

# The table of allocations alone.
$(B)/bench/bench_lookup: $(call obj,test/bench/bench_lookup.c shim/alloc.c \
		shim/lock.c shim/log.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -lpthread

# The interpreter alone.
$(B)/bench/bench_ptx: $(call obj,test/bench/bench_ptx.c $(PTX_SRCS))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -lm

# The planner alone; reads test/data.
$(B)/bench/bench_plan: $(call obj,test/bench/bench_plan.c \
		test/unit/plan_cases.c $(PLANNER_SRCS))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -ljson-c -lm

bench: $(B)/bench/bench_launch $(B)/bench/bench_lookup \
		$(B)/bench/bench_plan $(B)/bench/bench_ptx \
		$(B)/bench/bench_swap $(B)/bench/bench_threads $(B)/libballast.so $(B)/ballast \
		$(B)/softcuda/libcuda.so.1 \
		$(B)/e2e/decoder $(B)/e2e/layers $(B)/e2e/loop
	$(Q)B=$(B) test/bench/run.sh; r=$$?; \
		B=$(B) test/bench/steady.sh || r=1; \
		B=$(B) test/bench/policies.sh && exit $$r

# ---- the fuzzers ---------------------------------------------------------------

# All of it is compiled anew for libFuzzer, by clang whatever CC is.
FUZZ_CC ?= $(firstword $(foreach c,clang clang-14,$(shell command -v $(c))))
FUZZ_FLAGS := -std=gnu11 -I. -O1 -g -D_GNU_SOURCE \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZ_SRCS := test/fuzz/fuzz_main.c $(PLAN_IO_SRCS) $(PLANNER_SRCS)
build/fuzz/fuzz_%: test/fuzz/fuzz_%.c $(FUZZ_SRCS) planner/plan_io.h
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -o $@ $< $(FUZZ_SRCS) -ljson-c -lm

# The same with any compiler, for files that are named.
$(O)/test/fuzz/fuzz_main.o: OBJ_CFLAGS := -DFUZZ_REPLAY
$(B)/fuzz/replay_%: $(O)/test/fuzz/fuzz_%.o $(call obj,$(FUZZ_SRCS))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -ljson-c -lm

fuzz: build/fuzz/fuzz_profile build/fuzz/fuzz_plan $(B)/ballast
	$(Q)B=$(B) F=build/fuzz test/fuzz/run.sh

# ---- the probes of a real GPU ---------------------------------------------------

$(B)/gpu/probe: $(call obj,$(PROBE_SRCS))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN) -lpthread -ldl

# ---- the dispatch tests' programs, on the null driver -------------------------

D := $(B)/dispatch
DT := $(O)/test/dispatch
DISPATCH_TESTS := $(D)/ways $(D)/linked $(D)/early $(D)/plugin.so \
	$(D)/plugin-old.so $(D)/names.so $(D)/libnext.so $(D)/interposer.so \
	$(D)/sub/liborigin.so $(D)/own-exports/libcuda.so.1 $(D)/lookups.so

$(DT)/%.o: OBJ_CFLAGS := -Itest/include -Wno-address
# One source, two objects.
$(DT)/plugin-old.o: test/dispatch/plugin.c
$(DT)/next-base.o: test/dispatch/next.c
$(DT)/origin.o: test/dispatch/next.c
$(DT)/plugin-old.o: OBJ_CFLAGS += -DPLUGIN_OLD
$(DT)/next-base.o: OBJ_CFLAGS += -DNEXT_BASE
$(DT)/origin.o: OBJ_CFLAGS += -DNEXT_BASE -Dnext_value=origin_ok
$(DT)/plugin-old.o $(DT)/next-base.o $(DT)/origin.o:
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(OBJ_CFLAGS) -MMD -MP -c -o $@ $<

# -rpath gives RUNPATH, which, unlike RPATH, goes by the caller of dlopen.
$(D)/ways: $(DT)/ways.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN/sub' -lpthread -ldl

$(D)/linked: $(DT)/linked.o $(B)/bench/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(B)/bench -lcuda -lpthread -ldl

$(D)/%.so: $(DT)/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -ldl

$(D)/sub/liborigin.so: $(DT)/origin.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -Wl,-soname,$(@F)

# Its own functions, whatever is preloaded.
$(D)/names.so: $(DT)/names.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -Wl,-Bsymbolic

$(D)/libnext-base.so: $(DT)/next-base.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -Wl,-soname,$(@F)

$(D)/libnext.so: $(DT)/next.o $(D)/libnext-base.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -Wl,--no-as-needed -L$(D) \
		-lnext-base -Wl,-rpath,'$$ORIGIN' -ldl

$(D)/early: $(DT)/early_main.o $(D)/libearly.so
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< $(LD_SAN) -L$(D) -learly -Wl,-rpath,'$$ORIGIN'

$(D)/libearly.so: $(DT)/early.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< $(LD_SAN) -Wl,-soname,$(@F) -ldl

# Without -Bsymbolic the driver's calls of its own exports come to Ballast.
$(D)/own-exports/libcuda.so.1: \
		$(call obj,test/bench/null.c test/bench/null_names.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LD_SAN) $(DEFS) -Wl,-soname,libcuda.so.1

# ---- checking, installing ----------------------------------------------------

# Libraries with one rule of tenancy taken out, for test/mutant.sh.
MUTANTS := $(if $(SAN)$(MUTANT),,$(patsubst %,build/$(CCNAME)-mutant%/libballast.so,1 2 3 4))
build/$(CCNAME)-mutant%/libballast.so: $(B)/libballast.so
	$(Q)$(MAKE) --no-print-directory LOCK_DEBUG= MUTANT=$* $@

# The failure sweep: who runs the programs, and who makes allocations fail.
SOAK := $(B)/soak/sweep $(B)/soak/failalloc.so

$(B)/soak/sweep: $(call obj,test/soak/sweep.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(LD_SAN)

# Before any sanitizer is ready, so without.
$(call obj,test/soak/failalloc.c): OBJ_CFLAGS := $(if $(SAN),-fno-sanitize=all)
$(B)/soak/failalloc.so: $(call obj,test/soak/failalloc.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(DEFS)

soak: all $(SOAK)
	$(Q)B=$(B) CC='$(CC)' SAN=$(SAN) test/soak/sweep.sh
	$(Q)B=$(B) CC='$(CC)' SAN=$(SAN) test/soak/matrix.sh
	$(Q)B=$(B) CC='$(CC)' SAN=$(SAN) test/soak/plans.sh

# make check T=name runs the tests whose name contains it.
check: deps all $$(DISPATCH_TESTS) $(MUTANTS) $(B)/gpu/probe $(SOAK)
	$(Q)B=$(B) O=$(O) CC='$(CC)' SAN=$(SAN) test/run.sh $(T:%=-f %) \
		$(UNIT:%=unit/%) $(if $(SAN),,$(CHECKS:%=check/%)) \
		$(DISPATCH:%=dispatch/%) $(if $(SAN),,$(TOOL_TESTS:%=tools/%)) \
		e2e

# 77: no GPU here.  The script builds what it needs, which is less than all.
check-gpu:
	$(Q)B=$(B) test/gpu/run.sh

demo: deps all
	$(Q)B=$(B) test/demo.sh

deps:
	$(Q)CC='$(CC)' test/deps.sh

update-conf: $(B)/ballast
	$(Q)$(B)/ballast config --template >preload.conf.new
	$(Q)mv preload.conf.new preload.conf

install: $(B)/libballast.so $(B)/ballast $(B)/softcuda/libcuda.so.1
	install -d $(DESTDIR)$(libdir)/softcuda $(DESTDIR)$(bindir) \
		$(DESTDIR)$(sysconfdir)/ballast
	install -m 755 $(B)/ballast $(DESTDIR)$(bindir)/ballast
	install -m 644 $(B)/libballast.so $(DESTDIR)$(libdir)/libballast.so
	install -m 644 $(B)/softcuda/libcuda.so.1 \
		$(DESTDIR)$(libdir)/softcuda/libcuda.so.1
	install -m 644 preload.conf \
		$(DESTDIR)$(sysconfdir)/ballast/preload.conf.example
	for m in $(wildcard $(MANPAGES)); do \
		d=$(DESTDIR)$(mandir)/man$${m##*.}; \
		install -d $$d && install -m 644 $$m $$d/ || exit 1; \
	done
	install -d $(DESTDIR)$(completiondir)
	install -m 644 tools/ballast.bash-completion \
		$(DESTDIR)$(completiondir)/ballast

# What install has made; a preload.conf beside the example is the user's.
uninstall:
	rm -f $(DESTDIR)$(bindir)/ballast $(DESTDIR)$(libdir)/libballast.so \
		$(DESTDIR)$(libdir)/softcuda/libcuda.so.1 \
		$(DESTDIR)$(sysconfdir)/ballast/preload.conf.example \
		$(DESTDIR)$(completiondir)/ballast \
		$(foreach m,$(MANPAGES),$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m)))
	for d in $(libdir)/softcuda $(libdir) $(sysconfdir)/ballast; do \
		[ ! -d "$(DESTDIR)$$d" ] || \
			rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$d"; \
	done

clean:
	rm -rf build

-include $(shell find $(O) -name '*.d' 2>/dev/null)

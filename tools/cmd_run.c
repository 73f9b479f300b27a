/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast run`: options into an environment, a look at the program, the
 * program itself, and a word about how it went.  Called by ballast.c.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/plan_io.h"
#include "shim/conf.h"
#include "shim/log.h"
#include "shim/status.h"
#include "tools/child.h"
#include "tools/cli.h"
#include "tools/environ.h"
#include "tools/inspect.h"
#include "tools/report.h"

#define LIBRARY "libballast.so"

struct run {
	struct environ_list env;
	bool dry_run;
	bool stats;
	const char *soft;	/* "" or "key=value,..."; NULL: a real GPU */
	char **argv;		/* the program and its arguments */
	struct inspect program;
};

enum {
	OPT_ARENA = 256, OPT_LOG, OPT_SOFT, OPT_DRY_RUN, OPT_STATS, OPT_STRICT,
	OPT_HELP,
};

static const struct option options[] = {
	{ "arena", required_argument, NULL, OPT_ARENA },
	{ "budget", required_argument, NULL, 'b' },
	{ "debug", no_argument, NULL, 'v' },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "option", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "soft", optional_argument, NULL, OPT_SOFT },
	{ "stats", no_argument, NULL, OPT_STATS },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "verbose", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

/* The program may change its folder before the log is opened. */
static void set_log_file(struct environ_list *env, const char *file)
{
	char folder[PATH_MAX];

	if (*file && *file != '/' && getcwd(folder, sizeof(folder)))
		file = cli_format("%s/%s", folder, file);
	environ_set_conf(env, CONF_ID_log_file, file);
}

/* After getopt_long() has answered '?'; `word` is what it looked at last. */
static void bad_option(const char *word)
{
	bool is_long = strncmp(word, "--", 2) == 0;

	if (optopt == 0)
		cli_usage("run", "there is no option '%s'", word);
	if (optopt >= 256 || (is_long && strchr(word, '=')))
		cli_usage("run", "option '%s' takes no value", word);
	cli_usage("run", "there is no option '-%c'", optopt);
}

/* true: help was asked for. */
static bool parse_options(struct run *run, int argc, char **argv)
{
	struct environ_list *env = &run->env;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "+:b:o:qvh", options,
	    NULL)) != -1) {
		switch (c) {
		case 'b':
			environ_set_conf(env, CONF_ID_gpu_budget, optarg);
			break;
		case OPT_ARENA:
			environ_set_conf(env, CONF_ID_arena, optarg);
			break;
		case 'o':
			environ_set_option(env, optarg);
			break;
		case OPT_LOG:
			set_log_file(env, optarg);
			break;
		case 'q':
			environ_set_conf(env, CONF_ID_log_level, "warn");
			break;
		case 'v':
			environ_set_conf(env, CONF_ID_log_level, "debug");
			break;
		case OPT_SOFT:
			run->soft = cli_format("%s%s%s",
				run->soft ? run->soft : "",
				run->soft ? "," : "", optarg ? optarg : "");
			break;
		case OPT_DRY_RUN:
			run->dry_run = true;
			break;
		case OPT_STATS:
			run->stats = true;
			environ_set_conf(env, CONF_ID_stats, "true");
			break;
		case OPT_STRICT:
			environ_set_conf(env, CONF_ID_strict, "true");
			break;
		case 'h':
		case OPT_HELP:
			return true;
		case ':':
			cli_usage("run", "option '%s' needs a value",
				argv[optind - 1]);
		default:
			bad_option(argv[optind - 1]);
		}
	}
	run->argv = argv + optind;
	return false;
}

static void look_at_program(struct run *run)
{
	const char *name = run->argv[0];
	int r = inspect_program(name, &run->program);

	if (r == 0)
		return;
	if (r == -ENOENT && !strchr(name, '/'))
		cli_die(EXIT_NOTFOUND, "%s: not found in PATH", name);
	cli_die(r == -ENOENT || r == -ENOTDIR ? EXIT_NOTFOUND : EXIT_NOEXEC,
		"%s: %s", name, strerror(-r));
}

static char *soft_driver(void)
{
	char *tried = NULL;
	char *driver = cli_locate("softcuda/libcuda.so.1",
		"softcuda/libcuda.so.1", &tried);

	if (!driver)
		cli_die(EXIT_LAUNCHER, "--soft: no software driver (%s)",
			tried);
	return driver;
}

/* LD_PRELOAD and LD_LIBRARY_PATH. */
static void set_loader_environment(struct run *run)
{
	char *library, *driver, *tried = NULL;

	if (run->soft) {
		driver = soft_driver();
		environ_set_soft(&run->env, run->soft, driver);
		*strrchr(driver, '/') = '\0';
		if (environ_library_path(&run->env, driver) != 0)
			cli_die(EXIT_LAUNCHER, "%s: LD_LIBRARY_PATH cannot "
				"name a folder with ':' or ';'", driver);
	}
	/* Another C library would die of one that needs glibc. */
	if (run->program.verdict == INSPECT_LIBC)
		return;
	library = cli_locate(LIBRARY, LIBRARY, &tried);
	if (!library)
		cli_die(EXIT_LAUNCHER, "no " LIBRARY " (%s)", tried);
	if (environ_preload(&run->env, library) != 0)
		cli_die(EXIT_LAUNCHER, "%s: LD_PRELOAD cannot name a path with "
			"a space or ':'; move it", library);
}

static int print_dry_run(const struct run *run)
{
	char **arg;

	environ_print(&run->env);
	for (arg = run->argv; *arg; arg++)
		printf("%s%s", arg == run->argv ? "" : " ", cli_quote(*arg));
	printf("\n");
	return cli_flush(EXIT_OK);
}

/* The library will say what is wrong with a file; here only values count. */
static void ignore_complaint(void *arg, const char *origin, const char *text)
{
}

/* The library knows the planner's names only once it plans. */
static void check_strategy(const struct conf *c, const char *origin,
	const char *program)
{
	struct plan_params params;
	char message[PLAN_MESSAGE];

	if (!c->enabled || c->policy != POLICY_PLAN ||
	    plan_io_strategy(c->strategy.text, &params, message) != NULL)
		return;
	if (c->strict || c->log_level > LOG_ERROR)
		cli_warn("strategy (%s): %s", origin, message);
	if (c->strict)
		cli_die(EXIT_UNMANAGED, "strict: %s was not started", program);
}

/* The program as it is, with what is known about why it cannot be managed. */
static int run_program(struct run *run)
{
	static char origins[NR_CONF][CONF_TEXT_MAX];
	static struct conf c;
	struct report_facts facts = { .program = run->argv[0] };
	struct child child = { 0 };
	const char *status;
	int fd, r;

	environ_apply(&run->env);
	(void)!conf_load(&c, origins, ignore_complaint, NULL);
	facts.obstacle = inspect_reason(&run->program);
	facts.soft = run->soft != NULL;
	facts.stats = run->stats;
	facts.enabled = c.enabled;
	facts.strict = c.strict;
	facts.quiet = c.log_level == LOG_ERROR;
	if (!c.enabled && c.log_level > LOG_WARN)
		cli_warn("%s runs without Ballast: enabled = false (%s)",
			run->argv[0], origins[CONF_ID_enabled]);
	if (facts.obstacle && c.enabled && (!facts.quiet || c.strict))
		cli_warn("%s", facts.obstacle);
	if (facts.obstacle && c.strict)
		cli_die(EXIT_UNMANAGED, "strict: %s was not started",
			run->argv[0]);

	check_strategy(&c, origins[CONF_ID_strategy], run->argv[0]);
	fd = report_open(&status, run->stats);
	if (status)
		setenv(STATUS_ENV, status, 1);
	else
		unsetenv(STATUS_ENV);
	r = child_run(&child, run->program.path, run->argv, fd);
	if (r != 0)
		cli_die(r == -ENOENT ? EXIT_NOTFOUND : r == -EAGAIN ||
			r == -EMFILE || r == -ENFILE ? EXIT_LAUNCHER :
			EXIT_NOEXEC, "%s: %s", run->argv[0], strerror(-r));
	r = report_end(&facts, &child);
	if (r != 0)
		return r;
	child_mirror(&child);
}

int cmd_run(int argc, char **argv)
{
	static struct run run;

	if (parse_options(&run, argc, argv))
		return cmd_help("run");
	if (run.soft && strcmp(run.soft, "help") == 0) {
		environ_print_soft(soft_driver());
		return cli_flush(EXIT_OK);
	}
	if (!run.argv[0])
		cli_usage("run", "which program? ballast run [options] -- "
			"program [arguments]");
	look_at_program(&run);
	set_loader_environment(&run);
	return run.dry_run ? print_dry_run(&run) : run_program(&run);
}

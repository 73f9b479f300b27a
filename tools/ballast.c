/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `ballast`: picks the subcommand, and holds all help texts.
 */
#include <stdio.h>
#include <string.h>

#include "tools/cli.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *line;	/* for the list */
	const char *help;
};

static int run_help(int argc, char **argv);

static const char run_text[] =
"Usage: ballast run [options] -- program [arguments]\n"
"\n"
"Starts a CUDA program that may use more GPU memory than there is.  Ballast\n"
"keeps what fits on the GPU and brings the rest from host memory when a\n"
"kernel needs it.  The program is not changed and does not notice.\n"
"\n"
"  -b, --budget SIZE     GPU memory the program's data may take: 6G, 75%, or\n"
"                        auto (what is free, less a reserve)\n"
"      --arena SIZE      host memory for what is off the GPU: 32G, or auto\n"
"  -o, --option KEY=VAL  any key of 'ballast config'\n"
"      --log FILE        append messages to FILE instead of standard error\n"
"  -q, --quiet           warnings and errors only\n"
"  -v, --verbose         everything, for finding faults\n"
"      --stats           say at the end how it went\n"
"      --strict          exit with 3 when nothing could be managed\n"
"      --soft[=KEY=VAL,...]\n"
"                        no GPU: use the software driver, for instance\n"
"                        --soft=memory=64M (sets SOFTCUDA_MEMORY);\n"
"                        --soft=help lists the keys\n"
"      --dry-run         print what would be set and run, as lines for sh\n"
"\n"
"Budget plus arena must hold the data and the pool: a quarter of the budget, or\n"
"as much as one launch needs if that is more, since a launch needs all its data\n"
"on the GPU at once.  Else a call fails as on a full GPU, and the last line\n"
"names the key to change.\n"
"\n"
"Examples:\n"
"  ballast run -- ./my_program --model big.bin\n"
"  ballast run -b 6G --arena 24G -- python3 generate.py\n"
"  ballast run --soft=memory=64M -- build/e2e/decoder\n"
"\n"
"Did it work?  Ballast writes a line when it becomes active and a summary at\n"
"the end; 'ballast stats' shows counters in between.  That no program\n"
"made a successful cuInit() is said.\n"
"\n"
"Exit status: the program's own, or death by the same signal.  Ballast's own:\n"
"2 wrong usage, 3 strict and nothing managed, 125 could not start, 126 not\n"
"executable, 127 not found.\n";

static const char config_text[] =
"Usage: ballast config [KEY...]\n"
"       ballast config --template\n"
"\n"
"Prints every key with the value in effect here and where it comes from, or\n"
"the bare value of the keys named.  First match wins: environment\n"
"(BALLAST_<KEY>), the file that BALLAST_CONFIG names, ./preload.conf,\n"
"/etc/ballast/preload.conf, built-in default.\n"
"\n"
"      --template  print a preload.conf with all keys, explained\n"
"\n"
"Exit status: 1 when a file or variable has a key or value that is wrong.\n"
"\n"
"Examples:\n"
"  ballast config --template > preload.conf\n"
"  BALLAST_GPU_BUDGET=50% ballast config gpu_budget\n";

static const char stats_text[] =
"Usage: ballast stats [--json] [PID...]\n"
"\n"
"Prints the counters of processes that run under Ballast: memory on the GPU and\n"
"in the arena, bytes copied, time waited.  PID may also be that of 'ballast run'\n"
"or a shell above them.  Without PID: all of yours.\n"
"\n"
"      --json  an array of objects; sizes in bytes, times in nanoseconds\n"
"\n"
"Example:\n"
"  watch -n1 ballast stats\n"
"\n"
"Exit status: 1 when a PID has no counters; those of the others are printed.\n";

static const char plan_text[] =
"Usage: ballast plan PROFILE -b BUDGET [-s STRATEGY] [-p NAME=VALUE]...\n"
"                    [-o PLAN]\n"
"       ballast plan --list\n"
"\n"
"Decides, without a GPU, which bytes of a program's weights stay on the GPU and\n"
"which are streamed, and prints what that costs.\n"
"\n"
"  -b, --budget SIZE     GPU memory for the weights: bytes, 8G, 75% (of the\n"
"                        weights), or none: no limit, as little as costs no\n"
"                        time\n"
"  -s, --strategy NAME   optimal, or another of --list\n"
"  -p, --param NAME=VAL  a parameter of the strategy\n"
"  -o, --output PLAN     write the plan; - is standard output\n"
"      --list            all strategies with parameters and defaults\n"
"\n"
"The period is that of an iteration in the steady state, with all copies on one\n"
"link; the bound is proven: no plan of that budget is faster.\n"
"\n"
"Examples:\n"
"  ballast plan model.profile.json -b 8G -o model.plan.json\n"
"  ballast plan model.profile.json -b 50% -s greedy -p n_blocks=2\n"
"\n"
"Exit status: 1 when there is no valid plan or a file is wrong.  The files are\n"
"described in ballast-files(5).\n";

static const char compare_text[] =
"Usage: ballast compare PROFILE... [-b BUDGET,...] [-s STRATEGY,...] [--json]\n"
"\n"
"Plans by all strategies, side by side.\n"
"\n"
"  -b, --budget LIST     budgets as for 'ballast plan'; without: those that the\n"
"                        profile names, or 25%, 50%, 75% and none\n"
"  -s, --strategy LIST   these strategies only\n"
"      --json            one object a line, for programs\n"
"\n"
"Example:\n"
"  ballast compare model.profile.json -b 4G,8G -s optimal,adaptive\n";

static const char simulate_text[] =
"Usage: ballast simulate PROFILE PLAN [--rows N] [--trace FILE]\n"
"\n"
"Runs a plan with the times of a profile and draws one iteration of its steady\n"
"state.  The profile may be a later one of the same weights.\n"
"\n"
"      --rows N      lines of the chart, 40 if not given; 0: one for each layer\n"
"      --trace FILE  also as a Chrome trace, for chrome://tracing or Perfetto\n"
"\n"
"Example:\n"
"  ballast simulate model.profile.json model.plan.json --trace t.json\n";

static const char show_text[] =
"Usage: ballast show PLAN|PROFILE [-b BUDGET] [--html FILE]\n"
"\n"
"Prints a plan or profile as tables.\n"
"\n"
"  -b, --budget SIZE  of a profile: the plan that Ballast would follow\n"
"      --html FILE    a page with memory map, timeline and the period under\n"
"                     other budgets (of a profile: for half of the weights if\n"
"                     -b is not given)\n"
"\n"
"Example:\n"
"  ballast show model.plan.json --html plan.html\n";

static const char help_text[] =
"Usage: ballast help [COMMAND]\n"
"\n"
"Explains a command.\n";

static const struct command commands[] = {
	{ "run", cmd_run, "start a program under Ballast", run_text },
	{ "config", cmd_config, "show the configuration in effect",
		config_text },
	{ "stats", cmd_stats, "show the counters of running programs",
		stats_text },
	{ "plan", cmd_plan, "decide what stays on the GPU, offline",
		plan_text },
	{ "compare", cmd_compare, "set the strategies side by side",
		compare_text },
	{ "simulate", cmd_simulate, "run a plan on paper", simulate_text },
	{ "show", cmd_show, "show a plan or profile, also as a page",
		show_text },
	{ "help", run_help, "explain a command", help_text },
};

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void print_overview(void)
{
	size_t i;

	printf("Ballast %s: run CUDA programs that need more memory than the "
		"GPU has.\n"
		"\n"
		"Usage: ballast COMMAND [options]\n"
		"\n", BALLAST_VERSION);
	for (i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].line);
	printf("\n"
		"First try:  ballast run -- ./my_program\n"
		"More:       ballast help run\n");
}

int cmd_help(const char *command)
{
	const struct command *c;

	if (!command) {
		print_overview();
		return cli_flush(EXIT_OK);
	}
	c = find_command(command);
	if (!c)
		cli_usage(NULL, "there is no command '%s'", command);
	fputs(c->help, stdout);
	return cli_flush(EXIT_OK);
}

static int run_help(int argc, char **argv)
{
	if (argc > 2)
		cli_usage("help", "one command at a time");
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return cmd_help("help");
	return cmd_help(argc > 1 ? argv[1] : NULL);
}

int main(int argc, char **argv)
{
	const struct command *c;
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		cli_usage(NULL, "which command?  See 'ballast help'");
	} else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		return cmd_help(NULL);
	} else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("ballast %s\n", BALLAST_VERSION);
		return cli_flush(EXIT_OK);
	}
	c = find_command(name);
	if (c)
		return c->run(argc - 1, argv + 1);
	if (name[0] == '-')
		cli_usage(NULL, "there is no option '%s' before a command",
			name);
	if (strchr(name, '/') || argc > 2)
		cli_usage(NULL, "there is no command '%s'; to start a program: "
			"ballast run -- %s", name, name);
	cli_usage(NULL, "there is no command '%s'", name);
}

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
"      --strict          exit with 3 when nothing could be managed\n"
"      --soft[=KEY=VAL,...]\n"
"                        no GPU: use the software driver, for instance\n"
"                        --soft=memory=64M (sets SOFTCUDA_MEMORY)\n"
"      --dry-run         print what would be set and run, and stop\n"
"\n"
"The program's data fits the GPU budget plus the arena, or an allocation fails\n"
"as it would on a full GPU; the last line then names the key to change.\n"
"\n"
"Examples:\n"
"  ballast run -- ./my_program --model big.bin\n"
"  ballast run -b 6G --arena 24G -- python3 generate.py\n"
"  ballast run --soft=memory=64M -- build/e2e/decoder\n"
"\n"
"Did it work?  Ballast writes a line when it becomes active and a summary at\n"
"the end; 'ballast stats' shows counters in between.  A program that made no\n"
"CUDA call is told of.\n"
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
"in the arena, bytes copied, time waited.  Without PID: all of yours.\n"
"\n"
"      --json  an array of objects; sizes in bytes, times in nanoseconds\n"
"\n"
"Example:\n"
"  watch -n1 ballast stats\n";

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
		printf("  %-8s %s\n", commands[i].name, commands[i].line);
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
		cli_usage(NULL, "which command?  run, config, stats or help");
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

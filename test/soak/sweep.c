/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The failure sweep over one program: runs it again and again, each time with
 * one more driver call (or one more allocation of Ballast's) failing, until a
 * run sees no failure.  A run must print what the program prints by itself,
 * or end with status 1 and name a CUDA error; no signal, no hang, no report of
 * driver or sanitizer, nothing of Ballast's lost at its end.  Called by
 * sweep.sh, which sets the environment; no locks, one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 16
#define MAX_SHOWN 6
#define TEXT_BYTES 65536
#define CHUNK_BYTES 65536	/* as sweep.sh sets it */

/* What the driver and Ballast say that they still hold. */
struct left {
	unsigned handles, ranges, events, pinned;
	unsigned long long lost, arena, held;
	bool known;		/* Ballast said its part */
};

struct job {
	pid_t pid;		/* 0: none */
	unsigned long n;
	uint64_t deadline;
	bool killed;
};

static struct {
	const char *name, *preload, *want, *dir;
	const char *code;	/* NULL: allocations fail, not driver calls */
	unsigned long first, step, last, seconds, nr_jobs;
	char **argv;
} opt = { .name = "?", .first = 1, .step = 1, .last = 1000000,
	.seconds = 30, .nr_jobs = 2 };

static struct left usual;
static unsigned long nr_same, nr_error, nr_bad;

static void die(const char *what)
{
	fprintf(stderr, "sweep: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void path_of(char *out, size_t size, const char *kind, unsigned long n)
{
	snprintf(out, size, "%s/%s.%lu", opt.dir, kind, n);
}

/* The file's first bytes as a string, static; "" where there is no file. */
static const char *text_of(const char *kind, unsigned long n)
{
	static char text[2][TEXT_BYTES];
	static int turn;
	char path[512], *out = text[turn ^= 1];
	ssize_t got = 0;
	int fd;

	path_of(path, sizeof(path), kind, n);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		got = read(fd, out, TEXT_BYTES - 1);
		close(fd);
	}
	out[got > 0 ? got : 0] = '\0';
	return out;
}

static void redirect(const char *kind, unsigned long n, int to)
{
	char path[512];
	int fd;

	path_of(path, sizeof(path), kind, n);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	close(fd);
}

/* The child: fails its n-th call, or none where n is 0. */
static void child(unsigned long n)
{
	char path[512], text[64];

	redirect("out", n, STDOUT_FILENO);
	redirect("err", n, STDERR_FILENO);
	path_of(path, sizeof(path), "rep", n);
	setenv("SOFTCUDA_REPORT", path, 1);
	path_of(path, sizeof(path), "log", n);
	setenv("BALLAST_LOG_FILE", path, 1);
	setenv("LD_PRELOAD", opt.preload, 1);
	setenv("SOFTCUDA_VERBOSE", "1", 1);
	snprintf(text, sizeof(text), "%lu%s%s", n, opt.code ? ":" : "",
		opt.code ? opt.code : "");
	if (n > 0)
		setenv(opt.code ? "SOFTCUDA_FAIL_NTH" : "FAILALLOC_NTH", text,
			1);
	execv(opt.argv[0], opt.argv);
	_exit(127);
}

/* The files of a run, as far as they are there. */
static void forget(unsigned long n)
{
	static const char *const kinds[] = { "out", "err", "log", "rep" };
	char path[512];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		path_of(path, sizeof(path), kinds[i], n);
		unlink(path);
	}
}

static void job_start(struct job *j, unsigned long n)
{
	fflush(stdout);
	forget(n);		/* of an earlier sweep; logs are appended to */
	j->n = n;
	j->killed = false;
	j->deadline = now_ms() + opt.seconds * 1000;
	j->pid = fork();
	if (j->pid < 0)
		die("fork");
	if (j->pid == 0)
		child(n);
}

/* Waits for any job, killing what is late; its number and status. */
static struct job *job_wait(struct job *jobs, int *status)
{
	const struct timespec nap = { 0, 1000000 };

	for (;;) {
		for (unsigned long i = 0; i < opt.nr_jobs; i++) {
			struct job *j = &jobs[i];

			if (j->pid == 0)
				continue;
			if (waitpid(j->pid, status, WNOHANG) == j->pid)
				return j;
			if (!j->killed && now_ms() > j->deadline) {
				j->killed = true;
				kill(j->pid, SIGKILL);
			}
		}
		nanosleep(&nap, NULL);
	}
}

/* ---- the verdict ---- */

/* What the driver and Ballast say last. */
static void left_read(unsigned long n, struct left *l)
{
	const char *at = strstr(text_of("err", n), "softcuda: at exit: ");

	memset(l, 0, sizeof(*l));
	if (at != NULL)
		l->known = sscanf(at, "softcuda: at exit: %u memory handles, "
			"%u address ranges, %u events, %u pinned", &l->handles,
			&l->ranges, &l->events, &l->pinned) == 4;
	at = strstr(text_of("log", n), "left: ");
	l->known &= at != NULL && sscanf(at, "left: %llu bytes lost, %llu of "
		"the arena, %llu held", &l->lost, &l->arena, &l->held) == 3;
}

static const char *left_judge(const struct left *l)
{
	if (l->ranges > usual.ranges)
		return "address ranges leaked";
	/* Ballast keeps what it made; the driver must know of no more. */
	if (l->handles > l->held / CHUNK_BYTES)
		return "memory handles leaked";
	if (l->events > usual.events)
		return "events leaked";
	if (l->pinned > usual.pinned)
		return "pinned memory leaked";
	if (l->lost > usual.lost)
		return "GPU memory is lost";
	if (l->arena > usual.arena)
		return "arena memory leaked";
	return NULL;
}

/* How much of s is left once lines of timings and sizes are out; in place. */
static void results(const char *s, char *out, size_t size)
{
	size_t n = 0;

	while (*s != '\0') {
		const char *end = strchr(s, '\n');
		size_t len = end ? (size_t)(end - s) + 1 : strlen(s);
		bool timing = !strncmp(s, "ms_per_", 7) ||
			!strncmp(s, "gpu_bytes:", 10);

		if (!timing && n + len < size) {
			memcpy(out + n, s, len);
			n += len;
		}
		s += len;
	}
	out[n] = '\0';
}

/* NULL, or what is wrong with the run. */
static const char *judge(unsigned long n, int status, bool killed)
{
	static char got[TEXT_BYTES];
	struct left l;

	if (killed)
		return "it hangs";
	if (strstr(text_of("err", n), "Sanitizer") != NULL ||
	    strstr(text_of("err", n), "runtime error:") != NULL)
		return "a sanitizer reports";
	if (*text_of("rep", n) != '\0')
		return "the driver reports";
	if (WIFSIGNALED(status))
		return "it dies by a signal";
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
		nr_error++;
		return strstr(text_of("err", n), "CUDA_ERROR_") == NULL ?
			"it fails without naming a CUDA error" : NULL;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		return "it ends with a strange status";
	results(text_of("out", n), got, sizeof(got));
	if (strcmp(got, opt.want) != 0)
		return "its output differs";
	nr_same++;
	left_read(n, &l);
	return n > 0 ? left_judge(&l) : NULL;
}

static void show(unsigned long n, const char *why)
{
	static const char *const kinds[] = { "out", "err", "log", "rep" };

	printf("%s: failure %lu%s%s: %s\n", opt.name, n, opt.code ? ":" : "",
		opt.code ? opt.code : " (allocation)", why);
	for (size_t i = 0; i < 4 && nr_bad <= MAX_SHOWN; i++) {
		const char *text = text_of(kinds[i], n);
		size_t len = strlen(text);

		if (len > 1500)
			text += len - 1500;
		if (len > 0)
			printf("--- %s\n%s", kinds[i], text);
	}
}

static bool was_injected(unsigned long n)
{
	const char *err = text_of("err", n);

	return opt.code ? strstr(err, " injected") != NULL :
		strstr(err, "failure injected") != NULL;
}

/* Takes note of an ended run; true: it saw a failure. */
static bool job_end(struct job *j, int status)
{
	const char *why = judge(j->n, status, j->killed);
	bool injected = was_injected(j->n);

	j->pid = 0;
	if (why != NULL) {
		nr_bad++;
		show(j->n, why);
	}
	if (why == NULL)
		forget(j->n);
	return injected || j->killed;
}

static void sweep(void)
{
	struct job jobs[MAX_JOBS] = { 0 };
	unsigned long n = opt.first, running = 0;
	struct job *ended;
	bool more = true;
	int status;

	while (more || running > 0) {
		for (unsigned long i = 0; i < opt.nr_jobs && more; i++)
			if (jobs[i].pid == 0 && n <= opt.last) {
				job_start(&jobs[i], n);
				n += opt.step;
				running++;
			}
		more &= n <= opt.last;
		if (running == 0)
			break;
		ended = job_wait(jobs, &status);
		if (!job_end(ended, status))
			more = false;
		running--;
	}
}

/* Without a failure the program must do right, and shows what is usual. */
static void first_run(void)
{
	struct job one[MAX_JOBS] = { 0 };
	const char *why;
	int status;

	job_start(&one[0], 0);
	job_wait(one, &status);
	why = judge(0, status, one[0].killed);
	left_read(0, &usual);
	if (why == NULL && nr_same == 0)
		why = "it fails by itself";
	if (why == NULL && !usual.known)
		why = "nothing says what is left";
	if (why != NULL) {
		nr_bad++;
		show(0, why);
		exit(1);
	}
	nr_same = nr_error = 0;
}

static char *file_text(const char *path)
{
	char *text = calloc(1, TEXT_BYTES), *out = calloc(1, TEXT_BYTES);
	FILE *f = fopen(path, "r");

	if (f == NULL || text == NULL || out == NULL)
		die(path);
	if (fread(text, 1, TEXT_BYTES - 1, f) == 0 && ferror(f))
		die(path);
	fclose(f);
	results(text, out, TEXT_BYTES);
	free(text);
	return out;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+n:p:w:d:c:f:s:l:t:j:")) != -1) {
		switch (c) {
		case 'n': opt.name = optarg; break;
		case 'p': opt.preload = optarg; break;
		case 'w': opt.want = file_text(optarg); break;
		case 'd': opt.dir = optarg; break;
		case 'c': opt.code = optarg; break;
		case 'f': opt.first = strtoul(optarg, NULL, 10); break;
		case 's': opt.step = strtoul(optarg, NULL, 10); break;
		case 'l': opt.last = strtoul(optarg, NULL, 10); break;
		case 't': opt.seconds = strtoul(optarg, NULL, 10); break;
		case 'j': opt.nr_jobs = strtoul(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	opt.argv = argv + optind;
	if (opt.preload == NULL || opt.want == NULL || opt.dir == NULL ||
	    optind == argc || opt.step == 0 || opt.first == 0 ||
	    opt.nr_jobs == 0 || opt.nr_jobs > MAX_JOBS) {
		fprintf(stderr, "usage: sweep -n name -p preload -w wanted "
			"-d dir [-c code] [-f first] [-s step] [-l last] "
			"[-t seconds] [-j jobs] program args...\n");
		return 2;
	}
	first_run();
	sweep();
	printf("%-12s %-14s %5lu same results, %5lu clean errors, %lu bad\n",
		opt.name, opt.code ? opt.code : "allocations", nr_same,
		nr_error, nr_bad);
	return nr_bad > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf.c, conf_value.c: values, precedence, origins, complaints.
 */
#include "shim/conf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/unit.h"

static char dir[] = "/tmp/ballast-conf-XXXXXX";
static char origins[NR_CONF][CONF_TEXT_MAX];
static struct {
	int nr;
	char origin[8][PATH_MAX];
	char text[8][1024];
} said;

static void note(void *arg, const char *origin, const char *text)
{
	ck_assert_ptr_eq(arg, &said);
	if (said.nr < 8) {
		snprintf(said.origin[said.nr], PATH_MAX, "%s", origin);
		snprintf(said.text[said.nr], 1024, "%s", text);
	}
	said.nr++;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

/* Every test in an empty folder with a clean environment. */
static void setup(void)
{
	ck_assert_int_eq(clearenv(), 0);
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	memset(&said, 0, sizeof(said));
}

static void teardown(void)
{
	unlink("preload.conf");
	unlink("other.conf");
	ck_assert_int_eq(chdir("/"), 0);
	rmdir(dir);
}

static int load(struct conf *c)
{
	return conf_load(c, origins, note, &said);
}

START_TEST(sizes)
{
	static const struct {
		const char *text;
		int err;
		uint64_t value;
	} t[] = {
		{ "0", 0, 0 }, { "17", 0, 17 }, { "4K", 0, 4096 },
		{ "4k", 0, 4096 }, { "2M", 0, 2 << 20 },
		{ "1.5G", 0, 3ull << 29 }, { "1T", 0, 1ull << 40 },
		{ "8GiB", 0, 8ull << 30 }, { "8 GB", 0, 8ull << 30 },
		{ " 12 ", 0, 12 }, { "12B", 0, 12 }, { "auto", 0, CONF_AUTO },
		{ "AUTO", 0, CONF_AUTO }, { "0.5K", 0, 512 },
		{ "", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "G", -EINVAL, 0 },
		{ "1X", -EINVAL, 0 }, { "1M2", -EINVAL, 0 },
		{ "1 2", -EINVAL, 0 }, { "automatic", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 }, { "1e9", -EINVAL, 0 },
		{ "50%", -EINVAL, 0 }, { "18446744073709551615", -ERANGE, 0 },
		{ "16777216T", -ERANGE, 0 }, { "16777215T", 0,
			16777215ull << 40 },
		{ "99999999999999999999999999999999999999999T", -ERANGE, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		uint64_t v = 42;

		ck_assert_msg(conf_parse_size(t[i].text, &v) == t[i].err,
			"%s: wrong status", t[i].text);
		ck_assert_msg(v == (t[i].err ? 42 : t[i].value), "%s: %llu",
			t[i].text, (unsigned long long)v);
	}
}
END_TEST

START_TEST(budgets)
{
	struct conf_budget b = { 1, 2 };

	ck_assert_int_eq(conf_parse_budget("6G", &b), 0);
	ck_assert(b.bytes == 6ull << 30 && b.percent == 0);
	ck_assert_int_eq(conf_parse_budget("75%", &b), 0);
	ck_assert(b.percent == 75);
	ck_assert(conf_budget_bytes(&b, 1000) == 750);
	ck_assert_int_eq(conf_parse_budget(" 12.5 % ", &b), 0);
	ck_assert(b.percent == 12.5);
	ck_assert_int_eq(conf_parse_budget("100%", &b), 0);
	ck_assert(conf_budget_bytes(&b, UINT64_MAX >> 1) == UINT64_MAX >> 1);
	ck_assert_int_eq(conf_parse_budget("0%", &b), -ERANGE);
	ck_assert_int_eq(conf_parse_budget("101%", &b), -ERANGE);
	ck_assert_int_eq(conf_parse_budget("99999999999999999999999%", &b),
		-ERANGE);
	ck_assert_int_eq(conf_parse_budget("%", &b), -EINVAL);
	ck_assert_int_eq(conf_parse_budget("-5%", &b), -EINVAL);
	ck_assert_int_eq(conf_parse_budget("5%x", &b), -EINVAL);
	ck_assert_int_eq(conf_parse_budget("5G%", &b), -EINVAL);
	ck_assert(b.percent == 100);
	/* Not a byte's part. */
	ck_assert_int_eq(conf_parse_budget(" 0.75 ", &b), 0);
	ck_assert(b.percent == 75);
	ck_assert_int_eq(conf_parse_budget("1.0", &b), 0);
	ck_assert(b.percent == 100);
	ck_assert_int_eq(conf_parse_budget("0.0", &b), -ERANGE);
	ck_assert_int_eq(conf_parse_budget("1.5", &b), -ERANGE);
	ck_assert_int_eq(conf_parse_budget("0.5x", &b), -EINVAL);
	ck_assert_int_eq(conf_parse_budget("1.5G", &b), 0);
	ck_assert(b.bytes == 3ull << 29 && b.percent == 0);
	ck_assert_int_eq(conf_parse_budget("auto", &b), 0);
	ck_assert(conf_budget_bytes(&b, 1000) == CONF_AUTO);
}
END_TEST

START_TEST(mib)
{
	struct conf c;
	char buf[64];

	ck_assert_int_eq(conf_set(&c, CONF_ID_threshold_mb, "0.1"), 0);
	ck_assert_uint_eq(c.threshold_mb, 104857);
	ck_assert_int_eq(conf_set(&c, CONF_ID_threshold_mb, " 12 "), 0);
	ck_assert_uint_eq(c.threshold_mb, 12u << 20);
	ck_assert_str_eq(conf_format(&c, CONF_ID_threshold_mb, buf,
		sizeof(buf)), "12");
	ck_assert_int_eq(conf_set(&c, CONF_ID_threshold_mb, "100K"), 0);
	ck_assert_uint_eq(c.threshold_mb, 100u << 10);
	ck_assert_int_eq(conf_set(&c, CONF_ID_threshold_mb, "auto"), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_threshold_mb, "1 x"), -EINVAL);
}
END_TEST

START_TEST(other_types)
{
	struct conf c;

	memset(&c, 0, sizeof(c));
	ck_assert_int_eq(conf_set(&c, CONF_ID_enabled, "Yes"), 0);
	ck_assert(c.enabled);
	ck_assert_int_eq(conf_set(&c, CONF_ID_enabled, "off"), 0);
	ck_assert(!c.enabled);
	ck_assert_int_eq(conf_set(&c, CONF_ID_enabled, "2"), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_enabled, ""), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_wait_ms, "250"), 0);
	ck_assert(c.wait_ms == 250);
	ck_assert_int_eq(conf_set(&c, CONF_ID_wait_ms, "-250"), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_wait_ms, "1s"), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_wait_ms,
		"99999999999999999999"), -ERANGE);
	ck_assert_int_eq(conf_set(&c, CONF_ID_report_memory, "virtual"), 0);
	ck_assert_int_eq(c.report_memory, REPORT_VIRTUAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_report_memory, "Physical"), 0);
	ck_assert_int_eq(c.report_memory, REPORT_PHYSICAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_report_memory, "virtua"),
		-EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_report_memory,
		"physical|virtual"), -EINVAL);
	ck_assert_int_eq(conf_set(&c, CONF_ID_log_file, "/a b"), 0);
	ck_assert_str_eq(c.log_file.text, "/a b");
}
END_TEST

START_TEST(too_long_text)
{
	char text[CONF_TEXT_MAX + 1];
	struct conf c;

	memset(text, 'x', sizeof(text));
	text[CONF_TEXT_MAX - 1] = '\0';
	ck_assert_int_eq(conf_set(&c, CONF_ID_log_file, text), 0);
	ck_assert_str_eq(c.log_file.text, text);
	text[CONF_TEXT_MAX - 1] = 'x';
	text[CONF_TEXT_MAX] = '\0';
	ck_assert_int_eq(conf_set(&c, CONF_ID_log_file, text), -ERANGE);
}
END_TEST

/* What conf_format writes, conf_set reads to the same value. */
START_TEST(round_trip)
{
	static const char *const values[][2] = {
		[CONF_BOOL] = { "true", "false" },
		[CONF_SIZE] = { "1536M", "0" },
		[CONF_MIB] = { "0.1", "1536" },
		[CONF_BUDGET] = { "12.5%", "3G" },
		[CONF_COUNT] = { "0", "4294967295" },
		[CONF_CHOICE] = { NULL, NULL },
		[CONF_TEXT] = { "", "/tmp/a = b" },
	};
	char buf[CONF_TEXT_MAX], again[CONF_TEXT_MAX];
	struct conf c, d;
	int id, i;

	memset(&c, 0, sizeof(c));
	memset(&d, 0, sizeof(d));
	for (id = 0; id < NR_CONF; id++) {
		ck_assert_int_eq(conf_set(&c, id, conf_rows[id].dflt), 0);
		conf_format(&c, id, buf, sizeof(buf));
		ck_assert_str_eq(buf, conf_rows[id].dflt);
		for (i = 0; i < 2; i++) {
			const char *v = values[conf_rows[id].type][i];

			if (v == NULL)
				continue;
			ck_assert_int_eq(conf_set(&c, id, v), 0);
			conf_format(&c, id, buf, sizeof(buf));
			ck_assert_int_eq(conf_set(&d, id, buf), 0);
			conf_format(&d, id, again, sizeof(again));
			ck_assert_str_eq(buf, again);
		}
	}
}
END_TEST

/* A key that has no automatic value would take it for a huge size. */
START_TEST(auto_only_where_default)
{
	struct conf c;
	int id, want;

	for (id = 0; id < NR_CONF; id++) {
		if (conf_rows[id].type != CONF_SIZE)
			continue;
		ck_assert_int_eq(conf_set(&c, id, "1M"), 0);
		want = strcmp(conf_rows[id].dflt, "auto") == 0 ? 0 : -EINVAL;
		ck_assert_int_eq(conf_set(&c, id, "auto"), want);
	}
	ck_assert(c.arena == CONF_AUTO && c.min_alloc == 1 << 20);
}
END_TEST

START_TEST(every_choice)
{
	char buf[64], word[64];
	struct conf c;
	int id;

	for (id = 0; id < NR_CONF; id++) {
		const char *p = conf_rows[id].choices;

		while (p != NULL && *p != '\0') {
			size_t len = strcspn(p, "|");

			snprintf(word, sizeof(word), "%.*s", (int)len, p);
			ck_assert_int_eq(conf_set(&c, id, word), 0);
			conf_format(&c, id, buf, sizeof(buf));
			ck_assert_str_eq(buf, word);
			p += len + (p[len] == '|');
		}
	}
}
END_TEST

START_TEST(finding)
{
	ck_assert_int_eq(conf_find("arena"), CONF_ID_arena);
	ck_assert_int_eq(conf_find("ARENA"), CONF_ID_arena);
	ck_assert_int_eq(conf_find("aren"), -ENOENT);
	ck_assert_int_eq(conf_find(""), -ENOENT);
}
END_TEST

START_TEST(for_people)
{
	char b[16];

	ck_assert_str_eq(conf_size_text(0, b, sizeof(b)), "0 B");
	ck_assert_str_eq(conf_size_text(1023, b, sizeof(b)), "1023 B");
	ck_assert_str_eq(conf_size_text(512 << 10, b, sizeof(b)), "512 KiB");
	ck_assert_str_eq(conf_size_text(3ull << 29, b, sizeof(b)), "1.50 GiB");
	ck_assert_str_eq(conf_size_text((1ull << 30) - 1, b, sizeof(b)),
		"1023.99 MiB");
	ck_assert_str_eq(conf_size_text(1ull << 30, b, sizeof(b)), "1 GiB");
	conf_size_text(UINT64_MAX, b, sizeof(b));
	ck_assert_uint_lt(strlen(b), sizeof(b));
}
END_TEST

START_TEST(defaults)
{
	struct conf c;

	/* The constructor has run. */
	ck_assert(conf.enabled && conf.window == 1ull << 40);
	ck_assert_int_eq(load(&c), 0);
	ck_assert(c.enabled && !c.strict && c.stats);
	ck_assert(c.gpu_budget.bytes == CONF_AUTO && c.gpu_budget.percent == 0);
	ck_assert(c.min_alloc == 2 << 20 && c.arena == CONF_AUTO);
	ck_assert_int_eq(c.report_memory, REPORT_RECLAIMABLE);
	ck_assert_str_eq(c.log_file.text, "");
	ck_assert_str_eq(origins[CONF_ID_arena], "default");
}
END_TEST

START_TEST(precedence)
{
	struct conf c;

	write_file("preload.conf", "# a comment\n\narena = 1G\npool = 1M\n"
		"min_alloc = 4M\n");
	write_file("other.conf", "arena = 2G\n  pool = 2M ; and why\n");
	ck_assert_int_eq(load(&c), 0);
	ck_assert(c.arena == 1ull << 30 && c.pool == 1 << 20);
	ck_assert_str_eq(origins[CONF_ID_arena], "preload.conf:3");
	setenv("BALLAST_CONFIG", "other.conf", 1);
	ck_assert_int_eq(load(&c), 0);
	ck_assert(c.arena == 2ull << 30 && c.pool == 2 << 20);
	ck_assert(c.min_alloc == 4 << 20);
	ck_assert_str_eq(origins[CONF_ID_pool], "other.conf:2");
	ck_assert_str_eq(origins[CONF_ID_min_alloc], "preload.conf:5");
	setenv("BALLAST_ARENA", "3G", 1);
	ck_assert_int_eq(load(&c), 0);
	ck_assert(c.arena == 3ull << 30);
	ck_assert_str_eq(origins[CONF_ID_arena], "environment BALLAST_ARENA");
	ck_assert_int_eq(said.nr, 0);
}
END_TEST

START_TEST(bad_values)
{
	struct conf c;

	write_file("preload.conf", "arena = 1G\narena = lots\nwindwo = 1T\n"
		"no equals sign\nreport_memory = some\n[other]\npool = 1M\n"
		"[ballast]\nchunk = 4M\n");
	ck_assert_int_eq(load(&c), 5);
	ck_assert_int_eq(said.nr, 5);
	ck_assert_str_eq(said.origin[0], "preload.conf:2");
	ck_assert_str_eq(said.text[0], "arena = lots: expected a size such as "
		"512M, or auto; using 1G");
	ck_assert_str_eq(said.origin[1], "preload.conf:3");
	ck_assert_ptr_nonnull(strstr(said.text[1], "windwo: no such key"));
	ck_assert_str_eq(said.origin[2], "preload.conf:4");
	ck_assert_str_eq(said.origin[3], "preload.conf:5");
	ck_assert_ptr_nonnull(strstr(said.text[3],
		"physical|reclaimable|virtual"));
	ck_assert_str_eq(said.origin[4], "preload.conf:7");
	ck_assert(c.arena == 1ull << 30);
	ck_assert(c.pool == CONF_AUTO && c.chunk == 4 << 20);
	ck_assert_int_eq(c.report_memory, REPORT_RECLAIMABLE);
}
END_TEST

START_TEST(bad_environment)
{
	struct conf c;

	setenv("BALLAST_POOL", "big", 1);
	setenv("BALLAST_AREAN", "1G", 1);
	setenv("BALLAST_arena", "1G", 1);
	setenv("BALLAST_STATUS", "1:2:3", 1);
	setenv("BALLASTER", "1", 1);
	setenv("BALLAST_CONFIG", "absent.conf", 1);
	ck_assert_int_eq(load(&c), 4);
	ck_assert_str_eq(said.text[0],
		"absent.conf: cannot be read (no such file); it is ignored");
	ck_assert_str_eq(said.origin[0], "environment BALLAST_CONFIG");
	ck_assert_str_eq(said.origin[1], "environment BALLAST_POOL");
	ck_assert_ptr_nonnull(strstr(said.text[2], "BALLAST_AREAN: no such"));
	ck_assert_ptr_nonnull(strstr(said.text[3], "BALLAST_arena: no such"));
	ck_assert(c.pool == CONF_AUTO && c.arena == CONF_AUTO);
}
END_TEST

/* Long lines, no line end, a folder, binary noise. */
START_TEST(odd_files)
{
	char text[2000];
	struct conf c;

	memset(text, 'x', sizeof(text));
	memcpy(text, "log_file = ", 11);
	strcpy(text + sizeof(text) - 20, "\narena = 5M");
	write_file("preload.conf", text);
	ck_assert_int_eq(load(&c), 1);
	ck_assert_str_eq(said.origin[0], "preload.conf:1");
	ck_assert_ptr_nonnull(strstr(said.text[0], "too long"));
	ck_assert_str_eq(c.log_file.text, "");
	ck_assert(c.arena == 5 << 20);
	ck_assert_str_eq(origins[CONF_ID_arena], "preload.conf:2");
	write_file("preload.conf", "arena=6M\r\npool:7M\r\n\001\002=\003\n[x\n");
	ck_assert_int_eq(load(&c), 2);
	ck_assert(c.arena == 6 << 20 && c.pool == 7 << 20);
	unlink("preload.conf");
	ck_assert_int_eq(mkdir("preload.conf", 0700), 0);
	ck_assert_int_eq(load(&c), 0);
	setenv("BALLAST_CONFIG", "preload.conf", 1);
	ck_assert_int_eq(load(&c), 1);
	ck_assert_str_eq(said.text[said.nr - 1], "preload.conf: cannot be read "
		"(it is a folder); it is ignored");
	unsetenv("BALLAST_CONFIG");
	rmdir("preload.conf");
}
END_TEST

static Suite *conf_suite(void)
{
	Suite *s = suite_create("conf");
	TCase *t = tcase_create("values");

	tcase_add_test(t, sizes);
	tcase_add_test(t, budgets);
	tcase_add_test(t, mib);
	tcase_add_test(t, other_types);
	tcase_add_test(t, too_long_text);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, auto_only_where_default);
	tcase_add_test(t, every_choice);
	tcase_add_test(t, finding);
	tcase_add_test(t, for_people);
	suite_add_tcase(s, t);
	t = tcase_create("loading");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, defaults);
	tcase_add_test(t, precedence);
	tcase_add_test(t, bad_values);
	tcase_add_test(t, bad_environment);
	tcase_add_test(t, odd_files);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(conf_suite());
}

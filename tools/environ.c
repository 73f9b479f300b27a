/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the environment that `ballast run` adds.  Called by cmd_run.c.
 */
#include "tools/environ.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli.h"

/* What ld.so takes for the end of an LD_PRELOAD entry. */
#define PRELOAD_SEPARATORS " :"
#define PATH_SEPARATORS ":;"
#define SOFT_PREFIX "SOFTCUDA_"

static char *env_name(const char *prefix, const char *key, size_t len)
{
	char *name = cli_format("%s%.*s", prefix, (int)len, key);
	char *c;

	for (c = name; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
	return name;
}

void environ_set(struct environ_list *e, const char *name, const char *value)
{
	size_t i;

	for (i = 0; i < e->len; i++) {
		if (strcmp(e->names[i], name) == 0) {
			e->values[i] = cli_format("%s", value);
			return;
		}
	}
	if (e->len == ENVIRON_MAX)
		cli_usage("run", "too many settings");
	e->names[e->len] = cli_format("%s", name);
	e->values[e->len++] = cli_format("%s", value);
}

const char *environ_get(const struct environ_list *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->len; i++)
		if (strcmp(e->names[i], name) == 0)
			return e->values[i];
	return getenv(name);
}

static const char *conf_wants(const struct conf_row *row)
{
	switch (row->type) {
	case CONF_BOOL:
		return "true or false";
	case CONF_SIZE:
		return conf_has_auto(row) ?
			"a size such as 512M or 2G, or auto" :
			"a size such as 512M or 2G";
	case CONF_MIB:
		return "a number of MiB, or a size such as 512K";
	case CONF_BUDGET:
		return "a size such as 512M or 2G, a share such as 75% or "
			"0.75, or auto";
	case CONF_COUNT:
		return "a whole number, at most 4294967295";
	case CONF_CHOICE:
		return row->choices;
	case CONF_TEXT:
		break;
	}
	return "a text that is not too long";
}

void environ_set_conf(struct environ_list *e, enum conf_id id,
	const char *value)
{
	const struct conf_row *row = &conf_rows[id];
	static struct conf scratch;
	char *name;

	if (conf_set(&scratch, id, value) != 0)
		cli_usage("run", "'%s' is no value for %s: wanted is %s",
			value, row->key, conf_wants(row));
	name = env_name("BALLAST_", row->key, strlen(row->key));
	environ_set(e, name, value);
}

void environ_set_option(struct environ_list *e, const char *text)
{
	const char *eq = strchr(text, '=');
	char *key;
	int id;

	if (!eq || eq == text)
		cli_usage("run", "-o wants key=value, not '%s'", text);
	key = cli_format("%.*s", (int)(eq - text), text);
	id = conf_find(key);
	if (id < 0)
		cli_usage("run", "there is no key '%s'; 'ballast config' lists "
			"them", key);
	environ_set_conf(e, (enum conf_id)id, eq + 1);
}

/* A file in memory, to be read; NULL where that cannot be. */
static const char *map_file(const char *path, size_t *size)
{
	void *map = MAP_FAILED;
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		*size = (size_t)st.st_size;
		map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return map != MAP_FAILED ? map : NULL;
}

/*
 * The next string of the driver, after *at, that is the name of a knob and
 * nothing else.  So a typing error in a knob is told, without a second list of
 * knobs that could fall behind.
 */
static const char *next_knob(const char *map, size_t size, size_t *at)
{
	static const char head[] = "\0" SOFT_PREFIX;
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	const char *found, *name;
	size_t len;

	while (*at < size && (found = memmem(map + *at, size - *at, head,
	    sizeof(head) - 1)) != NULL) {
		name = found + 1;
		*at = (size_t)(name - map) + strlen(SOFT_PREFIX);
		for (len = *at; len < size && map[len] &&
		    strchr(letters, map[len]); len++)
			;
		if (len > *at && len < size && !map[len])
			return name;
	}
	return NULL;
}

static bool driver_has_knob(const char *driver, const char *name)
{
	size_t size = 0, at = 0;
	const char *map = map_file(driver, &size), *knob = NULL;

	while (map && (knob = next_knob(map, size, &at)) != NULL)
		if (strcmp(knob, name) == 0)
			break;
	if (map)
		munmap((void *)map, size);
	return knob != NULL;
}

void environ_print_soft(const char *driver)
{
	size_t size = 0, at = 0;
	const char *map = map_file(driver, &size), *knob, *c;

	if (!map)
		cli_die(EXIT_LAUNCHER, "%s: %s", driver, strerror(errno));
	printf("Knobs of the software driver, --soft=KEY=VALUE,... or "
		SOFT_PREFIX "KEY:\n\n");
	while ((knob = next_knob(map, size, &at)) != NULL) {
		printf("  ");
		for (c = knob + strlen(SOFT_PREFIX); *c; c++)
			putchar(tolower((unsigned char)*c));
		printf("\n");
	}
	munmap((void *)map, size);
	printf("\nWhat they mean, and their defaults: test/softcuda/README and "
		"knobs.def beside it,\nin the sources of Ballast.\n");
}

void environ_set_soft(struct environ_list *e, const char *text,
	const char *driver)
{
	char *rest = cli_format("%s", text), *item, *eq, *name;

	while ((item = strsep(&rest, ",")) != NULL) {
		if (!*item)
			continue;
		eq = strchr(item, '=');
		if (!eq || eq == item)
			cli_usage("run", "--soft wants key=value,..., not '%s'",
				item);
		name = env_name(SOFT_PREFIX, item, (size_t)(eq - item));
		if (!driver_has_knob(driver, name))
			cli_usage("run", "--soft: the software driver has no "
				"knob '%.*s'; --soft=help lists them",
				(int)(eq - item), item);
		environ_set(e, name, eq + 1);
	}
}

/* These die when another library comes before them. */
static bool is_sanitizer_runtime(const char *entry)
{
	static const char *const stems[] = {
		"libasan.so", "libtsan.so", "liblsan.so", "libubsan.so",
		"libhwasan.so", "libclang_rt.",
	};
	const char *base = cli_basename(entry);
	size_t i;

	for (i = 0; i < ARRAY_LEN(stems); i++)
		if (strncmp(base, stems[i], strlen(stems[i])) == 0)
			return true;
	return false;
}

static char *joined(char *list, const char *item)
{
	if (!*item)
		return list;
	return *list ? cli_format("%s:%s", list, item) :
		cli_format("%s", item);
}

int environ_preload(struct environ_list *e, const char *library)
{
	const char *old = environ_get(e, "LD_PRELOAD");
	char *copy = cli_format("%s", old ? old : ""), *rest = copy, *item;
	char *first = cli_format("%s", ""), *after = cli_format("%s", "");

	if (library[strcspn(library, PRELOAD_SEPARATORS)] != '\0')
		return -EINVAL;
	while ((item = strsep(&rest, PRELOAD_SEPARATORS)) != NULL) {
		if (strcmp(item, library) == 0)
			continue;	/* ballast within ballast */
		if (is_sanitizer_runtime(item))
			first = joined(first, item);
		else
			after = joined(after, item);
	}
	first = joined(joined(first, library), after);
	environ_set(e, "LD_PRELOAD", first);
	return 0;
}

int environ_library_path(struct environ_list *e, const char *folder)
{
	const char *old = environ_get(e, "LD_LIBRARY_PATH");
	char *text;

	if (folder[strcspn(folder, PATH_SEPARATORS)] != '\0')
		return -EINVAL;
	/* An empty element would mean the current folder; add none. */
	text = old && *old ? cli_format("%s:%s", folder, old) :
		cli_format("%s", folder);
	environ_set(e, "LD_LIBRARY_PATH", text);
	return 0;
}

void environ_apply(const struct environ_list *e)
{
	size_t i;

	for (i = 0; i < e->len; i++)
		if (setenv(e->names[i], e->values[i], 1) != 0)
			cli_die(EXIT_LAUNCHER, "cannot set %s: %s",
				e->names[i], strerror(errno));
}

void environ_print(const struct environ_list *e)
{
	size_t i;

	for (i = 0; i < e->len; i++)
		printf("export %s=%s\n", e->names[i],
			cli_quote(e->values[i]));
}

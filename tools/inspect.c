/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether LD_PRELOAD can work with a program.  Called by cmd_run.c.  What
 * cannot be read (execute-only files) counts as fine: the loader decides.
 */
#include "tools/inspect.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/cli.h"

#define GLIBC_LOADER "ld-linux-x86-64.so.2"
#define MAX_SCRIPTS 5	/* as the kernel: deeper interpreters are refused */

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

/* As execvp and the shells do: an unusable file is passed over, but told. */
static int find_in_path(const char *name, char *out)
{
	const char *dirs = getenv("PATH"), *end;
	int r, worst = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		if (strlen(name) >= PATH_MAX)
			return -ENAMETOOLONG;
		strcpy(out, name);
		return check_executable(name);
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		if ((size_t)(end - dirs) + strlen(name) + 2 < PATH_MAX) {
			size_t n = (size_t)(end - dirs);

			memcpy(out, dirs, n);
			if (n)
				out[n++] = '/';
			strcpy(out + n, name);
			r = check_executable(out);
			if (r == 0)
				return 0;
			if (r == -EACCES)
				worst = r;
		}
		if (!*end)
			return worst;
	}
}

static enum inspect_verdict check_setid(int fd, const struct stat *st)
{
	struct statvfs fs;

	/* Where the kernel grants nothing, the loader does not mind. */
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
		return INSPECT_OK;
	/* The loader's secure mode: a uid, gid or capability is gained. */
	if ((st->st_mode & S_ISUID) && st->st_uid != getuid())
		return INSPECT_SETID;
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    st->st_gid != getgid())
		return INSPECT_SETID;
	if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return INSPECT_CAPS;
	return INSPECT_OK;
}

static enum inspect_verdict check_loader(int fd, const Elf64_Phdr *ph,
	struct inspect *in)
{
	size_t size = ph->p_filesz < sizeof(in->loader) ? ph->p_filesz :
		sizeof(in->loader) - 1;
	ssize_t n = pread(fd, in->loader, size, (off_t)ph->p_offset);

	in->loader[n > 0 ? n : 0] = '\0';
	return n <= 0 || strcmp(cli_basename(in->loader), GLIBC_LOADER) == 0 ?
		INSPECT_OK : INSPECT_LIBC;
}

static enum inspect_verdict check_elf(int fd, const Elf64_Ehdr *eh,
	struct inspect *in)
{
	Elf64_Phdr ph;
	bool seen = false;
	int i;

	if (eh->e_ident[EI_CLASS] == ELFCLASS32)
		return INSPECT_32BIT;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != EM_X86_64)
		return INSPECT_ARCH;
	if (eh->e_phentsize != sizeof(ph))
		return INSPECT_OK;
	for (i = 0; i < eh->e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh->e_phoff +
		    (Elf64_Off)i * sizeof(ph))) != (ssize_t)sizeof(ph))
			return INSPECT_OK;
		seen = true;
		if (ph.p_type == PT_INTERP)
			return check_loader(fd, &ph, in);
	}
	/* A loader that is run as a program loads dynamically all the same. */
	if (strncmp(cli_basename(in->culprit), "ld-linux", 8) == 0)
		return INSPECT_OK;
	return seen ? INSPECT_STATIC : INSPECT_OK;
}

/*
 * The next program in a "#!" line: the interpreter, or what env(1) will look
 * up.  false: nothing more to follow.
 */
static bool script_next(char *line, char *out)
{
	char *rest = line, *word = strtok_r(rest, " \t\r\n", &rest);

	if (!word || strlen(word) >= PATH_MAX)
		return false;
	if (strcmp(cli_basename(word), "env") != 0) {
		strcpy(out, word);
		return true;
	}
	do {
		word = strtok_r(NULL, " \t\r\n", &rest);
	} while (word && (word[0] == '-' || strchr(word, '=')));
	return word && find_in_path(word, out) == 0;
}

static enum inspect_verdict inspect_file(struct inspect *in, bool *again)
{
	union {
		Elf64_Ehdr eh;
		char text[512];
	} head;
	enum inspect_verdict v = INSPECT_OK;
	struct stat st;
	ssize_t n;
	int fd;

	*again = false;
	fd = open(in->culprit, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return INSPECT_OK;
	memset(&head, 0, sizeof(head));
	n = read(fd, &head, sizeof(head) - 1);
	if (n >= (ssize_t)sizeof(head.eh) &&
	    memcmp(head.eh.e_ident, ELFMAG, SELFMAG) == 0) {
		if (fstat(fd, &st) == 0)
			v = check_setid(fd, &st);
		if (v == INSPECT_OK)
			v = check_elf(fd, &head.eh, in);
	} else if (n > 2 && memcmp(head.text, "#!", 2) == 0) {
		head.text[strcspn(head.text, "\n")] = '\0';
		*again = script_next(head.text + 2, in->culprit);
	} else if (n >= 0) {
		/* No magic: execvp and the shells give it to /bin/sh. */
		strcpy(in->culprit, "/bin/sh");
		*again = true;
	}
	close(fd);
	return v;
}

int inspect_program(const char *name, struct inspect *in)
{
	bool again = true;
	int i, r;

	memset(in, 0, sizeof(*in));
	r = find_in_path(name, in->path);
	if (r != 0)
		return r;
	strcpy(in->culprit, in->path);
	for (i = 0; i < MAX_SCRIPTS && again; i++)
		in->verdict = inspect_file(in, &again);
	return 0;
}

char *inspect_reason(const struct inspect *in)
{
	static const char *const why[] = {
		[INSPECT_STATIC] = "is a static program: no loader runs that "
			"could put Ballast in front of it",
		[INSPECT_SETID] = "is setuid or setgid: the loader ignores "
			"LD_PRELOAD for it",
		[INSPECT_CAPS] = "has file capabilities: the loader ignores "
			"LD_PRELOAD for it",
		[INSPECT_32BIT] = "is a 32-bit program; Ballast is 64-bit",
		[INSPECT_ARCH] = "is made for another processor",
	};

	if (in->verdict == INSPECT_OK)
		return NULL;
	if (in->verdict == INSPECT_LIBC)
		return cli_format("%s uses the loader %s; Ballast needs "
			"glibc's, and is left out", in->culprit, in->loader);
	return cli_format("%s %s", in->culprit, why[in->verdict]);
}

static bool is_elf64(const char *path)
{
	Elf64_Ehdr eh;
	bool yes;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	yes = read(fd, &eh, sizeof(eh)) == (ssize_t)sizeof(eh) &&
		memcmp(eh.e_ident, ELFMAG, SELFMAG) == 0 &&
		eh.e_ident[EI_CLASS] == ELFCLASS64 &&
		eh.e_machine == EM_X86_64;
	close(fd);
	return yes;
}

static bool driver_in_folders(const char *folders)
{
	char *copy = cli_format("%s", folders), *rest = copy, *dir, *path;
	bool found = false;

	while (!found && (dir = strsep(&rest, ":;")) != NULL) {
		path = cli_format("%s/libcuda.so.1", *dir ? dir : ".");
		found = is_elf64(path);
	}
	return found;
}

/*
 * The cache is a table in front of a heap of NUL-terminated strings.  A full
 * path that ends in the name is all that is wanted, so the table's format,
 * which has changed over time, need not be known.
 */
static bool driver_in_cache(void)
{
	static const char want[] = "/libcuda.so.1";	/* with its NUL */
	const char *map, *at, *start;
	bool found = false;
	struct stat st;
	int fd;

	fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) != 0 || st.st_size <= 0) {
		close(fd);
		return false;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return false;
	at = map;
	while (!found && (at = memmem(at, (size_t)(map + st.st_size - at), want,
	    sizeof(want))) != NULL) {
		for (start = at; start > map && start[-1]; )
			start--;
		found = is_elf64(start);
		at++;
	}
	munmap((void *)map, (size_t)st.st_size);
	return found;
}

bool inspect_has_driver(void)
{
	const char *path = getenv("LD_LIBRARY_PATH");

	return (path && *path && driver_in_folders(path)) ||
		driver_in_cache() ||
		driver_in_folders("/lib/x86_64-linux-gnu:"
			"/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:"
			"/usr/lib");
}

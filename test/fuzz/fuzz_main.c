/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of a fuzzer; see fuzz.h.
 */
#include "test/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of the exact size, so that a sanitizer sees a byte too many. */
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_one(text, size);
	free(text);
	return 0;
}

#ifdef FUZZ_REPLAY
static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	static uint8_t data[1 << 24];
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0, nr = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *d;
		char path[4096];

		if (!dir) {
			bad |= replay(argv[i]);
			nr++;
			continue;
		}
		while ((d = readdir(dir)) != NULL) {
			if (d->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i],
				d->d_name);
			bad |= replay(path);
			nr++;
		}
		closedir(dir);
	}
	printf("%d files\n", nr);
	return bad || !nr;
}
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over every file of a directory, so that each kept input
 * is an ordinary test with any compiler. A broken promise ends the process; the
 * last line written names the input.
 */
#include "fuzz.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <sys/stat.h>

enum { INPUT_MAX = 16 << 20 };

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* 1: run, 0: not a file, -1: cannot be read. */
static int replay(const char *path)
{
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file || fstat(fileno(file), &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > INPUT_MAX)
		return -1;
	/* Exactly as large as the input: a read past its end is seen by the sanitizer. */
	OB_AUTOFREE uint8_t *data = malloc((size_t)st.st_size ? (size_t)st.st_size : 1);
	if (!data || fread(data, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		return -1;
	(void)fprintf(stderr, "%s\n", path);
	(void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	return 1;
}

int main(int argc, char **argv)
{
	OB_CLEANUP(closedirp) DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	int count = 0;

	if (!dir) {
		(void)fprintf(stderr, "usage: replay DIRECTORY (a corpus that can be read)\n");
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[4096];

		(void)snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		int r = replay(path);
		if (r < 0) {
			(void)fprintf(stderr, "%s: %m\n", path);
			return 1;
		}
		count += r;
	}
	(void)printf("%d inputs\n", count);
	return count ? 0 : 1; /* an empty corpus tests nothing */
}

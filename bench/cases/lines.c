/* SPDX-License-Identifier: MIT */
/* Lines of C in the store, the relay and the log, beside those of the baseline. */
#include "base/cleanup.h"
#include "bench/cases/cases.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

static const char *const folders[] = { "src/store", "src/relay", "src/log" };
static uint64_t lines; /* nftw() hands nothing through */

/* The baseline has the doubles of its tests among them: they do not count. */
static bool is_double(const char *name)
{
	return strncmp(name, "memory", 6) == 0 || strncmp(name, "fault.", 6) == 0;
}

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t size = strlen(path);
	char line[4096];

	(void)st;
	if (type != FTW_F || size < 2 || path[size - 2] != '.' ||
	    (path[size - 1] != 'c' && path[size - 1] != 'h') || is_double(path + ftw->base))
		return 0;
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		lines++;
	return 0;
}

static uint64_t count_lines(const char *root)
{
	char path[BENCH_PATH];

	lines = 0;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
		(void)nftw(path, count_one, 16, FTW_PHYS);
	}
	return lines;
}

void bench_run_lines(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	uint64_t now = count_lines(BENCH_SOURCE);
	uint64_t before = count_lines(BENCH_SOURCE "/build-baseline/source");

	(void)env;
	(void)c;
	if (now)
		bench_result_add(result, "lines", (double)now);
	if (!now)
		bench_result_miss(result, "the source is not in " BENCH_SOURCE);
	if (!before) {
		bench_result_leave_out(result,
				       "the source of the baseline is not there: "
				       "bench/baseline");
		return;
	}
	bench_result_add(result, "keep_lines", (double)before);
	bench_result_add(result, "ratio", (double)now / (double)before);
}

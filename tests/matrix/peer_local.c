/* SPDX-License-Identifier: MIT */
/* The sinks without a server: standard output, a file, a handler. */
#include "matrix.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_lines(const char *destination)
{
	char path[128];
	const char *argv[] = { "cat", path, NULL };

	(void)destination;
	(void)snprintf(path, sizeof(path), "%s/out.ndjson", matrix_dir);
	return matrix_run(argv);
}

static char *read_printed(const char *destination)
{
	(void)destination;
	return strdup(matrix_printed);
}

const struct matrix_peer peer_stdout = { .type = "stdout", .read = read_printed };

static void file_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", path: out.ndjson");
}

const struct matrix_peer peer_file = {
	.type = "file",
	.options = file_options,
	.read = read_lines,
};

/* The handler appends to a file that is there. */
static void exec_begin(const char *destination)
{
	char path[128];

	(void)destination;
	(void)snprintf(path, sizeof(path), "%s/out.ndjson", matrix_dir);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	(void)fclose(f);
}

static void exec_options(char *out, size_t size)
{
	const char *handler = getenv("EXEC_HANDLER");

	ck_assert_msg(handler != NULL, "EXEC_HANDLER is not set");
	(void)snprintf(out, size, ", command: '%s %s/out.ndjson'", handler, matrix_dir);
}

const struct matrix_peer peer_exec = {
	.type = "exec",
	.begin = exec_begin,
	.options = exec_options,
	.read = read_lines,
};

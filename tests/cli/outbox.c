/* SPDX-License-Identifier: MIT */
/* What the tests of the command line share. */
#include "outbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64 };

char dir[64];
static const char *env[8];
static size_t env_count;

void begin(void)
{
	ob_temp_dir(dir);
	/* what the tester has set must not matter */
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	(void)unsetenv("COLUMNS");
}

void end(void)
{
	ob_temp_dir_remove(dir);
}

void set_env(const char *assignment)
{
	ck_assert_uint_lt(env_count, 7);
	env[env_count++] = assignment;
}

static struct ob_run run_words(const char *in, va_list ap)
{
	const char *words[WORDS_MAX] = { getenv("OUTBOX_BIN") };
	size_t count = 1;

	ck_assert_msg(words[0] != NULL, "OUTBOX_BIN is not set");
	do {
		ck_assert_uint_lt(count, WORDS_MAX);
		words[count] = va_arg(ap, const char *);
	} while (words[count++]);
	struct ob_run r = { .argv = words, .env = env, .dir = dir, .in = in };
	ob_run(&r);
	ck_assert(!r.timed_out);
	r.argv = NULL;
	return r;
}

struct ob_run outbox(const char *in, ...)
{
	va_list ap;

	va_start(ap, in);
	struct ob_run r = run_words(in, ap);
	va_end(ap);
	return r;
}

static void demand(struct ob_run *r, int code, const char *out, const char *err)
{
	if (err)
		ck_assert_str_eq(r->err, err);
	if (out)
		ck_assert_str_eq(r->out, out);
	ck_assert_msg(r->code == code, "exit code %d, not %d: %s", r->code, code, r->err);
	ob_run_done(r);
}

void expect(int code, const char *out, const char *err, ...)
{
	va_list ap;

	va_start(ap, err);
	struct ob_run r = run_words(NULL, ap);
	va_end(ap);
	demand(&r, code, out, err);
}

void expect_in(const char *in, int code, const char *out, const char *err, ...)
{
	va_list ap;

	va_start(ap, err);
	struct ob_run r = run_words(in, ap);
	va_end(ap);
	demand(&r, code, out, err);
}

void expect_in_output(const char *part, ...)
{
	va_list ap;

	va_start(ap, part);
	struct ob_run r = run_words(NULL, ap);
	va_end(ap);
	ck_assert_msg(strstr(r.out, part) != NULL, "no '%s' in: %s%s", part, r.out, r.err);
	demand(&r, 0, NULL, "");
}

const char *path_of(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

void put_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

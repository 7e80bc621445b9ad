/* SPDX-License-Identifier: MIT */
/* Every wait has a condition and a deadline. */
#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 32, LOOK_MS = 5, STOP_MS = 20000 };

int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void collect(const char **words, va_list ap)
{
	size_t count = 1;

	words[0] = getenv("OUTBOX_BIN");
	ck_assert_msg(words[0] != NULL, "OUTBOX_BIN is not set");
	do {
		ck_assert_uint_lt(count, WORDS_MAX);
		/* clang 14 loses sight of va_start.
		 * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
		words[count] = va_arg(ap, const char *);
	} while (words[count++]);
}

static void become(const char *const *words)
{
	closefrom(3);
	(void)signal(SIGPIPE, SIG_DFL);
	if (chdir(dir) == 0) {
		/* execv() promises not to write. NOLINTNEXTLINE(performance-no-int-to-ptr) */
		execv(words[0], (char *const *)(uintptr_t)words);
	}
	_exit(127);
}

void start(struct background *b, ...)
{
	static int number;
	const char *words[WORDS_MAX];
	va_list ap;

	va_start(ap, b);
	collect(words, ap);
	va_end(ap);
	b->pty = -1;
	number++;
	(void)snprintf(b->out, sizeof(b->out), "%s/background-%d.out", dir, number);
	(void)snprintf(b->err, sizeof(b->err), "%s/background-%d.err", dir, number);
	b->pid = fork();
	ck_assert_int_ge(b->pid, 0);
	if (b->pid == 0) {
		int in = open("/dev/null", O_RDONLY);
		int out = open(b->out, O_WRONLY | O_CREAT | O_APPEND, 0600);
		int err = open(b->err, O_WRONLY | O_CREAT | O_APPEND, 0600);

		if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(126);
		become(words);
	}
}

void start_on_pty(struct background *b, int columns, int lines, ...)
{
	struct winsize size = { .ws_col = (unsigned short)columns,
				.ws_row = (unsigned short)lines };
	const char *words[WORDS_MAX];
	va_list ap;

	va_start(ap, lines);
	collect(words, ap);
	va_end(ap);
	b->pid = forkpty(&b->pty, NULL, NULL, &size);
	ck_assert_int_ge(b->pid, 0);
	if (b->pid == 0)
		become(words);
}

int wait_end(struct background *b, int ms)
{
	int64_t end = now_ms() + ms;
	int status;

	while (waitpid(b->pid, &status, WNOHANG) == 0) {
		if (now_ms() > end) {
			kill_now(b);
			ck_abort_msg("it did not end in %d ms", ms);
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
	b->pid = 0;
	if (b->pty >= 0)
		(void)close(b->pty);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void kill_now(struct background *b)
{
	int status;

	if (b->pid <= 0)
		return;
	(void)kill(b->pid, SIGKILL);
	(void)waitpid(b->pid, &status, 0);
	b->pid = 0;
}

char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t size = 0, room = 1 << 16;
	char *data = malloc(room);

	ck_assert_ptr_nonnull(data);
	for (size_t n; f && (n = fread(data + size, 1, room - size - 1, f)) > 0;) {
		size += n;
		if (size + 1 == room) {
			room *= 2;
			data = realloc(data, room);
			ck_assert_ptr_nonnull(data);
		}
	}
	data[size] = '\0';
	if (f)
		(void)fclose(f);
	return data;
}

size_t line_count(const char *name)
{
	char *text = read_file(path_of(name));
	size_t lines = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	free(text);
	return lines;
}

void wait_lines(const char *name, size_t lines, int ms)
{
	int64_t end = now_ms() + ms;

	while (line_count(name) < lines) {
		ck_assert_msg(now_ms() < end, "%s has %zu of %zu lines", name, line_count(name),
			      lines);
		(void)poll(NULL, 0, LOOK_MS);
	}
}

void wait_text(const char *path, const char *text, int ms)
{
	int64_t end = now_ms() + ms;

	for (;;) {
		char *have = read_file(path);
		bool found = strstr(have, text) != NULL;

		ck_assert_msg(found || now_ms() < end, "no '%s' in: %s", text, have);
		free(have);
		if (found)
			return;
		(void)poll(NULL, 0, LOOK_MS);
	}
}

/* ---- outbox work ----------------------------------------------------------- */

const char file_config[] =
	"stores: { main: { url: 'sqlite:x.db' } }\n"
	"sinks: { out: { type: file, path: out.ndjson } }\n"
	"relays: [ { name: default, retry: { base_delay: 1s } } ]\n";

void prepare(const char *yaml)
{
	begin();
	put_file("outbox.yaml", yaml);
	expect(0, NULL, "", "--store", "sqlite:x.db", "setup", NULL);
}

void push(int count, const char *target)
{
	size_t room = (size_t)count * 160 + 1, at = 0;
	char *lines = malloc(room);

	ck_assert_ptr_nonnull(lines);
	for (int i = 0; i < count; i++)
		at += (size_t)snprintf(lines + at, room - at,
				       "{\"aggregate_type\":\"order\",\"aggregate_id\":\"%d\","
				       "\"event_type\":\"Placed\",\"target\":\"%s\","
				       "\"payload\":{\"n\":%d}}\n",
				       i % 7, target, i);
	expect_in(lines, 0, NULL, NULL, "--store", "sqlite:x.db", "push", NULL);
	free(lines);
}

void stop(struct background *b, int code)
{
	ck_assert_int_eq(kill(b->pid, SIGTERM), 0);
	int got = wait_end(b, STOP_MS);
	char *err = b->pty < 0 ? read_file(b->err) : strdup("");
	ck_assert_msg(got == code, "exit code %d, not %d: %s", got, code, err);
	free(err);
}

/* SPDX-License-Identifier: MIT */
/* Log lines: their formats, and that a line is always one line. */
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct ob_clock_virtual noon = OB_CLOCK_VIRTUAL(1700000000123456);

struct kept {
	char line[70000];
	enum ob_log_level level;
	int count;
};

static struct kept kept;

static void keep(void *arg, enum ob_log_level level, const char *line)
{
	struct kept *k = arg;

	(void)snprintf(k->line, sizeof(k->line), "%s", line);
	k->level = level;
	k->count++;
}

static struct ob_log hooked(enum ob_log_format format)
{
	return (struct ob_log){ -1, OB_LOG_DEBUG, format, &noon.clock, keep, &kept };
}

OB_TEST(logfmt_has_time_level_message_and_keys)
{
	struct ob_log log = hooked(OB_LOG_LOGFMT);

	ob_log(&log, OB_LOG_WARN, "send failed, retrying", OB_KV("sink", "kafka"),
	       OB_KI("attempt", 3), OB_KI("delay_ms", -800));
	ck_assert_str_eq(kept.line,
			 "time=2023-11-14T22:13:20.123Z level=warn msg=\"send failed, "
			 "retrying\" sink=kafka attempt=3 delay_ms=-800");
	ck_assert_int_eq(kept.level, OB_LOG_WARN);
	ob_log(&log, OB_LOG_INFO, "started");
	ck_assert_str_eq(kept.line, "time=2023-11-14T22:13:20.123Z level=info msg=\"started\"");
}
OB_TEST_END

OB_TEST(json_has_the_same_and_is_valid)
{
	struct ob_log log = hooked(OB_LOG_JSON);

	ob_log(&log, OB_LOG_ERROR, "store \"x\" is gone", OB_KV("path", "/a b"),
	       OB_KI("n", INT64_MIN), OB_KS("gone", OB_STR_NULL));
	ck_assert_str_eq(kept.line,
			 "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"error\",\"msg\":"
			 "\"store \\\"x\\\" is gone\",\"path\":\"/a b\",\"n\":"
			 "-9223372036854775808,\"gone\":null}");
	ck_assert(ob_json_valid_object(ob_str(kept.line), NULL));
	ob_log(&log, OB_LOG_DEBUG, "no keys");
	ck_assert(ob_json_valid_object(ob_str(kept.line), NULL));
}
OB_TEST_END

OB_TEST(values_that_could_mislead_are_quoted)
{
	static const struct {
		const char *value, *expected;
	} cases[] = {
		{ "plain-value_1.5:x/y", "plain-value_1.5:x/y" },
		{ "", "\"\"" },
		{ "two words", "\"two words\"" },
		{ "a=b", "\"a=b\"" },
		{ "say \"hi\"", "\"say \\\"hi\\\"\"" },
		{ "back\\slash", "\"back\\\\slash\"" },
		{ "line\nlevel=error", "\"line\\nlevel=error\"" },
		{ "\x1B[31m", "\"\\u001b[31m\"" },
		{ "caf\xC3\xA9", "\"caf\xC3\xA9\"" },
		{ "bad\xFF", "\"bad\xEF\xBF\xBD\"" },
		{ "null", "\"null\"" },
		{ NULL, "null" },
	};
	struct ob_log log = hooked(OB_LOG_LOGFMT);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ob_log(&log, OB_LOG_INFO, "m", OB_KV("v", cases[i].value));
		const char *value = strstr(kept.line, " v=");
		ck_assert_ptr_nonnull(value);
		ck_assert_str_eq(value + 3, cases[i].expected);
	}
}
OB_TEST_END

OB_TEST(lines_above_the_level_are_not_made)
{
	struct ob_log log = hooked(OB_LOG_LOGFMT);

	log.level = OB_LOG_WARN;
	ob_log(&log, OB_LOG_INFO, "m");
	ob_log(&log, OB_LOG_DEBUG, "m");
	ck_assert_int_eq(kept.count, 0);
	ob_log(&log, OB_LOG_WARN, "m");
	ob_log(&log, OB_LOG_ERROR, "m");
	ck_assert_int_eq(kept.count, 2);
}
OB_TEST_END

OB_TEST(a_long_value_is_cut_and_too_many_keys_are_dropped_with_a_count)
{
	struct ob_log log = hooked(OB_LOG_JSON);
	struct ob_log_kv many[40];
	char *text = malloc(30001);

	ck_assert_ptr_nonnull(text);
	for (int i = 0; i < 30000; i += 3)
		memcpy(text + i, "\xE2\x82\xAC", 3);
	text[30000] = '\0';
	ob_log(&log, OB_LOG_INFO, "m", OB_KV("v", text));
	ck_assert(ob_utf8_valid(ob_str(kept.line)));
	ck_assert_ptr_null(strstr(kept.line, "\xEF\xBF\xBD"));
	ck_assert_uint_gt(strlen(kept.line), OB_LOG_VALUE_MAX - 3);
	ck_assert_uint_lt(strlen(kept.line), OB_LOG_VALUE_MAX + 100);

	for (int i = 0; i < 40; i++)
		many[i] = OB_KV("v", text);
	ob_log_write(&log, OB_LOG_INFO, "still said", many, 40);
	ck_assert_ptr_nonnull(strstr(kept.line, "\"still said\",\"keys_dropped\":40}"));
	free(text);
}
OB_TEST_END

/* What one call writes to `fd`'s other end. */
static size_t written(struct ob_log *log, int other, char *out, size_t size)
{
	ob_log(log, OB_LOG_WARN, "hello");
	ssize_t n = read(other, out, size - 1);

	ck_assert_int_gt(n, 0);
	out[n] = '\0';
	return (size_t)n;
}

OB_TEST(only_the_journals_own_socket_gets_a_priority)
{
	struct ob_log log = { -1, OB_LOG_INFO, OB_LOG_AUTO, &noon.clock, NULL, NULL };
	char line[256], stream[64];
	struct stat st;
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	log.fd = fds[0];
	ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
	(void)written(&log, fds[1], line, sizeof(line));
	ck_assert_str_eq(line, "time=2023-11-14T22:13:20.123Z level=warn msg=\"hello\"\n");
	ck_assert_int_eq(setenv("JOURNAL_STREAM", "1:2", 1), 0);
	(void)written(&log, fds[1], line, sizeof(line));
	ck_assert_int_eq(line[0], 't');

	ck_assert_int_eq(fstat(fds[0], &st), 0);
	(void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		       (uintmax_t)st.st_ino);
	ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
	(void)written(&log, fds[1], line, sizeof(line));
	ck_assert_str_eq(line, "<4>time=2023-11-14T22:13:20.123Z level=warn msg=\"hello\"\n");
	log.format = OB_LOG_JSON;
	(void)written(&log, fds[1], line, sizeof(line));
	ck_assert_int_eq(line[0], '{');
	(void)close(fds[0]);
	(void)close(fds[1]);
}
OB_TEST_END

OB_TEST(a_log_that_cannot_be_written_is_ignored)
{
	struct ob_log log = { -1, OB_LOG_INFO, OB_LOG_AUTO, &noon.clock, NULL, NULL };
	int fds[2];

	ob_log(&log, OB_LOG_INFO, "to nowhere");
	(void)signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(fds), 0);
	(void)close(fds[0]);
	log.fd = fds[1];
	ob_log(&log, OB_LOG_INFO, "to a closed pipe");
	(void)close(fds[1]);
	log.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ob_log(&log, OB_LOG_INFO, "to a full disk");
	if (log.fd >= 0)
		(void)close(log.fd);
}
OB_TEST_END

enum { WRITERS = 4, LINES = 100, ALL_LINES = WRITERS * LINES };

static void *write_lines(void *arg)
{
	for (int i = 0; i < LINES; i++)
		ob_log((struct ob_log *)arg, OB_LOG_INFO, "a line of some length", OB_KI("i", i),
		       OB_KV("text", "some more text to make it longer"));
	return NULL;
}

OB_TEST(lines_of_several_threads_stay_whole)
{
	char path[] = "/tmp/outbox-log-XXXXXX", line[256];
	struct ob_log log = { -1, OB_LOG_INFO, OB_LOG_JSON, &noon.clock, NULL, NULL };
	pthread_t threads[WRITERS];
	int count = 0;

	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	(void)unlink(path);
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
	log.fd = fd;
	for (int t = 0; t < WRITERS; t++)
		ck_assert_int_eq(pthread_create(&threads[t], NULL, write_lines, &log), 0);
	for (int t = 0; t < WRITERS; t++)
		ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	FILE *file = fdopen(fd, "r");
	ck_assert_ptr_nonnull(file);
	for (; fgets(line, sizeof(line), file); count++)
		ck_assert_msg(ob_json_valid_object(ob_str(line), NULL), "%s", line);
	ck_assert_int_eq(count, ALL_LINES);
	(void)fclose(file);
}
OB_TEST_END

OB_SUITE("log", logfmt_has_time_level_message_and_keys, json_has_the_same_and_is_valid,
	 values_that_could_mislead_are_quoted, lines_above_the_level_are_not_made,
	 a_long_value_is_cut_and_too_many_keys_are_dropped_with_a_count,
	 only_the_journals_own_socket_gets_a_priority, a_log_that_cannot_be_written_is_ignored,
	 lines_of_several_threads_stay_whole)

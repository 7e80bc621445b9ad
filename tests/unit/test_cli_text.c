/* SPDX-License-Identifier: MIT */
/* Times, ages, Base64 and lines of the command line. */
#include "base/base64.h"
#include "base/when.h"
#include "cli/out/lines.h"
#include "suite.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char *age(int64_t us)
{
	static char out[OB_WHEN_SIZE];

	ob_when_age(us, out);
	return out;
}

static const char *iso(int64_t us)
{
	static char out[OB_WHEN_SIZE];

	ob_when_iso(us, out);
	return out;
}

OB_TEST(an_age_has_the_two_units_that_matter)
{
	ck_assert_str_eq(age(-5), "0s");
	ck_assert_str_eq(age(0), "0s");
	ck_assert_str_eq(age(450000), "450ms");
	ck_assert_str_eq(age(59999999), "59s");
	ck_assert_str_eq(age(192000000), "3m12s");
	ck_assert_str_eq(age(7500000000), "2h05m");
	ck_assert_str_eq(age(INT64_C(86400000000) * 3 + INT64_C(3600000000) * 4), "3d04h");
	ck_assert_str_eq(age(INT64_MAX), "106751991d04h");
}
OB_TEST_END

OB_TEST(an_instant_is_iso_8601_utc)
{
	ck_assert_str_eq(iso(0), "1970-01-01T00:00:00.000000Z");
	ck_assert_str_eq(iso(1777636800123456), "2026-05-01T12:00:00.123456Z");
	ck_assert_str_eq(iso(-1), "1969-12-31T23:59:59.999999Z");
	ck_assert_str_eq(iso(INT64_MAX), "9223372036854775807us");
}
OB_TEST_END

OB_TEST(an_instant_comes_back_as_it_was_printed)
{
	static const int64_t times[] = { 1, 999999, 1777636800123456, 253402300799999999 };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		int64_t back = -1;

		ck_assert(ob_when_parse(ob_str(iso(times[i])), &back));
		ck_assert_int_eq(back, times[i]);
	}
}
OB_TEST_END

OB_TEST(base64_comes_back_as_it_was)
{
	char bytes[64], out[64];

	for (size_t n = 0; n < sizeof(bytes); n++) {
		struct ob_buf text = OB_BUF_INIT(1000);
		size_t back = 0;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)(i * 37 + n);
		ob_base64_encode(&text, (struct ob_str){ bytes, n });
		ck_assert_uint_eq(text.len, (n + 2) / 3 * 4);
		ck_assert(ob_base64_decode(ob_buf_view(&text), out, &back));
		ck_assert_uint_eq(back, n);
		ck_assert_mem_eq(out, bytes, n);
		ob_buf_done(&text);
	}
}
OB_TEST_END

/* A pipe that holds `text` and is closed behind it. */
static int pipe_of(const char *text)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fds[1]);
	return fds[0];
}

static void check_line(struct ob_lines *lines, const char *want)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_str line;

	ck_assert_int_eq(ob_lines_next(lines, &line, &err), 1);
	ck_assert_uint_eq(line.n, strlen(want));
	ck_assert_mem_eq(line.p, want, line.n);
}

OB_TEST(lines_end_with_either_break_or_with_the_stream)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_lines lines;
	struct ob_str line;

	ob_lines_init(&lines, pipe_of("one\ntwo\r\n\nlast"), "stdin", 100);
	check_line(&lines, "one");
	check_line(&lines, "two");
	check_line(&lines, "");
	check_line(&lines, "last");
	ck_assert_uint_eq(lines.number, 4);
	ck_assert_int_eq(ob_lines_next(&lines, &line, &err), 0);
	ck_assert_int_eq(ob_lines_next(&lines, &line, &err), 0);
	(void)close(lines.fd);
	ob_lines_done(&lines);
}
OB_TEST_END

OB_TEST(a_line_past_the_limit_is_an_error_with_its_number)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_lines lines;
	struct ob_str line;

	ob_lines_init(&lines, pipe_of("12345\n123456\n"), "stdin", 5);
	check_line(&lines, "12345");
	ck_assert_int_eq(ob_lines_next(&lines, &line, &err), OUTBOX_ETOOLONG);
	ck_assert_str_eq(err.msg, "stdin:2: the line is longer than 0 MB");
	(void)close(lines.fd);
	ob_lines_done(&lines);
}
OB_TEST_END

OB_TEST(a_line_that_spans_many_reads_is_whole)
{
	char path[] = "/tmp/outbox-lines.XXXXXX";
	int fd = mkstemp(path);
	const size_t size = 300000;
	struct ob_lines lines;
	char *text = malloc(size + 1);

	ck_assert_int_ge(fd, 0);
	(void)unlink(path);
	memset(text, 'x', size);
	text[size - 1] = '\n';
	text[size] = '\0';
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	ck_assert_int_eq(write(fd, "y", 1), 1);
	(void)lseek(fd, 0, SEEK_SET);
	text[size - 1] = '\0';
	ob_lines_init(&lines, fd, "stdin", 1 << 20);
	check_line(&lines, text);
	check_line(&lines, "y");
	ob_lines_done(&lines);
	(void)close(fd);
	free(text);
}
OB_TEST_END

OB_TEST(a_stream_that_cannot_be_read_is_an_error)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_lines lines;
	struct ob_str line;

	ob_lines_init(&lines, open("/", O_RDONLY), "stdin", 100);
	ck_assert_int_lt(ob_lines_next(&lines, &line, &err), 0);
	ck_assert_str_eq(err.msg, "stdin: Is a directory");
	(void)close(lines.fd);
	ob_lines_done(&lines);
}
OB_TEST_END

OB_SUITE("cli_text", an_age_has_the_two_units_that_matter, an_instant_is_iso_8601_utc,
	 an_instant_comes_back_as_it_was_printed, base64_comes_back_as_it_was,
	 lines_end_with_either_break_or_with_the_stream,
	 a_line_past_the_limit_is_an_error_with_its_number, a_line_that_spans_many_reads_is_whole,
	 a_stream_that_cannot_be_read_is_an_error)

/* SPDX-License-Identifier: MIT */
/* Standard output as a pipe: slow readers, none at all, and lines that must not mix. */
#include "sink_harness.h"
#include "suite.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Standard output is a pipe from here on; returns its reading end. */
static int redirect(void)
{
	int ends[2];

	(void)signal(SIGPIPE, SIG_IGN);
	(void)fflush(stdout);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
	(void)close(ends[1]);
	return ends[0];
}

static struct ob_sink *make(void)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_new(&ob_sink_stdout, NULL, 0, &ob_clock_system, &sink, &err), 0);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	return sink;
}

static void send_body(struct ob_sink *sink, uint64_t n, struct ob_str body)
{
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	parcel_init(&parcel, n, OB_STR("k"), body);
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
}

static void read_some(int fd, struct ob_buf *out, size_t n)
{
	char chunk[4096];

	while (n > 0) {
		ssize_t r = read(fd, chunk, n < sizeof(chunk) ? n : sizeof(chunk));

		ck_assert_int_gt(r, 0);
		ob_buf_add(out, (struct ob_str){ chunk, (size_t)r });
		n -= (size_t)r;
	}
}

/* Up to the end, which comes when the last writer closes. */
static void read_rest(int fd, struct ob_buf *out)
{
	char chunk[4096];

	for (ssize_t n = 1; n > 0;) {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			ob_buf_add(out, (struct ob_str){ chunk, (size_t)n });
	}
}

OB_TEST(a_reader_that_stalls_does_not_block_a_poll)
{
	static char body[200000];
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct stored *stored;
	struct ob_ack ack;
	int r = 0;

	int fd = redirect();
	struct ob_sink *sink = make();
	memset(body, 'x', sizeof(body));
	body[0] = body[sizeof(body) - 1] = '"';
	send_body(sink, 1, (struct ob_str){ body, sizeof(body) });
	ck_assert_int_eq(ob_sink_poll(sink, 10, &ack, 1, &err), 0); /* the pipe is full */
	for (int i = 0; i < 1000 && r == 0; i++) {
		read_some(fd, &out, 4096);
		r = ob_sink_poll(sink, 0, &ack, 1, &err);
	}
	ck_assert_int_eq(r, 1);
	ob_sink_free(sink);
	(void)close(STDOUT_FILENO);
	read_rest(fd, &out);
	ck_assert_uint_eq(sink_parse_lines(&arena, ob_buf_view(&out), &stored), 1);
	ck_assert_uint_eq(stored[0].body.n, sizeof(body));
	ob_buf_done(&out);
	ob_arena_done(&arena);
	(void)close(fd);
}
OB_TEST_END

OB_TEST(a_line_left_in_the_middle_is_ended_before_the_next)
{
	static char body[200000];
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack;

	int fd = redirect();
	struct ob_sink *first = make(), *second = make();
	memset(body, 'x', sizeof(body));
	send_body(first, 1, (struct ob_str){ body, sizeof(body) });
	send_body(second, 2, OB_STR("{}"));
	ck_assert_int_eq(ob_sink_poll(first, 0, &ack, 1, &err), 0);
	read_some(fd, &out, 8192);
	ck_assert_int_eq(ob_sink_poll(second, 5, &ack, 1, &err), 0); /* not its turn */
	ob_sink_reset(first);
	ck_assert_int_eq(ob_sink_poll(second, 5, &ack, 1, &err), 1);
	ck_assert_int_eq(ob_sink_poll(first, 0, &ack, 1, &err), 0);
	ob_sink_free(first);
	ob_sink_free(second);
	(void)close(STDOUT_FILENO);
	read_rest(fd, &out);
	const char *newline = strchr(ob_buf_str(&out), '\n');
	ck_assert_ptr_nonnull(newline);
	ck_assert(strncmp(newline, "\n{\"id\":\"01900000-0000-7000-8000-000000000002\"", 45) == 0);
	ob_buf_done(&out);
	(void)close(fd);
}
OB_TEST_END

OB_TEST(a_reader_that_went_away_is_fatal)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack;

	int fd = redirect();
	struct ob_sink *sink = make();
	(void)close(fd);
	send_body(sink, 1, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_poll(sink, 0, &ack, 1, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.msg, "standard output: its reader has gone away: Broken pipe");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_closed_standard_output_is_fatal_at_open)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)close(STDOUT_FILENO);
	ck_assert_int_eq(ob_sink_new(&ob_sink_stdout, NULL, 0, &ob_clock_system, &sink, &err), 0);
	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.native, "EBADF");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_full_disk_behind_standard_output_is_down)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[4];

	int fd = open("/dev/full", O_WRONLY);
	ck_assert_int_ge(fd, 0);
	(void)fflush(stdout);
	ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	(void)close(fd);
	struct ob_sink *sink = make();
	send_body(sink, 1, OB_STR("{}"));
	send_body(sink, 2, OB_STR("{}"));
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 4, &err), 2);
	ck_assert_int_eq(acks[0].err.kind, OB_ERR_DOWN);
	ck_assert_int_eq(acks[1].err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(acks[0].err.native, "ENOSPC");
	ob_sink_free(sink);
}
OB_TEST_END

enum { THREADS = 3, EACH = 300 };

/* Lines shorter and longer than a pipe takes in one piece. */
static void *send_many(void *arg)
{
	uint64_t base = *(const uint64_t *)arg * EACH;
	struct ob_sink *sink = make();
	static const char x[10000] = { [0 ... 9999] = 'x' };
	struct tally tally = { 0 };
	struct parcel parcel;

	for (uint64_t i = 0; i < EACH; i++) {
		struct ob_str body = { x, (i * 397) % sizeof(x) };

		parcel_init(&parcel, base + i, OB_STR("k"), body);
		sink_push(sink, &parcel.delivery, &tally);
		if (i % 10 == 9)
			sink_drain(sink, &tally, i + 1);
	}
	ob_sink_free(sink);
	return NULL;
}

struct reader {
	int fd;
	struct ob_buf out;
};

static void *read_all(void *arg)
{
	struct reader *reader = arg;

	read_rest(reader->fd, &reader->out);
	return NULL;
}

/* The lines of each thread are there, whole and in order. */
static void check_threads(struct ob_str text)
{
	struct ob_arena arena = OB_ARENA_INIT(100 << 20);
	uint64_t next[THREADS] = { 0 };
	struct stored *stored;
	size_t count = sink_parse_lines(&arena, text, &stored);

	ck_assert_uint_eq(count, (size_t)THREADS * EACH);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(stored[i].n % EACH, next[stored[i].n / EACH]++);
	ob_arena_done(&arena);
}

OB_TEST(lines_of_several_threads_never_mix)
{
	struct reader reader = { redirect(), OB_BUF_INIT(100 << 20) };
	pthread_t reading, threads[THREADS];
	uint64_t which[THREADS];

	ck_assert_int_eq(pthread_create(&reading, NULL, read_all, &reader), 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		which[i] = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, send_many, &which[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	(void)close(STDOUT_FILENO);
	ck_assert_int_eq(pthread_join(reading, NULL), 0);
	check_threads(ob_buf_view(&reader.out));
	ob_buf_done(&reader.out);
	(void)close(reader.fd);
}
OB_TEST_END

OB_SUITE("stdout sink", a_reader_that_stalls_does_not_block_a_poll,
	 a_line_left_in_the_middle_is_ended_before_the_next, a_reader_that_went_away_is_fatal,
	 a_closed_standard_output_is_fatal_at_open, a_full_disk_behind_standard_output_is_down,
	 lines_of_several_threads_never_mix)

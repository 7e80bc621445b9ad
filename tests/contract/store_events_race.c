/* SPDX-License-Identifier: MIT */
/*
 * Contract: appenders in processes of their own that race and are killed at any moment, while a
 * reader delivers what commits. OUTBOX_TEST_APPENDS says how many appends each process makes; the
 * long run is 10000.
 */
#include "base/rng.h"
#include "events_cases.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { PROCESSES_MAX = 16, STREAMS_MAX = 8 };

/* One process that appends; `said` is its end of a pipe: a stream and a version after each commit.
 */
struct appender {
	pid_t pid;
	int said;
	int left; /* appends that it has not said */
};

struct line {
	int32_t stream, result;
	int64_t version;
};

static struct appender appenders[PROCESSES_MAX];
static int process_count, stream_count;
static int64_t committed[STREAMS_MAX]; /* that were said */
static int64_t delivered[STREAMS_MAX]; /* the last version that the reader got */
static int conflicts;

static int appends_of_each(int usual)
{
	const char *text = getenv("OUTBOX_TEST_APPENDS");

	return text ? (int)strtol(text, NULL, 10) : usual;
}

/* ---- the processes --------------------------------------------------- */

/* Read the version, append the next: the way of every application. */
static int append_next(struct ob_store *store, int stream, int64_t *ret_version)
{
	char id[16], type[48];
	const struct outbox_stream name = { .type = "account", .id = id };
	struct outbox_stream_info info = { 0 };
	struct outbox_message event = { .event_type = type, .payload = "{}" };
	struct ob_err err = OB_ERR_INIT;
	outbox *ob = NULL;

	(void)snprintf(id, sizeof(id), "%d", stream);
	int r = ob_store_tx_begin(store, &err);
	if (r == 0)
		r = ob_store_tx_writer(store, &ob, &err);
	if (r == 0)
		r = outbox_stream_look(ob, &name, &info, &ev_fault);
	(void)snprintf(type, sizeof(type), "%d.%" PRId64, stream, info.version + 1);
	if (r == 0)
		r = outbox_append(ob, &name, info.version, &event, 1, NULL, NULL, &ev_fault);
	*ret_version = info.version + 1;
	int ended = ob_store_tx_end(store, r == 0, &err);
	return r < 0 ? r : ended;
}

/* Never returns: no cleanup of what it has of its parent. */
static void run_appender(int number, int count, int said)
{
	struct ob_store *store = fx.backend->open();
	struct ob_rng rng;

	ob_rng_init(&rng, (uint64_t)number * 7919 + (uint64_t)count);
	while (count > 0) {
		struct line line = { .stream =
					     (int32_t)ob_rng_below(&rng, (uint64_t)stream_count) };

		line.result = append_next(store, line.stream, &line.version);
		count -= line.result == 0;
		if (write(said, &line, sizeof(line)) != (ssize_t)sizeof(line))
			break;
	}
	_exit(0);
}

static void start_appender(int number, int count)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)close(ends[0]);
		run_appender(number, count, ends[1]);
	}
	(void)close(ends[1]);
	appenders[number] = (struct appender){ .pid = pid, .said = ends[0], .left = count };
}

/* ---- listening ------------------------------------------------------- */

static void take_line(struct appender *a, const struct line *line)
{
	if (line->result == OUTBOX_ECONFLICT || line->result == OUTBOX_EBUSY) {
		conflicts++;
		return;
	}
	ck_assert_msg(line->result == 0, "an append failed with %d", line->result);
	a->left--;
	if (line->version > committed[line->stream])
		committed[line->stream] = line->version;
}

/* What it has said up to now; false: it is through, or dead. */
static bool listen_to(struct appender *a)
{
	struct pollfd fd = { .fd = a->said, .events = POLLIN };
	struct line line;

	while (a->said >= 0 && poll(&fd, 1, 0) > 0) {
		ssize_t n = read(a->said, &line, sizeof(line));

		if (n != (ssize_t)sizeof(line)) {
			(void)close(a->said);
			a->said = -1;
			(void)waitpid(a->pid, NULL, 0);
			a->pid = 0;
			return false;
		}
		take_line(a, &line);
	}
	return a->said >= 0;
}

/* Its last append may have committed without a word: the log decides. */
static void kill_appender(int number)
{
	struct appender *a = &appenders[number];

	/* One that is through has no process any more. */
	if (a->pid <= 0)
		return;
	(void)kill(a->pid, SIGKILL);
	while (listen_to(a))
		(void)poll(NULL, 0, 1);
	if (a->left > 0)
		start_appender(number, a->left);
}

/* ---- the reader ------------------------------------------------------ */

/* Every event once, each stream in its order. */
static void deliver(void)
{
	char *labels = store_deliver(), *save = NULL;

	for (char *word = strtok_r(labels, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *dot = NULL;
		long stream = strtol(word, &dot, 10);
		int64_t version = strtoll(dot + 1, NULL, 10);

		ck_assert_msg(version == delivered[stream] + 1,
			      "stream %ld: %" PRId64 " came after %" PRId64, stream, version,
			      delivered[stream]);
		delivered[stream] = version;
	}
	free(labels);
}

static bool all_through(void)
{
	bool through = true;

	for (int i = 0; i < process_count; i++)
		through = !listen_to(&appenders[i]) && appenders[i].left <= 0 && through;
	return through;
}

static void race(int processes, int streams, int usual)
{
	int count = appends_of_each(usual), rounds = 0;
	struct ob_rng rng;

	ob_rng_init(&rng, 11);
	ev_begin();
	store_hold_all(INT64_C(3600000));
	process_count = processes;
	stream_count = streams;
	for (int i = 0; i < processes; i++)
		start_appender(i, count);
	while (!all_through()) {
		deliver();
		if (++rounds % 4 == 0)
			kill_appender((int)ob_rng_below(&rng, (uint64_t)processes));
	}
	deliver();
	for (int i = 0; i < streams; i++) {
		char id[16];
		const struct outbox_stream name = { .type = "account", .id = id };
		struct outbox_stream_info info = { 0 };

		(void)snprintf(id, sizeof(id), "%d", i);
		outbox *ob = ev_open_on(fx.store);
		ck_assert_int_eq(outbox_stream_look(ob, &name, &info, &ev_fault), 0);
		ev_end_on(fx.store, false);
		ck_assert_int_ge(info.version, committed[i]);
		ck_assert_int_eq(info.version, delivered[i]);
	}
	ck_assert_int_gt(rounds, 0);
}

OB_TEST(two_appenders_that_are_killed_leave_one_stream_without_gaps)
{
	race(2, 1, 150);
}
OB_TEST_END

OB_TEST(sixteen_appenders_that_are_killed_leave_no_stream_with_gaps)
{
	race(PROCESSES_MAX, STREAMS_MAX, 20);
}
OB_TEST_END

STORE_CASES(events_race, two_appenders_that_are_killed_leave_one_stream_without_gaps,
	    sixteen_appenders_that_are_killed_leave_no_stream_with_gaps)

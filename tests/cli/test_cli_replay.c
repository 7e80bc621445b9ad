/* SPDX-License-Identifier: MIT */
/* outbox replay: what is sent again, how it is marked, and that it leaves nothing behind. */
#include "background.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define FAILS(line, ...)   expect(1, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define SAYS(line, ...)    expect(0, line "\n", "", __VA_ARGS__, NULL)

enum { LONG_MS = 20000 };

static const char config[] =
	"stores: { main: { url: 'sqlite:x.db' } }\n"
	"sinks: { out: { type: file, path: out.ndjson }, again: { type: file, path: again.ndjson } "
	"}\n"
	"relays: [ { name: default, sink: out, shutdown_timeout: 100ms,\n"
	"            route: { headers: { shop: main } } } ]\n";

static struct background replay;

/* A log of `count` messages that the relay has delivered. */
static void begin_replay(int count)
{
	prepare(config);
	if (count)
		push(count, "default");
	expect(0, NULL, "", "work", "--once", NULL);
	ck_assert_uint_eq(line_count("out.ndjson"), (size_t)count);
}

static void finish(void)
{
	kill_now(&replay);
	end();
}

/* Only the relay's own reader is there, and it stands where it stood. */
static void check_readers(int64_t position)
{
	struct ob_run r = outbox(NULL, "readers", "list", "--json", NULL);
	json_t *reader = json_loads(r.out, 0, NULL);

	ck_assert_msg(reader != NULL, "not one reader: %s", r.out);
	ck_assert_str_eq(json_string_value(json_object_get(reader, "reader")), "default");
	ck_assert_int_eq(json_integer_value(json_object_get(reader, "position")), position);
	json_decref(reader);
	ob_run_done(&r);
}

/* The numbers n of the payloads in a file, in order: "0 1 2 ". Each line has the header. */
static void check_sent(const char *file, const char *name, const char *want)
{
	char *text = read_file(path_of(file)), have[4096] = "";
	size_t at = 0;

	for (char *line = text, *nl; (nl = strchr(line, '\n')); line = nl + 1) {
		*nl = '\0';
		json_t *v = json_loads(line, 0, NULL);
		json_t *headers = json_object_get(v, "headers");
		ck_assert_str_eq(json_string_value(json_object_get(headers, "outbox-replay")),
				 name);
		ck_assert_str_eq(json_string_value(json_object_get(headers, "shop")), "main");
		at += (size_t)snprintf(have + at, sizeof(have) - at, "%lld ",
				       (long long)json_integer_value(json_object_get(
					       json_object_get(v, "payload"), "n")));
		json_decref(v);
	}
	ck_assert_str_eq(have, want);
	free(text);
	(void)unlink(path_of(file));
}

#define AGAIN "replay", "--yes", "--sink", "again", "--name", "r1"

/* ---- what is sent ---------------------------------------------------------- */

OB_TEST(everything_is_sent_again_and_marked)
{
	begin_replay(200);
	SAYS("r1: 200 messages sent again, 0 dead", AGAIN);
	/* in order within each of the seven keys */
	char *text = read_file(path_of("again.ndjson"));
	long last[7] = { -1, -1, -1, -1, -1, -1, -1 };
	size_t lines = 0;
	for (char *line = text, *nl; (nl = strchr(line, '\n')); line = nl + 1, lines++) {
		*nl = '\0';
		const char *n = strstr(line, "\"n\":");
		ck_assert_ptr_nonnull(n);
		long number = strtol(n + 4, NULL, 10);
		ck_assert_int_lt(last[number % 7], number);
		last[number % 7] = number;
		ck_assert_ptr_nonnull(strstr(line, "\"outbox-replay\":\"r1\""));
	}
	ck_assert_uint_eq(lines, 200);
	free(text);
	ck_assert_uint_eq(line_count("out.ndjson"), 200);
	check_readers(200);
	/* to the relay's own sink, under a name that is made */
	struct ob_run r = outbox(NULL, "replay", "--yes", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_int_eq(strncmp(r.out, "replay-", 7), 0);
	ck_assert_str_eq(r.out + 15, ": 200 messages sent again, 0 dead\n");
	ob_run_done(&r);
	ck_assert_uint_eq(line_count("out.ndjson"), 400);
	check_readers(200);
	finish();
}
OB_TEST_END

OB_TEST(a_part_of_the_log_is_sent_again)
{
	begin_replay(20);
	SAYS("r1: 3 messages sent again, 0 dead", AGAIN, "--from", "5", "--to", "7", "--workers",
	     "1");
	check_sent("again.ndjson", "r1", "4 5 6 ");
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN, "--from", "19");
	check_sent("again.ndjson", "r1", "18 19 ");
	/* more workers than there are partitions */
	SAYS("r1: 1 message sent again, 0 dead", AGAIN, "--to", "1", "--workers", "20");
	check_sent("again.ndjson", "r1", "0 ");
	SAYS("r1: 3 messages sent again, 0 dead", AGAIN, "--key", "order:3");
	check_sent("again.ndjson", "r1", "3 10 17 ");
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN, "--aggregate", "6", "--type", "ord*",
	     "--event", "P*d");
	check_sent("again.ndjson", "r1", "6 13 ");
	SAYS("r1: 0 messages sent again, 0 dead", AGAIN, "--event", "Paid");
	SAYS("nothing to send again", AGAIN, "--from", "21");
	check_readers(20);
	finish();
}
OB_TEST_END

OB_TEST(times_and_ids_choose_too)
{
	begin_replay(0);
	for (int i = 0; i < 4; i++) {
		char payload[16], id[40];

		(void)snprintf(payload, sizeof(payload), "{\"n\":%d}", i);
		(void)snprintf(id, sizeof(id), "0196a1f0-3c5b-7000-8000-00000000000%d", i);
		expect(0, NULL, "", "push", "--type", "order", "--aggregate", "1", "--event", "E",
		       "--payload", payload, "--id", id, NULL);
	}
	struct ob_run r = outbox(NULL, "list", "--json", "--limit", "1", "--after", "2", NULL);
	char *at = strstr(r.out, "\"created_at\":\"") + 14;
	at[27] = '\0';
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN, "--since", at);
	check_sent("again.ndjson", "r1", "2 3 ");
	SAYS("r1: 3 messages sent again, 0 dead", AGAIN, "--until", at);
	check_sent("again.ndjson", "r1", "0 1 2 ");
	SAYS("r1: 1 message sent again, 0 dead", AGAIN, "--since", at, "--until", at);
	check_sent("again.ndjson", "r1", "2 ");
	ob_run_done(&r);
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN, "0196a1f0-3c5b-7000-8000-000000000003",
	     "0196a1f0-3c5b-7000-8000-000000000001");
	check_sent("again.ndjson", "r1", "1 3 ");
	/* one message needs no question */
	SAYS("r1: 1 message sent again, 0 dead", "replay", "--sink", "again", "--name", "r1",
	     "0196a1f0-3c5b-7000-8000-000000000002");
	check_sent("again.ndjson", "r1", "2 ");
	FAILS("no message 0196a1f0-3c5b-7000-8000-000000000009 for target default: it was removed "
	      "since, or never committed",
	      "replay", "0196a1f0-3c5b-7000-8000-000000000009");
	check_readers(0);
	finish();
}
OB_TEST_END

OB_TEST(what_is_not_due_yet_and_what_another_reads_is_left_out)
{
	begin_replay(2);
	push(3, "mail");
	expect(0, NULL, "", "push", "--type", "order", "--event", "E", "--payload", "{\"n\":9}",
	       "--delay", "1h", NULL);
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN);
	check_sent("again.ndjson", "r1", "0 1 ");
	finish();
}
OB_TEST_END

OB_TEST(the_header_comes_with_every_rule_and_once)
{
	begin_replay(2);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { again: { type: file, path: again.ndjson } }\n"
		 "relays:\n"
		 "  - { route: { headers: { shop: main, Outbox-Replay: old }, rules: [\n"
		 "        { event_type: 'P*', destination: elsewhere, headers: { x: y } } ] } }\n");
	SAYS("r1: 2 messages sent again, 0 dead", AGAIN);
	char *text = read_file(path_of("again.ndjson"));
	ck_assert_ptr_nonnull(strstr(text, "\"destination\":\"elsewhere\""));
	ck_assert_ptr_null(strstr(text, "Outbox-Replay"));
	ck_assert_ptr_nonnull(strstr(text, "\"x\":\"y\""));
	free(text);
	check_sent("again.ndjson", "r1", "0 1 ");
	finish();
}
OB_TEST_END

/* ---- with others ------------------------------------------------------------ */

OB_TEST(a_relay_that_runs_goes_on_undisturbed)
{
	struct background worker;

	begin_replay(500);
	start(&worker, "work", NULL);
	start(&replay, AGAIN, NULL);
	push(50, "default");
	wait_lines("out.ndjson", 550, LONG_MS);
	ck_assert_int_eq(wait_end(&replay, LONG_MS), 0);
	stop(&worker, 0);
	/* what came after it began is not the replay's */
	ck_assert_uint_le(line_count("again.ndjson"), 550);
	ck_assert_uint_ge(line_count("again.ndjson"), 500);
	ck_assert_uint_eq(line_count("out.ndjson"), 550);
	check_readers(550);
	finish();
}
OB_TEST_END

/* ---- stopping and failing ------------------------------------------------------ */

OB_TEST(an_interrupt_leaves_nothing_behind)
{
	begin_replay(20);
	put_file("again.ndjson", "");
	int fd = open(path_of("again.ndjson"), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0); /* nothing can be written */
	start(&replay, AGAIN, NULL);
	int64_t until = now_ms() + LONG_MS;
	for (bool there = false; !there;) {
		struct ob_run r = outbox(NULL, "readers", "list", "--json", NULL);

		there = strstr(r.out, "\"reader\":\"r1\",\"reads\":\"default\"") != NULL &&
			strstr(r.out, "\"filter\":\"replay up to 20\",\"temporary\":true") != NULL;
		ob_run_done(&r);
		ck_assert_int_lt(now_ms(), until);
	}
	/* it is nobody's default */
	expect(0, "no message is waiting: 'outbox list all' shows those that are out\n", "", "list",
	       NULL);
	FAILS("there is a reader r1 already: give this one another --name", AGAIN);
	ck_assert_int_eq(kill(replay.pid, SIGINT), 0);
	ck_assert_int_eq(wait_end(&replay, LONG_MS), 1);
	(void)close(fd);
	char *err = read_file(replay.err);
	ck_assert_ptr_nonnull(strstr(err, "outbox: stopped at number "));
	ck_assert_ptr_nonnull(strstr(err, " of 20; '--from "));
	free(err);
	check_readers(20);
	finish();
}
OB_TEST_END

OB_TEST(what_cannot_be_delivered_is_told)
{
	begin_replay(5);
	put_file("handler.sh",
		 "while read -r line; do\n"
		 "  id=$(printf %s \"$line\" | cut -d'\"' -f4)\n"
		 "  case $line in *'\"n\":3}'*) echo \"reject $id no thanks\" ;; *) echo \"ok "
		 "$id\" ;; "
		 "esac\n"
		 "done\n");
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: exec, command: 'sh handler.sh' } }\n");
	struct ob_run r = outbox(NULL, "replay", "--yes", "--name", "r1", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.out, "r1: 4 messages sent again, 1 dead\n");
	ck_assert_ptr_nonnull(strstr(r.err, " was not delivered: "));
	ck_assert_ptr_nonnull(strstr(r.err, "no thanks"));
	ob_run_done(&r);
	check_readers(5);
	finish();
}
OB_TEST_END

OB_TEST(what_fails_is_tried_again_before_it_ends)
{
	begin_replay(5);
	put_file(
		"handler.sh",
		"while read -r line; do\n"
		"  id=$(printf %s \"$line\" | cut -d'\"' -f4)\n"
		"  case $line in *'\"n\":3}'*) test -e tried || { : >tried; echo \"retry $id no\"; "
		"continue; } ;; esac\n"
		"  echo \"ok $id\"\n"
		"done\n");
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: exec, command: 'sh handler.sh' } }\n"
		 "relays: [ { retry: { base_delay: 200ms } } ]\n");
	struct ob_run r = outbox(NULL, "replay", "--yes", "--name", "r1", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_str_eq(r.out, "r1: 5 messages sent again, 0 dead\n");
	ob_run_done(&r);
	ck_assert_int_eq(access(path_of("tried"), F_OK), 0);
	finish();
}
OB_TEST_END

/* ---- what is seen ---------------------------------------------------------------- */

OB_TEST(programs_read_lines)
{
	begin_replay(20);
	struct ob_run r = outbox(NULL, AGAIN, "--json", "--from", "6", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_str_eq(r.err, "");
	char *last = r.out + strlen(r.out) - 1;
	*last = '\0';
	last = strrchr(r.out, '\n') ? strrchr(r.out, '\n') + 1 : r.out;
	json_t *v = json_loads(last, 0, NULL);
	ck_assert_ptr_nonnull(v);
	ck_assert_str_eq(json_string_value(json_object_get(v, "replay")), "r1");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "from")), 6);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "position")), 20);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "end")), 20);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "percent")), 100);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "published")), 15);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "dead")), 0);
	ck_assert(json_is_true(json_object_get(v, "done")));
	ck_assert(json_is_true(json_object_get(v, "complete")));
	json_decref(v);
	ob_run_done(&r);
	/* one that takes a while says how far it is */
	put_file("again.ndjson", "");
	int fd = open(path_of("again.ndjson"), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	start(&replay, AGAIN, "--json", NULL);
	wait_text(replay.out, "\"done\":false}\n", LONG_MS);
	(void)close(fd);
	ck_assert_int_eq(wait_end(&replay, LONG_MS), 0);
	wait_text(replay.out, "\"complete\":true,\"done\":true}\n", LONG_MS);
	finish();
}
OB_TEST_END

OB_TEST(a_terminal_shows_a_bar)
{
	char text[65536];
	size_t have = 0;
	ssize_t n;

	begin_replay(100);
	start_on_pty(&replay, 100, 24, AGAIN, NULL);
	while (have < sizeof(text) - 1 &&
	       (n = read(replay.pty, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	ck_assert_int_eq(wait_end(&replay, LONG_MS), 0);
	ck_assert_msg(strstr(text, "\rr1 [") != NULL, "%s", text);
	ck_assert_msg(strstr(text, "] 100%  100 sent") != NULL, "%s", text);
	ck_assert_msg(strstr(text, "\r\033[Kr1: 100 messages sent again, 0 dead\r\n") != NULL, "%s",
		      text);
	finish();
}
OB_TEST_END

/* ---- questions and refusals ------------------------------------------------------ */

OB_TEST(nothing_is_sent_without_a_yes)
{
	begin_replay(3);
	REFUSED("replay: would send messages from the beginning to number 3 of target default "
		"again, to the sink out: stdin is no terminal to ask on, so say --yes",
		"replay");
	REFUSED("replay: would send messages from number 2 to number 3 of target default again, to "
		"the sink again: stdin is no terminal to ask on, so say --yes",
		"replay", "--from", "2", "--sink", "again");
	ck_assert_uint_eq(line_count("out.ndjson"), 3);
	check_readers(3);
	finish();
}
OB_TEST_END

OB_TEST(a_wrong_replay_is_one_clear_line)
{
	begin_replay(1);
	REFUSED("replay: --since: 'yesterday' is not a time such as 2026-05-01T00:00:00Z", "replay",
		"--since", "yesterday");
	REFUSED("replay: --from lies after --to", "replay", "--from", "3", "--to", "2");
	REFUSED("replay: --since lies after --until", "replay", "--since", "2026-05-02T00:00:00Z",
		"--until", "2026-05-01T00:00:00Z");
	REFUSED("replay: 'x' is not a UUID", "replay", "x");
	REFUSED("replay: --name: 'a b' is not a name: use letters, digits, '.', '_' and '-', at "
		"most 64 characters",
		"replay", "--name", "a b");
	FAILS("outbox.yaml has no sink 'agian'; it has out, again", "replay", "--sink", "agian");
	FAILS("outbox.yaml has no relay 'x'; it has default", "replay", "--relay", "x");
	FAILS("there is a reader default already: give this one another --name", "replay", "--name",
	      "default");
	REFUSED("replay: --json writes to standard output, and so does the sink out", "--store",
		"sqlite:x.db", "replay", "--sink", "stdout", "--json");
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { name: a }, { name: b } ]\n");
	FAILS("several relays: a, b; choose one with --relay", "replay");
	finish();
}
OB_TEST_END

OB_TEST(a_database_alone_prints_its_messages_again)
{
	begin_replay(2);
	struct ob_run r =
		outbox(NULL, "--store", "sqlite:x.db", "replay", "--sink", "stdout", "--yes", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "\"outbox-replay\":\"replay-"));
	ck_assert_ptr_nonnull(strstr(r.out, "\"n\":1"));
	ck_assert_ptr_nonnull(strstr(r.err, ": 2 messages sent again, 0 dead\n"));
	ob_run_done(&r);
	finish();
}
OB_TEST_END

OB_SUITE("cli_replay", everything_is_sent_again_and_marked, a_part_of_the_log_is_sent_again,
	 times_and_ids_choose_too, what_is_not_due_yet_and_what_another_reads_is_left_out,
	 the_header_comes_with_every_rule_and_once, a_relay_that_runs_goes_on_undisturbed,
	 an_interrupt_leaves_nothing_behind, what_cannot_be_delivered_is_told,
	 what_fails_is_tried_again_before_it_ends, programs_read_lines, a_terminal_shows_a_bar,
	 nothing_is_sent_without_a_yes, a_wrong_replay_is_one_clear_line,
	 a_database_alone_prints_its_messages_again)

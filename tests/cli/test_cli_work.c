/* SPDX-License-Identifier: MIT */
/* outbox work as a process: delivering, stopping, reloading. */
#include "background.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

static struct background worker, second;

static void finish(void)
{
	kill_now(&worker);
	kill_now(&second);
	end();
}

/* Every id once, and each key's numbers in order. */
static void check_delivered(const char *name, size_t count, bool ordered)
{
	char *text = read_file(path_of(name));
	json_t *ids = json_object(), *last = json_object();
	size_t lines = 0;

	for (char *line = text, *nl; (nl = strchr(line, '\n')); line = nl + 1, lines++) {
		*nl = '\0';
		json_t *v = json_loads(line, 0, NULL);
		ck_assert_ptr_nonnull(v);
		const char *id = json_string_value(json_object_get(v, "id"));
		const char *key = json_string_value(json_object_get(v, "key"));
		json_t *n = json_object_get(json_object_get(v, "payload"), "n");
		ck_assert_msg(!json_object_get(ids, id), "%s twice", id);
		json_object_set_new(ids, id, json_true());
		json_t *before = json_object_get(last, key);
		if (ordered && before)
			ck_assert_int_lt(json_integer_value(before), json_integer_value(n));
		json_object_set(last, key, n);
		json_decref(v);
	}
	ck_assert_uint_eq(lines, count);
	json_decref(ids);
	json_decref(last);
	free(text);
}

/* ---- delivering ------------------------------------------------------------- */

OB_TEST(what_another_process_commits_is_delivered_in_order)
{
	prepare(file_config);
	push(200, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 200, LONG_MS);
	int64_t before = now_ms();
	push(1, "default");
	wait_lines("out.ndjson", 201, LONG_MS);
	ck_assert_int_lt(now_ms() - before, 5000);
	stop(&worker, 0);
	char *err = read_file(worker.err);
	ck_assert_ptr_nonnull(strstr(err,
				     "msg=\"relay started\" relay=default reads=default "
				     "store=main sink=\"file out.ndjson\" workers=1 "
				     "ordering=key"));
	ck_assert_ptr_nonnull(strstr(err, "msg=\"reader made\" relay=default reads=default"));
	ck_assert_ptr_nonnull(strstr(err, "msg=\"relay stopped\" relay=default published=201"));
	free(err);
	finish();
}
OB_TEST_END

OB_TEST(two_relays_deliver_their_own_targets)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { a: { type: file, path: a.ndjson }, b: { type: file, path: b.ndjson } }\n"
		"relays: [ { name: default, sink: a, workers: 2 }, { name: mail, sink: b, reads: "
		"mail } ]\n");
	push(30, "default");
	push(20, "mail");
	start(&worker, "work", NULL);
	wait_lines("a.ndjson", 30, LONG_MS);
	wait_lines("b.ndjson", 20, LONG_MS);
	stop(&worker, 0);
	check_delivered("a.ndjson", 30, true);
	check_delivered("b.ndjson", 20, true);
	push(5, "mail");
	push(5, "default");
	start(&worker, "work", "--relay", "mail", NULL);
	wait_lines("b.ndjson", 25, LONG_MS);
	stop(&worker, 0);
	check_delivered("a.ndjson", 30, true);
	finish();
}
OB_TEST_END

OB_TEST(without_order_three_workers_deliver_each_message_once)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { ordering: none } ]\n");
	push(500, "default");
	start(&worker, "work", "--workers", "3", NULL);
	wait_lines("out.ndjson", 500, LONG_MS);
	stop(&worker, 0);
	check_delivered("out.ndjson", 500, false);
	finish();
}
OB_TEST_END

/* ---- several readers ---------------------------------------------------------- */

static const char fan_out[] =
	"stores: { main: { url: 'sqlite:x.db' } }\n"
	"sinks: { a: { type: file, path: a.ndjson }, b: { type: file, path: b.ndjson } }\n"
	"relays: [ { name: one, sink: a }, { name: two, sink: b, workers: 2 } ]\n";

OB_TEST(two_relays_on_one_target_each_deliver_everything)
{
	prepare(fan_out);
	push(300, "default");
	start(&worker, "work", NULL);
	wait_lines("a.ndjson", 300, LONG_MS);
	wait_lines("b.ndjson", 300, LONG_MS);
	check_delivered("a.ndjson", 300, true);
	check_delivered("b.ndjson", 300, true);
	push(10, "default");
	wait_lines("a.ndjson", 310, LONG_MS);
	wait_lines("b.ndjson", 310, LONG_MS);
	stop(&worker, 0);
	check_delivered("a.ndjson", 310, false);
	check_delivered("b.ndjson", 310, false);
	finish();
}
OB_TEST_END

OB_TEST(one_relay_does_not_wait_for_the_other)
{
	prepare(fan_out);
	put_file("a.ndjson", "");
	int fd = open(path_of("a.ndjson"), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0); /* nothing can be written there */
	push(20, "default");
	start(&worker, "work", NULL);
	wait_lines("b.ndjson", 20, LONG_MS);
	expect_in_output("\"pending\":20,", "status", "--reader", "one", "--json", NULL);
	expect_in_output("\"pending\":0,", "status", "--reader", "two", "--json", NULL);
	(void)close(fd);
	wait_lines("a.ndjson", 20, LONG_MS);
	stop(&worker, 0);
	check_delivered("a.ndjson", 20, true);
	finish();
}
OB_TEST_END

OB_TEST(a_relay_that_comes_later_begins_where_it_is_told)
{
	prepare(file_config);
	push(5, "default");
	expect(0, "default: 5 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { name: all }, { name: new, start: end },\n"
		 "          { name: old, start: '2020-01-01T00:00:00Z' },\n"
		 "          { name: none, types: [ Other* ] } ]\n");
	expect(0, NULL,
	       "all: 5 published, 0 failed, 0 dead\nnew: 0 published, 0 failed, 0 dead\n"
	       "old: 5 published, 0 failed, 0 dead\nnone: 0 published, 0 failed, 0 dead\n",
	       "work", "--once", NULL);
	push(2, "default");
	expect(0, NULL,
	       "all: 2 published, 0 failed, 0 dead\nnew: 2 published, 0 failed, 0 dead\n"
	       "old: 2 published, 0 failed, 0 dead\nnone: 0 published, 0 failed, 0 dead\n",
	       "work", "--once", NULL);
	/* the name is what counts */
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { name: all, reads: mail } ]\n");
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_ptr_nonnull(strstr(r.err, "default"));
	ck_assert_ptr_nonnull(strstr(r.err, "mail"));
	ck_assert_ptr_eq(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
	ob_run_done(&r);
	finish();
}
OB_TEST_END

OB_TEST(a_relay_delivers_what_its_patterns_let_through)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { types: [ 'Order*', Paid ], aggregates: [ order ] } ]\n");
	static const char *const pushed[][2] = { { "order", "OrderPlaced" },
						 { "order", "Paid" },
						 { "order", "PaidLate" },
						 { "user", "Paid" },
						 { "order", "Order" } };
	for (size_t i = 0; i < 5; i++)
		expect(0, NULL, "", "push", "--type", pushed[i][0], "--event", pushed[i][1],
		       "--payload", "{}", NULL);
	expect(0, "default: 3 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	char *text = read_file(path_of("out.ndjson"));
	ck_assert_ptr_nonnull(strstr(text, "\"OrderPlaced\""));
	ck_assert_ptr_nonnull(strstr(text, "\"Paid\""));
	ck_assert_ptr_nonnull(strstr(text, "\"Order\""));
	ck_assert_ptr_null(strstr(text, "\"user\""));
	free(text);
	/* what was passed over does not wait, and holds nothing */
	expect_in_output("\"lag\":0,", "status", "--json", NULL);
	finish();
}
OB_TEST_END

OB_TEST(a_delayed_message_holds_its_key_when_told_so)
{
	static const char later[] =
		"{\"aggregate_type\":\"order\",\"aggregate_id\":\"1\",\"event_type\":\"E\","
		"\"payload\":1,"
		"\"delay\":3600000}\n"
		"{\"aggregate_type\":\"order\",\"aggregate_id\":\"1\",\"event_type\":\"E\","
		"\"payload\":2}\n"
		"{\"aggregate_type\":\"order\",\"aggregate_id\":\"2\",\"event_type\":\"E\","
		"\"payload\":3}\n";

	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { name: free }, { name: held, hold_delayed: true } ]\n");
	expect_in(later, 0, NULL, "", "push", NULL);
	expect(0, "free: 2 published, 0 failed, 0 dead\nheld: 1 published, 0 failed, 0 dead\n", "",
	       "work", "--once", NULL);
	expect_in_output("\"delayed\":1,\"failed\":0,\"parked\":0,", "status", "--reader", "free",
			 "--json", NULL);
	expect_in_output("\"delayed\":1,\"failed\":0,\"parked\":1,", "status", "--reader", "held",
			 "--json", NULL);
	finish();
}
OB_TEST_END

OB_TEST(a_relay_keeps_the_table_small_when_told_so)
{
	prepare("stores: { main: { url: 'sqlite:x.db', retention: { published: 0, every: 1s } } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n");
	push(50, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 50, LONG_MS);
	int64_t end = now_ms() + LONG_MS;
	for (bool empty = false; !empty;) {
		struct ob_run r = outbox(NULL, "list", "all", NULL);

		empty = strcmp(r.out, "no messages\n") == 0;
		ob_run_done(&r);
		ck_assert_int_lt(now_ms(), end);
		(void)poll(NULL, 0, 50);
	}
	push(1, "default");
	wait_lines("out.ndjson", 51, LONG_MS);
	stop(&worker, 0);
	check_delivered("out.ndjson", 51, false);
	finish();
}
OB_TEST_END

OB_TEST(a_database_alone_prints_its_messages)
{
	prepare(file_config);
	push(3, "default");
	start(&worker, "--store", "sqlite:x.db", "work", "--sink", "stdout", NULL);
	wait_text(worker.out, "\"n\":2", LONG_MS);
	stop(&worker, 0);
	finish();
}
OB_TEST_END

/* Messages that went to a terminal because nobody said where would count as delivered. */
OB_TEST(a_database_without_a_sink_is_refused)
{
	static const char refusal[] =
		"outbox: --store names a database and no sink: add --sink, such as --sink stdout, "
		"or --config with the file whose relays shall run on it\n";

	prepare(file_config);
	push(2, "default");
	expect(2, "", refusal, "--store", "sqlite:x.db", "work", "--once", NULL);
	set_env("OUTBOX_STORE=sqlite:x.db");
	expect(2, "", refusal, "work", "--once", NULL);
	expect(2, "",
	       "outbox: --sink: 'nowhere' is no sink: name a type that needs no more, such as "
	       "stdout, or file:PATH, or its URL\n",
	       "work", "--sink", "nowhere", NULL);
	expect(0, "default: 2 published, 0 failed, 0 dead\n", "", "work", "--sink",
	       "file:sent.ndjson", "--once", NULL);
	check_delivered("sent.ndjson", 2, true);
	finish();
}
OB_TEST_END

OB_TEST(the_configured_relays_run_on_the_database_of_a_url)
{
	prepare(file_config);
	expect(0, NULL, "", "--store", "sqlite:y.db", "setup", NULL);
	expect(0, NULL, "", "--store", "sqlite:y.db", "push", "--type", "order", "--event",
	       "Placed", "--payload", "{\"n\":1}", NULL);
	expect(0, "default: 1 published, 0 failed, 0 dead\n", "", "-c", "outbox.yaml", "--store",
	       "sqlite:y.db", "work", "--once", NULL);
	ck_assert_uint_eq(line_count("out.ndjson"), 1);
	expect(2, "",
	       "outbox: --sink goes with the URL of a database in --store; the relays of a "
	       "configuration name their sinks\n",
	       "work", "--sink", "stdout", NULL);
	finish();
}
OB_TEST_END

/* ---- one fault is not the others' ------------------------------------------------ */

static const char three_relays[] =
	"stores: { main: { url: 'sqlite:x.db' }, lost: { url: 'sqlite:lost.db' } }\n"
	"sinks:\n"
	"  good: { type: file, path: out.ndjson }\n"
	"  bad: { type: file, path: nowhere/out.ndjson }\n"
	"  gone: { type: exec, command: ./no-such-program }\n"
	"relays:\n"
	"  - { name: one, store: main, sink: bad }\n"
	"  - { name: two, store: main, sink: gone }\n"
	"  - { name: three, store: lost, sink: good }\n"
	"  - { name: four, store: main, sink: good }\n";

OB_TEST(a_relay_that_cannot_start_does_not_keep_the_others)
{
	prepare(three_relays);
	push(5, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 5, LONG_MS);
	stop(&worker, 1);
	char *err = read_file(worker.err);
	ck_assert_ptr_nonnull(strstr(err,
				     "msg=\"relay cannot start, the others go on\" relay=one "
				     "store=main error="));
	ck_assert_ptr_nonnull(strstr(err, "relay=two store=main error="));
	ck_assert_ptr_nonnull(strstr(err, "relay=three store=lost error="));
	free(err);
	/* One tick says the same and delivers the same. */
	push(2, "default");
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.out, "four: 2 published, 0 failed, 0 dead\n");
	ck_assert_ptr_nonnull(strstr(r.err, "outbox: relay three: "));
	ob_run_done(&r);
	finish();
}
OB_TEST_END

OB_TEST(a_relay_that_fails_while_it_runs_does_not_end_the_others)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks:\n"
		"  good: { type: file, path: out.ndjson }\n"
		"  bad: { type: file, path: d/out.ndjson }\n"
		"relays: [ { name: one, sink: bad }, { name: two, sink: good } ]\n");
	ck_assert_int_eq(mkdir(path_of("d"), 0700), 0);
	start(&worker, "work", NULL);
	wait_text(worker.err, "msg=\"relay started\" relay=two", LONG_MS);
	(void)unlink(path_of("d/out.ndjson"));
	ck_assert_int_eq(rmdir(path_of("d")), 0);
	push(3, "default");
	wait_text(worker.err,
		  "msg=\"relay failed and has ended\" relay=one store=main error=", LONG_MS);
	push(3, "default");
	wait_lines("out.ndjson", 6, LONG_MS);
	stop(&worker, 1);
	finish();
}
OB_TEST_END

OB_TEST(a_store_that_is_away_at_the_start_is_waited_for)
{
	prepare("stores:\n"
		"  main: { url: 'sqlite:x.db' }\n"
		"  busy: { url: 'mysql://nobody@127.0.0.1:1/shop' }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays:\n"
		"  - { name: one, store: busy }\n"
		"  - { name: two, store: main }\n");
	struct ob_run built = outbox(NULL, "config", "check", NULL);
	bool known = built.code == 0; /* else this build has no MySQL */
	ob_run_done(&built);
	if (!known) {
		finish();
		return;
	}
	push(3, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 3, LONG_MS);
	wait_text(worker.err,
		  "msg=\"store is away, waiting for it\" relay=one store=busy error=", LONG_MS);
	stop(&worker, 0);
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_ptr_nonnull(strstr(r.err, "outbox: relay one: "));
	ck_assert_ptr_nonnull(strstr(r.out, "two: 0 published"));
	ob_run_done(&r);
	finish();
}
OB_TEST_END

/* ---- once --------------------------------------------------------------------- */

OB_TEST(once_says_what_it_did)
{
	prepare(file_config);
	expect(0, "default: 0 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	push(3, "default");
	expect(0, "default: 3 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);
	check_delivered("out.ndjson", 3, true);
	push(1, "default");
	expect(0,
	       "{\"relay\":\"default\",\"published\":1,\"failed\":0,\"dead\":0,\"down\":0,"
	       "\"error\":null}\n",
	       "", "work", "--once", "--json", NULL);
	finish();
}
OB_TEST_END

/* ---- wrong setups ---------------------------------------------------------------- */

OB_TEST(a_wrong_setup_is_one_clear_line)
{
	begin();
	put_file("outbox.yaml", file_config);
	expect(1, "", "outbox: relay default: x.db: no such database; run `outbox setup`\n", "work",
	       NULL);
	expect(0, NULL, "", "--store", "sqlite:x.db", "setup", NULL);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: file, path: nowhere/out.ndjson } }\n");
	struct ob_run r = outbox(NULL, "work", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_ptr_nonnull(strstr(r.err, "create its directory"));
	ck_assert_ptr_eq(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
	ob_run_done(&r);
	put_file("outbox.yaml", "stores: { main: { url: 'sqlite:x.db' } }\n");
	expect(1, "",
	       "outbox: outbox.yaml has no relay: add 'relays:' with a store and a sink, or one "
	       "store and one sink\n",
	       "work", NULL);
	finish();
}
OB_TEST_END

OB_TEST(wrong_words_are_refused)
{
	begin();
	put_file("outbox.yaml", file_config);
	expect(2, "", "outbox: work: --workers: '0' is not a number from 1 to 256\n", "work",
	       "--workers", "0", NULL);
	expect(2, "", "outbox: work: --interval-ms: 'x' is not a number from 100 to 3600000\n",
	       "work", "--interval-ms", "x", NULL);
	expect(2, "", "outbox: work: --window: '0' is not a number from 1 to 86400\n", "work",
	       "--window", "0", NULL);
	expect(2, "", "outbox: work: one word too many: 'default'\n", "work", "default", NULL);
	expect(1, "", "outbox: outbox.yaml has no relay 'nope'; it has default\n", "work",
	       "--relay", "nope", NULL);
	expect(2, "",
	       "outbox: work: --json writes to standard output, and so does a sink of type stdout: "
	       "use --silent, or another sink\n",
	       "--store", "sqlite:x.db", "work", "--sink", "stdout", "--json", NULL);
	finish();
}
OB_TEST_END

/* ---- lines -------------------------------------------------------------------------- */

OB_TEST(json_lines_tell_what_happened)
{
	prepare(file_config);
	push(10, "default");
	start(&worker, "work", "--json", "--interval-ms", "100", NULL);
	wait_text(worker.out, "\"published_total\":10", LONG_MS);
	wait_text(worker.out, "\"published\":0,", LONG_MS);
	stop(&worker, 0);
	char *text = read_file(worker.out);
	json_int_t published = 0, idle = 0;
	for (char *line = text, *nl; (nl = strchr(line, '\n')); line = nl + 1) {
		*nl = '\0';
		json_t *v = json_loads(line, 0, NULL);
		ck_assert_msg(v != NULL, "not JSON: %s", line);
		ck_assert_str_eq(json_string_value(json_object_get(v, "relay")), "default");
		ck_assert_str_eq(json_string_value(json_object_get(v, "breaker")), "closed");
		ck_assert(json_is_number(json_object_get(v, "rate")));
		json_int_t n = json_integer_value(json_object_get(v, "published"));
		published += n;
		/* an empty tick reports zeros and the backoff */
		ck_assert_int_eq(json_integer_value(json_object_get(v, "backoff_ms")),
				 n ? 0 : 1000);
		idle += n == 0;
		json_decref(v);
	}
	ck_assert_int_eq(published, 10);
	ck_assert_int_gt(idle, 0);
	free(text);
	finish();
}
OB_TEST_END

OB_TEST(a_window_is_one_line_of_the_log)
{
	prepare(file_config);
	push(10, "default");
	start(&worker, "work", "--window", "1", NULL);
	wait_text(worker.err, "msg=\"window\" relay=default published=10 rate=", LONG_MS);
	wait_text(worker.err,
		  "published=0 rate=0.0/s failed=0 dead=0 backlog=0 oldest=0s in_flight=0 "
		  "breaker=closed partitions=16",
		  LONG_MS);
	stop(&worker, 0);
	finish();
}
OB_TEST_END

OB_TEST(silent_is_silent)
{
	prepare(file_config);
	push(1, "default");
	start(&worker, "work", "--silent", NULL);
	wait_lines("out.ndjson", 1, LONG_MS);
	stop(&worker, 0);
	char *out = read_file(worker.out), *err = read_file(worker.err);
	ck_assert_str_eq(out, "");
	ck_assert_str_eq(err, "");
	free(out);
	free(err);
	finish();
}
OB_TEST_END

/* ---- signals -------------------------------------------------------------------------- */

static bool all_are_leased(void)
{
	struct ob_run r = outbox(NULL, "--store", "sqlite:x.db", "status", "--json", NULL);
	bool all = strstr(r.out, "\"leased\":16,\"workers\":1") != NULL;

	ob_run_done(&r);
	return all;
}

OB_TEST(after_a_stop_the_next_worker_takes_over_within_half_a_second)
{
	prepare(file_config);
	push(1, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 1, LONG_MS);
	start(&second, "work", NULL);
	/* it gets its share of what the first one has */
	wait_text(second.err, "partitions taken", LONG_MS);
	stop(&worker, 0);
	int64_t stopped = now_ms(), asked = stopped;
	for (; !all_are_leased(); asked = now_ms())
		ck_assert_int_lt(asked - stopped, LONG_MS);
	ck_assert_int_le(asked - stopped, 500);
	push(20, "default");
	wait_lines("out.ndjson", 21, LONG_MS);
	stop(&second, 0);
	check_delivered("out.ndjson", 21, false);
	finish();
}
OB_TEST_END

OB_TEST(a_worker_that_stopped_leaves_no_lease)
{
	prepare(file_config);
	push(1, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 1, LONG_MS);
	stop(&worker, 0);
	expect_in_output("\"leased\":0,\"workers\":0", "--store", "sqlite:x.db", "status", "--json",
			 NULL);
	finish();
}
OB_TEST_END

OB_TEST(a_valid_configuration_is_taken_over)
{
	prepare(file_config);
	push(1, "default");
	start(&worker, "work", NULL);
	wait_lines("out.ndjson", 1, LONG_MS);
	put_file(
		"outbox.yaml",
		"stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: new.ndjson }, b: { type: file, path: b.ndjson "
		"} }\n"
		"relays: [ { name: default, sink: out }, { name: mail, sink: b, reads: mail } ]\n");
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	wait_text(worker.err, "relay changed, restarting it", LONG_MS);
	push(2, "mail");
	push(3, "default");
	wait_lines("new.ndjson", 3, LONG_MS);
	wait_lines("b.ndjson", 2, LONG_MS);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: file, path: new.ndjson } }\n"
		 "relays: [ { name: default } ]\nlog: { level: warn }\n");
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	wait_text(worker.err, "relay removed, draining it", LONG_MS);
	push(1, "default");
	wait_lines("new.ndjson", 4, LONG_MS);
	stop(&worker, 0);
	ck_assert_uint_eq(line_count("out.ndjson"), 1);
	finish();
}
OB_TEST_END

OB_TEST(an_invalid_configuration_changes_nothing)
{
	prepare(file_config);
	start(&worker, "work", NULL);
	wait_text(worker.err, "relay started", LONG_MS);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\nsinks: { out: { typ: 1 } }\n");
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	wait_text(worker.err,
		  "msg=\"not reloaded, going on as before\" error=\"outbox.yaml:2:", LONG_MS);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks: { out: { type: file, path: nowhere/out } }\n");
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	wait_text(worker.err, "create its directory", LONG_MS);
	push(4, "default");
	wait_lines("out.ndjson", 4, LONG_MS);
	stop(&worker, 0);
	finish();
}
OB_TEST_END

OB_TEST(a_second_stop_does_not_wait_for_the_sink)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { name: default, shutdown_timeout: 1h } ]\n");
	put_file("out.ndjson", "");
	int fd = open(path_of("out.ndjson"), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0); /* nothing can be written */
	push(1, "default");
	start(&worker, "work", "--json", "--interval-ms", "100", NULL);
	wait_text(worker.out, "\"in_flight\":1", LONG_MS);
	ck_assert_int_eq(kill(worker.pid, SIGTERM), 0);
	wait_text(worker.err, "stopping after what is in flight", LONG_MS);
	/* At once it would be the same wish again. */
	ck_assert_int_eq(kill(worker.pid, SIGTERM), 0);
	(void)poll(NULL, 0, 1100);
	ck_assert_int_eq(kill(worker.pid, 0), 0);
	stop(&worker, 0);
	(void)close(fd);
	expect_in_output("\"pending\":1", "--store", "sqlite:x.db", "status", "--json", NULL);
	finish();
}
OB_TEST_END

/* The next notice that begins so, which the next call overwrites; others are passed over. */
static const char *await_notice(int fd, const char *want)
{
	static char text[256];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	do {
		ck_assert_msg(poll(&p, 1, LONG_MS) == 1, "no %s", want);
		ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
		ck_assert_int_gt(n, 0);
		text[n] = '\0';
	} while (strncmp(text, want, strlen(want)) != 0);
	return text;
}

/* The same, and nothing but the state comes before it. */
static void expect_notice(int fd, const char *want)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[256];

	do {
		ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
		ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
		ck_assert_int_gt(n, 0);
		text[n] = '\0';
	} while (strncmp(text, "STATUS=", 7) == 0);
	ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s, not %s", text, want);
}

static int listen_as_manager(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path_of("notify"));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return fd;
}

OB_TEST(the_service_manager_is_told)
{
	struct timespec now;

	prepare(file_config);
	int fd = listen_as_manager();
	start(&worker, "work", NULL);
	expect_notice(fd, "READY=1");
	ck_assert_int_eq(kill(worker.pid, SIGHUP), 0);
	const char *reloading = await_notice(fd, "RELOADING=1\nMONOTONIC_USEC=");
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	long long at = strtoll(strrchr(reloading, '=') + 1, NULL, 10) / 1000000;
	ck_assert_int_le(at, now.tv_sec);
	ck_assert_int_ge(at, now.tv_sec - LONG_MS / 1000);
	expect_notice(fd, "READY=1");
	stop(&worker, 0);
	expect_notice(fd, "STOPPING=1");
	(void)setenv("WATCHDOG_USEC", "300000", 1);
	start(&worker, "work", NULL);
	(void)await_notice(fd, "READY=1");
	(void)await_notice(fd, "WATCHDOG=1");
	(void)await_notice(fd, "WATCHDOG=1");
	kill_now(&worker);
	(void)close(fd);
	finish();
}
OB_TEST_END

OB_TEST(the_service_manager_sees_the_state_and_gives_time_to_drain)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { name: default, shutdown_timeout: 1h } ]\n");
	int notices = listen_as_manager();
	put_file("out.ndjson", "");
	int fd = open(path_of("out.ndjson"), O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0); /* nothing can be written */
	push(1, "default");
	start(&worker, "work", "--json", "--interval-ms", "100", NULL);
	wait_text(worker.out, "\"in_flight\":1", LONG_MS);
	const char *state = await_notice(notices, "STATUS=");
	ck_assert_msg(strstr(state, "0/s, ") && strstr(state, " due, sink ok"), "%s", state);
	ck_assert_int_eq(kill(worker.pid, SIGTERM), 0);
	(void)await_notice(notices, "STOPPING=1");
	(void)await_notice(notices, "STATUS=stopping, ");
	(void)await_notice(notices, "EXTEND_TIMEOUT_USEC=10000000");
	(void)await_notice(notices, "EXTEND_TIMEOUT_USEC=10000000");
	stop(&worker, 0);
	(void)close(fd);
	(void)close(notices);
	finish();
}
OB_TEST_END

/* ---- failing sinks ------------------------------------------------------------------------ */

static const char small_disk[] =
	"stores: { main: { url: 'sqlite:x.db' } }\n"
	"sinks: { out: { type: file, path: small/out.ndjson } }\n";

/* A disk of our own, without room; false when the system does not let us. */
static bool mount_full_disk(void)
{
	char block[4096] = { 0 };

	ck_assert_int_eq(mkdir(path_of("small"), 0700), 0);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", path_of("small"), "tmpfs", 0, "size=64k") < 0) {
		(void)fprintf(stderr, "# SKIP no right to mount a small disk\n");
		return false;
	}
	int fd = open(path_of("small/filler"), O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	while (write(fd, block, sizeof(block)) > 0) {
	}
	(void)close(fd);
	return true;
}

OB_TEST(once_fails_when_the_sink_is_down)
{
	prepare(small_disk);
	if (mount_full_disk()) {
		push(1, "default");
		struct ob_run r = outbox(NULL, "work", "--once", NULL);
		ck_assert_int_eq(r.code, 1);
		ck_assert_str_eq(r.out, "default: 0 published, 0 failed, 0 dead\n");
		ck_assert_ptr_nonnull(strstr(r.err, "outbox: relay default: the sink is down: "));
		ob_run_done(&r);
		expect_in_output("\"pending\":1", "--store", "sqlite:x.db", "status", "--json",
				 NULL);
		(void)umount2(path_of("small"), MNT_DETACH);
	}
	finish();
}
OB_TEST_END

OB_TEST(a_sink_that_comes_back_gets_everything_and_no_attempt_was_charged)
{
	prepare(small_disk);
	if (mount_full_disk()) {
		push(5, "default");
		start(&worker, "work", "--window", "1", NULL);
		wait_text(worker.err, "sink is down, waiting for it", LONG_MS);
		wait_text(worker.err, "breaker=open", LONG_MS);
		expect_in_output("\"pending\":5", "--store", "sqlite:x.db", "status", "--json",
				 NULL);
		ck_assert_int_eq(unlink(path_of("small/filler")), 0);
		int64_t back = now_ms();
		wait_lines("small/out.ndjson", 5, LONG_MS);
		ck_assert_int_lt(now_ms() - back, 5000);
		stop(&worker, 0);
		check_delivered("small/out.ndjson", 5, true);
		expect_in_output("\"attempts\":0,", "--store", "sqlite:x.db", "list", "published",
				 "--json", NULL);
		(void)umount2(path_of("small"), MNT_DETACH);
	}
	finish();
}
OB_TEST_END

/* `work --json | head -1` */
OB_TEST(lines_that_nobody_reads_any_more_end_it)
{
	char byte;

	prepare(file_config);
	ck_assert_int_eq(mkfifo(path_of("lines"), 0600), 0);
	char command[512];
	(void)snprintf(command, sizeof(command),
		       "cd %s && exec %s work --json --interval-ms 100 >lines 2>err", dir,
		       getenv("OUTBOX_BIN"));
	pid_t pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	int fd = open(path_of("lines"), O_RDONLY);
	ck_assert_int_eq(read(fd, &byte, 1), 1);
	(void)close(fd);
	int status = 0;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	wait_text(path_of("err"), "the reader of the lines has gone away, stopping", LONG_MS);
	finish();
}
OB_TEST_END

OB_TEST(what_failed_for_good_is_dead_and_no_more_failed)
{
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: exec, command: 'sh handler.sh' } }\n");
	put_file("handler.sh",
		 "while read -r line; do id=${line#*'\"id\":\"'}; echo \"reject ${id%%'\"'*} no\"; "
		 "done\n");
	push(2, "default");
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.out, "default: 0 published, 0 failed, 2 dead\n");
	ob_run_done(&r);
	finish();
}
OB_TEST_END

OB_TEST(once_says_what_a_dead_worker_still_holds)
{
	prepare(file_config);
	start(&worker, "work", NULL);
	wait_text(worker.err, "partitions taken", LONG_MS);
	kill_now(&worker);
	push(1, "default");
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	/* It took over, or it says why it did not. */
	ck_assert_msg(strstr(r.out, "default: 1 published") ||
			      strstr(r.err, "partitions are leased by other workers"),
		      "%s%s", r.out, r.err);
	ob_run_done(&r);
	finish();
}
OB_TEST_END

OB_SUITE("cli_work", what_another_process_commits_is_delivered_in_order,
	 two_relays_deliver_their_own_targets,
	 without_order_three_workers_deliver_each_message_once,
	 two_relays_on_one_target_each_deliver_everything, one_relay_does_not_wait_for_the_other,
	 a_relay_that_comes_later_begins_where_it_is_told,
	 a_relay_delivers_what_its_patterns_let_through,
	 a_delayed_message_holds_its_key_when_told_so, a_relay_keeps_the_table_small_when_told_so,
	 a_database_alone_prints_its_messages, a_database_without_a_sink_is_refused,
	 the_configured_relays_run_on_the_database_of_a_url,
	 a_relay_that_cannot_start_does_not_keep_the_others,
	 a_relay_that_fails_while_it_runs_does_not_end_the_others,
	 a_store_that_is_away_at_the_start_is_waited_for, once_says_what_it_did,
	 a_wrong_setup_is_one_clear_line, wrong_words_are_refused, json_lines_tell_what_happened,
	 a_window_is_one_line_of_the_log, silent_is_silent,
	 after_a_stop_the_next_worker_takes_over_within_half_a_second,
	 a_worker_that_stopped_leaves_no_lease, a_valid_configuration_is_taken_over,
	 an_invalid_configuration_changes_nothing, a_second_stop_does_not_wait_for_the_sink,
	 the_service_manager_is_told, the_service_manager_sees_the_state_and_gives_time_to_drain,
	 once_fails_when_the_sink_is_down,
	 a_sink_that_comes_back_gets_everything_and_no_attempt_was_charged,
	 lines_that_nobody_reads_any_more_end_it, what_failed_for_good_is_dead_and_no_more_failed,
	 once_says_what_a_dead_worker_still_holds)

/* SPDX-License-Identifier: MIT */
/*
 * The database's own mishaps while a worker and a shop are busy: its server crashes and comes
 * back, connections are cut, locks last, statements are cancelled. Each costs time and
 * nothing else: no message is lost or charged an attempt, order holds, and the worker goes on by
 * itself.
 */
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { CRASHES = 3, CUTS = 12, WRITES = 40, LOCK_MS = 1500 };

static struct rig rig;
static struct ob_child worker;
static pthread_t thread;
static atomic_bool closing;
static struct ob_err trouble;

/* The shop writes on whatever happens. */
static void *produce(void *arg)
{
	(void)arg;
	while (!atomic_load(&closing)) {
		struct ob_err err = OB_ERR_INIT;

		if (shop_step(&rig.shop, RIG_SOON_MS, &err) < 0 && err.kind != OB_ERR_DOWN) {
			trouble = err;
			return NULL;
		}
		(void)poll(NULL, 0, 2);
	}
	return NULL;
}

static void begin(const char *name)
{
	rig_init(&rig, name, 11);
	rig_start(&rig, &worker, NULL, "worker.log");
	ck_assert_int_eq(pthread_create(&thread, NULL, produce, NULL), 0);
}

/* `more` lines than there are now: it works, and has something in its hands. */
static void until_delivered(size_t more)
{
	size_t lines = rig_lines(&rig);

	rig_until(&rig, rig_lines(&rig) >= lines + more, RIG_SOON_MS);
}

static void end(void)
{
	until_delivered(WRITES);
	atomic_store(&closing, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(trouble.kind == OB_ERR_NONE, "the shop failed: %s", trouble.msg);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	ck_assert_msg(ob_child_look(&worker) == OB_CHILD_RUNS, "it ended with %d:\n%s", worker.code,
		      rig_log(&rig, "worker.log"));
	rig_stop(&rig, &worker);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	rig_audit(&rig);
	rig_done(&rig);
}

OB_TEST(a_server_that_crashes_and_comes_back_costs_nothing_but_time)
{
	/* One of its own, which ends with this test's process; the others keep theirs. */
	const char *missing = rig_place()->start();

	ck_assert_msg(!missing, "%s", missing);
	begin("server crash");
	for (int i = 0; i < CRASHES; i++) {
		until_delivered(WRITES);
		rig_place()->crash();
		rig.crashes++;
		rig_expect_log(&rig, "worker.log", "store failed", RIG_SOON_MS);
		rig_place()->again();
	}
	end();
	rig_place()->stop();
}
OB_TEST_END

OB_TEST(connections_that_are_cut_cost_nothing_but_time)
{
	begin("cut connections");
	for (int i = 0; i < CUTS; i++) {
		until_delivered(5);
		rig_place()->kick(rig.url);
		rig.crashes++;
	}
	rig_expect_log(&rig, "worker.log", "store failed", RIG_SOON_MS);
	end();
}
OB_TEST_END

/* What others may lock, for longer than a worker's statement may wait. */
static const char *lock_of(const char *place)
{
	return strcmp(place, "postgres") == 0 ? "BEGIN; LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE"
					      : "LOCK TABLES outbox WRITE";
}

OB_TEST(a_table_that_is_locked_for_long_costs_nothing_but_time)
{
	begin("locked table");
	until_delivered(WRITES);
	void *held = rig_place()->hold(rig.url, lock_of(rig_place()->name));
	int64_t end_ms = rig_now_ms() + LOCK_MS;
	while (rig_now_ms() < end_ms)
		rig_breathe();
	rig_place()->let_go(held);
	end();
}
OB_TEST_END

/* Somebody updates the very rows in the other order: deadlocks, and waits that run out. */
OB_TEST(deadlocks_with_others_cost_nothing_but_time)
{
	static const char postgres[] =
		"SET deadlock_timeout = '20ms'; SET lock_timeout = '2s'; DO $$ BEGIN FOR i IN "
		"1..40 "
		"LOOP BEGIN PERFORM 1 FROM (SELECT seq FROM outbox ORDER BY seq DESC LIMIT 200) AS "
		"t,"
		" LATERAL (SELECT 1 FROM outbox AS o WHERE o.seq = t.seq FOR UPDATE) AS l; "
		"EXCEPTION WHEN deadlock_detected OR lock_not_available THEN NULL; END; "
		"END LOOP; END $$";
	static const char mysql[] =
		"BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; "
		"DECLARE CONTINUE HANDLER FOR 1213, 1205 ROLLBACK; "
		"SET innodb_lock_wait_timeout = 1; WHILE i < 40 DO START TRANSACTION; "
		"SELECT COUNT(*) FROM (SELECT seq FROM outbox ORDER BY seq DESC LIMIT 200 FOR "
		"UPDATE) "
		"AS t; ROLLBACK; SET i = i + 1; END WHILE; END";

	begin("deadlocks");
	for (int i = 0; i < 3; i++) {
		until_delivered(WRITES);
		rig_place()->run(rig.url,
				 strcmp(rig_place()->name, "postgres") == 0 ? postgres : mysql);
	}
	end();
}
OB_TEST_END

/* Every running statement is cancelled, again and again. */
OB_TEST(cancelled_statements_cost_nothing_but_time)
{
	static const char postgres[] =
		"DO $$ BEGIN FOR i IN 1..200 LOOP PERFORM pg_cancel_backend(pid) FROM "
		"pg_stat_activity "
		"WHERE pid <> pg_backend_pid() AND datname = current_database() AND state = "
		"'active';"
		" PERFORM pg_stat_clear_snapshot(); PERFORM pg_sleep(0.002); END LOOP; END $$";
	static const char mysql[] =
		"BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; DECLARE victim BIGINT; "
		"DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; "
		"WHILE i < 200 DO SET victim = (SELECT id FROM information_schema.PROCESSLIST "
		"WHERE id <> CONNECTION_ID() AND db = DATABASE() AND command <> 'Sleep' ORDER BY "
		"RAND() "
		"LIMIT 1); IF victim IS NOT NULL THEN KILL QUERY victim; END IF; "
		"DO SLEEP(0.002); SET i = i + 1; END WHILE; END";

	begin("cancelled statements");
	for (int i = 0; i < 3; i++) {
		until_delivered(WRITES);
		rig_place()->run(rig.url,
				 strcmp(rig_place()->name, "postgres") == 0 ? postgres : mysql);
		rig.crashes++; /* a settle that was cancelled may have been ready */
	}
	end();
}
OB_TEST_END

RIG_SUITE("crash_database", a_server_that_crashes_and_comes_back_costs_nothing_but_time,
	  connections_that_are_cut_cost_nothing_but_time,
	  a_table_that_is_locked_for_long_costs_nothing_but_time,
	  deadlocks_with_others_cost_nothing_but_time, cancelled_statements_cost_nothing_but_time)

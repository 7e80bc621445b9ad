/* SPDX-License-Identifier: MIT */
/*
 * The database's own mishaps while a worker and a shop are busy: its server crashes and comes
 * back, connections are cut, locks last, statements are cancelled, deadlocks. Each is seen to have
 * met the worker, and costs time and nothing else: no message is lost or charged an attempt, order
 * holds, and the worker goes on by itself.
 */
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
	CRASHES = 3,
	CUTS = 12,
	WRITES = 40,
	TIMES = 2,
	DEADLOCKS = 3,
	OURS = 2 /* connections of the test */
};

/* What is said and called differently. */
struct words {
	const char *lock; /* what others may lock for long, so that a worker can do nothing */
	const char *lock_over, *time_over, *cancelled; /* in a worker's log */
	const char *cancel;                            /* every statement that waits for a lock */
	const char *meddle;    /* lock leases in the other order for a while */
	const char *heavy;     /* begin what is not the victim of a deadlock */
	const char *one_row;   /* the journal row after the next few of the last partition */
	const char *all_rows;  /* the next rows of all partitions, as far as there are none */
	const char *waiting;   /* how many wait for a lock of a row */
	const char *deadlocks; /* how many there were */
};

/* Copies of each partition's newest journal row under the numbers that come next. */
#define PG_JOURNAL \
	"INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos, seen) " \
	"SELECT reader, partition_no, batch + g, epoch, owner, at, pos, seen FROM " \
	"(SELECT DISTINCT ON (partition_no) * FROM outbox_batches WHERE partition_no < 16 " \
	"ORDER BY partition_no, batch DESC) AS newest, generate_series(1, 6) AS g "
#define MYSQL_JOURNAL \
	"INSERT IGNORE INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) " \
	"SELECT b.reader, b.partition_no, b.batch + g.seq, b.epoch, b.owner, b.at, b.pos " \
	"FROM outbox_batches AS b JOIN (SELECT partition_no, MAX(batch) AS batch " \
	"FROM outbox_batches WHERE partition_no < 16 GROUP BY partition_no) AS newest " \
	"USING (partition_no, batch) JOIN seq_1_to_6 AS g "

static const struct words postgres_words = {
	.lock = "BEGIN; LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE",
	.lock_over = "canceling statement due to lock timeout",
	.time_over = "canceling statement due to statement timeout",
	.cancelled = "canceling statement due to user request",
	.cancel =
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
		"WHERE datname = current_database() AND wait_event_type = 'Lock'",
	.meddle =
		"SET deadlock_timeout = '20ms'; SET lock_timeout = '2s'; DO $$ BEGIN "
		"FOR i IN 1..40 LOOP BEGIN "
		"PERFORM 1 FROM (SELECT partition_no AS p FROM outbox_leases ORDER BY 1 DESC) AS t,"
		" LATERAL (SELECT 1 FROM outbox_leases AS l WHERE l.partition_no = t.p FOR UPDATE)"
		" AS l; "
		"EXCEPTION WHEN deadlock_detected OR lock_not_available THEN NULL; END; "
		"END LOOP; END $$",
	/* Whoever looks for deadlocks first is the victim; each looks once. */
	.heavy = "SET deadlock_timeout = '1h'; BEGIN",
	.one_row = PG_JOURNAL "WHERE partition_no = 15 AND g = 3",
	.all_rows = PG_JOURNAL "ON CONFLICT DO NOTHING",
	.waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'",
	.deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
};

static const struct words mysql_words = {
	.lock = "LOCK TABLES outbox WRITE",
	.lock_over = "Lock wait timeout exceeded",
	.time_over = "max_statement_time exceeded",
	.cancelled = "Query execution was interrupted",
	.cancel =
		"BEGIN NOT ATOMIC DECLARE victim BIGINT; "
		"DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; "
		"FOR p IN (SELECT id FROM information_schema.PROCESSLIST WHERE db = DATABASE() "
		"AND state LIKE 'Waiting for%lock%') DO "
		"SET victim = p.id; KILL QUERY victim; END FOR; END",
	.meddle =
		"BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; "
		"DECLARE CONTINUE HANDLER FOR 1213, 1205 ROLLBACK; "
		"SET innodb_lock_wait_timeout = 1; WHILE i < 40 DO START TRANSACTION; "
		"SELECT COUNT(*) FROM (SELECT partition_no FROM outbox_leases "
		"ORDER BY reader DESC, partition_no DESC FOR UPDATE) AS t; ROLLBACK; "
		"SET i = i + 1; END WHILE; END",
	/* Whoever changed least is the victim. */
	.heavy = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; "
		 "CREATE TABLE IF NOT EXISTS load_of_work (n INT) ENGINE=InnoDB; "
		 "START TRANSACTION; INSERT INTO load_of_work SELECT seq FROM seq_1_to_5000",
	.one_row = MYSQL_JOURNAL "WHERE partition_no = 15 AND g.seq = 3",
	.all_rows = MYSQL_JOURNAL,
	.waiting =
		"SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
		"WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
	.deadlocks =
		"SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
		"WHERE VARIABLE_NAME = 'INNODB_DEADLOCKS'",
};

static struct rig rig;
static struct ob_child worker;
static pthread_t thread;
static atomic_bool closing;
static atomic_bool troubled; /* then trouble says why */
static struct ob_err trouble;

static const struct words *words(void)
{
	return strcmp(rig_place()->name, "postgres") == 0 ? &postgres_words : &mysql_words;
}

/* The shop writes on whatever happens. */
static void *produce(void *arg)
{
	(void)arg;
	while (!atomic_load(&closing)) {
		struct ob_err err = OB_ERR_INIT;

		if (shop_step(&rig.shop, RIG_SOON_MS, &err) < 0 && err.kind != OB_ERR_DOWN) {
			trouble = err;
			atomic_store(&troubled, true);
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

	rig_until(&rig, rig_lines(&rig) >= lines + more || atomic_load(&troubled), RIG_SOON_MS);
	ck_assert_msg(!atomic_load(&troubled), "the shop failed: %s", trouble.msg);
}

/* Until the worker has said so once more than it had. */
static void until_said(const char *text, uint32_t had)
{
	rig_until(&rig, rig_said(&rig, "worker.log", text) > had, RIG_SOON_MS);
}

static void end(void)
{
	until_delivered(WRITES);
	atomic_store(&closing, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(!atomic_load(&troubled), "the shop failed: %s", trouble.msg);
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	ck_assert_msg(ob_child_look(&worker) == OB_CHILD_RUNS, "it ended with %d:\n%s", worker.code,
		      rig_tail(&rig, "worker.log"));
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
		uint32_t had = rig_said(&rig, "worker.log", "store failed");
		rig_place()->crash();
		rig.crashes++;
		until_said("store failed", had);
		rig_place()->again();
	}
	end();
	rig_place()->stop();
}
OB_TEST_END

OB_TEST(connections_that_are_cut_cost_nothing_but_time)
{
	begin("cut connections");
	for (int cuts = 0; cuts < CUTS; rig.crashes++) {
		until_delivered(5);
		cuts += rig_place()->kick(rig.url) > OURS;
	}
	/* What is noticed while nothing is asked of it needs no word. */
	rig_expect_log(&rig, "worker.log", "store failed", RIG_SOON_MS);
	end();
}
OB_TEST_END

/* The table is locked until the worker has given up waiting and tried again. */
static void lock_until(const char *text)
{
	until_delivered(WRITES);
	uint32_t had = rig_said(&rig, "worker.log", text);
	void *held = rig_place()->hold(rig.url, words()->lock);
	until_said(text, had + TIMES - 1);
	rig_place()->let_go(held);
	rig.crashes++; /* a settle may have been given up behind the confirmation */
}

OB_TEST(a_lock_for_longer_than_the_lock_timeout_costs_nothing_but_time)
{
	rig_extra.store = "lock_timeout: 1s";
	begin("locked table");
	lock_until(words()->lock_over);
	end();
}
OB_TEST_END

OB_TEST(a_statement_for_longer_than_the_timeout_costs_nothing_but_time)
{
	rig_extra.store = "timeout: 1s, lock_timeout: 30s";
	begin("statement timeout");
	lock_until(words()->time_over);
	end();
}
OB_TEST_END

/* Every statement that waits is cancelled, again and again. */
OB_TEST(cancelled_statements_cost_nothing_but_time)
{
	rig_extra.store = "lock_timeout: 60s, timeout: 60s";
	begin("cancelled statements");
	for (int i = 0; i < TIMES; i++) {
		until_delivered(WRITES);
		uint32_t had = rig_said(&rig, "worker.log", words()->cancelled);
		void *held = rig_place()->hold(rig.url, words()->lock);
		while (rig_said(&rig, "worker.log", words()->cancelled) == had) {
			rig_place()->run(rig.url, words()->cancel);
			rig_breathe();
		}
		rig_place()->let_go(held);
		rig.crashes++; /* a settle that was cancelled may have been ready */
	}
	end();
}
OB_TEST_END

/*
 * Somebody has written a journal row of one partition that the worker comes to soon. The settle
 * that has to wait for it has rows of other partitions, and these are wanted now: the server ends
 * the settle.
 */
static void provoke(void)
{
	until_delivered(WRITES);
	void *held = rig_place()->hold(rig.url, words()->heavy);
	rig_place()->also(held, words()->one_row);
	rig_until(&rig, rig_place()->number(rig.url, words()->waiting) > 0, RIG_SOON_MS);
	rig_place()->also(held, words()->all_rows);
	rig_place()->let_go(held);
	rig.crashes++; /* what was confirmed before that settle was */
}

OB_TEST(deadlocks_with_others_cost_nothing_but_time)
{
	begin("deadlocks");
	int64_t had = rig_place()->number(rig.url, words()->deadlocks);
	/* One is missed when the settle that waits has rows of one partition alone. */
	while (rig_place()->number(rig.url, words()->deadlocks) < had + DEADLOCKS)
		provoke();
	for (int i = 0; i < TIMES; i++) {
		until_delivered(WRITES);
		rig_place()->run(rig.url, words()->meddle);
	}
	end();
}
OB_TEST_END

RIG_SUITE("crash_database", a_server_that_crashes_and_comes_back_costs_nothing_but_time,
	  connections_that_are_cut_cost_nothing_but_time,
	  a_lock_for_longer_than_the_lock_timeout_costs_nothing_but_time,
	  a_statement_for_longer_than_the_timeout_costs_nothing_but_time,
	  cancelled_statements_cost_nothing_but_time, deadlocks_with_others_cost_nothing_but_time)

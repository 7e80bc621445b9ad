/* SPDX-License-Identifier: MIT */
/*
 * The PostgreSQL log: what commits late, out of order or not at all, tables that are written anew,
 * and moves of the database; that nothing of it is lost, and nothing repeated that was recorded.
 */
#include "pg_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

static const char *const settings[] = { "max_prepared_transactions=5", "max_connections=300",
					"autovacuum=off", NULL };

static void insert(PGconn *conn, const char *label, const char *key)
{
	exec(conn,
	     "INSERT INTO outbox (aggregate_type, event_type, payload, partition_key) VALUES ('t', "
	     "'%s', '{}', '%s')",
	     label, key);
}

/* Read everything that there is, settle it. */
static void drain(struct worker *w, uint32_t limit, const char *labels)
{
	char all[4096] = "";

	do {
		const char *more = worker_read(w, limit);

		if (*more)
			(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
				       *all ? " " : "", more);
	} while (w->done.more);
	ck_assert_str_eq(all, labels);
	ck_assert_uint_eq(worker_settle(w), 0);
}

/* ---- commits ----------------------------------------------------------- */

OB_TEST(a_row_that_commits_late_is_read_late)
{
	struct worker w;

	fixture_new();
	PGconn *first = app_open(), *second = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	exec(first, "BEGIN");
	insert(first, "early", "k");
	insert(second, "second", "k");
	drain(&w, 10, "second");
	drain(&w, 10, "");
	insert(second, "third", "k");
	exec(first, "COMMIT");
	drain(&w, 10, "early third");
	drain(&w, 10, "");
	worker_end(&w);
	/* Whoever takes over goes on where the journal ends. */
	exec(first, "UPDATE outbox_leases SET lease_owner = NULL");
	insert(second, "fourth", "k");
	ck_assert_str_eq(delivered(store), "fourth");
	ck_assert_str_eq(delivered(store), "");
	ob_store_free(store);
	PQfinish(first);
	PQfinish(second);
}
OB_TEST_END

/* A savepoint has a transaction id of its own, which snapshots do not list. */
OB_TEST(rows_of_savepoints_come_with_their_transaction)
{
	struct worker w;

	fixture_new();
	PGconn *first = app_open(), *second = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	exec(first, "BEGIN");
	exec(first, "SAVEPOINT a");
	insert(first, "kept", "k");
	exec(first, "RELEASE a");
	exec(first, "SAVEPOINT b");
	insert(first, "dropped", "k");
	exec(first, "ROLLBACK TO b");
	exec(first, "SAVEPOINT c");
	insert(first, "kept2", "k");
	insert(second, "between", "k");
	drain(&w, 10, "between");
	exec(first, "COMMIT");
	drain(&w, 10, "kept kept2");
	drain(&w, 10, "");
	worker_end(&w);
	ob_store_free(store);
	PQfinish(first);
	PQfinish(second);
}
OB_TEST_END

OB_TEST(prepared_transactions_are_late_until_they_end)
{
	struct worker w;

	fixture_new();
	PGconn *first = app_open(), *second = app_open();
	struct ob_store *store = store_new(4);
	/* A transaction that has notified cannot be prepared. */
	exec(first, "ALTER TABLE outbox DISABLE TRIGGER outbox_wake");
	worker_begin(&w, store, 1, 4);
	exec(first, "BEGIN");
	insert(first, "prepared", "k");
	exec(first, "PREPARE TRANSACTION 'one'");
	exec(first, "BEGIN");
	insert(first, "undone", "k");
	exec(first, "PREPARE TRANSACTION 'two'");
	insert(second, "between", "k");
	drain(&w, 10, "between");
	PQfinish(first);
	drain(&w, 10, "");
	exec(second, "ROLLBACK PREPARED 'two'");
	drain(&w, 10, "");
	exec(second, "COMMIT PREPARED 'one'");
	drain(&w, 10, "prepared");
	drain(&w, 10, "");
	worker_end(&w);
	ob_store_free(store);
	PQfinish(second);
}
OB_TEST_END

OB_TEST(two_hundred_open_writers_hold_nobody_up)
{
	enum { WRITERS = 200 };
	PGconn *writers[WRITERS];
	struct worker w;
	char label[16];

	fixture_new();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = app_open();
		exec(writers[i], "BEGIN");
		(void)snprintf(label, sizeof(label), "w%d", i);
		insert(writers[i], label, label);
	}
	PGconn *app = app_open();
	insert(app, "free", "k");
	drain(&w, 100, "free");
	ck_assert_uint_eq(worker_settle(&w), 0);
	worker_end(&w);
	/* Their number stands in the journal, so that the next owner asks for them too. */
	exec(app, "UPDATE outbox_leases SET lease_owner = NULL");
	worker_begin(&w, store, 2, 4);
	uint32_t seen = 0;
	for (int i = WRITERS - 1; i >= 0; i--) {
		exec(writers[i], i % 3 ? "COMMIT" : "ROLLBACK");
		PQfinish(writers[i]);
		if (i % 10 == 0) {
			(void)worker_read(&w, 100);
			seen += batch.count;
			ck_assert_uint_eq(worker_settle(&w), 0);
		}
	}
	ck_assert_uint_eq(seen, WRITERS - (WRITERS + 2) / 3);
	drain(&w, 100, "");
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* More than a batch commits late: the rest comes in the next reads, also those of the next owner.
 */
OB_TEST(a_late_transaction_larger_than_a_batch_is_worked_off_first)
{
	struct worker w;

	fixture_new();
	PGconn *first = app_open(), *second = app_open();
	struct ob_store *store = store_new(2);
	worker_begin(&w, store, 1, 2);
	exec(first, "BEGIN");
	insert(first, "l1", "a");
	insert(first, "l2", "b");
	insert(first, "l3", "c");
	insert(second, "n1", "a");
	drain(&w, 10, "n1");
	insert(first, "l4", "a");
	insert(first, "l5", "b");
	insert(second, "n2", "a");
	drain(&w, 10, "n2");
	exec(first, "COMMIT");
	insert(second, "n3", "a");
	ck_assert_str_eq(worker_read(&w, 2), "l1 l2");
	ck_assert(w.done.more);
	ck_assert_uint_eq(worker_settle(&w), 0);
	/* Commits meanwhile belong to what comes later. */
	exec(first, "BEGIN");
	insert(first, "m1", "a");
	insert(second, "n4", "a");
	ck_assert_str_eq(worker_read(&w, 2), "l3 l4");
	worker_end(&w);
	exec(first, "COMMIT");
	exec(second, "UPDATE outbox_leases SET lease_owner = NULL");
	/* What was read and not recorded comes again. */
	worker_begin(&w, store, 2, 2);
	drain(&w, 2, "l3 l4 l5 n3 m1 n4");
	drain(&w, 2, "");
	worker_end(&w);
	ob_store_free(store);
	PQfinish(first);
	PQfinish(second);
}
OB_TEST_END

/* ---- numbers ----------------------------------------------------------- */

OB_TEST(numbers_that_are_set_back_or_made_by_hand_lose_nothing)
{
	struct worker w;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	insert(app, "a", "k");
	insert(app, "b", "k");
	drain(&w, 10, "a b");
	exec(app, "SELECT setval(pg_get_serial_sequence('outbox', 'seq'), 1000)");
	insert(app, "c", "k");
	drain(&w, 10, "c");
	exec(app, "SELECT setval(pg_get_serial_sequence('outbox', 'seq'), 500)");
	insert(app, "d", "k");
	insert(app, "e", "k");
	drain(&w, 10, "d e");
	exec(app,
	     "INSERT INTO outbox (seq, aggregate_type, event_type, payload) OVERRIDING SYSTEM "
	     "VALUE "
	     "VALUES (7, 't', 'f', '{}')");
	exec(app,
	     "INSERT INTO outbox (seq, aggregate_type, event_type, payload) OVERRIDING SYSTEM "
	     "VALUE "
	     "VALUES (2000000, 't', 'g', '{}')");
	drain(&w, 10, "f g");
	insert(app, "h", "k");
	drain(&w, 10, "h");
	PGresult *refused = PQexec(app,
				   "INSERT INTO outbox (seq, aggregate_type, event_type, payload) "
				   "VALUES (8, 't', 'x', '{}')");
	ck_assert_str_eq(PQresultErrorField(refused, PG_DIAG_SQLSTATE), "428C9");
	PQclear(refused);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Numbers begin again: rows that get the number of one that failed or died are not taken for it. */
OB_TEST(truncating_with_restarted_numbers_loses_nothing)
{
	struct worker w;
	struct ob_change changes[2];
	bool promote;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	const struct ob_decide decide = { .ordering = OB_ORDER_KEY };
	worker_begin(&w, store, 1, 4);
	insert(app, "a", "k");
	insert(app, "b", "l");
	ck_assert_str_eq(worker_read(&w, 10), "a b");
	ck_assert(ob_exception_decide(&decide, &batch.messages[0], OB_OUTCOME_DEAD, 0,
				      OB_STR("bad"), &changes[0], &promote));
	ck_assert(ob_exception_decide(&decide, &batch.messages[1], OB_OUTCOME_RETRY, 3600000,
				      OB_STR("bad"), &changes[1], &promote));
	ck_assert_uint_eq(worker_settle_with(&w, changes, 2, NULL, 0), 0);
	for (int i = 0; i < 100; i++)
		insert(app, "more", "k");
	do
		(void)worker_read(&w, 50);
	while (w.done.more);
	ck_assert_uint_eq(worker_settle(&w), 0);
	exec(app, "TRUNCATE outbox RESTART IDENTITY");
	insert(app, "c", "k");
	insert(app, "d", "l");
	drain(&w, 10, "c d");
	for (int i = 0; i < 100; i++)
		insert(app, "x", "k");
	insert(app, "y", "k");
	do
		(void)worker_read(&w, 50);
	while (w.done.more);
	ck_assert_str_eq(batch.messages[batch.count - 1].event_type.p, "y");
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- size ---------------------------------------------------------------- */

/* What is compressed in the table is counted as it is sent, and fetched when it fits. */
OB_TEST(large_messages_come_whole_and_few_at_a_time)
{
	enum { ROWS = 12, SIZE = 300000 };
	struct worker w;
	int seen = 0;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, event_type, headers, payload) SELECT 't', "
	     "i::text, '{\"n\": 1}', CASE WHEN i %% 2 = 0 THEN to_json(repeat('x', %d)) ELSE '1' "
	     "END "
	     "FROM generate_series(1, %d) AS i",
	     SIZE - 2, ROWS);
	do {
		(void)worker_read(&w, 100);
		ck_assert_uint_le(batch.bytes, 1 << 20);
		ck_assert_uint_ge(batch.count, 1);
		for (uint32_t i = 0; i < batch.count; i++) {
			const struct ob_message *m = &batch.messages[i];

			ck_assert_int_eq(strtol(m->event_type.p, NULL, 10), ++seen);
			ck_assert_uint_eq(m->payload.n, seen % 2 ? 1 : SIZE);
			ck_assert_uint_eq(m->headers.n, 8);
		}
	} while (w.done.more);
	ck_assert_int_eq(seen, ROWS);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* A walk over rows of others ends before it takes too long, and goes on; one over nothing is fast.
 */
OB_TEST(a_rare_target_is_read_in_steps)
{
	struct worker w;
	int reads = 0;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	exec(app, "ALTER TABLE outbox DISABLE TRIGGER outbox_wake");
	exec(app,
	     "INSERT INTO outbox (aggregate_type, event_type, payload, target) SELECT 't', "
	     "'other', "
	     "'1', 'other' FROM generate_series(1, 250000) AS i");
	insert(app, "mine", "k");
	exec(app, "SELECT setval(pg_get_serial_sequence('outbox', 'seq'), 900000000000)");
	insert(app, "far", "k");
	worker_begin(&w, store, 1, 4);
	char labels[256] = "";
	do {
		const char *more = worker_read(&w, 100);

		(void)snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s ",
			       more);
		ck_assert_int_lt(++reads, 100);
	} while (w.done.more);
	ck_assert_int_gt(reads, 2);
	ck_assert_ptr_nonnull(strstr(labels, "mine "));
	ck_assert_ptr_nonnull(strstr(labels, "far "));
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- tables that are written anew --------------------------------------- */

struct reading {
	struct worker *w;
	char labels[256];
};

static void *read_once(void *arg)
{
	struct reading *r = arg;

	(void)snprintf(r->labels, sizeof(r->labels), "%s", worker_read(r->w, 10));
	return NULL;
}

/* To a snapshot that is older than the rewrite such a table is empty; the end of it was not
 * reached. */
OB_TEST(a_table_that_is_written_anew_under_a_read_hides_nothing)
{
	struct reading r = { 0 };
	struct worker w;
	pthread_t thread;

	fixture_new();
	PGconn *app = app_open(), *looking = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	r.w = &w;
	for (int round = 0; round < 2; round++) {
		insert(app, "a", "k");
		insert(app, "b", "k");
		exec(app, "BEGIN");
		exec(app, "ALTER TABLE outbox ADD COLUMN note%d uuid DEFAULT gen_random_uuid()",
		     round);
		ck_assert_int_eq(pthread_create(&thread, NULL, read_once, &r), 0);
		while (number(looking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
			(void)poll(NULL, 0, 2);
		exec(app, "COMMIT");
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_str_eq(r.labels, "a b");
		ck_assert_uint_eq(worker_settle(&w), 0);
	}
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
	PQfinish(looking);
}
OB_TEST_END

/* ---- the rest of the promises -------------------------------------------- */

OB_TEST(a_cache_that_is_set_while_running_is_noticed_by_the_next_heartbeat)
{
	const struct ob_worker worker = { .id = uuid(1),
					  .reader = OB_STR("default"),
					  .hostname = OB_STR("h") };

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	ok(ob_store_beat(store, &worker, 1000, &err));
	exec(app, "ALTER TABLE outbox ALTER COLUMN seq SET CACHE 20");
	ck_assert_int_eq(ob_store_beat(store, &worker, 1000, &err), OUTBOX_ESCHEMA);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "has CACHE 20: numbers would be out of order"));
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Take over one partition; *ret_err: how it failed. */
static int take_over_one(struct ob_store *store, uint64_t epoch)
{
	struct ob_owned owned = { .partition = 0, .epoch = epoch };
	const struct ob_uuid id = uuid(5);
	int r = ob_store_take_over(store, "default", &id, &owned, 1, &err);

	if (r == 0)
		ob_progress_done(&owned.progress);
	return r;
}

OB_TEST(progress_of_another_cluster_is_refused)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(1);

	put(store, "a", "k");
	ck_assert_str_eq(delivered(store), "a");
	ok(take_over_one(store, 100));
	exec(app, "UPDATE outbox_meta SET value = value + 1 WHERE name = 'system_identifier'");
	int64_t rows = number(app, "SELECT count(*) FROM outbox_batches");
	ck_assert_int_eq(take_over_one(store, 101), OUTBOX_ESTORE);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "outbox adopt"));
	ck_assert_int_eq(number(app, "SELECT count(*) FROM outbox_batches"), rows);
	exec(app, "UPDATE outbox_meta SET value = value - 1 WHERE name = 'system_identifier'");
	ok(take_over_one(store, 102));
	/* The same server, with a backup of a later one's journal. */
	exec(app,
	     "INSERT INTO outbox_batches (reader, partition_no, batch, epoch, at, pos, seen) "
	     "SELECT "
	     "reader, partition_no, batch + 1, epoch, at, pos, '90000000:90000000:' FROM "
	     "outbox_batches WHERE partition_no = 0 ORDER BY batch DESC LIMIT 1");
	ck_assert_int_eq(take_over_one(store, 103), OUTBOX_ESTORE);
	ck_assert_ptr_nonnull(strstr(err.msg, "outbox adopt"));
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* As a dump and restore into another cluster leaves it: rows and progress with ids that mean
 * nothing. */
OB_TEST(what_was_restored_into_another_cluster_is_adopted)
{
	uint64_t rows = 77;
	struct worker w;

	fixture_new();
	PGconn *app = app_open(), *slow = app_open();
	struct ob_store *store = store_new(2);
	ok(ob_store_adopt(store, &rows, &err));
	ck_assert_uint_eq(rows, 0);
	worker_begin(&w, store, 1, 2);
	insert(app, "a", "k");
	exec(slow, "BEGIN");
	insert(slow, "late", "l");
	insert(app, "b", "k");
	insert(app, "c", "k");
	drain(&w, 10, "a b c");
	worker_end(&w);
	exec(slow, "COMMIT");
	insert(app, "d", "k");
	/* Its ids were far ahead of ours. */
	exec(app,
	     "UPDATE outbox SET txid = (txid::text::bigint + 900000000)::text::xid8; UPDATE "
	     "outbox_batches SET seen = (SELECT coalesce(min(x), max) || ':' || max || ':' || "
	     "coalesce(string_agg(x::text, ',' ORDER BY x), '') FROM (SELECT "
	     "pg_snapshot_xmax(seen)::text::bigint + 900000000 AS max) AS m LEFT JOIN LATERAL "
	     "(SELECT "
	     "x::text::bigint + 900000000 AS x FROM pg_snapshot_xip(seen) AS x) AS x ON true GROUP "
	     "BY "
	     "max)::pg_snapshot");
	exec(app, "UPDATE outbox_meta SET value = value + 1 WHERE name = 'system_identifier'");
	ck_assert_int_eq(take_over_one(store, 100), OUTBOX_ESTORE);
	ok(ob_store_adopt(store, &rows, &err));
	ck_assert_uint_eq(rows, 2); /* b and c, above what came late */
	exec(app, "UPDATE outbox_leases SET lease_owner = NULL");
	insert(app, "e", "k");
	worker_begin(&w, store, 2, 2);
	drain(&w, 10, "late d e");
	worker_end(&w);
	ck_assert_str_eq(text(app,
			      "SELECT count(*) FILTER (WHERE state = 'published') || ' of ' || "
			      "count(*) FROM outbox_messages"),
			 "6 of 6");
	ob_store_free(store);
	PQfinish(app);
	PQfinish(slow);
}
OB_TEST_END

/* A pooled connection plans every statement anew, here without any statistics. */
OB_TEST(a_pooler_drains_a_first_backlog_of_a_table_that_was_never_analysed)
{
	struct ob_store *store = NULL;
	struct worker w;
	char through[256];
	uint32_t total = 0;
	pid_t pooler;

	fixture_new();
	ob_store_free(store_new(16));
	PGconn *app = app_open();
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) SELECT 't', "
	     "(i "
	     "%% 500)::text, 'e', '{}' FROM generate_series(1, 20000) AS i");
	if (!pooler_start(&pooler, through)) {
		(void)printf("# SKIP no pgbouncer is installed (package pgbouncer)\n");
		return;
	}
	const struct ob_store_conf conf = { .url = through };
	int r, left = 500;
	while ((r = ob_store_connect(&conf, &store, &err)) < 0 && left-- > 0)
		(void)poll(NULL, 0, 10);
	ok(r);
	int64_t began = ob_clock_boot_us(&ob_clock_system);
	worker_begin(&w, store, 1, 16);
	do {
		(void)worker_read(&w, 500);
		total += batch.count;
		ck_assert_uint_eq(worker_settle(&w), 0);
	} while (w.done.more);
	ck_assert_uint_eq(total, 20000);
	ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system) - began, 15000000);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
	pooler_stop(pooler);
}
OB_TEST_END

/* ---- chance -------------------------------------------------------------- */

enum { WRITERS = 6, KEYS = 4, STEPS = 3000, MESSAGES = 4 * STEPS };

/* A key's messages are inserted one transaction after the other, as by a lock on its aggregate. */
static struct chance {
	PGconn *writer[WRITERS];
	int key[WRITERS];   /* that its transaction holds; -1: none is open */
	int first[WRITERS]; /* label of its first message */
	bool held[KEYS];
	int count; /* labels given out */
	int key_of[MESSAGES];
	bool committed[MESSAGES];
	int recorded[MESSAGES]; /* how often it was read and recorded */
	int unrecorded[MESSAGES], unrecorded_count;
	int last[KEYS]; /* highest label that was delivered */
} c;

static void chance_write(unsigned dice)
{
	int i = (int)(dice % WRITERS), key = (int)(dice / WRITERS % KEYS);
	char label[16], name[16];

	if (c.key[i] < 0 && !c.held[key]) {
		exec(c.writer[i], "BEGIN");
		c.key[i] = key;
		c.held[key] = true;
		c.first[i] = c.count;
	}
	if (c.key[i] < 0)
		return;
	if (dice / 64 % 3 == 0) {
		bool commit = dice / 256 % 4 != 0;

		exec(c.writer[i], commit ? "COMMIT" : "ROLLBACK");
		for (int n = c.first[i]; n < c.count && commit; n++)
			c.committed[n] |= c.key_of[n] == c.key[i];
		c.held[c.key[i]] = false;
		c.key[i] = -1;
		return;
	}
	if (dice / 64 % 3 == 1)
		exec(c.writer[i], "SAVEPOINT s");
	(void)snprintf(label, sizeof(label), "%d", c.count);
	(void)snprintf(name, sizeof(name), "k%d", c.key[i]);
	c.key_of[c.count++] = c.key[i];
	insert(c.writer[i], label, name);
}

static void chance_read(struct worker *w, uint32_t limit)
{
	(void)worker_read(w, limit);
	for (uint32_t i = 0; i < batch.count; i++) {
		int n = (int)strtol(batch.messages[i].event_type.p, NULL, 10);
		int key = c.key_of[n];

		ck_assert_msg(c.committed[n], "%d is read before it is committed", n);
		ck_assert_msg(c.recorded[n] == 0, "%d is read again", n);
		for (int u = 0; u < c.unrecorded_count; u++)
			ck_assert_msg(c.unrecorded[u] != n, "%d is read twice", n);
		ck_assert_msg(n > c.last[key], "%d comes after %d", n, c.last[key]);
		c.last[key] = n;
		c.unrecorded[c.unrecorded_count++] = n;
	}
}

static void chance_settle(struct worker *w)
{
	ck_assert_uint_eq(worker_settle(w), 0);
	for (int u = 0; u < c.unrecorded_count; u++)
		c.recorded[c.unrecorded[u]]++;
	c.unrecorded_count = 0;
}

/* Another takes over; what was not recorded comes again. */
static void chance_take_over(struct worker *w, PGconn *app, uint8_t n)
{
	struct ob_store *store = w->store;

	worker_end(w);
	exec(app, "UPDATE outbox_leases SET lease_owner = NULL");
	worker_begin(w, store, n, 3);
	c.unrecorded_count = 0;
	for (int k = 0; k < KEYS; k++) {
		c.last[k] = -1;
		for (int m = 0; m < c.count; m++) {
			if (c.recorded[m] && c.key_of[m] == k)
				c.last[k] = m;
		}
	}
}

OB_TEST(whatever_writers_do_every_message_comes_once_and_in_order)
{
	struct worker w;
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : 1, state = seed;

	fixture_new();
	struct ob_store *store = store_new(3);
	PGconn *app = app_open();
	exec(app, "ALTER TABLE outbox DISABLE TRIGGER outbox_wake");
	for (int i = 0; i < WRITERS; i++) {
		c.writer[i] = app_open();
		c.key[i] = -1;
	}
	for (int k = 0; k < KEYS; k++)
		c.last[k] = -1;
	worker_begin(&w, store, 1, 3);
	for (int step = 0; step < STEPS; step++) {
		unsigned dice = (unsigned)rand_r(&state), what = dice % 100;

		dice = (unsigned)rand_r(&state);
		if (what < 80)
			chance_write(dice);
		else if (what < 95)
			chance_read(&w, 1 + dice % 7);
		else if (what < 99)
			chance_settle(&w);
		else
			chance_take_over(&w, app, (uint8_t)(2 + dice % 90));
	}
	for (int i = 0; i < WRITERS; i++) {
		exec(c.writer[i], "ROLLBACK");
		PQfinish(c.writer[i]);
	}
	do
		chance_read(&w, 5);
	while (w.done.more);
	chance_settle(&w);
	int messages = 0;
	for (int n = 0; n < c.count; n++) {
		ck_assert_msg(c.recorded[n] == c.committed[n], "seed %u: %d came %d times", seed, n,
			      c.recorded[n]);
		messages += c.committed[n];
	}
	(void)printf("# %d messages\n", messages);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE_WITH("store_postgres_log", settings, a_row_that_commits_late_is_read_late,
	      rows_of_savepoints_come_with_their_transaction,
	      prepared_transactions_are_late_until_they_end,
	      two_hundred_open_writers_hold_nobody_up,
	      a_late_transaction_larger_than_a_batch_is_worked_off_first,
	      numbers_that_are_set_back_or_made_by_hand_lose_nothing,
	      truncating_with_restarted_numbers_loses_nothing,
	      large_messages_come_whole_and_few_at_a_time, a_rare_target_is_read_in_steps,
	      a_table_that_is_written_anew_under_a_read_hides_nothing,
	      a_cache_that_is_set_while_running_is_noticed_by_the_next_heartbeat,
	      progress_of_another_cluster_is_refused,
	      what_was_restored_into_another_cluster_is_adopted,
	      a_pooler_drains_a_first_backlog_of_a_table_that_was_never_analysed,
	      whatever_writers_do_every_message_comes_once_and_in_order)

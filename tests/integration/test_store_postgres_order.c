/* SPDX-License-Identifier: MIT */
/* The known ways to lose, repeat or reorder rows of PostgreSQL, and that we do none of them. */
#include "pg_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

/*
 * One takes its number early and writes late: its transaction is younger than one with a higher
 * number that was sent long ago. Neither a cursor nor the snapshot's horizon would find it.
 */
OB_TEST(a_number_taken_early_and_written_late_is_not_lost)
{
	struct worker w;

	fixture_new();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	PGconn *early = app_open(), *late = app_open();
	exec(early, "BEGIN");
	ck_assert_int_eq(number(early, "SELECT nextval(pg_get_serial_sequence('outbox', 'seq'))"),
			 1);
	exec(late,
	     "INSERT INTO outbox (id, aggregate_type, event_type, payload, partition_key) VALUES "
	     "(gen_random_uuid(), 'order', 'second', '{}', 'k')");
	ck_assert_str_eq(worker_read(&w, 9), "second");
	ck_assert_uint_eq(worker_settle(&w), 0);
	exec(early,
	     "INSERT INTO outbox (seq, id, aggregate_type, event_type, payload, partition_key) "
	     "OVERRIDING SYSTEM VALUE VALUES (1, gen_random_uuid(), 'order', 'first', '{}', 'k')");
	exec(early, "COMMIT");
	ck_assert_str_eq(worker_read(&w, 9), "first");
	ck_assert_int_eq(batch.messages[0].seq, 1);
	PQfinish(early);
	PQfinish(late);
	worker_end(&w);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(two_workers_never_have_one_partition_in_flight)
{
	struct worker first, second;
	uint64_t seen = 0;
	uint32_t total;

	fixture_new();
	struct ob_store *store = store_new(8);
	for (int i = 0; i < 40; i++) {
		char key[8];

		(void)snprintf(key, sizeof(key), "k%d", i % 10);
		put(store, "e", key);
	}
	worker_begin(&first, store, 1, 5);
	worker_begin(&second, store, 2, 8); /* it asks for more than there is */
	ck_assert_uint_eq(first.count, OB_LANES * 5);
	ck_assert_uint_eq(second.count, OB_LANES * 3);
	(void)worker_read(&first, 100);
	total = batch.count;
	for (uint32_t i = 0; i < batch.count; i++)
		seen |= UINT64_C(1) << batch.messages[i].partition;
	(void)worker_read(&second, 100);
	total += batch.count;
	for (uint32_t i = 0; i < batch.count; i++)
		ck_assert_msg(!(seen & UINT64_C(1) << batch.messages[i].partition),
			      "partition %u is in flight twice", batch.messages[i].partition);
	ck_assert_uint_eq(total, 40);
	worker_end(&first);
	worker_end(&second);
	ob_store_free(store);
}
OB_TEST_END

/* ---- a settle that waits for a takeover --------------------------------- */

struct zombie {
	struct ob_store *store;
	struct ob_settle settle;
	struct ob_err err;
	int result;
};

static void *settle_one(void *arg)
{
	struct zombie *z = arg;

	z->result = ob_store_settle(z->store, &z->settle, &z->err);
	return NULL;
}

/*
 * The zombie's statement began before the new owner committed: what it saw then says that the
 * number is free. It must not believe that after it has waited, with changes (in a transaction) or
 * without.
 */
OB_TEST(a_settle_waits_for_a_takeover_and_then_changes_nothing)
{
	const struct ob_decide decide = { .ordering = OB_ORDER_KEY };
	struct zombie z = { .err = OB_ERR_INIT };
	struct ob_change change;
	struct worker w;
	pthread_t thread;
	bool promote;

	fixture_new();
	z.store = store_new(1);
	put(z.store, "a", "k");
	worker_begin(&w, z.store, 1, 1);
	ck_assert_str_eq(worker_read(&w, 9), "a");
	ck_assert(ob_exception_decide(&decide, &batch.messages[0], OB_OUTCOME_DEAD, 0,
				      OB_STR("bad"), &change, &promote));
	struct ob_settle_part part = { .partition = 0,
				       .epoch = w.parts[0].epoch,
				       .batch = w.parts[0].batch + 1,
				       .progress = w.parts[0].at };
	PGconn *other = app_open(), *looking = app_open();
	for (size_t changes = 0; changes < 2; changes++) {
		z.settle = (struct ob_settle){ .reader = "default",
					       .owner = w.id,
					       .parts = &part,
					       .part_count = 1,
					       .changes = &change,
					       .change_count = changes };
		exec(other,
		     "BEGIN; INSERT INTO outbox_batches (reader, partition_no, batch, epoch, at, "
		     "pos, "
		     "seen) SELECT reader, partition_no, batch + 1, epoch + 1, at, pos, seen FROM "
		     "outbox_batches WHERE partition_no = 0 ORDER BY batch DESC LIMIT 1");
		ck_assert_int_eq(pthread_create(&thread, NULL, settle_one, &z), 0);
		while (number(looking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
			(void)poll(NULL, 0, 2);
		exec(other, "COMMIT");
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_msg(z.result == 0, "%s", z.err.msg);
		ck_assert_int_eq(part.settled, OB_SETTLE_LOST);
		ck_assert_int_eq(number(looking, "SELECT count(*) FROM outbox_exceptions"), 0);
		/* Again with what would be right if nobody had taken over meanwhile. */
		exec(other, "DELETE FROM outbox_batches WHERE partition_no = 0 AND batch = %d",
		     (int)part.batch);
	}
	PQfinish(other);
	PQfinish(looking);
	worker_end(&w);
	ob_store_free(z.store);
}
OB_TEST_END

/* ---- commits that are not on disk yet ----------------------------------- */

static const char *advice(struct ob_store *store)
{
	static struct ob_buf lines = OB_BUF_INIT(1 << 16);
	struct ob_findings found;

	ob_buf_clear(&lines);
	ob_findings_init(&found);
	ok(ob_store_diagnose(store, &found, &err));
	for (size_t i = 0; i < found.count; i++) {
		if (found.list[i].level != OB_LEVEL_OK)
			ob_buf_addf(&lines, "%s; %s\n", found.list[i].text.p,
				    found.list[i].check->advice);
	}
	ob_findings_done(&found);
	return ob_buf_str(&lines);
}

/*
 * A producer that does not wait for the disk may lose what was sent already; that is said at the
 * start. With settle_durable what we have settled is safe: our commit takes the producer's with it.
 */
OB_TEST(a_producer_that_does_not_wait_for_the_disk_is_warned_about)
{
	static const char *const lazy[] = { "wal_writer_delay=10s", "max_prepared_transactions=5",
					    "fsync=on", "full_page_writes=on", NULL };
	const struct ob_opt_value options[] = { { "settle_durable", "true" }, { NULL, NULL } };
	struct pg_server shared = server;
	struct worker w;

	ck_assert_msg(pg_server_start(&server, lazy), "%s", server.reason);
	fixture_new();
	ob_store_free(store_new(1));
	worker_begin(&w, store_open_with(options), 1, 1);
	ck_assert_str_eq(advice(w.store), "");
	PGconn *app = app_open();
	exec(app,
	     "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET synchronous_commit = off', "
	     "current_database()); END $$");
	exec(app, "BEGIN");
	exec(app, "CREATE TABLE t (n int)");
	exec(app, "PREPARE TRANSACTION 'left behind'");
	struct ob_store *fresh = store_open();
	ck_assert_msg(strstr(advice(fresh), "synchronous_commit is off"), "%s", advice(fresh));
	ck_assert_msg(strstr(advice(fresh), "1 prepared transaction(s) are open"), "%s",
		      advice(fresh));
	ob_store_free(fresh);
	exec(app, "ROLLBACK PREPARED 'left behind'");

	exec(app, "SET synchronous_commit = off");
	exec(app,
	     "INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES "
	     "(gen_random_uuid(), 'order', 'lazy', '{}')");
	ck_assert_str_eq(worker_read(&w, 9), "lazy");
	ck_assert_uint_eq(worker_settle(&w), 0);
	PQfinish(app);
	ck_assert(pg_server_crash(&server, false));
	ck_assert(pg_server_again(&server));
	app = app_open();
	ck_assert_int_eq(
		number(app, "SELECT count(*) FROM outbox_messages WHERE state = 'published'"), 1);
	PQfinish(app);
	ob_store_free(w.store);
	worker_end(&w);
	pg_server_stop(&server);
	server = shared;
}
OB_TEST_END

PG_SUITE("PostgreSQL order", a_number_taken_early_and_written_late_is_not_lost,
	 two_workers_never_have_one_partition_in_flight,
	 a_settle_waits_for_a_takeover_and_then_changes_nothing,
	 a_producer_that_does_not_wait_for_the_disk_is_warned_about)

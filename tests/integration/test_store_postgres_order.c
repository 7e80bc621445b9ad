/* SPDX-License-Identifier: MIT */
/* The known ways to lose, repeat or reorder rows of PostgreSQL, and that we do none of them. */
#include "pg_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

static struct ob_uuid uuid(uint8_t n)
{
	return (struct ob_uuid){ { [0] = n, [6] = 0x40, [8] = 0x80 } };
}

/* A worker with some partitions. */
struct worker {
	struct ob_store *store;
	struct ob_arena arena;
	struct ob_lease *leases;
	size_t count;
	struct ob_uuid id;
};

static void worker_begin(struct worker *w, uint8_t n, uint32_t want)
{
	const struct ob_opt_value options[] = { { "settle_durable", "true" }, { NULL, NULL } };
	uint32_t all;

	*w = (struct worker){ .store = store_open_with(options),
			      .arena = OB_ARENA_INIT(1 << 20),
			      .id = uuid(n) };
	ok(ob_store_seed(w->store, "default", &all, &err));
	ok(ob_store_take(w->store, "default", &w->id, want, 60000, &w->arena, &w->leases, &w->count,
			 &err));
}

static void worker_end(struct worker *w)
{
	ob_arena_done(&w->arena);
	ob_store_free(w->store);
}

static void worker_fetch(struct worker *w)
{
	uint32_t partitions[64];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = w->count,
		.limit = 1000,
		.max_bytes = 1 << 20,
	};

	ck_assert_uint_le(w->count, 64);
	for (size_t i = 0; i < w->count; i++)
		partitions[i] = w->leases[i].partition;
	ok(ob_store_fetch(w->store, &fetch, &batch, &err));
}

static void worker_publish(struct worker *w)
{
	struct ob_outcome outcomes[64];
	struct ob_settle settle = {
		.target = "default",
		.owner = w->id,
		.leases = w->leases,
		.lease_count = w->count,
		.outcomes = outcomes,
		.outcome_count = batch.count,
	};
	struct ob_settled settled;

	ck_assert_uint_le(batch.count, 64);
	for (uint32_t i = 0; i < batch.count; i++)
		outcomes[i] = (struct ob_outcome){ .message = &batch.messages[i] };
	ok(ob_store_settle(w->store, &settle, NULL, &settled, &err));
	ck_assert_uint_eq(settled.applied, batch.count);
}

/*
 * One takes its number early and writes late: its transaction is younger than one with a higher
 * number that was sent long ago. Neither a cursor nor the snapshot's horizon would find it.
 */
OB_TEST(a_number_taken_early_and_written_late_is_not_lost)
{
	struct worker w;

	fixture_new();
	ob_store_free(store_new(4));
	worker_begin(&w, 1, 4);
	PGconn *early = app_open(), *late = app_open();
	exec(early, "BEGIN");
	ck_assert_int_eq(number(early, "SELECT nextval(pg_get_serial_sequence('outbox', 'seq'))"),
			 1);
	exec(late,
	     "INSERT INTO outbox (id, aggregate_type, event_type, payload, partition_key) VALUES "
	     "(gen_random_uuid(), 'order', 'second', '{}', 'k')");
	worker_fetch(&w);
	ck_assert_uint_eq(batch.count, 1);
	ck_assert_int_eq(batch.messages[0].seq, 2);
	worker_publish(&w);
	exec(early,
	     "INSERT INTO outbox (seq, id, aggregate_type, event_type, payload, partition_key) "
	     "OVERRIDING SYSTEM VALUE VALUES (1, gen_random_uuid(), 'order', 'first', '{}', 'k')");
	exec(early, "COMMIT");
	worker_fetch(&w);
	ck_assert_uint_eq(batch.count, 1);
	ck_assert_int_eq(batch.messages[0].seq, 1);
	PQfinish(early);
	PQfinish(late);
	worker_end(&w);
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
	worker_begin(&first, 1, 5);
	worker_begin(&second, 2, 8); /* it asks for more than there is */
	ck_assert_uint_eq(first.count, 5);
	ck_assert_uint_eq(second.count, 3);
	worker_fetch(&first);
	total = batch.count;
	for (uint32_t i = 0; i < batch.count; i++)
		seen |= UINT64_C(1) << batch.messages[i].partition;
	worker_fetch(&second);
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
	struct worker w;
	enum ob_outcome_kind kind;
	struct ob_settled settled;
	struct ob_err err;
	int result;
};

static void *settle_one(void *arg)
{
	struct zombie *z = arg;
	const struct ob_outcome outcome = { .message = &batch.messages[0], .kind = z->kind };
	const struct ob_settle settle = {
		.target = "default",
		.owner = z->w.id,
		.leases = z->w.leases,
		.lease_count = z->w.count,
		.outcomes = &outcome,
		.outcome_count = 1,
	};

	z->result = ob_store_settle(z->w.store, &settle, NULL, &z->settled, &z->err);
	return NULL;
}

/*
 * The zombie's statement began before the new owner committed: what it looked at then says that
 * all is its own. It must look again at what it waited for.
 */
OB_TEST(a_settle_waits_for_a_takeover_and_then_changes_nothing)
{
	static const enum ob_outcome_kind kinds[] = { OB_OUTCOME_PUBLISHED, OB_OUTCOME_DEAD };
	struct zombie z = { .err = OB_ERR_INIT };
	pthread_t thread;

	fixture_new();
	struct ob_store *store = store_new(1);
	put(store, "a", "k");
	worker_begin(&z.w, 1, 1);
	worker_fetch(&z.w);
	ck_assert_uint_eq(batch.count, 1);
	PGconn *other = app_open(), *looking = app_open();
	for (size_t i = 0; i < 2; i++) {
		z.kind = kinds[i];
		exec(other,
		     "BEGIN; UPDATE outbox_partitions SET lease_owner = gen_random_uuid(), "
		     "lease_epoch = lease_epoch + 1; UPDATE outbox SET locked_by = 'the new "
		     "owner'");
		ck_assert_int_eq(pthread_create(&thread, NULL, settle_one, &z), 0);
		while (number(looking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
			(void)poll(NULL, 0, 2);
		exec(other, "COMMIT");
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_msg(z.result == 0, "%s", z.err.msg);
		ck_assert_uint_eq(z.settled.lost, 1);
		ck_assert_str_eq(text(looking, "SELECT status || ' ' || locked_by FROM outbox"),
				 "0 the new owner");
		/* Again with what would be right if nobody had taken over meanwhile. */
		exec(other,
		     "UPDATE outbox_partitions SET lease_owner = '01000000-0000-4000-8000-"
		     "000000000000', lease_epoch = 1");
	}
	PQfinish(other);
	PQfinish(looking);
	worker_end(&z.w);
	ob_store_free(store);
}
OB_TEST_END

/* ---- commits that are not on disk yet ----------------------------------- */

static const char *advice(struct ob_store *store)
{
	static struct ob_buf lines = OB_BUF_INIT(1 << 16);

	ob_buf_clear(&lines);
	ok(ob_store_advise(store, &lines, &err));
	return ob_buf_str(&lines);
}

/*
 * A producer that does not wait for the disk may lose what was sent already; that is said at the
 * start. With settle_durable what we have settled is safe: our commit takes the producer's with it.
 */
OB_TEST(a_producer_that_does_not_wait_for_the_disk_is_warned_about)
{
	static const char *const lazy[] = { "wal_writer_delay=10s", "max_prepared_transactions=5",
					    "fsync=on", NULL };
	struct pg_server shared = server;
	struct worker w;

	ck_assert_msg(pg_server_start(&server, lazy), "%s", server.reason);
	fixture_new();
	ob_store_free(store_new(1));
	worker_begin(&w, 1, 1);
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
	worker_fetch(&w);
	ck_assert_uint_eq(batch.count, 1);
	worker_publish(&w);
	PQfinish(app);
	ck_assert(pg_server_crash(&server, false));
	ck_assert(pg_server_again(&server));
	app = app_open();
	ck_assert_int_eq(number(app, "SELECT count(*) FROM outbox WHERE status = 1"), 1);
	PQfinish(app);
	worker_end(&w);
	pg_server_stop(&server);
	server = shared;
}
OB_TEST_END

PG_SUITE("PostgreSQL order", a_number_taken_early_and_written_late_is_not_lost,
	 two_workers_never_have_one_partition_in_flight,
	 a_settle_waits_for_a_takeover_and_then_changes_nothing,
	 a_producer_that_does_not_wait_for_the_disk_is_warned_about)

/* SPDX-License-Identifier: MIT */
/* What is asked of the tables of either core. */
#include "bench/store/schema.h"

#include <stdio.h>
#include <string.h>

static const char *const log_tables[] = {
	"outbox",        "outbox_readers", "outbox_batches",    "outbox_exceptions",
	"outbox_leases", "outbox_workers", "outbox_throughput", NULL,
};

static const char *const row_tables[] = {
	"outbox", "outbox_partitions", "outbox_workers", "outbox_throughput", NULL,
};

/* Up to where a partition's progress is recorded: its newest journal row. */
#define POSITION_OF(partition) \
	"coalesce((SELECT b.pos FROM outbox_batches b WHERE b.reader = 'default' AND " \
	"b.partition_no = " partition " ORDER BY b.batch DESC LIMIT 1), 0)"

void bench_schema_open(struct bench_store *store)
{
	const struct bench_store_ops *ops = store->ops;

	store->log = ops->number(store, ops->find_log) == 1;
	ops->run(store,
		 "CREATE TABLE bench_goal (partition_no INTEGER NOT NULL PRIMARY KEY, "
		 "seq BIGINT NOT NULL)");
	ops->run(store, "CREATE TABLE bench_position (seq BIGINT NOT NULL)");
}

void bench_schema_clear(struct bench_store *store)
{
	const struct bench_store_ops *ops = store->ops;

	for (const char *const *name = store->log ? log_tables : row_tables; *name; name++)
		ops->empty(store, *name);
	ops->run(store, "DELETE FROM bench_goal");
	ops->run(store, "DELETE FROM bench_position");
	ops->run(store, "INSERT INTO bench_position (seq) VALUES (0)");
	ops->calm(store);
	store->rows = 0;
}

/* The end of the log holds rows of every partition that has many. */
void bench_schema_load(struct bench_store *store, const struct bench_load *load)
{
	const struct bench_store_ops *ops = store->ops;

	if (load->count == 0)
		return;
	ops->load(store, load);
	if (!store->log)
		return;
	ops->run(store, "DELETE FROM bench_goal");
	ops->run(store,
		 "INSERT INTO bench_goal (partition_no, seq) SELECT partition_no, max(seq) "
		 "FROM outbox WHERE seq > (SELECT max(seq) FROM outbox) - 20000 "
		 "GROUP BY partition_no");
}

bool bench_schema_is_settled(struct bench_store *store)
{
	static const char log[] =
		"SELECT (SELECT count(*) FROM bench_goal g WHERE g.seq > " POSITION_OF(
			"g.partition_no") ") + (SELECT count(*) FROM outbox_exceptions)";
	/* waiting, and failed or parked: each by an index of its own */
	static const char rows[] =
		"SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE target = 'default' AND "
		"status = 0 LIMIT 1) AS a) + (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE "
		"target = 'default' AND status NOT IN (0, 1) LIMIT 1) AS b)";

	return store->ops->number(store, store->log ? log : rows) == 0;
}

uint64_t bench_schema_recorded(struct bench_store *store)
{
	return store->ops->number(
		store, store->log ? "SELECT count(*) FROM outbox o WHERE o.seq <= " POSITION_OF(
					    "o.partition_no")
				  : "SELECT count(*) FROM outbox WHERE status = 1");
}

uint64_t bench_schema_workers(struct bench_store *store)
{
	return store->ops->number(store, "SELECT count(*) FROM outbox_workers");
}

pid_t bench_schema_owner(struct bench_store *store)
{
	static const char log[] =
		"SELECT w.pid FROM outbox_leases l JOIN outbox_workers w ON "
		"w.id = l.lease_owner WHERE l.reader = 'default' AND "
		"l.partition_no = (SELECT partition_no FROM outbox WHERE seq = 1)";
	static const char rows[] =
		"SELECT w.pid FROM outbox_partitions l JOIN outbox_workers w ON "
		"w.id = l.lease_owner WHERE l.target = 'default' AND "
		"l.partition_no = (SELECT partition_no FROM outbox WHERE seq = 1)";

	return (pid_t)store->ops->number(store, store->log ? log : rows);
}

void bench_schema_free_leases(struct bench_store *store)
{
	store->ops->run(store, store->log ? "UPDATE outbox_leases SET lease_until = 0"
					  : "DELETE FROM outbox_partitions");
	store->ops->run(store, "DELETE FROM outbox_workers");
}

bool bench_schema_is_passed(struct bench_store *store)
{
	return store->ops->number(store,
				  "SELECT count(*) FROM bench_position WHERE seq >= "
				  "(SELECT max(seq) FROM outbox)") == 1;
}

/* SPDX-License-Identifier: MIT */
#include "mysql_fixture.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct mysql_server server;
MYSQL *admin;
char database[64];
struct ob_err fault;

int fixture_main(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	int failed = 0;

	if (mysql_server_start(&server, NULL))
		failed = ob_suite_run(name, tests, count, only);
	else
		(void)printf("1..0 # SKIP %s\n", server.reason);
	mysql_server_stop(&server);
	return failed;
}

static MYSQL *connect_to(const char *user, const char *name)
{
	char path[128];
	MYSQL *db = mysql_init(NULL);

	ck_assert_msg(mysql_real_connect(db, NULL, user, NULL, name, 0,
					 mysql_server_socket(&server, path), 0),
		      "%s", mysql_error(db));
	return db;
}

MYSQL *fixture_connect(const char *user)
{
	return connect_to(user, database);
}

struct ob_store *fixture_store_with(const char *url, const char *option, const char *value)
{
	const struct ob_opt_value options[] = { { option, value } };
	const struct ob_store_conf conf = {
		.url = url,
		.options = options,
		.option_count = option ? 1 : 0,
	};
	struct ob_store *store = NULL;

	ok(ob_store_connect(&conf, &store, &fault));
	return store;
}

struct ob_store *fixture_store(const char *user)
{
	static char urls[16][256];
	static unsigned used;
	char *url = urls[used++ % 16]; /* the store keeps it */

	mysql_server_url(&server, user, database, url);
	return fixture_store_with(url, "lock_timeout", "1s");
}

void fixture_begin(uint32_t partitions)
{
	static unsigned made;
	const struct ob_setup setup = { .partition_count = partitions };
	struct ob_setup_done done;

	(void)snprintf(database, sizeof(database), "t_%d_%u", (int)getpid(), ++made);
	admin = connect_to("root", NULL);
	/* An earlier test may have changed them. */
	sql(admin,
	    "SET GLOBAL sql_mode = DEFAULT, time_zone = DEFAULT, init_connect = DEFAULT, "
	    "read_only = 0, auto_increment_increment = 1");
	sql(admin, "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ");
	sql(admin, "CREATE DATABASE %s", database);
	sql(admin, "USE %s", database);
	if (partitions == 0)
		return;
	struct ob_store *store = fixture_store("root");
	ok(ob_store_setup(store, &setup, &done, &fault));
	ob_store_free(store);
}

void fixture_end(void)
{
	sql(admin, "DROP DATABASE %s", database);
	mysql_close(admin);
}

void sql(MYSQL *db, const char *fmt, ...)
{
	char query[4096];
	va_list ap;

	va_start(ap, fmt);
	ck_assert_int_lt(vsnprintf(query, sizeof(query), fmt, ap), (int)sizeof(query));
	va_end(ap);
	ck_assert_msg(mysql_query(db, query) == 0, "%s: %s", query, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	if (result)
		mysql_free_result(result);
}

const char *text(MYSQL *db, const char *query)
{
	static char value[4096];

	ck_assert_msg(mysql_query(db, query) == 0, "%s: %s", query, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	ck_assert_msg(result != NULL, "%s: %s", query, mysql_error(db));
	MYSQL_ROW row = mysql_fetch_row(result);
	(void)snprintf(value, sizeof(value), "%s", !row ? "(no row)" : !row[0] ? "(null)" : row[0]);
	mysql_free_result(result);
	return value;
}

long long number(MYSQL *db, const char *query)
{
	return strtoll(text(db, query), NULL, 10);
}

long long status_of(MYSQL *db, const char *scope, const char *like)
{
	char query[128];
	long long sum = 0;
	MYSQL_ROW row;

	(void)snprintf(query, sizeof(query), "SHOW %s STATUS LIKE '%s'", scope, like);
	ck_assert_msg(mysql_query(db, query) == 0, "%s: %s", query, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	ck_assert_ptr_nonnull(result);
	ck_assert_uint_gt(mysql_num_rows(result), 0);
	while ((row = mysql_fetch_row(result)))
		sum += strtoll(row[1], NULL, 10);
	mysql_free_result(result);
	return sum;
}

void make_user(const char *name, const char *password)
{
	sql(admin, "DROP USER IF EXISTS %s@localhost", name);
	sql(admin, "CREATE USER %s@localhost IDENTIFIED BY '%s'", name, password ? password : "");
}

void wait_for_a_waiter(void)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 20000000;

	/* The table of transactions would be stale: the server renews it ten times a second. */
	while (status_of(admin, "GLOBAL", "Innodb_row_lock_current_waits") == 0) {
		ck_assert_msg(ob_clock_boot_us(&ob_clock_system) < end, "nothing waits");
		(void)poll(NULL, 0, 1);
	}
}

void put(struct ob_store *store, const char *event_type, const char *key)
{
	const struct outbox_message message = { .aggregate_type = "order",
						.event_type = event_type,
						.partition_key = key,
						.payload = "{}" };
	size_t index;

	ok(ob_store_tx_begin(store, &fault));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &fault));
	ok(ob_store_tx_end(store, true, &fault));
}

/* ---- a worker ------------------------------------------------------- */

/* Take over what the leases say. */
static void take_over(struct worker *w, const struct ob_lease *leases, size_t count, uint32_t all)
{
	struct ob_owned owned[WORKER_PARTS] = { 0 };

	w->part_count = OB_LANES * count;
	ck_assert_uint_le(w->part_count, WORKER_PARTS);
	for (size_t i = 0; i < w->part_count; i++) {
		owned[i].partition = (uint32_t)(i / count) * all + leases[i % count].partition;
		owned[i].epoch = leases[i % count].epoch;
	}
	ok(ob_store_take_over(w->store, "main", &w->id, owned, w->part_count, &fault));
	for (size_t i = 0; i < w->part_count; i++) {
		ck_assert(!owned[i].lost);
		w->parts[i].partition = owned[i].partition;
		ob_progress_set(&w->parts[i].from, &owned[i].progress);
		ob_progress_done(&owned[i].progress);
		w->epoch[i] = owned[i].epoch;
		w->recorded[i] = owned[i].batch;
	}
}

void worker_begin(struct worker *w, const char *user, uint8_t number)
{
	const struct ob_reader reader = { .name = OB_STR("main"),
					  .target = OB_STR("default"),
					  .filter = OB_STR("") };
	const struct ob_place beginning = { 0 };
	struct ob_lease *leases;
	size_t count;
	uint32_t all;
	bool made;

	*w = (struct worker){ .store = fixture_store(user),
			      .id = { { number, [6] = 0x40, [8] = 0x80 } },
			      .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
	ob_batch_init(&w->batch);
	ok(ob_store_reader_make(w->store, &reader, &beginning, &made, &fault));
	ok(ob_store_seed(w->store, "main", &all, &fault));
	ok(ob_store_take(w->store, "main", &w->id, all, 60000, &w->arena, &leases, &count, &fault));
	take_over(w, leases, count, all);
}

void worker_end(struct worker *w)
{
	for (size_t i = 0; i < w->part_count; i++) {
		ob_progress_done(&w->parts[i].from);
		ob_progress_done(&w->parts[i].after);
	}
	ob_batch_done(&w->batch);
	ob_arena_done(&w->arena);
	ob_store_free(w->store);
}

int worker_read(struct worker *w, uint32_t limit)
{
	struct ob_read read = {
		.reader = "main",
		.target = "default",
		.parts = w->parts,
		.part_count = w->part_count,
		.limit = limit,
		.max_bytes = 1 << 24,
		.exception_limit = limit,
	};

	return ob_store_read(w->store, &read, &w->batch, &w->done, &w->err);
}

/* The changes that the outcome of all messages makes. */
static void decide(struct worker *w, enum ob_outcome_kind kind, struct ob_settle *settle)
{
	static struct ob_change changes[4000];
	static struct ob_promote promotes[4000];
	const struct ob_decide how = { .ordering = OB_ORDER_KEY };

	settle->changes = changes;
	settle->promotes = promotes;
	for (uint32_t i = 0; i < w->batch.count; i++) {
		const struct ob_message *m = &w->batch.messages[i];
		bool promote = false;

		ck_assert_uint_lt(settle->change_count, 4000);
		if (!ob_exception_decide(&how, m, kind, 3600000, OB_STR("refused"),
					 &changes[settle->change_count], &promote))
			continue;
		settle->change_count++;
		if (promote)
			promotes[settle->promote_count++] =
				(struct ob_promote){ m->partition, ob_exception_queue(&how, m) };
	}
}

int worker_settle(struct worker *w, enum ob_outcome_kind kind)
{
	struct ob_settle_part parts[WORKER_PARTS];
	struct ob_settle settle = {
		.reader = "main", .owner = w->id, .parts = parts, .part_count = w->part_count
	};

	decide(w, kind, &settle);
	for (size_t i = 0; i < w->part_count; i++)
		parts[i] = (struct ob_settle_part){ .partition = w->parts[i].partition,
						    .epoch = w->epoch[i],
						    .batch = w->recorded[i] + 1,
						    .progress = w->parts[i].after };
	w->lost = w->moved = 0;
	int r = ob_store_settle(w->store, &settle, &w->err);
	for (size_t i = 0; i < w->part_count && r == 0; i++) {
		w->lost += parts[i].settled == OB_SETTLE_LOST;
		w->moved += parts[i].settled == OB_SETTLE_MOVED;
		if (parts[i].settled != OB_SETTLED)
			continue;
		w->recorded[i]++;
		ob_progress_set(&w->parts[i].from, &w->parts[i].after);
	}
	return r;
}

void *settle_in_thread(void *arg)
{
	struct worker *w = arg;

	w->result = worker_settle(w, OB_OUTCOME_PUBLISHED);
	return NULL;
}

const char *worker_labels(const struct worker *w)
{
	static char labels[4096];
	size_t n = 0;

	labels[0] = '\0';
	for (uint32_t i = 0; i < w->batch.count && n < sizeof(labels) - 300; i++)
		n += (size_t)snprintf(labels + n, sizeof(labels) - n, "%s%s", i ? " " : "",
				      w->batch.messages[i].event_type.p);
	return labels;
}

const char *worker_gaps(const struct worker *w)
{
	return w->parts[0].after.seen ? w->parts[0].after.seen->text : "";
}

void worker_expect(struct worker *w, const char *labels)
{
	int r = worker_read(w, 1000);

	ck_assert_msg(r == 0, "%s", w->err.msg);
	ck_assert_str_eq(worker_labels(w), labels);
	r = worker_settle(w, OB_OUTCOME_PUBLISHED);
	ck_assert_msg(r == 0, "%s", w->err.msg);
	ck_assert_uint_eq(w->lost + w->moved, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * What the statements of the PostgreSQL store read: plans and rows as a server that explains every
 * statement logs them. A log with many delivered rows, statistics that are missing or wrong, and an
 * open transaction with many rows must not change what a read costs.
 */
#include "pg_fixture.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { DELIVERED = 100000, OPEN = 30000 };

static const char *const explaining[] = {
	"session_preload_libraries=auto_explain",
	"auto_explain.log_min_duration=0",
	"auto_explain.log_analyze=on",
	"auto_explain.log_timing=off",
	"auto_explain.log_buffers=on",
	"autovacuum=off",
	"max_prepared_transactions=5",
	NULL,
};

static long log_seen;

/* What the server has logged since the last call; the caller frees it. */
static char *new_log(void)
{
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/log", server.dir);
	ck_assert_int_eq(stat(path, &st), 0);
	FILE *file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fseek(file, log_seen, SEEK_SET), 0);
	size_t size = (size_t)(st.st_size - log_seen);
	char *log = calloc(1, size + 1);
	ck_assert_ptr_nonnull(log);
	ck_assert_uint_eq(fread(log, 1, size, file), size);
	(void)fclose(file);
	log_seen = st.st_size;
	return log;
}

static int64_t after(const char *line, const char *word)
{
	const char *at = strstr(line, word);

	return at ? strtoll(at + strlen(word), NULL, 10) : 0;
}

/*
 * Rows of the log and the journal that plans read, and that filters threw away; no plan may scan
 * one of our tables from end to end.
 */
static int64_t rows_read(const char *log, const char *what)
{
	int64_t total = 0, loops = 1;
	char *copy = strdup(log), *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		bool scan = strstr(line, " Scan") && strstr(line, " on outbox");

		if (strstr(line, "(actual rows="))
			loops = after(line, " loops=");
		if (scan && strstr(line, "(actual rows="))
			total += after(line, "(actual rows=") * loops;
		if (strstr(line, "Rows Removed by Filter: "))
			total += after(line, "Rows Removed by Filter: ") * loops;
		ck_assert_msg(!strstr(line, "Seq Scan on outbox"), "%s: %s\n%s", what, line, log);
		ck_assert_msg(!strstr(line, "Bitmap"), "%s: %s\n%s", what, line, log);
		ck_assert_msg(!strstr(line, "Gather"), "%s: %s\n%s", what, line, log);
	}
	free(copy);
	return total;
}

/* Pages of the plan that looked at most of them: rows that are not visible are not counted as read.
 */
static int64_t pages_read(const char *log)
{
	int64_t most = 0;

	for (const char *at = log; (at = strstr(at, "Buffers: shared hit=")); at++) {
		int64_t pages = after(at, "hit=");

		most = pages > most ? pages : most;
	}
	return most;
}

static void expect_pages(const char *what, int64_t most)
{
	char *log = new_log();
	int64_t pages = pages_read(log);

	if (getenv("PLANS"))
		(void)printf("# %s: %lld pages\n", what, (long long)pages);
	ck_assert_msg(pages <= most, "%s: %lld pages were read\n%s", what, (long long)pages, log);
	free(log);
}

static void expect_rows(const char *what, int64_t most)
{
	char *log = new_log();
	int64_t rows = rows_read(log, what);

	if (getenv("PLANS"))
		(void)printf("# %s: %lld rows\n", what, (long long)rows);
	if (rows > most || (getenv("PLANS") && strcmp(getenv("PLANS"), what) == 0))
		(void)printf("%s\n", log);
	ck_assert_msg(rows <= most, "%s: %lld rows were read", what, (long long)rows);
	free(log);
}

static void expect_list(struct ob_store *store, const char *what, struct ob_filter filter,
			uint32_t count, int64_t most)
{
	int64_t now;

	filter.reader = "default";
	free(new_log());
	ok(ob_store_list(store, &filter, &batch, &now, &err));
	ck_assert_uint_eq(batch.count, count);
	expect_rows(what, most);
}

static void expect_lists(struct ob_store *store)
{
	const struct ob_uuid id = batch.messages[0].id;
	const unsigned open_views = 1U << OB_VIEW_PENDING | 1U << OB_VIEW_DEAD;

	expect_list(store, "list by id", (struct ob_filter){ .id = &id }, 1, 50);
	expect_list(store, "list", (struct ob_filter){ .limit = 10 }, 10, 200);
	expect_list(store, "list newest", (struct ob_filter){ .limit = 10, .newest_first = true },
		    10, 200 + OPEN);
	expect_list(store, "list published",
		    (struct ob_filter){ .limit = 10, .views = 1U << OB_VIEW_PUBLISHED }, 10, 300);
	expect_list(store, "list open", (struct ob_filter){ .limit = 10, .views = open_views }, 10,
		    1000);
	/* What is no exception can be neither: the backlog is not read. */
	expect_list(store, "list dead", (struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, 0, 200);
	expect_list(store, "a stream",
		    (struct ob_filter){ .stream = "default",
					.aggregate_type = "s",
					.aggregate_id = "1",
					.newest_first = true,
					.limit = 50,
					.brief = true },
		    50, 300);
	expect_list(store, "search in a window",
		    (struct ob_filter){ .event_type = "none",
					.from_seq = DELIVERED + 2 * OPEN,
					.newest_first = true,
					.limit = 50,
					.brief = true },
		    0, 30000);
}

static void expect_stats(struct ob_store *store)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_stats *stats;
	size_t count;
	int64_t now;

	free(new_log());
	ok(ob_store_stats(store, "default", 10, &arena, &stats, &count, &now, &err));
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 10);
	ck_assert(stats[0].capped[OB_VIEW_PENDING]);
	expect_rows("stats", 2000);
	ob_arena_done(&arena);
}

/* Read and settle everything, each step for what it returns and little more. */
static void expect_drain(struct worker *w, const char *what, int64_t most)
{
	char text_of[64];

	do {
		free(new_log());
		(void)worker_read(w, 500);
		(void)snprintf(text_of, sizeof(text_of), "%s: read", what);
		expect_rows(text_of, most);
		ck_assert_uint_eq(worker_settle(w), 0);
		(void)snprintf(text_of, sizeof(text_of), "%s: settle", what);
		expect_rows(text_of, 200);
	} while (w->done.more);
}

static void insert(PGconn *app, const char *label, int count)
{
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) SELECT 't', "
	     "(i %% 1000)::text, '%s', '{}' FROM generate_series(1, %d) AS i",
	     label, count);
}

/* Read the rest without looking at plans. */
static void drain(struct worker *w)
{
	do {
		(void)worker_read(w, 5000);
		ck_assert_uint_eq(worker_settle(w), 0);
	} while (w->done.more);
}

static void expect_all(struct ob_store *store, PGconn *app, PGconn *writer)
{
	struct worker w, next;

	worker_begin(&w, store, 1, 16);
	insert(app, "delivered", DELIVERED);
	drain(&w);
	exec(writer, "BEGIN");
	insert(writer, "open", OPEN);
	insert(app, "next", 1200);
	/* The first read walks the rows of the open transaction, the others do not. */
	expect_drain(&w, "next", 1400 + 2 * OPEN);
	insert(app, "more", 1200);
	expect_drain(&w, "more", 1400);
	free(new_log());
	ck_assert_str_eq(worker_read(&w, 500), "");
	expect_pages("idle beside an open transaction", 100);
	insert(writer, "open too", OPEN);
	insert(app, "one more", 1);
	(void)worker_read(&w, 500);
	free(new_log());
	ck_assert_str_eq(worker_read(&w, 500), "");
	expect_pages("idle after more of it", 100);
	exec(writer, "COMMIT");
	insert(app, "more", 600);
	expect_drain(&w, "late", 2400);
	insert(app, "waiting", 600);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, "
	     "sequence_number) SELECT 's', '1', 'e', '{}', i FROM generate_series(1, 1000) AS i");
	expect_lists(store);
	expect_stats(store);

	exec(app, "UPDATE outbox_leases SET lease_owner = NULL");
	free(new_log());
	worker_begin(&next, store, 2, 16);
	expect_rows("taking over", 1000);
	expect_drain(&next, "after a takeover", 1400);
	worker_end(&w);
	worker_end(&next);
}

OB_TEST(nothing_reads_more_than_it_returns_on_a_table_that_was_never_analysed)
{
	fixture_new();
	PGconn *app = app_open(), *writer = app_open();
	struct ob_store *store = store_new(16);

	expect_all(store, app, writer);
	ob_store_free(store);
	PQfinish(app);
	PQfinish(writer);
}
OB_TEST_END

/* Analysed when it was empty, or when everything was of one transaction. */
OB_TEST(nor_with_statistics_that_are_wrong)
{
	fixture_new();
	PGconn *app = app_open(), *writer = app_open();
	struct ob_store *store = store_new(16);

	insert(app, "delivered", 20);
	exec(app, "ANALYZE; DELETE FROM outbox");
	expect_all(store, app, writer);
	exec(app, "ANALYZE");
	exec(app, "UPDATE outbox_leases SET lease_owner = NULL");
	struct worker w;
	worker_begin(&w, store, 3, 16);
	insert(app, "after the analyze", 1000);
	expect_drain(&w, "analysed", 1400);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
	PQfinish(writer);
}
OB_TEST_END

/* 20,000 that are not due, a queue of 5,000 behind a head that is not, and nine that are due. */
OB_TEST(exceptions_that_are_not_due_are_not_read)
{
	struct worker w;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	worker_begin(&w, store, 1, 4);
	insert(app, "x", 30000);
	drain(&w);
	exec(app,
	     "INSERT INTO outbox_exceptions (reader, partition_no, seq, state, due, since, queue) "
	     "SELECT 'default', partition_no, seq, CASE WHEN seq <= 20000 THEN 2 WHEN seq <= 20010 "
	     "THEN 1 ELSE 0 END, CASE WHEN seq <= 20000 THEN now() + interval '1 day' WHEN seq <= "
	     "20010 THEN now() END, now(), CASE WHEN seq > 20000 THEN ordering_key END FROM outbox "
	     "WHERE seq <= 20010 OR ordering_key = 't:7'");
	exec(app,
	     "UPDATE outbox_exceptions SET due = now() + interval '1 hour', state = 1, queue = "
	     "'t:7' "
	     "WHERE seq = 7");
	free(new_log());
	(void)worker_read(&w, 100);
	ck_assert_uint_eq(batch.count, 9);
	expect_rows("exceptions", 1000);
	/* Each row of the log is looked up twice: has it an exception, has its key one? */
	insert(app, "next", 1000);
	free(new_log());
	(void)worker_read(&w, 500);
	ck_assert_uint_eq(batch.count, 509);
	expect_rows("next beside exceptions", 3000);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Thirty partitions: each adds a row to what is read, no more. */
OB_TEST(a_partitioned_log_is_read_by_its_indexes)
{
	const struct ob_setup setup = { .partition_count = 16,
					.partitioned = true,
					.partition_rows = 10000 };
	struct ob_setup_done done;
	struct worker w;

	fixture_new();
	PGconn *app = app_open(), *writer = app_open();
	struct ob_store *store = store_open();
	ok(ob_store_setup(store, &setup, &done, &err));
	exec(app,
	     "SELECT outbox_part_add(n * 10000, (n + 1) * 10000) FROM generate_series(4, 29) AS n");
	worker_begin(&w, store, 1, 16);
	insert(app, "delivered", DELIVERED);
	drain(&w);
	insert(app, "waiting", DELIVERED);
	exec(writer, "BEGIN");
	insert(writer, "open", 20);
	insert(app, "next", 1200);
	free(new_log());
	(void)worker_read(&w, 500);
	expect_rows("a backlog", 700);
	ck_assert_uint_eq(worker_settle(&w), 0);
	drain(&w);
	exec(writer, "COMMIT");
	insert(app, "more", 1200);
	expect_drain(&w, "late", 1500);
	expect_list(store, "list by id", (struct ob_filter){ .id = &batch.messages[0].id }, 1, 50);
	worker_end(&w);
	ob_store_free(store);
	PQfinish(app);
	PQfinish(writer);
}
OB_TEST_END

PG_SUITE_WITH("store_postgres_plans", explaining,
	      nothing_reads_more_than_it_returns_on_a_table_that_was_never_analysed,
	      nor_with_statistics_that_are_wrong, exceptions_that_are_not_due_are_not_read,
	      a_partitioned_log_is_read_by_its_indexes)

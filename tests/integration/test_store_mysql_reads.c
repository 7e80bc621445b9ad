/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: what its statements read. Every statement of a worker's calls is explained on a
 * log of many rows with a long journal, and rows that calls read are counted.
 */
#include "mysql_fixture.h"
#include "store/mysql/conn.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { PARTITIONS = 4, LIMIT = 1000, JOURNAL = 2000 };

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
static int rows_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	long rows = text ? strtol(text, NULL, 10) : 0;

	return rows > 0 ? (int)rows : 20000;
}

/* Rows of which a key each has ten. */
static void load(int rows)
{
	if (rows == 0)
		return;
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq DIV 10, 'e', '{\"n\": 1}' FROM " NUMBERS_TO_D,
	    rows);
}

/* Of all statements of the store's connection so far. */
static long long rows_read(struct ob_store *store)
{
	static const char *const counters[] = { "first", "key", "last", "next", "prev", "retry" };
	MYSQL *db = ((struct my_store *)store)->db;
	char name[32];
	long long sum = 0;

	/* MySQL has no "retry". */
	for (size_t i = 0; i < 5U + server.mariadb; i++) {
		(void)snprintf(name, sizeof(name), "Handler_read_%s", counters[i]);
		sum += status_of(db, "SESSION", name);
	}
	return sum;
}

/* What `call` reads, without what counting reads. */
#define READ_BY(store, call) \
	__extension__({ \
		long long first_ = rows_read(store), own_ = rows_read(store) - first_; \
		ok(call); \
		rows_read(store) - first_ - 2 * own_; \
	})

/* A worker that has many rows behind it, whose journal is long, with `left` rows to read. */
static void begin(struct worker *w, int left)
{
	fixture_begin(PARTITIONS);
	load(rows_wanted());
	worker_begin(w, "root", 1);
	do {
		ok(worker_read(w, 10000));
		w->batch.count = 0; /* settled as published */
		ok(worker_settle(w, OB_OUTCOME_PUBLISHED));
	} while (w->done.more);
	sql(admin,
	    "INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) "
	    "SELECT b.reader, b.partition_no, b.batch + s.seq, b.epoch, b.owner, b.at, b.pos "
	    "FROM outbox_batches AS b JOIN " NUMBERS_TO_D " WHERE b.batch = %llu",
	    JOURNAL, (unsigned long long)w->recorded[0]);
	for (size_t i = 0; i < w->part_count; i++)
		w->recorded[i] += JOURNAL;
	load(left);
}

/* ---- plans ----------------------------------------------------------- */

/* What may be read as a whole: lists that we send, small tables, results of subqueries. */
static bool may_scan(const char *table)
{
	static const char *const small[] = { "v",
					     "c",
					     "j",
					     "r",
					     "w",
					     "l",
					     "t",
					     "n",
					     "h",
					     "d",
					     "outbox_workers",
					     "outbox_readers",
					     "outbox_leases" };

	if (table[0] == '<' || table[0] == '\0')
		return true;
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		if (strcmp(table, small[i]) == 0)
			return true;
	}
	return false;
}

/* A value of a plan, "" if it is NULL; the servers have other columns between. */
static const char *column(MYSQL_RES *plan, MYSQL_ROW row, const char *name)
{
	const MYSQL_FIELD *fields = mysql_fetch_fields(plan);

	for (unsigned i = 0; i < mysql_num_fields(plan); i++) {
		if (strcasecmp(fields[i].name, name) == 0)
			return row[i] ? row[i] : "";
	}
	ck_abort_msg("a plan has no column '%s'", name);
}

static void expect_plan(const char *statement)
{
	struct ob_buf explain = OB_BUF_INIT(16 << 20);
	MYSQL_ROW row;

	ob_buf_addf(&explain, "EXPLAIN FORMAT=TRADITIONAL %s", statement);
	ck_assert_msg(mysql_query(admin, ob_buf_str(&explain)) == 0, "%s: %s", mysql_error(admin),
		      statement);
	MYSQL_RES *plan = mysql_store_result(admin);
	ck_assert_ptr_nonnull(plan);
	while ((row = mysql_fetch_row(plan))) {
		const char *table = column(plan, row, "table"), *type = column(plan, row, "type");
		const char *extra = column(plan, row, "Extra");

		/* MySQL lists the table that is inserted into, too. */
		if (strcmp(column(plan, row, "select_type"), "INSERT") == 0)
			continue;
		ck_assert_msg(may_scan(table) ||
				      (strcmp(type, "ALL") != 0 &&
				       (strcmp(type, "index") != 0 || strstr(extra, "group-by"))),
			      "%s of %s: %s", type, table, statement);
		ck_assert_msg(strcmp(table, "m") != 0 || !strstr(extra, "filesort"), "%s: %s",
			      extra, statement);
	}
	mysql_free_result(plan);
	ob_buf_done(&explain);
}

static bool is_explained(const char *statement)
{
	static const char *const kinds[] = { "SELECT ", "(SELECT", "INSERT ", "UPDATE ",
					     "DELETE " };

	/* Not what we ask of the server itself. */
	if (strstr(statement, "information_schema") || strstr(statement, "mysql.general_log"))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(statement, kinds[i], strlen(kinds[i])) == 0)
			return true;
	}
	return false;
}

static void begin_log(void)
{
	sql(admin, "SET GLOBAL log_output = 'TABLE', general_log = 1");
	sql(admin, "TRUNCATE TABLE mysql.general_log");
}

/* Explain the statements of a packet; how many it were. */
static int explain_packet(char *packet)
{
	int count = 0;

	for (char *next; packet; packet = next) {
		next = strstr(packet, "\n;");
		if (next) {
			*next = '\0';
			next += 2;
		}
		if (!is_explained(packet))
			continue;
		expect_plan(packet);
		count++;
	}
	return count;
}

/* Explain all that the store's connection sent since; how many it were. */
static int explain_log(struct ob_store *store)
{
	char query[256];
	MYSQL_ROW row;
	int count = 0;

	sql(admin, "SET GLOBAL general_log = 0");
	/* What the statements of one packet hand to each other. */
	sql(admin,
	    "SET @outbox_first = 1, @outbox_last = 1000000000, @outbox_excepted = 1, "
	    "@outbox_won = '0,1,2,3', @outbox_taken = '0,1', @outbox_held = '0,1', "
	    "@outbox_session = 1");
	(void)snprintf(query, sizeof(query),
		       "SELECT argument FROM mysql.general_log WHERE command_type = 'Query' AND "
		       "thread_id = %lu",
		       mysql_thread_id(((struct my_store *)store)->db));
	ck_assert_int_eq(mysql_query(admin, query), 0);
	MYSQL_RES *sent = mysql_store_result(admin);
	ck_assert_ptr_nonnull(sent);
	while ((row = mysql_fetch_row(sent)))
		count += explain_packet(row[0]);
	mysql_free_result(sent);
	return count;
}

/* What the monitor asks for a stream. */
static void list_stream(struct worker *w)
{
	struct ob_filter filter = { .reader = "main",
				    .stream = "default",
				    .aggregate_type = "order",
				    .aggregate_id = "1",
				    .newest_first = true,
				    .limit = 50,
				    .brief = true };
	struct ob_batch found;
	int64_t now;

	ob_batch_init(&found);
	ok(ob_store_list(w->store, &filter, &found, &now, &fault));
	filter.reader = NULL;
	ok(ob_store_list(w->store, &filter, &found, &now, &fault));
	ob_batch_done(&found);
}

static void run_everything(struct worker *w)
{
	const struct ob_worker me = {
		.id = w->id, .reader = OB_STR("main"), .hostname = OB_STR("h"), .published = 5
	};
	const struct ob_retain retain = { .published_ms = 0, .dead_ms = 0, .limit = 100 };
	const uint32_t one[] = { 1 };
	struct ob_lease *leases;
	struct ob_retained done;
	struct ob_owned owned = { .partition = w->parts[0].partition, .epoch = w->epoch[0] };
	size_t count;
	uint32_t gone;

	list_stream(w);
	ok(worker_read(w, LIMIT)); /* with gaps */
	ok(worker_settle(w, OB_OUTCOME_RETRY));
	sql(admin, "UPDATE outbox_exceptions SET due = '2001-01-01'");
	ok(worker_read(w, LIMIT)); /* and exceptions */
	ok(worker_settle(w, OB_OUTCOME_PUBLISHED));
	ok(worker_read(w, LIMIT));
	ok(worker_settle(w, OB_OUTCOME_PUBLISHED));
	ok(ob_store_take_over(w->store, "main", &(struct ob_uuid){ { 7 } }, &owned, 1, &fault));
	ob_progress_done(&owned.progress);
	ok(ob_store_beat(w->store, &me, 10000, &fault));
	ok(ob_store_reap(w->store, "main", &w->id, &gone, &fault));
	ok(ob_store_renew(w->store, "main", &w->id, 10000, &w->arena, &leases, &count, &fault));
	ok(ob_store_release(w->store, "main", &w->id, one, 1, &fault));
	ok(ob_store_take(w->store, "main", &w->id, 4, 10000, &w->arena, &leases, &count, &fault));
	ok(ob_store_retain(w->store, &retain, &w->arena, &done, &fault));
	ok(ob_store_leave(w->store, "main", &w->id, &fault));
}

static void check_plans(void)
{
	struct worker w;
	MYSQL *open;

	begin(&w, 4 * LIMIT);
	/* A gap of one number, and one of many. */
	open = fixture_connect("root");
	sql(open, "START TRANSACTION");
	sql(open,
	    "INSERT INTO outbox (aggregate_type, event_type, payload) SELECT 'order', 'e', "
	    "'{}' FROM " NUMBERS_TO_D,
	    50);
	load(10);
	sql(open,
	    "INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('order', 'e', "
	    "'{}')");
	load(10);
	for (bool more = true; more; more = w.done.more) {
		ok(worker_read(&w, LIMIT));
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	}
	ck_assert(worker_gaps(&w)[0]);
	load(10);
	begin_log();
	run_everything(&w);
	int count = explain_log(w.store);
	(void)printf("# %d statements explained\n", count);
	ck_assert_int_gt(count, 40);
	mysql_close(open);
	worker_end(&w);
	fixture_end();
}

OB_TEST(no_statement_of_a_worker_reads_a_whole_table)
{
	check_plans();
}
OB_TEST_END

/* ---- counts ---------------------------------------------------------- */

OB_TEST(a_read_reads_no_more_than_it_returns)
{
	struct worker w;

	begin(&w, 3 * LIMIT);
	ok(worker_read(&w, 1)); /* the average size of a row */
	long long rows = READ_BY(w.store, worker_read(&w, LIMIT));
	ck_assert_uint_eq(w.batch.count, LIMIT);
	(void)printf("# %d rows delivered: %lld rows read for %d messages\n", rows_wanted(), rows,
		     LIMIT);
	/* A statement that inserts many rows draws numbers that it does not use: where some are
	 * missing, the range is read once more for its numbers. */
	ck_assert_int_le(rows, 2 * LIMIT + 50);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	rows = READ_BY(w.store, worker_read(&w, LIMIT));
	ck_assert_int_le(rows, LIMIT + 50);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(an_idle_read_reads_next_to_nothing)
{
	struct worker w;

	begin(&w, 0);
	worker_expect(&w, "");
	long long rows = READ_BY(w.store, worker_read(&w, LIMIT));
	ck_assert_int_le(rows, 20);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_settle_does_not_read_the_journal)
{
	struct worker w;

	begin(&w, LIMIT);
	ok(worker_read(&w, LIMIT));
	long long rows = READ_BY(w.store, worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(w.lost, 0);
	/* A few steps for each partition, though each has thousands of rows. */
	ck_assert_int_le(rows, 10 * (long long)w.part_count);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* Rows that an open transaction inserted are stepped over once for each read: that is the price of
 * asking for them. What it did not insert is not. */
OB_TEST(a_reader_from_before_costs_nothing)
{
	struct worker w;

	begin(&w, 3 * LIMIT);
	MYSQL *old = fixture_connect("root");
	sql(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	ok(worker_read(&w, LIMIT));
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	long long rows = READ_BY(w.store, worker_read(&w, LIMIT));
	ck_assert_int_le(rows, LIMIT + 50);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	rows = READ_BY(w.store, worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_int_le(rows, 10 * (long long)w.part_count);
	mysql_close(old);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL reads", no_statement_of_a_worker_reads_a_whole_table,
	    a_read_reads_no_more_than_it_returns, an_idle_read_reads_next_to_nothing,
	    a_settle_does_not_read_the_journal, a_reader_from_before_costs_nothing)

/* SPDX-License-Identifier: MIT */
/* Contract: a statement of the operator's with values of a message, in a transaction. */
#include "store_harness.h"

static struct ob_message paid(uint8_t n)
{
	return (struct ob_message){
		.seq = 7,
		.id = store_uuid(n),
		.aggregate_type = OB_STR("account"),
		.aggregate_id = OB_STR("42"),
		.event_type = OB_STR("Paid"),
		.payload = OB_STR("{\"note\": \"it's :here\"}"),
		.key = OB_STR("account:42"),
		.target = OB_STR("default"),
		.sequence_number = 3,
		.revision = 1,
		.occurred_at_us = INT64_C(1777636800123456), /* 2026-05-01T12:00:00.123456Z */
		.created_at_us = INT64_C(1777636800123456),
	};
}

/* In the open transaction of fx.store. */
static int try_exec(const char *text, struct ob_message message, uint64_t *ret_changed)
{
	struct ob_message_sql *sql = NULL;
	int r = ob_message_sql_parse(fx.store->ops, text, &sql, &fx.err);

	if (r == 0)
		r = ob_store_tx_exec(fx.store, sql, &message, ret_changed, &fx.err);
	ob_message_sql_free(sql);
	return r;
}

static void exec_in_tx(const char *text, struct ob_message message, uint64_t changed)
{
	uint64_t got = 99;

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(try_exec(text, message, &got));
	store_ok(ob_store_tx_end(fx.store, true, &fx.err));
	ck_assert_uint_eq(got, changed);
}

/* Some databases commit by themselves with a CREATE. */
static void begin_exec(void)
{
	uint64_t ignored;

	store_begin(4);
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(
		try_exec("CREATE TABLE seen (id VARCHAR(36) PRIMARY KEY, kind VARCHAR(100),"
			 " body VARCHAR(200), n BIGINT, happened VARCHAR(60))",
			 paid(1), &ignored));
	(void)ob_store_tx_end(fx.store, true, &fx.err);
}

OB_TEST(a_statement_gets_the_values_of_the_message)
{
	begin_exec();
	exec_in_tx(
		"INSERT INTO seen (id, kind, body, n, happened)"
		" VALUES (:id, :type, :payload, :sequence, :occurred_at);",
		paid(1), 1);
	exec_in_tx("INSERT INTO seen (id, kind, n) VALUES (:id, 'other', :position)", paid(2), 1);
	exec_in_tx(
		"DELETE FROM seen WHERE id = :id AND kind = :type AND body = :payload"
		" AND n = :sequence AND happened <> '' AND happened = :occurred_at",
		paid(2), 0);
	exec_in_tx(
		"DELETE FROM seen WHERE id = :id AND kind = :type AND body = :payload"
		" AND n = :sequence AND happened <> ''",
		paid(1), 1);
	exec_in_tx("DELETE FROM seen WHERE n = :position AND body IS NULL", paid(1), 1);
}
OB_TEST_END

OB_TEST(names_in_quotes_and_comments_are_no_values)
{
	begin_exec();
	exec_in_tx(
		"/* :nothing; */ INSERT INTO seen (id, kind) -- :nothing; 'and\n"
		" VALUES (:id, 'it''s :type;') ; -- :end",
		paid(1), 1);
	exec_in_tx("DELETE FROM seen WHERE kind = 'it''s :type;'", paid(1), 1);
}
OB_TEST_END

OB_TEST(what_is_absent_is_null)
{
	struct ob_message m = paid(1);

	begin_exec();
	m.payload = OB_STR_NULL;
	m.sequence_number = 0;
	exec_in_tx(
		"INSERT INTO seen (id, body, n, kind) VALUES (:id, :payload, :sequence, "
		":causation_id)",
		m, 1);
	exec_in_tx("DELETE FROM seen WHERE body IS NULL AND n IS NULL AND kind IS NULL", m, 1);
}
OB_TEST_END

OB_TEST(a_statement_is_undone_with_its_transaction)
{
	uint64_t changed;

	begin_exec();
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(try_exec("INSERT INTO seen (id) VALUES (:id)", paid(1), &changed));
	store_push(fx.store, (struct outbox_message){ .event_type = "pushed" });
	store_ok(ob_store_tx_end(fx.store, false, &fx.err));
	exec_in_tx("DELETE FROM seen WHERE id = :id", paid(1), 0);
	store_expect_rows("");

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(try_exec("INSERT INTO seen (id) VALUES (:id)", paid(1), &changed));
	store_push(fx.store, (struct outbox_message){ .event_type = "pushed" });
	store_ok(ob_store_tx_end(fx.store, true, &fx.err));
	exec_in_tx("DELETE FROM seen WHERE id = :id", paid(1), 1);
	store_expect_rows("pushed");
}
OB_TEST_END

static void expect_failure(const char *text, enum ob_err_kind kind)
{
	uint64_t changed;

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	ck_assert_int_lt(try_exec(text, paid(1), &changed), 0);
	ck_assert_msg(fx.err.kind == kind, "%s: %s", ob_err_kind_name(fx.err.kind), fx.err.msg);
	ck_assert_ptr_null(strstr(fx.err.msg, "outbox setup"));
	store_ok(ob_store_tx_end(fx.store, false, &fx.err));
}

OB_TEST(a_refused_message_is_retried_and_wrong_sql_is_fatal)
{
	begin_exec();
	exec_in_tx("INSERT INTO seen (id) VALUES (:id)", paid(1), 1);
	expect_failure("INSERT INTO seen (id) VALUES (:id)", OB_ERR_RETRY);
	ck_assert_int_ne(fx.err.native[0], '\0');
	expect_failure("INSERT INTO nowhere (id) VALUES (:id)", OB_ERR_FATAL);
	expect_failure("INSRT INTO seen (id) VALUES (:id)", OB_ERR_FATAL);
	exec_in_tx("DELETE FROM seen WHERE id = :id", paid(1), 1);
}
OB_TEST_END

static int run_in_tx(const struct ob_message_sql *sql)
{
	const struct ob_message m = paid(1);
	struct ob_err ignored = OB_ERR_INIT;
	uint64_t changed;

	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	int r = ob_store_tx_exec(fx.store, sql, &m, &changed, &fx.err);
	(void)ob_store_tx_end(fx.store, r == 0, &ignored);
	return r;
}

OB_TEST(a_statement_outlives_a_change_of_its_table)
{
	struct ob_message_sql *sql = NULL;
	uint64_t ignored;
	int failures = 0;

	begin_exec();
	store_ok(ob_message_sql_parse(fx.store->ops, "SELECT * FROM seen WHERE id = :id", &sql,
				      &fx.err));
	for (int i = 0; i < 3; i++)
		store_ok(run_in_tx(sql));
	/* Some databases commit by themselves with an ALTER. */
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(try_exec("ALTER TABLE seen ADD COLUMN more VARCHAR(10)", paid(1), &ignored));
	(void)ob_store_tx_end(fx.store, true, &fx.err);
	/* A database may refuse it once. */
	for (int i = 0; i < 4; i++) {
		if (run_in_tx(sql) < 0) {
			ck_assert_int_ne(fx.err.kind, OB_ERR_FATAL);
			failures++;
		}
	}
	ck_assert_int_le(failures, 1);
	ob_message_sql_free(sql);
}
OB_TEST_END

OB_TEST(one_statement_runs_for_many_messages)
{
	struct ob_message_sql *sql = NULL;
	uint64_t changed = 0;

	begin_exec();
	store_ok(ob_message_sql_parse(
		fx.store->ops, "INSERT INTO seen (id, n) VALUES (:id, :sequence)", &sql, &fx.err));
	for (int tx = 0; tx < 2; tx++) {
		store_ok(ob_store_tx_begin(fx.store, &fx.err));
		for (uint8_t i = 0; i < 5; i++) {
			struct ob_message m = paid((uint8_t)(tx * 5 + i));

			store_ok(ob_store_tx_exec(fx.store, sql, &m, &changed, &fx.err));
			ck_assert_uint_eq(changed, 1);
		}
		store_ok(ob_store_tx_end(fx.store, true, &fx.err));
	}
	ob_message_sql_free(sql);
	exec_in_tx("DELETE FROM seen", paid(1), 10);
}
OB_TEST_END

static void expect_refused(const char *text, const char *why)
{
	struct ob_message_sql *sql = NULL;

	ck_assert_int_eq(ob_message_sql_parse(fx.store->ops, text, &sql, &fx.err), OUTBOX_ECONFIG);
	ck_assert_msg(strstr(fx.err.msg, why) != NULL, "%s", fx.err.msg);
}

OB_TEST(a_statement_that_cannot_be_parsed_is_refused)
{
	begin_exec();
	expect_refused("INSERT INTO seen VALUES (:idd)", "no value ':idd'");
	expect_refused("DELETE FROM seen; DELETE FROM outbox", "more than one");
	expect_refused("DELETE FROM seen WHERE id = 'abc", "has no end");
	expect_refused("DELETE FROM seen /* :id", "has no end");
	expect_refused(" ; ", "empty");
}
OB_TEST_END

OB_TEST(a_statement_needs_a_transaction)
{
	uint64_t changed;

	begin_exec();
	ck_assert_int_eq(try_exec("DELETE FROM seen", paid(1), &changed), OUTBOX_ENOTRANSACTION);
}
OB_TEST_END

/* Progress over what was read last, and the statement, in the open transaction. */
static enum ob_settled settle_in_tx(const char *text, bool commit)
{
	struct ob_settle_part parts[STORE_PARTS_MAX];
	struct ob_settle settle = { .reader = fx.reader,
				    .owner = fx.me,
				    .parts = parts,
				    .part_count = fx.part_count,
				    .changes = fx.changes,
				    .change_count = fx.change_count,
				    .promotes = fx.promotes,
				    .promote_count = fx.promote_count };
	enum ob_settled worst = OB_SETTLED;
	uint64_t changed;

	for (size_t i = 0; i < fx.part_count; i++)
		parts[i] = (struct ob_settle_part){ .partition = fx.parts[i].partition,
						    .epoch = fx.parts[i].epoch,
						    .batch = fx.parts[i].batch + 1,
						    .progress = fx.parts[i].reading,
						    .published = 1 };
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_ok(try_exec(text, paid(1), &changed));
	store_ok(ob_store_tx_settle(fx.store, &settle, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++) {
		if (parts[i].settled != OB_SETTLED)
			worst = parts[i].settled;
	}
	store_ok(ob_store_tx_end(fx.store, commit && worst == OB_SETTLED, &fx.err));
	return worst;
}

OB_TEST(progress_and_effect_commit_together_or_not_at_all)
{
	begin_exec();
	store_put_all("a1 b1 c1");
	store_hold_all(60000);
	store_read(100, 0);
	ck_assert_int_eq(settle_in_tx("INSERT INTO seen (id) VALUES (:id)", false), OB_SETTLED);
	exec_in_tx("DELETE FROM seen", paid(1), 0);
	store_expect_view("a1", OB_VIEW_PENDING);
	ck_assert_int_eq(settle_in_tx("INSERT INTO seen (id) VALUES (:id)", true), OB_SETTLED);
	store_expect_view("a1", OB_VIEW_PUBLISHED);
	store_expect_view("c1", OB_VIEW_PUBLISHED);
	exec_in_tx("DELETE FROM seen", paid(1), 1);
}
OB_TEST_END

OB_TEST(exceptions_are_changed_in_the_same_transaction)
{
	begin_exec();
	store_put_all("a1 b1");
	store_hold_all(60000);
	store_read(100, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	ck_assert_int_eq(settle_in_tx("INSERT INTO seen (id) VALUES (:id)", false), OB_SETTLED);
	store_expect_view("a1", OB_VIEW_PENDING);
	ck_assert_int_eq(settle_in_tx("INSERT INTO seen (id) VALUES (:id)", true), OB_SETTLED);
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("b1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(who_was_replaced_records_nothing_and_has_no_effect)
{
	begin_exec();
	store_put_all("a1 b1");
	store_hold_all(60000);
	store_read(100, 0);

	/* Another takes the partitions over; then the first one wants to record. */
	struct store_fixture first = fx;
	store_ok(ob_store_free_leases(fx.store, fx.reader, NULL, 0, &fx.err));
	store_be("main", "default", 9);
	store_hold_all(60000);
	for (size_t i = 0; i < first.part_count; i++)
		fx.parts[i].epoch--;
	fx.me = first.me;
	for (size_t i = 0; i < fx.part_count; i++)
		fx.parts[i].batch = first.parts[i].batch;
	ck_assert_int_eq(settle_in_tx("INSERT INTO seen (id) VALUES (:id)", true), OB_SETTLE_LOST);
	exec_in_tx("DELETE FROM seen", paid(1), 0);
	store_expect_view("a1", OB_VIEW_PENDING);
}
OB_TEST_END

STORE_CASES(exec, a_statement_gets_the_values_of_the_message,
	    names_in_quotes_and_comments_are_no_values, what_is_absent_is_null,
	    a_statement_is_undone_with_its_transaction,
	    a_refused_message_is_retried_and_wrong_sql_is_fatal,
	    one_statement_runs_for_many_messages, a_statement_outlives_a_change_of_its_table,
	    a_statement_that_cannot_be_parsed_is_refused, a_statement_needs_a_transaction,
	    progress_and_effect_commit_together_or_not_at_all,
	    exceptions_are_changed_in_the_same_transaction,
	    who_was_replaced_records_nothing_and_has_no_effect)

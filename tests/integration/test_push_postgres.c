/* SPDX-License-Identifier: MIT */
/* Pushing into a real PostgreSQL, inside an application's own connection and transaction. */
#include "pg_fixture.h"
#include "run.h"

#include <stdlib.h>

#define GOOD .aggregate_type = "order", .event_type = "OrderPlaced", .payload = "{}"

static struct outbox_error error;
static PGconn *app;

static const char id_a[] = "00000000-0000-4000-8000-00000000000a";

/* A database with tables, the application's connection, and its writer. */
static outbox *begin(const struct outbox_options *options)
{
	outbox *ob = NULL;

	fixture_new();
	ob_store_free(store_new(4));
	app = app_open();
	ck_assert_msg(outbox_postgres_open(app, options, &ob, &error) == 0, "%s", error.message);
	return ob;
}

static void end(outbox *ob)
{
	outbox_close(ob);
	PQfinish(app);
}

static int push(outbox *ob, struct outbox_message message)
{
	return outbox_push(ob, &message, 1, NULL, &error);
}

static int64_t rows(void)
{
	return number(app, "SELECT count(*) FROM outbox");
}

OB_TEST(a_committed_message_is_stored_and_a_rolled_back_one_is_not)
{
	outbox *ob = begin(NULL);

	exec(app, "BEGIN");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	exec(app, "ROLLBACK");
	ck_assert_int_eq(rows(), 0);
	exec(app, "BEGIN");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	/* It never commits by itself. */
	ck_assert_int_eq(PQtransactionStatus(app), PQTRANS_INTRANS);
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), 1);
	end(ob);
}
OB_TEST_END

OB_TEST(outside_of_a_usable_transaction_nothing_is_written)
{
	outbox *ob = begin(NULL);

	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ENOTRANSACTION);
	exec(app, "BEGIN");
	PQclear(PQexec(app, "SELECT 1/0"));
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ESTORE);
	ck_assert_str_eq(error.message, "the transaction has failed before: roll it back");
	exec(app, "ROLLBACK; BEGIN");
	ck_assert_int_eq(PQenterPipelineMode(app), 1);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_EINVAL);
	ck_assert_str_eq(error.message,
			 "the connection is in pipeline mode: leave it, or send what "
			 "outbox_postgres_statement() returns");
	ck_assert_int_eq(PQexitPipelineMode(app), 1);
	ck_assert_int_eq(PQsendQuery(app, "SELECT 1"), 1);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_EINVAL);
	ck_assert_str_eq(error.message,
			 "a command is under way on this connection: take its result first");
	PQclear(PQgetResult(app));
	PQclear(PQgetResult(app));
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), 0);
	end(ob);
}
OB_TEST_END

OB_TEST(a_non_blocking_connection_is_served_and_left_as_it_is)
{
	outbox *ob = begin(NULL);
	size_t size = 24 << 20; /* more than any socket holds */
	char *large = malloc(size);
	struct outbox_message message = { GOOD };

	ck_assert_ptr_nonnull(large);
	memset(large, ' ', size);
	memcpy(large, "{}", 2);
	message.payload = large;
	message.payload_size = size;
	exec(app, "BEGIN");
	ck_assert_int_eq(PQsetnonblocking(app, 1), 0);
	ck_assert_msg(push(ob, message) == 0, "%s", error.message);
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), 0);
	ck_assert_int_eq(PQisnonblocking(app), 1);
	ck_assert_int_eq(PQpipelineStatus(app), PQ_PIPELINE_OFF);
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), 2);
	free(large);
	end(ob);
}
OB_TEST_END

/* Send what outbox_postgres_statement() gives, as an event loop does. */
static void send_statement(outbox *ob, const struct outbox_message *messages, size_t count,
			   struct outbox_id *ids)
{
	const struct outbox_postgres_statement *s = NULL;

	ck_assert_msg(outbox_postgres_statement(ob, messages, count, ids, &s, &error) == 0, "%s",
		      error.message);
	ck_assert_int_eq(PQsendQueryParams(app, s->sql, s->param_count, s->types, s->values,
					   s->lengths, s->formats, 1),
			 1);
}

/* The results of a pipeline up to its sync: the rows that were stored. */
static int64_t take_results(void)
{
	int64_t stored = 0;
	ExecStatusType status = PGRES_EMPTY_QUERY;

	while (status != PGRES_PIPELINE_SYNC) {
		PGresult *result = PQgetResult(app);

		status = result ? PQresultStatus(result) : PGRES_EMPTY_QUERY;
		if (status == PGRES_COMMAND_OK && strncmp(PQcmdStatus(result), "INSERT", 6) == 0)
			stored += strtoll(PQcmdTuples(result), NULL, 10);
		PQclear(result);
	}
	return stored;
}

OB_TEST(an_event_loop_sends_the_statement_itself)
{
	outbox *ob = begin(NULL);
	struct outbox_message two[2] = { { GOOD, .aggregate_id = "1" },
					 { GOOD, .aggregate_id = "2", .headers = "{}" } };
	struct outbox_id ids[2];

	ck_assert_int_eq(PQsetnonblocking(app, 1), 0);
	ck_assert_int_eq(PQenterPipelineMode(app), 1);
	ck_assert_int_eq(PQsendQueryParams(app, "BEGIN", 0, NULL, NULL, NULL, NULL, 0), 1);
	send_statement(ob, two, 2, ids);
	send_statement(ob, &(struct outbox_message){ GOOD, .priority = 3 }, 1, NULL);
	ck_assert_int_eq(PQsendQueryParams(app, "COMMIT", 0, NULL, NULL, NULL, NULL, 0), 1);
	ck_assert_int_eq(PQpipelineSync(app), 1);
	ck_assert_int_eq(take_results(), 3);
	ck_assert_int_eq(PQexitPipelineMode(app), 1);
	ck_assert_int_eq(rows(), 3);
	ck_assert_str_eq(text(app, "SELECT id FROM outbox WHERE aggregate_id = '2'"), ids[1].text);
	end(ob);
}
OB_TEST_END

OB_TEST(a_statement_is_checked_before_it_is_given_out)
{
	const struct outbox_postgres_statement *s = NULL;
	outbox *ob = begin(NULL);
	struct outbox_message wrong[2] = { { GOOD }, { GOOD } };

	wrong[1].payload = "{";
	ck_assert_int_eq(outbox_postgres_statement(ob, wrong, 2, NULL, &s, &error),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_uint_eq(error.index, 1);
	ck_assert_int_eq(outbox_postgres_statement(ob, wrong, 0, NULL, &s, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_postgres_statement(ob, wrong, 1001, NULL, &s, &error),
			 OUTBOX_EINVAL);
	ck_assert_str_eq(error.message, "a statement stores 1 to 1000 messages, not 1001");
	ck_assert_int_eq(outbox_postgres_statement(NULL, wrong, 1, NULL, &s, &error),
			 OUTBOX_EINVAL);
	exec(app, "SET client_encoding = 'LATIN1'");
	ck_assert_int_eq(outbox_postgres_statement(ob, wrong, 1, NULL, &s, &error), OUTBOX_ECONFIG);
	ck_assert_ptr_null(s);
	end(ob);
}
OB_TEST_END

OB_TEST(every_field_comes_back_as_it_was)
{
	outbox *ob = begin(NULL);
	const struct outbox_message full = {
		.aggregate_type = "order",
		.aggregate_id = "k\xC3\xA4se-1042",
		.event_type = "OrderPlaced",
		.payload = "{ \"n\" : 1.50 }",
		.headers = "{\"h\":[1]}",
		.id = id_a,
		.partition_key = "tenant-7",
		.target = "kafka",
		.correlation_id = "corr",
		.causation_id = "cause",
		.sequence_number = INT64_MAX,
		.occurred_at_us = 1700000000123456,
		.delay_ms = 3600000,
		.revision = 3,
		.priority = -5,
		.snapshot = "[null]",
	};

	exec(app, "BEGIN");
	ck_assert_msg(push(ob, full) == 0, "%s", error.message);
	exec(app, "COMMIT");
	ck_assert_str_eq(
		text(app,
		     "SELECT concat_ws('|', id, aggregate_type, aggregate_id, event_type, "
		     "payload, headers, partition_key, target, correlation_id, causation_id, "
		     "sequence_number, extract(epoch FROM occurred_at), revision, priority, "
		     "snapshot, ordering_key, available_at > now() + interval '59 minutes') FROM "
		     "outbox"),
		"00000000-0000-4000-8000-00000000000a|order|k\xC3\xA4se-1042|OrderPlaced|{ \"n\" : "
		"1.50 "
		"}|{\"h\":[1]}|tenant-7|kafka|corr|cause|9223372036854775807|1700000000.123456|"
		"3|-5|[null]|tenant-7|t");
	end(ob);
}
OB_TEST_END

/* A column that no message of a call sets is not named; the others of the call get its default. */
OB_TEST(each_field_may_be_set_by_one_message_alone)
{
	outbox *ob = begin(NULL);
	static const struct {
		struct outbox_message message;
		const char *what; /* of the table, true for a row that has it */
	} fields[] = {
		{ { GOOD, .headers = "{}" }, "headers IS NOT NULL" },
		{ { GOOD, .partition_key = "p" }, "partition_key IS NOT NULL" },
		{ { GOOD, .target = "kafka" }, "target <> 'default'" },
		{ { GOOD, .correlation_id = "c" }, "correlation_id IS NOT NULL" },
		{ { GOOD, .causation_id = "c" }, "causation_id IS NOT NULL" },
		{ { GOOD, .aggregate_id = "1", .sequence_number = 7 },
		  "sequence_number IS NOT NULL" },
		{ { GOOD, .occurred_at_us = 1 }, "occurred_at < '1970-01-02'" },
		{ { GOOD, .delay_ms = 60000 }, "available_at <> 'epoch'" },
		{ { GOOD, .revision = 2 }, "revision <> 1" },
		{ { GOOD, .priority = 3 }, "priority <> 0" },
		{ { GOOD, .snapshot = "[]" }, "snapshot IS NOT NULL" },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct outbox_message three[] = { { GOOD }, fields[i].message, { GOOD } };
		char sql[256];

		exec(app, "TRUNCATE outbox RESTART IDENTITY; BEGIN");
		ck_assert_msg(outbox_push(ob, three, 3, NULL, &error) == 0, "%s", error.message);
		ck_assert_msg(push(ob, (struct outbox_message){ GOOD }) == 0, "%s", error.message);
		exec(app, "COMMIT");
		(void)snprintf(sql, sizeof(sql),
			       "SELECT string_agg((%s)::text, ' ' ORDER BY seq) FROM outbox",
			       fields[i].what);
		ck_assert_str_eq(text(app, sql), "false true false false");
	}
	end(ob);
}
OB_TEST_END

OB_TEST(many_messages_are_stored_in_order)
{
	enum { MANY = 2500 };
	outbox *ob = begin(NULL);
	static struct outbox_message messages[MANY];
	static struct outbox_id ids[MANY];
	static char payloads[MANY][16];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(payloads[i], sizeof(payloads[i]), "%d", i);
		messages[i] = (struct outbox_message){ GOOD };
		messages[i].payload = payloads[i];
	}
	exec(app, "BEGIN");
	ck_assert_msg(outbox_push(ob, messages, MANY, ids, &error) == 0, "%s", error.message);
	exec(app, "COMMIT");
	ck_assert_int_eq(
		number(app,
		       "SELECT count(*) FROM (SELECT payload::text::int - row_number() OVER "
		       "(ORDER BY seq) AS d FROM outbox) x WHERE d = -1"),
		MANY);
	ck_assert_str_eq(text(app, "SELECT id FROM outbox ORDER BY seq DESC LIMIT 1"),
			 ids[MANY - 1].text);

	/* A duplicate in the last statement of several takes all of them back. */
	messages[MANY - 1].id = ids[0].text;
	exec(app, "BEGIN");
	ck_assert_int_eq(outbox_push(ob, messages, MANY, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, MANY - 1);
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), MANY);
	end(ob);
}
OB_TEST_END

OB_TEST(duplicates_are_told_apart_and_leave_the_transaction_usable)
{
	outbox *ob = begin(NULL);
	struct outbox_message three[] = { { GOOD },
					  { GOOD, .aggregate_id = "1", .sequence_number = 7 },
					  { GOOD, .id = id_a } };

	exec(app, "BEGIN");
	ck_assert_int_eq(outbox_push(ob, three, 3, NULL, &error), 0);
	ck_assert_int_eq(outbox_push(ob, &three[2], 1, NULL, &error), OUTBOX_EDUPID);
	ck_assert_str_eq(error.message,
			 "id 00000000-0000-4000-8000-00000000000a is already stored for "
			 "target 'default'");
	ck_assert_str_eq(error.native, "23505");
	ck_assert_uint_eq(error.index, 0);
	ck_assert_int_eq(outbox_push(ob, three, 2, NULL, &error), OUTBOX_EDUPSEQUENCE);
	ck_assert_uint_eq(error.index, 1);
	ck_assert_str_eq(error.message,
			 "message 1: aggregate '1' of type 'order' already has sequence "
			 "number 7");
	/* The application's own work goes on. */
	exec(app, "CREATE TABLE mine (n int)");
	ck_assert_int_eq(PQtransactionStatus(app), PQTRANS_INTRANS);
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), 3);

	struct outbox_message twice[] = { { GOOD },
					  { GOOD, .aggregate_id = "2", .sequence_number = 1 },
					  { GOOD, .aggregate_id = "2", .sequence_number = 1 } };
	exec(app, "BEGIN");
	ck_assert_int_eq(outbox_push(ob, twice, 3, NULL, &error), OUTBOX_EDUPSEQUENCE);
	ck_assert_uint_eq(error.index, 2);
	exec(app, "COMMIT");
	ck_assert_int_eq(rows(), 3);
	end(ob);
}
OB_TEST_END

OB_TEST(what_the_database_refuses_is_named)
{
	const struct outbox_options options = { .flags = OUTBOX_NO_PAYLOAD_CHECK };
	outbox *ob = begin(&options);
	struct outbox_message two[] = { { GOOD }, { GOOD } };

	two[1].payload = "{";
	exec(app, "BEGIN");
	ck_assert_int_eq(outbox_push(ob, two, 2, NULL, &error), OUTBOX_EPAYLOADJSON);
	ck_assert_uint_eq(error.index, 1);
	ck_assert_str_eq(error.native, "22P02");
	ck_assert_int_eq(outbox_push(ob, two, 1, NULL, &error), 0);
	exec(app, "COMMIT");
	exec(app,
	     "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; "
	     "END'; CREATE TRIGGER swallow BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION "
	     "swallow()");
	exec(app, "BEGIN");
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ESTORE);
	ck_assert_str_eq(error.message,
			 "0 of 1 messages were stored, a trigger or rule on 'outbox' "
			 "ignored the rest; roll the transaction back");
	exec(app, "ROLLBACK");
	end(ob);
}
OB_TEST_END

OB_TEST(a_missing_table_is_told_at_once_and_breaks_no_transaction)
{
	outbox *ob = NULL;

	fixture_new();
	app = app_open();
	exec(app, "BEGIN");
	ck_assert_int_eq(outbox_postgres_open(app, NULL, &ob, &error), OUTBOX_ESCHEMA);
	ck_assert_str_eq(error.message,
			 "relation \"outbox\" does not exist; run `outbox setup`, or name "
			 "the schema: table \"SCHEMA.outbox\"");
	ck_assert_int_eq(PQtransactionStatus(app), PQTRANS_INTRANS);
	exec(app, "CREATE TABLE outbox (id int)");
	ck_assert_int_eq(outbox_postgres_open(app, NULL, &ob, &error), OUTBOX_ESCHEMA);
	exec(app, "COMMIT");
	exec(app, "SET client_encoding = 'LATIN1'");
	ck_assert_int_eq(outbox_postgres_open(app, NULL, &ob, &error), OUTBOX_ECONFIG);
	ck_assert_str_eq(error.message,
			 "client_encoding is LATIN1, but messages are UTF-8: call "
			 "PQsetClientEncoding(conn, \"UTF8\")");
	PQfinish(app);
}
OB_TEST_END

OB_TEST(a_producer_needs_the_right_to_insert_only)
{
	outbox *own = begin(NULL), *ob = NULL;
	char id[sizeof(id_a)];

	(void)snprintf(id, sizeof(id), "%s", id_a);
	exec(app, "CREATE ROLE producer LOGIN; GRANT INSERT ON outbox TO producer");
	PGconn *conn = PQconnectdb(url_of("producer"));
	ck_assert_msg(outbox_postgres_open(conn, NULL, &ob, &error) == 0, "%s", error.message);
	exec(conn, "BEGIN");
	struct outbox_message two[] = { { GOOD, .id = id }, { GOOD } };
	ck_assert_msg(outbox_push(ob, two, 2, NULL, &error) == 0, "%s", error.message);
	/* It may not look which one it was. */
	ck_assert_int_eq(outbox_push(ob, two, 2, NULL, &error), OUTBOX_EDUPID);
	ck_assert_uint_eq(error.index, OUTBOX_NO_INDEX);
	exec(conn, "COMMIT");
	ck_assert_int_eq(rows(), 2);
	exec(app, "REVOKE INSERT ON outbox FROM producer");
	exec(conn, "BEGIN");
	ck_assert_int_eq(outbox_push(ob, &two[1], 1, NULL, &error), OUTBOX_ESTORE);
	ck_assert_str_eq(error.message,
			 "storing the messages: permission denied for table outbox; grant "
			 "INSERT on the table to this user");
	exec(conn, "COMMIT");
	outbox_close(ob);
	PQfinish(conn);
	exec(app, "DROP ROLE producer");
	end(own);
}
OB_TEST_END

OB_TEST(a_lost_connection_is_told)
{
	outbox *ob = begin(NULL);

	exec(app, "BEGIN");
	PGconn *killer = app_open();
	exec(killer, "SELECT pg_terminate_backend(%d, 5000)", PQbackendPID(app));
	ck_assert_int_eq(push(ob, (struct outbox_message){ GOOD }), OUTBOX_ESTORE);
	ck_assert_ptr_nonnull(strstr(error.message, "the connection is gone"));
	PQfinish(killer);
	end(ob);
}
OB_TEST_END

OB_TEST(the_example_stores_one_order_and_its_event)
{
	outbox *ob = begin(NULL);
	const char *program = getenv("ORDERS_POSTGRES");
	const char *const argv[] = { program, url, NULL };
	struct ob_run run = { .argv = argv };

	ck_assert_ptr_nonnull(program);
	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ck_assert_int_eq(rows(), 1);
	ck_assert_int_eq(number(app, "SELECT count(*) FROM orders"), 1);
	ob_run_done(&run);
	end(ob);
}
OB_TEST_END

PG_SUITE("push_postgres", a_committed_message_is_stored_and_a_rolled_back_one_is_not,
	 outside_of_a_usable_transaction_nothing_is_written,
	 a_non_blocking_connection_is_served_and_left_as_it_is,
	 an_event_loop_sends_the_statement_itself, a_statement_is_checked_before_it_is_given_out,
	 every_field_comes_back_as_it_was, each_field_may_be_set_by_one_message_alone,
	 many_messages_are_stored_in_order,
	 duplicates_are_told_apart_and_leave_the_transaction_usable,
	 what_the_database_refuses_is_named,
	 a_missing_table_is_told_at_once_and_breaks_no_transaction,
	 a_producer_needs_the_right_to_insert_only, a_lost_connection_is_told,
	 the_example_stores_one_order_and_its_event)

/* SPDX-License-Identifier: MIT */
/* The Redis sink against a real server: what becomes of its errors, and the order of a key. */
#include "sink_redis_fixture.h"

#include <poll.h>
#include <stdlib.h>

static struct row row;

static void begin(void)
{
	redis_server_start(&server);
}

static void end(struct ob_sink *sink)
{
	ob_sink_free(sink);
	redis_server_end(&server);
}

static struct ob_sink *open_sink(void)
{
	struct ob_sink *sink = make_sink(url_of("", 0), "timeout", "5s", NULL);

	must_open(sink);
	return sink;
}

/* ---- content --------------------------------------------------------- */

static void expect_field(const redisReply *fields, size_t at, const char *name, const char *value)
{
	ck_assert_uint_lt(2 * at + 1, fields->elements);
	ck_assert_str_eq(fields->element[2 * at]->str, name);
	ck_assert_str_eq(fields->element[2 * at + 1]->str, value);
}

OB_TEST(every_field_has_its_name_and_place)
{
	struct tally tally = { 0 };
	struct parcel parcel;

	begin();
	struct ob_sink *sink = open_sink();
	parcel_init(&parcel, 5, OB_STR("order:1042"), OB_STR("{\"n\":1}"));
	parcel.message.sequence_number = 7;
	parcel.message.correlation_id = OB_STR("c");
	parcel.message.causation_id = OB_STR("d");
	parcel.message.headers = OB_STR("{\"a\":1}");
	parcel.delivery.content_type = OB_STR("application/json");
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	redisReply *entries = redis_ask(&server, "XRANGE", "orders", "-", "+", NULL);
	ck_assert_uint_eq(entries->elements, 1);
	const redisReply *fields = entries->element[0]->element[1];
	expect_field(fields, 0, "id", "01900000-0000-7000-8000-000000000005");
	expect_field(fields, 1, "event_type", "OrderPlaced");
	expect_field(fields, 2, "aggregate_type", "order");
	expect_field(fields, 3, "aggregate_id", "1042");
	expect_field(fields, 4, "revision", "1");
	expect_field(fields, 5, "sequence_number", "7");
	expect_field(fields, 6, "correlation_id", "c");
	expect_field(fields, 7, "causation_id", "d");
	expect_field(fields, 8, "occurred_at", "2023-11-14T22:13:20.123456Z");
	expect_field(fields, 9, "key", "order:1042");
	expect_field(fields, 10, "content_type", "application/json");
	expect_field(fields, 11, "headers", "{\"a\":1}");
	expect_field(fields, 12, "payload", "{\"n\":1}");
	ck_assert_uint_eq(fields->elements, 26);
	freeReplyObject(entries);
	end(sink);
}
OB_TEST_END

OB_TEST(streams_are_trimmed_only_when_asked_to)
{
	begin();
	struct ob_sink *sink = open_sink();
	row_init(&row, 500, "k", "kept");
	row_deliver(sink, &row);
	ck_assert_int_eq(redis_count(&server, "XLEN", "kept", NULL), 500);
	ob_sink_free(sink);
	sink = make_sink(url_of("", 0), "max_len", "10", NULL);
	must_open(sink);
	row_init(&row, 500, "k", "short");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 500);
	ck_assert_int_lt(redis_count(&server, "XLEN", "short", NULL), 250);
	ob_sink_free(sink);
	for (int i = 1; i <= 200; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%d-1", i);
		redis_do(&server, "XADD", "aged", id, "f", "v", NULL);
	}
	sink = make_sink(url_of("", 0), "max_age", "1h", NULL);
	must_open(sink);
	row_init(&row, 300, "k", "aged");
	row_deliver(sink, &row);
	ck_assert_int_ge(redis_count(&server, "XLEN", "aged", NULL), 300);
	ck_assert_int_lt(redis_count(&server, "XLEN", "aged", NULL), 450);
	end(sink);
}
OB_TEST_END

/* ---- order ----------------------------------------------------------- */

OB_TEST(nothing_behind_a_failure_in_a_run_is_stored)
{
	begin();
	struct ob_sink *sink = open_sink();
	/* room for one entry more: the second of the run is refused */
	redis_do(&server, "XADD", "orders", "18446744073709551615-18446744073709551614", "f", "v",
		 NULL);
	row_init(&row, 300, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_NONE);
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 299);
	ck_assert_str_eq(stream_text(&server, "orders"), "0");
	/* the key is usable again */
	redis_do(&server, "DEL", "orders", NULL);
	row_init(&row, 5, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_str_eq(stream_text(&server, "orders"), "0 1 2 3 4");
	end(sink);
}
OB_TEST_END

OB_TEST(a_failed_key_takes_nothing_until_its_outcomes_are_fetched)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack;
	struct parcel other;

	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "SET", "orders", "text", NULL);
	row_init(&row, 3, "k", "orders");
	row_send(sink, &row);
	ck_assert_int_eq(ob_sink_poll(sink, 5000, &ack, 1, &err), 1);
	ck_assert_int_eq(ack.err.kind, OB_ERR_RETRY);
	row_init(&row, 4, "k", "good");
	ck_assert_int_eq(ob_sink_send(sink, &row.parcels[3].delivery, &err), OB_SINK_FULL);
	parcel_init(&other, 9, OB_STR("other"), OB_STR("{}"));
	other.delivery.destination = OB_STR("good");
	ck_assert_int_eq(ob_sink_send(sink, &other.delivery, &err), 0);
	ck_assert_int_eq(ob_sink_poll(sink, 5000, &ack, 1, &err), 1);
	ck_assert_int_eq(ob_sink_poll(sink, 5000, &ack, 1, &err), 1);
	ck_assert_uint_eq(ack.tag, 2);
	ck_assert_int_eq(ob_sink_send(sink, &row.parcels[3].delivery, &err), 0);
	end(sink);
}
OB_TEST_END

OB_TEST(one_key_over_several_streams_keeps_its_order)
{
	begin();
	struct ob_sink *sink = open_sink();
	row_init(&row, 60, "k", "a");
	for (size_t i = 0; i < row.count; i++)
		row.parcels[i].delivery.destination = i / 3 % 2 ? OB_STR("b") : OB_STR("a");
	redis_do(&server, "SET", "b", "text", NULL);
	row_deliver(sink, &row);
	ck_assert_str_eq(stream_text(&server, "a"), "0 1 2");
	ck_assert_uint_eq(row_count(&row, OB_ERR_RETRY), 57);
	end(sink);
}
OB_TEST_END

OB_TEST(a_forgotten_script_is_sent_again)
{
	begin();
	struct ob_sink *sink = open_sink();
	row_init(&row, 3, "k", "orders");
	row_deliver(sink, &row);
	redis_do(&server, "SCRIPT", "FLUSH", NULL);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 3);
	ck_assert_str_eq(stream_text(&server, "orders"), "0 1 2 0 1 2");
	end(sink);
}
OB_TEST_END

OB_TEST(a_stream_name_that_holds_something_else_fails_its_messages_alone)
{
	struct row *good = calloc(1, sizeof(*good));

	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "SET", "orders", "text", NULL);
	row_init(&row, 1, "a", "orders");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_RETRY);
	ck_assert_str_eq(row.acks[0].err.native, "WRONGTYPE");
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg, "the destination names something else"));
	row_init(good, 5, "b", "other");
	row_deliver(sink, good);
	ck_assert_uint_eq(row_count(good, OB_ERR_NONE), 5);
	free(good);
	end(sink);
}
OB_TEST_END

/* ---- the server refuses ---------------------------------------------- */

OB_TEST(a_replica_is_an_outage_until_it_is_a_primary_again)
{
	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "REPLICAOF", "127.0.0.1", "1", NULL);
	row_init(&row, 10, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 10);
	ck_assert_str_eq(row.acks[0].err.native, "READONLY");
	redis_do(&server, "REPLICAOF", "NO", "ONE", NULL);
	must_open(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 10);
	end(sink);
}
OB_TEST_END

OB_TEST(a_server_without_memory_is_an_outage)
{
	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "CONFIG", "SET", "maxmemory", "1", NULL);
	row_init(&row, 10, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 10);
	ck_assert_str_eq(row.acks[0].err.native, "OOM");
	row_init(&row, 1, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_str_eq(row.acks[0].err.native, "OOM");
	redis_do(&server, "CONFIG", "SET", "maxmemory", "0", NULL);
	must_open(sink);
	row_init(&row, 10, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_str_eq(stream_text(&server, "orders"), "0 1 2 3 4 5 6 7 8 9");
	end(sink);
}
OB_TEST_END

OB_TEST(a_message_beyond_the_servers_limit_is_rejected_and_the_rest_goes_on)
{
	char *large = malloc(2 << 20);

	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "CONFIG", "SET", "proto-max-bulk-len", "1mb", NULL);
	memset(large, 'x', 2 << 20);
	row_init(&row, 3, NULL, "orders");
	row.parcels[1].delivery.body = (struct ob_str){ large, 2 << 20 };
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_NONE);
	ck_assert_int_eq(row.acks[1].err.kind, OB_ERR_REJECT);
	ck_assert_int_eq(row.acks[2].err.kind, OB_ERR_DOWN);
	must_open(sink);
	row_init(&row, 2, NULL, "orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 2);
	free(large);
	end(sink);
}
OB_TEST_END

OB_TEST(what_no_server_would_take_is_rejected_at_once)
{
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	begin();
	struct ob_sink *sink = open_sink();
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{}"));
	parcel.delivery.destination = OB_STR("");
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	parcel_init(&parcel, 1, OB_STR("k"), (struct ob_str){ "", (size_t)81 << 20 });
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	end(sink);
}
OB_TEST_END

/* ---- silence and ends ------------------------------------------------ */

OB_TEST(a_lost_answer_is_an_outage_after_our_own_deadline)
{
	begin();
	struct ob_sink *sink = make_sink(url_of("", 0), "timeout", "200ms", NULL);
	must_open(sink);
	redis_do(&server, "CLIENT", "PAUSE", "60000", "WRITE", NULL);
	row_init(&row, 20, "k", "orders");
	int64_t before = ob_clock_boot_us(&ob_clock_system);
	row_deliver(sink, &row);
	int64_t took_ms = (ob_clock_boot_us(&ob_clock_system) - before) / 1000;
	ck_assert_int_ge(took_ms, 200);
	ck_assert_int_lt(took_ms, 5000);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 20);
	redis_do(&server, "CLIENT", "UNPAUSE", NULL);
	must_open(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 20);
	end(sink);
}
OB_TEST_END

OB_TEST(a_server_that_ends_fails_everything_unconfirmed)
{
	struct ob_err err = OB_ERR_INIT;

	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "CLIENT", "PAUSE", "60000", "WRITE", NULL);
	row_init(&row, 20, "k", "orders");
	row_send(sink, &row);
	struct ob_ack ack;
	ck_assert_int_eq(ob_sink_poll(sink, 0, &ack, 1, &err), 0);
	redis_server_kill(&server);
	row_wait(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 20);
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	must_not_open(sink, OB_ERR_DOWN, "Connection refused");
	redis_server_restart(&server);
	must_open(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 20);
	end(sink);
}
OB_TEST_END

OB_TEST(a_connection_that_was_closed_while_idle_costs_no_outage)
{
	begin();
	struct ob_sink *sink = open_sink();
	redis_do(&server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
	row_init(&row, 3, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 3);
	end(sink);
}
OB_TEST_END

OB_TEST(sixteen_megabytes_pass_beside_small_ones)
{
	char *large = malloc(16 << 20);

	begin();
	struct ob_sink *sink = open_sink();
	memset(large, 'x', 16 << 20);
	row_init(&row, 60, "k", "orders");
	for (size_t i = 0; i < row.count; i += 20)
		row.parcels[i].delivery.body = (struct ob_str){ large, 16 << 20 };
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 60);
	ck_assert_int_eq(redis_count(&server, "XLEN", "orders", NULL), 60);
	free(large);
	end(sink);
}
OB_TEST_END

/* ---- a cluster ------------------------------------------------------- */

static struct redis_server second;

static void start_cluster(void)
{
	char port[8], bus_port[8];

	server.cluster = second.cluster = true;
	redis_server_start(&server);
	redis_server_start(&second);
	(void)snprintf(port, sizeof(port), "%d", second.port);
	(void)snprintf(bus_port, sizeof(bus_port), "%d", second.bus_port);
	redis_do(&server, "CLUSTER", "ADDSLOTSRANGE", "0", "8191", NULL);
	redis_do(&second, "CLUSTER", "ADDSLOTSRANGE", "8192", "16383", NULL);
	redis_do(&server, "CLUSTER", "MEET", "127.0.0.1", port, bus_port, NULL);
	for (int ready = 0; ready < 2; (void)poll(NULL, 0, 10)) { /* they tell each other */
		ready = 0;
		for (int i = 0; i < 2; i++) {
			redisReply *info =
				redis_ask(i ? &second : &server, "CLUSTER", "INFO", NULL);
			ready += strstr(info->str, "cluster_state:ok") &&
				 strstr(info->str, "cluster_slots_assigned:16384");
			freeReplyObject(info);
		}
	}
}

OB_TEST(a_cluster_sends_each_stream_where_it_lives)
{
	start_cluster();
	struct ob_sink *sink = open_sink();
	row_init(&row, 400, "k", "a"); /* slot 15495, on the second */
	for (size_t i = 0; i < row.count; i++)
		row.parcels[i].delivery.destination = i / 7 % 2 ? OB_STR("{b}.x") : OB_STR("a");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 400);
	ck_assert_int_eq(redis_count(&second, "XLEN", "a", NULL), 203);
	ck_assert_int_eq(redis_count(&server, "XLEN", "{b}.x", NULL), 197);
	ck_assert_int_eq(strncmp(stream_text(&second, "a"), "0 1 2 3 4 5 6 14 15 ", 20), 0);
	redis_server_kill(&second);
	row_init(&row, 5, "k", "a");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 5);
	ck_assert(row.acks[0].err.msg[0]);
	end(sink);
	redis_server_end(&second);
}
OB_TEST_END

static void set_slot(struct redis_server *at, const char *how, struct redis_server *other)
{
	redisReply *id = redis_ask(other, "CLUSTER", "MYID", NULL);

	redis_do(at, "CLUSTER", "SETSLOT", "15495", how, id->str, NULL);
	freeReplyObject(id);
}

OB_TEST(a_slot_that_is_being_moved_is_asked_for)
{
	start_cluster();
	struct ob_sink *sink = open_sink();
	set_slot(&server, "IMPORTING", &second);
	set_slot(&second, "MIGRATING", &server);
	row_init(&row, 300, "k", "{a}.new"); /* not there yet: it begins at the new place */
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 300, "%s", row.acks[0].err.msg);
	redis_do(&server, "CLUSTER", "SETSLOT", "15495", "STABLE", NULL);
	redis_do(&second, "CLUSTER", "SETSLOT", "15495", "STABLE", NULL);
	ck_assert_int_eq(redis_count(&server, "CLUSTER", "COUNTKEYSINSLOT", "15495", NULL), 1);
	ck_assert_int_eq(redis_count(&second, "CLUSTER", "COUNTKEYSINSLOT", "15495", NULL), 0);
	end(sink);
	redis_server_end(&second);
}
OB_TEST_END

OB_SUITE_NEEDS("redis sink", redis_server_missing(), every_field_has_its_name_and_place,
	       streams_are_trimmed_only_when_asked_to, nothing_behind_a_failure_in_a_run_is_stored,
	       a_failed_key_takes_nothing_until_its_outcomes_are_fetched,
	       one_key_over_several_streams_keeps_its_order, a_forgotten_script_is_sent_again,
	       a_stream_name_that_holds_something_else_fails_its_messages_alone,
	       a_replica_is_an_outage_until_it_is_a_primary_again,
	       a_server_without_memory_is_an_outage,
	       a_message_beyond_the_servers_limit_is_rejected_and_the_rest_goes_on,
	       what_no_server_would_take_is_rejected_at_once,
	       a_lost_answer_is_an_outage_after_our_own_deadline,
	       a_server_that_ends_fails_everything_unconfirmed,
	       a_connection_that_was_closed_while_idle_costs_no_outage,
	       sixteen_megabytes_pass_beside_small_ones, a_cluster_sends_each_stream_where_it_lives,
	       a_slot_that_is_being_moved_is_asked_for)

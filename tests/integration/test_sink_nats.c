/* SPDX-License-Identifier: MIT */
/* The NATS sink against a real server: what is stored, and what becomes of its errors. */
#include "chaos_proxy.h"
#include "nats_server.h"
#include "sink_rows.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static struct nats_server server;
static struct row row;

static const char *url_of(int port)
{
	static char url[64];

	(void)snprintf(url, sizeof(url), "nats://127.0.0.1:%d", port);
	return url;
}

static struct ob_sink *open_at(int port, const char *timeout)
{
	struct ob_sink *sink =
		row_make_sink(&ob_sink_nats, "url", url_of(port), "timeout", timeout, NULL);

	must_open(sink);
	return sink;
}

static void begin_server(void)
{
	nats_server_start(&server);
	nats_stream_add(&server, "S", "orders.>", NULL);
}

static struct ob_sink *begin(void (*more)(jsStreamConfig *))
{
	nats_server_start(&server);
	nats_stream_add(&server, "S", "orders.>", more);
	return open_at(server.port, "20s");
}

static void end(struct ob_sink *sink)
{
	ob_sink_free(sink);
	nats_server_end(&server);
}

/* Without a key each: none waits for another. */
static void deliver(struct ob_sink *sink, size_t count, const char *subject)
{
	row_init(&row, count, NULL, subject);
	row_deliver(sink, &row);
}

static void expect_all(enum ob_err_kind kind, const char *native)
{
	for (size_t i = 0; i < row.count; i++) {
		ck_assert_msg(row.acks[i].err.kind == kind, "%zu: %s", i, row.acks[i].err.msg);
		if (native)
			ck_assert_str_eq(row.acks[i].err.native, native);
	}
}

static int refused(struct ob_sink *sink, const struct ob_delivery *delivery, struct ob_err *err)
{
	*err = OB_ERR_INIT;
	ck_assert_int_lt(ob_sink_send(sink, delivery, err), 0);
	return err->kind;
}

/* ---- content --------------------------------------------------------- */

static void expect_header(natsMsg *msg, const char *name, const char *value)
{
	const char *found = NULL;

	(void)natsMsgHeader_Get(msg, name, &found);
	ck_assert_msg(found != NULL, "no header %s", name);
	ck_assert_str_eq(found, value);
}

static void check_message(void *arg, natsMsg *msg)
{
	const char *found = NULL;

	(void)arg;
	ck_assert_str_eq(natsMsg_GetSubject(msg), "orders.placed");
	ck_assert_int_eq(natsMsg_GetDataLength(msg), 7);
	expect_header(msg, "Nats-Msg-Id", "01900000-0000-7000-8000-000000000005");
	expect_header(msg, "outbox-event-type", "OrderPlaced");
	expect_header(msg, "outbox-aggregate-type", "order");
	expect_header(msg, "outbox-aggregate-id", "1042");
	expect_header(msg, "outbox-key", "order:1042");
	expect_header(msg, "outbox-revision", "1");
	expect_header(msg, "outbox-sequence-number", "7");
	expect_header(msg, "outbox-correlation-id", "c");
	expect_header(msg, "outbox-causation-id", "d");
	expect_header(msg, "outbox-occurred-at", "2023-11-14T22:13:20.123456Z");
	expect_header(msg, "content-type", "application/json");
	expect_header(msg, "tenant", "a%0D%0AEvil:%20yes");
	expect_header(msg, "two%0D%0Alines", "x");
	expect_header(msg, "outbox-header-Nats-Rollup", "all");
	expect_header(msg, "outbox-header-outbox-key", "forged");
	expect_header(msg, "traceparent", "00-1-2-01");
	ck_assert_int_ne(natsMsgHeader_Get(msg, "Evil", &found), NATS_OK);
	ck_assert_int_ne(natsMsgHeader_Get(msg, "Nats-Rollup", &found), NATS_OK);
}

OB_TEST(every_header_has_its_name_and_none_can_be_forged)
{
	const struct ob_header headers[] = {
		{ OB_STR("tenant"), OB_STR("a\r\nEvil: yes"), false },
		{ OB_STR("two\r\nlines"), OB_STR("x"), false },
		{ OB_STR("Nats-Rollup"), OB_STR("all"), false },
		{ OB_STR("outbox-key"), OB_STR("forged"), false },
		{ OB_STR("traceparent"), OB_STR("00-1-2-01"), false },
	};
	struct tally tally = { 0 };
	struct parcel parcel;
	struct ob_sink *sink = begin(NULL);

	parcel_init(&parcel, 5, OB_STR("order:1042"), OB_STR("{\"n\":1}"));
	parcel.message.sequence_number = 7;
	parcel.message.correlation_id = OB_STR("c");
	parcel.message.causation_id = OB_STR("d");
	parcel.delivery.content_type = OB_STR("application/json");
	parcel.delivery.destination = OB_STR("orders.placed");
	parcel.delivery.headers = headers;
	parcel.delivery.header_count = sizeof(headers) / sizeof(headers[0]);
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	ck_assert_uint_eq(tally.confirmed, 1);
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 1);
	nats_stream_each(&server, "S", check_message, NULL);
	end(sink);
}
OB_TEST_END

static void check_hidden(void *arg, natsMsg *msg)
{
	(void)arg;
	expect_header(msg, "x7-%4Eats-Msg-Id", "y");
	expect_header(msg, "note", "see%20%4Eats-Msg-Id:%207");
	expect_header(msg, "baggage", "%4Eats-Msg-Id=1");
	expect_header(msg, "outbox-event-type", "%4Eats-Msg-Id");
}

OB_TEST(a_second_copy_is_confirmed_and_not_stored)
{
	struct ob_sink *sink = begin(NULL);

	deliver(sink, 10, "orders.a");
	deliver(sink, 10, "orders.a");
	expect_all(OB_ERR_NONE, NULL);
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 10);
	end(sink);
}
OB_TEST_END

/* A server that takes the first text "Nats-Msg-Id" for the header finds no id then. */
OB_TEST(the_name_of_the_id_elsewhere_in_the_headers_does_not_defeat_deduplication)
{
	enum { NAMES = 40 };
	static char names[NAMES][32];
	struct ob_header headers[NAMES + 2] = {
		{ OB_STR("note"), OB_STR("see Nats-Msg-Id: 7"), false },
		{ OB_STR("baggage"), OB_STR("Nats-Msg-Id=1"), false },
	};
	struct ob_sink *sink = begin(NULL);

	/* The library writes them in an order of its own: some of these stand first. */
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "x%d-Nats-Msg-Id", i);
		headers[i + 2].name = ob_str(names[i]);
		headers[i + 2].value = OB_STR("y");
	}
	for (int copy = 0; copy < 2; copy++) {
		row_init(&row, 5, NULL, "orders.a");
		for (size_t i = 0; i < row.count; i++) {
			row.parcels[i].delivery.headers = headers;
			row.parcels[i].delivery.header_count = NAMES + 2;
			row.parcels[i].message.event_type = OB_STR("Nats-Msg-Id");
		}
		row_deliver(sink, &row);
		expect_all(OB_ERR_NONE, NULL);
	}
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 5);
	nats_stream_each(&server, "S", check_hidden, NULL);
	end(sink);
}
OB_TEST_END

OB_TEST(subjects_that_no_stream_can_have_are_rejected)
{
	static const struct ob_str bad[] = {
		OB_STR(""),         OB_STR("a b"),      OB_STR("a\tb"),    OB_STR("a\r\nPUB x 0"),
		OB_STR("a.*"),      OB_STR("orders.>"), OB_STR(".a"),      OB_STR("a."),
		OB_STR("a..b"),     OB_STR("nul\0in"),  OB_STR("bad\xff"), OB_STR("$JS.API.INFO"),
		OB_STR("$SYS.REQ"), OB_STR("$JS"),
	};
	char *longest = malloc(1025);
	struct ob_err err;
	struct ob_sink *sink = begin(NULL);

	memset(longest, 'x', 1025);
	row_init(&row, 1, NULL, "orders.a");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		row.parcels[0].delivery.destination = bad[i];
		ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_REJECT);
	}
	row.parcels[0].delivery.destination = (struct ob_str){ longest, 1025 };
	ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_REJECT);
	deliver(sink, 1, "orders.$JSON.gr\xc3\xbc\xc3\x9f");
	expect_all(OB_ERR_NONE, NULL);
	free(longest);
	end(sink);
}
OB_TEST_END

OB_TEST(what_is_larger_than_the_server_takes_is_rejected_before_it_is_sent)
{
	char *large = malloc(1 << 20);
	struct ob_header header = { OB_STR("big"), { large, 70000 }, false };
	struct ob_err err;
	struct ob_sink *sink = begin(NULL);

	memset(large, 'x', 1 << 20);
	row_init(&row, 1, NULL, "orders.a");
	row.parcels[0].delivery.body = (struct ob_str){ large, 1 << 20 }; /* and the headers */
	ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_REJECT);
	ck_assert_ptr_nonnull(strstr(err.msg, "max_payload of 1048576"));
	row.parcels[0].delivery.body = (struct ob_str){ large, 1 };
	row.parcels[0].delivery.headers = &header;
	row.parcels[0].delivery.header_count = 1;
	ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_REJECT);
	header.value.n = 60000;
	row_deliver(sink, &row);
	expect_all(OB_ERR_NONE, NULL);
	row_init(&row, 1, NULL, "orders.a");
	row.parcels[0].message.id.b[0] ^= 1;
	row.parcels[0].delivery.body = (struct ob_str){ large, (1 << 20) - 1000 };
	row_deliver(sink, &row);
	expect_all(OB_ERR_NONE, NULL);
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 2);
	free(large);
	end(sink);
}
OB_TEST_END

/* ---- the stream refuses ---------------------------------------------- */

OB_TEST(a_subject_without_a_stream_is_an_outage_until_there_is_one)
{
	struct ob_sink *sink = begin(NULL);

	deliver(sink, 5, "unheard.of");
	expect_all(OB_ERR_DOWN, "503");
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg,
				     "no stream listens on the subject "
				     "'unheard.of'"));
	nats_stream_add(&server, "T", "unheard.of", NULL);
	must_open(sink);
	deliver(sink, 5, "unheard.of");
	expect_all(OB_ERR_NONE, NULL);
	ob_sink_free(sink);
	sink = row_make_sink(&ob_sink_nats, "url", url_of(server.port), "no_stream", "fail", NULL);
	must_open(sink);
	deliver(sink, 5, "nobody");
	expect_all(OB_ERR_RETRY, "503");
	end(sink);
}
OB_TEST_END

static void three_messages(jsStreamConfig *config)
{
	config->MaxMsgs = 3;
	config->Discard = js_DiscardNew;
}

static void few_bytes(jsStreamConfig *config)
{
	config->MaxBytes = 1000;
	config->Discard = js_DiscardNew;
}

static void small_messages(jsStreamConfig *config)
{
	config->MaxMsgSize = 600;
}

OB_TEST(a_full_stream_is_an_outage)
{
	struct ob_sink *sink = begin(three_messages);

	row_init(&row, 5, NULL, "orders.a");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 3);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 2);
	ck_assert_str_eq(row.acks[4].err.native, "10077");
	nats_stream_remove(&server, "S");
	nats_stream_add(&server, "S", "orders.>", few_bytes);
	row_deliver(sink, &row);
	ck_assert_str_eq(row.acks[4].err.native, "10077");
	ck_assert_int_eq(row.acks[4].err.kind, OB_ERR_DOWN);
	end(sink);
}
OB_TEST_END

OB_TEST(a_message_larger_than_its_stream_takes_is_rejected)
{
	static char large[700];
	struct ob_sink *sink = begin(small_messages);

	memset(large, 'x', sizeof(large));
	row_init(&row, 3, NULL, "orders.a");
	row.parcels[1].delivery.body = (struct ob_str){ large, sizeof(large) };
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 2);
	ck_assert_int_eq(row.acks[1].err.kind, OB_ERR_REJECT);
	ck_assert_str_eq(row.acks[1].err.native, "10054");
	end(sink);
}
OB_TEST_END

OB_TEST(someone_who_answers_but_is_no_stream_confirms_nothing)
{
	natsSubscription *sub = NULL;
	struct ob_sink *sink = begin(NULL);
	natsMsg *msg = NULL;

	ck_assert_int_eq(natsConnection_SubscribeSync(&sub, server.client, "impostor"), NATS_OK);
	ck_assert_int_eq(natsConnection_Flush(server.client), NATS_OK);
	row_init(&row, 1, NULL, "impostor");
	row_send(sink, &row);
	struct ob_err err = OB_ERR_INIT;
	ck_assert_int_eq(ob_sink_poll(sink, 0, row.acks, 1, &err), 0);
	ck_assert_int_eq(natsSubscription_NextMsg(&msg, sub, 20000), NATS_OK);
	ck_assert_int_eq(natsConnection_PublishString(server.client, natsMsg_GetReply(msg), "OK"),
			 NATS_OK);
	row_wait(sink, &row);
	expect_all(OB_ERR_DOWN, NULL);
	natsMsg_Destroy(msg);
	natsSubscription_Destroy(sub);
	end(sink);
}
OB_TEST_END

/* ---- silence and ends ------------------------------------------------ */

OB_TEST(a_lost_acknowledgement_is_an_outage_of_its_message_alone)
{
	natsSubscription *sub = NULL;
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack;

	begin_server();
	struct ob_sink *sink = open_at(server.port, "300ms");
	/* one listens and never answers */
	ck_assert_int_eq(natsConnection_SubscribeSync(&sub, server.client, "silent"), NATS_OK);
	ck_assert_int_eq(natsConnection_Flush(server.client), NATS_OK);
	row_init(&row, 2, NULL, "orders.a");
	row.parcels[0].delivery.destination = OB_STR("silent");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_DOWN);
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg, "has not"));
	/* the connection may still be the same: nothing of the first is counted twice */
	must_open(sink);
	row_init(&row, 1, NULL, "orders.b");
	row_deliver(sink, &row);
	ck_assert_int_eq(ob_sink_poll(sink, 0, &ack, 1, &err), 0);
	natsSubscription_Destroy(sub);
	end(sink);
}
OB_TEST_END

OB_TEST(a_server_that_stops_is_an_outage_after_our_own_deadline)
{
	begin_server();
	struct ob_sink *sink = open_at(server.port, "300ms");

	ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(server.pid, NULL, WUNTRACED), server.pid); /* it takes a moment */
	int64_t before = ob_clock_boot_us(&ob_clock_system);
	deliver(sink, 20, "orders.a");
	ck_assert_int_ge((ob_clock_boot_us(&ob_clock_system) - before) / 1000, 300);
	expect_all(OB_ERR_DOWN, NULL);
	ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
	ob_sink_free(sink);
	sink = open_at(server.port, "20s");
	deliver(sink, 20, "orders.a");
	expect_all(OB_ERR_NONE, NULL);
	end(sink);
}
OB_TEST_END

OB_TEST(acknowledgements_that_are_cut_off_fail_everything_unconfirmed)
{
	struct chaos_plan plan = { .end = CHAOS_RESET, .times = 1 };
	struct ob_err err = OB_ERR_INIT;

	begin_server();
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	struct ob_sink *sink = open_at(chaos_proxy_port(proxy), "20s");
	plan.cut[CHAOS_TO_CLIENT].match = "\"seq\":";
	chaos_proxy_plan(proxy, &plan);
	deliver(sink, 20, "orders.a");
	expect_all(OB_ERR_DOWN, NULL);
	ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_DOWN);
	must_open(sink);
	deliver(sink, 20, "orders.a");
	expect_all(OB_ERR_NONE, NULL);
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 20);
	end(sink);
	chaos_proxy_free(proxy);
}
OB_TEST_END

OB_TEST(what_is_forgotten_is_not_sent_any_more)
{
	static char body[200000];
	struct ob_err err = OB_ERR_INIT;

	begin_server();
	struct ob_sink *sink = open_at(server.port, "20s");
	memset(body, 'x', sizeof(body));
	row_init(&row, 100, NULL, "orders.a");
	ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
	size_t sent = 0;
	for (; sent < row.count; sent++) { /* until neither we nor the kernel take more */
		row.parcels[sent].delivery.body = (struct ob_str){ body, sizeof(body) };
		if (ob_sink_send(sink, &row.parcels[sent].delivery, &err) != 0)
			break;
	}
	ck_assert_uint_gt(sent, 2);
	int64_t before = ob_clock_boot_us(&ob_clock_system);
	ob_sink_reset(sink);
	ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system) - before, 5000000);
	ck_assert_int_eq(ob_sink_fd(sink), -1);
	ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
	must_open(sink);
	row_init(&row, 1, NULL, "orders.last");
	row.parcels[0].message.id.b[0] ^= 1;
	row_deliver(sink, &row);
	expect_all(OB_ERR_NONE, NULL);
	/* at most what the server's own kernel had taken; never all */
	ck_assert_uint_lt(nats_stream_count(&server, "S"), sent);
	end(sink);
}
OB_TEST_END

OB_TEST(a_server_that_ends_is_an_outage_and_the_next_one_is_asked)
{
	struct nats_server second = { 0 };
	char url[128];

	begin_server();
	nats_server_start(&second);
	nats_stream_add(&second, "S", "orders.>", NULL);
	(void)snprintf(url, sizeof(url), "nats://127.0.0.1:%d,127.0.0.1:%d", server.port,
		       second.port);
	struct ob_sink *sink = row_make_sink(&ob_sink_nats, "url", url, NULL);
	must_open(sink);
	deliver(sink, 5, "orders.a");
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 5);
	nats_server_kill(&server);
	must_open(sink);
	deliver(sink, 5, "orders.a"); /* the end was seen before a message met it */
	expect_all(OB_ERR_NONE, NULL);
	ck_assert_uint_eq(nats_stream_count(&second, "S"), 5);
	nats_server_kill(&second);
	row_init(&row, 1, NULL, "orders.b");
	struct ob_err err;
	ck_assert_int_eq(refused(sink, &row.parcels[0].delivery, &err), OB_ERR_DOWN);
	must_not_open(sink, OB_ERR_DOWN, "connecting to 127.0.0.1");
	nats_server_restart(&server);
	must_open(sink);
	deliver(sink, 5, "orders.b");
	expect_all(OB_ERR_NONE, NULL);
	end(sink);
	nats_server_end(&second);
}
OB_TEST_END

static void in_memory(jsStreamConfig *config)
{
	config->Storage = js_MemoryStorage;
	config->MaxMsgs = 100;
	config->Discard = js_DiscardOld;
}

static void expect_finding(const struct ob_findings *found, const char *code, enum ob_level level,
			   const char *text)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct ob_finding *f = &found->list[i];

		if (strcmp(f->check->code, code) == 0 && f->level == level &&
		    memmem(f->text.p, f->text.n, text, strlen(text)))
			return;
	}
	ck_abort_msg("no %s %s: %s", ob_level_name(level), code, text);
}

OB_TEST(a_probe_tells_of_the_streams_of_the_destinations)
{
	const struct ob_str names[] = { OB_STR("orders.eu"), OB_STR("nobody.listens"),
					OB_STR("fast.x") };
	struct ob_sink *sink = begin(NULL);
	struct ob_findings found;
	struct ob_err err = OB_ERR_INIT;

	nats_stream_add(&server, "FAST", "fast.>", in_memory);
	ob_findings_init(&found);
	int r = ob_sink_probe(sink, names, 3, &found, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	expect_finding(&found, "nats_destination", OB_LEVEL_OK,
		       "stream S listens to subject orders.eu");
	expect_finding(&found, "nats_storage", OB_LEVEL_OK, "stream S is in files");
	expect_finding(&found, "nats_copies", OB_LEVEL_WARNING, "stream S has one copy");
	expect_finding(&found, "nats_destination", OB_LEVEL_WARNING,
		       "no stream listens to subject nobody.listens: messages to it wait");
	expect_finding(&found, "nats_storage", OB_LEVEL_WARNING, "stream FAST is in memory");
	expect_finding(&found, "nats_limits", OB_LEVEL_WARNING, "stream FAST drops its oldest");
	/* The sink's own connection is as it was. */
	deliver(sink, 3, "orders.eu");
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 3);
	ob_findings_done(&found);
	end(sink);
}
OB_TEST_END

OB_SUITE_NEEDS("nats sink", nats_server_missing(), every_header_has_its_name_and_none_can_be_forged,
	       a_second_copy_is_confirmed_and_not_stored,
	       the_name_of_the_id_elsewhere_in_the_headers_does_not_defeat_deduplication,
	       subjects_that_no_stream_can_have_are_rejected,
	       what_is_larger_than_the_server_takes_is_rejected_before_it_is_sent,
	       a_subject_without_a_stream_is_an_outage_until_there_is_one,
	       a_full_stream_is_an_outage, a_message_larger_than_its_stream_takes_is_rejected,
	       someone_who_answers_but_is_no_stream_confirms_nothing,
	       a_lost_acknowledgement_is_an_outage_of_its_message_alone,
	       a_server_that_stops_is_an_outage_after_our_own_deadline,
	       acknowledgements_that_are_cut_off_fail_everything_unconfirmed,
	       what_is_forgotten_is_not_sent_any_more,
	       a_server_that_ends_is_an_outage_and_the_next_one_is_asked,
	       a_probe_tells_of_the_streams_of_the_destinations)

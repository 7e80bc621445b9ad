/* SPDX-License-Identifier: MIT */
/*
 * The Kafka sink: TLS and logins. The mock cluster speaks neither, so TLS ends in front of it;
 * behind that, a proxy names the front's address instead of the broker's, as a real broker would.
 */
#include "certs.h"
#include "kafka_front.h"
#include "run.h"
#include "sink_rows.h"
#include "tls_front.h"

static struct kafka_mock mock = { .broker_count = 1 };
static struct chaos_proxy *proxy;
static struct tls_front *tls;
static char dir[64], ca[CERTS_PATH], other_ca[CERTS_PATH];
static struct row row;

#define make_sink(...) row_make_sink(&ob_sink_kafka, "brokers", __VA_ARGS__)

static void start(void)
{
	ob_temp_dir(dir);
	certs_make(dir, ca, other_ca);
	kafka_mock_start(&mock);
	proxy = chaos_proxy_new(kafka_mock_port(&mock));
	tls = tls_front_new(dir, "server", 0, chaos_proxy_port(proxy));
	kafka_front_name(&mock, proxy, "localhost", tls_front_port(tls));
}

static void stop(struct ob_sink *sink)
{
	ob_sink_free(sink);
	tls_front_free(tls);
	chaos_proxy_free(proxy);
	kafka_mock_end(&mock);
	ob_temp_dir_remove(dir);
}

/* The same address with another certificate. */
static void change_certificate(const char *name)
{
	int port = tls_front_port(tls);

	tls_front_free(tls);
	tls = tls_front_new(dir, name, port, chaos_proxy_port(proxy));
}

/* A sink that trusts this authority; NULL: those of the system. */
static struct ob_sink *make_tls_sink(const char *host, const char *authority, const char *more)
{
	char brokers[64], properties[400];

	(void)snprintf(brokers, sizeof(brokers), "%s:%d", host, tls_front_port(tls));
	(void)snprintf(properties, sizeof(properties),
		       "security.protocol=SSL\nbroker.address.family=v4\n%s%s\n%s\n",
		       authority ? "ssl.ca.location=" : "", authority ? authority : "", more);
	return make_sink(brokers, "properties", properties, "connect_timeout", "30s", NULL);
}

static void expect_stored(size_t count)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 24);
	struct kafka_record *records;

	ck_assert_uint_eq(kafka_mock_read(&mock, &arena, &records), count);
	for (size_t i = 0; i < count; i++)
		ck_assert(ob_str_eq(records[i].value, ob_str(row.bodies[i])));
	ob_arena_done(&arena);
}

static void deliver_hundred(struct ob_sink *sink)
{
	row_init(&row, 100, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 100, "%s", row.acks[0].err.msg);
	expect_stored(100);
	kafka_mock_skip(&mock);
}

/* ---- TLS ------------------------------------------------------------- */

OB_TEST(tls_is_verified_unless_told_otherwise)
{
	start();
	struct ob_sink *sink = make_tls_sink("localhost", ca, "");
	must_open(sink);
	deliver_hundred(sink);
	ob_sink_free(sink);
	sink = make_tls_sink("localhost", other_ca, "");
	must_not_open(sink, OB_ERR_DOWN, "certificate verify failed");
	must_not_open(sink, OB_ERR_DOWN, "certificate verify failed");
	must_not_open(sink, OB_ERR_DOWN, "check the ssl.* properties");
	ob_sink_free(sink);
	sink = make_tls_sink("localhost", NULL, "");
	must_not_open(sink, OB_ERR_DOWN, "certificate");
	ob_sink_free(sink);
	sink = make_tls_sink("127.0.0.1", ca, "");
	must_not_open(sink, OB_ERR_DOWN, "certificate");
	ob_sink_free(sink);
	sink = make_tls_sink("127.0.0.1", NULL, "enable.ssl.certificate.verification=false");
	must_open(sink);
	deliver_hundred(sink);
	stop(sink);
}
OB_TEST_END

OB_TEST(a_certificate_that_goes_bad_is_an_outage_and_costs_no_message)
{
	start();
	struct ob_sink *sink = make_tls_sink("localhost", ca, "");
	must_open(sink);
	deliver_hundred(sink);
	change_certificate("other");
	row_init(&row, 100, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 100);
	ck_assert_msg(strstr(row.acks[0].err.msg, "certificate verify failed") != NULL, "%s",
		      row.acks[0].err.msg);
	must_not_open(sink, OB_ERR_DOWN, "certificate verify failed");
	expect_stored(0);
	change_certificate("server");
	must_open(sink);
	deliver_hundred(sink);
	stop(sink);
}
OB_TEST_END

/* The broker answers nothing that TLS understands, or the sink sends what the broker does not. */
OB_TEST(plain_and_tls_do_not_mix)
{
	char brokers[64];

	start();
	struct ob_sink *sink = make_sink(mock.brokers, "properties", "security.protocol=SSL",
					 "connect_timeout", "2s", NULL);
	must_not_open(sink, OB_ERR_DOWN, "in state SSL_HANDSHAKE");
	ob_sink_free(sink);
	(void)snprintf(brokers, sizeof(brokers), "127.0.0.1:%d", tls_front_port(tls));
	sink = make_sink(brokers, "connect_timeout", "2s", NULL);
	must_not_open(sink, OB_ERR_DOWN, "incorrect security.protocol");
	stop(sink);
}
OB_TEST_END

/* ---- logins ---------------------------------------------------------- */

OB_TEST(a_wrong_password_is_an_outage_that_says_so)
{
	struct kafka_bouncer *bouncer = kafka_bouncer_new();
	char brokers[64];
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(brokers, sizeof(brokers), "127.0.0.1:%d", kafka_bouncer_port(bouncer));
	struct ob_sink *sink = make_sink(brokers, "properties",
					 "security.protocol=SASL_PLAINTEXT\n"
					 "sasl.mechanism=PLAIN\n"
					 "sasl.username=app\nsasl.password=s3cret\n",
					 "connect_timeout", "30s", NULL);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_lt(ob_sink_open(sink, &err), 0);
		ck_assert_msg(err.kind == OB_ERR_DOWN, "%s", err.msg);
		ck_assert_msg(strstr(err.msg, "Invalid username or password") != NULL, "%s",
			      err.msg);
		ck_assert_msg(strstr(err.msg, "sasl") != NULL, "%s", err.msg);
		ck_assert_ptr_null(strstr(err.msg, "s3cret"));
		ck_assert_uint_gt(kafka_bouncer_refusals(bouncer), i);
	}
	ob_sink_free(sink);
	kafka_bouncer_free(bouncer);
}
OB_TEST_END

OB_SUITE("kafka login", tls_is_verified_unless_told_otherwise,
	 a_certificate_that_goes_bad_is_an_outage_and_costs_no_message, plain_and_tls_do_not_mix,
	 a_wrong_password_is_an_outage_that_says_so)

/* SPDX-License-Identifier: MIT */
/* The http sink: what goes out is signed, holds no more than it should, and goes nowhere else. */
#include "run.h"
#include "sink/http/addr.h"
#include "sink/http/sign.h"
#include "sink_http_fixture.h"

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>

OB_TEST(requests_are_signed_with_every_secret)
{
	const char *secrets[] = { SECRET_1, SECRET_2 };
	const struct ob_str bodies[] = { OB_STR("{\"n\":1}"), OB_STR("a\0b\xff"), OB_STR("") };
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "secret", " " SECRET_1 "  " SECRET_2);
	struct parcel parcel;

	for (size_t i = 0; i < 3; i++) {
		parcel_init(&parcel, i, OB_STR_NULL, bodies[i]);
		send_parcel(sink, &parcel);
		ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
		struct http_request_seen seen = http_receiver_get(receiver, i);
		check_signature(&seen, secrets, 2);
	}
	ob_sink_free(sink);
	sink = make(receiver, NULL, NULL);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 3);
	ck_assert_ptr_null(http_header(&seen, "webhook-signature", NULL));
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(bad_settings_are_fatal_at_open)
{
	static const struct {
		const char *url, *name, *value, *msg;
	} cases[] = {
		{ "nonsense://", NULL, NULL,
		  "url: it is no url, such as https://example.com/hook" },
		{ "ftp://example.com/", NULL, NULL, "url: it must begin with https://" },
		{ "https://u:p@example.com/", NULL, NULL,
		  "url: a user or password does not belong into it; use authorization" },
		{ "http://example.com/", NULL, NULL,
		  "url: http:// sends everything readable for others; use https://, or set "
		  "allow_http" },
		{ "http://10.0.0.1/", NULL, NULL,
		  "url: http:// sends everything readable for others; use https://, or set "
		  "allow_http" },
		{ "https://example.com/", "secret", "whsec_c2hvcnQ=",
		  "secret: number 1 is not whsec_ and 24 to 64 bytes in Base64 (make one: echo "
		  "whsec_$(openssl rand -base64 32)), nor whsk_ and an Ed25519 private key in "
		  "Base64" },
		{ "https://example.com/", "secret",
		  SECRET_1 " whsec_!!EyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		  "secret: number 2 is not whsec_ and 24 to 64 bytes in Base64 (make one: echo "
		  "whsec_$(openssl rand -base64 32)), nor whsk_ and an Ed25519 private key in "
		  "Base64" },
		{ "https://example.com/", "authorization", "Bearer x\r\nEvil: 1",
		  "authorization: it holds something else than printable ASCII" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ob_opt_value option = { cases[i].name, cases[i].value };
		struct ob_sink *sink = make_url(cases[i].url, &option, cases[i].name ? 1 : 0);
		struct ob_err err = OB_ERR_INIT;

		ck_assert_int_lt(ob_sink_open(sink, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_str_eq(err.msg, cases[i].msg);
		ob_sink_free(sink);
	}
}
OB_TEST_END

OB_TEST(tokens_are_not_described)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "authorization", "Bearer hush");
	struct ob_buf text = OB_BUF_INIT(1000);

	ob_sink_describe(sink, &text);
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "token"));
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "hook"));
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "hush"));
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 0);
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nauthorization: Bearer hush\r\n"));
	ck_assert(strncmp(seen.head, "POST /hook?token=x HTTP/1.1\r\n", 29) == 0);
	ob_buf_done(&text);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* Many receivers repeat the path that they do not know, and some what they were sent. */
OB_TEST(what_a_receiver_repeats_of_our_secrets_is_not_in_the_error)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, "authorization", "Bearer hush");
	struct ob_buf cut = OB_BUF_INIT(1000);

	/* What is kept of the answer ends in the middle of the path. */
	for (int i = 0; i < 74; i++)
		ob_buf_adds(&cut, "\xc3\xa9");
	ob_buf_adds(&cut, " /hook?token=x");
	const char *const bodies[] = { "Cannot POST /hook?token=x, sorry", "bad: Bearer hush",
				       ob_buf_str(&cut) };
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		http_receiver_answer(receiver,
				     &(struct http_answer){ .status = 422, .body = bodies[i] });
		struct ob_err err = try_one(sink);

		ck_assert_int_eq(err.kind, OB_ERR_REJECT);
		ck_assert_ptr_null(strstr(err.msg, "hook"));
		ck_assert_ptr_null(strstr(err.msg, "hush"));
	}
	ob_buf_done(&cut);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* The signature that `openssl pkeyutl` makes with this key. */
#define KEY_SEED "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_PAIR \
	"whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8DoQe/" \
	"884Qvh1w3RjnS8CZZ+TWMJulDV8d3IZkElUxuA" \
	"=="
#define KEY_WRONG_PAIR \
	"whsk_" \
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw" \
	"=="
#define KEY_SIGNATURE \
	"v1a,p70ApbI806wzA7BTOczQD1iBx7dQdr7HC2T+hPZmmk8vmfQxoVEcxWyzIzNaMfF++jX46MT6fUpbz+" \
	"F76kHwDw" \
	"=="

OB_TEST(a_private_key_signs_as_v1a_beside_a_secret)
{
	static const char *const secrets[] = { KEY_SEED, KEY_PAIR, SECRET_1 " " KEY_SEED };
	static const char *const expected[] = {
		KEY_SIGNATURE, KEY_SIGNATURE,
		"v1,rMuZgJzQ8zW5Tdi8KsCZffDC3KD7+VVaUnBPCBXB/hw= " KEY_SIGNATURE
	};
	struct ob_http_signer signer;
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		struct ob_buf text = OB_BUF_INIT(1000);

		ck_assert_msg(ob_http_signer_init(&signer, secrets[i], &err) == 0, "%s", err.msg);
		ck_assert(ob_http_sign(&signer, "msg_1", 1700000000, OB_STR("{\"n\":1}"), &text));
		ck_assert_str_eq(ob_buf_str(&text), expected[i]);
		ob_http_signer_done(&signer);
		ob_buf_done(&text);
	}
	ck_assert_int_eq(ob_http_signer_init(&signer, KEY_WRONG_PAIR, &err), OUTBOX_ECONFIG);
	ck_assert_ptr_null(strstr(err.msg, "AAEC"));
}
OB_TEST_END

OB_TEST(a_proxy_of_the_environment_is_not_used)
{
	struct http_receiver *receiver = http_receiver_new();

	(void)setenv("http_proxy", "http://127.0.0.1:1/", 1);
	(void)setenv("all_proxy", "http://127.0.0.1:1/", 1);
	struct ob_sink *sink = make(receiver, NULL, NULL);
	ck_assert_int_eq(try_one(sink).kind, OB_ERR_NONE);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- headers --------------------------------------------------------- */

OB_TEST(nothing_in_a_message_can_add_a_header)
{
	static const struct ob_str evil = OB_STR("a\r\nX-Evil: 1\r\n\r\nPOST / HTTP/1.1\r\n\0b");
	const struct ob_header headers[] = {
		{ evil, evil, false },
		{ OB_STR("ce-\r\nX-Evil"), evil, false },
		{ OB_STR("traceparent"), evil, false },
		{ OB_STR("Host"), OB_STR("elsewhere"), false },
		{ OB_STR("Transfer-Encoding"), OB_STR("chunked"), false },
		{ OB_STR("Content-Length"), OB_STR("0"), false },
		{ OB_STR("authorization"), OB_STR("Bearer x"), false },
		{ OB_STR("tracestate"), OB_STR("a=1, b=%2"), false },
		{ OB_STR("ce-type"), OB_STR("a b%\"\xc3\xa9"), false },
		{ OB_STR(""), OB_STR(""), false },
	};
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	struct parcel parcel;

	parcel_init(&parcel, 1, evil, OB_STR("{}"));
	parcel.delivery.destination = parcel.delivery.content_type = evil;
	parcel.message.aggregate_type = parcel.message.event_type = evil;
	parcel.message.correlation_id = parcel.message.causation_id = evil;
	parcel.delivery.headers = headers;
	parcel.delivery.header_count = sizeof(headers) / sizeof(headers[0]);
	send_parcel(sink, &parcel);
	ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
	struct http_request_seen seen = http_receiver_get(receiver, 0);
	static const char *const absent[] = { "x-evil",        "traceparent",  "transfer-encoding",
					      "authorization", "content-type", "expect" };
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		ck_assert_ptr_null(http_header(&seen, absent[i], NULL));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nHost: 127.0.0.1"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nContent-Length: 2\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\noutbox-header-Host: elsewhere\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\ntracestate: a=1, b=%2\r\n"));
	ck_assert_ptr_nonnull(strstr(seen.head, "\r\nce-type: a%20b%25%22%C3%A9\r\n"));
	ck_assert_uint_eq(http_receiver_count(receiver), 1);
	ob_sink_free(sink);
	http_receiver_free(receiver);
}
OB_TEST_END

OB_TEST(headers_that_are_too_large_are_rejected)
{
	struct http_receiver *receiver = http_receiver_new();
	struct ob_sink *sink = make(receiver, NULL, NULL);
	char *key = calloc(1, 40000);
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	memset(key, 'k', 40000);
	parcel_init(&parcel, 1, (struct ob_str){ key, 40000 }, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	parcel.delivery.key.n = 20000;
	send_parcel(sink, &parcel);
	ck_assert_int_eq(outcome(sink).kind, OB_ERR_NONE);
	parcel.message.correlation_id = parcel.delivery.key;
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ob_sink_free(sink);
	free(key);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- addresses ------------------------------------------------------- */

static bool is_public(const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;

	ck_assert_msg(getaddrinfo(text, NULL, &hints, &found) == 0, "%s", text);
	bool public = ob_http_addr_is_public(found->ai_addr);
	freeaddrinfo(found);
	return public;
}

OB_TEST(special_addresses_are_told_from_public_ones)
{
	static const char *const refused[] = {
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"10.255.255.255",
		"100.64.0.1",
		"100.100.100.200",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.255.255",
		"127.1",
		"0x7f.1",
		"0177.0.0.1",
		"2130706433",
		"0",
		"168.63.129.16",
		"169.254.169.254",
		"0xa9fea9fe",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.192",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.0.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.1",
		"203.0.113.1",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::127.0.0.1",
		"::8.8.8.8",
		"::ffff:127.0.0.1",
		"::ffff:7f00:1",
		"0:0:0:0:0:ffff:a9fe:a9fe",
		"::ffff:10.0.0.1",
		"64:ff9b::7f00:1",
		"64:ff9b::10.0.0.1",
		"64:ff9b:1::1",
		"100::1",
		"2001::1",
		"2001:1ff::1",
		"2001:db8::1",
		"2002:7f00:1::1",
		"2002:c0a8:1::1",
		"2002:a9fe:a9fe::1",
		"3fff::1",
		"3fff:fff::1",
		"4000::1",
		"fc00::1",
		"fd00:ec2::254",
		"fdff::1",
		"fe80::1",
		"fe80::1%lo",
		"febf::1",
		"fec0::1",
		"ff02::1",
		"ff0e::1",
	};
	static const char *const allowed[] = {
		"1.1.1.1",         "8.8.8.8",          "9.255.255.255",   "11.0.0.1",
		"100.63.255.255",  "100.128.0.0",      "126.255.255.255", "128.0.0.1",
		"168.63.129.17",   "169.253.255.255",  "169.255.0.0",     "172.15.255.255",
		"172.32.0.0",      "192.0.1.0",        "192.167.255.255", "192.169.0.0",
		"198.17.255.255",  "198.20.0.0",       "223.255.255.255", "134744072",
		"::ffff:8.8.8.8",  "64:ff9b::8.8.8.8", "2001:200::1",     "2001:4860:4860::8888",
		"2002:808:808::1", "2606:4700::1111",  "2a00::1",         "3ffe::1",
		"3fff:1000::1",
	};
	struct sockaddr local = { .sa_family = AF_UNIX };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		ck_assert_msg(!is_public(refused[i]), "%s", refused[i]);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		ck_assert_msg(is_public(allowed[i]), "%s", allowed[i]);
	ck_assert(!ob_http_addr_is_public(&local));
}
OB_TEST_END

OB_TEST(no_spelling_leads_to_this_machine)
{
	static const char *const hosts[] = {
		"127.0.0.1",
		"127.1",
		"127.0.1",
		"0x7f.1",
		"0x7f000001",
		"0177.0.0.1",
		"017700000001",
		"2130706433",
		"0",
		"0.0.0.0",
		"localhost",
		"LOCALHOST",
		"localhost.",
		"127.0.0.1.",
		"[::1]",
		"[::]",
		"[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]",
		"[0:0:0:0:0:ffff:127.0.0.1]",
		"[::127.0.0.1]",
		"[64:ff9b::7f00:1]",
		"[2002:7f00:1::]",
		"169.254.169.254",
		"[fd00:ec2::254]",
		"10.0.0.1",
		"%31%32%37.0.0.1",
	};
	const struct ob_opt_value options[] = { { "allow_http", "true" },
						{ "connect_timeout", "2s" } };
	struct http_receiver *receiver = http_receiver_new();
	struct ob_err err = OB_ERR_INIT;
	char url[200];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		(void)snprintf(url, sizeof(url), "http://%s:%d/", hosts[i],
			       http_receiver_port(receiver));
		struct ob_sink *sink = make_url(url, options, 2);
		ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s: %s", url, err.msg);
		err = try_one(sink);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		/* some resolvers do not know a name with a dot behind it: just as well */
		ck_assert_msg(strstr(err.msg, "which is not a public address; set allow_private") ||
				      strstr(err.msg, "resolve"),
			      "%s: %s", url, err.msg);
		ob_sink_free(sink);
	}
	ck_assert_uint_eq(http_receiver_connections(receiver), 0);
	http_receiver_free(receiver);
}
OB_TEST_END

/* ---- TLS ------------------------------------------------------------- */

/* An HTTPS receiver elsewhere: python, with a certificate of its own for localhost. */
static const char tls_server[] =
	"import http.server,os,ssl,sys\n"
	"class H(http.server.BaseHTTPRequestHandler):\n"
	"  protocol_version='HTTP/1.1'\n"
	"  def log_message(self,*a): pass\n"
	"  def do_POST(self):\n"
	"    self.rfile.read(int(self.headers['content-length']))\n"
	"    self.send_response(204); self.end_headers()\n"
	"s=http.server.ThreadingHTTPServer(('127.0.0.1',0),H)\n"
	"c=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(sys.argv[1],sys.argv[2])\n"
	"s.socket=c.wrap_socket(s.socket,server_side=True)\n"
	"print(s.server_address[1],os.getpid(),flush=True)\n"
	"s.serve_forever()\n";

static void make_certificate(const char *cert, const char *key)
{
	const char *const argv[] = { "/usr/bin/env",
				     "openssl",
				     "req",
				     "-x509",
				     "-newkey",
				     "rsa:2048",
				     "-nodes",
				     "-days",
				     "1",
				     "-subj",
				     "/CN=x",
				     "-addext",
				     "subjectAltName=DNS:localhost",
				     "-keyout",
				     key,
				     "-out",
				     cert,
				     NULL };
	struct ob_run run = { .argv = argv };

	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ob_run_done(&run);
}

static struct ob_err try_tls(const char *host, int port, const char *ca_file)
{
	const struct ob_opt_value options[] = { { "allow_private", "true" },
						{ "ca_file", ca_file } };
	struct ob_err err = OB_ERR_INIT;
	char url[64];

	(void)snprintf(url, sizeof(url), "https://%s:%d/", host, port);
	struct ob_sink *sink = make_url(url, options, ca_file ? 2 : 1);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	err = try_one(sink);
	ob_sink_free(sink);
	return err;
}

OB_TEST(a_certificate_that_is_not_trusted_or_not_for_the_host_is_down)
{
	char dir[64], cert[96], key[96], command[400], line[32] = "";

	ob_temp_dir(dir);
	(void)snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
	(void)snprintf(key, sizeof(key), "%s/key.pem", dir);
	make_certificate(cert, key);
	(void)setenv("TLS_SERVER", tls_server, 1);
	(void)snprintf(command, sizeof(command), "exec python3 -c \"$TLS_SERVER\" %s %s", cert,
		       key);
	FILE *server = popen(command, "r");
	ck_assert_ptr_nonnull(server);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), server));
	char *rest = NULL;
	int port = (int)strtol(line, &rest, 10);
	pid_t pid = (pid_t)strtol(rest, NULL, 10);
	ck_assert_int_gt(port, 0);
	struct ob_err err = try_tls("localhost", port, NULL);
	ck_assert_msg(err.kind == OB_ERR_DOWN && strstr(err.msg, "certificate"), "%s", err.msg);
	err = try_tls("localhost", port, cert);
	ck_assert_msg(err.kind == OB_ERR_NONE, "%s", err.msg);
	err = try_tls("127.0.0.1", port, cert);
	ck_assert_msg(err.kind == OB_ERR_DOWN && strstr(err.msg, "certificate"), "%s", err.msg);
	err = try_tls("localhost", port, key);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert(pid > 1 && kill(pid, SIGTERM) == 0);
	(void)pclose(server);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_SUITE("http sink: safety", requests_are_signed_with_every_secret, bad_settings_are_fatal_at_open,
	 tokens_are_not_described, what_a_receiver_repeats_of_our_secrets_is_not_in_the_error,
	 a_private_key_signs_as_v1a_beside_a_secret, a_proxy_of_the_environment_is_not_used,
	 nothing_in_a_message_can_add_a_header, headers_that_are_too_large_are_rejected,
	 special_addresses_are_told_from_public_ones, no_spelling_leads_to_this_machine,
	 a_certificate_that_is_not_trusted_or_not_for_the_host_is_down)

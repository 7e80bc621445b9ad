/* SPDX-License-Identifier: MIT */
/* From a host name to a channel with publisher confirms. */
#include "sink/rabbitmq/rabbitmq.h"

enum { PROTOCOL_HEADER = 'A' }; /* how the decoder calls an answer in another version */

struct login {
	struct rabbitmq_sink *sink;
	const struct ob_url_host *host;
	int64_t deadline_us;
};

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a frame");
}

/* ---- waiting for methods --------------------------------------------- */

static int await_frame(const struct login *login, amqp_frame_t *ret_frame, struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = &login->sink->conn;
	const struct ob_clock *clock = login->sink->base.clock;

	for (;;) {
		int r = ob_rabbitmq_conn_flush(conn, clock, err);

		if (r == 0)
			r = ob_rabbitmq_next_frame(conn, clock, ret_frame, err);
		if (r != 0)
			return r < 0 ? r : 0;
		if (!ob_net_wait(&conn->net, ob_net_events(&conn->net, conn->out.blocked), clock,
				 login->deadline_us))
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
					  "no answer within %lld ms",
					  (long long)login->sink->connect_timeout_ms);
	}
}

/* The broker does not want us; whatever the code, no message is to blame. */
static void refused_here(uint16_t code, amqp_bytes_t text, struct ob_err *err)
{
	enum ob_rabbitmq_blame blame;

	(void)ob_rabbitmq_error(code, ob_rabbitmq_str(text), &blame, err);
	err->kind = OB_ERR_DOWN;
}

static void refused(uint16_t code, amqp_bytes_t text, struct ob_err *err)
{
	refused_here(code, text, err);
	if (code == AMQP_ACCESS_REFUSED)
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				 "rabbitmq says 403: ACCESS_REFUSED: check user name and "
				 "password, and that this user may come from here");
}

/* The answer with that id, good until the next one; NULL: see *err. */
static const void *await_method(const struct login *login, amqp_method_number_t id,
				struct ob_err *err)
{
	amqp_frame_t frame = { 0 };

	if (await_frame(login, &frame, err) < 0)
		return NULL;
	const void *method = frame.payload.method.decoded;
	if (frame.frame_type == PROTOCOL_HEADER)
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				 "the broker speaks another version of AMQP than 0-9-1");
	else if (frame.frame_type != AMQP_FRAME_METHOD)
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "unexpected frame %d",
				 frame.frame_type);
	else if (frame.payload.method.id == id)
		return method;
	else if (frame.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD)
		refused(((const amqp_connection_close_t *)method)->reply_code,
			((const amqp_connection_close_t *)method)->reply_text, err);
	else if (frame.payload.method.id == AMQP_CHANNEL_CLOSE_METHOD)
		refused_here(((const amqp_channel_close_t *)method)->reply_code,
			     ((const amqp_channel_close_t *)method)->reply_text, err);
	else
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "unexpected answer 0x%x",
				 (unsigned)frame.payload.method.id);
	return NULL;
}

static int call(const struct login *login, uint16_t channel, amqp_method_number_t id, void *method,
		amqp_method_number_t answer, struct ob_err *err)
{
	if (!ob_rabbitmq_add_method(&login->sink->conn, channel, id, method))
		return no_memory(err);
	bool ok = await_method(login, answer, err) != NULL;
	ob_rabbitmq_release_frames(&login->sink->conn);
	return ok ? 0 : err->status;
}

int ob_rabbitmq_ask(struct rabbitmq_sink *sink, uint16_t channel, amqp_method_number_t id,
		    void *method, amqp_method_number_t answer, struct ob_err *err)
{
	const struct login login = {
		.sink = sink,
		.host = &sink->url.hosts[sink->host],
		.deadline_us = ob_clock_boot_us(sink->base.clock) + sink->connect_timeout_ms * 1000,
	};

	return call(&login, channel, id, method, answer, err);
}

/* ---- the steps ------------------------------------------------------- */

static amqp_table_entry_t flag(const char *name)
{
	return (amqp_table_entry_t){ .key = amqp_cstring_bytes(name),
				     .value = { .kind = AMQP_FIELD_KIND_BOOLEAN,
						.value.boolean = 1 } };
}

static amqp_table_entry_t text(const char *name, const char *value)
{
	return (amqp_table_entry_t){ .key = amqp_cstring_bytes(name),
				     .value = { .kind = AMQP_FIELD_KIND_UTF8,
						.value.bytes = amqp_cstring_bytes(value) } };
}

/* Who we are, and that we want to hear of alarms and of wrong passwords. */
static bool add_start_ok(struct rabbitmq_sink *sink)
{
	const char *user = sink->username ? sink->username : sink->url.user;
	const char *password = sink->password ? sink->password : sink->url.password;
	struct ob_buf plain = OB_BUF_INIT(2000);
	amqp_table_entry_t can[] = { flag("publisher_confirms"), flag("basic.nack"),
				     flag("connection.blocked"), flag("consumer_cancel_notify"),
				     flag("authentication_failure_close") };
	amqp_table_entry_t about[] = {
		text("product", "outbox"),
		text("connection_name", "outbox relay"),
		{ .key = amqp_cstring_bytes("capabilities"),
		  .value = { .kind = AMQP_FIELD_KIND_TABLE,
			     .value.table = { sizeof(can) / sizeof(can[0]), can } } },
	};

	ob_buf_addc(&plain, '\0');
	ob_buf_adds(&plain, user ? user : "guest");
	ob_buf_addc(&plain, '\0');
	ob_buf_adds(&plain, password ? password : user ? "" : "guest");
	amqp_connection_start_ok_t method = {
		.client_properties = { sizeof(about) / sizeof(about[0]), about },
		.mechanism = amqp_cstring_bytes("PLAIN"),
		.response = ob_rabbitmq_bytes(ob_buf_view(&plain)),
		.locale = amqp_cstring_bytes("en_US"),
	};
	bool ok = !plain.failed &&
		  ob_rabbitmq_add_method(&sink->conn, 0, AMQP_CONNECTION_START_OK_METHOD, &method);
	if (plain.data)
		explicit_bzero(plain.data, plain.len);
	ob_buf_done(&plain);
	return ok;
}

/* The smaller of both wishes; 0 is no wish. */
static uint32_t agree(uint32_t ours, uint32_t theirs)
{
	return theirs == 0 || (ours != 0 && ours < theirs) ? ours : theirs;
}

static int tune(const struct login *login, const amqp_connection_tune_t *theirs, struct ob_err *err)
{
	struct rabbitmq_sink *sink = login->sink;
	uint32_t heartbeat_s = (uint32_t)((sink->heartbeat_ms + 999) / 1000);
	amqp_connection_tune_ok_t ours = {
		.channel_max = (uint16_t)agree(OB_RABBITMQ_PROBE_CHANNEL, theirs->channel_max),
		.frame_max = agree(OB_RABBITMQ_FRAME, theirs->frame_max),
		/* Off is off, whatever the broker wants. */
		.heartbeat = heartbeat_s ? (uint16_t)agree(heartbeat_s, theirs->heartbeat) : 0,
	};

	if (ours.frame_max < OB_RABBITMQ_FRAME_MIN)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "the broker wants frames of at most %u bytes", ours.frame_max);
	if (amqp_tune_connection(sink->conn.codec, ours.channel_max, (int)ours.frame_max, 0) < 0 ||
	    !ob_rabbitmq_add_method(&sink->conn, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &ours))
		return no_memory(err);
	sink->conn.frame_max = ours.frame_max;
	sink->conn.channel_max = ours.channel_max;
	sink->conn.heartbeat_us = (int64_t)ours.heartbeat * 1000000;
	return 0;
}

static int open_channel(const struct login *login, struct ob_err *err)
{
	amqp_connection_open_t vhost = {
		.virtual_host = amqp_cstring_bytes(login->sink->url.vhost),
	};
	amqp_channel_open_t channel = { 0 };
	amqp_confirm_select_t confirm = { 0 };
	int r = call(login, 0, AMQP_CONNECTION_OPEN_METHOD, &vhost, AMQP_CONNECTION_OPEN_OK_METHOD,
		     err);

	if (r == 0)
		r = call(login, OB_RABBITMQ_CHANNEL, AMQP_CHANNEL_OPEN_METHOD, &channel,
			 AMQP_CHANNEL_OPEN_OK_METHOD, err);
	if (r == 0)
		r = call(login, OB_RABBITMQ_CHANNEL, AMQP_CONFIRM_SELECT_METHOD, &confirm,
			 AMQP_CONFIRM_SELECT_OK_METHOD, err);
	return r;
}

static unsigned major_version(const amqp_table_t *about)
{
	unsigned major = 0;

	for (int i = 0; i < about->num_entries; i++) {
		const amqp_table_entry_t *e = &about->entries[i];
		struct ob_str value = ob_rabbitmq_str(e->value.value.bytes);

		if (!ob_str_eq(ob_rabbitmq_str(e->key), OB_STR("version")) ||
		    e->value.kind != AMQP_FIELD_KIND_UTF8)
			continue;
		for (size_t k = 0; k < value.n && value.p[k] >= '0' && value.p[k] <= '9'; k++)
			major = major * 10 + (unsigned)(value.p[k] - '0');
	}
	return major;
}

static int shake_hands(const struct login *login, struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = &login->sink->conn;

	ob_buf_add(&conn->out.bytes, OB_STR("AMQP\0\0\x09\x01"));
	const amqp_connection_start_t *start =
		await_method(login, AMQP_CONNECTION_START_METHOD, err);
	if (!start)
		return err->status;
	conn->server_major = major_version(&start->server_properties);
	ob_rabbitmq_release_frames(conn);
	if (!add_start_ok(login->sink))
		return no_memory(err);
	const amqp_connection_tune_t *theirs =
		await_method(login, AMQP_CONNECTION_TUNE_METHOD, err);
	if (!theirs || tune(login, theirs, err) < 0)
		return err->status;
	ob_rabbitmq_release_frames(conn);
	return open_channel(login, err);
}

/* ---- hosts ----------------------------------------------------------- */

static int try_host(const struct login *login, struct ob_err *err)
{
	struct rabbitmq_sink *sink = login->sink;
	struct ob_rabbitmq_conn *conn = &sink->conn;
	const struct ob_clock *clock = sink->base.clock;
	struct ob_net_addr addr = { .host = login->host->name,
				    .port = login->host->port,
				    .tls = sink->tls };
	int r = ob_net_connect(&conn->net, &addr, (int)sink->timeout_ms, clock, login->deadline_us,
			       err);

	if (r < 0)
		return r;
	conn->read_us = conn->written_us = ob_clock_boot_us(clock);
	conn->codec = amqp_new_connection();
	r = conn->codec ? shake_hands(login, err) : no_memory(err);
	if (r == 0) {
		conn->open = true;
		return 0;
	}
	ob_rabbitmq_conn_close(conn, false);
	return ob_err_context(err, "logging in at %.100s:%s", login->host->name, login->host->port);
}

int ob_rabbitmq_log_in(struct rabbitmq_sink *sink, struct ob_err *err)
{
	const struct ob_rabbitmq_url *url = &sink->url;
	int64_t end = ob_clock_boot_us(sink->base.clock) + sink->connect_timeout_ms * 1000;

	for (uint32_t left = url->host_count; left > 0; left--) {
		/* One that does not answer must leave time for the others. */
		int64_t now = ob_clock_boot_us(sink->base.clock);
		struct login login = { .sink = sink,
				       .host = &url->hosts[sink->host],
				       .deadline_us = now + (end - now) / left };

		if (try_host(&login, err) == 0)
			return 0;
		sink->host = (sink->host + 1) % url->host_count;
	}
	if (url->host_count > 1)
		(void)ob_err_context(err, "none of %u brokers takes us, the last", url->host_count);
	return err->status;
}

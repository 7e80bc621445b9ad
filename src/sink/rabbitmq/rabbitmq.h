/* SPDX-License-Identifier: MIT */
/*
 * What the files of the RabbitMQ sink share. The protocol is AMQP 0-9-1. librabbitmq encodes
 * and decodes methods, properties and tables; the bytes go through net.h, so nothing here
 * waits for a broker that reads slowly.
 */
#ifndef OB_SINK_RABBITMQ_H
#define OB_SINK_RABBITMQ_H

#include "sink/line.h"
#include "sink/net.h"
#include "sink/outbuf.h"
#include "sink/sink.h"
#include "sink/url.h"

#include "config.h"

#if HAVE_RABBITMQ_FOLDER
#include <rabbitmq-c/amqp.h>
#else
#include <amqp.h>
#endif

struct json_t;

enum {
	OB_RABBITMQ_INPUT_MAX = 80 << 20,   /* of one message */
	OB_RABBITMQ_SHORT = 255,            /* bytes of a name or of a property */
	OB_RABBITMQ_FRAME = 128 << 10,      /* the largest frame that we ask for */
	OB_RABBITMQ_FRAME_MIN = 4096,       /* that every broker takes */
	OB_RABBITMQ_FRAME_EXTRA = 8,        /* bytes of a frame around its payload */
	OB_RABBITMQ_FLUSH_BYTES = 64 << 10, /* wait in memory before they are written */
	OB_RABBITMQ_OUT_BYTES = 1 << 20,    /* not written, before one message more */
	OB_RABBITMQ_IN_BYTES = 64 << 10,
	OB_RABBITMQ_HOSTS = 16,
	OB_RABBITMQ_SPAN = 4, /* windows between the oldest and the newest unconfirmed */
	OB_RABBITMQ_CHANNEL = 1,
	OB_RABBITMQ_PROBE_CHANNEL = 2, /* for questions; the last that we ask for */
};

enum ob_rabbitmq_unroutable { OB_RABBITMQ_UNROUTABLE_RETRY, OB_RABBITMQ_UNROUTABLE_REJECT };

/* What the url says. */
struct ob_rabbitmq_url {
	struct ob_url_host hosts[OB_RABBITMQ_HOSTS];
	uint32_t host_count;
	char *user, *password, *vhost; /* owned; the first two may be NULL */
	bool tls;
};

/* A published message, by the broker's delivery tag. */
struct ob_rabbitmq_slot {
	uint64_t tag; /* the caller's */
	struct ob_uuid id;
	struct ob_str exchange, key; /* borrowed until the outcome */
	size_t size;                 /* of the body */
	int64_t sent_us;
	uint16_t returned; /* why it came back; 0: it did not */
	bool waiting;
};

/* All zero until ob_rabbitmq_flight_init(). */
struct ob_rabbitmq_flight {
	struct ob_rabbitmq_slot *slots;
	uint64_t mask;
	uint64_t first, next; /* delivery tags: nothing before `first` waits; `next` is to come */
	uint64_t confirmed;   /* the newest tag that was */
	uint64_t returned;    /* the newest tag that came back */
	uint32_t window, waiting;
	struct ob_ack *outcomes; /* a ring of `window` */
	uint32_t head, count;
};

/* Initialise with ob_rabbitmq_conn_init(). */
struct ob_rabbitmq_conn {
	struct ob_net net;
	amqp_connection_state_t codec; /* decodes what comes; has no socket */
	struct ob_outbuf out;
	char *in; /* OB_RABBITMQ_IN_BYTES */
	size_t in_at, in_size;
	char *scratch;      /* a frame's payload in the making */
	uint32_t frame_max; /* as agreed */
	uint16_t channel_max;
	int64_t heartbeat_us;
	int64_t read_us, written_us; /* when bytes last came or went */
	uint16_t returning;          /* the code of a message that is coming back */
	bool open;
	bool blocked;          /* the broker takes no messages now */
	int64_t unblocked_us;  /* since when it does */
	unsigned server_major; /* of the broker's version; 0: it does not say */
	char blocked_why[128];
};

struct rabbitmq_sink {
	struct ob_sink base;
	/* options */
	char *url_text, *username, *password, *exchange;
	char *tls_ca, *tls_cert, *tls_key;
	bool tls_verify, exchange_per_message;
	int unroutable;
	int64_t connect_timeout_ms, timeout_ms, heartbeat_ms;
	uint32_t window, max_priority;

	struct ob_rabbitmq_url url;
	struct ob_rabbitmq_conn conn;
	struct ob_rabbitmq_flight flight;
	struct ssl_ctx_st *tls;
	amqp_pool_t pool;  /* of the tables of one message */
	uint64_t size_max; /* of a body, once the broker has told us; 0: not known */
	uint32_t host;     /* the one to try first */
	bool ready;        /* url, TLS and memory are there */
	bool reopen;       /* the connection ended and no message was told of an outage */
};

/* ---- url.c ------------------------------------------------------------ */

/* amqp:// or amqps://; ECONFIG says what is wrong and never shows the password. */
int ob_rabbitmq_url_parse(const char *text, struct ob_rabbitmq_url *ret_url, struct ob_err *err);
void ob_rabbitmq_url_done(struct ob_rabbitmq_url *url);

/* ---- error.c ---------------------------------------------------------- */

/* Who of those that wait is meant when the broker closes the channel. */
enum ob_rabbitmq_blame {
	OB_RABBITMQ_BLAME_NONE,     /* it is not about a message */
	OB_RABBITMQ_BLAME_EXCHANGE, /* the text names the exchange, or the topic */
	OB_RABBITMQ_BLAME_SIZE,     /* the text has the size of the body */
	OB_RABBITMQ_BLAME_ALONE,    /* the text names nothing: one that waits alone */
};

/*
 * The one place that knows what the broker's reply codes mean; returns err->status. err->kind
 * is for the one to blame; with BLAME_NONE it is DOWN.
 */
int ob_rabbitmq_error(uint16_t code, struct ob_str text, enum ob_rabbitmq_blame *ret_blame,
		      struct ob_err *err);
/* Is it this message that the text is about? `alone`: no other waits. */
bool ob_rabbitmq_is_about(const struct rabbitmq_sink *sink, enum ob_rabbitmq_blame blame,
			  struct ob_str text, const struct ob_rabbitmq_slot *slot, bool alone);
/* The largest body that the broker takes, when the text has it; 0: it has not. */
uint64_t ob_rabbitmq_size_limit(struct ob_str text);
/* Why a message that the broker answered is not stored: it came back, or (code 0) was refused. */
int ob_rabbitmq_refused(const struct rabbitmq_sink *sink, const struct ob_rabbitmq_slot *slot,
			struct ob_err *err);

/* ---- flight.c --------------------------------------------------------- */

int ob_rabbitmq_flight_init(struct ob_rabbitmq_flight *flight, uint32_t window, struct ob_err *err);
void ob_rabbitmq_flight_done(struct ob_rabbitmq_flight *flight);
/* Forget everything; the tags begin anew, as on every channel. */
void ob_rabbitmq_flight_clear(struct ob_rabbitmq_flight *flight);
/* The tags begin anew; outcomes stay. Nothing may be waiting. */
void ob_rabbitmq_flight_restart(struct ob_rabbitmq_flight *flight);
bool ob_rabbitmq_flight_is_full(const struct ob_rabbitmq_flight *flight);
void ob_rabbitmq_flight_add(struct ob_rabbitmq_flight *flight, const struct ob_rabbitmq_slot *slot);
/* The oldest that waits, or NULL. */
struct ob_rabbitmq_slot *ob_rabbitmq_flight_oldest(struct ob_rabbitmq_flight *flight);
/* The one with that delivery tag, when it waits. */
struct ob_rabbitmq_slot *ob_rabbitmq_flight_at(const struct ob_rabbitmq_flight *flight,
					       uint64_t delivery_tag);
/* A message with that id came back. */
void ob_rabbitmq_flight_returned(struct ob_rabbitmq_flight *flight, const struct ob_uuid *id,
				 uint16_t code);
/* Its outcome; NULL: stored. */
void ob_rabbitmq_flight_finish(struct ob_rabbitmq_flight *flight, struct ob_rabbitmq_slot *slot,
			       const struct ob_err *err);
int ob_rabbitmq_flight_outcomes(struct ob_rabbitmq_flight *flight, struct ob_ack *acks, size_t max);

/* ---- conn.c ----------------------------------------------------------- */

int ob_rabbitmq_conn_init(struct ob_rabbitmq_conn *conn, struct ob_err *err);
void ob_rabbitmq_conn_done(struct ob_rabbitmq_conn *conn);
/* Close; `politely` says goodbye, as far as that goes without waiting. */
void ob_rabbitmq_conn_close(struct ob_rabbitmq_conn *conn, bool politely);
/* Append a frame, and one of a method. False when memory is short. */
bool ob_rabbitmq_add_frame(struct ob_rabbitmq_conn *conn, uint8_t type, uint16_t channel,
			   struct ob_str payload);
bool ob_rabbitmq_add_method(struct ob_rabbitmq_conn *conn, uint16_t channel,
			    amqp_method_number_t id, void *method);
/* The next frame that is no heartbeat: 1, 0 when it is not there yet, or an error. */
int ob_rabbitmq_next_frame(struct ob_rabbitmq_conn *conn, const struct ob_clock *clock,
			   amqp_frame_t *ret_frame, struct ob_err *err);
/* The memory of frames that were handled. */
void ob_rabbitmq_release_frames(struct ob_rabbitmq_conn *conn);
/* Write what goes now, with a heartbeat when one is due. */
int ob_rabbitmq_conn_flush(struct ob_rabbitmq_conn *conn, const struct ob_clock *clock,
			   struct ob_err *err);
/* When the broker counts as gone, and when it wants to hear from us; INT64_MAX: never. */
int64_t ob_rabbitmq_conn_gone_us(const struct ob_rabbitmq_conn *conn);
int64_t ob_rabbitmq_conn_beat_us(const struct ob_rabbitmq_conn *conn);

/* ---- login.c ---------------------------------------------------------- */

/* Connect to one of the brokers and get a channel with confirms; tries one after the other. */
int ob_rabbitmq_log_in(struct rabbitmq_sink *sink, struct ob_err *err);
/* Send a method and wait for its answer, while nothing else is under way. When the broker closes
 * the channel instead, err->native is its code. */
int ob_rabbitmq_ask(struct rabbitmq_sink *sink, uint16_t channel, amqp_method_number_t id,
		    void *method, amqp_method_number_t answer, struct ob_err *err);

/* ---- probe.c ---------------------------------------------------------- */

extern const struct ob_check ob_rabbitmq_checks[];
ob_sink_probe_fn ob_rabbitmq_probe;

/* ---- events.c --------------------------------------------------------- */

/* Take in what has come. The connection may be lost behind it. */
void ob_rabbitmq_read(struct rabbitmq_sink *sink);
/* The connection is useless: all that wait fail as DOWN. */
void ob_rabbitmq_lose(struct rabbitmq_sink *sink, const struct ob_err *err);

/* ---- publish.c -------------------------------------------------------- */

/* Where messages to that destination go: exchange ("": the default one) and routing key. */
int ob_rabbitmq_split(const struct rabbitmq_sink *sink, struct ob_str destination,
		      struct ob_str *ret_exchange, struct ob_str *ret_key, struct ob_err *err);
/* Check a message and put it on its way; REJECT says what cannot be sent. */
int ob_rabbitmq_publish(struct rabbitmq_sink *sink, const struct ob_delivery *delivery,
			struct ob_err *err);

/* ---- table.c ---------------------------------------------------------- */

/* The properties of one message, headers included, and what they point to besides it. */
struct ob_rabbitmq_properties {
	amqp_basic_properties_t basic;
	char id[OB_UUID_TEXT_SIZE], time[OB_LINE_TIME_SIZE];
	struct json_t *trees; /* values of headers; NULL: none */
	bool is_object;       /* the stored headers are one, and go out */
};
/* REJECT when AMQP cannot carry something. Good until the next call; _done() in any case. */
int ob_rabbitmq_properties_make(struct rabbitmq_sink *sink, const struct ob_delivery *delivery,
				struct ob_rabbitmq_properties *properties, struct ob_err *err);
void ob_rabbitmq_properties_done(struct ob_rabbitmq_properties *properties);

static inline amqp_bytes_t ob_rabbitmq_bytes(struct ob_str s)
{
	/* The library only reads what it encodes. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return (amqp_bytes_t){ s.n, (void *)(uintptr_t)s.p };
}

static inline struct ob_str ob_rabbitmq_str(amqp_bytes_t bytes)
{
	return (struct ob_str){ bytes.bytes, bytes.len };
}

#endif

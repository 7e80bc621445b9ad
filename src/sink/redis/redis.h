/* SPDX-License-Identifier: MIT */
/* What the files of the Redis sink share. The protocol is RESP 2. */
#ifndef OB_SINK_REDIS_H
#define OB_SINK_REDIS_H

#include "sink/lanes.h"
#include "sink/net.h"
#include "sink/outbuf.h"
#include "sink/url.h"

struct redisReader;
struct redisReply;

enum {
	OB_REDIS_INPUT_MAX = 80 << 20,  /* of one message; a server takes 512 MB in one value */
	OB_REDIS_RUN = 128,             /* most messages of one script */
	OB_REDIS_RUN_BYTES = 256 << 10, /* a message larger than that goes alone */
	OB_REDIS_OUT_BYTES = 256 << 10, /* formatted and not yet sent, before one command more */
	OB_REDIS_NODES = 64,            /* of a cluster */
	OB_REDIS_REDIRECTS = 8,         /* of one command, before it counts as an outage */
};

/* What the url says. */
struct ob_redis_url {
	struct ob_url_host host;
	char path[108];
	char *user, *password; /* owned; NULL: none */
	uint32_t db;
	bool tls;
};

struct ob_redis_command {
	struct ob_lane *lane;
	uint32_t count; /* messages, from the lane's first */
	bool script, eval;
	bool asking; /* the answer to ASKING comes first */
};

/* One connection; a cluster has one for each of its servers. */
struct ob_redis_node {
	char host[256], port[6];
	struct ob_net net;
	struct redisReader *reader;
	struct ob_outbuf out;
	struct ob_redis_command *ring; /* under way, oldest first; `window` of them */
	uint32_t head, count;
	int64_t progress_us; /* when the peer last showed that it works */
	bool open;
	bool loaded;  /* the server knows our script */
	bool leaving; /* to be dropped once it has answered, because of `why` */
	struct ob_err why;
};

struct redis_sink {
	struct ob_sink base;
	/* options */
	char *url_text, *username, *password;
	char *tls_ca, *tls_cert, *tls_key;
	bool tls_verify;
	int64_t connect_timeout_ms, timeout_ms, max_age_ms;
	uint32_t window, max_len;

	struct ob_redis_url url;
	bool ready; /* url, TLS and memory are there */
	struct ssl_ctx_st *tls;
	struct ob_lanes lanes;
	struct ob_redis_node *nodes[OB_REDIS_NODES]; /* the first is the one of the url */
	uint32_t node_count;
	uint8_t *slots;  /* of a cluster: the node of each; NULL: none has sent us elsewhere */
	bool no_scripts; /* this user may not use them */
	char policy[24]; /* by which the server evicts streams; "": it does not */
	char sha[41];    /* of the script; empty: not needed yet */
	struct ob_buf scratch;
	size_t reply_max; /* bytes of one answer; 0: what a sink needs */
};

/* ---- url.c ------------------------------------------------------------ */

/* redis://, rediss:// or unix://; ECONFIG says what is wrong and never shows the password. */
int ob_redis_url_parse(const char *text, struct ob_redis_url *ret_url, struct ob_err *err);
void ob_redis_url_done(struct ob_redis_url *url);

/* ---- command.c -------------------------------------------------------- */

/* Append one command of plain words. */
void ob_redis_add_words(struct ob_buf *out, const char *const *words, size_t count);
/*
 * Append the command for the first messages of a lane and fill `ret` in: a plain XADD for one,
 * the script for more. On failure (memory) `out` is as before.
 */
int ob_redis_add_run(struct redis_sink *sink, const struct ob_redis_node *node,
		     struct ob_lane *lane, struct ob_buf *out, struct ob_redis_command *ret,
		     struct ob_err *err);
/* Bytes that a message brings along. */
size_t ob_redis_input_size(const struct ob_delivery *delivery);

/* ---- error.c ---------------------------------------------------------- */

/*
 * The one place that knows what the server's error replies mean; returns err->status.
 * *ret_leave: nothing good will come over this connection, make a new one.
 */
int ob_redis_error(struct ob_str text, bool *ret_leave, struct ob_err *err);
/* The script is not known; scripts are not allowed for us. */
bool ob_redis_is_noscript(struct ob_str text);
bool ob_redis_is_script_denied(struct ob_str text);

/* ---- cluster.c -------------------------------------------------------- */

/* "MOVED 3999 127.0.0.1:6381" and "ASK ..." */
struct ob_redis_redirect {
	bool ask;
	uint16_t slot;
	char host[256], port[6]; /* host "": that of the server which answered */
};
bool ob_redis_redirect_parse(struct ob_str text, struct ob_redis_redirect *ret);
/* The slot of a stream's name, by its {tag} when it has one. */
uint16_t ob_redis_slot(struct ob_str name);
/* The node for the lane's first message; NULL with an error when it cannot be reached. */
struct ob_redis_node *ob_redis_route(struct redis_sink *sink, const struct ob_lane *lane,
				     struct ob_err *err);
/* Remember where the lane's command belongs; false: too often, or no room. */
bool ob_redis_redirect(struct redis_sink *sink, const struct ob_redis_node *from,
		       struct ob_lane *lane, const struct ob_redis_redirect *to);

/* Ask the first node again for all that this one had. */
void ob_redis_forget_node(struct redis_sink *sink, const struct ob_redis_node *node);

/* ---- node.c ----------------------------------------------------------- */

/* A node that is not connected; NULL when memory is short. */
struct ob_redis_node *ob_redis_node_new(const struct redis_sink *sink, const char *host,
					const char *port);
void ob_redis_node_free(struct ob_redis_node *node);
/* Connect and log in; does nothing when that is done. */
int ob_redis_node_open(struct redis_sink *sink, struct ob_redis_node *node, struct ob_err *err);
/* Close; everything under way fails with `err`. */
void ob_redis_node_lose(struct redis_sink *sink, struct ob_redis_node *node,
			const struct ob_err *err);
/* Close, and forget what is under way. */
void ob_redis_node_drop(struct ob_redis_node *node);
/* Put the commands of a taken lane on its way. */
int ob_redis_node_command(struct redis_sink *sink, struct ob_redis_node *node, struct ob_lane *lane,
			  struct ob_err *err);
/* Move bytes; what comes in becomes outcomes. Loses the node when it is silent for too long. */
void ob_redis_node_write(struct redis_sink *sink, struct ob_redis_node *node);
void ob_redis_node_read(struct redis_sink *sink, struct ob_redis_node *node);
/* When it counts as silent; INT64_MAX: nothing is expected. */
int64_t ob_redis_node_deadline(const struct redis_sink *sink, const struct ob_redis_node *node);

/* Send one command of words and wait for its answer, which the caller frees. Nothing may be under
 * way; a failure closes the node. */
int ob_redis_node_ask(struct redis_sink *sink, struct ob_redis_node *node, const char *const *words,
		      size_t count, struct redisReply **ret_reply, struct ob_err *err);
/* The text after "name:" in an answer to INFO; absent: there is none. */
struct ob_str ob_redis_info(struct ob_str info, const char *name);

/* ---- probe.c ---------------------------------------------------------- */

/* What the server told of itself; p NULL: it did not. */
struct ob_redis_health {
	struct ob_str version, role, policy, aof, fsync;
};

extern const struct ob_check ob_redis_checks[];

void ob_redis_judge(const struct ob_redis_health *health, struct ob_findings *out);

ob_sink_advise_fn ob_redis_advise;
ob_sink_probe_fn ob_redis_probe;

/* ---- reply.c ---------------------------------------------------------- */

/* An answer to the oldest command under way. An error means that the peer does not speak Redis. */
int ob_redis_reply(struct redis_sink *sink, struct ob_redis_node *node,
		   const struct redisReply *reply, struct ob_err *err);

#endif

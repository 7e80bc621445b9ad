/* SPDX-License-Identifier: MIT */
/* The inside of the embedded relay and consumer: the handle, and the sink that is a function of the
 * application. */
#ifndef OB_EMBED_EMBED_H
#define OB_EMBED_EMBED_H

#include "config/config.h"
#include "outbox/relay.h"
#include "relay/relay.h"

#include <stdatomic.h>

struct outbox_relay {
	/* First, and found from a sink through its ops. */
	struct ob_sink_ops ops;
	struct outbox_relay_options options; /* its texts live in the configuration */
	struct ob_config *config;
	struct ob_config_sink
		sink; /* what the relay of the configuration uses instead of its own */
	struct ob_log log;
	_Atomic unsigned stops; /* how often stop was called */
	int stop_fd;            /* eventfd, written by stop */
	struct ob_metrics_data reported;
	int64_t reported_us;
	bool consumes; /* it is the first part of a consumer */
};

/* handler.c: the operations of the sink. */
extern const struct ob_sink_ops ob_handler_sink;
/* handler.c: for a relay whose handler runs in the database's transaction. */
extern ob_sink_in_store_fn *const ob_handler_in_store;
/* handler.c: tell the application of a failure; `arg` is the relay. */
ob_failed_fn ob_embed_failed;

/* relay.c: what a relay and a consumer share. */
int ob_embed_init(outbox_relay *relay, bool in_transaction, struct ob_err *err);
void ob_embed_make_log(outbox_relay *relay);
int ob_embed_error(const struct ob_err *from, struct outbox_error *err);
/* A run is over: the next one begins without a stop. */
void ob_embed_forget_stops(outbox_relay *relay);

/* options.c: parts of the file that would say what the options say. */
enum { OB_EMBED_YAML_BYTES = 1 << 16 };
void ob_embed_add_text(struct ob_buf *b, const char *key, const char *text);
void ob_embed_add_number(struct ob_buf *b, const char *key, uint32_t value, const char *unit);
void ob_embed_add_retry(struct ob_buf *b, const struct outbox_relay_options *options);
typedef void ob_embed_write_fn(struct ob_buf *yaml, const void *options);
/* Write it and read it, whatever the locale; a fault is told without `prefix`. */
int ob_embed_parse(ob_embed_write_fn *write, const void *options, const char *prefix,
		   struct ob_config **ret_config, struct ob_err *err);
/* options.c: everything into relay->config; OUTBOX_ECONFIG says which option is wrong. */
int ob_embed_configure(outbox_relay *relay, const struct outbox_relay_options *options,
		       struct ob_err *err);

#endif

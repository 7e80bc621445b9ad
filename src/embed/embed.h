/* SPDX-License-Identifier: MIT */
/* The embedded relay's inside: the handle, and the sink that is a function of the application. */
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
};

/* handler.c: the operations of the sink. */
extern const struct ob_sink_ops ob_handler_sink;
/* handler.c: for a relay whose handler runs in the database's transaction. */
extern ob_sink_in_store_fn *const ob_handler_in_store;
/* handler.c: tell the application of a failure; `arg` is the relay. */
ob_failed_fn ob_embed_failed;

/* options.c: everything into relay->config; OUTBOX_ECONFIG says which option is wrong. */
int ob_embed_configure(outbox_relay *relay, const struct outbox_relay_options *options,
		       struct ob_err *err);

#endif

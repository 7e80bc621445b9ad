/* SPDX-License-Identifier: MIT */
/* A consumer of the configuration, put together: source, handler, database, dead letters. */
#ifndef OB_CONSUME_SETUP_H
#define OB_CONSUME_SETUP_H

#include "consume/consume.h"

struct ob_consume_setup {
	const struct ob_config_consumer *conf;
	struct ob_consumer_lease lease;
	struct ob_store *store;
	struct ob_feed *feed;
	struct ob_handler *handler;
	struct ob_sink *letters;
	struct ob_consumer *consumer;
	char source[512]; /* its description */
};

/*
 * Connect to the database (DOWN when it is away) and make everything else. On success the caller
 * ends it with ob_consume_setup_done(), as also after a failure. `function`: a sink to hand
 * messages to instead of what the configuration says, or NULL; if it has in_store, in the
 * transaction of the inbox.
 */
int ob_consume_setup(struct ob_consume_setup *s, const struct ob_config_consumer *conf,
		     const struct ob_sink_ops *function, const struct ob_log *log,
		     struct ob_err *err);
void ob_consume_setup_done(struct ob_consume_setup *s);

/* The consumer of that name; NULL: the only one. NULL: there is none, or several. */
const struct ob_config_consumer *ob_consume_find(const struct ob_config *config, const char *name);

#endif

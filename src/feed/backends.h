/* SPDX-License-Identifier: MIT */
/* The feeds, a folder each; see their options there. */
#ifndef OB_FEED_BACKENDS_H
#define OB_FEED_BACKENDS_H

#include "feed/feed.h"

extern const struct ob_feed_ops ob_feed_redis, ob_feed_kafka, ob_feed_rabbitmq, ob_feed_nats;

#endif

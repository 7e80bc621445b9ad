/* SPDX-License-Identifier: MIT */
/* A source in memory: what a memory sink has stored, read by groups. The reference of feeds. */
#ifndef OB_TESTS_MEMORY_FEED_H
#define OB_TESTS_MEMORY_FEED_H

#include "doubles/memory_sink.h"
#include "feed/feed.h"

extern const struct ob_feed_ops ob_feed_memory;

/* What feeds of this process read; forgets all groups. */
void ob_memfeed_use(struct ob_memsink_log *log);

#endif

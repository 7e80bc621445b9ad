/* SPDX-License-Identifier: MIT */
/*
 * Many requests at a time. libcurl's multi interface tells us which sockets to watch; they
 * are in one epoll, which is also the descriptor that the relay waits for. Its timers run
 * when ob_http_multi_work() is called.
 */
#ifndef OB_SINK_HTTP_MULTI_H
#define OB_SINK_HTTP_MULTI_H

#include "sink/http/request.h"

/* All zero is one that is not there yet. Must not move. */
struct ob_http_multi {
	CURLM *handle;
	int epoll; /* counts when the handle is there */
	const struct ob_clock *clock;
	int64_t timer_us; /* when libcurl wants to be called; -1: never */
};

/* Make it, once; keeps so many connections. DOWN when something is short. */
int ob_http_multi_init(struct ob_http_multi *multi, const struct ob_clock *clock,
		       uint32_t connections, struct ob_err *err);
void ob_http_multi_done(struct ob_http_multi *multi);
/* Wait for something to happen, until end_us or less, and let libcurl act on it. */
void ob_http_multi_work(struct ob_http_multi *multi, int64_t end_us);
/* A request that is over, with its result; NULL: no more. The caller removes it. */
struct ob_http_request *ob_http_multi_next(struct ob_http_multi *multi, CURLcode *ret_result);

#endif

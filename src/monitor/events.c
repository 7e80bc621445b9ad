/* SPDX-License-Identifier: MIT */
/*
 * The event stream: the whole small state with each round of the sampler. A client that left is
 * noticed when something is written, so something is written at least every 15 s.
 */
#include "monitor/routes.h"
#include "monitor/state.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <time.h>

enum { PING_S = 15, BLOCK = 16 << 10 };

struct stream {
	struct ob_monitor *monitor;
	enum ob_role role;
	uint64_t round; /* the last that was sent */
	struct ob_buf out;
	size_t at; /* how much of it was sent */
};

/* Wait for a new round; false: it stops. *ret_ping: none came in time. */
static bool wait_for_round(struct stream *s, bool *ret_ping)
{
	struct ob_monitor *m = s->monitor;
	struct timespec until;
	bool late = false;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PING_S;
	(void)pthread_mutex_lock(&m->lock);
	while (!m->stop && !late && ob_watch_round(m->watch) == s->round)
		late = pthread_cond_timedwait(&m->wake, &m->lock, &until) != 0;
	bool go_on = !m->stop;
	(void)pthread_mutex_unlock(&m->lock);
	*ret_ping = late;
	return go_on;
}

static void write_event(struct stream *s)
{
	struct ob_jout j = OB_JOUT_INIT;

	s->round = ob_watch_round(s->monitor->watch);
	ob_state_json(&j, s->monitor, s->role);
	ob_buf_addf(&s->out, "event: state\nid: %llu\ndata: ", (unsigned long long)s->round);
	ob_buf_add(&s->out, ob_buf_view(&j.b));
	ob_buf_adds(&s->out, "\n\n");
	ob_jout_done(&j);
}

static ssize_t on_more(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct stream *s = arg;
	bool ping = false;

	if (s->at == s->out.len) {
		bool first = pos == 0;

		ob_buf_clear(&s->out);
		s->at = 0;
		if (!first && !wait_for_round(s, &ping))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (ping)
			ob_buf_adds(&s->out, ": ping\n\n");
		else
			write_event(s);
	}
	if (s->out.failed || s->out.len == 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t n = s->out.len - s->at < max ? s->out.len - s->at : max;
	memcpy(buf, s->out.data + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

static void on_free(void *arg)
{
	struct stream *s = arg;

	(void)pthread_mutex_lock(&s->monitor->lock);
	s->monitor->sse_clients--;
	(void)pthread_mutex_unlock(&s->monitor->lock);
	ob_buf_done(&s->out);
	free(s);
}

static bool join(struct ob_request *req)
{
	struct ob_monitor *m = req->monitor;

	(void)pthread_mutex_lock(&m->lock);
	bool room = m->sse_clients < OB_SSE_MAX && !m->stop;
	m->sse_clients += room;
	if (room && req->link)
		req->link->stream = true;
	(void)pthread_mutex_unlock(&m->lock);
	return room;
}

void ob_api_events(struct ob_request *req)
{
	req->type = "application/json";
	if (!join(req)) {
		ob_request_fail(req, 429, "busy", "%d browsers listen already", OB_SSE_MAX);
		return;
	}
	struct stream *s = calloc(1, sizeof(*s));
	if (s) {
		s->monitor = req->monitor;
		s->role = req->role;
		s->out = OB_BUF_INIT(16 << 20);
		req->ready = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_more, s,
							       on_free);
	}
	if (!req->ready) {
		free(s);
		(void)pthread_mutex_lock(&req->monitor->lock);
		req->monitor->sse_clients--;
		(void)pthread_mutex_unlock(&req->monitor->lock);
		ob_request_fail(req, 503, "memory", "out of memory");
		return;
	}
	req->type = "text/event-stream";
	/* A proxy that collects an answer would never pass this one on. */
	(void)MHD_add_response_header(req->ready, "X-Accel-Buffering", "no");
}

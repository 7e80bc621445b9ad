/* SPDX-License-Identifier: MIT */
/* What a consumer knows of itself: for its metrics, and for others through its database. */
#include "consume/consumer_impl.h"

#include "base/cleanup.h"
#include "outbox/outbox.h"

#include <unistd.h>

/* ---- noting ---------------------------------------------------------- */

void ob_consumer_note_error(struct ob_consumer *c, const char *text)
{
	(void)snprintf(c->m.last_error, sizeof(c->m.last_error), "%.255s", text);
	c->m.last_error_us = ob_clock_real_us(c->p.clock);
}

void ob_consumer_note_side(struct ob_consumer *c, struct ob_consume_side *side, const char *why)
{
	bool up = !why;

	if (!side->since_us || side->up != up)
		side->since_us = ob_clock_real_us(c->p.clock);
	side->up = up;
	side->why[0] = '\0';
	if (why)
		ob_worker_text(side->why, sizeof(side->why), ob_str(why));
}

void ob_consumer_note_state(struct ob_consumer *c)
{
	const struct ob_breaker *b = &c->breaker;
	struct ob_consume_metrics *m = &c->m;

	m->in_flight = c->sent_count;
	m->in_memory = ob_consumer_held(c);
	m->breaker = b->state;
	m->alarm = b->alarm && b->state != OB_BREAKER_CLOSED;
	m->probe_us = 0;
	if (b->state == OB_BREAKER_CLOSED) {
		m->breaker_since_us = 0;
		m->breaker_why[0] = '\0';
		return;
	}
	if (!m->breaker_since_us) {
		m->breaker_since_us = ob_clock_real_us(c->p.clock);
		ob_worker_text(m->breaker_why, sizeof(m->breaker_why), ob_str(m->last_error));
	}
	if (b->state == OB_BREAKER_OPEN && b->open_until_us > ob_consumer_now(c))
		m->probe_us = ob_clock_real_us(c->p.clock) + b->open_until_us - ob_consumer_now(c);
}

/* ---- telling --------------------------------------------------------- */

static void copy_side(const struct ob_consume_side *side, char state[16], int64_t *since_us,
		      char why[OB_WORKER_TEXT])
{
	(void)snprintf(state, 16, "%s", !side->since_us ? "" : side->up ? "up" : "down");
	*since_us = side->since_us;
	memcpy(why, side->why, OB_WORKER_TEXT);
}

static void set_text(char *out, size_t size, const char *text)
{
	if (text)
		ob_worker_text(out, size, ob_str(text));
}

void ob_consumer_report(struct ob_consumer *c, struct ob_consumer_report *r)
{
	static const char *const dedups[] = { "ids", "position", "none" };
	static const char *const breakers[] = { [OB_BREAKER_CLOSED] = "closed",
						[OB_BREAKER_HALF_OPEN] = "half_open",
						[OB_BREAKER_OPEN] = "open" };
	const struct ob_consume_metrics *m = &c->m;
	OB_CLEANUP(ob_buf_done) struct ob_buf handler = OB_BUF_INIT((size_t)OB_WORKER_TEXT * 4);

	ob_consumer_note_state(c);
	*r = (struct ob_consumer_report){
		.version = OUTBOX_VERSION,
		.owner = m->owner,
		.rate = c->rate,
#define X(name, help) .name = m->name,
		OB_CONSUME_COUNTER_MAP(X)
#undef X
			.lag = m->lag,
		.oldest_us = m->oldest_us,
		.in_memory = m->in_memory,
		.in_flight = m->in_flight,
		.parked_now = m->parked_now,
		.dead_now = m->dead_now,
		.held_keys = m->held_keys,
		.full = m->full,
		.alarm = m->alarm,
		.breaker_since_us = m->breaker_since_us,
		.probe_us = m->probe_us,
		.last_error_us = m->last_error_us,
	};
	c->p.handler->ops->describe(c->p.handler, &handler);
	set_text(r->source, sizeof(r->source), c->conf.source);
	set_text(r->handler, sizeof(r->handler), ob_buf_str(&handler));
	set_text(r->dedup, sizeof(r->dedup), dedups[c->conf.dedup]);
	set_text(r->ordering, sizeof(r->ordering), c->conf.ordered ? "key" : "none");
	set_text(r->breaker, sizeof(r->breaker), breakers[m->breaker]);
	set_text(r->last_error, sizeof(r->last_error), m->last_error);
	memcpy(r->breaker_why, m->breaker_why, sizeof(r->breaker_why));
	copy_side(&m->source, r->source_state, &r->source_since_us, r->source_why);
	copy_side(&m->handler, r->handler_state, &r->handler_since_us, r->handler_why);
}

/* With the lease it is renewed, too. */
int ob_consumer_write_report(struct ob_consumer *c, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf state = OB_BUF_INIT(OB_CONSUMER_REPORT_BYTES + 1);
	struct ob_consumer_beat beat = { .handled = c->m.handled - c->told.handled,
					 .duplicates = c->m.duplicates - c->told.duplicates,
					 .failed = c->m.failed - c->told.failed,
					 .lag = c->m.lag,
					 .oldest_us = c->m.oldest_us };
	int64_t now = ob_consumer_now(c), since = now - c->told.at_us;
	struct ob_consumer_report report;
	char hostname[256] = "";

	if (c->told.at_us && since > 0)
		c->rate = (double)beat.handled * 1e6 / (double)since;
	ob_consumer_report(c, &report);
	ob_consumer_report_write(&report, &state);
	(void)gethostname(hostname, sizeof(hostname) - 1);
	beat.member = (struct ob_consumer_member){ .hostname = ob_str(hostname),
						   .pid = (int32_t)getpid(),
						   .state = ob_buf_view(&state) };
	int r = c->p.lease->epoch ? ob_consumer_renew(c->p.store, c->p.lease, c->conf.lease_ttl_ms,
						      &beat, err)
				  : ob_consumer_tell(c->p.store, c->p.lease, c->conf.lease_ttl_ms,
						     &beat, err);
	if (r < 0)
		return r;
	c->told.at_us = now;
	c->told.handled = c->m.handled;
	c->told.duplicates = c->m.duplicates;
	c->told.failed = c->m.failed;
	return 0;
}

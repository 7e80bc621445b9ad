/* SPDX-License-Identifier: MIT */
/* What the files of the consumer share. */
#ifndef OB_CONSUME_CONSUMER_IMPL_H
#define OB_CONSUME_CONSUMER_IMPL_H

#include "base/rng.h"
#include "consume/consume.h"
#include "consume/items.h"
#include "relay/breaker.h"
#include "relay/failures.h"
#include "relay/suspects.h"

enum {
	OB_CONSUME_DUE_LIMIT = 64,   /* parked messages of one look */
	OB_CONSUME_PARK_LIMIT = 256, /* messages parked in one transaction */
	OB_CONSUME_KEYS_MS = 2000,   /* between two looks at held keys */
	OB_CONSUME_DUE_MS = 1000,    /* longest time between two looks for due ones */
	OB_CONSUME_STATE_MS = 5000,  /* between two looks at the source's state */
	OB_CONSUME_PURGE_MS = 60000,
	OB_CONSUME_TOUCH_MS = 5000,
};

/* Something to be tried again after a failure. */
struct ob_consume_wait {
	struct ob_backoff backoff;
	int64_t until_us;
	bool failing;
};

/* How far a part has been handled, with dedup: position. */
struct ob_consume_part {
	struct ob_consume_part *next;
	struct ob_feed_place place;
	char name[]; /* of the part */
};

struct ob_consumer {
	struct ob_consumer_conf conf;
	struct ob_consumer_parts p;
	struct ob_consume_metrics m;
	struct ob_breaker breaker;
	struct ob_suspects suspects;
	struct ob_rng rng;
	struct ob_consume_keys keys;
	uint64_t last_number;

	struct ob_consume_list runnable; /* to be sent, or to be parked, by number */
	struct ob_consume_list sent;     /* with the handler */
	struct ob_consume_list park;     /* to be parked, in order */
	struct ob_consume_list done;     /* to be acknowledged */
	uint64_t runnable_count, sent_count, park_count, done_count;
	uint64_t waiting_count; /* in the keys */
	uint64_t due_count;     /* of the above, from the parked table */
	struct ob_consume_part *parts;

	bool draining, began; /* began: keys and positions were read since the lease was taken */
	bool handler_open, handler_full, source_empty, none_due, failed;
	uint64_t pass;          /* of sending */
	uint64_t probe;         /* the number of the breaker's probe; 0: none */
	int64_t lease_until_us; /* boot clock: what we trust */
	int64_t renew_us, keys_us, due_us, state_us, purge_us, touch_us, poll_us;
	int64_t warned_us; /* when the inbox's retention was last complained of */
	struct {
		int64_t at_us; /* boot clock; 0: nothing yet */
		uint64_t handled, duplicates, failed;
	} told;      /* by the last report */
	double rate; /* handled a second, between the last two */
	struct ob_consume_wait feed_wait, store_wait, letter_wait;
	struct ob_err fatal;
};

static inline int64_t ob_consumer_now(const struct ob_consumer *c)
{
	return ob_clock_boot_us(c->p.clock);
}

/* Messages in memory. */
static inline uint64_t ob_consumer_held(const struct ob_consumer *c)
{
	return c->runnable_count + c->sent_count + c->park_count + c->done_count + c->waiting_count;
}

/* consumer.c */
/* A call failed: remember it, say it once, wait. FATAL stops the consumer, LOST loses the lease. */
void ob_consumer_failed(struct ob_consumer *c, struct ob_consume_wait *wait, const char *what,
			const struct ob_err *err);
void ob_consumer_worked(struct ob_consumer *c, struct ob_consume_wait *wait, const char *what);
bool ob_consumer_waits(const struct ob_consumer *c, const struct ob_consume_wait *wait);
/* Done with it, in whatever way. */
void ob_consumer_forget(struct ob_consumer *c, struct ob_consume_item *item);
/* Drop all that is in memory: it is no longer ours. */
void ob_consumer_lose(struct ob_consumer *c);

/* report.c */
void ob_consumer_note_error(struct ob_consumer *c, const char *text);
/* `why` NULL: it is up. */
void ob_consumer_note_side(struct ob_consumer *c, struct ob_consume_side *side, const char *why);
/* Bring what is counted and the breaker into the metrics. */
void ob_consumer_note_state(struct ob_consumer *c);
/* Write the report, and renew the lease if it is ours: LOST when it is no more. */
int ob_consumer_write_report(struct ob_consumer *c, struct ob_err *err);

/* intake.c: from the source and from the parked table. True: something was done. */
bool ob_consumer_take_in(struct ob_consumer *c, int timeout_ms);
bool ob_consumer_take_due(struct ob_consumer *c);
bool ob_consumer_read_keys(struct ob_consumer *c);
bool ob_consumer_read_positions(struct ob_consumer *c);
void ob_consumer_position_text(struct ob_feed_place place, char out[48]);
bool ob_consumer_ack(struct ob_consumer *c);

/* outcome.c: to the handler and back. */
bool ob_consumer_send(struct ob_consumer *c);
bool ob_consumer_poll(struct ob_consumer *c, int timeout_ms);
/* Is there a message to probe the handler with on which it has not ended before? */
bool ob_consumer_has_probe(const struct ob_consumer *c);

/* park.c */
bool ob_consumer_park(struct ob_consumer *c);
/* A key of which something failed and nothing is sent any more: all of it is to be parked. */
void ob_consumer_park_key(struct ob_consumer *c, struct ob_consume_key *key);
void ob_consumer_to_park(struct ob_consumer *c, struct ob_consume_item *item,
			 enum ob_parked_state state, int64_t delay_ms, const char *reason);
/* A parked message was tried again. */
void ob_consumer_retried(struct ob_consumer *c, struct ob_consume_item *item,
			 const struct ob_verdict *verdict, const char *reason);
bool ob_consumer_send_letters(struct ob_consumer *c);

#endif

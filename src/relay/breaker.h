/* SPDX-License-Identifier: MIT */
/*
 * The circuit breaker of a sink: a state machine over times that are given to it.
 *
 *   closed --down, or most keys fail--> open --wait is over--> half-open (one probe)
 *     ^                                  ^                         |
 *     |                                  +----- probe fails -------+
 *     +------------------------------------- probe succeeds -------+
 *
 * The wait doubles from 100 ms to 1 s, so delivery goes on within 2 s of the sink's return.
 */
#ifndef OB_RELAY_BREAKER_H
#define OB_RELAY_BREAKER_H

#include "base/backoff.h"
#include "base/err.h"
#include "relay/metrics.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	OB_BREAKER_BASE_MS = 100,
	OB_BREAKER_CAP_MS = 1000,
	OB_BREAKER_RECENT = 32,       /* outcomes that are remembered */
	OB_BREAKER_RECENT_MS = 60000, /* not older than this */
	OB_BREAKER_MASS_KEYS = 10,    /* fewer failing keys are never an outage */
};

struct ob_breaker_outcome {
	uint64_t key;
	int64_t at_us;
	bool failed;
};

struct ob_breaker {
	enum ob_breaker_state state;
	bool alarm;   /* opened because most keys failed, not because the sink said it is down */
	bool probing; /* half-open: the probe is on its way */
	int64_t open_until_us;
	struct ob_backoff backoff;
	struct ob_breaker_outcome recent[OB_BREAKER_RECENT]; /* a ring */
	uint32_t recent_next, recent_count;
};

void ob_breaker_init(struct ob_breaker *breaker);

/* How many messages may be handed over now: none, the probe alone, or UINT32_MAX. An open one turns
 * half-open here. */
uint32_t ob_breaker_allows(struct ob_breaker *breaker, int64_t now_us);
/* The probe was handed over. */
void ob_breaker_probe(struct ob_breaker *breaker);
/* The probe was taken back without an outcome (its lease was lost): another one may go. */
void ob_breaker_unprobe(struct ob_breaker *breaker);

/* A delivery succeeded: closes it. True when it was not closed before. */
bool ob_breaker_success(struct ob_breaker *breaker);
/* The sink is down. Only the first one of a wait counts. True when it opened now. */
bool ob_breaker_down(struct ob_breaker *breaker, int64_t now_us);
/*
 * The probe got an answer about itself (RETRY, REJECT): the sink is there again, unless most keys
 * failed before: then it is one more of these and the wait goes on. True when it closed.
 */
bool ob_breaker_answer(struct ob_breaker *breaker, int64_t now_us);

/*
 * Take down an outcome of a key (of a message without one: any number of its own). A message that
 * has failed before says nothing about the sink when it fails again, so leave that out.
 */
void ob_breaker_note(struct ob_breaker *breaker, uint64_t key, bool failed, int64_t now_us);
/* At least ten keys failed lately, and they are more than half of those with an outcome. */
bool ob_breaker_is_mass(const struct ob_breaker *breaker, int64_t now_us);
/* It is an outage: opens with the alarm, forgets the outcomes. True when the alarm is new. */
bool ob_breaker_mass(struct ob_breaker *breaker, int64_t now_us);

#endif

/* SPDX-License-Identifier: MIT */
/* The circuit breaker: when nothing may be sent, and when one probe may. */
#include "relay/breaker.h"

void ob_breaker_init(struct ob_breaker *breaker)
{
	*breaker = (struct ob_breaker){ .state = OB_BREAKER_CLOSED };
	ob_backoff_init(&breaker->backoff, OB_BREAKER_BASE_MS, OB_BREAKER_CAP_MS);
}

uint32_t ob_breaker_allows(struct ob_breaker *breaker, int64_t now_us)
{
	if (breaker->state == OB_BREAKER_OPEN && now_us >= breaker->open_until_us) {
		breaker->state = OB_BREAKER_HALF_OPEN;
		breaker->probing = false;
	}
	if (breaker->state == OB_BREAKER_CLOSED)
		return UINT32_MAX;
	return breaker->state == OB_BREAKER_HALF_OPEN && !breaker->probing ? 1 : 0;
}

void ob_breaker_probe(struct ob_breaker *breaker)
{
	breaker->probing = breaker->state == OB_BREAKER_HALF_OPEN;
}

void ob_breaker_unprobe(struct ob_breaker *breaker)
{
	breaker->probing = false;
}

static void reopen(struct ob_breaker *breaker, int64_t now_us)
{
	breaker->state = OB_BREAKER_OPEN;
	breaker->probing = false;
	breaker->open_until_us = now_us + ob_backoff_next_ms(&breaker->backoff) * 1000;
}

bool ob_breaker_success(struct ob_breaker *breaker)
{
	bool was_closed = breaker->state == OB_BREAKER_CLOSED;

	/*
	 * A late success of something sent before the outage says nothing about
	 * now: only the probe's closes.
	 */
	if (breaker->state == OB_BREAKER_OPEN)
		return false;
	if (breaker->state == OB_BREAKER_HALF_OPEN && !breaker->probing)
		return false;
	breaker->state = OB_BREAKER_CLOSED;
	breaker->alarm = false;
	breaker->probing = false;
	ob_backoff_reset(&breaker->backoff);
	return !was_closed;
}

bool ob_breaker_down(struct ob_breaker *breaker, int64_t now_us)
{
	bool was_closed = breaker->state == OB_BREAKER_CLOSED;

	/* All that was in flight comes back as down: that is one outage, not many (P5). */
	if (breaker->state == OB_BREAKER_OPEN)
		return false;
	reopen(breaker, now_us);
	return was_closed;
}

bool ob_breaker_answer(struct ob_breaker *breaker, int64_t now_us)
{
	if (breaker->state != OB_BREAKER_HALF_OPEN || !breaker->probing)
		return false;
	if (!breaker->alarm)
		return ob_breaker_success(breaker);
	reopen(breaker, now_us);
	return false;
}

void ob_breaker_note(struct ob_breaker *breaker, uint64_t key, bool failed, int64_t now_us)
{
	breaker->recent[breaker->recent_next] = (struct ob_breaker_outcome){ key, now_us, failed };
	breaker->recent_next = (breaker->recent_next + 1) % OB_BREAKER_RECENT;
	if (breaker->recent_count < OB_BREAKER_RECENT)
		breaker->recent_count++;
}

/* The outcome `back` steps before the newest (0: the newest itself). */
static const struct ob_breaker_outcome *outcome_at(const struct ob_breaker *breaker, uint32_t back)
{
	uint32_t i = breaker->recent_next + 2 * OB_BREAKER_RECENT - 1 - back;

	return &breaker->recent[i % OB_BREAKER_RECENT];
}

/* A key counts once, with its newest outcome. */
static bool has_newer(const struct ob_breaker *breaker, uint32_t back)
{
	uint64_t key = outcome_at(breaker, back)->key;

	for (uint32_t i = 0; i < back; i++) {
		if (outcome_at(breaker, i)->key == key)
			return true;
	}
	return false;
}

bool ob_breaker_is_mass(const struct ob_breaker *breaker, int64_t now_us)
{
	uint32_t keys = 0, failed = 0;

	for (uint32_t back = 0; back < breaker->recent_count; back++) {
		const struct ob_breaker_outcome *o = outcome_at(breaker, back);

		if (now_us - o->at_us > (int64_t)OB_BREAKER_RECENT_MS * 1000)
			break;
		if (has_newer(breaker, back))
			continue;
		keys++;
		failed += o->failed;
	}
	return failed >= OB_BREAKER_MASS_KEYS && failed * 2 > keys;
}

bool ob_breaker_mass(struct ob_breaker *breaker, int64_t now_us)
{
	bool is_new = !breaker->alarm;

	if (breaker->state != OB_BREAKER_OPEN)
		reopen(breaker, now_us);
	breaker->alarm = true;
	breaker->recent_count = 0;
	return is_new;
}

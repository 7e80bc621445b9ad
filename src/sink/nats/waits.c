/* SPDX-License-Identifier: MIT */
/*
 * The messages that wait for an acknowledgement. Acknowledgements come in any order and may
 * never come, so each has a serial number of its own in its reply subject.
 */
#include "sink/nats/nats.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SLOT_BITS = 16 };

int ob_nats_waits_init(struct ob_nats_waits *waits, uint32_t window, struct ob_err *err)
{
	waits->all = calloc(window, sizeof(*waits->all));
	if (!waits->all)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating a window");
	waits->window = window;
	ob_nats_waits_clear(waits);
	return 0;
}

void ob_nats_waits_done(struct ob_nats_waits *waits)
{
	free(waits->all);
	*waits = (struct ob_nats_waits){ 0 };
}

void ob_nats_waits_clear(struct ob_nats_waits *waits)
{
	waits->free = waits->first = waits->last = waits->done = waits->done_end = NULL;
	waits->count = 0;
	for (uint32_t i = 0; i < waits->window; i++) {
		waits->all[i].waiting = false;
		waits->all[i].next = waits->free;
		waits->free = &waits->all[i];
	}
}

struct ob_nats_wait *ob_nats_waits_next(struct ob_nats_waits *waits)
{
	if (waits->free)
		waits->free->serial = waits->next_serial & (UINT64_MAX >> SLOT_BITS);
	return waits->free;
}

void ob_nats_waits_add(struct ob_nats_waits *waits, struct ob_nats_wait *wait,
		       const struct ob_delivery *delivery, int64_t now_us)
{
	waits->free = wait->next;
	waits->next_serial++;
	wait->tag = delivery->tag;
	wait->subject = delivery->destination;
	wait->sent_us = now_us;
	wait->waiting = true;
	wait->next = NULL;
	wait->prev = waits->last;
	if (waits->last)
		waits->last->next = wait;
	else
		waits->first = wait;
	waits->last = wait;
	waits->count++;
}

void ob_nats_wait_token(const struct ob_nats_waits *waits, const struct ob_nats_wait *wait,
			char out[OB_NATS_TOKEN_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	uint64_t value = wait->serial << SLOT_BITS | (uint64_t)(wait - waits->all);

	for (size_t i = OB_NATS_TOKEN_SIZE - 1; i-- > 0; value >>= 4)
		out[i] = hex[value & 15];
	out[OB_NATS_TOKEN_SIZE - 1] = '\0';
}

struct ob_nats_wait *ob_nats_waits_find(struct ob_nats_waits *waits, struct ob_str token)
{
	uint64_t value = 0;

	if (token.n != OB_NATS_TOKEN_SIZE - 1)
		return NULL;
	for (size_t i = 0; i < token.n; i++) {
		char c = token.p[i];
		bool digit = c >= '0' && c <= '9';

		if (!digit && !(c >= 'a' && c <= 'f'))
			return NULL;
		value = value << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
	}
	uint64_t slot = value & ((1U << SLOT_BITS) - 1);
	if (slot >= waits->window)
		return NULL;
	struct ob_nats_wait *wait = &waits->all[slot];
	return wait->waiting && wait->serial == value >> SLOT_BITS ? wait : NULL;
}

void ob_nats_wait_over(struct ob_nats_waits *waits, struct ob_nats_wait *wait,
		       const struct ob_err *err)
{
	if (wait->prev)
		wait->prev->next = wait->next;
	else
		waits->first = wait->next;
	if (wait->next)
		wait->next->prev = wait->prev;
	else
		waits->last = wait->prev;
	waits->count--;
	wait->waiting = false;
	wait->next = NULL;
	wait->err.kind = OB_ERR_NONE;
	if (err)
		wait->err = *err;
	if (waits->done)
		waits->done_end->next = wait;
	else
		waits->done = wait;
	waits->done_end = wait;
}

void ob_nats_waits_fail(struct ob_nats_waits *waits, const struct ob_err *err)
{
	while (waits->first)
		ob_nats_wait_over(waits, waits->first, err);
}

int ob_nats_waits_outcomes(struct ob_nats_waits *waits, struct ob_ack *acks, size_t max)
{
	size_t n = 0;

	for (; n < max && waits->done; n++) {
		struct ob_nats_wait *wait = waits->done;

		acks[n].tag = wait->tag;
		acks[n].err = wait->err.kind == OB_ERR_NONE ? OB_ERR_INIT : wait->err;
		waits->done = wait->next;
		wait->next = waits->free;
		waits->free = wait;
	}
	return (int)n;
}

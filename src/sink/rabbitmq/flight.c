/* SPDX-License-Identifier: MIT */
/*
 * Published and not yet confirmed, by delivery tag, and the outcomes that wait to be fetched.
 * The broker numbers the messages of a channel from 1 and confirms them in any order, one
 * by one or all up to a number. Every slot is passed once, so a confirm costs the same however
 * many wait.
 */
#include "sink/rabbitmq/rabbitmq.h"

#include <assert.h>
#include <stdlib.h>

int ob_rabbitmq_flight_init(struct ob_rabbitmq_flight *f, uint32_t window, struct ob_err *err)
{
	uint64_t size = 16;

	while (size < (uint64_t)window * OB_RABBITMQ_SPAN)
		size *= 2;
	f->slots = calloc(size, sizeof(*f->slots));
	f->outcomes = calloc(window, sizeof(*f->outcomes));
	f->mask = size - 1;
	f->window = window;
	if (!f->slots || !f->outcomes) {
		ob_rabbitmq_flight_done(f);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating a window of %u",
				  window);
	}
	ob_rabbitmq_flight_clear(f);
	return 0;
}

void ob_rabbitmq_flight_done(struct ob_rabbitmq_flight *f)
{
	free(f->slots);
	free(f->outcomes);
	*f = (struct ob_rabbitmq_flight){ 0 };
}

void ob_rabbitmq_flight_restart(struct ob_rabbitmq_flight *f)
{
	assert(f->waiting == 0);
	f->first = f->next = 1;
	f->confirmed = f->returned = 0;
}

void ob_rabbitmq_flight_clear(struct ob_rabbitmq_flight *f)
{
	if (!f->slots)
		return;
	for (uint64_t tag = f->first; tag < f->next; tag++)
		f->slots[tag & f->mask].waiting = false;
	f->waiting = f->head = f->count = 0;
	ob_rabbitmq_flight_restart(f);
}

bool ob_rabbitmq_flight_is_full(const struct ob_rabbitmq_flight *f)
{
	return f->waiting + f->count >= f->window || f->next - f->first > f->mask;
}

void ob_rabbitmq_flight_add(struct ob_rabbitmq_flight *f, const struct ob_rabbitmq_slot *slot)
{
	struct ob_rabbitmq_slot *at = &f->slots[f->next & f->mask];

	assert(!ob_rabbitmq_flight_is_full(f) && !at->waiting);
	*at = *slot;
	at->waiting = true;
	f->waiting++;
	f->next++;
}

struct ob_rabbitmq_slot *ob_rabbitmq_flight_oldest(struct ob_rabbitmq_flight *f)
{
	while (f->first < f->next && !f->slots[f->first & f->mask].waiting)
		f->first++;
	return f->first < f->next ? &f->slots[f->first & f->mask] : NULL;
}

struct ob_rabbitmq_slot *ob_rabbitmq_flight_at(const struct ob_rabbitmq_flight *f,
					       uint64_t delivery_tag)
{
	struct ob_rabbitmq_slot *slot = &f->slots[delivery_tag & f->mask];

	return delivery_tag >= f->first && delivery_tag < f->next && slot->waiting ? slot : NULL;
}

/* They come back in the order of their sends, so the search goes on where the last one ended. */
void ob_rabbitmq_flight_returned(struct ob_rabbitmq_flight *f, const struct ob_uuid *id,
				 uint16_t code)
{
	uint64_t from = f->returned + 1 > f->first ? f->returned + 1 : f->first;
	uint64_t span = f->next - f->first;

	for (uint64_t i = 0; i < span; i++) {
		uint64_t tag = from + i < f->next ? from + i : from + i - span;
		struct ob_rabbitmq_slot *slot = ob_rabbitmq_flight_at(f, tag);

		if (slot && !slot->returned && ob_uuid_eq(&slot->id, id)) {
			slot->returned = code;
			f->returned = tag;
			return;
		}
	}
}

void ob_rabbitmq_flight_finish(struct ob_rabbitmq_flight *f, struct ob_rabbitmq_slot *slot,
			       const struct ob_err *err)
{
	struct ob_ack *ack = &f->outcomes[(f->head + f->count) % f->window];

	assert(slot->waiting && f->count < f->window);
	slot->waiting = false;
	f->waiting--;
	f->count++;
	ack->tag = slot->tag;
	ack->err = err ? *err : OB_ERR_INIT;
}

int ob_rabbitmq_flight_outcomes(struct ob_rabbitmq_flight *f, struct ob_ack *acks, size_t max)
{
	size_t n = 0;

	for (; n < max && f->count > 0; n++, f->count--) {
		acks[n] = f->outcomes[f->head];
		f->head = (f->head + 1) % f->window;
	}
	return (int)n;
}

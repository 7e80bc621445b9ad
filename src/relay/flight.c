/* SPDX-License-Identifier: MIT */
/* What a worker has in memory: taking messages in and sending them. */
#include "relay/flight.h"

#include "relay/flight_impl.h"

#include <assert.h>

static uint32_t power_of_two(uint32_t at_least)
{
	uint32_t n = 16;

	while (n < at_least)
		n *= 2;
	return n;
}

int ob_flight_init(struct ob_flight *flight, const struct ob_flight_conf *conf, struct ob_err *err)
{
	uint32_t max = conf->max_messages;
	uint32_t keys = max, buckets = power_of_two(2 * keys);

	*flight = (struct ob_flight){ .conf = *conf };
	link_init(&flight->free_entries);
	link_init(&flight->free_keys);
	link_init(&flight->ready);
	link_init(&flight->sent);
	link_init(&flight->judge);
	link_init(&flight->outcomes);
	link_init(&flight->settling);
	flight->bucket_mask = buckets - 1;
	flight->entries = calloc(max, sizeof(*flight->entries));
	flight->keys = calloc(keys, sizeof(*flight->keys));
	flight->buckets = calloc(buckets, sizeof(struct ob_flight_key *));
	flight->seqs = calloc(max, sizeof(*flight->seqs));
	for (size_t i = 0; i < OB_FLIGHT_BATCHES; i++)
		ob_batch_init(&flight->batches[i].batch);
	if (!flight->entries || !flight->keys || !flight->buckets || !flight->seqs) {
		ob_flight_done(flight);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL,
				  "allocating room for %u messages", max);
	}
	for (uint32_t i = 0; i < max; i++) {
		link_init(&flight->entries[i].by_key);
		link_append(&flight->free_entries, &flight->entries[i].by_state);
	}
	for (uint32_t i = 0; i < keys; i++)
		link_append(&flight->free_keys, &flight->keys[i].idle);
	return 0;
}

void ob_flight_done(struct ob_flight *flight)
{
	for (uint32_t i = 0; flight->entries && i < flight->conf.max_messages; i++)
		free(flight->entries[i].error);
	for (size_t i = 0; i < OB_FLIGHT_BATCHES; i++)
		ob_batch_done(&flight->batches[i].batch);
	free(flight->entries);
	free(flight->keys);
	free(flight->buckets);
	free(flight->seqs);
	*flight = (struct ob_flight){ 0 };
}

/* ---- entries --------------------------------------------------------- */

static size_t size_of(const struct ob_message *message)
{
	return message->payload.n + message->headers.n;
}

static void batch_unref(struct ob_flight_batch *batch)
{
	assert(batch->refs > 0);
	batch->refs--;
}

void ob_flight_detach(struct ob_flight *flight, struct ob_entry *entry)
{
	switch (entry->state) {
	case OB_ENTRY_QUEUED:
		flight->queued--;
		break;
	case OB_ENTRY_SENT:
	case OB_ENTRY_FAILED:
		flight->in_flight--;
		flight->sent_of_partition[entry->message->partition]--;
		break;
	case OB_ENTRY_JUDGE:
	case OB_ENTRY_OUTCOME:
	case OB_ENTRY_SETTLING:
		flight->unsettled--;
		break;
	case OB_ENTRY_FREE:
		break;
	}
	entry->ready = false;
	link_remove(&entry->by_state);
	link_remove(&entry->by_key);
}

void ob_flight_free_entry(struct ob_flight *flight, struct ob_entry *entry)
{
	flight->count--;
	flight->bytes -= size_of(entry->message);
	flight->of_partition[entry->message->partition]--;
	flight->spills -= entry->spill != OB_SPILL_NONE;
	entry->spill = OB_SPILL_NONE;
	batch_unref(entry->batch);
	free(entry->error);
	entry->error = NULL;
	entry->state = OB_ENTRY_FREE;
	entry->key = NULL;
	entry->message = NULL;
	link_append(&flight->free_entries, &entry->by_state);
}

/* ---- reading --------------------------------------------------------- */

struct ob_flight_batch *ob_flight_read_begin(struct ob_flight *flight)
{
	for (size_t i = 0; i < OB_FLIGHT_BATCHES; i++) {
		struct ob_flight_batch *batch = &flight->batches[i];

		if (batch->refs > 0)
			continue;
		batch->refs = 1;
		return batch;
	}
	return NULL;
}

void ob_flight_read_end(struct ob_flight_batch *batch)
{
	batch_unref(batch);
}

bool ob_flight_has_key(const struct ob_flight *flight, const struct ob_message *message)
{
	switch (flight->conf.ordering) {
	case OB_ORDER_KEY:
		return message->key.p != NULL;
	case OB_ORDER_PARTITION:
		return true;
	case OB_ORDER_NONE:
		/* A sink that keeps order fails what comes after a failure: know who was first. */
		return flight->conf.pipelined && message->key.p != NULL;
	}
	return false;
}

static struct ob_entry *new_entry(struct ob_flight *flight, struct ob_flight_batch *batch,
				  struct ob_message *message, uint64_t span)
{
	struct ob_entry *entry = entry_of_state(flight->free_entries.next);

	link_remove(&entry->by_state);
	entry->message = message;
	entry->batch = batch;
	entry->span = span;
	entry->order = ++flight->arrivals;
	entry->ready = entry->counted = false;
	entry->spill = OB_SPILL_NONE;
	entry->delivery = (struct ob_delivery){ 0 };
	entry->delay_ms = 0;
	batch->refs++;
	flight->count++;
	flight->bytes += size_of(message);
	flight->of_partition[message->partition]++;
	return entry;
}

bool ob_flight_take_in(struct ob_flight *flight, struct ob_flight_batch *batch,
		       struct ob_message *message, uint64_t span, int64_t now_us)
{
	struct ob_flight_key *key = NULL;

	if (link_empty(&flight->free_entries) || message->partition >= OB_FLIGHT_PARTITIONS)
		return false;
	if (ob_flight_has_key(flight, message)) {
		key = ob_flight_key_get(flight, ob_flight_key_hash(flight, message), true);
		if (!key)
			return false;
	}

	struct ob_entry *entry = new_entry(flight, batch, message, span);

	entry->key = key;
	if (!message->excepted && message->delayed) {
		ob_flight_to_outcome(flight, entry, OB_OUTCOME_DELAY, now_us);
	} else if (!message->excepted && (message->held || (key && key->parking > 0))) {
		/*
		 * There is an exception before it, or one of its key is about to become one: the
		 * read may not have seen it yet. Sent now, it would overtake (P3).
		 */
		ob_flight_to_outcome(flight, entry, OB_OUTCOME_PARK, now_us);
	} else {
		ob_flight_enqueue(flight, entry);
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

size_t ob_flight_exceptions(struct ob_flight *flight, const int64_t **ret_seqs)
{
	size_t n = 0;

	for (uint32_t i = 0; flight->count > 0 && i < flight->conf.max_messages; i++) {
		const struct ob_entry *entry = &flight->entries[i];

		/* What is settled, or was when the reply got lost, may be one before we know. */
		if (entry->state != OB_ENTRY_FREE &&
		    (entry->message->excepted || entry->spill != OB_SPILL_NONE ||
		     entry->state >= OB_ENTRY_OUTCOME))
			flight->seqs[n++] = entry->message->seq;
	}
	if (n > 1)
		qsort(flight->seqs, n, sizeof(*flight->seqs), by_value);
	*ret_seqs = flight->seqs;
	return n;
}

/* ---- sending --------------------------------------------------------- */

struct ob_entry *ob_flight_next(struct ob_flight *flight, uint32_t skip)
{
	struct ob_link *at = flight->ready.next;

	if (link_empty(&flight->ready))
		return NULL;
	for (; skip > 0; skip--)
		at = at->next == &flight->ready ? flight->ready.next : at->next;

	struct ob_entry *entry = entry_of_state(at);

	return entry->key ? entry_of_key(entry->key->queue.next) : entry;
}

void ob_flight_sent(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	assert(entry->state == OB_ENTRY_QUEUED);
	ob_flight_detach(flight, entry);
	entry->state = OB_ENTRY_SENT;
	entry->about_it = entry->timed_out = false;
	entry->since_us = now_us;
	flight->in_flight++;
	flight->sent_of_partition[entry->message->partition]++;
	link_append(&flight->sent, &entry->by_state);
	if (entry->key) {
		link_append(&entry->key->sent, &entry->by_key);
		ob_flight_key_check(flight, entry->key);
	}
}

uint64_t ob_flight_tag(const struct ob_flight *flight, const struct ob_entry *entry)
{
	return (uint64_t)entry->serial << 32 | (uint64_t)(entry - flight->entries);
}

struct ob_entry *ob_flight_find(struct ob_flight *flight, uint64_t tag)
{
	uint32_t index = (uint32_t)tag;

	if (index >= flight->conf.max_messages)
		return NULL;

	struct ob_entry *entry = &flight->entries[index];

	return entry->state == OB_ENTRY_SENT && entry->serial == (uint32_t)(tag >> 32) ? entry
										       : NULL;
}

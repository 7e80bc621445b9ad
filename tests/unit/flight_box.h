/* SPDX-License-Identifier: MIT */
/* A flight and a short language for what is in it, for the tests of the flight; all inline. */
#ifndef OB_TESTS_FLIGHT_BOX_H
#define OB_TESTS_FLIGHT_BOX_H

#include "relay/flight.h"

#include <check.h>
#include <ctype.h>

enum { MAX = 32 };

static struct ob_flight flight;
static int64_t last_seq;
static uint64_t last_span;

static inline void make_conf(struct ob_flight_conf conf)
{
	struct ob_err err = OB_ERR_INIT;

	conf.max_messages = MAX;
	conf.max_bytes = 1 << 20;
	ck_assert_int_eq(ob_flight_init(&flight, &conf, &err), 0);
}

static inline void make(bool pipelined, enum ob_ordering ordering)
{
	make_conf((struct ob_flight_conf){ .pipelined = pipelined, .ordering = ordering });
}

/* A letter is a message of that key ('-': none); after it '!': held, '~': delayed, '*': an
 * exception that waits. They are numbered from 1 on. */
static inline void fill(struct ob_batch *batch, const char *text)
{
	ob_batch_reset(batch);
	for (; *text; text++) {
		struct ob_message *message;

		if (!isalpha((unsigned char)*text) && *text != '-') {
			message = &batch->messages[batch->count - 1];
			message->held = message->held || *text == '!';
			message->delayed = message->delayed || *text == '~';
			message->excepted = message->excepted || *text == '*';
			continue;
		}
		message = ob_batch_add(batch);
		message->seq = ++last_seq;
		message->partition = (uint32_t)(*text - 'a') % 4;
		message->payload = OB_STR("12345");
		message->key = *text == '-' ? OB_STR_NULL : (struct ob_str){ text, 1 };
		message->available_at_us = 1000;
	}
}

/* Take the batch in, as one span; returns how many there was room for. */
static inline uint32_t take_in(struct ob_flight_batch *batch)
{
	uint32_t n = 0;

	last_span++;
	while (n < batch->batch.count &&
	       ob_flight_take_in(&flight, batch, &batch->batch.messages[n],
				 batch->batch.messages[n].excepted ? 0 : last_span, 0))
		n++;
	ob_flight_read_end(batch);
	return n;
}

static inline void read_in(const char *text)
{
	struct ob_flight_batch *batch = ob_flight_read_begin(&flight);

	ck_assert_ptr_nonnull(batch);
	fill(&batch->batch, text);
	ck_assert_uint_eq(take_in(batch), batch->batch.count);
}

/* The entry of a message. */
static inline struct ob_entry *at(int64_t seq)
{
	for (uint32_t i = 0; i < MAX; i++) {
		struct ob_entry *entry = &flight.entries[i];

		if (entry->state != OB_ENTRY_FREE && entry->message->seq == seq)
			return entry;
	}
	return NULL;
}

static inline void add_name(char *text, size_t size, const struct ob_entry *entry)
{
	size_t n = strlen(text);

	(void)snprintf(text + n, size - n, "%s%c%d", n > 0 ? " " : "",
		       entry->message->key.p ? entry->message->key.p[0] : '-',
		       (int)entry->message->seq);
}

/* Send all that may go: "a1 a2 b3". */
static inline const char *send_all(void)
{
	static char text[512];

	text[0] = '\0';
	for (struct ob_entry *entry; (entry = ob_flight_next(&flight, 0));) {
		ob_flight_sent(&flight, entry, 0);
		add_name(text, sizeof(text), entry);
	}
	return text;
}

/* What is to be settled, by number: "a1 retry, a2 park". */
static inline const char *outcomes(void)
{
	static const char *const kinds[] = {
		"published", "retry", "dead", "park", "delay", "spill"
	};
	static char text[512];

	text[0] = '\0';
	for (int64_t seq = 1; seq <= last_seq; seq++) {
		const struct ob_entry *entry = at(seq);
		size_t n = strlen(text);

		if (!entry || entry->state != OB_ENTRY_OUTCOME)
			continue;
		(void)snprintf(text + n, sizeof(text) - n, "%s%c%d %s", n > 0 ? ", " : "",
			       entry->message->key.p ? entry->message->key.p[0] : '-',
			       (int)entry->message->seq, kinds[entry->outcome]);
	}
	return text;
}

static inline void settle_begin_all(void)
{
	for (struct ob_entry *entry; (entry = ob_flight_outcome(&flight));)
		ob_flight_settle_begin(&flight, entry);
}

static inline void settle_end_all(void)
{
	while (ob_flight_settling(&flight)) {
		for (uint32_t i = 0; i < MAX; i++) {
			if (flight.entries[i].state == OB_ENTRY_SETTLING)
				ob_flight_settled(&flight, &flight.entries[i]);
		}
	}
}

static inline void settle_all(void)
{
	settle_begin_all();
	settle_end_all();
}

static inline void refuse(int64_t seq, enum ob_err_kind kind)
{
	ob_flight_fail(&flight, at(seq), kind, "no", 0);
}

/* The failure that is to be judged is this one's. */
static inline struct ob_entry *judged(int64_t seq)
{
	struct ob_entry *entry = ob_flight_judge(&flight);

	ck_assert_ptr_nonnull(entry);
	ck_assert_int_eq(entry->message->seq, seq);
	return entry;
}

static inline void retry(int64_t seq)
{
	refuse(seq, OB_ERR_RETRY);
	ob_flight_decide(&flight, judged(seq), OB_OUTCOME_RETRY, 1000, 0);
}

static inline void die(int64_t seq)
{
	refuse(seq, OB_ERR_REJECT);
	ob_flight_decide(&flight, judged(seq), OB_OUTCOME_DEAD, 0, 0);
}

static inline void ok(int64_t seq)
{
	ob_flight_ok(&flight, at(seq), 0);
}

static inline void forget_all(void)
{
	for (uint32_t p = 0; p < 4; p++)
		ob_flight_drop_partition(&flight, p);
}

/* Everything is back where it was. */
static inline void done(void)
{
	ck_assert_uint_eq(flight.count, 0);
	ck_assert_uint_eq(flight.bytes, 0);
	ck_assert_uint_eq(flight.held_keys, 0);
	ck_assert_uint_eq(flight.spills, 0);
	ck_assert_uint_eq(flight.queued + flight.in_flight + flight.unsettled, 0);
	for (size_t i = 0; i < OB_FLIGHT_BATCHES; i++)
		ck_assert_uint_eq(flight.batches[i].refs, 0);
	for (uint32_t i = 0; i < OB_FLIGHT_PARTITIONS; i++)
		ck_assert_uint_eq(flight.of_partition[i] + flight.sent_of_partition[i], 0);
	for (uint32_t i = 0; i <= flight.bucket_mask; i++)
		ck_assert_ptr_null(flight.buckets[i]);
	ob_flight_done(&flight);
}
/* As the worker does: what is wanted is settled. */
static inline uint32_t settle_spills(void)
{
	uint32_t n = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < MAX; i++) {
			struct ob_entry *entry = &flight.entries[i];

			if (pass == 0 && entry->spill == OB_SPILL_WANTED) {
				entry->spill = OB_SPILL_SETTLING;
				n++;
			} else if (pass == 1 && entry->spill == OB_SPILL_SETTLING) {
				ob_flight_settled(&flight, entry);
			}
		}
	}
	return n;
}

static inline enum ob_change_kind change_of(int64_t seq)
{
	const struct ob_entry *entry = at(seq);
	struct ob_decide decide = { .ordering = flight.conf.ordering };
	struct ob_change change;
	bool promote;

	ck_assert(ob_exception_decide(&decide, entry->message, entry->outcome, 0, OB_STR("no"),
				      &change, &promote));
	return change.kind;
}

static inline const char *spilled(void)
{
	static char text[256];

	text[0] = '\0';
	for (int64_t seq = 1; seq <= last_seq; seq++) {
		if (at(seq) && at(seq)->spill == OB_SPILL_WANTED)
			add_name(text, sizeof(text), at(seq));
	}
	return text;
}

#endif

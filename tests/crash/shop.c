/* SPDX-License-Identifier: MIT */
/* Producers and their books. */
#include "shop.h"

#include "base/clock.h"
#include "outbox/outbox.h"

#include <check.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROLLBACK_PC = 15, LOOK_MS = 20, URGENT = 5, LATER = -3 };

enum what { ORDER, POISON, DOOMED };

static const char *const event_types[] = { "OrderPlaced", "Poison", "Doomed" };

struct event {
	uint32_t customer;
	struct outbox_id id;
	enum what what;
	int32_t priority;
	uint32_t delay_ms;
	int64_t pushed_us; /* of the real clock, before it was */
};

/* One transaction while it is written. */
struct shop_order {
	size_t count;
	struct event events[SHOP_EVENTS_MAX];
	bool commit;
};

void books_init(struct books *books)
{
	*books = (struct books){ .keys = SHOP_CUSTOMERS * SHOP_LANES };
	(void)pthread_mutex_init(&books->lock, NULL);
	for (int i = 0; i < SHOP_CUSTOMERS; i++)
		(void)pthread_mutex_init(&books->customer[i], NULL);
}

void books_done(struct books *books)
{
	for (int i = 0; i < SHOP_CUSTOMERS; i++)
		(void)pthread_mutex_destroy(&books->customer[i]);
	(void)pthread_mutex_destroy(&books->lock);
	ob_audit_journal_done(&books->journal);
	free(books->dues);
}

int shop_open(struct shop *shop, struct books *books, const char *url, uint64_t seed,
	      struct ob_err *err)
{
	const struct ob_store_conf conf = { .url = url };

	*shop = (struct shop){ .books = books, .rollback_pc = ROLLBACK_PC };
	ob_rng_init(&shop->rng, seed);
	return ob_store_connect(&conf, &shop->store, err);
}

void shop_close(struct shop *shop)
{
	ob_store_free(shop->store);
	shop->store = NULL;
}

/* ---- what is in a transaction ------------------------------------------- */

static bool falls(struct shop *shop, uint32_t pc)
{
	return pc > 0 && ob_rng_below(&shop->rng, 100) < pc;
}

static void draw_event(struct shop *shop, struct event *event)
{
	const struct shop_mix *mix = &shop->mix;

	*event = (struct event){
		.customer = (uint32_t)ob_rng_below(&shop->rng, SHOP_CUSTOMERS),
		.id = outbox_id_new(),
	};
	if (mix->blocked > 0 && event->customer == (uint32_t)mix->blocked)
		return;
	if (falls(shop, mix->poison_pc))
		event->what = POISON;
	else if (falls(shop, mix->doomed_pc))
		event->what = DOOMED;
	if (falls(shop, mix->lane_pc))
		event->priority = ob_rng_below(&shop->rng, 2) ? URGENT : LATER;
	if (falls(shop, mix->delayed_pc))
		event->delay_ms = 1 + (uint32_t)ob_rng_below(&shop->rng, mix->delay_ms);
}

static void draw(struct shop *shop, size_t count, struct shop_order *order)
{
	*order = (struct shop_order){ .count = count };
	for (size_t i = 0; i < count; i++)
		draw_event(shop, &order->events[i]);
}

static bool is_in(const struct shop_order *order, uint32_t customer)
{
	bool found = false;

	for (size_t i = 0; i < order->count; i++)
		found = found || order->events[i].customer == customer;
	return found;
}

/* In the order of their numbers, so that two producers cannot wait for each other. */
static void lock_customers(struct books *books, const struct shop_order *order)
{
	for (uint32_t c = 0; c < SHOP_CUSTOMERS; c++) {
		if (is_in(order, c))
			(void)pthread_mutex_lock(&books->customer[c]);
	}
}

static void unlock_customers(struct books *books, const struct shop_order *order)
{
	for (uint32_t c = 0; c < SHOP_CUSTOMERS; c++) {
		if (is_in(order, c))
			(void)pthread_mutex_unlock(&books->customer[c]);
	}
}

/* ---- the books ----------------------------------------------------------- */

static int note_due(struct books *books, const struct event *event, struct ob_err *err)
{
	if (books->due_count == books->due_cap) {
		size_t cap = books->due_cap ? 2 * books->due_cap : 1024;
		struct shop_due *dues = realloc(books->dues, cap * sizeof(*dues));

		if (!dues)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "noting a time");
		books->dues = dues;
		books->due_cap = cap;
	}
	struct shop_due *due = &books->dues[books->due_count++];
	(void)ob_uuid_parse(ob_str(event->id.text), &due->id);
	due->due_us = event->pushed_us + event->delay_ms * INT64_C(1000);
	return 0;
}

/* Messages are in order with those of their customer and lane; others with nobody. */
static uint32_t key_of(struct books *books, const struct shop_mix *mix, const struct event *event)
{
	uint32_t lane = event->priority == 0 ? 0 : (event->priority > 0 ? 1 : 2);

	if (event->delay_ms > 0 && !mix->delayed_holds)
		return books->keys++;
	return event->customer * SHOP_LANES + lane;
}

static int note_event(struct shop *shop, const struct event *event, bool committed,
		      struct ob_err *err)
{
	struct books *books = shop->books;
	struct ob_audit_entry entry = { .committed = committed && event->what == ORDER };
	int r = 0;

	books->sequence[event->customer] += committed;
	if (event->what == DOOMED)
		return 0;
	books->poison += committed && event->what == POISON;
	books->of_blocked += committed && shop->mix.blocked > 0 &&
			     event->customer == (uint32_t)shop->mix.blocked;
	(void)ob_uuid_parse(ob_str(event->id.text), &entry.id);
	entry.key = key_of(books, &shop->mix, event);
	if (entry.committed && event->delay_ms > 0)
		r = note_due(books, event, err);
	return r < 0 ? r : ob_audit_note(&books->journal, &entry, err);
}

static int note(struct shop *shop, const struct shop_order *order, const bool *committed,
		struct ob_err *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&shop->books->lock);
	for (size_t i = 0; i < order->count && r == 0; i++)
		r = note_event(shop, &order->events[i], committed[i], err);
	(void)pthread_mutex_unlock(&shop->books->lock);
	return r;
}

/* ---- one transaction ---------------------------------------------------- */

static int push(struct shop *shop, struct shop_order *order, struct ob_err *err)
{
	struct outbox_message messages[SHOP_EVENTS_MAX];
	char names[SHOP_EVENTS_MAX][16];
	int64_t sequence[SHOP_CUSTOMERS];
	size_t index;

	memcpy(sequence, shop->books->sequence, sizeof(sequence));
	for (size_t i = 0; i < order->count; i++) {
		struct event *event = &order->events[i];

		event->pushed_us = ob_clock_real_us(&ob_clock_system);
		(void)snprintf(names[i], sizeof(names[i]), "%03" PRIu32, event->customer);
		messages[i] = (struct outbox_message){
			.id = event->id.text,
			.aggregate_type = "customer",
			.aggregate_id = names[i],
			.event_type = event_types[event->what],
			.payload = "{\"total\":1}",
			.priority = event->priority,
			.delay_ms = event->delay_ms,
			.sequence_number = ++sequence[event->customer],
		};
	}
	return ob_store_tx_push(shop->store, messages, order->count, NULL, &index, err);
}

/* Is it there? Asked until there is an answer. */
static int look_up(struct shop *shop, const struct shop_order *order, int patience_ms,
		   bool *ret_committed, struct ob_err *err)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + patience_ms * INT64_C(1000), now;
	struct ob_batch batch;
	struct ob_uuid id;
	struct ob_filter filter = { .id = &id, .limit = 1 };
	int r;

	ob_batch_init(&batch);
	(void)ob_uuid_parse(ob_str(order->events[0].id.text), &id);
	while ((r = ob_store_list(shop->store, &filter, &batch, &now, err)) < 0 &&
	       err->kind == OB_ERR_DOWN && ob_clock_boot_us(&ob_clock_system) < end)
		(void)poll(NULL, 0, LOOK_MS);
	*ret_committed = batch.count > 0;
	ob_batch_done(&batch);
	return r;
}

static int transact(struct shop *shop, struct shop_order *order, int patience_ms,
		    struct ob_err *err)
{
	bool committed = order->commit, fates[SHOP_EVENTS_MAX];
	int r = ob_store_tx_begin(shop->store, err);

	if (r < 0)
		return r;
	r = push(shop, order, err);
	if (r < 0) {
		struct ob_err ignored = OB_ERR_INIT;

		(void)ob_store_tx_end(shop->store, false, &ignored);
		return r;
	}
	if (shop->hold_ms > 0)
		(void)poll(NULL, 0, shop->hold_ms);
	r = ob_store_tx_end(shop->store, order->commit, err);
	if (r < 0 && order->commit) {
		struct ob_err ignored = OB_ERR_INIT;

		(void)ob_store_tx_end(shop->store, false, &ignored);
		r = look_up(shop, order, patience_ms, &committed, err);
		if (r < 0)
			err->kind = OB_ERR_FATAL; /* to try again would not do: it may be there */
	}
	for (size_t i = 0; i < order->count; i++)
		fates[i] = committed;
	return r < 0 ? r : note(shop, order, fates, err);
}

int shop_step(struct shop *shop, int patience_ms, struct ob_err *err)
{
	struct shop_order order;

	draw(shop, 1 + (size_t)ob_rng_below(&shop->rng, SHOP_EVENTS_MAX), &order);
	order.commit = ob_rng_below(&shop->rng, 100) >= shop->rollback_pc;
	lock_customers(shop->books, &order);
	int r = transact(shop, &order, patience_ms, err);
	unlock_customers(shop->books, &order);
	return r;
}

/* ---- for others ---------------------------------------------------------- */

struct shop_order *shop_begin(struct shop *shop, size_t events)
{
	struct shop_order *order = malloc(sizeof(*order));

	ck_assert(order && events <= SHOP_EVENTS_MAX);
	*order = (struct shop_order){ .count = events };
	for (size_t i = 0; i < events; i++)
		order->events[i] = (struct event){
			.customer = (uint32_t)ob_rng_below(&shop->rng, SHOP_CUSTOMERS),
			.id = outbox_id_new(),
		};
	lock_customers(shop->books, order);
	return order;
}

void shop_event(const struct shop_order *order, size_t at, uint32_t *ret_customer, char hex[33])
{
	const struct event *event = &order->events[at];
	size_t n = 0;

	*ret_customer = event->customer;
	for (const char *p = event->id.text; *p; p++) {
		if (*p != '-' && n < 32)
			hex[n++] = *p;
	}
	hex[n] = '\0';
}

int shop_end(struct shop *shop, struct shop_order *order, const bool *committed, struct ob_err *err)
{
	int r = note(shop, order, committed, err);

	unlock_customers(shop->books, order);
	free(order);
	return r;
}

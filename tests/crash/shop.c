/* SPDX-License-Identifier: MIT */
/* Producers and their books. */
#include "shop.h"

#include "outbox/outbox.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum { ROLLBACK_PC = 15, LOOK_MS = 20 };

/* One transaction while it is written. */
struct order {
	size_t count;
	uint32_t customer[SHOP_EVENTS_MAX];
	struct outbox_id id[SHOP_EVENTS_MAX];
	bool commit;
};

void books_init(struct books *books)
{
	*books = (struct books){ 0 };
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

/* ---- one transaction ---------------------------------------------------- */

static void draw(struct shop *shop, struct order *order)
{
	*order = (struct order){
		.count = 1 + (size_t)ob_rng_below(&shop->rng, SHOP_EVENTS_MAX),
		.commit = ob_rng_below(&shop->rng, 100) >= shop->rollback_pc,
	};
	for (size_t i = 0; i < order->count; i++) {
		order->customer[i] = (uint32_t)ob_rng_below(&shop->rng, SHOP_CUSTOMERS);
		order->id[i] = outbox_id_new();
	}
}

static bool is_in(const struct order *order, uint32_t customer)
{
	bool found = false;

	for (size_t i = 0; i < order->count; i++)
		found = found || order->customer[i] == customer;
	return found;
}

/* In the order of their numbers, so that two producers cannot wait for each other. */
static void lock_customers(struct books *books, const struct order *order)
{
	for (uint32_t c = 0; c < SHOP_CUSTOMERS; c++) {
		if (is_in(order, c))
			(void)pthread_mutex_lock(&books->customer[c]);
	}
}

static void unlock_customers(struct books *books, const struct order *order)
{
	for (uint32_t c = 0; c < SHOP_CUSTOMERS; c++) {
		if (is_in(order, c))
			(void)pthread_mutex_unlock(&books->customer[c]);
	}
}

static int push(struct shop *shop, const struct order *order, struct ob_err *err)
{
	struct outbox_message messages[SHOP_EVENTS_MAX];
	char names[SHOP_EVENTS_MAX][16];
	int64_t sequence[SHOP_CUSTOMERS];
	size_t index;

	memcpy(sequence, shop->books->sequence, sizeof(sequence));
	for (size_t i = 0; i < order->count; i++) {
		uint32_t customer = order->customer[i];

		(void)snprintf(names[i], sizeof(names[i]), "%03" PRIu32, customer);
		messages[i] = (struct outbox_message){
			.id = order->id[i].text,
			.aggregate_type = "customer",
			.aggregate_id = names[i],
			.event_type = "OrderPlaced",
			.payload = "{\"total\":1}",
			.sequence_number = ++sequence[customer],
		};
	}
	return ob_store_tx_push(shop->store, messages, order->count, NULL, &index, err);
}

/* Is it there? Asked until there is an answer. */
static int look_up(struct shop *shop, const struct order *order, int patience_ms,
		   bool *ret_committed, struct ob_err *err)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + patience_ms * INT64_C(1000), now;
	struct ob_batch batch;
	struct ob_uuid id;
	struct ob_filter filter = { .id = &id, .limit = 1 };
	int r;

	ob_batch_init(&batch);
	(void)ob_uuid_parse(ob_str(order->id[0].text), &id);
	while ((r = ob_store_list(shop->store, &filter, &batch, &now, err)) < 0 &&
	       err->kind == OB_ERR_DOWN && ob_clock_boot_us(&ob_clock_system) < end)
		(void)poll(NULL, 0, LOOK_MS);
	*ret_committed = batch.count > 0;
	ob_batch_done(&batch);
	return r;
}

static int note(struct books *books, const struct order *order, bool committed, struct ob_err *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&books->lock);
	for (size_t i = 0; i < order->count && r == 0; i++) {
		struct ob_audit_entry entry = { .key = order->customer[i], .committed = committed };

		(void)ob_uuid_parse(ob_str(order->id[i].text), &entry.id);
		r = ob_audit_note(&books->journal, &entry, err);
		books->sequence[order->customer[i]] += committed;
	}
	(void)pthread_mutex_unlock(&books->lock);
	return r;
}

static int transact(struct shop *shop, const struct order *order, int patience_ms,
		    struct ob_err *err)
{
	bool committed = order->commit;
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
	return r < 0 ? r : note(shop->books, order, committed, err);
}

int shop_step(struct shop *shop, int patience_ms, struct ob_err *err)
{
	struct order order;

	draw(shop, &order);
	lock_customers(shop->books, &order);
	int r = transact(shop, &order, patience_ms, err);
	unlock_customers(shop->books, &order);
	return r;
}

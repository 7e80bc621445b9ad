/* SPDX-License-Identifier: MIT */
/* The shop: an order is placed, paid and shipped, one transaction each. */
#include "cli/demo/orders.h"

#include "config.h"

#if HAVE_SQLITE

#include "base/cleanup.h"
#include "base/lockwait.h"
#include "base/rng.h"
#include "outbox/sqlite.h"

#include <inttypes.h>
#include <sqlite3.h>

enum { EVENTS_MAX = 3, ORDER_FIRST = 1000, TOTAL_MAX = 20000 };

static const char *const steps[] = { "OrderPlaced", "OrderPaid", "OrderShipped" };
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* A customer has one order under way at a time. */
struct customer {
	int64_t order, sequence;
	uint32_t step, total;
};

struct ob_orders {
	struct ob_orders_conf conf;
	sqlite3 *db;
	outbox *writer;
	struct ob_lock_wait busy;
	struct ob_rng rng;
	struct customer *customers;
	int64_t last_order;
	struct ob_audit_journal journal;
};

/* One event, as it stands in the transaction that is open. */
struct event {
	uint32_t key;
	struct customer before; /* to go back to when it is rolled back */
	struct outbox_id id;
};

static int db_err(const struct ob_orders *o, const char *doing, struct ob_err *err)
{
	int code = sqlite3_errcode(o->db) & 0xff;
	bool busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;

	return ob_err_set(err, OUTBOX_ESTORE, busy ? OB_ERR_DOWN : OB_ERR_FATAL, "%s: %s", doing,
			  sqlite3_errmsg(o->db));
}

static int run_sql(const struct ob_orders *o, const char *sql, struct ob_err *err)
{
	return sqlite3_exec(o->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_err(o, sql, err);
}

/* The business row: an order's own state changes together with its event. */
static int write_order(const struct ob_orders *o, uint32_t key, const struct customer *c,
		       struct ob_err *err)
{
	char sql[160];

	(void)snprintf(sql, sizeof(sql),
		       "INSERT OR REPLACE INTO orders (id, customer, step, total) "
		       "VALUES (%" PRId64 ", %" PRIu32 ", '%s', %" PRIu32 ")",
		       c->order, key, steps[c->step], c->total);
	return run_sql(o, sql, err);
}

static int push_event(struct ob_orders *o, struct event *event, struct ob_err *err)
{
	const struct customer *c = &o->customers[event->key];
	char name[32], payload[128];
	struct outbox_error why;

	(void)snprintf(name, sizeof(name), "%02" PRIu32, event->key);
	(void)snprintf(payload, sizeof(payload),
		       "{\"customer\":%" PRIu32 ",\"order\":%" PRId64 ",\"total\":%" PRIu32 "}",
		       event->key, c->order, c->total);
	struct outbox_message message = {
		.aggregate_type = "customer",
		.aggregate_id = name,
		.event_type = steps[c->step],
		.payload = payload,
		.sequence_number = c->sequence,
	};
	if (outbox_push(o->writer, &message, 1, &event->id, &why) < 0)
		return ob_err_set(err, why.status,
				  why.status == OUTBOX_EBUSY ? OB_ERR_DOWN : OB_ERR_FATAL,
				  "pushing an event: %s", why.message);
	return 0;
}

static int next_event(struct ob_orders *o, struct event *event, struct ob_err *err)
{
	event->key = (uint32_t)ob_rng_below(&o->rng, o->conf.customers);

	struct customer *c = &o->customers[event->key];

	event->before = *c;
	c->sequence++;
	if (c->order == 0 || c->step + 1 == STEPS) {
		c->order = ++o->last_order;
		c->step = 0;
		c->total = 1 + (uint32_t)ob_rng_below(&o->rng, TOTAL_MAX);
	} else {
		c->step++;
	}
	int r = write_order(o, event->key, c, err);
	return r < 0 ? r : push_event(o, event, err);
}

/* In reverse: one customer may be in it twice. */
static void undo(struct ob_orders *o, const struct event *events, size_t count)
{
	while (count-- > 0)
		o->customers[events[count].key] = events[count].before;
}

static int note_all(struct ob_orders *o, const struct event *events, size_t count, bool committed,
		    struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct ob_audit_entry entry = { .key = events[i].key, .committed = committed };

		(void)ob_uuid_parse(ob_str(events[i].id.text), &entry.id);
		r = ob_audit_note(&o->journal, &entry, err);
	}
	return r;
}

int ob_orders_step(struct ob_orders *o, struct ob_err *err)
{
	struct event events[EVENTS_MAX];
	size_t count = 1 + (size_t)ob_rng_below(&o->rng, EVENTS_MAX), done = 0;
	bool commit = ob_rng_below(&o->rng, 100) >= o->conf.rollback_pc;

	ob_lock_wait_before(&o->busy);
	int r = run_sql(o, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	ob_lock_wait_locked(&o->busy);
	while (done < count && r == 0)
		r = next_event(o, &events[done++], err);
	if (r == 0)
		r = run_sql(o, commit ? "COMMIT" : "ROLLBACK", err);
	if (r < 0) {
		struct ob_err ignored = OB_ERR_INIT;

		(void)run_sql(o, "ROLLBACK", &ignored);
		undo(o, events, done);
		return r;
	}
	ob_lock_wait_unlocked(&o->busy);
	if (!commit)
		undo(o, events, count);
	return note_all(o, events, count, commit, err);
}

const struct ob_audit_journal *ob_orders_journal(const struct ob_orders *o)
{
	return &o->journal;
}

void ob_orders_free(struct ob_orders *o)
{
	if (!o)
		return;
	outbox_close(o->writer);
	(void)sqlite3_close(o->db);
	ob_audit_journal_done(&o->journal);
	free(o->customers);
	free(o);
}

OB_DEFINE_CLEANUP(struct ob_orders *, ob_orders_free)

static struct ob_orders *orders_alloc(const struct ob_orders_conf *conf)
{
	struct ob_orders *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->conf = *conf;
	o->last_order = ORDER_FIRST;
	o->customers = calloc(conf->customers, sizeof(*o->customers));
	ob_rng_init(&o->rng, conf->seed);
	return o;
}

int ob_orders_new(const struct ob_orders_conf *conf, struct ob_orders **ret_orders,
		  struct ob_err *err)
{
	OB_CLEANUP(ob_orders_freep) struct ob_orders *o = orders_alloc(conf);
	struct outbox_error why;

	if (!o || !o->customers)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "opening the shop");
	if (sqlite3_open_v2(conf->path, &o->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return db_err(o, conf->path, err);
	o->busy.timeout_ms = conf->busy_ms;
	(void)sqlite3_busy_handler(o->db, ob_lock_wait_again, &o->busy);

	int r = run_sql(o,
			"CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, "
			"customer INTEGER, step TEXT, total INTEGER)",
			err);
	if (r < 0)
		return r;
	if (outbox_sqlite_open(o->db, NULL, &o->writer, &why) < 0)
		return ob_err_set(err, why.status, OB_ERR_FATAL, "%s: %s", conf->path, why.message);
	*ret_orders = OB_TAKE(o);
	return 0;
}

#else

int ob_orders_new(const struct ob_orders_conf *conf, struct ob_orders **ret_orders,
		  struct ob_err *err)
{
	(void)conf;
	(void)ret_orders;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "this build has no SQLite: install libsqlite3-dev and build again");
}

void ob_orders_free(struct ob_orders *orders)
{
	(void)orders;
}

int ob_orders_step(struct ob_orders *orders, struct ob_err *err)
{
	(void)orders;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "this build has no SQLite");
}

const struct ob_audit_journal *ob_orders_journal(const struct ob_orders *orders)
{
	static const struct ob_audit_journal none;

	(void)orders;
	return &none;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The store contract, run on every backend: test_store_contract BACKEND [SUBJECT [CASE]].
 *
 * A case begins with store_begin(), which makes a fresh database with one
 * connection in fx.store. A message is told by its event_type, its label: rows
 * are put with a label and a key, and lists of labels are compared as text, "a1 b1 a2".
 */
#ifndef OB_TESTS_STORE_HARNESS_H
#define OB_TESTS_STORE_HARNESS_H

#include "config.h"
#include "store/fault.h"
#include "store/store.h"
#include "suite.h"

/* ---- backends -------------------------------------------------------- */

/* A case that does not apply to a backend, and why; reported, and no skip. */
struct store_skip {
	const char *test, *reason;
};

struct store_backend {
	const char *name;
	/* Optional. Once, before all cases: start a server. NULL, or why nothing can run. */
	const char *(*start)(void);
	void (*stop)(void);                    /* once, behind all cases; also when start failed */
	void (*make)(void);                    /* a fresh, empty database in fx */
	struct ob_store *(*open)(void);        /* one more connection to it */
	void (*set_version)(uint32_t version); /* lie about the schema's version */
	void (*drop)(void);
	/*
	 * Optional: time passes, for a database that does not take fx.clock; fx.clock has
	 * moved already. Either its clock stands at fx.clock's time, or the times in its rows
	 * are moved back; then cases about exact instants are skipped.
	 */
	void (*advance)(int64_t ms);
	const struct store_skip *skips; /* the last has no test; NULL: none */
};

extern const struct store_backend store_backend_memory;
#if HAVE_SQLITE
extern const struct store_backend store_backend_sqlite;
#endif
#if HAVE_POSTGRES
extern const struct store_backend store_backend_postgres;
#endif
#if HAVE_MYSQL
extern const struct store_backend store_backend_mysql;
#endif

/* ---- one case's database --------------------------------------------- */

enum { STORE_CONNECTIONS_MAX = 32, STORE_LEASES_MAX = 64 };

struct store_fixture {
	const struct store_backend *backend;
	const char *dir; /* for files; removed when the program ends */
	struct ob_clock_virtual clock;
	int64_t start_us;
	struct ob_store *store; /* the first connection */
	struct ob_store *connections[STORE_CONNECTIONS_MAX];
	size_t connection_count;
	uint32_t partition_count;

	struct ob_batch batch; /* what was fetched or claimed last */
	struct ob_batch look;  /* what was listed last */
	struct ob_arena arena; /* results of lists; reset by store_advance() */
	struct ob_err err;

	struct ob_uuid me;                        /* the worker of the first connection */
	struct ob_lease leases[STORE_LEASES_MAX]; /* ours, by store_hold_all() */
	size_t lease_count;
	struct ob_settle settle;   /* what store_settle() sends; cases change its settings */
	struct ob_outcome outcome; /* its delay_ms and error are taken */
	struct ob_settled settled; /* what the last one answered */
};

extern struct store_fixture fx;

/* A fresh database with tables for that many partitions; 0: without tables. */
void store_begin(uint32_t partition_count);
/* Close its connections and drop it; the harness does so after every case. */
void store_end(void);
/* One more connection, closed at the end of the case. */
struct ob_store *store_open(void);
/* Time passes for the database. */
void store_advance_ms(int64_t ms);
bool store_has(unsigned cap);

#define store_ok(call) \
	do { \
		int store_r_ = (call); \
		ck_assert_msg(store_r_ >= 0, "%s: %s", #call, fx.err.msg); \
	} while (0)

/* ---- writing --------------------------------------------------------- */

/* Commit one message; what is not set gets a default. */
void store_put(struct outbox_message message);
/* The same by label and key (NULL: none). */
void store_put_key(const char *label, const char *key);
/* Push into the open transaction of a connection. */
void store_push(struct ob_store *store, struct outbox_message message);
/* Defaults for what the contract requires. */
struct outbox_message store_filled(struct outbox_message message);

/* ---- taking work out ------------------------------------------------- */

struct ob_uuid store_uuid(uint8_t n);
/* Seed, and take all partitions of target "default" for `owner`; its leases are in fx. */
void store_hold_all(const struct ob_uuid *owner, int64_t ttl_ms);
/* Fetch up to `limit` from all partitions with this ordering, into fx.batch. */
void store_fetch(uint32_t limit, enum ob_ordering ordering);
void store_claim(struct ob_store *store, uint8_t token, uint32_t limit, int64_t ttl_ms);
/* The labels of fx.batch, "a1 b1"; owned by the harness until the next call. */
const char *store_labels(const struct ob_batch *batch);
/* A message of fx.batch by its label; fails the case when it is not there. */
const struct ob_message *store_fetched(const char *label);
/* Settle one message of fx.batch with fx.settle; the answer is in fx.settled. */
void store_settle(const char *label, enum ob_outcome_kind kind);
/* Fetch with key order, settle one label, and require that it applied. */
void store_fetch_settle(const char *label, enum ob_outcome_kind kind);

/* ---- looking --------------------------------------------------------- */

/* The row of that label with all its fields, or NULL. Valid until the next look. */
const struct ob_message *store_find(const char *label);
/* The same; fails the case when there is none. */
const struct ob_message *store_row(const char *label);
void store_expect_state(const char *label, enum ob_state state);
/* Apply a verb to the rows of a label; NULL: to all. */
void store_operate(enum ob_verb verb, const char *label, uint64_t changed, uint64_t refused);
/* Everything a reader can see, as text; the caller frees it. */
char *store_dump(void);

/* ---- cases ----------------------------------------------------------- */

typedef void store_add_fn(const TTest *test);

#define STORE_CASES(subject, ...) \
	void store_cases_##subject(store_add_fn *add); \
	void store_cases_##subject(store_add_fn *add) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) \
			add(tests[i]); \
	}

#endif

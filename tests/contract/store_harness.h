/* SPDX-License-Identifier: MIT */
/*
 * The store contract, run on every backend: test_store_contract BACKEND [SUBJECT [CASE]].
 *
 * A case begins with store_begin(), which makes a fresh database with one connection in fx.store
 * and the reader "main" of target "default". A message is told by its event_type, its label: rows
 * are put with a label and a key, and lists of labels are compared as text, "a1 b1 a2".
 *
 * The worker of a case holds partitions (store_hold_all), reads on from where it is (store_read),
 * gives outcomes to what it has read (store_outcome) and records that (store_record).
 */
#ifndef OB_TESTS_STORE_HARNESS_H
#define OB_TESTS_STORE_HARNESS_H

#include "config.h"
#include "doubles/fault_store.h"
#include "store/store.h"
#include "suite.h"

#include <stdlib.h>

/* ---- backends -------------------------------------------------------- */

/* A case that does not apply to a backend, and why; reported, and no skip. */
struct store_skip {
	const char *test, *reason;
};

/* Of a log that is partitioned by number. */
#define STORE_PARTS_UNIQUE "a repeated id is refused within one partition at most"
#define STORE_PARTS_WHOLE  "rows leave with their partition; tests/databases has that"

struct store_backend {
	const char *name;
	/* Optional. Once, before all cases: start a server. NULL, or why nothing can run. */
	const char *(*start)(void);
	void (*stop)(void);                    /* once, after all cases; also when start failed */
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
	size_t (*journal_count)(void);  /* optional: rows of the journal, of all readers */
	const struct store_skip *skips; /* the last has no test; NULL: none */
	int64_t partition_rows;         /* the log is partitioned by number, so many in each */
};

extern const struct store_backend store_backend_memory, store_backend_memory_gaps,
	store_backend_memory_plain;
#if HAVE_SQLITE
extern const struct store_backend store_backend_sqlite;
#endif
#if HAVE_POSTGRES
extern const struct store_backend store_backend_postgres, store_backend_postgres_parts;
#endif
#if HAVE_MYSQL
extern const struct store_backend store_backend_mysql, store_backend_mysql_parts;
#endif

/* ---- one case's database --------------------------------------------- */

enum {
	STORE_CONNECTIONS_MAX = 32,
	STORE_PARTS_MAX = OB_LANES * 16,
	STORE_CHANGES_MAX = 1024,
};

/* A partition number of the case's worker. */
struct store_part {
	uint32_t partition;
	uint64_t epoch, batch;       /* of its newest journal row that the worker knows */
	struct ob_progress recorded; /* by that row */
	struct ob_progress reading;  /* where the next read goes on */
};

struct store_fixture {
	const struct store_backend *backend;
	const char *dir; /* for files; removed when the program ends */
	struct ob_clock_virtual clock;
	int64_t start_us;
	struct ob_store *store; /* the first connection */
	struct ob_store *connections[STORE_CONNECTIONS_MAX];
	size_t connection_count;
	uint32_t partition_count;
	int64_t read_limit_ms; /* of connections that are opened from now on */

	struct ob_batch batch; /* what was read last */
	struct ob_batch look;  /* what was listed last */
	struct ob_arena arena; /* results of lists; reset by store_advance_ms() */
	struct ob_err err;

	/* The worker. Cases change its settings. */
	const char *reader, *target; /* "main", "default" */
	struct ob_uuid me;
	struct ob_decide decide; /* ordering, what holds */
	int64_t delay_ms;        /* of a retry */
	struct ob_str error;     /* of a failure */
	struct store_part parts[STORE_PARTS_MAX];
	size_t part_count;
	struct ob_read_done done; /* of the last read */
	/* What the next store_record() changes. */
	struct ob_change changes[STORE_CHANGES_MAX];
	size_t change_count;
	struct ob_promote promotes[STORE_CHANGES_MAX];
	size_t promote_count;
};

extern struct store_fixture fx;

/* A fresh database with tables for that many partitions and the reader; 0: without tables. */
void store_begin(uint32_t partition_count);
/* Close its connections and drop it; the harness does so after every case. */
void store_end(void);
/* One more connection, closed at the end of the case. */
struct ob_store *store_open(void);
/* Close one of them now, as if its process had ended. */
void store_close(struct ob_store *store);
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
/* Several, "a1 a2 b1": the key is the label's first letter. */
void store_put_all(const char *labels);
/* Begin a transaction on a connection and push these into it, by the same rule. */
void store_open_with(struct ob_store *store, const char *labels);
void store_commit(struct ob_store *store);
void store_roll_back(struct ob_store *store);
/* Push into the open transaction of a connection. */
void store_push(struct ob_store *store, struct outbox_message message);
/* Defaults for what the contract requires. */
struct outbox_message store_filled(struct outbox_message message);

/* ---- readers and workers --------------------------------------------- */

struct ob_uuid store_uuid(uint8_t n);
/* Make a reader; true: it was not there. */
bool store_make_reader(const char *name, const char *target, struct ob_place place);
/* Go on as another worker: `fx.reader`, owner n; holds nothing yet. */
void store_be(const char *reader, const char *target, uint8_t owner);
/* Seed, take all partitions for fx.me, and take them over; they are in fx.parts. */
void store_hold_all(int64_t ttl_ms);
/* Take over fx.parts[0..count) as they are, again or anew. */
void store_take_over(void);

/* Read on from fx.parts[].reading, which moves, into fx.batch. */
void store_read(uint32_t limit, uint32_t exception_limit);
/* The same with other settings; what is not set is filled in. */
void store_read_with(struct ob_read read);
/* Read until the log has nothing more; fx.batch holds the last read. Their labels. */
const char *store_read_all(uint32_t limit);
/* Read both, 1000 of each, and compare the labels. */
void store_expect_read(const char *labels);
/* Back to what is recorded: what was read and not recorded is read again. */
void store_forget(void);
/* The labels of a batch, "a1 b1"; owned by the harness until the next call. */
const char *store_labels(const struct ob_batch *batch);
/* A message of fx.batch by its label; fails the case when it is not there. */
const struct ob_message *store_got(const char *label);

/* An outcome of a message of fx.batch, for the next record. */
void store_outcome(const char *label, enum ob_outcome_kind kind);
/* Rows of the log in fx.batch that are held are parked, those not due delayed, as a worker does. */
void store_park_flagged(void);
/* Settle: the outcomes given, and progress up to where reading is, in all parts, each with its next
 * number. Fills `ret_settled`, one for each part. */
void store_try_record(enum ob_settled *ret_settled);
/* The same; it must be SETTLED in all parts. */
void store_record(void);
/* Read everything, log and exceptions, give `label` this outcome, all else is published (or parked,
 * or delayed) and record. */
void store_settle(const char *label, enum ob_outcome_kind kind);
/* Everything that can be read now is delivered; the labels in order of delivery, the caller frees.
 */
char *store_deliver(void);

/* ---- looking --------------------------------------------------------- */

/* The row of that label with all its fields, or NULL. Valid until the next look. */
const struct ob_message *store_find(const char *label);
/* The same; fails the case when there is none. */
const struct ob_message *store_row(const char *label);
void store_expect_view(const char *label, enum ob_view view);
/* Its exception; a row without one fails. */
void store_expect_state(const char *label, enum ob_state state);
/* Rows of the journal; 0 where the backend cannot tell. */
size_t store_journal_count(void);
/* Labels of the whole log, as fx.reader sees it. */
void store_expect_rows(const char *labels);
/* Apply a verb to the rows of a label; NULL: to all. */
void store_operate(enum ob_verb verb, const char *label, uint64_t changed, uint64_t refused);
/* Everything that can be seen, as text; the caller frees it. */
char *store_dump(void);
/* Both were dumped; they must be equal, and are freed. */
void store_expect_same(char *before, char *after);

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

/* SPDX-License-Identifier: MIT */
/* What works on a PostgreSQL server, and yet weakens a promise or will bite later. */
#include "store/postgres/diagnose.h"

#include "base/cleanup.h"
#include "base/when.h"
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/postgres/stmt.h"

#include <inttypes.h>

/* A transaction that is open for longer, and a table with more dead rows, is told. */
enum { OLD_S = 300, DEAD_ROWS = 10000, DEAD_PERCENT = 50 };

/* Transactions since a table was frozen: at 2,000,000,000 the server stops taking writes. */
#define FROZEN_ERROR INT64_C(1500000000)

enum {
	FSYNC,
	SYNCHRONOUS_COMMIT,
	FULL_PAGE_WRITES,
	PREPARED,
	OLDEST,
	POOLER,
	BLOAT,
	FREEZE,
	PARTS,
};

const struct ob_check pg_checks[] = {
	[FSYNC] = { "fsync", "Commits reach the disk: fsync is on.", "turn it on" },
	[SYNCHRONOUS_COMMIT] = { "synchronous_commit",
				 "Commits of producers wait for the disk: synchronous_commit is "
				 "not off for this user and database.",
				 "turn it on for producers" },
	[FULL_PAGE_WRITES] = { "full_page_writes",
			       "Pages survive a crash in the middle of a write: full_page_writes "
			       "is on.",
			       "turn it on" },
	[PREPARED] = { "prepared_transactions", "No prepared transaction was left open.",
		       "look at pg_prepared_xacts, COMMIT PREPARED or ROLLBACK PREPARED it" },
	[OLDEST] = { "oldest_transaction",
		     "No transaction in this database has been open for five minutes.",
		     "find out in pg_stat_activity what it does, and end it with "
		     "pg_terminate_backend() if it was forgotten" },
	[POOLER] = { "pooler",
		     "The connection keeps its session, or listen_url names one that does.",
		     "let url lead to the server itself, or set listen_url in the store's entry "
		     "so that new messages wake the relay" },
	[BLOAT] = { "bloat", "Vacuum keeps up with our tables: dead rows are fewer than live ones.",
		    "look for a transaction that holds vacuum back, check that autovacuum is on, "
		    "or run VACUUM on the table" },
	[FREEZE] = { "vacuum_age", "Vacuum freezes our tables in time.",
		     "check that autovacuum is on and nothing holds it back, and run VACUUM "
		     "FREEZE on the table" },
	[PARTS] = { "table_partitions", "New numbers have table partitions, in a partitioned log.",
		    "let retention run more often, or run `outbox maintain`" },
	OB_CHECK_END,
};

/* ---- judging --------------------------------------------------------- */

static void judge_durability(const struct pg_health *h, struct ob_findings *out)
{
	if (h->fsync)
		ob_finding_add(out, &pg_checks[FSYNC], OB_LEVEL_OK, "fsync is on");
	else
		ob_finding_add(out, &pg_checks[FSYNC], OB_LEVEL_WARNING,
			       "fsync is off: a power cut may cost committed messages, or the "
			       "database");
	if (h->synchronous_commit)
		ob_finding_add(out, &pg_checks[SYNCHRONOUS_COMMIT], OB_LEVEL_OK,
			       "synchronous_commit is not off");
	else
		ob_finding_add(out, &pg_checks[SYNCHRONOUS_COMMIT], OB_LEVEL_WARNING,
			       "synchronous_commit is off: a message may be sent whose transaction "
			       "is lost when the server crashes right after");
	/* Without fsync it is the smaller evil: one finding is enough. */
	if (h->full_page_writes)
		ob_finding_add(out, &pg_checks[FULL_PAGE_WRITES], OB_LEVEL_OK,
			       "full_page_writes is on");
	else if (h->fsync)
		ob_finding_add(out, &pg_checks[FULL_PAGE_WRITES], OB_LEVEL_WARNING,
			       "full_page_writes is off: a power cut in the middle of a write may "
			       "damage the tables");
}

static void judge_transactions(const struct pg_health *h, struct ob_findings *out)
{
	char age[OB_WHEN_SIZE];

	ob_when_age(h->prepared_s * 1000000, age);
	if (h->prepared > 0)
		ob_finding_add(out, &pg_checks[PREPARED], OB_LEVEL_WARNING,
			       "%" PRId64
			       " prepared transaction(s) are open, the oldest for %s: one that was "
			       "left behind holds its messages back and keeps vacuum from its work",
			       h->prepared, age);
	else
		ob_finding_add(out, &pg_checks[PREPARED], OB_LEVEL_OK,
			       "no prepared transaction is open");
	ob_when_age(h->oldest_s * 1000000, age);
	if (h->oldest_s >= OLD_S)
		ob_finding_add(out, &pg_checks[OLDEST], OB_LEVEL_WARNING,
			       "a transaction (pid %" PRId64
			       ", %.*s) is open for %s: messages of it wait for its commit, and "
			       "vacuum cannot remove what is newer",
			       h->oldest_pid, (int)h->oldest_state.n, h->oldest_state.p, age);
	else if (h->hidden > 0)
		ob_finding_add(out, &pg_checks[OLDEST], OB_LEVEL_OK,
			       "no old transaction among those that this user may see (not %" PRId64
			       " session(s) of others: grant it pg_read_all_stats)",
			       h->hidden);
	else
		ob_finding_add(out, &pg_checks[OLDEST], OB_LEVEL_OK, "no transaction is old");
}

static void judge_pooler(const struct pg_health *h, struct ob_findings *out)
{
	if (h->pooled && !h->listen_url)
		ob_finding_add(out, &pg_checks[POOLER], OB_LEVEL_WARNING,
			       "a pooler stands between us and the server: no notification of new "
			       "messages arrives, and partitions of a killed worker are taken over "
			       "only when their leases end");
	else if (h->pooled)
		ob_finding_add(
			out, &pg_checks[POOLER], OB_LEVEL_OK,
			"a pooler stands between us and the server; listen_url goes past it");
	else
		ob_finding_add(out, &pg_checks[POOLER], OB_LEVEL_OK,
			       "the connection is the server's own");
}

void pg_judge_server(const struct pg_health *h, struct ob_findings *out)
{
	judge_durability(h, out);
	judge_transactions(h, out);
	judge_pooler(h, out);
	if (!h->default_part)
		return;
	if (h->part_last >= h->part_top)
		ob_finding_add(out, &pg_checks[PARTS], OB_LEVEL_WARNING,
			       "the log has outrun its partitions: number %" PRId64
			       " stands in '%s_default', whose rows are deleted one by one",
			       h->part_last, h->default_part);
	else
		ob_finding_add(out, &pg_checks[PARTS], OB_LEVEL_OK,
			       "table partitions are there up to number %" PRId64, h->part_top - 1);
}

void pg_judge_table(const struct pg_table_health *t, struct ob_findings *out)
{
	char age[OB_WHEN_SIZE] = "";
	int n = (int)t->name.n;

	if (t->vacuum_s >= 0)
		ob_when_age(t->vacuum_s * 1000000, age);
	if (t->dead > DEAD_ROWS && t->dead > t->live * DEAD_PERCENT / 100)
		ob_finding_add(out, &pg_checks[BLOAT], OB_LEVEL_WARNING,
			       "table %.*s has %" PRId64 " dead rows and %" PRId64
			       " live ones; %s%s: what reads it walks over the dead ones",
			       n, t->name.p, t->dead, t->live,
			       *age ? "the last vacuum ended this long ago: "
				    : "it was never vacuumed",
			       age);
	if (t->frozen_age > FROZEN_ERROR)
		ob_finding_add(out, &pg_checks[FREEZE], OB_LEVEL_ERROR,
			       "table %.*s was frozen %" PRId64
			       " transactions ago: the server takes no more writes at 2000000000",
			       n, t->name.p, t->frozen_age);
	else if (t->frozen_age > t->freeze_max + t->freeze_max / 4)
		ob_finding_add(out, &pg_checks[FREEZE], OB_LEVEL_WARNING,
			       "table %.*s was frozen %" PRId64
			       " transactions ago, more than autovacuum_freeze_max_age (%" PRId64
			       "): autovacuum does not get to it",
			       n, t->name.p, t->frozen_age, t->freeze_max);
}

/* ---- asking ---------------------------------------------------------- */

static int ask_server(struct pg_store *s, struct ob_findings *out, struct ob_err *err)
{
	struct pg_health h = { .pooled = s->pooled, .listen_url = s->listen_url != NULL };
	int r = pg_parts_reach(s, &h.part_last, &h.part_top, err);

	if (h.part_top > 0)
		h.default_part = s->base.layout->table[OB_TABLE_outbox];
	if (r == 0)
		r = pg_ask(s, PG_diagnose, NULL, err);
	if (r < 0)
		return r;
	const PGresult *row = s->results[s->result_count - 1];
	h.fsync = !ob_str_eq(pg_get_str(row, 0, 0), OB_STR("off"));
	h.synchronous_commit = !ob_str_eq(pg_get_str(row, 0, 1), OB_STR("off"));
	h.full_page_writes = !ob_str_eq(pg_get_str(row, 0, 2), OB_STR("off"));
	h.prepared = pg_get_int(row, 0, 3);
	h.prepared_s = pg_get_int(row, 0, 4);
	h.oldest_s = pg_get_int(row, 0, 5);
	h.oldest_pid = pg_get_int(row, 0, 6);
	h.oldest_state = pg_get_str(row, 0, 7);
	h.hidden = pg_get_int(row, 0, 8);
	pg_judge_server(&h, out);
	return 0;
}

static int ask_tables(struct pg_store *s, struct ob_findings *out, struct ob_err *err)
{
	size_t before = out->count;
	int r = pg_ask(s, PG_diagnose_tables, NULL, err);

	if (r < 0)
		return r;
	const PGresult *rows = s->results[s->result_count - 1];
	for (int i = 0; i < PQntuples(rows); i++) {
		const struct pg_table_health table = {
			.name = pg_get_str(rows, i, 0),
			.live = pg_get_int(rows, i, 1),
			.dead = pg_get_int(rows, i, 2),
			.vacuum_s = pg_get_int(rows, i, 3),
			.frozen_age = pg_get_int(rows, i, 4),
			.freeze_max = pg_get_int(rows, i, 5),
		};

		pg_judge_table(&table, out);
	}
	if (out->count == before)
		ob_finding_add(out, &pg_checks[BLOAT], OB_LEVEL_OK,
			       "vacuum keeps up with our %d tables", PQntuples(rows));
	return 0;
}

int pg_diagnose(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_begin(s, err);

	if (r == 0)
		r = ask_server(s, out, err);
	if (r == 0)
		r = ask_tables(s, out, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	return r;
}

int pg_oldest(struct ob_store *store, int64_t *ret_age_us, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int64_t age_us = -1;
	int r = pg_begin(s, err);

	s->doing = "looking for old transactions";
	if (r == 0)
		r = pg_ask(s, PG_diagnose, NULL, err);
	if (r == 0)
		age_us = pg_get_int(s->results[s->result_count - 1], 0, 5) * 1000000;
	r = pg_finish(s, r, err);
	pg_clear(s);
	if (r == 0)
		*ret_age_us = age_us;
	return r;
}

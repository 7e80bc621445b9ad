/* SPDX-License-Identifier: MIT */
/* What works on a MySQL or MariaDB server, and yet weakens a promise or costs more than it should.
 */
#include "store/mysql/diagnose.h"

#include "base/cleanup.h"
#include "base/when.h"
#include "store/mysql/parts.h"
#include "store/mysql/proof.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

#include <inttypes.h>

/* A transaction that is open for longer, and more versions that wait for purge, are told. */
enum { OLD_S = 300, NOT_PURGED = 1000000 };

enum {
	FLUSH_LOG,
	LOG_BIN,
	SYNC_BINLOG,
	GALERA,
	JSON_TEXTS,
	PREPARED,
	OLDEST,
	PURGE,
	PROCESS,
	PARTS
};

const struct ob_check my_checks[] = {
	[FLUSH_LOG] = { "flush_log", "Commits reach the disk: innodb_flush_log_at_trx_commit is 1.",
			"set it to 1" },
	[LOG_BIN] = { "log_bin", "A transaction is durable before others see it: log_bin is on.",
		      "switch log_bin on" },
	[SYNC_BINLOG] = { "sync_binlog",
			  "The binary log reaches the disk with each commit: sync_binlog is 1.",
			  "set it to 1" },
	[GALERA] = { "galera", "The server is no node of a Galera cluster.",
		     "let all producers of the outbox write to one node" },
	[JSON_TEXTS] = { "json_table", "JSON_TABLE returns a text without its escapes.",
			 "update MariaDB to the newest release of its series" },
	[PREPARED] = { "prepared_transactions", "No XA transaction was left prepared.",
		       "look at XA RECOVER, and XA COMMIT or XA ROLLBACK what was left behind" },
	[OLDEST] = { "oldest_transaction", "No transaction has been open for five minutes.",
		     "find out in information_schema.INNODB_TRX what it does, and KILL its "
		     "connection if it was forgotten" },
	[PURGE] = { "purge", "Purge keeps up: fewer than 1,000,000 transactions wait for it.",
		    "look for a transaction that is open for long, or raise "
		    "innodb_purge_threads" },
	[PROCESS] = { "process_right", "This user sees the statements of others.",
		      "grant it PROCESS, and on MySQL SELECT on performance_schema" },
	[PARTS] = { "table_partitions", "New numbers have table partitions, in a partitioned log.",
		    "let retention run more often, or run `outbox maintain`" },
	OB_CHECK_END,
};

/* ---- judging --------------------------------------------------------- */

static void judge_durability(const struct my_health *h, struct ob_findings *out)
{
	if (h->flush_log == 1)
		ob_finding_add(out, &my_checks[FLUSH_LOG], OB_LEVEL_OK,
			       "innodb_flush_log_at_trx_commit is 1");
	else
		ob_finding_add(out, &my_checks[FLUSH_LOG], OB_LEVEL_WARNING,
			       "innodb_flush_log_at_trx_commit is %" PRId64
			       ": a message may be sent whose transaction is lost when the server "
			       "crashes right after",
			       h->flush_log);
	if (!h->log_bin) {
		ob_finding_add(
			out, &my_checks[LOG_BIN], OB_LEVEL_WARNING,
			"the binary log is off: InnoDB then shows a transaction to others "
			"before it is durable, so a message may be sent whose transaction is "
			"lost when the server crashes in that moment");
		return;
	}
	ob_finding_add(out, &my_checks[LOG_BIN], OB_LEVEL_OK, "the binary log is on");
	if (h->sync_binlog == 1)
		ob_finding_add(out, &my_checks[SYNC_BINLOG], OB_LEVEL_OK, "sync_binlog is 1");
	else
		ob_finding_add(out, &my_checks[SYNC_BINLOG], OB_LEVEL_WARNING,
			       "sync_binlog is %" PRId64
			       ": after a power cut a replica may lack messages that were sent",
			       h->sync_binlog);
}

static void judge_transactions(const struct my_health *h, struct ob_findings *out)
{
	char age[OB_WHEN_SIZE];

	if (h->prepared > 0)
		ob_finding_add(
			out, &my_checks[PREPARED], OB_LEVEL_WARNING,
			"%" PRId64
			" XA transaction(s) are prepared: one that was left behind holds its "
			"messages back and keeps purge from its work",
			h->prepared);
	else if (h->prepared == 0)
		ob_finding_add(out, &my_checks[PREPARED], OB_LEVEL_OK,
			       "no XA transaction is prepared");
	if (!h->sees_statements)
		return;
	ob_when_age(h->oldest_s * 1000000, age);
	if (h->oldest_s >= OLD_S)
		ob_finding_add(out, &my_checks[OLDEST], OB_LEVEL_WARNING,
			       "a transaction (connection %" PRId64
			       ") is open for %s: messages of it wait for its commit, and purge "
			       "cannot remove what is newer",
			       h->oldest_id, age);
	else
		ob_finding_add(out, &my_checks[OLDEST], OB_LEVEL_OK, "no transaction is old");
	if (h->not_purged >= NOT_PURGED)
		ob_finding_add(out, &my_checks[PURGE], OB_LEVEL_WARNING,
			       "%" PRId64
			       " transactions wait for purge: what reads the tables "
			       "walks over their old rows",
			       h->not_purged);
	else
		ob_finding_add(out, &my_checks[PURGE], OB_LEVEL_OK, "purge keeps up");
}

void my_judge(const struct my_health *h, struct ob_findings *out)
{
	judge_durability(h, out);
	if (h->cluster > 1)
		ob_finding_add(out, &my_checks[GALERA], OB_LEVEL_WARNING,
			       "this server is a node of a Galera cluster: messages of a key keep "
			       "their order only while all producers write to this one node");
	if (h->keeps_escapes)
		ob_finding_add(out, &my_checks[JSON_TEXTS], OB_LEVEL_WARNING,
			       "JSON_TABLE of this server returns texts with their escapes: a "
			       "failing message whose key has a quote or a backslash does not hold "
			       "back the next one of its key, and errors are shown with escapes");
	else
		ob_finding_add(out, &my_checks[JSON_TEXTS], OB_LEVEL_OK,
			       "JSON_TABLE returns texts as they are");
	judge_transactions(h, out);
	if (h->sees_statements)
		ob_finding_add(out, &my_checks[PROCESS], OB_LEVEL_OK,
			       "this user sees the statements of others");
	else
		ob_finding_add(
			out, &my_checks[PROCESS], OB_LEVEL_WARNING,
			"this user does not see the statements of others: numbers of "
			"transactions that were rolled back are forgotten only in moments in "
			"which no statement uses the outbox table, and every read asks for "
			"them until then");
	if (h->part_top > 0 && h->part_last >= h->part_top)
		ob_finding_add(out, &my_checks[PARTS], OB_LEVEL_WARNING,
			       "the log has outrun its partitions: number %" PRId64
			       " stands in 'pmax', which is copied when partitions are made",
			       h->part_last);
	else if (h->part_top > 0)
		ob_finding_add(out, &my_checks[PARTS], OB_LEVEL_OK,
			       "table partitions are there up to number %" PRId64, h->part_top - 1);
}

/* ---- asking ---------------------------------------------------------- */

static int ask_settings(struct my_store *s, struct my_health *h, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "reading the server's settings");
	(void)MY_ADD0(&p, sql_mysql_durability);
	(void)MY_ADD0(&p, sql_mysql_cluster);
	int r = my_packet_run(&p, err);
	my_use(&p, 0);
	if (r == 0 && my_step(&p)) {
		h->flush_log = my_int(&p, 0);
		h->log_bin = my_int(&p, 1) != 0;
		h->sync_binlog = my_int(&p, 2);
		h->keeps_escapes = my_int(&p, 3) != 0;
	}
	my_use(&p, 1);
	if (r == 0 && my_step(&p))
		h->cluster = my_int(&p, 1);
	return r;
}

static int ask_transactions(struct my_store *s, struct my_health *h, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = my_query(&p, s, "looking for old transactions", sql_mysql_old_transactions,
			 OB_NO_ARGS, err);

	if (r == 0 && my_step(&p)) {
		h->oldest_s = my_int(&p, 0);
		h->oldest_id = my_int(&p, 1);
		h->not_purged = my_int(&p, 2);
	}
	return r;
}

/* MySQL demands a right for it; without, nothing is known. */
static void ask_prepared(struct my_store *s, struct my_health *h)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	struct ob_err ignored = OB_ERR_INIT;

	h->prepared = -1;
	if (my_query(&p, s, "looking for XA transactions", sql_mysql_prepared, OB_NO_ARGS,
		     &ignored) < 0)
		return;
	h->prepared = 0;
	while (my_step(&p))
		h->prepared++;
}

int my_diagnose(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_health h = { 0 };
	int r = ask_settings(s, &h, err);

	if (r == 0)
		r = my_parts_reach(s, &h.part_last, &h.part_top, err);
	if (r == 0)
		r = my_proof_possible(s, &h.sees_statements, err);
	if (r == 0 && h.sees_statements)
		r = ask_transactions(s, &h, err);
	if (r < 0)
		return r;
	ask_prepared(s, &h);
	my_judge(&h, out);
	return 0;
}

/* Without the right PROCESS nothing is known. */
int my_oldest(struct ob_store *store, int64_t *ret_age_us, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct ob_err ignored = OB_ERR_INIT;
	struct my_health h = { 0 };
	int r = my_ready(s, s->patient, err);

	if (r < 0)
		return r;
	*ret_age_us = ask_transactions(s, &h, &ignored) < 0 ? -1 : h.oldest_s * 1000000;
	return 0;
}

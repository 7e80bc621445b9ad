/* SPDX-License-Identifier: MIT */
/* What works with an SQLite database, and yet weakens a promise or will bite later. */
#include "store/sqlite/diagnose.h"

#include "store/sqlite/stmt.h"

#include <inttypes.h>
#include <sys/stat.h>

#define MB INT64_C(1000000)

/* A file of which more than half is free, and a write-ahead log that has grown so far, are told. */
#define FREE_BYTES (100 * MB)
#define WAL_BYTES  (500 * MB)

enum { JOURNAL, SYNCHRONOUS, FREE, WAL };

const struct ob_check lite_checks[] = {
	[JOURNAL] = { "journal_mode", "Readers and one writer do not block each other: WAL mode.",
		      "run `outbox setup` with the database on a local disk" },
	[SYNCHRONOUS] = { "synchronous",
			  "Commits of the relay reach the disk: synchronous is full.",
			  "set synchronous to full in the store's entry" },
	[FREE] = { "bloat", "At most half of a large file is free space.",
		   "run VACUUM in sqlite3 while nothing writes" },
	[WAL] = { "wal_size", "The write-ahead log is written back: it has less than 500 MB.",
		  "look for a program that keeps a read transaction open, and end it" },
	OB_CHECK_END,
};

void lite_judge(const struct lite_health *h, struct ob_findings *out)
{
	if (h->wal)
		ob_finding_add(out, &lite_checks[JOURNAL], OB_LEVEL_OK, "the journal mode is WAL");
	else
		ob_finding_add(out, &lite_checks[JOURNAL], OB_LEVEL_WARNING,
			       "the journal mode is not WAL: readers and writers block each other");
	if (h->synchronous)
		ob_finding_add(out, &lite_checks[SYNCHRONOUS], OB_LEVEL_OK,
			       "synchronous is full here; each producer must see to it on its own "
			       "connection");
	else
		ob_finding_add(
			out, &lite_checks[SYNCHRONOUS], OB_LEVEL_WARNING,
			"synchronous is normal: a power cut may undo what was recorded last, "
			"also what an operator decided");
	if (h->free_bytes > FREE_BYTES && h->free_bytes > h->bytes / 2)
		ob_finding_add(out, &lite_checks[FREE], OB_LEVEL_WARNING,
			       "%" PRId64 " MB of the file's %" PRId64 " MB are free",
			       h->free_bytes / MB, h->bytes / MB);
	else
		ob_finding_add(out, &lite_checks[FREE], OB_LEVEL_OK,
			       "%" PRId64 " MB of the file's %" PRId64 " MB are free",
			       h->free_bytes / MB, h->bytes / MB);
	if (h->wal_bytes > WAL_BYTES)
		ob_finding_add(out, &lite_checks[WAL], OB_LEVEL_WARNING,
			       "the write-ahead log has %" PRId64
			       " MB: something keeps it from being written back",
			       h->wal_bytes / MB);
	else
		ob_finding_add(out, &lite_checks[WAL], OB_LEVEL_OK,
			       "the write-ahead log has %" PRId64 " MB", h->wal_bytes / MB);
}

static int ask_mode(struct lite_store *s, struct lite_health *h, struct ob_err *err)
{
	int r = lite_bind(s, LITE_journal_mode, OB_NO_ARGS, err);

	if (r == 0)
		r = lite_step(s, LITE_journal_mode, err);
	h->wal = r > 0 && ob_str_eq(lite_str(s->stmt[LITE_journal_mode], 0), OB_STR("wal"));
	lite_reset(s, LITE_journal_mode);
	return r < 0 ? r : 0;
}

static int ask_pages(struct lite_store *s, struct lite_health *h, struct ob_err *err)
{
	int r = lite_bind(s, LITE_pages, OB_NO_ARGS, err);

	if (r == 0)
		r = lite_step(s, LITE_pages, err);
	if (r > 0) {
		int64_t size = sqlite3_column_int64(s->stmt[LITE_pages], 2);

		h->bytes = sqlite3_column_int64(s->stmt[LITE_pages], 0) * size;
		h->free_bytes = sqlite3_column_int64(s->stmt[LITE_pages], 1) * size;
	}
	lite_reset(s, LITE_pages);
	return r < 0 ? r : 0;
}

int lite_diagnose(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_health h = { .synchronous = s->synchronous == LITE_SYNC_FULL };
	int r = lite_begin_read(s, "looking at the database", err);
	struct stat st;

	if (r < 0)
		return r;
	r = ask_mode(s, &h, err);
	if (r == 0)
		r = ask_pages(s, &h, err);
	r = lite_end_read(s, r, err);
	if (r < 0)
		return r;
	const char *wal = sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
	h.wal_bytes = wal && stat(wal, &st) == 0 ? (int64_t)st.st_size : 0;
	lite_judge(&h, out);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The names of our tables and columns in the user's database, checked. */
#ifndef OB_BASE_LAYOUT_H
#define OB_BASE_LAYOUT_H

#include "base/err.h"

#include <stdbool.h>

/* PostgreSQL cuts longer names silently, so nobody gets them. */
enum { OB_IDENT_MAX = 63, OB_IDENT_SIZE = OB_IDENT_MAX + 1 };

/* column of the log, may be switched off; txid is PostgreSQL's alone */
#define OB_COLUMN_MAP(X) \
	X(txid, false) \
	X(seq, false) \
	X(id, false) \
	X(aggregate_type, false) \
	X(aggregate_id, false) \
	X(event_type, false) \
	X(revision, true) \
	X(sequence_number, true) \
	X(payload, false) \
	X(headers, true) \
	X(snapshot, true) \
	X(correlation_id, true) \
	X(causation_id, true) \
	X(partition_key, true) \
	X(ordering_key, false) \
	X(partition_no, false) \
	X(priority, false) \
	X(target, false) \
	X(occurred_at, true) \
	X(created_at, false) \
	X(available_at, false)

enum ob_column {
#define X(name, optional) OB_COL_##name,
	OB_COLUMN_MAP(X)
#undef X
		OB_COL_COUNT
};

#define OB_TABLE_MAP(X) \
	X(outbox) \
	X(readers) \
	X(batches) \
	X(exceptions) \
	X(leases) \
	X(workers) \
	X(throughput) \
	X(audit) \
	X(meta)

enum ob_table {
#define X(name) OB_TABLE_##name,
	OB_TABLE_MAP(X)
#undef X
		OB_TABLE_COUNT
};

/*
 * Column of an existing table that is copied, and its name there: Debezium's, or "" where it is
 * copied only when a name is given. Those with a name must be there.
 */
#define OB_SOURCE_MAP(X) \
	X(id, "id") \
	X(aggregate_type, "aggregatetype") \
	X(aggregate_id, "aggregateid") \
	X(event_type, "type") \
	X(payload, "payload") \
	X(headers, "") \
	X(occurred_at, "") \
	X(partition_key, "") \
	X(correlation_id, "") \
	X(causation_id, "") \
	X(revision, "")

/* A table of the application's, whose new rows a trigger copies into the outbox. */
struct ob_source {
	char schema[OB_IDENT_SIZE];               /* "": the connection's own */
	char table[OB_IDENT_SIZE];                /* "": there is no such table */
	char column[OB_COL_COUNT][OB_IDENT_SIZE]; /* by our columns; "": not copied */
};

/* Plain data, filled only by the functions below, so every name in it is safe to quote. */
struct ob_layout {
	char schema[OB_IDENT_SIZE]; /* "": the connection's own */
	char table[OB_TABLE_COUNT][OB_IDENT_SIZE];
	char column[OB_COL_COUNT][OB_IDENT_SIZE]; /* "": switched off */
	bool string_id;                           /* the id column holds canonical text */
	bool binary_payload;                      /* the payload column holds bytes */
	bool read_snapshot;                       /* a relay sends snapshots: reads bring them */
	struct ob_source source;
};

/* The names that `outbox setup` makes. */
void ob_layout_default(struct ob_layout *layout);
/*
 * Rename the outbox table, "name" or "schema.name"; the companions follow as
 * name_readers, name_batches, ... A bad name is OUTBOX_ECONFIG.
 */
int ob_layout_set_table(struct ob_layout *layout, const char *name, struct ob_err *err);
/* Rename one column; `name` NULL switches an optional one off. */
int ob_layout_set_column(struct ob_layout *layout, const char *column, const char *name,
			 struct ob_err *err);
/* Copy from this table, "name" or "schema.name", with Debezium's column names. */
int ob_layout_set_source(struct ob_layout *layout, const char *name, struct ob_err *err);
/* One of OB_SOURCE_MAP is called so there; `name` NULL: an optional one is not copied. */
int ob_layout_set_source_column(struct ob_layout *layout, const char *column, const char *name,
				struct ob_err *err);
/* No two columns may share a name; what is copied has a place, and is not copied onto itself. */
int ob_layout_check(const struct ob_layout *layout, struct ob_err *err);
/* The column of that name of ours, or -1. */
int ob_column_find(const char *name, size_t size);
/* [A-Za-z_][A-Za-z0-9_$]*, at most OB_IDENT_MAX long. */
bool ob_ident_valid(const char *name, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: what is there under our names, and whether the promises can rest on it. */
#ifndef OB_STORE_POSTGRES_SCHEMA_H
#define OB_STORE_POSTGRES_SCHEMA_H

#include "store/postgres/conn.h"

/* A column as the database has it. */
struct pg_column {
	bool exists, generated;
	char type[40];
	int64_t cache; /* of the sequence that belongs to it; 0: there is none */
};

struct pg_found {
	struct {
		int64_t oid;      /* 0: there is none */
		char missing[64]; /* rights that we do not have */
		bool partitioned;
	} table[OB_TABLE_COUNT];
	bool any;
	struct pg_column column[OB_COL_COUNT]; /* of the outbox table */
	const char *lacks[OB_TABLE_COUNT];     /* a column that a companion has not */
	char no_index[96];                     /* an index that is not there */
	bool has_trigger;
	int64_t version;         /* 0: no meta table */
	int64_t partition_count; /* of the meta table */
	int64_t partition_rows;  /* of the meta table, if the log is partitioned; else 0 */
};

/* Read it, inside a transaction. A newer version, or no table under a table's name, is an error. */
int pg_look(struct pg_store *s, struct pg_found *ret, struct ob_err *err);
/* Which right is missing, if one is. */
int pg_check_rights(struct pg_store *s, const struct pg_found *found, struct ob_err *err);
/* Do the tables that are there have the columns of the layout? */
int pg_check_columns(struct pg_store *s, const struct pg_found *found, struct ob_err *err);
/* Numbers that are handed out in blocks, or by someone else, do not tell what came first. */
int pg_check_sequence(struct pg_store *s, const struct pg_found *found, struct ob_err *err);
/* The same of a sequence's cache alone. */
int pg_check_cache(const struct pg_store *s, int64_t cache, struct ob_err *err);
/* The table that is copied from, if the layout has one: make the trigger if it is not there. */
int pg_source_attach(struct pg_store *s, struct ob_err *err);
int pg_source_check(struct pg_store *s, struct ob_err *err);
int pg_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err);
/* All of the start-up checks. */
int pg_check_found(struct pg_store *s, const struct pg_found *found, struct ob_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* What is known of a PostgreSQL server, and what that means. */
#ifndef OB_STORE_POSTGRES_DIAGNOSE_H
#define OB_STORE_POSTGRES_DIAGNOSE_H

#include "store/store.h"

struct pg_health {
	bool fsync, full_page_writes;
	bool synchronous_commit;      /* of new sessions of this user */
	bool pooled;                  /* someone stands between us and the server */
	bool listen_url;              /* a direct connection is configured */
	int64_t prepared, prepared_s; /* prepared transactions that are open; age of the oldest */
	int64_t oldest_s, oldest_pid; /* the oldest transaction of others that is open */
	struct ob_str oldest_state;   /* "active", "idle in transaction"; p NULL: none is open */
	int64_t hidden;               /* sessions whose transactions this user may not see */
	int64_t part_last, part_top;  /* partitioned log: last number; first above its partitions */
	const char *default_part;     /* its name; NULL: not partitioned */
};

struct pg_table_health {
	struct ob_str name;
	int64_t live, dead; /* rows, as the statistics have them */
	int64_t vacuum_s;   /* since the last vacuum; -1: never */
	int64_t frozen_age,
		freeze_max; /* transactions: since it was frozen; when autovacuum must */
};

extern const struct ob_check pg_checks[];

void pg_judge_server(const struct pg_health *health, struct ob_findings *out);
void pg_judge_table(const struct pg_table_health *table, struct ob_findings *out);

#endif

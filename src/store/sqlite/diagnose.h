/* SPDX-License-Identifier: MIT */
/* What is known of an SQLite database, and what that means. */
#ifndef OB_STORE_SQLITE_DIAGNOSE_H
#define OB_STORE_SQLITE_DIAGNOSE_H

#include "store/store.h"

struct lite_health {
	bool wal, synchronous; /* journal mode; option of the store */
	int64_t bytes, free_bytes, wal_bytes;
};

extern const struct ob_check lite_checks[];

void lite_judge(const struct lite_health *health, struct ob_findings *out);

ob_store_diagnose_fn lite_diagnose;

#endif

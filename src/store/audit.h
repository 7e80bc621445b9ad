/* SPDX-License-Identifier: MIT */
/* Entries of the audit as every store can keep them. */
#ifndef OB_STORE_AUDIT_H
#define OB_STORE_AUDIT_H

#include "store/store.h"

/* Room for the texts of one entry. */
enum { OB_AUDIT_BYTES = 64 * 1024 };

/* A copy in the arena: every text is one line of valid UTF-8, cut to what the table takes. */
int ob_audit_row_clean(const struct ob_audit_row *from, struct ob_arena *arena,
		       struct ob_audit_row *ret, struct ob_err *err);

#endif

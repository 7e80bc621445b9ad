/* SPDX-License-Identifier: MIT */
/* Workers without leasing that want the same rows, on any store. */
#ifndef OB_TESTS_CLAIMERS_H
#define OB_TESTS_CLAIMERS_H

#include "store/store.h"

enum { CLAIMERS = 8, CLAIM_ROWS = 20000 };

/*
 * Claim all rows of the target "default" by all stores at once, each on a thread of its own.
 * There must be CLAIM_ROWS of them, numbered from 1 with few gaps. Demands that each is handed out
 * once and that no claim fails. Frees the stores.
 */
void claimers_run(struct ob_store *const stores[CLAIMERS]);

#endif

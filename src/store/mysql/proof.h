/* SPDX-License-Identifier: MIT */
/*
 * The proof that a number which is missing from the log will stay missing.
 *
 * InnoDB hands out numbers in ascending order while a statement runs. Once a higher number was
 * seen, a lower one that is missing is held by a statement that is still running, or its row is in
 * the table, not committed, or it is dead. So it is dead when, in this order,
 *  1. a higher number was seen, and the counter has not been set back since,
 *  2. every statement that was running then has ended, or there was a moment in which no statement
 *     had the table open,
 *  3. a read that shows rows which are not committed does not show it.
 * How much time has passed proves nothing.
 */
#ifndef OB_STORE_MYSQL_PROOF_H
#define OB_STORE_MYSQL_PROOF_H

#include "log/gaps.h"
#include "store/mysql/conn.h"

/* Take out of the list what is proven dead. `end`: a number that was seen, at or above all of them.
 * Runs now and then only, for a few round trips; not inside a transaction. */
int my_proof_run(struct my_store *s, struct ob_gaps *gaps, int64_t end, struct ob_err *err);
/* The same at once, and waits a little for statements to end. */
int my_proof_now(struct my_store *s, struct ob_gaps *gaps, int64_t end, struct ob_err *err);
/* May this user see what others run? */
int my_proof_possible(struct my_store *s, bool *ret_possible, struct ob_err *err);
/* Forget what was seen of a connection that is gone. */
void my_proof_forget(struct my_proof *proof);
void my_proof_free(struct my_proof *proof);

#endif

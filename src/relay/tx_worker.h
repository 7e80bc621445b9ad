/* SPDX-License-Identifier: MIT */
/*
 * A worker whose handler writes into the log's own database: what it writes and the progress of the
 * reader commit in one transaction, so the effect of every message is exactly once. One step is
 * one read and one transaction; nothing is in memory in between, so there is nothing to drain.
 *
 * The same leases, journal and exceptions as any worker's: a failing message holds its key and is
 * tried again by the relay's rules. When one fails, the transaction is rolled back and run
 * again without it.
 */
#ifndef OB_RELAY_TX_WORKER_H
#define OB_RELAY_TX_WORKER_H

#include "relay/worker.h"

struct ob_tx_worker;

/* Has this sink such a handler? */
bool ob_tx_worker_suits(const struct ob_sink *sink);

/* As the functions of worker.h. */
int ob_tx_worker_new(const struct ob_worker_conf *conf, struct ob_tx_worker **ret_worker,
		     struct ob_err *err);
void ob_tx_worker_free(struct ob_tx_worker *worker);
void ob_tx_worker_step(struct ob_tx_worker *worker, struct ob_step *ret_step);
void ob_tx_worker_stop(struct ob_tx_worker *worker, enum ob_stop how);
void ob_tx_worker_nudge(struct ob_tx_worker *worker);
bool ob_tx_worker_is_idle(const struct ob_tx_worker *worker);
uint32_t ob_tx_worker_ended(const struct ob_tx_worker *worker);
const struct ob_err *ob_tx_worker_error(const struct ob_tx_worker *worker);

#endif

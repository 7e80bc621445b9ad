/* SPDX-License-Identifier: MIT */
/* The transactional worker's inside: tx_worker.c steps it, tx_batch.c runs one transaction. */
#ifndef OB_RELAY_TX_WORKER_IMPL_H
#define OB_RELAY_TX_WORKER_IMPL_H

#include "base/rng.h"
#include "relay/policy.h"
#include "relay/tx_worker.h"

enum { OB_TX_NUMBERS = OB_LANES * OB_PARTITIONS_MAX };

/* A lease, by hash. */
struct ob_tx_lease {
	bool owned, taken;
	uint64_t epoch, grant;
};

/* A partition number of a lease that is taken. */
struct ob_tx_part {
	uint64_t batch; /* of its newest journal row */
	struct ob_progress progress;
};

/* A message that failed in this batch. */
struct ob_tx_failure {
	bool failed;
	struct ob_verdict verdict;
	struct ob_err err;
};

struct ob_tx_worker {
	struct ob_worker_conf conf;
	struct ob_message_sql *sql; /* of a sink that is a statement */
	struct ob_policy policy;
	struct ob_decide decide;
	struct ob_rng rng;
	_Atomic int stop;
	_Atomic bool nudged;
	enum ob_worker_state state;
	struct ob_err err;
	struct ob_metrics_data data;

	uint64_t view_version;
	uint32_t partition_count, lease_count, untaken;
	struct ob_tx_lease leases[OB_PARTITIONS_MAX];
	struct ob_tx_part parts[OB_TX_NUMBERS];

	bool hungry; /* there may be more to read */
	int64_t retry_us, idle_until_us, recorded_us;
	struct ob_backoff store_backoff, idle_backoff;
	uint32_t careful; /* batches that are kept small, after a failure */

	struct ob_batch batch; /* what was read */
	struct ob_read_part *read_parts;
	size_t read_count;
	struct ob_tx_failure *failures; /* by message */
	bool *handled;                  /* by message: its handler has succeeded */
	struct ob_change *changes;
	struct ob_promote *promotes;
	struct ob_settle_part *settles;
	struct ob_str *held; /* queues that a failure of this batch holds */
	uint32_t *held_parts;
	size_t room; /* of all that are by message */
	size_t change_count, promote_count, held_count, settle_count;
};

/* Run what was read, record it, commit. 0: all of it has an outcome now; < 0: *err, and nothing
 * was written. *ret_lost: partitions were not ours any more, or moved: read again. */
int ob_tx_batch_run(struct ob_tx_worker *worker, bool *ret_lost, struct ob_err *err);
/* The partition is not ours any more: the leaser is told. */
void ob_tx_worker_lose(struct ob_tx_worker *worker, uint32_t partition);

/* worker_read.c: the reader's filter. What it does not want counts as behind it. */
bool ob_worker_is_wanted(const struct ob_worker_conf *conf, const struct ob_message *message);

#endif

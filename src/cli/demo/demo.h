/* SPDX-License-Identifier: MIT */
/*
 * The parts of `outbox demo`, one file each. Inside this folder only; the files
 * also serve cmd_bench.c.
 */
#ifndef OB_CLI_DEMO_H
#define OB_CLI_DEMO_H

#include "base/rng.h"
#include "cli/demo/child.h"
#include "cli/demo/orders.h"
#include "cli/demo/view.h"
#include "store/store.h"

enum {
	OB_DEMO_CUSTOMERS = 50,
	OB_DEMO_WORKERS = 2,
	OB_DEMO_BATCH = 50,
	OB_DEMO_PATH = 4096,
};

/* Everything is in one directory. */
struct ob_demo_files {
	char dir[OB_DEMO_PATH - 64];
	char config[OB_DEMO_PATH], database[OB_DEMO_PATH], events[OB_DEMO_PATH], log[OB_DEMO_PATH];
	char url[OB_DEMO_PATH + 8]; /* of the store, which borrows it */
};

/* ---- files.c ------------------------------------------------------------- */

/*
 * Make the directory, the configuration and the database with its outbox. `name`: of the command
 * that does; `relay`: further lines of its relay, each with four spaces before and a line
 * break behind.
 */
int ob_demo_files_make(struct ob_demo_files *files, const char *name, const char *relay,
		       struct ob_err *err);
/* Remove what was made; what is not ours stays. */
void ob_demo_files_remove(const struct ob_demo_files *files);

/* ---- shop.c: the producer on a thread of its own ------------------------- */

struct ob_demo_shop;

/* Signals should be blocked already. On success the caller owns *ret_shop. */
int ob_demo_shop_open(const struct ob_demo_files *files, struct ob_demo_shop **ret_shop,
		      struct ob_err *err);
/* So far; returns 0, or why it ended by itself. */
int ob_demo_shop_counts(struct ob_demo_shop *shop, uint64_t *ret_committed,
			uint64_t *ret_rolled_back, struct ob_err *err);
/* Finish the transaction that is open and end the thread; may be called again. */
void ob_demo_shop_close(struct ob_demo_shop *shop);
/* After close: borrowed. */
const struct ob_audit_journal *ob_demo_shop_journal(const struct ob_demo_shop *shop);
/* Closes first; NULL is allowed. */
void ob_demo_shop_free(struct ob_demo_shop *shop);

/* ---- fleet.c: the workers, and what happens to them ---------------------- */

struct ob_demo_process {
	struct ob_child child;
	enum ob_demo_role role;
	int64_t until_us; /* PAUSED: it goes on; RESUMED: it is asked to leave */
};

struct ob_demo_fleet {
	const struct ob_demo_files *files;
	struct ob_store *store; /* to pause a worker when it holds no lock */
	bool chaos;
	struct ob_rng rng;
	int64_t next_us; /* of the next mishap */
	struct ob_demo_process processes[OB_DEMO_PROCESSES];
	size_t count;
	uint32_t killed, paused;
	char news[128]; /* the last mishap, for people */
};

int ob_demo_fleet_start(struct ob_demo_fleet *fleet, int64_t now_us, struct ob_err *err);
/* Let happen what is due. A worker that ended by itself is an error. */
int ob_demo_fleet_tick(struct ob_demo_fleet *fleet, int64_t now_us, struct ob_err *err);
/* No more mishaps: those that are paused go on. */
void ob_demo_fleet_calm(struct ob_demo_fleet *fleet);
/* Ask all to leave and wait for it; the others are killed after timeout_ms, which is an error. */
int ob_demo_fleet_stop(struct ob_demo_fleet *fleet, int timeout_ms, struct ob_err *err);
/* Kill what still runs. */
void ob_demo_fleet_done(struct ob_demo_fleet *fleet);

#endif

/* SPDX-License-Identifier: MIT */
/* A settler whom the test holds in hand: it records when it is asked whether it has ended. */
#ifndef OB_TESTS_FAKE_SETTLER_H
#define OB_TESTS_FAKE_SETTLER_H

#include "relay_rig.h"

enum { FAKE_SETTLER_PARTS = OB_LANES * RIG_PARTITIONS };

struct fake_settler {
	struct ob_store_thread base;
	struct ob_memdb *db;
	struct ob_store *store;
	struct ob_settle_job *job; /* NULL: none runs */
	bool refuse;               /* take no job */
	bool hold;                 /* let no job end */
	bool hold_changes;         /* let no job with changes end */
	enum ob_err_kind fail;     /* end with that error */
	bool reply_lost;           /* after it was recorded */
	bool schema_goes;          /* for everybody, when a job begins */
	uint32_t started, waited;
	/* of the last job that began */
	struct ob_settle_part parts[FAKE_SETTLER_PARTS]; /* without their progress' references */
	uint32_t part_count, change_count;
	uint32_t published; /* messages, of all parts */
};

/* What a test has set before stays. */
void fake_settler_init(struct fake_settler *fake, struct ob_memdb *db);
/* After the workers that use it, before the database. */
void fake_settler_done(struct fake_settler *fake);

#endif

/* SPDX-License-Identifier: MIT */
/* A settler whom the test holds in hand: it records when it is asked whether it has ended. */
#ifndef OB_TESTS_FAKE_SETTLER_H
#define OB_TESTS_FAKE_SETTLER_H

#include "relay_rig.h"

struct fake_settler {
	struct ob_settler base;
	struct ob_memdb *db;
	struct ob_store *store;
	struct ob_settle_job *job; /* NULL: none runs */
	bool refuse;               /* take no job */
	bool hold;                 /* let no job end */
	enum ob_err_kind fail;     /* end with that error */
	bool reply_lost;           /* after it was recorded */
	bool schema_goes;          /* for everybody, when a job begins */
	uint32_t started, waited;
	uint32_t count; /* outcomes of the last job; each must be plainly published */
};

/* What a test has set before stays. */
void fake_settler_init(struct fake_settler *fake, struct ob_memdb *db);
/* After the workers that use it, before the database. */
void fake_settler_done(struct fake_settler *fake);

#endif

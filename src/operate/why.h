/* SPDX-License-Identifier: MIT */
/* Why a reader has not delivered a message yet, as far as the store can tell. */
#ifndef OB_OPERATE_WHY_H
#define OB_OPERATE_WHY_H

#include "base/jout.h"
#include "config/config.h"
#include "log/may_send.h"

struct ob_why {
	const char *reader;               /* NULL: NO_READER */
	const struct ob_message *message; /* the caller's */
	int64_t now_us;
	enum ob_why_reason reason;
	bool has_holder;          /* HELD */
	struct ob_message holder; /* its texts live in `batch` */
	bool leased;              /* a worker holds its partition: */
	struct ob_worker worker;  /* the owner of the lease; pid 0: not known by name */
	int64_t lease_until_us;
	bool has_report; /* what that worker tells is known: */
	struct ob_worker_report report;
	size_t workers; /* alive on the reader */
	bool no_relay;  /* the configuration has relays, but none of this reader or target */
	uint32_t hash;  /* its partition without the lane */
	bool has_pos;   /* `pos` is known: where the reader stands in its partition */
	int64_t pos;
	struct ob_batch batch;
	struct ob_arena arena;
};

/*
 * Find the reason for one message as `reader` sees it; NULL: nobody reads its target. `config` may
 * have no relays. The caller ends *why in every case.
 */
int ob_why_find(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
		const char *reader, const struct ob_message *message, int64_t now_us,
		struct ob_err *err);
/* Sentences for people: what the matter is, and what can be done. Not yet safe to print. */
void ob_why_text(const struct ob_why *why, struct ob_buf *out);
/* The same with its subject, "Message 0196... "; the reader is named only with `several`. */
void ob_why_sentence(const struct ob_why *why, bool several, struct ob_buf *out);
/* Append one object about it; `text` is its sentence. */
void ob_why_json(struct ob_jout *j, const struct ob_why *why, struct ob_str text);
void ob_why_done(struct ob_why *why);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The promises, counted: what a producer committed and rolled back, against
 * what stands in the sink's file. Knows neither store nor relay, so that it cannot
 * share their mistakes.
 */
#ifndef OB_CLI_DEMO_AUDIT_H
#define OB_CLI_DEMO_AUDIT_H

#include "base/err.h"
#include "base/uuid.h"

enum { OB_AUDIT_RECORDS_MAX = 16 << 20, OB_AUDIT_EXAMPLES_BYTES = 16 << 10 };

/* What became of one message at the producer. */
struct ob_audit_entry {
	struct ob_uuid id;
	uint32_t key; /* its ordering key as a number, from 0 and without large gaps */
	bool committed;
};

/* The producer's truth, in the order of its commits. All zero is an empty one. */
struct ob_audit_journal {
	struct ob_audit_entry *entries;
	size_t count, cap;
	uint64_t committed; /* of `count` */
};

int ob_audit_note(struct ob_audit_journal *journal, const struct ob_audit_entry *entry,
		  struct ob_err *err);
void ob_audit_journal_done(struct ob_audit_journal *journal);

/* The ids of the sink's lines, in their order. All zero is an empty one. */
struct ob_audit_lines {
	struct ob_uuid *ids;
	size_t count, cap;
	uint64_t unreadable; /* lines that are no delivery: torn by a crash */
};

/*
 * Append the lines of an NDJSON file. Call it once for each file, oldest
 * first. A file that is not there is one without lines.
 */
int ob_audit_read(struct ob_audit_lines *lines, const char *path, struct ob_err *err);
void ob_audit_lines_done(struct ob_audit_lines *lines);

struct ob_audit {
	uint64_t committed, rolled_back;
	uint64_t delivered;    /* committed messages that arrived, each counted once */
	uint64_t lost;         /* committed, not delivered */
	uint64_t ghosts;       /* lines of messages that were rolled back or that nobody wrote */
	uint64_t out_of_order; /* first copies behind the first copy of a later one of the key */
	uint64_t duplicates;   /* further copies */
	uint64_t unreadable;
	struct ob_buf examples; /* the first few of each fault, a line each */
};

/* Compare. The caller ends *ret_audit. */
int ob_audit_run(const struct ob_audit_journal *journal, const struct ob_audit_lines *lines,
		 struct ob_audit *ret_audit, struct ob_err *err);
/* Nothing lost, no ghost, nothing out of order, and no more copies than a number of crashes allows.
 */
bool ob_audit_holds(const struct ob_audit *audit, uint64_t duplicates_max);
void ob_audit_done(struct ob_audit *audit);

#endif

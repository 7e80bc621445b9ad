/* SPDX-License-Identifier: MIT */
/* What a command changes is taken down: in the audit of the log, and in the log of the system. */
#ifndef OB_CLI_OPERATE_DECIDE_H
#define OB_CLI_OPERATE_DECIDE_H

#include "operate/audit.h"

struct ob_cli_decision {
	struct ob_decision d;
	char who[256];
};

/* The user who runs this program decides; the texts are borrowed, NULL is "". */
void ob_cli_decide(struct ob_cli_decision *decision, const char *verb, const char *reader,
		   const char *filter, const char *reason);
/*
 * It is done: write the entry and the line of the system's log. An entry that cannot be written is
 * a warning, since what was done is done.
 */
void ob_cli_decided(const struct ob_cli_decision *decision, struct ob_store *store, uint64_t count);
/* The store has written the entry with the change itself: only the line. */
void ob_cli_decided_with(const struct ob_cli_decision *decision, uint64_t count);

/* The option of every command that decides; its value is in `field` of `args`. */
#define OB_REASON_OPTION(args, field) \
	{ \
		.name = "reason", .arg = "TEXT", .type = OB_CMD_TEXT, \
		.offset = offsetof(args, field), \
		.help = "Why; it is kept with the entry in the audit." \
	}

#endif

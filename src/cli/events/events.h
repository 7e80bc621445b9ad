/* SPDX-License-Identifier: MIT */
/* What the commands about events share. */
#ifndef OB_CLI_EVENTS_EVENTS_H
#define OB_CLI_EVENTS_EVENTS_H

#include "cli/cli.h"
#include "outbox/events.h"

/* A session, and the library's handle on its connection, in a transaction of its own. */
struct ob_events_session {
	struct ob_session session;
	outbox *ob;
	bool begun;
};

/* Open it, or print why not: an exit code. The caller ends it in every case. */
int ob_events_begin(struct ob_events_session *s, const struct ob_cli *cli);
/* Commit, or print why not. */
int ob_events_commit(struct ob_events_session *s);
void ob_events_done(struct ob_events_session *s);
/* Print what the library said; an exit code. */
int ob_events_fail(const struct outbox_error *err);

/* Print the events of a reader, which is closed: a table, or a JSON object a line. */
int ob_events_print(const struct ob_cli *cli, outbox_event_reader *reader);

#endif

/* SPDX-License-Identifier: MIT */
/* A stored message, and where a reader is with it, for people and for programs. */
#ifndef OB_CLI_OUT_MESSAGE_H
#define OB_CLI_OUT_MESSAGE_H

#include "base/message.h"
#include "cli/out/jout.h"

/*
 * Append what the log says of it to an open object; what push reads has the same key here. A
 * payload that is not JSON is payload_base64.
 */
void ob_message_json(struct ob_jout *j, const struct ob_message *message);
/* Append what a reader says of it: reader, state, attempts and so on. `reader` may be NULL. */
void ob_message_json_state(struct ob_jout *j, const char *reader, const struct ob_message *message);

/* Print every field that is set, one a line; safe for a terminal. */
void ob_message_print(const struct ob_message *message, int64_t now_us);
void ob_message_print_state(const char *reader, const struct ob_message *message, int64_t now_us);
/* Headers, snapshot and payload. */
void ob_message_print_body(const struct ob_message *message);

#endif

/* SPDX-License-Identifier: MIT */
/* A stored message for people and for programs; shared by list and show. */
#ifndef OB_CLI_MESSAGE_OUT_H
#define OB_CLI_MESSAGE_OUT_H

#include "base/message.h"
#include "cli/jout.h"

/*
 * Append the message as one object; what push reads has the same key here. A
 * payload that is not JSON is payload_base64.
 */
void ob_message_json(struct ob_jout *j, const struct ob_message *message, int64_t now_us);
/* Print every field that is set, one a line, and the payload below; safe for a terminal. */
void ob_message_print(const struct ob_message *message, int64_t now_us);

#endif

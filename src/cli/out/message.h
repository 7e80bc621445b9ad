/* SPDX-License-Identifier: MIT */
/* A stored message, and where a reader is with it, for people. */
#ifndef OB_CLI_OUT_MESSAGE_H
#define OB_CLI_OUT_MESSAGE_H

#include "base/message.h"

/* Print every field that is set, one a line; safe for a terminal. */
void ob_message_print(const struct ob_message *message, int64_t now_us);
void ob_message_print_state(const char *reader, const struct ob_message *message, int64_t now_us);
/* Headers, snapshot and payload. */
void ob_message_print_body(const struct ob_message *message);

#endif

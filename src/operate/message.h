/* SPDX-License-Identifier: MIT */
/* A stored message, and where a reader is with it, for programs. */
#ifndef OB_OPERATE_MESSAGE_H
#define OB_OPERATE_MESSAGE_H

#include "base/jout.h"
#include "base/message.h"

/*
 * Append what the log says of it to an open object; what push reads has the same key here. A
 * payload that is not JSON is payload_base64.
 */
void ob_message_json(struct ob_jout *j, const struct ob_message *message);
/* Append what a reader says of it: reader, state, attempts and so on. `reader` may be NULL. */
void ob_message_json_state(struct ob_jout *j, const char *reader, const struct ob_message *message);

#endif

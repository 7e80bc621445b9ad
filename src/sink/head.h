/* SPDX-License-Identifier: MIT */
/*
 * The text of a message in lines of headers (HTTP, NATS). What could be more than text is
 * percent-encoded, so nothing in a message can end a header or begin another.
 */
#ifndef OB_SINK_HEAD_H
#define OB_SINK_HEAD_H

#include "base/buf.h"

/* As a name: all but letters, digits, '-', '_' and '.' is encoded. */
void ob_head_add_name(struct ob_buf *out, struct ob_str name);
/* As a value: all but visible ASCII is encoded, and '"' and '%' as CloudEvents want it. */
void ob_head_add_value(struct ob_buf *out, struct ob_str value);

bool ob_head_is_printable(struct ob_str text);
/* Is the name that of W3C tracing? These values have an encoding of their own. */
bool ob_head_is_trace(struct ob_str name);

#endif

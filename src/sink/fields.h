/* SPDX-License-Identifier: MIT */
/*
 * What a message says of itself, as names and values, for sinks whose records have fields or
 * headers. What is absent or zero is left out; the order is fixed, `id` comes first.
 */
#ifndef OB_SINK_FIELDS_H
#define OB_SINK_FIELDS_H

#include "sink/line.h"

enum { OB_FIELDS_MAX = 12 };

struct ob_fields {
	struct ob_str name[OB_FIELDS_MAX], value[OB_FIELDS_MAX]; /* borrowed, also from itself */
	uint32_t count;
	char id[OB_UUID_TEXT_SIZE], revision[16], sequence[24], time[OB_LINE_TIME_SIZE];
};

/* Everything but destination, key, headers, body and its content type. Do not copy *f. */
void ob_fields_init(struct ob_fields *f, const struct ob_message *message);
/* Append one; an absent value is left out. There is room for three beyond the message's own. */
void ob_fields_put(struct ob_fields *f, struct ob_str name, struct ob_str value);

#endif

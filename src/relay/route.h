/* SPDX-License-Identifier: MIT */
/* Where a message goes: the destination template of the configuration, applied. */
#ifndef OB_RELAY_ROUTE_H
#define OB_RELAY_ROUTE_H

#include "sink/sink.h"

enum { OB_ROUTE_PARTS = 16 };

/* A piece of the template: literal text, or a field of the message. */
struct ob_route_part {
	struct ob_str literal;
	size_t field; /* offset of a struct ob_str in struct ob_message; SIZE_MAX: literal */
};

struct ob_route {
	struct ob_route_part parts[OB_ROUTE_PARTS];
	size_t count;
};

/*
 * Take a template apart: text with {aggregate_type}, {event_type}, {target},
 * {aggregate_id}. It must outlive the route. OUTBOX_ECONFIG says what is wrong with it.
 */
int ob_route_init(struct ob_route *route, const char *destination, struct ob_err *err);
/*
 * Fill everything of the delivery but its tag. Borrows from message, route and arena; the body is
 * the payload, unchanged. False when out of memory.
 */
bool ob_route_apply(const struct ob_route *route, const struct ob_message *message,
		    struct ob_arena *arena, struct ob_delivery *ret);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a message on its way to the sink: destination, key, headers and envelope,
 * by the route: of the configuration. Templates are taken apart once; a message costs
 * memory of its batch's arena alone.
 */
#ifndef OB_RELAY_ROUTE_H
#define OB_RELAY_ROUTE_H

#include "base/template.h"
#include "config/config.h"
#include "relay/envelope.h"

/* Of one message, with those of the route and the envelope: more than any sink's limit of bytes
 * allows beside their names. */
enum { OB_ROUTE_HEADERS = 4096 };

struct ob_route_header {
	struct ob_str name;
	struct ob_template value;
};

/* The route itself, or one of its rules. */
struct ob_route_way {
	struct ob_template destination, key, content_type, source; /* parts NULL: none */
	struct ob_route_header *headers;
	size_t header_count;
	enum ob_envelope envelope;
	bool reads_headers; /* the stored headers are needed one by one */
	bool sets_headers;  /* it adds some */
	bool snapshot;      /* it sends the snapshot */
	bool plain;         /* a destination, and nothing else */
};

struct ob_route_rule {
	struct ob_str event_type, aggregate_type; /* p NULL: any */
	struct ob_route_way way;
};

struct ob_route {
	struct ob_arena arena;
	struct ob_route_way way;
	struct ob_route_rule *rules;
	size_t rule_count;
	struct ob_str suffix; /* of messages below; p NULL: none */
	int32_t below;
	bool splits_headers; /* the sink has headers of its own */
	struct ob_envelope_conf envelope;

	/* For the message at hand: */
	struct ob_header headers[OB_ROUTE_HEADERS];
	size_t header_count;
};

/*
 * `conf` must outlive the route. OUTBOX_ECONFIG says what is wrong with it, also when the
 * sink has no binding for the envelope; then there is nothing to free.
 */
int ob_route_init(struct ob_route *route, const struct ob_config_route *conf,
		  const struct ob_sink_ops *sink, struct ob_err *err);
void ob_route_done(struct ob_route *route);

/*
 * Does every message go out with its ordering key? If not, the sink's own order is that of
 * other keys.
 */
bool ob_route_keeps_key(const struct ob_route *route);

/*
 * Fill everything of the delivery but its tag. Borrows from message, route and arena.
 * REJECT: the message cannot be routed, and why. DOWN: out of memory.
 */
int ob_route_apply(struct ob_route *route, const struct ob_message *message, struct ob_arena *arena,
		   struct ob_delivery *ret, struct ob_err *err);

#endif

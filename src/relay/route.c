/* SPDX-License-Identifier: MIT */
/* Destination templates. */
#include "relay/route.h"

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	{ "aggregate_type", offsetof(struct ob_message, aggregate_type) },
	{ "event_type", offsetof(struct ob_message, event_type) },
	{ "target", offsetof(struct ob_message, target) },
	{ "aggregate_id", offsetof(struct ob_message, aggregate_id) },
};

static bool find_field(struct ob_str name, size_t *ret_offset)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (ob_str_eq(name, ob_str(fields[i].name))) {
			*ret_offset = fields[i].offset;
			return true;
		}
	}
	return false;
}

int ob_route_init(struct ob_route *route, const char *destination, struct ob_err *err)
{
	const char *at = destination;

	*route = (struct ob_route){ 0 };
	while (*at) {
		struct ob_route_part part = { .field = SIZE_MAX };
		size_t n = strcspn(at, "{");

		if (route->count == OB_ROUTE_PARTS)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "destination \"%s\" has more than %d parts", destination,
					  OB_ROUTE_PARTS);
		if (n > 0) {
			part.literal = (struct ob_str){ at, n };
		} else {
			const char *end = strchr(at, '}');
			struct ob_str name = { at + 1, end ? (size_t)(end - at - 1) : 0 };

			if (!end || !find_field(name, &part.field))
				return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
						  "destination \"%s\": no field at \"%s\"",
						  destination, at);
			n = name.n + 2;
		}
		route->parts[route->count++] = part;
		at += n;
	}
	return 0;
}

static struct ob_str part_text(const struct ob_route_part *part, const struct ob_message *message)
{
	if (part->field == SIZE_MAX)
		return part->literal;
	return *(const struct ob_str *)((const char *)message + part->field);
}

static bool join(const struct ob_route *route, const struct ob_message *message,
		 struct ob_arena *arena, struct ob_str *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < route->count; i++)
		n += part_text(&route->parts[i], message).n;

	char *out = ob_arena_alloc(arena, n + 1);
	char *at = out;

	if (!out)
		return false;
	for (size_t i = 0; i < route->count; i++) {
		struct ob_str text = part_text(&route->parts[i], message);

		if (text.n > 0)
			memcpy(at, text.p, text.n);
		at += text.n;
	}
	*ret = (struct ob_str){ out, n };
	return true;
}

bool ob_route_apply(const struct ob_route *route, const struct ob_message *message,
		    struct ob_arena *arena, struct ob_delivery *ret)
{
	struct ob_delivery delivery = {
		.message = message,
		.key = message->key,
		.body = message->payload,
	};

	/* The usual template is one field: nothing to copy then. */
	if (route->count == 1)
		delivery.destination = part_text(&route->parts[0], message);
	else if (!join(route, message, arena, &delivery.destination))
		return false;
	if (!delivery.destination.p)
		delivery.destination = OB_STR("");
	*ret = delivery;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Routes: templates and rules, applied to every message. */
#include "relay/route.h"

#include "base/glob.h"

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory to route a message");
}

/* ---- making ---------------------------------------------------------- */

static int parse(struct ob_route *route, const char *what, const char *text,
		 struct ob_template *ret, struct ob_err *err)
{
	if (!text)
		return 0;
	if (ob_template_parse(text, &route->arena, ret, err) < 0)
		return ob_err_context(err, "route: %s \"%.100s\"", what, text);
	return 0;
}

static int make_headers(struct ob_route *route, const struct ob_config_route *conf,
			struct ob_route_way *way, struct ob_err *err)
{
	way->headers =
		ob_arena_alloc(&route->arena, (conf->header_count + 1) * sizeof(*way->headers));
	if (!way->headers)
		return no_memory(err);
	for (size_t i = 0; i < conf->header_count; i++) {
		struct ob_route_header *header = &way->headers[i];
		int r = parse(route, "header", conf->headers[i].value, &header->value, err);

		if (r < 0)
			return r;
		header->name = ob_str(conf->headers[i].name);
		way->reads_headers |= header->value.reads_headers;
	}
	way->header_count = conf->header_count;
	return 0;
}

static int make_way(struct ob_route *route, const struct ob_config_route *conf,
		    struct ob_route_way *way, struct ob_err *err)
{
	int r;

	way->envelope = (enum ob_envelope)conf->envelope;
	r = ob_envelope_check(&route->envelope, way->envelope, err);
	if (r == 0)
		r = parse(route, "destination", conf->destination, &way->destination, err);
	if (r == 0)
		r = parse(route, "key", conf->key, &way->key, err);
	if (r == 0)
		r = parse(route, "content_type", conf->content_type, &way->content_type, err);
	if (r == 0)
		r = parse(route, "source", conf->source, &way->source, err);
	if (r == 0)
		r = make_headers(route, conf, way, err);
	if (r < 0)
		return r;
	way->sets_headers = way->header_count > 0 || ob_envelope_sets_headers(way->envelope);
	way->reads_headers |= way->sets_headers || way->envelope != OB_ENVELOPE_NONE ||
			      way->destination.reads_headers || way->key.reads_headers ||
			      way->content_type.reads_headers || way->source.reads_headers;
	way->snapshot = conf->snapshot;
	way->plain = !way->reads_headers && !way->key.parts && !way->content_type.parts &&
		     !way->snapshot;
	return 0;
}

static int make_rules(struct ob_route *route, const struct ob_config_route *conf,
		      struct ob_err *err)
{
	route->rules =
		ob_arena_alloc(&route->arena, (conf->rule_count + 1) * sizeof(*route->rules));
	if (!route->rules)
		return no_memory(err);
	for (size_t i = 0; i < conf->rule_count; i++) {
		struct ob_route_rule *rule = &route->rules[i];
		int r = make_way(route, &conf->rules[i].route, &rule->way, err);

		if (r < 0)
			return r;
		rule->event_type = ob_str(conf->rules[i].event_type);
		rule->aggregate_type = ob_str(conf->rules[i].aggregate_type);
	}
	route->rule_count = conf->rule_count;
	return 0;
}

int ob_route_init(struct ob_route *route, const struct ob_config_route *conf,
		  const struct ob_sink_ops *sink, struct ob_err *err)
{
	int r;

	*route = (struct ob_route){
		.arena = OB_ARENA_INIT(SIZE_MAX / 2),
		.suffix = ob_str(conf->backfill.suffix),
		.below = conf->backfill.below,
		.splits_headers = (sink->caps & OB_SINK_HEADERS) != 0,
	};
	r = ob_envelope_init(&route->envelope, sink, &route->arena, err);
	if (r == 0)
		r = make_way(route, conf, &route->way, err);
	if (r == 0)
		r = make_rules(route, conf, err);
	if (r < 0)
		ob_route_done(route);
	return r;
}

void ob_route_done(struct ob_route *route)
{
	ob_envelope_done(&route->envelope);
	ob_arena_done(&route->arena);
}

bool ob_route_keeps_key(const struct ob_route *route)
{
	bool keeps = !route->way.key.parts;

	for (size_t i = 0; i < route->rule_count; i++)
		keeps = keeps && !route->rules[i].way.key.parts;
	return keeps;
}

/* ---- one message ----------------------------------------------------- */

static bool matches(struct ob_str pattern, struct ob_str text)
{
	return !pattern.p || ob_glob_match(pattern, text);
}

static const struct ob_route_way *choose(const struct ob_route *route,
					 const struct ob_message *message)
{
	for (size_t i = 0; i < route->rule_count; i++) {
		const struct ob_route_rule *rule = &route->rules[i];

		if (matches(rule->event_type, message->event_type) &&
		    matches(rule->aggregate_type, message->aggregate_type))
			return &rule->way;
	}
	return &route->way;
}

/* What cannot do without a value. */
static int fill_needed(const struct ob_template *template, const char *what,
		       const struct ob_template_input *input, struct ob_arena *arena,
		       struct ob_str *ret, struct ob_err *err)
{
	struct ob_str missing;

	if (!ob_template_fill(template, input, arena, ret, &missing))
		return no_memory(err);
	if (ret->p)
		return 0;
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
			  "the message has no %.*s, which the route's %s needs; write {%.*s|...} "
			  "for a default",
			  missing.n < 100 ? (int)missing.n : 100, missing.p, what,
			  missing.n < 100 ? (int)missing.n : 100, missing.p);
}

/* What is left out when a field has no value. */
static int fill_wanted(const struct ob_template *template, const struct ob_template_input *input,
		       struct ob_arena *arena, struct ob_str *ret, struct ob_err *err)
{
	struct ob_str missing;

	if (template->parts && !ob_template_fill(template, input, arena, ret, &missing))
		return no_memory(err);
	return 0;
}

static int add_suffix(const struct ob_route *route, struct ob_arena *arena, struct ob_str *text,
		      struct ob_err *err)
{
	char *out = ob_arena_alloc(arena, text->n + route->suffix.n + 1);

	if (!out)
		return no_memory(err);
	memcpy(out, text->p, text->n);
	memcpy(out + text->n, route->suffix.p, route->suffix.n);
	*text = (struct ob_str){ out, text->n + route->suffix.n };
	return 0;
}

/* The stored headers one by one; a sink that only likes to have them so can do without. */
static int read_headers(struct ob_route *route, const struct ob_route_way *way,
			const struct ob_message *message, struct ob_arena *arena,
			struct ob_err *err)
{
	int r = ob_headers_read(message->headers, arena, route->headers, OB_ROUTE_HEADERS,
				&route->header_count, err);

	return r == OUTBOX_EINVAL && !way->reads_headers ? 0 : r;
}

static int set_headers(struct ob_route *route, const struct ob_route_way *way,
		       const struct ob_template_input *input, struct ob_arena *arena,
		       struct ob_err *err)
{
	/* All are filled from the stored ones, whatever their order. */
	struct ob_str values[OB_CONFIG_HEADERS_MAX] = { 0 };

	for (size_t i = 0; i < way->header_count; i++) {
		int r = fill_wanted(&way->headers[i].value, input, arena, &values[i], err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < way->header_count; i++) {
		struct ob_header header = { .name = way->headers[i].name, .value = values[i] };

		if (header.value.p &&
		    !ob_headers_set(route->headers, &route->header_count, OB_ROUTE_HEADERS, header))
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT,
					  "the message has more than %d headers", OB_ROUTE_HEADERS);
	}
	return 0;
}

static int hand_over_headers(const struct ob_route *route, struct ob_arena *arena,
			     struct ob_delivery *delivery, struct ob_err *err)
{
	size_t size = route->header_count * sizeof(struct ob_header);
	struct ob_header *copy = size ? ob_arena_alloc(arena, size) : NULL;

	if (size && !copy)
		return no_memory(err);
	if (size)
		memcpy(copy, route->headers, size);
	delivery->headers = copy;
	delivery->header_count = route->header_count;
	return 0;
}

/* On one line: JSON has breaks and tabs between its values only. */
static int take_snapshot(const struct ob_message *message, struct ob_arena *arena,
			 struct ob_str *ret, struct ob_err *err)
{
	struct ob_str from = message->snapshot;
	char *out = from.p ? ob_arena_alloc(arena, from.n + 1) : NULL;

	if (!from.p)
		return 0;
	if (!out)
		return no_memory(err);
	for (size_t i = 0; i < from.n; i++)
		out[i] = (char)((unsigned char)from.p[i] < ' ' ? ' ' : from.p[i]);
	*ret = (struct ob_str){ out, from.n };
	return 0;
}

/* Everything besides the destination, which is all that most routes have. */
static int apply_rest(struct ob_route *route, const struct ob_route_way *way,
		      const struct ob_template_input *input, struct ob_arena *arena,
		      struct ob_delivery *delivery, struct ob_err *err)
{
	struct ob_envelope_input envelope = { .kind = way->envelope };
	int r = 0;

	if (way->key.parts)
		r = fill_wanted(&way->key, input, arena, &delivery->key, err);
	if (r == 0)
		r = fill_wanted(&way->content_type, input, arena, &delivery->content_type, err);
	if (r == 0 && way->snapshot)
		r = take_snapshot(delivery->message, arena, &delivery->snapshot, err);
	if (r == 0 && ob_envelope_has_source(way->envelope))
		r = fill_needed(&way->source, "source", input, arena, &envelope.source, err);
	if (r == 0)
		r = set_headers(route, way, input, arena, err);
	if (r == 0 && way->envelope != OB_ENVELOPE_NONE) {
		envelope.headers = route->headers;
		envelope.header_count = &route->header_count;
		envelope.header_max = OB_ROUTE_HEADERS;
		r = ob_envelope_apply(&route->envelope, &envelope, arena, delivery, err);
	}
	if (r == 0 && (route->splits_headers || way->sets_headers))
		r = hand_over_headers(route, arena, delivery, err);
	return r;
}

int ob_route_apply(struct ob_route *route, const struct ob_message *message, struct ob_arena *arena,
		   struct ob_delivery *ret, struct ob_err *err)
{
	const struct ob_route_way *way = choose(route, message);
	struct ob_template_input input = { .message = message };
	/* Every member by itself: clearing it as a block costs more than all the rest. */
	struct ob_delivery delivery = {
		.tag = 0,
		.message = message,
		.destination = OB_STR_NULL,
		.key = message->key,
		.body = message->payload,
		.content_type = OB_STR_NULL,
		.headers = NULL,
		.header_count = 0,
		.snapshot = OB_STR_NULL,
	};
	bool plain = way->plain && !(route->splits_headers && message->headers.p);
	int r = !message->garbled ? 0
				  : ob_err_set(err, OUTBOX_EKEY, OB_ERR_REJECT,
					       "its encrypted payload was changed: it cannot be "
					       "opened with its key");

	if (r == 0 && !plain) {
		r = read_headers(route, way, message, arena, err);
		input.headers = route->headers;
		input.header_count = route->header_count;
	}
	if (r == 0)
		r = fill_needed(&way->destination, "destination", &input, arena,
				&delivery.destination, err);
	if (r == 0 && route->suffix.p && message->priority < route->below)
		r = add_suffix(route, arena, &delivery.destination, err);
	if (r == 0 && !plain)
		r = apply_rest(route, way, &input, arena, &delivery, err);
	if (r < 0)
		return r;
	*ret = delivery;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Whether a reload changes a relay. */
#include "cli/work/work.h"

static bool same_text(const char *a, const char *b)
{
	return ob_str_eq(ob_str(a), ob_str(b));
}

static bool same_options(const struct ob_opt_value *a, size_t a_count, const struct ob_opt_value *b,
			 size_t b_count)
{
	if (a_count != b_count)
		return false;
	for (size_t i = 0; i < a_count; i++) {
		if (!same_text(a[i].name, b[i].name) || !same_text(a[i].value, b[i].value))
			return false;
	}
	return true;
}

static bool same_layout(const struct ob_layout *a, const struct ob_layout *b)
{
	if (!same_text(a->schema, b->schema) || a->string_id != b->string_id ||
	    a->binary_payload != b->binary_payload)
		return false;
	for (size_t i = 0; i < OB_TABLE_COUNT; i++) {
		if (!same_text(a->table[i], b->table[i]))
			return false;
	}
	for (size_t i = 0; i < OB_COL_COUNT; i++) {
		if (!same_text(a->column[i], b->column[i]) ||
		    !same_text(a->source.column[i], b->source.column[i]))
			return false;
	}
	return same_text(a->source.schema, b->source.schema) &&
	       same_text(a->source.table, b->source.table);
}

static bool same_ends(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	const struct ob_store_conf *as = &a->store->conf, *bs = &b->store->conf;

	const struct ob_config_retention *ar = &a->store->retention, *br = &b->store->retention;

	return ar->published_ms == br->published_ms && ar->dead_ms == br->dead_ms &&
	       ar->every_ms == br->every_ms && ar->batch == br->batch &&
	       same_text(as->url, bs->url) &&
	       same_options(as->options, as->option_count, bs->options, bs->option_count) &&
	       same_layout(as->layout, bs->layout) && a->sink->ops == b->sink->ops &&
	       same_options(a->sink->options, a->sink->option_count, b->sink->options,
			    b->sink->option_count);
}

#define SAME(member) (a->member == b->member)

static bool same_delivery(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	return SAME(workers) && SAME(ordering) && SAME(batch_size) && SAME(batch_bytes) &&
	       SAME(idle_backoff_ms) && SAME(shutdown_timeout_ms) && SAME(on_dead);
}

static bool same_patterns(const char *const *a, size_t a_count, const char *const *b,
			  size_t b_count)
{
	if (a_count != b_count)
		return false;
	for (size_t i = 0; i < a_count; i++) {
		if (!same_text(a[i], b[i]))
			return false;
	}
	return true;
}

/* Where it begins matters to a new reader alone, which a running relay has no more. */
static bool same_reading(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	return same_text(a->reads, b->reads) && SAME(hold_delayed) &&
	       same_patterns(a->types, a->type_count, b->types, b->type_count) &&
	       same_patterns(a->aggregates, a->aggregate_count, b->aggregates, b->aggregate_count);
}

/* Both were read from text: what is closer than this was written alike. */
static bool same_number(double a, double b)
{
	double d = a - b;

	return d < 1e-9 && d > -1e-9;
}

static bool same_policy(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	return SAME(leasing.lease_ttl_ms) && SAME(leasing.lease_renew_ms) &&
	       SAME(leasing.heartbeat_ttl_ms) && SAME(retry.max_attempts) &&
	       SAME(retry.base_delay_ms) && SAME(retry.max_backoff_ms) &&
	       same_number(a->retry.multiplier, b->retry.multiplier) &&
	       same_number(a->retry.jitter, b->retry.jitter);
}

static bool same_headers(const struct ob_config_route *a, const struct ob_config_route *b)
{
	if (a->header_count != b->header_count)
		return false;
	for (size_t i = 0; i < a->header_count; i++) {
		if (!same_text(a->headers[i].name, b->headers[i].name) ||
		    !same_text(a->headers[i].value, b->headers[i].value))
			return false;
	}
	return true;
}

static bool same_way(const struct ob_config_route *a, const struct ob_config_route *b)
{
	return same_text(a->destination, b->destination) && same_text(a->key, b->key) &&
	       same_text(a->content_type, b->content_type) && same_text(a->source, b->source) &&
	       SAME(envelope) && same_headers(a, b);
}

static bool same_route(const struct ob_config_route *a, const struct ob_config_route *b)
{
	if (!same_way(a, b) || !SAME(backfill.below) ||
	    !same_text(a->backfill.suffix, b->backfill.suffix) || !SAME(rule_count))
		return false;
	for (size_t i = 0; i < a->rule_count; i++) {
		const struct ob_config_rule *x = &a->rules[i], *y = &b->rules[i];

		if (!same_text(x->event_type, y->event_type) ||
		    !same_text(x->aggregate_type, y->aggregate_type) ||
		    !same_way(&x->route, &y->route))
			return false;
	}
	return true;
}

static bool same_failures(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	if (!SAME(failure_count))
		return false;
	for (size_t i = 0; i < a->failure_count; i++) {
		if (!same_text(a->failures[i].code, b->failures[i].code) ||
		    !same_text(a->failures[i].error, b->failures[i].error) ||
		    !SAME(failures[i].then))
			return false;
	}
	return true;
}

bool ob_work_same_relay(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	return same_text(a->name, b->name) && same_ends(a, b) && same_reading(a, b) &&
	       same_delivery(a, b) && same_policy(a, b) && same_route(&a->route, &b->route) &&
	       same_failures(a, b);
}

/* SPDX-License-Identifier: MIT */
/* Checks of a relay that need more than one value, or look inside one. */
#include "config/sections.h"

/* A value of a section of the relay: where it stands and how it is written. */
struct place {
	const char *key, *text;
	struct ob_yaml *node; /* NULL: the default */
};

static const struct ob_section *find_section(const char *name)
{
	const struct ob_section *s = ob_relay_section.sections;

	while (s->name && strcmp(s->name, name) != 0)
		s++;
	return s;
}

static struct place place_of(const struct ob_yaml *relay, const char *section, const char *key)
{
	struct place p = { .key = key, .node = ob_yaml_get(ob_yaml_get(relay, section), key) };

	if (p.node)
		p.text = p.node->expanded;
	else
		p.text = ob_opt_find(find_section(section)->opts, key)->dflt;
	return p;
}

static bool sound(struct place p)
{
	return !p.node || !p.node->faulty;
}

/* Report that `a` is not to `b` as it must be; at the one that was given. */
static void report(struct ob_walk *walk, const char *path, struct place a, struct place b,
		   const char *must, const char *hint)
{
	struct ob_yaml *node = a.node ? a.node : b.node;

	if (node && sound(a) && sound(b))
		ob_diags_add(&walk->diags, node->at, "%s.%s (%.20s) must %s %s (%.20s)%s", path,
			     a.key, a.text, must, b.key, b.text, hint);
}

static void check_leasing(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			  const struct ob_config_relay *relay)
{
	struct place ttl = place_of(node, "leasing", "lease_ttl");
	struct place renew = place_of(node, "leasing", "lease_renew");
	struct place heartbeat = place_of(node, "leasing", "heartbeat_ttl");
	char full[OB_PATH_SIZE];

	ob_walk_path(full, path, "leasing");
	if (relay->leasing.lease_renew_ms >= relay->leasing.lease_ttl_ms)
		report(walk, full, renew, ttl, "be shorter than", "; a third of it is good");
	if (relay->leasing.heartbeat_ttl_ms <= relay->leasing.lease_renew_ms)
		report(walk, full, heartbeat, renew, "be longer than", "");
}

static void check_retry(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			const struct ob_config_relay *relay)
{
	struct place base = place_of(node, "retry", "base_delay");
	struct place max = place_of(node, "retry", "max_backoff");
	char full[OB_PATH_SIZE];

	ob_walk_path(full, path, "retry");
	if (relay->retry.max_backoff_ms < relay->retry.base_delay_ms)
		report(walk, full, max, base, "not be shorter than", "");
}

static void check_ordering(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			   const struct ob_config_relay *relay)
{
	const struct ob_yaml *ordering = ob_yaml_get(node, "ordering");
	struct place enabled = place_of(node, "leasing", "enabled");

	if (relay->leasing.enabled || relay->ordering == OB_ORDER_NONE || !enabled.node)
		return;
	if (ordering && ordering->faulty)
		return;
	ob_diags_add(&walk->diags, ordering ? ordering->at : enabled.node->at,
		     "%s: with leasing off nothing keeps an order; set 'ordering: none', or leave "
		     "leasing on",
		     path);
}

static size_t field_count(void)
{
	size_t n = 0;

	while (ob_route_fields[n])
		n++;
	return n;
}

static void check_field(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			struct ob_str field)
{
	char name[64] = "";

	for (size_t i = 0; ob_route_fields[i]; i++) {
		if (ob_str_eq(field, ob_str(ob_route_fields[i])))
			return;
	}
	if (field.n < sizeof(name))
		memcpy(name, field.p, field.n);
	const char *hint = ob_suggest(name, ob_route_fields, field_count());
	ob_walk_fault(walk, node, "%s: no field '{%.*s}'%s%s%s", path,
		      (int)(field.n < 80 ? field.n : 80), field.p, hint ? "; did you mean '{" : "",
		      hint ? hint : "", hint ? "}'?" : "");
}

static void check_destination(struct ob_walk *walk, const struct ob_yaml *relay_node,
			      const char *path)
{
	struct ob_yaml *node = place_of(relay_node, "route", "destination").node;
	char full[OB_PATH_SIZE];

	if (!node || node->faulty || !node->expanded)
		return;
	ob_walk_path(full, path, "route.destination");
	const char *p = node->expanded;
	if (!*p)
		ob_walk_fault(walk, node, "%s: must not be empty", full);
	while (*(p += strcspn(p, "{}"))) {
		size_t n = strcspn(p + 1, "{}");

		if (*p == '}' || p[1 + n] != '}') {
			ob_walk_fault(walk, node, "%s: a '%c' without its '%c'", full, *p,
				      *p == '{' ? '}' : '{');
			return;
		}
		check_field(walk, node, full, (struct ob_str){ p + 1, n });
		p += n + 2;
	}
}

void ob_relay_check(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_config_relay *relay)
{
	check_leasing(walk, node, path, relay);
	check_retry(walk, node, path, relay);
	check_ordering(walk, node, path, relay);
	check_destination(walk, node, path);
}

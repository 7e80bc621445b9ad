/* SPDX-License-Identifier: MIT */
/* Checks of a relay that need more than one value. */
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

void ob_relay_check(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_config_relay *relay)
{
	check_leasing(walk, node, path, relay);
	check_retry(walk, node, path, relay);
	ob_route_check(walk, node, path, relay);
}

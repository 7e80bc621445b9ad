/* SPDX-License-Identifier: MIT */
/* What a relay reads of its target, as text and by message. */
#include "base/glob.h"
#include "config/config.h"

void ob_config_filter_text(const struct ob_config_relay *relay, struct ob_buf *out)
{
	for (size_t i = 0; i < relay->type_count; i++)
		ob_buf_addf(out, "%s%s", i > 0 ? "," : "types ", relay->types[i]);
	for (size_t i = 0; i < relay->aggregate_count; i++)
		ob_buf_addf(out, "%s%s",
			    i > 0                   ? ","
			    : relay->type_count > 0 ? " aggregates "
						    : "aggregates ",
			    relay->aggregates[i]);
}

/* Does one of "a,b*" up to the next space match? */
static bool any_matches(const char *list, struct ob_str text)
{
	for (const char *p = list; *p && *p != ' ';) {
		size_t n = strcspn(p, ", ");

		if (ob_glob_match((struct ob_str){ p, n }, text))
			return true;
		p += n;
		p += *p == ',';
	}
	return false;
}

static const char *list_of(const char *filter, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = filter; *p; p += strcspn(p, " "), p += *p == ' ') {
		if (strncmp(p, word, n) == 0 && p[n] == ' ')
			return p + n + 1;
	}
	return NULL;
}

bool ob_config_filter_selects(const char *filter, struct ob_str event_type,
			      struct ob_str aggregate_type)
{
	const char *types = list_of(filter, "types"), *aggregates = list_of(filter, "aggregates");

	return (!types || any_matches(types, event_type)) &&
	       (!aggregates || any_matches(aggregates, aggregate_type));
}

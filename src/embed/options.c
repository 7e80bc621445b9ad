/* SPDX-License-Identifier: MIT */
/*
 * From the options to a configuration: written as the file that would say the
 * same, so that defaults, ranges and messages are those of `outbox work`.
 */
#include "base/json.h"
#include "embed/embed.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>

/* As a JSON string, which YAML reads; ${...} is no variable here. */
static void add_quoted(struct ob_buf *b, const char *text)
{
	struct ob_buf safe = OB_BUF_INIT(OB_EMBED_YAML_BYTES);

	for (const char *p = text; *p; p++) {
		if (p[0] == '$' && p[1] == '{')
			ob_buf_addc(&safe, '$');
		ob_buf_addc(&safe, *p);
	}
	ob_json_add_string(b, ob_buf_view(&safe));
	b->failed = b->failed || safe.failed;
	ob_buf_done(&safe);
}

void ob_embed_add_text(struct ob_buf *b, const char *key, const char *text)
{
	ob_buf_addf(b, "%s: ", key);
	add_quoted(b, text);
}

/* Zero is left out: the default. */
void ob_embed_add_number(struct ob_buf *b, const char *key, uint32_t value, const char *unit)
{
	if (value)
		ob_buf_addf(b, ", %s: %u%s", key, value, unit);
}

void ob_embed_add_retry(struct ob_buf *b, const struct outbox_relay_options *o)
{
	ob_buf_addf(b, ", retry: { jitter: %.6f",
		    o->jitter < 0   ? 0.0
		    : o->jitter > 0 ? o->jitter
				    : 0.25);
	ob_embed_add_number(b, "max_attempts", o->max_attempts, "");
	ob_embed_add_number(b, "base_delay", o->base_delay_ms, "ms");
	ob_embed_add_number(b, "max_backoff", o->max_backoff_ms, "ms");
	/* A first delay beyond the default of the longest one lifts that too. */
	if (!o->max_backoff_ms && o->base_delay_ms > 3600000)
		ob_embed_add_number(b, "max_backoff", o->base_delay_ms, "ms");
	if (o->multiplier > 0)
		ob_buf_addf(b, ", multiplier: %.6f", o->multiplier);
	ob_buf_adds(b, " }");
}

static void add_leasing(struct ob_buf *b, const struct outbox_relay_options *o)
{
	if (o->lease_ttl_ms)
		ob_buf_addf(
			b, ", leasing: { lease_ttl: %ums, lease_renew: %ums, heartbeat_ttl: %ums }",
			o->lease_ttl_ms, o->lease_ttl_ms / 3, o->lease_ttl_ms);
}

static void add_patterns(struct ob_buf *b, const char *key, const char *const *patterns,
			 size_t count)
{
	if (!count)
		return;
	ob_buf_addf(b, ", %s: [ ", key);
	for (size_t i = 0; i < count; i++) {
		if (i)
			ob_buf_adds(b, ", ");
		add_quoted(b, patterns[i]);
	}
	ob_buf_adds(b, " ]");
}

static void add_age(struct ob_buf *b, const char *key, int64_t ms)
{
	if (ms == OUTBOX_RELAY_FOR_EVER)
		ob_buf_addf(b, "%s: never", key);
	else
		ob_buf_addf(b, "%s: %" PRId64 "ms", key, ms == OUTBOX_RELAY_NOT_AT_ALL ? 0 : ms);
}

static void add_retention(struct ob_buf *b, const struct outbox_relay_options *o)
{
	ob_buf_adds(b, ", retention: { ");
	if (o->keep_published_ms)
		add_age(b, "published", o->keep_published_ms);
	if (o->keep_published_ms && o->keep_dead_ms)
		ob_buf_adds(b, ", ");
	if (o->keep_dead_ms)
		add_age(b, "dead", o->keep_dead_ms);
	ob_buf_adds(b, " }");
}

static void write_yaml(struct ob_buf *b, const void *options)
{
	const struct outbox_relay_options *o = options;
	static const char *const orders[] = { "key", "partition", "none" };
	unsigned order = (unsigned)o->ordering < 3 ? (unsigned)o->ordering : 0;

	ob_buf_adds(b, "stores: { main: { ");
	ob_embed_add_text(b, "url", o->store);
	add_retention(b, o);
	/* The sink is put in its place afterwards. */
	ob_buf_adds(b, " } }\nsinks: { out: { type: stdout } }\nrelays:\n  - { ");
	ob_embed_add_text(b, "name", o->name ? o->name : "default");
	ob_embed_add_text(b, ", reads", o->reads ? o->reads : "default");
	if (o->start)
		ob_embed_add_text(b, ", start", o->start);
	add_patterns(b, "types", o->types, o->type_count);
	add_patterns(b, "aggregates", o->aggregates, o->aggregate_count);
	ob_embed_add_number(b, "workers", o->workers, "");
	ob_embed_add_number(b, "batch_size", o->batch_size, "");
	ob_embed_add_number(b, "idle_backoff_ms", o->idle_backoff_ms, "");
	ob_embed_add_number(b, "shutdown_timeout", o->shutdown_timeout_ms, "ms");
	ob_buf_addf(b, ", ordering: %s", orders[order]);
	ob_buf_addf(b, ", on_dead: %s", o->flags & OUTBOX_RELAY_HOLD_DEAD ? "hold" : "release");
	ob_buf_addf(b, ", hold_delayed: %s",
		    o->flags & OUTBOX_RELAY_HOLD_DELAYED ? "true" : "false");
	add_leasing(b, o);
	ob_embed_add_retry(b, o);
	ob_buf_adds(b, " }\n");
}

/* The first fault, without the place in a file that nobody has written. */
static int first_fault(const struct ob_buf *faults, const char *prefix, struct ob_err *err)
{
	const char *line = ob_buf_str(faults), *what = strstr(line, ": ");

	if (!what)
		return err->status;
	what += 2;
	if (strncmp(what, prefix, strlen(prefix)) == 0)
		what += strlen(prefix);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "options: %.*s",
			  (int)strcspn(what, "\n"), what);
}

static int set_layout(struct ob_layout *layout, const struct outbox_options *table,
		      struct ob_err *err)
{
	int r = 0;

	if (!table)
		return 0;
	if (table->table)
		r = ob_layout_set_table(layout, table->table, err);
	for (size_t i = 0; i < table->column_count && r >= 0; i++)
		r = ob_layout_set_column(layout, table->columns[i].column, table->columns[i].name,
					 err);
	layout->string_id = table->flags & OUTBOX_STRING_ID;
	layout->binary_payload = table->flags & OUTBOX_BINARY_PAYLOAD;
	return r < 0 ? r : ob_layout_check(layout, err);
}

static int parse(ob_embed_write_fn *write, const void *options, const char *prefix,
		 struct ob_config **ret_config, struct ob_err *err)
{
	struct ob_buf yaml = OB_BUF_INIT(OB_EMBED_YAML_BYTES);
	struct ob_buf faults = OB_BUF_INIT(OB_EMBED_YAML_BYTES);

	write(&yaml, options);
	int r = yaml.failed
			? ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "options: too long")
			: ob_config_parse(ob_buf_view(&yaml), "options", &faults, ret_config, err);
	if (r == OUTBOX_ECONFIG && faults.len)
		r = first_fault(&faults, prefix, err);
	ob_buf_done(&yaml);
	ob_buf_done(&faults);
	return r;
}

/* The application may live in a country that writes 0,25. */
int ob_embed_parse(ob_embed_write_fn *write, const void *options, const char *prefix,
		   struct ob_config **ret_config, struct ob_err *err)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	if (!c)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	locale_t before = uselocale(c);
	int r = parse(write, options, prefix, ret_config, err);
	(void)uselocale(before);
	freelocale(c);
	return r;
}

int ob_embed_configure(outbox_relay *relay, const struct outbox_relay_options *options,
		       struct ob_err *err)
{
	if (!options || !options->store || !options->handler)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "options: store and handler are required");
	relay->options = *options;
	int r = ob_embed_parse(write_yaml, options, "relays[0].", &relay->config, err);
	if (r < 0)
		return r;
	r = set_layout(&relay->config->layout, options->table, err);
	relay->sink = (struct ob_config_sink){ .name = "handler", .ops = &relay->ops };
	relay->config->relays[0].sink = &relay->sink;
	/* What was copied, and what nobody may look at after the call. */
	relay->options.store = relay->config->stores[0].conf.url;
	relay->options.name = relay->config->relays[0].name;
	relay->options.reads = relay->config->relays[0].reads;
	relay->options.table = NULL;
	relay->options.start = NULL;
	relay->options.types = relay->options.aggregates = NULL;
	return r;
}

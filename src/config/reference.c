/* SPDX-License-Identifier: MIT */
/* The reference page: the tables as Markdown. */
#include "config/sections.h"

#include "base/template.h"

static const char intro[] =
	"<!-- Made from the option tables by gen-reference. Change the tables, not this page. -->\n"
	"\n"
	"# Configuration\n"
	"\n"
	"The configuration is one YAML file, by default `outbox.yaml`; another is named with "
	"`-c`.\n"
	"`outbox init` writes a commented one, `outbox config check` lists everything that is "
	"wrong "
	"with it,\neach as `file:line:col: what`.\n"
	"\n"
	"- **Durations** are written `250ms`, `15s`, `5m`, `168h` or `7d`; a bare number is "
	"milliseconds.\n"
	"- **Sizes** are written `512`, `64KB`, `16MB` or `1GB`, in powers of 1024.\n"
	"- **Secrets** need not stand in the file: in every value `${NAME}` is replaced by an "
	"environment\n  variable and `${file:PATH}` by the content of a file without its last "
	"newline. A variable that is\n  not set is an error. `$${` stands for a plain `${`. Paths "
	"start at the working directory.\n"
	"- **Unknown and duplicate keys** are errors. Anchors, aliases, merge keys and tags are "
	"not "
	"supported.\n"
	"- **Limits**: 1 MB, 32 levels, 20000 keys and values, 1000 stores, sinks and relays "
	"each.\n"
	"- A reload (`SIGHUP`) takes every key over, but for those marked with ⏻, which need a "
	"restart. It restarts a relay\n"
	"  when anything in its own entry, in its store or sink, or in `layout` changed.\n";

static const struct {
	const char *name;
	bool optional;
} columns[] = {
#define X(name, optional) { #name, optional },
	OB_COLUMN_MAP(X)
#undef X
};

static const struct {
	const char *name, *there;
} sources[] = {
#define X(name, there) { #name, there },
	OB_SOURCE_MAP(X)
#undef X
};

/* A '|' would end the cell. */
static void add_cell(struct ob_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			ob_buf_addc(out, '\\');
		ob_buf_addc(out, *text);
	}
}

static void add_row(struct ob_buf *out, const struct ob_opt *opt)
{
	char what[256];

	ob_opt_describe(opt, what, sizeof(what));
	ob_buf_addf(out, "| `%s`%s | ", opt->name, opt->flags & OB_OPT_START ? " ⏻" : "");
	add_cell(out, what);
	if (opt->flags & OB_OPT_REQUIRED) {
		ob_buf_adds(out, " | *required* | ");
	} else if (opt->dflt && *opt->dflt) {
		ob_buf_adds(out, " | `");
		add_cell(out, opt->dflt);
		ob_buf_adds(out, "` | ");
	} else {
		ob_buf_adds(out, " | | ");
	}
	add_cell(out, opt->help ? opt->help : "");
	ob_buf_adds(out, " |\n");
}

static void add_table(struct ob_buf *out, const struct ob_opt *opts)
{
	if (!opts || !opts->name)
		return;
	ob_buf_adds(out, "\n| key | value | default | meaning |\n|---|---|---|---|\n");
	for (const struct ob_opt *opt = opts; opt->name; opt++)
		add_row(out, opt);
}

static void add_backend(struct ob_buf *out, const char *kind, const char *name, const char *help,
			const struct ob_opt *opts)
{
	ob_buf_addf(out, "\n### The %s `%s`\n\n%s\n", name, kind, help ? help : "");
	add_table(out, opts);
}

static void add_section(struct ob_buf *out, const struct ob_section *section, const char *of)
{
	const char *line = section->example;

	ob_buf_addf(out, "\n### `%s` of a %s\n\n%s\n", section->name, of, section->help);
	add_table(out, section->opts);
	if (!line)
		return;
	ob_buf_addf(out, "\n```yaml\n%s:\n", section->name);
	for (size_t n; *line; line += n + 1) {
		n = strcspn(line, "\n");
		ob_buf_addf(out, "  %.*s\n", (int)n, line);
	}
	ob_buf_adds(out, "```\n");
}

static void add_stores(struct ob_buf *out, const struct ob_section *section)
{
	add_table(out, section->opts);
	ob_buf_adds(out, "\n```yaml\nstores:\n  main: { url: \"sqlite:outbox.db\" }\n```\n");
	for (const struct ob_section *s = section->sections; s->name; s++)
		add_section(out, s, "store");
	ob_buf_adds(
		out,
		"\nA row is removed when every reader has delivered it and it is older than that. "
		"`published: never` keeps everything:\nthe log is an event store. A reader that "
		"nobody runs keeps its rows; `outbox status` names it, `outbox readers remove`\n"
		"forgets it. Dead messages keep their row until `dead` is over.\n");
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++)
		add_backend(out, b->name, "store", b->help, b->ops ? b->ops->opts : NULL);
}

static void add_sinks(struct ob_buf *out, const struct ob_section *section)
{
	add_table(out, section->opts);
	ob_buf_adds(out,
		    "\n```yaml\nsinks:\n  out: { type: file, path: \"outbox.ndjson\" }\n```\n");
	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++)
		add_backend(out, b->name, "sink", b->help, b->ops ? b->ops->opts : NULL);
}

static void add_route(struct ob_buf *out, const struct ob_section *route)
{
	ob_buf_adds(out, "\nFields of a template:");
	for (size_t i = 0; ob_field_names[i]; i++)
		ob_buf_addf(out, "%s `{%s}`", i ? "," : "", ob_field_names[i]);
	ob_buf_adds(out,
		    ", and `{headers.NAME}` for a stored\nheader. `{aggregate_id|none}` has a text "
		    "for messages without a value; doubled braces stand\nfor themselves. "
		    "[Routing](routing.md) has the whole story.\n");
	for (const struct ob_section *s = route->sections; s->name; s++)
		add_section(out, s, "route");
	ob_buf_adds(out,
		    "\nA rule may also have `destination`, `key`, `envelope`, `content_type`, "
		    "`source` and `headers`.\n");
}

static void add_relays(struct ob_buf *out)
{
	ob_buf_adds(
		out,
		"\nWithout `relays`, one store and one sink make one relay named `default`."
		" Names are unique in a database.\n"
		"Several relays may read one target: each gets every message, with progress and "
		"failures of its own.\n");
	add_table(out, ob_relay_section.opts);
	ob_buf_adds(out,
		    "\nConnections to the database: two for the relay (leases; retention), one for "
		    "each worker, and one more for each\nworker while there is more to read than a "
		    "batch: on it progress is recorded concurrently with the next read. It is\n"
		    "given back after 5 s without use; where it is refused, the worker goes on "
		    "with one. With `listen_url` each worker\nhas another one, for LISTEN. `outbox "
		    "work` counts the backlog of each relay on one more. So let `max_connections`\n"
		    "have room for 3 + 2 × `workers` (with `listen_url` 3 + 3 × `workers`), for "
		    "each relay and each process.\n");
	for (const struct ob_section *s = ob_relay_section.sections; s->name; s++) {
		add_section(out, s, "relay");
		if (s->opts == ob_route_opts)
			add_route(out, s);
	}
	ob_buf_adds(out,
		    "\nWhat must fit together: `lease_renew` is shorter than `lease_ttl` (a third "
		    "is good),\n`heartbeat_ttl` longer than `lease_renew`, `max_backoff` not "
		    "shorter than `base_delay`.\n");
}

static void add_consumers(struct ob_buf *out)
{
	ob_buf_adds(out, "\n[Consumers](consume.md) has the whole story.\n");
	add_table(out, ob_consumer_section.opts);
	for (const struct ob_section *s = ob_consumer_section.sections; s->name; s++)
		add_section(out, s, "consumer");
	for (const struct ob_feed_backend *b = ob_feed_backends; b->name; b++) {
		add_backend(out, b->name, "source", b->help, b->ops ? b->ops->opts : NULL);
		if (!b->ops || !b->ops->link)
			continue;
		ob_buf_adds(out, "\nAnd, as for the sink:");
		for (const char *const *name = b->ops->link_opts; *name; name++)
			ob_buf_addf(out, "%s `%s`", name == b->ops->link_opts ? "" : ",", *name);
		ob_buf_adds(out, ".\n");
	}
}

static void add_columns(struct ob_buf *out, const struct ob_section *section)
{
	ob_buf_addf(out,
		    "\n### `%s` of the layout\n\n%s\n\n```yaml\nlayout:\n  columns:\n"
		    "    event_type: kind\n    causation_id: ~\n```\n",
		    section->name, section->help);
	ob_buf_adds(out, "\n| column | may be switched off |\n|---|---|\n");
	for (size_t i = 0; i < OB_COL_COUNT; i++)
		ob_buf_addf(out, "| `%s` | %s |\n", columns[i].name,
			    columns[i].optional ? "yes" : "no");
}

static void add_debezium(struct ob_buf *out, const struct ob_section *section)
{
	ob_buf_addf(out, "\n### `%s` of the layout\n\n%s\n", section->name, section->help);
	add_table(out, section->opts);
	ob_buf_adds(out,
		    "\n```yaml\nlayout:\n  table: outbox_relay\n  debezium:\n"
		    "    table: outbox\n    columns: { occurred_at: timestamp }\n```\n"
		    "\n| column | copied from |\n|---|---|\n");
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		ob_buf_addf(out, sources[i].there[0] ? "| `%s` | `%s` |\n" : "| `%s` | |\n",
			    sources[i].name, sources[i].there);
	ob_buf_adds(out, "\nColumns without a name here are copied when `columns` gives one.\n");
}

void ob_config_reference(struct ob_buf *out)
{
	ob_buf_adds(out, intro);
	for (const struct ob_section *s = ob_config_section.sections; s->name; s++) {
		ob_buf_addf(out, "\n## `%s`\n\n%s\n", s->name, s->help);
		if (s->read == ob_read_stores)
			add_stores(out, s);
		else if (s->read == ob_read_sinks)
			add_sinks(out, s);
		else if (s->read == ob_read_relays)
			add_relays(out);
		else if (s->read == ob_read_consumers)
			add_consumers(out);
		else
			add_table(out, s->opts);
		for (const struct ob_section *sub = s->sections; sub && sub->name; sub++) {
			if (sub->read == ob_read_debezium)
				add_debezium(out, sub);
			else if (sub->read == ob_read_columns)
				add_columns(out, sub);
			else if (s->read == ob_read_monitor)
				add_section(out, sub, "monitor");
		}
	}
}

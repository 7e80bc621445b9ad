/* SPDX-License-Identifier: MIT */
/* The sample file: the tables as a commented configuration that loads as it is. */
#include "config/sections.h"

#include <stdio.h>

/* The keys that are not behind a '#', and what stands there instead of the default. */
static const struct {
	const char *section, *key, *value;
} live[] = {
	{ "relays", "name", NULL },       { "relays", "store", "main" },
	{ "relays", "sink", "out" },      { "relays", "workers", NULL },
	{ "relays", "ordering", NULL },   { "retry", "max_attempts", NULL },
	{ "route", "destination", NULL }, { "retention", "published", NULL },
	{ "log", "level", NULL },         { "relays", "reads", NULL },
};

enum { HELP_COLUMN = 32, LINE_MAX_COLUMNS = 100 };

/* Where a database or a sink is on the machine of somebody who tries it. */
static const struct {
	const char *backend, *where;
} wheres[] = {
	{ "sqlite", "sqlite:outbox.db" },
	{ "postgres", "postgresql://localhost/shop" },
	{ "mysql", "mysql://root@localhost/shop" },
	{ "file", "outbox.ndjson" },
	{ "exec", "./handler" },
	{ "sql", "INSERT INTO seen (id) VALUES (:id)" },
	{ "http", "https://example.com/outbox" },
	{ "redis", "redis://localhost:6379" },
	{ "kafka", "localhost:9092" },
	{ "rabbitmq", "amqp://guest:guest@localhost:5672" },
	{ "nats", "nats://localhost:4222" },
};

static const char *where(const char *backend)
{
	for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
		if (strcmp(wheres[i].backend, backend) == 0)
			return wheres[i].where;
	}
	return "";
}

/* How far in, and what stands before the next key: the first of a list item has its dash. */
struct place {
	const char *section;
	int indent;
	bool dash;
	const char *required; /* what stands in a key that must be there; NULL: nothing special */
};

static const char *zero_of(const struct ob_opt *opt)
{
	if (opt->type == OB_OPT_STR)
		return "";
	if (opt->type == OB_OPT_ENUM)
		return opt->choices[0];
	return opt->type == OB_OPT_BOOL ? "false" : "0";
}

/* Plain where YAML and the eye allow it. */
static void add_value(struct ob_buf *line, const char *value)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_./-";

	if (*value && value[strspn(value, plain)] == '\0') {
		ob_buf_adds(line, value);
		return;
	}
	ob_buf_addc(line, '"');
	for (const char *p = value; *p; p++) {
		if (*p == '"' || *p == '\\')
			ob_buf_addc(line, '\\');
		ob_buf_addc(line, *p);
	}
	ob_buf_addc(line, '"');
}

static void add_choices(struct ob_buf *text, const struct ob_opt *opt)
{
	for (size_t i = 0; opt->choices[i]; i++)
		ob_buf_addf(text, "%s%s", i ? " | " : "", opt->choices[i]);
}

static void add_sink_types(struct ob_buf *text)
{
	size_t n = 0;

	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		if (b->ops)
			ob_buf_addf(text, "%s%s", n++ ? " | " : "", b->name);
	}
}

/* The sentence without its full stop, and what may stand there. */
static void add_help(struct ob_buf *text, const struct ob_opt *opt)
{
	struct ob_str help = ob_str(opt->help ? opt->help : "");

	if (help.n && help.p[help.n - 1] == '.')
		help.n--;
	ob_buf_add(text, help);
	if (opt->type == OB_OPT_ENUM || opt == ob_sink_entry_opts) {
		ob_buf_adds(text, ": ");
		if (opt->type == OB_OPT_ENUM)
			add_choices(text, opt);
		else
			add_sink_types(text);
	}
}

static void add_line(struct ob_buf *out, int indent, const struct ob_buf *key,
		     const struct ob_buf *help)
{
	int pad = HELP_COLUMN - (int)key->len;

	pad = pad < 2 ? 2 : pad;
	if (!help->len)
		ob_buf_addf(out, "%s\n", ob_buf_str(key));
	else if (key->len + (size_t)pad + 2 + help->len <= LINE_MAX_COLUMNS)
		ob_buf_addf(out, "%s%*s# %s\n", ob_buf_str(key), pad, "", ob_buf_str(help));
	else
		ob_buf_addf(out, "%*s# %s\n%s\n", indent, "", ob_buf_str(help), ob_buf_str(key));
}

static void add_option(struct ob_buf *out, struct place *place, const struct ob_opt *opt)
{
	struct ob_buf key = OB_BUF_INIT(1024), help = OB_BUF_INIT(1024);
	const char *value = opt->dflt ? opt->dflt : zero_of(opt);
	bool shown = false;

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		if (strcmp(live[i].section, place->section) == 0 &&
		    strcmp(live[i].key, opt->name) == 0) {
			shown = true;
			value = live[i].value ? live[i].value : value;
		}
	}
	if (place->required && (opt->flags & OB_OPT_REQUIRED)) {
		shown = true;
		value = place->required;
	}
	ob_buf_addf(&key, "%*s%s%s%s: ", place->indent - (place->dash ? 2 : 0), "",
		    place->dash ? "- " : "", shown ? "" : "#", opt->name);
	add_value(&key, value);
	add_help(&help, opt);
	add_line(out, place->indent, &key, &help);
	place->dash = false;
	ob_buf_done(&key);
	ob_buf_done(&help);
}

static void add_options(struct ob_buf *out, struct place place, const struct ob_opt *opts)
{
	for (const struct ob_opt *opt = opts; opt && opt->name; opt++)
		add_option(out, &place, opt);
}

static void add_heading(struct ob_buf *out, int indent, const struct ob_section *section)
{
	ob_buf_addf(out, "\n%*s# %s\n%*s%s:\n", indent, "", section->help, indent, "",
		    section->name);
}

/* A section of which there is only an example to show: behind '#', line by line. */
static void add_example(struct ob_buf *out, int indent, const struct ob_section *section)
{
	const char *line = section->example;

	ob_buf_addf(out, "\n%*s# %s\n%*s#%s:\n", indent, "", section->help, indent, "",
		    section->name);
	while (*line) {
		size_t n = strcspn(line, "\n");

		ob_buf_addf(out, "%*s#  %.*s\n", indent, "", (int)n, line);
		line += n + 1;
	}
}

/* A section of a relay, and those in it. */
static void add_section(struct ob_buf *out, int indent, const struct ob_section *section)
{
	if (section->example) {
		add_example(out, indent, section);
		return;
	}
	add_heading(out, indent, section);
	add_options(out, (struct place){ section->name, indent + 2, false, NULL }, section->opts);
	for (const struct ob_section *s = section->sections; s && s->name; s++)
		add_section(out, indent + 2, s);
}

static void add_store(struct ob_buf *out, const struct ob_section *section,
		      const struct ob_store_backend *backend)
{
	struct place place = { section->name, 4, false, where(backend->name) };

	ob_buf_adds(out, "  main:\n");
	add_options(out, place, section->opts);
	if (backend->ops)
		add_options(out, place, backend->ops->opts);
	for (const struct ob_section *s = section->sections; s->name; s++)
		add_section(out, 4, s);
}

static void add_sink(struct ob_buf *out, const struct ob_section *section,
		     const struct ob_sink_backend *backend)
{
	ob_buf_adds(out, "  out:\n");
	add_options(out, (struct place){ section->name, 4, false, backend->name }, section->opts);
	if (backend->ops)
		add_options(out, (struct place){ section->name, 4, false, where(backend->name) },
			    backend->ops->opts);
}

static void add_relay(struct ob_buf *out)
{
	add_options(out, (struct place){ "relays", 4, true, NULL }, ob_relay_section.opts);
	for (const struct ob_section *s = ob_relay_section.sections; s->name; s++)
		add_section(out, 4, s);
}

static void add_plain(struct ob_buf *out, const struct ob_section *section)
{
	add_options(out, (struct place){ section->name, 2, false, NULL }, section->opts);
	for (const struct ob_section *s = section->sections; s && s->name; s++) {
		if (!s->opts) /* what must be filled in is for those who look for it */
			add_heading(out, 2, s);
	}
}

void ob_config_sample(const struct ob_store_backend *store, const struct ob_sink_backend *sink,
		      struct ob_buf *out)
{
	struct ob_err err = OB_ERR_INIT;

	if ((!store && ob_store_find("sqlite:", &store, &err) < 0) ||
	    (!sink && ob_sink_find("file", &sink, &err) < 0))
		return;
	ob_buf_adds(out,
		    "# Configuration of outbox. Check it with: outbox config check\n"
		    "#\n"
		    "# A key behind a '#' shows its default. In values ${NAME} stands for an\n"
		    "# environment variable and ${file:PATH} for the content of a file.\n");
	for (const struct ob_section *s = ob_config_section.sections; s->name; s++) {
		if (s->read == ob_read_consumers) /* docs/consume.md has samples */
			continue;
		add_heading(out, 0, s);
		if (s->read == ob_read_stores)
			add_store(out, s, store);
		else if (s->read == ob_read_sinks)
			add_sink(out, s, sink);
		else if (s->read == ob_read_relays)
			add_relay(out);
		else
			add_plain(out, s);
	}
	ob_buf_adds(out, "    #event_type: kind\n    #causation_id: ~\n");
}

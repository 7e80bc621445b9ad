/* SPDX-License-Identifier: MIT */
/* The file as a whole: its sections, and the keys of the small ones. */
#include "config/sections.h"

static const char *const level_names[] = { "error", "warn", "info", "debug", NULL };
static const char *const format_names[] = { "auto", "logfmt", "json", NULL };
static const char *const id_type_names[] = { "uuid", "string", NULL };
static const char *const payload_type_names[] = { "json", "binary", NULL };

/* The names are written in the order of the enums. */
_Static_assert(OB_LOG_ERROR == 0 && OB_LOG_WARN == 1 && OB_LOG_INFO == 2 && OB_LOG_DEBUG == 3,
	       "level_names");
_Static_assert(OB_LOG_AUTO == 0 && OB_LOG_LOGFMT == 1 && OB_LOG_JSON == 2, "format_names");
_Static_assert(sizeof(enum ob_log_level) == sizeof(int) &&
		       sizeof(enum ob_log_format) == sizeof(int),
	       "an ENUM option is an int");

const struct ob_opt ob_store_entry_opts[] = {
	{
		.name = "url",
		.type = OB_OPT_STR,
		.offset = offsetof(struct ob_store_draft, url),
		.flags = OB_OPT_REQUIRED | OB_OPT_SECRET,
		.help = "The database; its scheme names the backend.",
	},
	OB_OPT_END,
};

#define RETENTION(member) offsetof(struct ob_store_draft, retention.member)

enum { SECOND = 1000, DAY = 24 * 60 * 60 * SECOND };

static const struct ob_opt retention_opts[] = {
	{
		.name = "published",
		.type = OB_OPT_DURATION_MS,
		.offset = RETENTION(published_ms),
		.dflt = "168h",
		.min = 0,
		.max = INT64_C(3650) * DAY,
		.flags = OB_OPT_NEVER,
		.help = "How long rows stay after every reader has passed them; 0: not at all.",
	},
	{
		.name = "dead",
		.type = OB_OPT_DURATION_MS,
		.offset = RETENTION(dead_ms),
		.dflt = "never",
		.min = SECOND,
		.max = INT64_C(3650) * DAY,
		.flags = OB_OPT_NEVER,
		.help = "Age at which dead messages are forgotten.",
	},
	{
		.name = "every",
		.type = OB_OPT_DURATION_MS,
		.offset = RETENTION(every_ms),
		.dflt = "1m",
		.min = SECOND,
		.max = INT64_C(7) * DAY,
		.flags = OB_OPT_NEVER,
		.help = "Time between two passes of a relay; never where cron runs `outbox "
			"maintain`.",
	},
	{
		.name = "inbox",
		.type = OB_OPT_DURATION_MS,
		.offset = RETENTION(inbox_ms),
		.dflt = "168h",
		.min = SECOND,
		.max = INT64_C(3650) * DAY,
		.flags = OB_OPT_NEVER,
		.help = "How long the inbox remembers what consumers have handled.",
	},
	{
		.name = "batch",
		.type = OB_OPT_U32,
		.offset = RETENTION(batch),
		.dflt = "10000",
		.min = 1,
		.max = 100000,
		.help = "Rows removed in one transaction.",
	},
	OB_OPT_END,
};

const struct ob_section ob_store_entry_sections[] = {
	{
		.name = "retention",
		.opts = retention_opts,
		.help = "How long the log keeps rows that every reader has passed.",
	},
	OB_SECTION_END,
};

const struct ob_opt ob_sink_entry_opts[] = {
	{
		.name = "type",
		.type = OB_OPT_STR,
		.offset = offsetof(struct ob_sink_draft, type),
		.flags = OB_OPT_REQUIRED,
		.help = "The kind of sink.",
	},
	OB_OPT_END,
};

static const struct ob_opt log_opts[] = {
	{
		.name = "level",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct ob_config, log_level),
		.dflt = "info",
		.choices = level_names,
		.help = "The least that is logged.",
	},
	{
		.name = "format",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct ob_config, log_format),
		.dflt = "auto",
		.choices = format_names,
		.flags = OB_OPT_START,
		.help = "How a line looks; auto suits the journal.",
	},
	OB_OPT_END,
};

const struct ob_opt ob_layout_opts[] = {
	{
		.name = "table",
		.type = OB_OPT_STR,
		.offset = offsetof(struct ob_layout_draft, table),
		.dflt = "outbox",
		.help = "The outbox table, name or schema.name; its companions follow.",
	},
	{
		.name = "id_type",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct ob_layout_draft, id_type),
		.dflt = "uuid",
		.choices = id_type_names,
		.help = "Whether the id column holds 16 bytes or text.",
	},
	{
		.name = "payload_type",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct ob_layout_draft, payload_type),
		.dflt = "json",
		.choices = payload_type_names,
		.help = "Whether the payload column holds JSON or bytes.",
	},
	{
		.name = "validate_payload",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct ob_layout_draft, validate_payload),
		.dflt = "true",
		.help = "Check that a payload is JSON before it is stored.",
	},
	{
		.name = "validate_headers",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct ob_layout_draft, validate_headers),
		.dflt = "true",
		.help = "Check that headers are a JSON object before they are stored.",
	},
	OB_OPT_END,
};

static const struct ob_opt source_opts[] = {
	{
		.name = "table",
		.type = OB_OPT_STR,
		.offset = offsetof(struct ob_source_draft, table),
		.flags = OB_OPT_REQUIRED,
		.help = "Your own table, name or schema.name.",
	},
	OB_OPT_END,
};

static const struct ob_section source_sections[] = {
	{
		.name = "columns",
		.read = ob_read_source_columns,
		.help = "Our column names and those of your table.",
	},
	OB_SECTION_END,
};

static const struct ob_section layout_sections[] = {
	{
		.name = "columns",
		.read = ob_read_columns,
		.help = "Our column names and yours; ~ switches an optional one off.",
	},
	{
		.name = "debezium",
		.opts = source_opts,
		.sections = source_sections,
		.read = ob_read_debezium,
		.help = "A table of yours with Debezium's columns: setup makes a trigger that "
			"copies each new row into the outbox.",
	},
	OB_SECTION_END,
};

static const struct ob_section sections[] = {
	{
		.name = "stores",
		.opts = ob_store_entry_opts,
		.sections = ob_store_entry_sections,
		.read = ob_read_stores,
		.help = "Databases with an outbox, each under a name of your choice.",
	},
	{
		.name = "sinks",
		.opts = ob_sink_entry_opts,
		.read = ob_read_sinks,
		.help = "Where messages can go, each under a name of your choice.",
	},
	{
		.name = "relays",
		.read = ob_read_relays,
		.help = "A list: which store is delivered to which sink, and how.",
	},
	{
		.name = "consumers",
		.read = ob_read_consumers,
		.help = "A list: which source is handled by what, and how.",
	},
	{
		.name = "log",
		.opts = log_opts,
		.help = "What the relay writes to stderr.",
	},
	{
		.name = "monitor",
		.opts = ob_monitor_opts,
		.sections = ob_monitor_sections,
		.read = ob_read_monitor,
		.help = "The web monitor: pages, an API and metrics over HTTP.",
	},
	{
		.name = "layout",
		.opts = ob_layout_opts,
		.sections = layout_sections,
		.read = ob_read_layout,
		.help = "The names in your database, when they are not ours.",
	},
	OB_SECTION_END,
};

const struct ob_section ob_config_section = { .name = "", .sections = sections };

/* SPDX-License-Identifier: MIT */
/* Every key of a consumer: one row each. */
#include "config/sections.h"

#define DRAFT(member)    offsetof(struct ob_consumer_draft, member)
#define CONSUMER(member) offsetof(struct ob_consumer_draft, consumer.member)

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static const char *const dedup_names[] = { "ids", "position", "none", NULL };
static const char *const ordering_names[] = { "key", "none", NULL };
static const char *const on_dead_names[] = { "release", "hold", NULL };

static const struct ob_opt consumer_opts[] = {
	{
		.name = "name",
		.type = OB_OPT_STR,
		.offset = DRAFT(name),
		.flags = OB_OPT_REQUIRED,
		.help = "Names the consumer: its inbox, its group in the source, its parked "
			"messages.",
	},
	{
		.name = "store",
		.type = OB_OPT_STR,
		.offset = DRAFT(store),
		.help = "Its own database, set up with --inbox; may be left out when there is only "
			"one.",
	},
	{
		.name = "sql",
		.type = OB_OPT_STR,
		.offset = DRAFT(sql),
		.help = "A handler without a program: a statement with :id, :type, :payload and so "
			"on, in one transaction with the inbox.",
	},
	{
		.name = "dedup",
		.type = OB_OPT_ENUM,
		.offset = CONSUMER(dedup),
		.dflt = "ids",
		.choices = dedup_names,
		.help = "How a copy is told: by a row for each id, by the position in the source, "
			"or "
			"not at all. With exec and http the handler asks the inbox itself.",
	},
	{
		.name = "ordering",
		.type = OB_OPT_ENUM,
		.offset = CONSUMER(ordering),
		.dflt = "key",
		.choices = ordering_names,
		.help = "key: one process at a time, messages of a key in order. none: processes "
			"share the source.",
	},
	{
		.name = "on_dead",
		.type = OB_OPT_ENUM,
		.offset = CONSUMER(on_dead),
		.dflt = "hold",
		.choices = on_dead_names,
		.help = "Whether a message that was given up lets its key go on.",
	},
	{
		.name = "lanes",
		.type = OB_OPT_U32,
		.offset = CONSUMER(lanes),
		.dflt = "4",
		.min = 1,
		.max = 64,
		.help = "Connections of an sql handler: keys are spread over them. SQLite has one.",
	},
	{
		.name = "batch_size",
		.type = OB_OPT_U32,
		.offset = CONSUMER(batch_size),
		.dflt = "100",
		.min = 1,
		.max = 1000,
		.help = "Maximum messages per read, and per transaction of an sql handler.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = CONSUMER(window),
		.dflt = "1000",
		.min = 1,
		.max = 100000,
		.help = "Maximum messages in memory, not yet acknowledged.",
	},
	{
		.name = "lease_ttl",
		.type = OB_OPT_DURATION_MS,
		.offset = CONSUMER(lease_ttl_ms),
		.dflt = "15s",
		.min = SECOND,
		.max = HOUR,
		.help = "How long a silent process keeps the consumer.",
	},
	{
		.name = "shutdown_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = CONSUMER(shutdown_timeout_ms),
		.dflt = "10s",
		.min = 0,
		.max = HOUR,
		.help = "Time for the handler to finish at a stop.",
	},
	OB_OPT_END,
};

static const struct ob_opt retry_opts[] = {
	OB_RETRY_OPTS(CONSUMER, "1s"),
	OB_OPT_END,
};

static const struct ob_opt park_opts[] = {
	{
		.name = "max_per_key",
		.type = OB_OPT_U32,
		.offset = CONSUMER(park.max_per_key),
		.dflt = "1000",
		.min = 1,
		.max = 1000000,
		.help = "Parked messages of one key; with more the source is paused.",
	},
	{
		.name = "max_total",
		.type = OB_OPT_U32,
		.offset = CONSUMER(park.max_total),
		.dflt = "100000",
		.min = 1,
		.max = 100000000,
		.help = "Parked messages in all; with more the source is paused.",
	},
	OB_OPT_END,
};

static const struct ob_opt letter_opts[] = {
	{
		.name = "sink",
		.type = OB_OPT_STR,
		.offset = DRAFT(letter_sink),
		.flags = OB_OPT_REQUIRED,
		.help = "Where dead letters go, a name of `sinks`.",
	},
	{
		.name = "destination",
		.type = OB_OPT_STR,
		.offset = DRAFT(letter_destination),
		.flags = OB_OPT_REQUIRED,
		.help = "The stream, topic or subject there.",
	},
	OB_OPT_END,
};

static const struct ob_section consumer_sections[] = {
	{
		.name = "source",
		.read = ob_read_source,
		.example = "type: redis\nurl: \"redis://localhost:6379\"\nstream: orders\n",
		.help = "Where messages come from: a type, and the options of that type below.",
	},
	{
		.name = "exec",
		.read = ob_read_handler,
		.example = "command: \"python3 handler.py\"\n",
		.help = "A handler that is a program of yours: the options and the protocol of the "
			"exec sink.",
	},
	{
		.name = "http",
		.read = ob_read_handler,
		.example = "url: \"https://example.com/orders\"\n",
		.help = "A handler behind a URL: the options of the http sink.",
	},
	{
		.name = "retry",
		.opts = retry_opts,
		.help = "When a parked message is tried again.",
	},
	{
		.name = "park",
		.opts = park_opts,
		.help = "How much may be parked in the consumer's database.",
	},
	{
		.name = "dead_letters",
		.opts = letter_opts,
		.help = "Send messages that were given up somewhere else; needs `on_dead: "
			"release`.",
	},
	{
		.name = "failures",
		.opts = ob_failure_opts,
		.read = ob_read_consumer_failures,
		.example = "- { error: \"*duplicate key*\", then: reject }\n",
		.help = "A list: what an error of the handler means; the first rule that matches "
			"decides.",
	},
	OB_SECTION_END,
};

const struct ob_section ob_consumer_section = {
	.name = "consumers",
	.opts = consumer_opts,
	.sections = consumer_sections,
	.help = "Which source is handled by what, and how.",
};

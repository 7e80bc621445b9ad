/* SPDX-License-Identifier: MIT */
/* Every key of a relay: one row each. */
#include "config/sections.h"

#define DRAFT(member) offsetof(struct ob_relay_draft, member)
#define RELAY(member) offsetof(struct ob_relay_draft, relay.member)

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static const char *const ordering_names[] = { "key", "partition", "none", NULL };
static const char *const on_dead_names[] = { "release", "hold", NULL };

const struct ob_opt ob_relay_opts[] = {
	{
		.name = "name",
		.type = OB_OPT_STR,
		.offset = DRAFT(name),
		.dflt = "default",
		.help = "Names its reader: progress and failures are kept under it.",
	},
	{
		.name = "store",
		.type = OB_OPT_STR,
		.offset = DRAFT(store),
		.help = "Where messages come from; may be left out when there is only one.",
	},
	{
		.name = "sink",
		.type = OB_OPT_STR,
		.offset = DRAFT(sink),
		.help = "Where messages go; may be left out when there is only one.",
	},
	{
		.name = "reads",
		.type = OB_OPT_STR,
		.offset = DRAFT(reads),
		.dflt = "default",
		.help = "The target of its messages; each relay that reads one gets them all.",
	},
	{
		.name = "start",
		.type = OB_OPT_STR,
		.offset = DRAFT(start),
		.dflt = "beginning",
		.help = "Where a new reader begins: beginning, end, or a time such as "
			"2026-05-01T00:00:00Z.",
	},
	{
		.name = "master_keys",
		.type = OB_OPT_STR,
		.offset = DRAFT(master_keys),
		.flags = OB_OPT_SECRET,
		.help = "Send encrypted payloads as plain ones, opened with these master keys, "
			"\"ID:BASE64 ...\"; none: as stored.",
	},
	{
		.name = "workers",
		.type = OB_OPT_U32,
		.offset = RELAY(workers),
		.dflt = "1",
		.min = 1,
		.max = 256,
		.help = "Threads, each with connections of its own.",
	},
	{
		.name = "ordering",
		.type = OB_OPT_ENUM,
		.offset = RELAY(ordering),
		.dflt = "key",
		.choices = ordering_names,
		.help = "What a failing message holds back.",
	},
	{
		.name = "batch_size",
		.type = OB_OPT_U32,
		.offset = RELAY(batch_size),
		.dflt = "500",
		.min = 1,
		.max = 10000,
		.help = "Maximum messages per read.",
	},
	{
		.name = "batch_bytes",
		.type = OB_OPT_SIZE,
		.offset = RELAY(batch_bytes),
		.dflt = "8MB",
		.min = 1 << 10,
		.max = 1 << 30,
		.help = "Maximum payload per read; one message always fits.",
	},
	{
		.name = "idle_backoff_ms",
		.type = OB_OPT_DURATION_MS,
		.offset = RELAY(idle_backoff_ms),
		.dflt = "1000",
		.min = 10,
		.max = HOUR,
		.help = "Longest wait between two reads when there is no work.",
	},
	{
		.name = "shutdown_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = RELAY(shutdown_timeout_ms),
		.dflt = "10s",
		.min = 0,
		.max = HOUR,
		.help = "Time for messages in flight to be confirmed at a stop.",
	},
	{
		.name = "on_dead",
		.type = OB_OPT_ENUM,
		.offset = RELAY(on_dead),
		.dflt = "release",
		.choices = on_dead_names,
		.help = "Whether a dead message lets its key go on.",
	},
	{
		.name = "hold_delayed",
		.type = OB_OPT_BOOL,
		.offset = RELAY(hold_delayed),
		.dflt = "false",
		.help = "Whether a delayed message holds its key until it is due.",
	},
	OB_OPT_END,
};

static const struct ob_opt leasing_opts[] = {
	{
		.name = "partition_count",
		.type = OB_OPT_U32,
		.offset = RELAY(leasing.partition_count),
		.dflt = "16",
		.min = 1,
		.max = OB_PARTITIONS_MAX,
		.flags = OB_OPT_START,
		.help = "Partitions of a new outbox; the most workers that can share it.",
	},
	{
		.name = "lease_ttl",
		.type = OB_OPT_DURATION_MS,
		.offset = RELAY(leasing.lease_ttl_ms),
		.dflt = "15s",
		.min = SECOND,
		.max = HOUR,
		.help = "How long a silent worker keeps its partitions.",
	},
	{
		.name = "lease_renew",
		.type = OB_OPT_DURATION_MS,
		.offset = RELAY(leasing.lease_renew_ms),
		.dflt = "5s",
		.min = 100,
		.max = HOUR,
		.help = "How often leases are renewed; every third of lease_ttl at least.",
	},
	{
		.name = "heartbeat_ttl",
		.type = OB_OPT_DURATION_MS,
		.offset = RELAY(leasing.heartbeat_ttl_ms),
		.dflt = "20s",
		.min = SECOND,
		.max = DAY,
		.help = "How long a silent worker counts as alive.",
	},
	OB_OPT_END,
};

static const struct ob_opt retry_opts[] = {
	OB_RETRY_OPTS(RELAY, "5s"),
	OB_OPT_END,
};

static const struct ob_gone leasing_gone[] = {
	{ "enabled",
	  "leave it out; workers always share partitions, and with 'ordering: none' "
	  "messages of one partition do not wait for each other" },
	{ NULL, NULL },
};

static const struct ob_gone relay_gone[] = {
	{ "after_publish",
	  "write 'retention: { published: 0 }' in the store to keep the table small, or "
	  "'published: 168h' to keep what was published" },
	{ "claim_ttl",
	  "leave it out; workers share partitions by lease ('lease_ttl' in 'leasing')" },
	{ "cleanup", "write 'retention: { published: 168h, dead: never }' in the store" },
	{ NULL, NULL },
};

static const struct ob_section relay_sections[] = {
	{
		.name = "types",
		.read = ob_read_patterns,
		.example = "- \"Order*\"\n",
		.help = "A list of patterns: it delivers only messages whose event_type matches "
			"one; "
			"* stands for any text.",
	},
	{
		.name = "aggregates",
		.read = ob_read_patterns,
		.example = "- \"order\"\n",
		.help = "The same for aggregate_type.",
	},
	{
		.name = "leasing",
		.opts = leasing_opts,
		.gone = leasing_gone,
		.help = "How several workers and processes share the work.",
	},
	{
		.name = "retry",
		.opts = retry_opts,
		.help = "When a failed message is tried again.",
	},
	{
		.name = "route",
		.opts = ob_route_opts,
		.sections = ob_route_sections,
		.read = ob_read_route,
		.help = "Where in the sink a message goes, and what as.",
	},
	{
		.name = "failures",
		.opts = ob_failure_opts,
		.read = ob_read_failures,
		.example = "- { code: \"404\", then: reject }\n",
		.help = "A list: what an error of the sink means; the first rule that matches "
			"decides.",
	},
	OB_SECTION_END,
};

const struct ob_section ob_relay_section = {
	.name = "relays",
	.opts = ob_relay_opts,
	.sections = relay_sections,
	.gone = relay_gone,
	.help = "Which store is delivered to which sink, and how.",
};

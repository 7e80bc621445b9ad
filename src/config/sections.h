/* SPDX-License-Identifier: MIT */
/* The sections of a configuration file, and the tables behind them. Inside config/ only. */
#ifndef OB_CONFIG_SECTIONS_H
#define OB_CONFIG_SECTIONS_H

#include "config/config.h"
#include "config/walk.h"

/* A relay while its names are not resolved. */
struct ob_relay_draft {
	struct ob_config_relay relay;
	char *name, *store, *sink, *reads, *start, *master_keys;
};

struct ob_store_draft {
	char *url;
	struct ob_config_retention retention;
};

struct ob_sink_draft {
	char *type;
};

/* A route, or a rule of one. */
struct ob_route_draft {
	char *destination, *key, *content_type, *source;
	int envelope;
	bool snapshot;
	char *suffix;                      /* the route's */
	int32_t below;                     /* the route's */
	char *event_type, *aggregate_type; /* the rule's */
};

struct ob_layout_draft {
	char *table;
	int id_type, payload_type; /* 0: uuid, json */
	bool validate_payload, validate_headers;
	struct ob_layout *layout; /* the columns go there directly */
};

struct ob_source_draft {
	char *table;
	struct ob_layout *layout;
};

/* A backend's options as text that its own table has accepted. */
struct ob_backend_options {
	struct ob_opt_value *values;
	size_t count;
};

/* Try the options on a scratch struct of the backend, and keep the text of those that pass. */
void ob_read_backend_options(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			     const struct ob_opt *opts, size_t size,
			     struct ob_backend_options *options);

/* A consumer while its names are not resolved. */
struct ob_consumer_draft {
	struct ob_config_consumer consumer;
	char *name, *store, *sql, *letter_sink, *letter_destination;
	/* Where they are resolved. */
	struct ob_config *config;
};

struct ob_monitor_draft {
	char *listen, *token, *viewer, *operator_, *title, *environment, *base_path;
	char *hosts, *trusted_proxies, *mask;
	int payloads[OB_MONITOR_ROLES];
	uint32_t connections;
};

/* The whole file, into a struct ob_config. */
extern const struct ob_section ob_config_section;
/* One entry of relays:, into a struct ob_relay_draft. */
extern const struct ob_section ob_relay_section;
/* One entry of consumers:, into a struct ob_consumer_draft. */
extern const struct ob_section ob_consumer_section;

extern const struct ob_opt ob_store_entry_opts[]; /* struct ob_store_draft */
/* The parts of a store's entry. */
extern const struct ob_section ob_store_entry_sections[];
extern const struct ob_opt ob_sink_entry_opts[]; /* struct ob_sink_draft */
extern const struct ob_opt ob_relay_opts[];      /* struct ob_relay_draft */
extern const struct ob_opt ob_route_opts[];      /* struct ob_route_draft */
extern const struct ob_opt ob_failure_opts[];    /* private to failures.c */
/* The parts of a route. */
extern const struct ob_section ob_route_sections[];
extern const struct ob_opt ob_monitor_opts[]; /* struct ob_monitor_draft */
/* The parts of monitor:. */
extern const struct ob_section ob_monitor_sections[];
extern const struct ob_opt ob_layout_opts[]; /* struct ob_layout_draft */

/* The readers of the sections that are more than options; base is the struct ob_config. */
ob_section_read_fn ob_read_stores;
ob_section_read_fn ob_read_sinks;
ob_section_read_fn ob_read_relays;
ob_section_read_fn ob_read_consumers;
ob_section_read_fn ob_read_layout;
ob_section_read_fn ob_read_monitor;
ob_section_read_fn ob_read_columns;        /* base: struct ob_layout_draft */
ob_section_read_fn ob_read_debezium;       /* base: struct ob_layout_draft */
ob_section_read_fn ob_read_source_columns; /* base: struct ob_source_draft */

/* The readers of a relay's; base: struct ob_relay_draft. */
ob_section_read_fn ob_read_route;
ob_section_read_fn ob_read_failures;
ob_section_read_fn ob_read_patterns; /* types and aggregates */

/* The list of rules of a relay or a consumer. */
void ob_read_failure_list(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  struct ob_config_failure **ret_rules, size_t *ret_count);

/* The readers of a consumer's; base: struct ob_consumer_draft. */
ob_section_read_fn ob_read_source;
ob_section_read_fn ob_read_handler; /* exec and http */
ob_section_read_fn ob_read_consumer_failures;
/* The rows of `retry:` are the same for both, but for their place. */
#define OB_RETRY_OPTS(at, base_delay) \
	{ .name = "max_attempts", \
	  .type = OB_OPT_U32, \
	  .offset = at(retry.max_attempts), \
	  .dflt = "20", \
	  .min = 1, \
	  .max = 1000, \
	  .help = "Attempts before a message is dead; an outage costs none." }, \
		{ .name = "base_delay", \
		  .type = OB_OPT_DURATION_MS, \
		  .offset = at(retry.base_delay_ms), \
		  .dflt = (base_delay), \
		  .min = 1, \
		  .max = 86400000, \
		  .help = "Wait after the first failed attempt." }, \
		{ .name = "multiplier", \
		  .type = OB_OPT_DOUBLE, \
		  .offset = at(retry.multiplier), \
		  .dflt = "2", \
		  .min = 1, \
		  .max = 100, \
		  .help = "Each further wait is this many times the one before." }, \
		{ .name = "max_backoff", \
		  .type = OB_OPT_DURATION_MS, \
		  .offset = at(retry.max_backoff_ms), \
		  .dflt = "1h", \
		  .min = 1, \
		  .max = INT64_C(2592000000), \
		  .help = "Longest wait between two attempts." }, \
	{ \
		.name = "jitter", .type = OB_OPT_DOUBLE, .offset = at(retry.jitter), \
		.dflt = "0.25", .min = 0, .max = 1, \
		.help = "Part of a wait that is random, up and down." \
	}

/* What a route asks of the relay's sink. */
void ob_route_check(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_config_relay *relay);
/* Checks of one relay that need more than one value. */
void ob_relay_check(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_config_relay *relay);

/* What a file without monitor: has. */
void ob_monitor_default(struct ob_config *config);
/* The default of a store's retention. */
int ob_retention_default(struct ob_config_retention *retention, struct ob_err *err);

/* The backend of a whole URL; no message holds more of it than the scheme. */
int ob_config_find_backend(const char *url, const struct ob_store_backend **ret_backend,
			   struct ob_err *err);

#endif

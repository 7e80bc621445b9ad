/* SPDX-License-Identifier: MIT */
/* The configuration file as structs: every name resolved, every value in range. */
#ifndef OB_CONFIG_CONFIG_H
#define OB_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/layout.h"
#include "base/log.h"
#include "feed/feed.h"
#include "sink/sink.h"
#include "store/store.h"

/* How long the log keeps what every reader has behind it; ages are OB_NEVER_MS: for ever. */
struct ob_config_retention {
	int64_t published_ms; /* 0: at once */
	int64_t dead_ms;
	int64_t every_ms; /* between two passes of a relay */
	int64_t inbox_ms; /* how long ids of handled messages are kept */
	uint32_t batch;   /* rows removed in one transaction */
};

struct ob_config_store {
	const char *name;
	const char *written;       /* its entry in the file: see ob_config_same_relay() */
	struct ob_store_conf conf; /* with the file's layout */
	struct ob_config_retention retention;
};

struct ob_config_sink {
	const char *name;
	const char *written;
	const struct ob_sink_ops *ops;
	const struct ob_opt_value *options; /* checked against ops->opts */
	size_t option_count;
};

enum ob_on_dead { OB_ON_DEAD_RELEASE, OB_ON_DEAD_HOLD };

enum ob_envelope {
	OB_ENVELOPE_NONE,
	OB_ENVELOPE_CE_BINARY,
	OB_ENVELOPE_CE_STRUCTURED,
	OB_ENVELOPE_DEBEZIUM,
};

enum { OB_CONFIG_HEADERS_MAX = 64 }; /* of a route, with those of a rule */

struct ob_config_header {
	const char *name, *value; /* the value is a template */
};

/* What becomes of a message on its way. Texts are templates (base/template.h), checked. */
struct ob_config_route {
	const char *destination;
	const char *key;          /* NULL: the ordering key */
	const char *content_type; /* NULL: as stored */
	const char *source;       /* of CloudEvents */
	int envelope;             /* enum ob_envelope */
	bool snapshot;            /* the snapshot goes out, too */
	const struct ob_config_header *headers;
	size_t header_count;

	/* Not in a rule: */
	struct {
		int32_t below;
		const char *suffix; /* NULL: none */
	} backfill;
	struct ob_config_rule *rules;
	size_t rule_count;
};

/* The first rule that matches holds all that counts: what it leaves open it has from the route. */
struct ob_config_rule {
	const char *event_type, *aggregate_type; /* patterns (base/glob.h); NULL: any */
	struct ob_config_route route;
};

/* One entry of `failures:`; the first that matches decides. */
struct ob_config_failure {
	const char *code, *error; /* patterns; NULL: any */
	enum ob_err_kind then;
};

/* One entry of `relays:`; the option table in relay_opts.c names every member. */
struct ob_config_relay {
	const char *name; /* of its reader: progress and exceptions are kept under it */
	const char *written;
	const char *layout_written;
	const struct ob_config_store *store;
	const struct ob_config_sink *sink;
	const char *master_keys; /* with which it decrypts payloads; NULL: it does not */
	const char *reads;       /* the target of its messages; several relays may read one */
	enum ob_start start;     /* of a reader that is new: BEGINNING, END or TIME */
	int64_t start_at;        /* TIME: microseconds since 1970 */
	const char **types;      /* patterns (base/glob.h) of event_type; none: any */
	size_t type_count;
	const char **aggregates; /* of aggregate_type */
	size_t aggregate_count;
	bool hold_delayed; /* a delayed message holds its key */
	uint32_t workers;
	int ordering; /* enum ob_ordering */
	uint32_t batch_size;
	int64_t batch_bytes;
	int64_t idle_backoff_ms;
	int64_t shutdown_timeout_ms;
	int on_dead; /* enum ob_on_dead */
	struct {
		uint32_t partition_count;
		int64_t lease_ttl_ms, lease_renew_ms, heartbeat_ttl_ms;
	} leasing;
	struct {
		uint32_t max_attempts;
		int64_t base_delay_ms, max_backoff_ms;
		double multiplier, jitter;
	} retry;
	struct ob_config_route route;
	struct ob_config_failure *failures;
	size_t failure_count;
};

enum ob_consume_by { OB_CONSUME_NONE, OB_CONSUME_SQL, OB_CONSUME_EXEC, OB_CONSUME_HTTP };

/* One entry of `consumers:`; the option table in consumer_opts.c names every member. */
struct ob_config_consumer {
	const char *name;
	const char *written, *layout_written;
	const struct ob_config_store *store; /* the consumer's own database */
	const struct ob_feed_ops *feed;
	const struct ob_opt_value *feed_options;
	size_t feed_option_count;
	const struct ob_config_store *log; /* the source, if it is a log of ours */
	enum ob_consume_by by;
	const char *sql;
	const struct ob_sink_ops *handler; /* exec, http */
	const struct ob_opt_value *handler_options;
	size_t handler_option_count;
	int dedup;    /* ids, position, none */
	int ordering; /* key, none */
	int on_dead;  /* enum ob_on_dead */
	uint32_t lanes, batch_size, window;
	int64_t lease_ttl_ms, shutdown_timeout_ms;
	struct {
		uint32_t max_per_key, max_total;
	} park;
	struct {
		uint32_t max_attempts;
		int64_t base_delay_ms, max_backoff_ms;
		double multiplier, jitter;
	} retry;
	struct ob_config_failure *failures;
	size_t failure_count;
	const struct ob_config_sink *letter_sink; /* NULL: dead letters stay in the database */
	const char *letter_destination;
};

/* Who asks the monitor; what a role may do is a table there. */
enum { OB_MONITOR_VIEWER, OB_MONITOR_OPERATOR, OB_MONITOR_ROLES };

enum ob_payloads { OB_PAYLOADS_SHOWN, OB_PAYLOADS_MASKED, OB_PAYLOADS_HIDDEN };

/* `monitor:`; texts may be NULL unless said otherwise. */
struct ob_config_monitor {
	const char *listen; /* NULL: `outbox work` has none */
	const char *title, *environment;
	const char *base_path; /* "" or "/outbox"; never NULL */
	const char *hosts, *trusted_proxies, *mask;
	const char *tokens[OB_MONITOR_ROLES];
	int payloads[OB_MONITOR_ROLES]; /* enum ob_payloads */
	uint32_t connections;
};

struct ob_config {
	char *path; /* where it was read from; NULL: defaults */
	struct ob_layout layout;
	unsigned writer_flags; /* OUTBOX_NO_PAYLOAD_CHECK ... */
	struct ob_config_store *stores;
	size_t store_count;
	struct ob_config_sink *sinks;
	size_t sink_count;
	struct ob_config_relay *relays;
	size_t relay_count;
	struct ob_config_consumer *consumers;
	size_t consumer_count;
	struct ob_config_monitor monitor;
	enum ob_log_level log_level;
	enum ob_log_format log_format;
	struct ob_arena arena; /* all of the above but `path` lives here */
};

/*
 * Read and check the file. On OUTBOX_ECONFIG every fault found is a line
 * "file:line:col: what is wrong\n" in *faults, in the order of the file, at
 * most 50 and then "file: and N more\n"; err only counts them
 * ("outbox.yaml: 3 faults"). A file that cannot be read is OUTBOX_ECONFIG with
 * one line "file: why\n". `faults` is only appended to; 256 KB are room enough.
 * On success the caller owns *ret_config.
 */
int ob_config_load(const char *path, struct ob_buf *faults, struct ob_config **ret_config,
		   struct ob_err *err);
/* The same from memory; `name` stands for the file in messages. */
int ob_config_parse(struct ob_str text, const char *name, struct ob_buf *faults,
		    struct ob_config **ret_config, struct ob_err *err);
/* A configuration of one store named "main" and nothing else, for `--store URL`. */
int ob_config_of_store(const char *url, struct ob_config **ret_config, struct ob_err *err);
void ob_config_free(struct ob_config *config);

/* The store of that name; NULL: the only one. NULL when there is none, or several to choose from.
 */
const struct ob_config_store *ob_config_find_store(const struct ob_config *config,
						   const char *name);

/* May it listen there? OUTBOX_ECONFIG: it is no address, or others can reach it and no token is
 * set. */
int ob_config_monitor_check(const struct ob_config_monitor *monitor, const char *listen,
			    struct ob_err *err);

/*
 * Do these two do the same, and the same way? By what stands in the file for them, their store,
 * their sink and the layout: no option can be forgotten. A default that is written out counts as a
 * change.
 */
bool ob_config_same_relay(const struct ob_config_relay *a, const struct ob_config_relay *b);

/* The same of two consumers. */
bool ob_config_same_consumer(const struct ob_config_consumer *a,
			     const struct ob_config_consumer *b);

/* What it reads of its target, for people and for the reader's row: one line, "" is everything. */
void ob_config_filter_text(const struct ob_config_relay *relay, struct ob_buf *out);
/* Does such a line select a message? */
bool ob_config_filter_selects(const char *filter, struct ob_str event_type,
			      struct ob_str aggregate_type);

/* A commented sample made from the option tables, for `outbox init`, with a store and a sink of
 * these kinds (NULL: sqlite, file): it loads as it is. */
void ob_config_sample(const struct ob_store_backend *store, const struct ob_sink_backend *sink,
		      struct ob_buf *out);
/* Every key with its type, default and help, as Markdown, for the reference page. */
void ob_config_reference(struct ob_buf *out);

#endif

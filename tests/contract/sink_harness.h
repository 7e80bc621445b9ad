/* SPDX-License-Identifier: MIT */
/*
 * What the tests of sinks share: making a sink of the kind under test (the
 * environment variable SINK names it), deliveries to feed it, and reading back
 * what it stored. Failures end the test.
 */
#ifndef OB_TESTS_SINK_HARNESS_H
#define OB_TESTS_SINK_HARNESS_H

#include "doubles/memory_sink.h"
#include "sink/sink.h"
#include "suite.h"

struct chaos_proxy;
struct sink_env;
struct stored;

/* A kind of sink. */
struct sink_kind {
	const char *name;
	bool lines; /* writes NDJSON: line breaks in JSON become spaces, text is made valid UTF-8 */
	struct ob_sink *(*make)(struct sink_env *env);
	struct ob_str (*read)(struct sink_env *env); /* lines: all that is stored */
	/* optional: NULL, or why there can be no peer; once a program, around its tests */
	const char *(*missing)(void);
	void (*start)(void);
	void (*stop)(void);
	/* optional: get the peer ready; all that is stored; and removing it */
	void (*begin)(struct sink_env *env);
	size_t (*list)(struct sink_env *env, struct stored **ret_stored);
	void (*clear)(struct sink_env *env);
	void (*end)(struct sink_env *env); /* optional: let go of the peer */
	bool concurrent;   /* what is sent at the same time may be stored in any order */
	bool strict_names; /* a destination must follow its rules; anything goes in a key */
	size_t body_max;   /* larger ones are refused before they are sent; 0: no such limit */
	bool reconnects;   /* its library makes a lost connection anew without a word */
	int wait_ms;       /* its outcomes come from outside: how long a poll() waits for them */
	/* The peer's TCP port, for kinds whose make() honours env->port and env->timeout. */
	int (*port)(struct sink_env *env);
	/* optional: the peer names its own address; have the proxy name itself instead */
	void (*front)(struct sink_env *env, struct chaos_proxy *proxy);
};

/* Kinds that need a server, in files of their own. */
extern const struct sink_kind sink_kind_http, sink_kind_http_batch, sink_kind_kafka,
	sink_kind_kafka_one, sink_kind_nats, sink_kind_rabbitmq, sink_kind_redis;

struct sink_env {
	const struct sink_kind *kind;
	char dir[64];
	char path[96];
	int saved_stdout;    /* -1: not redirected */
	void *peer;          /* the kind's own */
	int port;            /* where make() connects instead of to the peer itself; 0: there */
	const char *timeout; /* how long an answer may take; NULL: the sink's default */
	struct ob_memsink_log log;
	struct ob_memsink_plan plan;
	struct ob_buf text;
	struct ob_arena arena; /* of what was read back */
};

/* What the kind under test lacks on this machine; NULL: nothing. */
const char *sink_missing(void);
void sink_env_init(struct sink_env *env);
void sink_env_done(struct sink_env *env);
/* A new sink, opened. */
struct ob_sink *sink_make(struct sink_env *env);

/* A delivery with the message it needs; `n` makes its id, tag and seq. */
struct parcel {
	struct ob_message message;
	struct ob_delivery delivery;
};
void parcel_init(struct parcel *parcel, uint64_t n, struct ob_str key, struct ob_str body);

struct stored {
	struct ob_uuid id;
	uint64_t n; /* the one that made the id */
	struct ob_str destination, key, body, headers, snapshot;
	bool tombstone;
};
/* Everything stored, in order; good until the next read or the end. */
size_t sink_read(struct sink_env *env, struct stored **ret_stored);
/* The same from a file of lines; every line must be valid. */
size_t sink_parse_lines(struct ob_arena *arena, struct ob_str text, struct stored **ret_stored);
void read_file(const char *path, struct ob_buf *out);

/* Send, polling when the window is full; outcomes are counted by sink_drain(). */
struct tally {
	size_t confirmed, failed;
	uint8_t *seen; /* outcomes by tag, when given */
	size_t seen_size;
	struct ob_err last; /* the last failure */
};
void tally_polled(struct tally *tally, const struct ob_ack *acks, int count);
void sink_push(struct ob_sink *sink, const struct ob_delivery *delivery, struct tally *tally);
/* Poll until `count` outcomes in all are tallied. */
void sink_drain(struct ob_sink *sink, struct tally *tally, size_t count);

/* As OB_SUITE, with the peer of the kind under test; without one all is skipped. */
int sink_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

#define SINK_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return sink_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				      argc > 1 ? argv[1] : NULL); \
	}

#endif

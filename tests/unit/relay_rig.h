/* SPDX-License-Identifier: MIT */
/* A relay in a box for unit tests: memory store, memory sink, a clock that the test turns. */
#ifndef OB_TESTS_RELAY_RIG_H
#define OB_TESTS_RELAY_RIG_H

#include "relay/worker.h"
#include "sink/memory.h"
#include "store/fault.h"
#include "store/memory.h"

enum { RIG_POISON_MAX = 64 };

/* One process: its connections, leaser and worker. */
struct rig_node {
	struct ob_store *store, *lease_store;
	struct ob_sink *sink;
	struct ob_lease_view view;
	struct ob_leaser leaser;
	struct ob_metrics metrics;
	struct ob_relay_worker *worker;
	enum ob_worker_state state;
	bool paused; /* neither leaser nor worker is stepped */
};

struct rig {
	struct ob_clock_virtual clock;
	struct ob_memdb *db;
	struct ob_store *writer;
	struct ob_memsink_log log;
	struct ob_memsink_plan plan;
	struct ob_config_relay relay;
	struct ob_settler *settler; /* of nodes that start from now on; NULL: none */
	struct rig_node nodes[4];
	uint32_t node_count;
	/* the sink fails messages of these keys with that kind */
	const char *poison[RIG_POISON_MAX];
	enum ob_err_kind poison_kind;
	uint32_t poison_count;
	bool at_send;  /* by send() itself, only payload "2" and only once */
	bool all_fail; /* every message, with poison_kind */
	bool hangs_up; /* and the connection is lost over each of them */
	uint64_t next_id;
};

void rig_init(struct rig *rig);
/* Start one more node; `leasing` as in rig->relay. */
struct rig_node *rig_start(struct rig *rig, const struct ob_sink_ops *sink);
/* As a crash: nothing is settled or released. */
void rig_kill(struct rig *rig, struct rig_node *node);
void rig_done(struct rig *rig);

/* Commit one message with that key (NULL: none) and payload; returns nothing, asserts. */
void rig_push(struct rig *rig, const char *key, const char *payload);
/* One after the other with the payloads from..to. */
void rig_push_many(struct rig *rig, const char *key, int from, int to);
/* Step all nodes; when none has work, turn the clock to what comes next. Ends after `ms` of it. */
void rig_run_ms(struct rig *rig, int64_t ms);

/* Rows in a state, from the store. */
uint32_t rig_count(struct rig *rig, enum ob_state state);
/* The sum of all attempts. */
uint32_t rig_attempts(struct rig *rig);
/* The payloads that the sink stored for a key, joined: "1 2 3". Static memory. */
const char *rig_stored(struct rig *rig, const char *key);
struct ob_metrics_data rig_metrics(struct rig_node *node);

#endif

/* SPDX-License-Identifier: MIT */
/* A relay in a box for unit tests: memory store, memory sink, a clock that the test turns. */
#ifndef OB_TESTS_RELAY_RIG_H
#define OB_TESTS_RELAY_RIG_H

#include "doubles/fault_store.h"
#include "doubles/memory_sink.h"
#include "doubles/memory_store.h"
#include "relay/worker.h"

enum { RIG_POISON_MAX = 64, RIG_PARTITIONS = 8 };

/* One process: its connections, leaser and worker. */
struct rig_node {
	struct ob_store *store; /* a fault store around `inner`, with no plan */
	struct ob_store *inner, *lease_store;
	struct ob_store_ops ops; /* of `inner` */
	struct ob_sink *sink;
	struct ob_lease_view view;
	struct ob_leaser leaser;
	struct ob_metrics metrics;
	struct ob_relay_worker *worker;
	enum ob_worker_state state;
	bool paused;       /* neither leaser nor worker is stepped */
	bool leaser_hangs; /* the leaser is not */
	/* calls of the worker that reached the database */
	uint32_t take_overs, reads, settles;
	uint32_t changes[OB_CHANGE_REMOVE + 1]; /* of exceptions, by kind */
	uint32_t parts;                         /* journal rows of all settles */
};

struct rig {
	struct ob_clock_virtual clock;
	enum ob_memdb_kind kind;
	uint32_t starts; /* of nodes */
	struct ob_memdb *db;
	struct ob_store *writer; /* pushes */
	struct ob_store *side;   /* asks, and does what others would do */
	struct ob_memsink_log log;
	struct ob_memsink_plan plan;
	struct ob_config_relay relay;
	struct ob_log relay_log;
	struct ob_buf said;              /* what was logged, line by line */
	struct ob_store_thread *settler; /* of nodes that start from now on; NULL: none */
	int64_t end_seq;                 /* likewise */
	struct rig_node nodes[4];
	uint32_t node_count;
	int64_t lease_call_us; /* each call of a leaser takes so long */
	bool leaser_steps;     /* one does just now */
	/* called before the worker's call reaches the database; NULL: nothing */
	void (*on_take_over)(struct rig_node *node);
	void (*on_read)(struct rig_node *node, const struct ob_read *read);
	void (*on_settle)(struct rig_node *node, const struct ob_settle *settle);
	/* the sink fails messages of these keys with that kind */
	const char *poison[RIG_POISON_MAX];
	enum ob_err_kind poison_kind;
	uint32_t poison_count;
	const char *silent; /* nothing is ever heard of this payload; NULL: none */
	bool at_send;       /* by send() itself, only payload "2" and only once */
	bool all_fail;      /* every message, with poison_kind */
	bool hangs_up;      /* and the connection is lost over each of them */
	uint64_t next_id;
	_Atomic int64_t passed_us; /* shared by the workers, as those of one relay do */
};

/* One database of that kind, with the reader "default". One rig at a time. */
void rig_init_kind(struct rig *rig, enum ob_memdb_kind kind);
void rig_init(struct rig *rig);
/* Start one more node. */
struct rig_node *rig_start(struct rig *rig, const struct ob_sink_ops *sink);
/* In this place, which is new or of one that was killed. */
struct rig_node *rig_start_at(struct rig *rig, uint32_t at, const struct ob_sink_ops *sink);
/* As a crash: nothing is settled or released, the connections are gone. */
void rig_kill(struct rig *rig, struct rig_node *node);
void rig_done(struct rig *rig);

/* Commit one message; aggregate and event type have defaults. */
void rig_push_message(struct rig *rig, struct outbox_message message);
/* One with that key (NULL: none) and payload. */
void rig_push(struct rig *rig, const char *key, const char *payload);
/* One after the other with the payloads from..to. */
void rig_push_many(struct rig *rig, const char *key, int from, int to);
/* The hash of a key's partition, 0..RIG_PARTITIONS - 1. */
uint32_t rig_partition(const char *key);
/* Another key "<prefix><n>" of this partition, the lowest n from *n on; *n is one more then. */
const char *rig_key_in(uint32_t partition, const char *prefix, int *n);

/* Step all nodes; when none has work, turn the clock to what comes next. Ends after `ms` of it. */
void rig_run_ms(struct rig *rig, int64_t ms);
/* A verb of an operator on all messages of a key that allow it; says how many. */
uint64_t rig_operate(struct rig *rig, enum ob_verb verb, const char *key);
/*
 * Another worker takes all leases, whoever holds them, and the journal with them. With `give_back`
 * it leaves at once: the leases are free, and nobody who held them knows.
 */
void rig_steal(struct rig *rig, bool give_back);
/* That worker leaves. */
void rig_give_back(struct rig *rig);
/* Does a line of the log hold this text? */
bool rig_said(const struct rig *rig, const char *text);

/* Messages that the reader's list shows so. */
uint32_t rig_count(struct rig *rig, enum ob_view view);
/* Messages with an exception in that state. */
uint32_t rig_exceptions(struct rig *rig, enum ob_state state);
uint32_t rig_all_exceptions(struct rig *rig);
/* The sum of all attempts. */
uint32_t rig_attempts(struct rig *rig);
/* The position that is recorded for the partition (by hash) in lane 0. */
int64_t rig_position(struct rig *rig, uint32_t partition);
/* The payloads that the sink stored for a key, joined: "1 2 3". Static memory. */
const char *rig_stored(struct rig *rig, const char *key);
/* How many messages are stored; repeats do not count. */
uint32_t rig_delivered(struct rig *rig);
/* Nothing was stored twice. */
bool rig_stored_once(struct rig *rig);
/* The first copies of each key's messages stand in the order of their numbers. */
bool rig_stored_in_order(struct rig *rig);
struct ob_metrics_data rig_metrics(struct rig_node *node);

#endif

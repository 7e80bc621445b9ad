/* SPDX-License-Identifier: MIT */
/*
 * The simulator: the real worker and leaser over the memory store and the memory sink, with
 * a virtual clock and a scheduler that draws every choice from one seed. One run is one seed,
 * and the same seed is the same run. Nothing here has a thread.
 *
 * The checker looks at every event as it happens; the first rule that breaks ends the run.
 */
#ifndef OB_TESTS_SIM_H
#define OB_TESTS_SIM_H

#include "base/rng.h"
#include "doubles/fault_store.h"
#include "doubles/memory_sink.h"
#include "doubles/memory_store.h"
#include "relay/worker.h"

enum {
	SIM_KEYS_MAX = 48,
	SIM_MESSAGES_MAX = 420,
	SIM_PASSERS_MAX = 800, /* that come while a poison is told from an outage */
	SIM_PARTITIONS_MAX = 16,
	SIM_SLOTS_MAX = 6,    /* workers at one time */
	SIM_ACTORS_MAX = 256, /* workers over a run: each start is a new one */
	SIM_WRITERS = 4,      /* producers' connections */
	SIM_PUSHED_MAX = 80,  /* by one transaction */
	SIM_NO_KEY = -1,
};

/* What must have happened at least once over all seeds, or they prove nothing. */
#define SIM_COUNT_MAP(X) \
	X(commits, "transactions committed") \
	X(rollbacks, "transactions rolled back") \
	X(late_commits, "commits of a lower number after a higher one") \
	X(large_commits, "transactions larger than a read") \
	X(slow_writers, "transactions that stayed open for long") \
	X(delayed, "messages that were delayed") \
	X(priorities, "messages with a priority") \
	X(stored, "messages stored by the sink, copies included") \
	X(duplicates, "copies of a message that was stored before") \
	X(late_copies, "copies stored by a worker that had lost the lease") \
	X(crashes, "workers that crashed") \
	X(crashes_in_flight, "crashes with messages at the sink") \
	X(pauses, "workers paused past their lease") \
	X(takeovers, "partitions taken after their lease was over") \
	X(reaped, "leases of workers that were found gone") \
	X(cuts, "workers whose session was lost") \
	X(freed, "leases freed by an operator") \
	X(moves, "partitions given up for balance") \
	X(fenced, "outcomes that the store refused as another's") \
	X(beside, "settles that ran concurrently with a worker") \
	X(read_ahead, "reads that ran concurrently with a worker") \
	X(cut_off, "settles that a crash left open") \
	X(store_before, "store calls that failed") \
	X(store_after, "store calls whose reply was lost") \
	X(store_outages, "times the store was away for a while") \
	X(slow_calls, "store calls that took long") \
	X(sink_outages, "times the sink was away for a while") \
	X(lost_acks, "messages stored without an acknowledgement") \
	X(slow_sinks, "times a sink became slow") \
	X(retries, "messages refused for now") \
	X(rejects, "messages refused for good") \
	X(hang_ups, "connections lost over a message") \
	X(blamed, "attempts charged for lost connections") \
	X(blamed_dead, "messages given up for lost connections") \
	X(passers, "messages that came to pass a poison") \
	X(breaker_opened, "times a breaker opened") \
	X(alarms, "times most keys failed at once") \
	X(stops, "workers that stopped and left") \
	X(stops_now, "workers that were told to leave at once") \
	X(resizes, "changes of the number of partitions") \
	X(seeks, "times the reader was moved back") \
	X(restores, "moves into another cluster") \
	X(refusals, "workers that refused to go on after one") \
	X(op_retry, "operator: retry") \
	X(op_skip, "operator: skip") \
	X(op_discard, "operator: discard") \
	X(retained, "rows removed by retention") \
	X(failed, "attempts that were charged") \
	X(dead, "messages given up") \
	X(dead_hold, "messages given up that hold their key") \
	X(parked, "messages parked after another") \
	X(spilled, "messages spilled while they were under way") \
	X(waited, "messages that the reader passed before they were due") \
	X(snapshot_runs, "runs with snapshots") \
	X(gap_runs, "runs with gaps") \
	X(plain_runs, "runs with one writer") \
	X(calm_runs, "runs without faults, where no copy is allowed")

struct sim_counts {
#define X(name, text) uint64_t name;
	SIM_COUNT_MAP(X)
#undef X
};

/* What the seed says about the run. */
struct sim_plan {
	uint64_t seed;
	bool calm; /* no crash, no pause, no error of store or connection: no copy is allowed */
	enum ob_memdb_kind kind;
	bool sink_ordered, store_late;
	uint32_t processes, workers; /* workers of each process */
	uint32_t partitions, keys, messages;
	uint32_t poison_retry, poison_reject;         /* of 1000 messages */
	uint32_t flaky_retry, flaky_lost, flaky_down; /* of 1000 sends */
	uint32_t flaky_hang_up;                       /* of 1000 sends */
	uint32_t poison_hang_up;                      /* messages */
	uint32_t store_errors;                        /* of 1000 steps */
	uint32_t slow_calls;                          /* of 1000 store calls */
	uint32_t chaos, operate;                      /* of 1000 turns */
	uint32_t rollback;                            /* of 100 transactions */
	uint32_t window, ack_polls, acks_per_poll;
	int64_t ack_delay_us;
	struct ob_config_relay relay;
};

enum sim_fate { SIM_OPEN, SIM_COMMITTED, SIM_ROLLED_BACK };
enum sim_poison { SIM_SOUND, SIM_POISON_RETRY, SIM_POISON_REJECT, SIM_POISON_HANG_UP };

struct sim_actor;

/* One hand-over of a message to a sink. */
struct sim_delivery {
	struct sim_delivery *next; /* of the same message, newest first */
	struct sim_actor *actor;
	uint64_t tag;
	enum ob_err_kind verdict; /* about this message */
	bool stored;
	bool excused;    /* a fault hit it before it was recorded: another copy may follow */
	bool charged;    /* the verdict has cost its attempt */
	bool alone;      /* nothing else was under way */
	uint64_t stores; /* what its worker had stored before */
	bool unheard;    /* charged, but the worker does not know and will say it again */
};

struct sim_message {
	uint32_t number; /* from 1; its id is made from it */
	int32_t key;     /* SIM_NO_KEY: none */
	uint32_t tx, turns_bad;
	int32_t priority;
	bool delayed;
	enum sim_poison poison;
	enum sim_fate fate;
	uint64_t inserted_at, committed_at; /* by the run's counter of events */

	/* the row, as the history told */
	bool exists; /* committed, and in the log */
	struct ob_memdb_state row;
	uint32_t partition; /* with its lane */
	int64_t seq;

	/* what excuses its place in the order */
	bool was_dead, was_rejected, removed, adopted, brought_back;
	struct sim_delivery *deliveries;
	uint32_t copies;
};

/* Store calls that run concurrently with a worker. */
struct sim_thread {
	struct ob_store_thread base;
	struct sim_actor *actor;
	struct ob_store *store;
	struct ob_store_job *job; /* NULL: none */
	bool called;              /* and the worker does not know it yet */
	int64_t due_us;           /* when it will */
};

/* One worker from its start to its end, with its leaser and its connections. */
struct sim_actor {
	struct sim *sim;
	uint32_t number, slot;
	char name[12], host[8];
	struct ob_store *worker_store, *leaser_store, *settler_store;
	struct ob_store *leaser_inner; /* what the leaser's wraps */
	struct sim_thread settler, read_ahead;
	struct ob_sink *sink;
	struct ob_memsink_plan sink_plan;
	struct ob_lease_view view;
	struct ob_metrics metrics;
	struct ob_leaser leaser;
	struct ob_relay_worker *worker;
	int64_t worker_wake_us, leaser_wake_us;
	uint64_t view_version, answers; /* as the driver saw them last */
	int64_t worker_paused_us, leaser_paused_us, store_away_us;
	int64_t slow_until_us, sink_away_us;
	int64_t drain_until_us;
	uint32_t resets, losses;
	uint64_t stores;           /* of its messages by the sink */
	struct sim_delivery *last; /* what it sent last */
	bool alive, stopping, leaving, lost_lease, told_now;
	bool cut;  /* its session is gone, and it does not know yet */
	bool late; /* its leaser has not caught up yet: what it sends may come twice */
	/* Leases that others took away before their time: it goes on until it knows. */
	int64_t robbed_until_us[SIM_PARTITIONS_MAX];
	bool reply_lost; /* of the store call in this step */
};

struct sim_lease {
	bool there, owned;
	struct ob_uuid owner;
	uint64_t epoch;
	int64_t until_us;
	int64_t free_since_us; /* boot clock; 0: it has an owner */
};

enum sim_event_kind {
	SIM_EV_INSERT,
	SIM_EV_COMMIT,
	SIM_EV_ROLLBACK,
	SIM_EV_SEND,
	SIM_EV_STORED,
	SIM_EV_ROW,
	SIM_EV_LEASE,
	SIM_EV_START,
	SIM_EV_CRASH,
	SIM_EV_PAUSE,
	SIM_EV_STOP,
	SIM_EV_LEFT,
	SIM_EV_STORE_FAULT,
	SIM_EV_SINK_DOWN,
	SIM_EV_SINK_UP,
	SIM_EV_RESET,
	SIM_EV_RESIZE,
	SIM_EV_SEEK,
	SIM_EV_RESTORE,
	SIM_EV_TAKEN,
	SIM_EV_PHASE,
};

struct sim_event {
	int64_t at_us;
	enum sim_event_kind kind;
	uint32_t message, actor; /* 0: none */
	int64_t a, b, c;
};

/* A producer's connection. */
struct sim_writer {
	struct ob_store *store;
	bool open, slow;
	uint32_t tx, left, pushed[SIM_PUSHED_MAX], count;
};

struct sim {
	struct sim_plan plan;
	struct ob_rng rng;
	struct ob_clock_virtual clock;
	struct ob_memdb *db;
	struct ob_store *observer; /* the checker's and the operator's */
	struct ob_memsink_log log;
	struct ob_arena arena;
	size_t log_seen;
	bool healed, cured, sink_down;
	bool foreign;      /* moved into another cluster, and not adopted yet */
	enum ob_verb verb; /* of the operation that runs */

	struct sim_message messages[SIM_MESSAGES_MAX + SIM_PASSERS_MAX + 1];
	uint32_t message_count, tx_count, hang_up_count;
	int64_t passed_us; /* when the last passers came */
	struct ob_arena deliveries;
	int32_t locked_by[SIM_KEYS_MAX]; /* the writer that holds the aggregate, or -1 */
	int64_t highest_seq;

	struct sim_writer writers[SIM_WRITERS];
	struct sim_actor *actors[SIM_ACTORS_MAX];
	uint32_t actor_count;
	struct sim_actor *slots[SIM_SLOTS_MAX];
	int64_t slot_free_us[SIM_SLOTS_MAX]; /* when a new worker starts there */
	uint32_t slot_count;
	struct sim_actor *current; /* the one that is being stepped, or NULL */
	struct sim_lease leases[SIM_PARTITIONS_MAX];
	struct ob_uuid takers[OB_LANES * SIM_PARTITIONS_MAX]; /* who took each journal over last */
	bool resized;
	uint32_t partition_count;
	int64_t quiet_us;        /* since when all workers are there and nothing goes wrong */
	int64_t resize_until_us; /* everyone is paused so that this can succeed; 0: no */
	uint32_t resize_to;

	struct sim_event *events;
	size_t event_count, event_capacity;
	uint64_t clock_of_events, hash;
	struct sim_counts counts;

	bool broken;
	char rule[16], text[400];
	uint32_t culprit; /* the message it is about, or 0 */
};

/* ---- draw.c: the plan ------------------------------------------------- */

void sim_draw_plan(struct sim_plan *plan, struct ob_rng *rng, uint64_t seed);
bool sim_chance(struct sim *sim, uint32_t of_1000);
/* In [low, high]. */
int64_t sim_between(struct ob_rng *rng, int64_t low, int64_t high);

/* ---- run.c ------------------------------------------------------------ */

/* Time passes in a store call of the worker that moves; `arg` is the run. */
void sim_pass_time(void *arg);
/* Run a seed in a new sim; false when a rule broke. The caller frees with sim_free(). */
bool sim_run(struct sim *sim, uint64_t seed);
struct sim *sim_new(void);
void sim_free(struct sim *sim);
static inline int64_t sim_now(const struct sim *sim)
{
	return sim->clock.boot_us;
}

/* ---- history.c -------------------------------------------------------- */

void sim_note(struct sim *sim, enum sim_event_kind kind, const struct sim_message *message,
	      const struct sim_actor *actor, int64_t a, int64_t b, int64_t c);
/* The rule is broken; only the first one counts. */
void sim_break(struct sim *sim, const struct sim_message *message, const char *rule,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The events of the culprit's key and everything about workers, the last `max`. */
void sim_trace(const struct sim *sim, bool everything, size_t max);
struct ob_uuid sim_id_of(uint32_t number);
struct sim_message *sim_message_of(struct sim *sim, const struct ob_uuid *id);

/* ---- actors.c --------------------------------------------------------- */

void sim_actor_start(struct sim *sim, uint32_t slot);
/* Ends at once, without a word to anybody. */
void sim_actor_crash(struct sim *sim, struct sim_actor *actor);
void sim_actor_stop(struct sim *sim, struct sim_actor *actor, enum ob_stop how);
void sim_actor_end(struct sim *sim, struct sim_actor *actor, int64_t back_in_ms);
void sim_step_worker(struct sim *sim, struct sim_actor *actor);
void sim_step_leaser(struct sim *sim, struct sim_actor *actor);
bool sim_worker_due(const struct sim *sim, const struct sim_actor *actor);
bool sim_leaser_due(const struct sim *sim, const struct sim_actor *actor);
void sim_actor_pause(struct sim *sim, struct sim_actor *actor, int64_t ms, bool worker,
		     bool leaser);
/* It (NULL: everyone) could do nothing for so long. A worker that may have lost a lease gives it up
 * before the store does. */
void sim_was_late(struct sim *sim, struct sim_actor *actor, int64_t us);
void sim_sink_away(struct sim *sim, struct sim_actor *actor, int64_t ms);
/* Faults end: everything that was away comes back. */
void sim_actor_heal(struct sim *sim, struct sim_actor *actor);

/* ---- producer.c ------------------------------------------------------- */

bool sim_producing(const struct sim *sim);
void sim_produce(struct sim *sim);
/*
 * A poison that makes the receiver hang up can only be told from an outage while others pass: let
 * some come, when it is time.
 */
void sim_produce_passers(struct sim *sim);
/* A verb on a random row. */
void sim_operate(struct sim *sim);
/* The verb on every dead row. */
void sim_operate_dead(struct sim *sim, enum ob_verb verb);
/* All connections of producers are lost. */
void sim_roll_back_all(struct sim *sim);

/* ---- chaos.c ---------------------------------------------------------- */

/* Let one thing go wrong. */
void sim_disturb(struct sim *sim);
/* The operator does what has to be done after a restore. */
void sim_adopt(struct sim *sim);
/* What has been going on and is over now. */
void sim_settle_down(struct sim *sim);
/* The sink's opinion of a message; `arg` is the actor. */
struct ob_memsink_verdict sim_judge(void *arg, const struct ob_delivery *delivery);

/* ---- checker.c -------------------------------------------------------- */

/* A message was handed over: was it the actor's to send? Returns its record. */
struct sim_delivery *sim_check_send(struct sim *sim, struct sim_actor *actor,
				    const struct ob_message *message, uint64_t tag,
				    enum ob_err_kind verdict, bool stored_anyway);
/* Look at what the sinks have stored since the last look. */
void sim_check_stored(struct sim *sim);
/* A row changed; `arg` is the run. */
ob_memdb_history_fn sim_check_row;
/* Everything that the actor has sent and that is not recorded may come twice; partition -1: all,
 * else a hash. */
void sim_excuse(struct sim *sim, const struct sim_actor *actor, int64_t partition);
/* Numbers of partitions have changed. */
void sim_learn_partitions(struct sim *sim);
/* Recorded as out, or given up. */
bool sim_is_over(const struct sim_message *message);

/* ---- check_leases.c --------------------------------------------------- */

/* Look at the lease rows; after every step that may have changed them. */
void sim_check_leases(struct sim *sim);
/* When all is well, no partition stays without an owner for long. */
void sim_check_owners(struct sim *sim);

/* ---- check_end.c ------------------------------------------------------ */

/* Is a row kept back by a dead one that holds? */
bool sim_is_held(const struct sim *sim, const struct sim_message *message);
/* Is everything out that nothing holds? */
bool sim_is_drained(const struct sim *sim);
void sim_check_end(struct sim *sim);

#endif

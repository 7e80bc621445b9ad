/* SPDX-License-Identifier: MIT */
/* One transaction for each message: progress is true at every moment, and a stop loses nothing. */
#include "monitor/jobs.h"

#include "monitor/state.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	PLANS_MAX = 64,
	RUNNING_MAX = 4,
	PLAN_S = 600,
	KEEP_S = 3600, /* of a job that has ended */
	TRIES = 5,     /* of a store that does not answer */
	ARENA_MAX = 16 << 20,
};

enum job_state { RUNNING, DONE, STOPPED, FAILED };

struct job {
	struct job *next;
	struct ob_jobs *jobs;
	struct ob_plan *plan;
	struct ob_uuid *ids;
	size_t total, done, failed;
	enum job_state state;
	bool stop, started;
	int64_t started_us, ended_us; /* wall clock */
	char who[80], origin[80], by[168], error[OB_JOB_TEXT];
	struct ob_buf scope;       /* what was asked for, in a line */
	struct ob_audit_row audit; /* borrows from all of it */
	pthread_t thread;
};

struct ob_jobs {
	pthread_mutex_t lock; /* guards the lists and each job's progress */
	pthread_cond_t wake;  /* a stop was asked for */
	struct ob_monitor *monitor;
	struct ob_plan *plans;
	struct job *list;
};

static int64_t real_us(void)
{
	return ob_clock_real_us(&ob_clock_system);
}

/* ---- plans ----------------------------------------------------------- */

struct ob_plan *ob_plan_new(struct ob_pool *pool)
{
	struct ob_plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return NULL;
	plan->pool = pool;
	plan->arena = OB_ARENA_INIT(ARENA_MAX);
	return plan;
}

void ob_plan_free(struct ob_plan *plan)
{
	if (!plan)
		return;
	ob_arena_done(&plan->arena);
	free(plan);
}

static void make_id(char out[OB_JOB_ID])
{
	unsigned char bytes[16] = { 0 };

	(void)RAND_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(out + i * 2, 3, "%02x", bytes[i]);
}

/* Locked. The oldest is last. */
static void drop_plans(struct ob_jobs *jobs, size_t keep)
{
	int64_t now = real_us();
	size_t n = 0;

	for (struct ob_plan **at = &jobs->plans; *at;) {
		struct ob_plan *plan = *at;

		if (n++ < keep && plan->expires_us > now) {
			at = &plan->next;
			continue;
		}
		*at = plan->next;
		ob_plan_free(plan);
	}
}

void ob_jobs_keep_take(struct ob_jobs *jobs, struct ob_plan *plan)
{
	make_id(plan->id);
	plan->expires_us = real_us() + PLAN_S * INT64_C(1000000);
	(void)pthread_mutex_lock(&jobs->lock);
	plan->next = jobs->plans;
	jobs->plans = plan;
	drop_plans(jobs, PLANS_MAX);
	(void)pthread_mutex_unlock(&jobs->lock);
}

struct ob_plan *ob_jobs_pick(struct ob_jobs *jobs, const char *id)
{
	struct ob_plan *found = NULL;

	(void)pthread_mutex_lock(&jobs->lock);
	drop_plans(jobs, PLANS_MAX);
	for (struct ob_plan **at = &jobs->plans; *at; at = &(*at)->next) {
		if (strcmp((*at)->id, id) != 0)
			continue;
		found = *at;
		*at = found->next;
		break;
	}
	(void)pthread_mutex_unlock(&jobs->lock);
	return found;
}

/* ---- running --------------------------------------------------------- */

static bool is_stopped(struct job *job)
{
	(void)pthread_mutex_lock(&job->jobs->lock);
	bool stop = job->stop;
	(void)pthread_mutex_unlock(&job->jobs->lock);
	return stop;
}

/* A second, or until it is stopped. */
static void wait_a_second(struct job *job)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	(void)pthread_mutex_lock(&job->jobs->lock);
	while (!job->stop &&
	       pthread_cond_timedwait(&job->jobs->wake, &job->jobs->lock, &until) == 0)
		;
	(void)pthread_mutex_unlock(&job->jobs->lock);
}

/* A repeat is harmless: the verb finds the message in its new state and refuses. */
static int change_one(struct job *job, struct ob_store *store, const struct ob_uuid *id,
		      struct ob_err *err)
{
	const struct ob_operate operate = { .verb = job->plan->ask.verb,
					    .audit = &job->audit,
					    .filter = { .reader = job->plan->ask.reader,
							.id = id } };
	uint64_t changed = 0, refused = 0;
	int r = -1;

	for (int tries = 0; tries < TRIES && r < 0 && !is_stopped(job); tries++) {
		if (tries)
			wait_a_second(job);
		r = ob_store_operate(store, &operate, &changed, &refused, err);
		if (r < 0 && err->kind != OB_ERR_DOWN)
			break;
	}
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&job->jobs->lock);
	job->done++;
	job->failed += changed == 0;
	(void)pthread_mutex_unlock(&job->jobs->lock);
	return changed ? 1 : 0;
}

static uint64_t change_all(struct job *job, enum job_state *ret_state, struct ob_err *err)
{
	struct ob_store *store = NULL;
	uint64_t changed = 0;
	int r = ob_pool_open_writer(job->plan->pool, &store, err);

	for (size_t i = 0; r >= 0 && i < job->total && !is_stopped(job); i++) {
		r = change_one(job, store, &job->ids[i], err);
		changed += r > 0;
	}
	ob_store_free(store);
	*ret_state = is_stopped(job) ? STOPPED : r < 0 ? FAILED : DONE;
	return changed;
}

/* Every verb is in the log and in the audit, whoever asked for it. */
static void log_job(const struct job *job, uint64_t changed)
{
	const struct ob_plan *plan = job->plan;

	ob_log(job->jobs->monitor->log, OB_LOG_INFO, "verb",
	       OB_KV("verb", ob_verb_rules[plan->ask.verb].name), OB_KV("who", job->who),
	       OB_KV("origin", job->origin), OB_KV("store", plan->pool->entry->name),
	       OB_KV("reader", plan->ask.reader), OB_KS("filter", ob_buf_view(&job->scope)),
	       OB_KI("count", (int64_t)changed), OB_KV("plan", plan->id),
	       OB_KV("reason", plan->reason));
}

/* All of a job is one decision: its count grows with each message, in the same transaction. */
static void make_audit(struct job *job)
{
	const struct ob_plan *plan = job->plan;

	ob_plan_scope(&plan->ask, &job->scope);
	(void)snprintf(job->by, sizeof(job->by), "%s@%s", job->who, job->origin);
	job->audit = (struct ob_audit_row){ .who = ob_str(job->by),
					    .origin = OB_STR("monitor"),
					    .verb = ob_str(ob_verb_rules[plan->ask.verb].name),
					    .reader = ob_str(plan->ask.reader),
					    .filter = ob_buf_view(&job->scope),
					    .plan = ob_str(plan->id),
					    .reason = ob_str(plan->reason) };
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	struct ob_monitor *m = job->jobs->monitor;
	struct ob_err err = OB_ERR_INIT;
	enum job_state state;
	uint64_t changed = change_all(job, &state, &err);

	log_job(job, changed);
	(void)pthread_mutex_lock(&m->lock);
	m->verbs[job->plan->ask.verb] += changed;
	(void)pthread_mutex_unlock(&m->lock);
	(void)pthread_mutex_lock(&job->jobs->lock);
	job->ended_us = real_us();
	if (state == FAILED)
		(void)snprintf(job->error, sizeof(job->error), "%s", err.msg);
	job->state = state;
	(void)pthread_mutex_unlock(&job->jobs->lock);
	return NULL;
}

static size_t count_running(const struct ob_jobs *jobs)
{
	size_t n = 0;

	for (const struct job *job = jobs->list; job; job = job->next)
		n += job->state == RUNNING;
	return n;
}

static void free_job(struct job *job)
{
	if (job->started)
		(void)pthread_join(job->thread, NULL);
	ob_plan_free(job->plan);
	ob_buf_done(&job->scope);
	free(job->ids);
	free(job);
}

bool ob_jobs_run_take(struct ob_jobs *jobs, struct ob_plan *plan, struct ob_plan_set *set,
		      const char *who, const char *origin)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	job->jobs = jobs;
	job->scope = OB_BUF_INIT(4096);
	job->started_us = real_us();
	(void)snprintf(job->who, sizeof(job->who), "%s", who);
	(void)snprintf(job->origin, sizeof(job->origin), "%s", origin);
	(void)pthread_mutex_lock(&jobs->lock);
	bool room = count_running(jobs) < RUNNING_MAX;
	if (room) {
		job->plan = plan;
		job->ids = set->ids;
		job->total = set->count;
		make_audit(job);
		job->started = pthread_create(&job->thread, NULL, job_main, job) == 0;
	}
	if (job->started) {
		set->ids = NULL;
		job->next = jobs->list;
		jobs->list = job;
	}
	(void)pthread_mutex_unlock(&jobs->lock);
	bool started = job->started;
	if (!started) {
		ob_buf_done(&job->scope);
		free(job);
	}
	return started;
}

bool ob_job_stop(struct ob_jobs *jobs, const char *id)
{
	bool found = false;

	(void)pthread_mutex_lock(&jobs->lock);
	for (struct job *job = jobs->list; job; job = job->next) {
		if (strcmp(job->plan->id, id) != 0)
			continue;
		job->stop = job->stop || job->state == RUNNING;
		found = true;
	}
	(void)pthread_cond_broadcast(&jobs->wake);
	(void)pthread_mutex_unlock(&jobs->lock);
	return found;
}

/* ---- for programs ---------------------------------------------------- */

static void job_json(const struct job *job, struct ob_jout *j)
{
	static const char *const states[] = { "running", "done", "stopped", "failed" };
	const struct ob_plan *plan = job->plan;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "job", ob_str(plan->id));
	ob_jout_text(j, "store", ob_str(plan->pool->entry->name));
	ob_jout_text(j, "reader", ob_str(plan->ask.reader));
	ob_jout_text(j, "verb", ob_str(ob_verb_rules[plan->ask.verb].name));
	ob_jout_text(j, "who", ob_str(job->who));
	ob_jout_int(j, "done", (int64_t)job->done);
	ob_jout_int(j, "total", (int64_t)job->total);
	ob_jout_int(j, "failed", (int64_t)job->failed);
	ob_jout_text(j, "state", ob_str(states[job->state]));
	ob_jout_text(j, "error", job->error[0] ? ob_str(job->error) : OB_STR_NULL);
	ob_jout_us(j, "started_us", job->started_us);
	ob_jout_us(j, "ended_us", job->ended_us);
	ob_jout_end(j, '}');
}

bool ob_job_json(struct ob_jobs *jobs, const char *id, struct ob_jout *j)
{
	bool found = false;

	(void)pthread_mutex_lock(&jobs->lock);
	for (const struct job *job = jobs->list; job && !found; job = job->next) {
		found = strcmp(job->plan->id, id) == 0;
		if (found)
			job_json(job, j);
	}
	(void)pthread_mutex_unlock(&jobs->lock);
	return found;
}

void ob_jobs_json(struct ob_jobs *jobs, struct ob_jout *j)
{
	(void)pthread_mutex_lock(&jobs->lock);
	for (const struct job *job = jobs->list; job; job = job->next) {
		if (job->state == RUNNING)
			job_json(job, j);
	}
	(void)pthread_mutex_unlock(&jobs->lock);
}

/* ---- making and ending ----------------------------------------------- */

int ob_jobs_new(struct ob_monitor *monitor, struct ob_jobs **ret_jobs, struct ob_err *err)
{
	struct ob_jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	(void)pthread_mutex_init(&jobs->lock, NULL);
	(void)pthread_cond_init(&jobs->wake, NULL);
	jobs->monitor = monitor;
	*ret_jobs = jobs;
	return 0;
}

void ob_jobs_tidy(struct ob_jobs *jobs)
{
	int64_t now = real_us();
	struct job *gone = NULL;

	(void)pthread_mutex_lock(&jobs->lock);
	drop_plans(jobs, PLANS_MAX);
	for (struct job **at = &jobs->list; *at;) {
		struct job *job = *at;

		if (job->state == RUNNING || now - job->ended_us < KEEP_S * INT64_C(1000000)) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		job->next = gone;
		gone = job;
	}
	(void)pthread_mutex_unlock(&jobs->lock);
	for (struct job *next; gone; gone = next) {
		next = gone->next;
		free_job(gone);
	}
}

void ob_jobs_free(struct ob_jobs *jobs)
{
	if (!jobs)
		return;
	(void)pthread_mutex_lock(&jobs->lock);
	for (struct job *job = jobs->list; job; job = job->next)
		job->stop = true;
	(void)pthread_cond_broadcast(&jobs->wake);
	drop_plans(jobs, 0);
	(void)pthread_mutex_unlock(&jobs->lock);
	for (struct job *job = jobs->list, *next; job; job = next) {
		next = job->next;
		free_job(job);
	}
	(void)pthread_cond_destroy(&jobs->wake);
	(void)pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}

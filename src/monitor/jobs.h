/* SPDX-License-Identifier: MIT */
/*
 * Verbs in two steps. A plan holds the messages that were shown; running it is a job on a thread of
 * its own, which changes exactly these and outlives the browser that asked for it.
 */
#ifndef OB_MONITOR_JOBS_H
#define OB_MONITOR_JOBS_H

#include "base/jout.h"
#include "monitor/impl.h"
#include "operate/plan.h"

enum { OB_JOB_ID = 33, OB_JOB_TEXT = 512, OB_REASON_MAX = 500 };

/* What was asked, in memory of its own. */
struct ob_plan {
	struct ob_plan *next;
	char id[OB_JOB_ID];
	struct ob_pool *pool;
	struct ob_arena arena;
	struct ob_plan_ask ask; /* in the arena */
	struct ob_filter filter;
	size_t count;
	uint64_t hash;
	int64_t expires_us; /* wall clock */
	const char *reason; /* or NULL */
};

struct ob_jobs;

int ob_jobs_new(struct ob_monitor *monitor, struct ob_jobs **ret_jobs, struct ob_err *err);
/* Stops what runs, after the message at hand, and waits for it. NULL is allowed. */
void ob_jobs_free(struct ob_jobs *jobs);
/* Forget plans that are over and jobs that ended long ago. */
void ob_jobs_tidy(struct ob_jobs *jobs);

struct ob_plan *ob_plan_new(struct ob_pool *pool);
void ob_plan_free(struct ob_plan *plan);
/* Keep it under plan->id, which is made here; the jobs own it then. */
void ob_jobs_keep_take(struct ob_jobs *jobs, struct ob_plan *plan);
/* Take it out again; the caller owns it. NULL: there is none, or it is over. */
struct ob_plan *ob_jobs_pick(struct ob_jobs *jobs, const char *id);

/* Run these messages of the plan, whose ids are taken over. False: too many jobs run. The id of the
 * job is that of the plan. */
bool ob_jobs_run_take(struct ob_jobs *jobs, struct ob_plan *plan, struct ob_plan_set *set,
		      const char *who, const char *origin);
/* Append one object about the job; false: there is none. */
bool ob_job_json(struct ob_jobs *jobs, const char *id, struct ob_jout *j);
/* Append one for each that runs. */
void ob_jobs_json(struct ob_jobs *jobs, struct ob_jout *j);
/* False: there is none. */
bool ob_job_stop(struct ob_jobs *jobs, const char *id);

#endif

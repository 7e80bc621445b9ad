/* SPDX-License-Identifier: MIT */
/*
 * sim --seeds N [--start N] [--jobs N]   run many seeds, count what happened
 * sim --seed N [--trace]                 run one, twice, and show what broke
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 16, ENOUGH_SEEDS = 1000, TRACE_LINES = 60 };

struct options {
	uint64_t seeds, start, seed;
	uint32_t jobs;
	bool one, trace;
};

/* What a process of ours tells the others; in shared memory, so that it survives a crash. */
struct job {
	uint64_t seed; /* the one that runs */
	uint64_t done;
	bool broken;
	char rule[16], text[400];
	struct sim_counts counts;
};

static void add_counts(struct sim_counts *sum, const struct sim_counts *part)
{
#define X(name, text) sum->name += part->name;
	SIM_COUNT_MAP(X)
#undef X
}

static void show_plan(const struct sim *sim)
{
	const struct sim_plan *p = &sim->plan;
	const struct ob_config_relay *r = &p->relay;

	static const char *const kinds[] = { "snapshots", "gaps", "one writer" };

	printf("  %u workers in %u processes, %u partitions, %u keys, %u messages, ordering %d, "
	       "%s, %s sink%s%s, on_dead %s, batch %u, max_attempts %u, lease_ttl %lld ms\n",
	       p->processes * p->workers, p->processes, p->partitions, p->keys, p->messages,
	       r->ordering, kinds[p->kind], p->sink_ordered ? "ordered" : "unordered",
	       p->store_late ? ", stores late" : "", p->calm ? ", no faults" : "",
	       r->on_dead == OB_ON_DEAD_HOLD ? "hold" : "release", r->batch_size,
	       r->retry.max_attempts, (long long)r->leasing.lease_ttl_ms);
}

/* ---- one seed --------------------------------------------------------- */

static int run_one(const struct options *options)
{
	uint64_t hash[2];
	bool ok = true;

	for (int i = 0; i < 2; i++) {
		struct sim *sim = sim_new();

		if (!sim)
			return 2;
		ok = sim_run(sim, options->seed);
		hash[i] = sim->hash;
		if (i == 1) {
			printf("seed %llu: %s, %zu events, %.1f s, hash %016llx\n",
			       (unsigned long long)options->seed, ok ? "ok" : "broken",
			       sim->event_count, (double)sim_now(sim) / 1e6,
			       (unsigned long long)sim->hash);
			show_plan(sim);
			if (!ok)
				printf("  %s: %s\n", sim->rule, sim->text);
			if (!ok || options->trace)
				sim_trace(sim, options->trace,
					  options->trace ? SIZE_MAX : TRACE_LINES);
		}
		sim_free(sim);
	}
	if (hash[0] != hash[1]) {
		printf("the seed is not repeatable: %016llx, then %016llx\n",
		       (unsigned long long)hash[0], (unsigned long long)hash[1]);
		return 1;
	}
	return ok ? 0 : 1;
}

/* ---- many seeds ------------------------------------------------------- */

/* Every 64th seed is run twice: what does not repeat cannot be replayed. */
static bool repeats(uint64_t seed, uint64_t hash)
{
	struct sim *sim;
	bool same;

	if (seed % 64 != 0)
		return true;
	sim = sim_new();
	if (!sim)
		return false;
	(void)sim_run(sim, seed);
	same = sim->hash == hash;
	sim_free(sim);
	return same;
}

static void run_job(const struct options *options, struct job *job, uint32_t number)
{
	for (uint64_t i = number; i < options->seeds && !job->broken; i += options->jobs) {
		struct sim *sim = sim_new();

		if (!sim)
			abort();
		job->seed = options->start + i;
		if (!sim_run(sim, job->seed)) {
			job->broken = true;
			(void)snprintf(job->rule, sizeof(job->rule), "%s", sim->rule);
			(void)snprintf(job->text, sizeof(job->text), "%s", sim->text);
		} else if (!repeats(job->seed, sim->hash)) {
			job->broken = true;
			(void)snprintf(job->rule, sizeof(job->rule), "repeat");
			(void)snprintf(job->text, sizeof(job->text), "two runs of it differ");
		}
		add_counts(&job->counts, &sim->counts);
		job->done++;
		sim_free(sim);
	}
}

/* The lowest broken seed decides, whichever process was first. */
static const struct job *first_broken(const struct job *jobs, uint32_t count)
{
	const struct job *first = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (jobs[i].broken && (!first || jobs[i].seed < first->seed))
			first = &jobs[i];
	}
	return first;
}

static int show_counts(const struct sim_counts *counts, bool enough)
{
	int missing = 0;

#define X(name, text) \
	printf("# %-18s %10llu  %s\n", #name, (unsigned long long)counts->name, text); \
	missing += counts->name == 0;
	SIM_COUNT_MAP(X)
#undef X
	if (missing > 0 && enough)
		printf("not ok: %d kinds of events never happened, so the rest proves little\n",
		       missing);
	return enough ? missing : 0;
}

static void wait_for(struct job *jobs, const pid_t *pids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int status = 0;

		if (waitpid(pids[i], &status, 0) < 0 || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 0) {
			jobs[i].broken = true;
			(void)snprintf(jobs[i].rule, sizeof(jobs[i].rule), "crash");
			(void)snprintf(jobs[i].text, sizeof(jobs[i].text),
				       "the program itself died, wait status %d", status);
		}
	}
}

static int run_many(const struct options *options)
{
	struct job *jobs = mmap(NULL, sizeof(*jobs) * options->jobs, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sim_counts counts = { 0 };
	pid_t pids[JOBS_MAX];
	uint64_t done = 0;

	if (jobs == MAP_FAILED)
		return 2;
	for (uint32_t i = 0; i < options->jobs; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return 2;
		if (pids[i] == 0) {
			run_job(options, &jobs[i], i);
			exit(0); /* not _exit: leaks are looked for on the way */
		}
	}
	wait_for(jobs, pids, options->jobs);
	for (uint32_t i = 0; i < options->jobs; i++) {
		add_counts(&counts, &jobs[i].counts);
		done += jobs[i].done;
	}

	const struct job *broken = first_broken(jobs, options->jobs);

	if (broken) {
		struct options again = { .seed = broken->seed, .one = true };

		printf("not ok: seed %llu: %s: %s\n", (unsigned long long)broken->seed,
		       broken->rule, broken->text);
		(void)fflush(stdout);
		if (strcmp(broken->rule, "crash") != 0)
			(void)run_one(&again);
		printf("replay it with: sim --seed %llu\n", (unsigned long long)broken->seed);
		return 1;
	}
	if (show_counts(&counts, options->seeds >= ENOUGH_SEEDS) > 0)
		return 1;
	printf("ok: %llu seeds\n", (unsigned long long)done);
	return 0;
}

/* ---- the command line ------------------------------------------------- */

static bool number(const char *text, uint64_t *ret)
{
	char *end = NULL;

	if (!text || *text < '0' || *text > '9')
		return false;
	*ret = strtoull(text, &end, 10);
	return *end == '\0';
}

static bool parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		uint64_t value;

		if (strcmp(argv[i], "--trace") == 0) {
			options->trace = true;
			continue;
		}
		if (!number(argv[i + 1], &value))
			return false;
		if (strcmp(argv[i], "--seeds") == 0)
			options->seeds = value;
		else if (strcmp(argv[i], "--start") == 0)
			options->start = value;
		else if (strcmp(argv[i], "--jobs") == 0 && value > 0 && value <= JOBS_MAX)
			options->jobs = (uint32_t)value;
		else if (strcmp(argv[i], "--seed") == 0)
			options->seed = value, options->one = true;
		else
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options options = { .seeds = 2000, .start = 1, .jobs = 2 };

	if (!parse(argc, argv, &options)) {
		(void)fprintf(stderr,
			      "usage: sim [--seeds N] [--start N] [--jobs N] | "
			      "sim --seed N [--trace]\n");
		return 2;
	}
	return options.one ? run_one(&options) : run_many(&options);
}

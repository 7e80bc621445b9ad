/* SPDX-License-Identifier: MIT */
/* The bench's command line. */
#include "bench/bare/bare.h"
#include "bench/bare/consume.h"
#include "bench/broker/parts.h"
#include "bench/cases/cases.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/report/report.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CHOSEN_MAX = 64, ROUNDS = 3 };

struct choice {
	const char *names[CHOSEN_MAX];
	bool whole[CHOSEN_MAX]; /* it names one case, not the beginning of some */
	size_t count;
	const char *json, *markdown, *svg, *program, *baseline;
	bool list;
};

static struct bench_env env;

static void stop_servers(void)
{
	bench_env_close(&env);
}

/* Ends the servers as a normal end does. */
static void *wait_for_signal(void *set)
{
	int number = 0;

	(void)sigwait(set, &number);
	(void)fputs("outbox-bench: stopped\n", stderr);
	exit(128 + number);
}

static void catch_signals(void)
{
	static sigset_t set;
	pthread_t thread;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	if (pthread_create(&thread, NULL, wait_for_signal, &set) == 0)
		(void)pthread_detach(thread);
}

static void usage(FILE *out)
{
	(void)fputs(
		"usage: outbox-bench [--quick] [--case NAME]... [--rounds N] [--messages N]\n"
		"                    [--json FILE] [--markdown FILE] [--svg FILE]\n"
		"                    [--program FILE] [--baseline FILE]\n"
		"       outbox-bench --list\n"
		"A NAME is that of a case or the beginning of some, such as postgres-redis.\n",
		out);
}

static uint64_t number(const char *option, const char *text, uint64_t most)
{
	char *end = NULL;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < 1 || value > most)
		bench_fatal("--%s: '%s' is not a number from 1 to %llu", option, text,
			    (unsigned long long)most);
	return value;
}

static void parse(int argc, char **argv, struct choice *choice)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "case", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "messages", required_argument, NULL, 'm' },
		{ "json", required_argument, NULL, 'j' },
		{ "markdown", required_argument, NULL, 'd' },
		{ "svg", required_argument, NULL, 's' },
		{ "program", required_argument, NULL, 'p' },
		{ "baseline", required_argument, NULL, 'b' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'q':
			env.quick = true;
			break;
		case 'c':
			if (choice->count == CHOSEN_MAX)
				bench_fatal("too many cases");
			choice->names[choice->count++] = optarg;
			break;
		case 'r':
			env.rounds = (uint32_t)number("rounds", optarg, BENCH_ROUNDS_MAX / 3);
			break;
		case 'm':
			env.messages = number("messages", optarg, 100000000);
			break;
		case 'j':
			choice->json = optarg;
			break;
		case 'd':
			choice->markdown = optarg;
			break;
		case 's':
			choice->svg = optarg;
			break;
		case 'p':
			choice->program = optarg;
			break;
		case 'b':
			choice->baseline = optarg;
			break;
		case 'l':
			choice->list = true;
			break;
		case 'h':
			usage(stdout);
			exit(EXIT_SUCCESS);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc)
		bench_fatal("'%s' is not an option; --help lists them", argv[optind]);
	env.rounds = env.rounds ? env.rounds : env.quick ? 1 : ROUNDS;
}

static bool is_chosen(const struct choice *choice, const char *name)
{
	for (size_t i = 0; i < choice->count; i++) {
		if (strncmp(name, choice->names[i], strlen(choice->names[i])) == 0 &&
		    (!choice->whole[i] || strcmp(name, choice->names[i]) == 0))
			return true;
	}
	return choice->count == 0;
}

/* The whole name of one case is not the beginning of others. */
static void check_chosen(struct choice *choice, const struct bench_case *cases, size_t count)
{
	for (size_t i = 0; i < choice->count; i++) {
		bool known = false;

		for (size_t c = 0; c < count; c++) {
			known |= strncmp(cases[c].name, choice->names[i],
					 strlen(choice->names[i])) == 0;
			choice->whole[i] |= strcmp(cases[c].name, choice->names[i]) == 0;
		}
		if (!known)
			bench_fatal("no case '%s'; --list names them", choice->names[i]);
	}
}

static size_t run_cases(const struct choice *choice, const struct bench_case *cases, size_t count,
			struct bench_result *results)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		struct bench_result *result = &results[done];
		double from_us = bench_now_us();

		if (!is_chosen(choice, cases[i].name))
			continue;
		done++;
		(void)snprintf(result->name, sizeof(result->name), "%s", cases[i].name);
		(void)snprintf(result->title, sizeof(result->title), "%s", cases[i].title);
		result->group = cases[i].group;
		cases[i].run(&env, &cases[i], result);
		(void)fprintf(stderr, "%-28s %5.1f s%s%s\n", result->name,
			      (bench_now_us() - from_us) / 1e6,
			      result->missing[0] ? "  not measured: " : "", result->missing);
	}
	return done;
}

static int write_files(const struct choice *choice, const struct bench_run *run)
{
	FILE *file = choice->markdown ? fopen(choice->markdown, "we") : NULL;

	if (choice->markdown && !file)
		bench_fatal("%s: %m", choice->markdown);
	if (file) {
		bench_report_markdown(file, run);
		if (fclose(file) != 0)
			bench_fatal("%s: %m", choice->markdown);
	}
	if (choice->json && bench_report_json(choice->json, run) < 0)
		bench_fatal("%s: cannot be written", choice->json);
	if (choice->svg && bench_report_svg(choice->svg, run) < 0)
		bench_fatal("%s: cannot be written", choice->svg);
	return EXIT_SUCCESS;
}

static int measure(const struct choice *choice, const struct bench_case *cases, size_t count)
{
	struct bench_result *results = bench_need(calloc(count, sizeof(*results)));
	struct bench_machine machine;
	double from_us = bench_now_us();

	bench_machine_read(&machine);
	catch_signals();
	(void)atexit(stop_servers);
	bench_env_open(&env, choice->program, choice->baseline);
	struct bench_run run = {
		.machine = &machine, .results = results, .quick = env.quick, .rounds = env.rounds
	};
	run.count = run_cases(choice, cases, count, results);
	bench_machine_servers(&machine, &env);
	run.seconds = (bench_now_us() - from_us) / 1e6;
	bench_report_markdown(stdout, &run);
	int r = write_files(choice, &run);
	free(results);
	return r;
}

int main(int argc, char **argv)
{
	struct choice choice = { 0 };
	size_t count;
	const struct bench_case *cases = bench_cases(&count);

	/* How it starts itself; see subject.c and broker/exec.c. */
	if (argc == 6 && strcmp(argv[1], "--bare-loop") == 0)
		return bare_run(argv[2], argv[3], argv[4], argv[5]);
#if BENCH_REDIS
	if (argc == 5 && strcmp(argv[1], "--bare-consume") == 0)
		return bare_consume(argv[2], argv[3], argv[4]);
#endif
	if (argc == 3 && strcmp(argv[1], "--exec-handler") == 0)
		return bench_exec_handle(argv[2]);
	parse(argc, argv, &choice);
	check_chosen(&choice, cases, count);
	for (size_t i = 0; choice.list && i < count; i++)
		(void)printf("%-28s %s\n", cases[i].name, cases[i].title);
	return choice.list ? EXIT_SUCCESS : measure(&choice, cases, count);
}

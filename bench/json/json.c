/* SPDX-License-Identifier: MIT */
/*
 * Our JSON validator against jansson's parser, on a message of 300 bytes and a
 * document of 10 kB. The two take turns, so that whatever else the machine does
 * meets both; the median round counts. Exit 1 when the bar is missed.
 */
#include "base/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, ROUND_BYTES = 1 << 20, BAR = 8 };

static const char small_doc[] =
	"{\"order_id\":\"0192f3a1-7c44-7b1e-9f43-5b0c8a6d2e11\",\"customer\":{\"id\":48213,"
	"\"name\":"
	"\"Ana "
	"Mar\xC3\xADn\",\"vip\":false},\"items\":[{\"sku\":\"KB-1042\",\"qty\":2,\"price\":49.90},"
	"{\"sku\":\"MS-77\",\"qty\":1,\"price\":19.5}],\"total\":119.30,\"currency\":\"EUR\","
	"\"note\":null,"
	"\"placed_at\":\"2024-11-03T10:15:30.123Z\",\"source\":\"web-desktop\"}";

struct subject {
	const char *name;
	bool (*run)(struct ob_str text);
};

static bool run_ours(struct ob_str text)
{
	return ob_json_valid(text, NULL);
}

static bool run_jansson(struct ob_str text)
{
	json_t *doc = json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL);
	bool ok = doc != NULL;

	json_decref(doc);
	return ok;
}

static const struct subject subjects[] = { { "ours", run_ours }, { "jansson", run_jansson } };
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds for one document in one round. */
static double round_ns(const struct subject *subject, struct ob_str text)
{
	size_t times = ROUND_BYTES / text.n;
	size_t accepted = 0;
	struct timespec from, to;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	for (size_t i = 0; i < times; i++)
		accepted += subject->run(text);
	(void)clock_gettime(CLOCK_MONOTONIC, &to);
	if (accepted != times) {
		(void)fprintf(stderr, "bench-json: %s refuses the document\n", subject->name);
		exit(EXIT_FAILURE);
	}
	double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	return ns / (double)times;
}

/* How many times as fast we are. */
static double compare_on(const char *what, struct ob_str text)
{
	double ns[SUBJECTS][ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int s = 0; s < SUBJECTS; s++)
			ns[s][round] = round_ns(&subjects[s], text);
	}
	for (int s = 0; s < SUBJECTS; s++) {
		qsort(ns[s], ROUNDS, sizeof(ns[s][0]), compare);
		double median = ns[s][ROUNDS / 2];
		(void)printf("%-6s %6zu bytes  %-8s %10.0f ns/document %8.1f MB/s\n", what, text.n,
			     subjects[s].name, median, (double)text.n * 1e3 / median);
	}
	double ratio = ns[1][ROUNDS / 2] / ns[0][ROUNDS / 2];
	(void)printf("%-6s ratio %.1f\n", what, ratio);
	return ratio;
}

int main(void)
{
	struct ob_str small = OB_STR(small_doc);
	struct ob_buf large = OB_BUF_INIT(20000);

	ob_buf_addc(&large, '[');
	while (large.len < 10000) {
		if (large.len > 1)
			ob_buf_adds(&large, ",\n  ");
		ob_buf_add(&large, small);
	}
	ob_buf_addc(&large, ']');

	double ratio = compare_on("small", small);
	(void)compare_on("large", ob_buf_view(&large));
	ob_buf_done(&large);
	(void)printf(
		"verdict: %s: %.1f times as fast as jansson on the small document, the bar is %d\n",
		ratio >= BAR ? "pass" : "FAIL", ratio, BAR);
	return ratio >= BAR ? EXIT_SUCCESS : EXIT_FAILURE;
}

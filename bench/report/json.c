/* SPDX-License-Identifier: MIT */
/* The report for programs: every figure with all its rounds. */
#include "bench/report/bars.h"
#include "bench/report/report.h"

#include <jansson.h>

static json_t *json_of_series(const struct bench_series *series)
{
	json_t *rounds = json_array();

	for (size_t i = 0; i < series->count; i++)
		(void)json_array_append_new(rounds, json_real(series->values[i]));
	return json_pack("{s:f, s:f, s:f, s:o}", "median", bench_series_median(series), "min",
			 bench_series_min(series), "max", bench_series_max(series), "rounds",
			 rounds);
}

static json_t *json_of_result(const struct bench_result *result)
{
	json_t *metrics = json_object();

	for (size_t i = 0; i < result->count; i++)
		(void)json_object_set_new(metrics, result->metrics[i].name,
					  json_of_series(&result->metrics[i].series));
	return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o}", "name", result->name, "title",
			 result->title, "group", result->group, "missing",
			 result->missing[0] ? result->missing : NULL, "left_out",
			 result->without[0] ? result->without : NULL, "limit",
			 result->limit[0] ? result->limit : NULL, "metrics", metrics);
}

static json_t *json_of_bars(const struct bench_run *run)
{
	static const char *const words[] = { "pass", "miss", "not measured" };
	json_t *bars = json_array();

	for (const struct bench_bar *bar = bench_bars; bar->name; bar++) {
		const struct bench_result *result;
		enum bench_verdict verdict =
			bench_bar_judge(bar, run->results, run->count, &result);

		if (result)
			(void)json_array_append_new(
				bars, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:s}", "text",
						bar->text, "case", bar->name, "metric", bar->metric,
						"sense", bar->at_most ? "at most" : "at least",
						"value", bench_bar_value(bar, result), "unit",
						bar->unit, "verdict", words[verdict]));
	}
	return bars;
}

int bench_report_json(const char *path, const struct bench_run *run)
{
	const struct bench_machine *m = run->machine;
	json_t *cases = json_array();

	for (size_t i = 0; i < run->count; i++)
		(void)json_array_append_new(cases, json_of_result(&run->results[i]));
	json_t *root = json_pack(
		"{s:{s:s, s:i, s:f, s:s, s:s, s:s, s:f, s:s}, s:b, s:i, s:f, s:o, s:o}", "machine",
		"processor", m->processor, "cores", (int)m->cores, "memory_gb", m->memory_gb,
		"kernel", m->kernel, "system", m->system, "servers", m->servers, "load", m->load,
		"date", m->date, "quick", run->quick, "rounds", (int)run->rounds, "seconds",
		run->seconds, "cases", cases, "bars", json_of_bars(run));
	int r = root ? json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : -1;
	json_decref(root);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* The report for people: the machine, the bars with a verdict each, and a table a group. */
#include "bench/fatal.h"
#include "bench/report/bars.h"
#include "bench/report/grid.h"
#include "bench/report/report.h"

#include <stdlib.h>
#include <string.h>

static void put_series(struct bench_grid *grid, size_t row, size_t column,
		       const struct bench_series *series, const struct bench_column *how)
{
	char median[32], least[32], most[32];

	if (!series) {
		bench_grid_put(grid, row, column, "–");
		return;
	}
	bench_format(median, sizeof(median), bench_series_median(series), how->decimals);
	bench_format(least, sizeof(least), bench_series_min(series), how->decimals);
	bench_format(most, sizeof(most), bench_series_max(series), how->decimals);
	if (how->spread && series->count > 1)
		bench_grid_put(grid, row, column, "%s (%s–%s)", median, least, most);
	else
		bench_grid_put(grid, row, column, "%s", median);
}

static bool has_figure(const struct bench_run *run, const char *group, const char *metric)
{
	for (size_t i = 0; i < run->count; i++) {
		if (strcmp(run->results[i].group, group) == 0 &&
		    bench_result_get(&run->results[i], metric))
			return true;
	}
	return false;
}

static void put_row(struct bench_grid *grid, size_t row, const struct bench_run *run,
		    const struct bench_group *group, const struct bench_result *result)
{
	size_t column = 1;

	bench_grid_put(grid, row, 0, "%s", result->title);
	for (const struct bench_column *c = group->columns; c->heading; c++) {
		if (has_figure(run, group->name, c->metric))
			put_series(grid, row, column++, bench_result_get(result, c->metric), c);
	}
	if (group->limit)
		bench_grid_put(grid, row, column, "%s", result->limit);
}

static void put_heading(struct bench_grid *grid, const struct bench_run *run,
			const struct bench_group *group)
{
	size_t column = 1;

	bench_grid_put(grid, 0, 0, "case");
	for (const struct bench_column *c = group->columns; c->heading; c++) {
		if (has_figure(run, group->name, c->metric))
			bench_grid_put(grid, 0, column++, "%s", c->heading);
	}
	if (group->limit) {
		grid->left |= 1U << column;
		bench_grid_put(grid, 0, column, "what was busy");
	}
}

static void print_group(FILE *out, const struct bench_run *run, const struct bench_group *group)
{
	struct bench_grid *grid = bench_need(calloc(1, sizeof(*grid)));
	size_t row = 1;

	grid->left = 1;
	put_heading(grid, run, group);
	for (size_t i = 0; i < run->count; i++) {
		if (strcmp(run->results[i].group, group->name) == 0 && !run->results[i].missing[0])
			put_row(grid, row++, run, group, &run->results[i]);
	}
	if (row > 1) {
		(void)fprintf(out, "\n### %s\n\n", group->title);
		bench_grid_print(out, grid);
	}
	free(grid);
}

/* What holds a case back, all of it or a part. */
static const char *reason_of(const struct bench_result *result)
{
	return result->missing[0] ? result->missing : result->without;
}

static bool said_before(const struct bench_run *run, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (strcmp(reason_of(&run->results[i]), reason_of(&run->results[index])) == 0)
			return true;
	}
	return false;
}

/* Once for each reason, with the cases that it holds back. */
static void print_missing(FILE *out, const struct bench_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		const char *reason = reason_of(&run->results[i]);
		const char *comma = "";

		if (!reason[0] || said_before(run, i))
			continue;
		(void)fprintf(out, "\n%s: %s (",
			      run->results[i].missing[0] ? "not measured" : "left out", reason);
		for (size_t k = i; k < run->count; k++) {
			if (strcmp(reason_of(&run->results[k]), reason) != 0)
				continue;
			(void)fprintf(out, "%s%s", comma, run->results[k].name);
			comma = ", ";
		}
		(void)fputs(")\n", out);
	}
}

static void put_bar(struct bench_grid *grid, size_t row, const struct bench_bar *bar,
		    const struct bench_run *run)
{
	const struct bench_result *result;
	enum bench_verdict verdict = bench_bar_judge(bar, run->results, run->count, &result);
	struct bench_column how = { .decimals = 2, .spread = true };
	char value[32];

	(void)snprintf(value, sizeof(value), "%g", bench_bar_value(bar, result));
	bench_grid_put(grid, row, 0, "%s", bar->text);
	bench_grid_put(grid, row, 1, "%s %s%s%s", bar->at_most ? "≤" : "≥", value,
		       bar->unit[0] ? " " : "", bar->unit);
	if (bench_result_median(result, bar->metric) >= 1000)
		how.decimals = 0;
	put_series(grid, row, 2, bench_result_get(result, bar->metric), &how);
	if (verdict == BENCH_UNMEASURED)
		bench_grid_put(grid, row, 3, "not measured: %s",
			       result->missing[0]   ? result->missing
			       : result->without[0] ? result->without
						    : "not asked for");
	else
		bench_grid_put(grid, row, 3, "%s%s%s%s",
			       verdict == BENCH_PASS ? "pass" : "**miss**",
			       run->quick ? " in small" : "",
			       verdict == BENCH_MISS && result->limit[0] ? "; " : "",
			       verdict == BENCH_MISS ? result->limit : "");
}

static void print_bars(FILE *out, const struct bench_run *run)
{
	struct bench_grid *grid = bench_need(calloc(1, sizeof(*grid)));
	const struct bench_result *result;
	size_t row = 1;

	grid->left = 1 | 1 << 3;
	bench_grid_put(grid, 0, 0, "case");
	bench_grid_put(grid, 0, 1, "bar");
	bench_grid_put(grid, 0, 2, "measured");
	bench_grid_put(grid, 0, 3, "verdict");
	for (const struct bench_bar *bar = bench_bars; bar->name; bar++) {
		(void)bench_bar_judge(bar, run->results, run->count, &result);
		if (result)
			put_bar(grid, row++, bar, run);
	}
	if (row > 1) {
		(void)fputs("\n### The bars\n\n", out);
		bench_grid_print(out, grid);
	}
	free(grid);
}

void bench_report_markdown(FILE *out, const struct bench_run *run)
{
	const struct bench_machine *m = run->machine;

	(void)fprintf(
		out,
		"%s: %s, %ld cores, %.0f GB, %s, %s. %s. Load at the start %.1f; %u round%s%s; "
		"%.0f s in all. outbox %s.\n",
		m->date, m->processor, m->cores, m->memory_gb, m->kernel, m->system, m->servers,
		m->load, run->rounds, run->rounds == 1 ? "" : "s",
		run->quick ? ", quick form: the figures mean little" : "", run->seconds,
		OUTBOX_VERSION);
	print_bars(out, run);
	for (const struct bench_group *group = bench_groups; group->name; group++)
		print_group(out, run, group);
	print_missing(out, run);
}

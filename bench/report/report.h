/* SPDX-License-Identifier: MIT */
/* A run written down: tables for people (Markdown, aligned), JSON for programs, a picture. */
#ifndef OB_BENCH_REPORT_H
#define OB_BENCH_REPORT_H

#include "bench/report/machine.h"

#include <stdio.h>

struct bench_run {
	const struct bench_machine *machine;
	const struct bench_result *results;
	size_t count;
	bool quick;
	uint32_t rounds;
	double seconds; /* that it took */
};

/* ---- tables.c ------------------------------------------------------------ */

/* What is measured, by group, in the order of the report. */
struct bench_column {
	const char *heading, *metric;
	int decimals;
	bool spread; /* with the least and the most of the rounds */
};

struct bench_group {
	const char *name, *title;
	const struct bench_column *columns; /* ends with a NULL heading */
	bool limit;                         /* and a column for what it was waiting for */
	const char *first, *second, *ratio; /* the metrics to draw, or NULL */
	const char *first_title, *second_title, *unit;
	int decimals;
};

extern const struct bench_group bench_groups[]; /* ends with a NULL name */

/* A number with commas between thousands. */
void bench_format(char *out, size_t size, double value, int decimals);

/* ---- markdown.c, json_report.c, svg.c: -1 when the file cannot be written -- */

void bench_report_markdown(FILE *out, const struct bench_run *run);
int bench_report_json(const char *path, const struct bench_run *run);
int bench_report_svg(const char *path, const struct bench_run *run);

#endif

/* SPDX-License-Identifier: MIT */
/* The picture: for each group a panel of paired bars. Plain SVG, readable on light and dark pages.
 */
#include "base/cleanup.h"
#include "bench/report/report.h"

#include <string.h>

enum {
	WIDTH = 960,
	LABEL = 290, /* of the cases, left of the bars */
	VALUE = 150, /* of the figures, right of them */
	ROW = 34,
	BAR = 11,
	HEAD = 62,
	FOOT = 26,
	MARGIN = 20,
};

static const char first_colour[] = "#2563eb", second_colour[] = "#94a3b8";

static bool is_drawn(const struct bench_result *result, const struct bench_group *group)
{
	return strcmp(result->group, group->name) == 0 && bench_result_get(result, group->first) &&
	       bench_result_get(result, group->second);
}

static size_t count_rows(const struct bench_run *run, const struct bench_group *group)
{
	size_t rows = 0;

	for (size_t i = 0; group->first && i < run->count; i++)
		rows += is_drawn(&run->results[i], group);
	return rows;
}

/* The end of the axis: 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
	static const double steps[] = { 1, 2, 2.5, 5, 10 };
	double power = 1;

	while (power > value)
		power /= 10;
	while (power * 10 <= value)
		power *= 10;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i] * power >= value)
			return steps[i] * power;
	}
	return 10 * power;
}

static double axis_end(const struct bench_run *run, const struct bench_group *group)
{
	double most = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct bench_result *r = &run->results[i];

		if (!is_drawn(r, group))
			continue;
		double a = bench_series_max(bench_result_get(r, group->first));
		double b = bench_series_max(bench_result_get(r, group->second));

		most = a > most ? a : most;
		most = b > most ? b : most;
	}
	return most > 0 ? round_up(most) : 1;
}

static double scale(double value, double end)
{
	return value / end * (WIDTH - LABEL - VALUE);
}

/* A bar from zero to the median, and a line for the spread. */
static void draw_bar(FILE *out, const struct bench_series *series, double end, int y,
		     const char *colour)
{
	double least = LABEL + scale(bench_series_min(series), end);
	double most = LABEL + scale(bench_series_max(series), end);
	double middle = y + BAR / 2.0;

	(void)fprintf(
		out,
		"<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n",
		LABEL, y, scale(bench_series_median(series), end), BAR, colour);
	if (series->count > 1)
		(void)fprintf(
			out,
			"<path d=\"M%.1f %.1fH%.1fM%.1f %.1fv5M%.1f %.1fv5\" class=\"spread\"/>\n",
			least, middle, most, least, middle - 2.5, most, middle - 2.5);
}

static void draw_row(FILE *out, const struct bench_result *result, const struct bench_group *group,
		     double end, int y)
{
	const struct bench_series *first = bench_result_get(result, group->first);
	const struct bench_series *second = bench_result_get(result, group->second);
	const struct bench_series *ratio =
		group->ratio ? bench_result_get(result, group->ratio) : NULL;
	char value[32], note[48] = "";
	double a = bench_series_max(first), b = bench_series_max(second);

	draw_bar(out, first, end, y + 4, first_colour);
	draw_bar(out, second, end, y + 5 + BAR, second_colour);
	bench_format(value, sizeof(value), bench_series_median(first), group->decimals);
	if (ratio)
		(void)snprintf(note, sizeof(note), "  %.2f ×", bench_series_median(ratio));
	(void)fprintf(out,
		      "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
		      "<text x=\"%.1f\" y=\"%d\"><tspan font-weight=\"600\">%s</tspan><tspan "
		      "class=\"soft\" xml:space=\"preserve\">%s</tspan></text>\n",
		      LABEL - 10, y + ROW / 2 + 3, result->title,
		      LABEL + scale(a > b ? a : b, end) + 8, y + ROW / 2 + 3, value, note);
}

static void draw_axis(FILE *out, const struct bench_group *group, double end, int y, int height)
{
	for (int i = 0; i <= 4; i++) {
		double at = LABEL + scale(end * i / 4, end);
		char value[32];

		bench_format(value, sizeof(value), end * i / 4,
			     end >= 8          ? 0
			     : group->decimals ? group->decimals
					       : 1);
		(void)fprintf(out,
			      "<path d=\"M%.1f %dv%d\" class=\"grid\"/>\n"
			      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" "
			      "class=\"soft\">%s</text>\n",
			      at, y, height, at, y + height + 16, value);
	}
}

static int draw_group(FILE *out, const struct bench_run *run, const struct bench_group *group,
		      int y)
{
	size_t rows = count_rows(run, group);
	int top = y + HEAD;

	if (rows == 0)
		return y;
	double end = axis_end(run, group);
	(void)fprintf(out,
		      "<text x=\"%d\" y=\"%d\" class=\"title\">%s</text>\n"
		      "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\"/>"
		      "<text x=\"%d\" y=\"%d\">%s</text>\n"
		      "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\"/>"
		      "<text x=\"%d\" y=\"%d\">%s</text>\n"
		      "<text x=\"%d\" y=\"%d\" class=\"soft\">%s</text>\n",
		      MARGIN, y + 24, group->title, LABEL, y + 38, first_colour, LABEL + 16, y + 47,
		      group->first_title, LABEL + 150, y + 38, second_colour, LABEL + 166, y + 47,
		      group->second_title, LABEL + 290, y + 47, group->unit);
	draw_axis(out, group, end, top, (int)rows * ROW);
	for (size_t i = 0, at = 0; i < run->count; i++) {
		if (is_drawn(&run->results[i], group))
			draw_row(out, &run->results[i], group, end, top + (int)(at++) * ROW);
	}
	return top + (int)rows * ROW + FOOT + MARGIN;
}

static int height_of(const struct bench_run *run)
{
	int height = MARGIN;

	for (const struct bench_group *group = bench_groups; group->name; group++) {
		size_t rows = count_rows(run, group);

		height += rows ? HEAD + (int)rows * ROW + FOOT + MARGIN : 0;
	}
	return height + 2 * MARGIN;
}

int bench_report_svg(const char *path, const struct bench_run *run)
{
	OB_CLEANUP(ob_fclosep) FILE *out = fopen(path, "we");
	int height = height_of(run), y = MARGIN / 2;

	if (!out)
		return -1;
	(void)fprintf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" "
		"font-size=\"12\" fill=\"#0f172a\">\n"
		"<style>.title{font-size:16px;font-weight:600}.soft{fill:#64748b}"
		".grid{stroke:#e2e8f0}.spread{stroke:#0f172a;stroke-width:1.2;fill:none}"
		"</style>\n"
		"<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#fff\"/>\n",
		WIDTH, height, WIDTH, height, WIDTH, height);
	for (const struct bench_group *group = bench_groups; group->name; group++)
		y = draw_group(out, run, group, y);
	(void)fprintf(out,
		      "<text x=\"%d\" y=\"%d\" class=\"soft\">%s, %ld cores; %s; medians of %u "
		      "round%s, lines from the least to the most</text>\n</svg>\n",
		      MARGIN, height - MARGIN, run->machine->processor, run->machine->cores,
		      run->machine->date, run->rounds, run->rounds == 1 ? "" : "s");
	return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}

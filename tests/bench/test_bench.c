/* SPDX-License-Identifier: MIT */
/* The bench in its smallest form: what it writes is well-formed and plausible. No figure is judged.
 */
#include "run.h"
#include "suite.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2, TIMEOUT_MS = 110000, FILE_MAX = 1 << 20 };

static char dir[64], json_path[96], svg_path[96], markdown_path[96], tmpdir[80];

static void begin(void)
{
	ob_temp_dir(dir);
	(void)snprintf(json_path, sizeof(json_path), "%s/report.json", dir);
	(void)snprintf(svg_path, sizeof(svg_path), "%s/report.svg", dir);
	(void)snprintf(markdown_path, sizeof(markdown_path), "%s/report.md", dir);
	(void)snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", dir);
}

/* Run with these words behind the program's name, and demand the exit code. */
static struct ob_run bench(int code, const char *const *words)
{
	const char *argv[32] = { getenv("OUTBOX_BENCH") };
	const char *const env[] = { tmpdir, NULL };
	struct ob_run run = { .argv = argv, .env = env, .timeout_ms = TIMEOUT_MS };

	ck_assert_ptr_nonnull(argv[0]);
	for (size_t i = 0; words[i]; i++)
		argv[i + 1] = words[i];
	ob_run(&run);
	ck_assert_msg(run.code == code, "exit code %d: %s%s", run.code, run.out, run.err);
	return run;
}

static char *read_file(const char *path)
{
	char *text = calloc(1, FILE_MAX);
	FILE *file = fopen(path, "re");

	ck_assert_ptr_nonnull(text);
	ck_assert_msg(file != NULL, "%s is not there", path);
	ck_assert_uint_gt(fread(text, 1, FILE_MAX - 1, file), 0);
	(void)fclose(file);
	return text;
}

static double median(const json_t *entry, const char *name)
{
	const json_t *metric = json_object_get(json_object_get(entry, "metrics"), name);

	ck_assert_msg(metric != NULL, "no %s", name);
	ck_assert_uint_eq(json_array_size(json_object_get(metric, "rounds")), ROUNDS);
	double value = json_real_value(json_object_get(metric, "median"));
	ck_assert_double_le(json_real_value(json_object_get(metric, "min")), value);
	ck_assert_double_ge(json_real_value(json_object_get(metric, "max")), value);
	return value;
}

static void check_drain(const json_t *entry)
{
	ck_assert_str_eq(json_string_value(json_object_get(entry, "group")), "drain");
	ck_assert_msg(json_is_null(json_object_get(entry, "missing")), "%s",
		      json_string_value(json_object_get(entry, "missing")));
	ck_assert_msg(json_is_null(json_object_get(entry, "left_out")), "%s",
		      json_string_value(json_object_get(entry, "left_out")));
	ck_assert_double_gt(median(entry, "relay_rate"), 1);
	ck_assert_double_gt(median(entry, "keep_rate"), 1);
	ck_assert_double_gt(median(entry, "cursor_rate"), 1);
	ck_assert_double_lt(median(entry, "relay_rate"), 1e8);
	ck_assert_double_gt(median(entry, "ratio_keep"), 0);
	ck_assert_double_gt(median(entry, "ratio_cursor"), 0);
	ck_assert_double_ge(median(entry, "relay_cpu_us"), 0);
	ck_assert_double_gt(median(entry, "relay_first_ms"), 0);
	ck_assert_double_gt(median(entry, "relay_peak_mb"), 1);
}

static size_t left_behind(void)
{
	DIR *d = opendir(dir);
	size_t count = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *e; (e = readdir(d));)
		count += strncmp(e->d_name, "outbox-bench.", 13) == 0;
	(void)closedir(d);
	return count;
}

/* The program is its own baseline: the real one is not built for tests. */
OB_TEST(a_quick_run_writes_a_table_json_and_a_picture)
{
	begin();
	const char *const words[] = { "--quick",
				      "--case",
				      "sqlite-file",
				      "--messages",
				      "3000",
				      "--rounds",
				      "2",
				      "--program",
				      getenv("OUTBOX_BIN"),
				      "--baseline",
				      getenv("OUTBOX_BIN"),
				      "--json",
				      json_path,
				      "--svg",
				      svg_path,
				      "--markdown",
				      markdown_path,
				      NULL };
	struct ob_run run = bench(0, words);
	json_t *report = json_load_file(json_path, 0, NULL);
	char *svg = read_file(svg_path), *markdown = read_file(markdown_path);

	ck_assert_ptr_nonnull(strstr(run.out, "### The bars\n\n| case "));
	ck_assert_ptr_nonnull(strstr(run.out, "| SQLite → file against the baseline, keep "));
	ck_assert_ptr_nonnull(strstr(run.out, "\n### Draining: "));
	ck_assert_str_eq(markdown, run.out);
	ck_assert_msg(report != NULL, "the report is not JSON");
	const json_t *cases = json_object_get(report, "cases");
	ck_assert_uint_eq(json_array_size(cases), 1);
	check_drain(json_array_get(cases, 0));
	ck_assert_uint_eq(json_array_size(json_object_get(report, "bars")), 1);
	ck_assert_int_gt(
		json_integer_value(json_object_get(json_object_get(report, "machine"), "cores")),
		0);
	ck_assert_int_eq(strncmp(svg, "<svg ", 5), 0);
	ck_assert_str_eq(svg + strlen(svg) - 7, "</svg>\n");
	ck_assert_ptr_nonnull(strstr(svg, "SQLite → file</text>"));
	ck_assert_uint_eq(left_behind(), 0);
	free(svg);
	free(markdown);
	json_decref(report);
	ob_run_done(&run);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

/* Messages that are refused once are delivered in the end, and lines are counted. */
OB_TEST(a_handler_that_refuses_is_measured)
{
	begin();
	const char *const words[] = { "--quick",
				      "--case",
				      "refused-sqlite",
				      "--case",
				      "lines",
				      "--rounds",
				      "2",
				      "--program",
				      getenv("OUTBOX_BIN"),
				      "--baseline",
				      getenv("OUTBOX_BIN"),
				      "--json",
				      json_path,
				      NULL };
	struct ob_run run = bench(0, words);
	json_t *report = json_load_file(json_path, 0, NULL);

	ck_assert_msg(report != NULL, "the report is not JSON");
	const json_t *refused = json_array_get(json_object_get(report, "cases"), 0);
	ck_assert_double_gt(median(refused, "ratio"), 0);
	ck_assert_double_gt(median(refused, "refused_rate"), 1);
	const json_t *lines =
		json_object_get(json_array_get(json_object_get(report, "cases"), 1), "metrics");
	ck_assert_double_gt(
		json_real_value(json_object_get(json_object_get(lines, "lines"), "median")), 1000);
	json_decref(report);
	ob_run_done(&run);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_TEST(the_list_names_every_case)
{
	begin();
	struct ob_run run = bench(0, (const char *const[]){ "--list", NULL });

	ck_assert_ptr_nonnull(strstr(run.out, "\npostgres-redis "));
	ck_assert_ptr_nonnull(strstr(run.out, "\nlatency-sqlite-200 "));
	ck_assert_ptr_nonnull(strstr(run.out, "\npush-postgres-100-1 "));
	ob_run_done(&run);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_TEST(what_is_wrong_is_named)
{
	begin();
	struct ob_run run = bench(1, (const char *const[]){ "--case", "oracle", NULL });
	ck_assert_str_eq(run.err, "outbox-bench: no case 'oracle'; --list names them\n");
	ob_run_done(&run);
	run = bench(1, (const char *const[]){ "--rounds", "none", NULL });
	ck_assert_ptr_nonnull(strstr(run.err, "--rounds: 'none' is not a number from 1 to "));
	ob_run_done(&run);
	run = bench(
		1, (const char *const[]){ "--case", "sqlite-file", "--program", "/nowhere", NULL });
	ck_assert_ptr_nonnull(strstr(run.err, "/nowhere cannot be run"));
	ob_run_done(&run);
	run = bench(1,
		    (const char *const[]){ "--case", "sqlite-file", "--program",
					   getenv("OUTBOX_BIN"), "--baseline", "/nowhere", NULL });
	ck_assert_ptr_nonnull(strstr(run.err, "/nowhere cannot be run"));
	ob_run_done(&run);
	ck_assert_uint_eq(left_behind(), 0);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_SUITE("bench", a_quick_run_writes_a_table_json_and_a_picture, a_handler_that_refuses_is_measured,
	 the_list_names_every_case, what_is_wrong_is_named)

/* SPDX-License-Identifier: MIT */
/* Finding and making sinks: what users may get wrong in `sinks:`. */
#include "sink/sink.h"
#include "suite.h"

/* The message, and behind it all the names. */
static void check_find(const char *type, const char *message)
{
	const struct ob_sink_backend *backend = NULL;
	struct ob_err err = OB_ERR_INIT;
	struct ob_buf all = OB_BUF_INIT(512);

	ob_buf_addf(&all, "%s (known: stdout, file", message);
	for (const struct ob_sink_backend *b = &ob_sink_backends[2]; b->name; b++)
		ob_buf_addf(&all, ", %s", b->name);
	ob_buf_addc(&all, ')');
	ck_assert_int_eq(ob_sink_find(type, &backend, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_null(backend);
	ck_assert_str_eq(err.msg, ob_buf_str(&all));
	ob_buf_done(&all);
}

OB_TEST(an_unknown_type_names_the_closest_and_all)
{
	const struct ob_sink_backend *backend = NULL;
	struct ob_err err = OB_ERR_INIT;

	check_find("stdot", "no sink type 'stdot', did you mean 'stdout'?");
	check_find("pigeon", "no sink type 'pigeon'");
	check_find("memory", "no sink type 'memory'");
	ck_assert_int_eq(ob_sink_find("file", &backend, &err), 0);
	ck_assert_str_eq(backend->name, "file");
	ck_assert_ptr_eq(backend->ops, &ob_sink_file);
}
OB_TEST_END

static void check_new(const struct ob_opt_value *options, size_t count, const char *message)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_new(&ob_sink_file, options, count, &ob_clock_system, &sink, &err),
			 OUTBOX_ECONFIG);
	ck_assert_ptr_null(sink);
	ck_assert_str_eq(err.msg, message);
}

OB_TEST(bad_options_are_named)
{
	static const char missing[] =
		"the file sink needs the option 'path': The file to append to; "
		"its directory must exist.";
	const struct ob_opt_value options[] = { { "path", "x" }, { "max_sise", "1" } };
	const struct ob_opt_value number[] = { { "path", "x" }, { "keep", "many" } };
	const struct ob_opt_value empty = { "path", "" };

	check_new(options, 2, "the file sink has no option 'max_sise', did you mean 'max_size'?");
	check_new(number, 2, "keep: 'many' is not a number");
	check_new(NULL, 0, missing);
	check_new(&empty, 1, missing);
}
OB_TEST_END

OB_TEST(a_sink_is_described_and_freed_unopened)
{
	const struct ob_opt_value path = { "path", "/var/log/out.ndjson" };
	struct ob_buf text = OB_BUF_INIT(100);
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_new(&ob_sink_file, &path, 1, &ob_clock_system, &sink, &err), 0);
	ob_sink_describe(sink, &text);
	ck_assert_str_eq(ob_buf_str(&text), "file /var/log/out.ndjson");
	ob_buf_done(&text);
	ob_sink_free(sink);
	ob_sink_free(NULL);
}
OB_TEST_END

OB_SUITE("sink", an_unknown_type_names_the_closest_and_all, bad_options_are_named,
	 a_sink_is_described_and_freed_unopened)

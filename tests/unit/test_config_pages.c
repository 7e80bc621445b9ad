/* SPDX-License-Identifier: MIT */
/* Configurations from files and URLs, and what is made from the tables: sample and reference. */
#include "config_text.h"
#include "suite.h"

static void load_fails(const char *path, const char *faults_expected, const char *msg)
{
	struct ob_buf faults = OB_BUF_INIT(CONFIG_FAULTS_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_config_load(path, &faults, &config, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(ob_buf_str(&faults), faults_expected);
	ck_assert_str_eq(err.msg, msg);
	ck_assert_ptr_null(config);
	ob_buf_done(&faults);
}

OB_TEST(a_file_that_cannot_be_read_is_one_line)
{
	load_fails("/nonexistent/o.yaml",
		   "/nonexistent/o.yaml: cannot be read: No such file or directory\n",
		   "/nonexistent/o.yaml: 1 fault");
	load_fails("/tmp", "/tmp: is a directory, not a file\n", "/tmp: 1 fault");
	load_fails("/dev/null", "/dev/null: is not a regular file\n", "/dev/null: 1 fault");
}
OB_TEST_END

OB_TEST(the_sample_loads_from_a_file)
{
	char path[] = "/tmp/outbox-config-XXXXXX";
	OB_AUTOCLOSE int fd = mkstemp(path);
	struct ob_buf text = OB_BUF_INIT(1 << 20), faults = OB_BUF_INIT(CONFIG_FAULTS_MAX);
	CONFIG c = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_ge(fd, 0);
	ob_config_sample(NULL, NULL, &text);
	ck_assert(!text.failed);
	ck_assert_int_eq(write(fd, text.data, text.len), (int)text.len);
	ck_assert_msg(ob_config_load(path, &faults, &c, &err) == 0, "%s", ob_buf_str(&faults));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_str_eq(c->path, path);
	ck_assert_str_eq(c->stores[0].conf.url, "sqlite:outbox.db");
	ck_assert_str_eq(c->sinks[0].options[0].value, "outbox.ndjson");
	ck_assert_str_eq(c->relays[0].route.destination, "{aggregate_type}");
	ob_buf_done(&text);
	ob_buf_done(&faults);
}
OB_TEST_END

/* Uncomment every key of the sample: what it shows as a default must be one. */
OB_TEST(every_commented_default_of_the_sample_loads)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	size_t uncommented = 0;

	ob_config_sample(NULL, NULL, &text);
	for (char *p = text.data; (p = strchr(p, '#')); p++) {
		bool line_start = p[-(p > text.data)] == ' ' || p == text.data;

		if (line_start && p[1] >= 'a' && p[1] <= 'z') {
			*p = ' ';
			uncommented++;
		}
	}
	ck_assert_uint_gt(uncommented, 25);
	/* One more space each: put the indentation right again. */
	struct ob_buf fixed = OB_BUF_INIT(1 << 20);
	for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t spaces = strspn(line, " ");

		line += spaces % 2;
		ob_buf_add(&fixed, (struct ob_str){ line, (size_t)(end + 1 - line) });
	}
	/* An address and secrets have no default that may stand there. */
	static const char *const empty[] = { "    pin:", "  listen:", "  token:" };
	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
		char *line = strstr(fixed.data, empty[i]);
		ck_assert_msg(line, "no '%s'", empty[i]);
		*line = '#';
	}
	CONFIG c = config_load(ob_buf_view(&fixed));
	CONFIG dflt = config_good(BOTH);
	ck_assert_int_eq(c->stores[0].retention.dead_ms, OB_NEVER_MS);
	ck_assert_int_eq(c->relays[0].batch_bytes, dflt->relays[0].batch_bytes);
	ck_assert_str_eq(c->layout.column[OB_COL_event_type], "kind");
	ob_buf_done(&text);
	ob_buf_done(&fixed);
}
OB_TEST_END

OB_TEST(a_url_alone_makes_a_configuration)
{
	struct ob_err err = OB_ERR_INIT;
	CONFIG c = NULL;
	struct ob_config *none = NULL;

	ck_assert_int_eq(ob_config_of_store("sqlite:a.db", &c, &err), 0);
	ck_assert_ptr_null(c->path);
	ck_assert_str_eq(ob_config_find_store(c, NULL)->name, "main");
	ck_assert_str_eq(ob_config_find_store(c, "main")->conf.url, "sqlite:a.db");
	ck_assert_ptr_null(ob_config_find_store(c, "other"));
	ck_assert_int_eq(c->log_level, OB_LOG_INFO);
	ck_assert_int_eq(c->stores[0].retention.published_ms, INT64_C(168) * 3600000);
	ck_assert_int_eq(ob_config_of_store("a.db", &none, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "the URL of the store: no such store");
	ck_assert_ptr_null(none);
	CONFIG two = config_good("stores: { a: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n");
	ck_assert_ptr_null(ob_config_find_store(two, NULL));
	ck_assert_str_eq(ob_config_find_store(two, "b")->conf.url, "sqlite:b");
	ob_config_free(NULL);
}
OB_TEST_END

OB_TEST(the_reference_names_every_key)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	static const char *const rows[] = {
		"| `url` | a text | *required* |",
		"| `format` ⏻ | one of auto, logfmt, json | `auto` |",
		"| `batch_bytes` | a size (such as 64KB) from 1KB to 1GB | `8MB` |",
		"| `ordering` | one of key, partition, none | `key` |",
		"| A \\| in a help. |",
		"| `headers` | yes |",
		"### The sink `file`",
		"### `retention` of a store",
		"| `published` | a duration (such as 15s) from 0ms to 3650d, or never | `168h` |",
		"### `types` of a relay",
	};

	ob_config_reference(&text);
	ck_assert(!text.failed);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(strstr(ob_buf_str(&text), rows[i]) != NULL, "%s", rows[i]);
	ob_buf_done(&text);
}
OB_TEST_END

OB_SUITE("config pages", a_file_that_cannot_be_read_is_one_line, the_sample_loads_from_a_file,
	 every_commented_default_of_the_sample_loads, a_url_alone_makes_a_configuration,
	 the_reference_names_every_key)

/* SPDX-License-Identifier: MIT */
/* The command line itself: help, wrong words, completion, and outputs that fail. */
#include "outbox.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A wrong command line says this one line and exits 2. */
#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)

OB_TEST(a_wrong_command_is_named_with_the_right_one)
{
	begin();
	REFUSED("no command 'lst'; did you mean 'list'?", "lst");
	REFUSED("no command 'frobnicate'; 'outbox help' lists them", "frobnicate");
	REFUSED("no command 'config chek'; did you mean 'config check'?", "config", "chek");
	REFUSED("'config' alone is no command; did you mean 'config check'?", "config");
	REFUSED("help: no command 'psuh'; did you mean 'push'?", "help", "psuh");
	REFUSED("no command ''; 'outbox help' lists them", "");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_option_is_named_with_the_right_one)
{
	begin();
	REFUSED("list: no option '--limti'; did you mean '--limit'?", "list", "--limti", "3");
	REFUSED("list: no option '--frobnicate'", "list", "--frobnicate");
	REFUSED("list: no option '-x'", "list", "-x");
	REFUSED("no option '--limit'", "--limit", "3", "list");
	REFUSED("list: --limit needs a value: N", "list", "--limit");
	REFUSED("list: --limit: 'x' is not a number from 1 to 1000000", "list", "--limit", "x");
	REFUSED("list: --limit: '0' is not a number from 1 to 1000000", "list", "-n0");
	REFUSED("list: --limit: '1000001' is not a number from 1 to 1000000", "list",
		"--limit=1000001");
	REFUSED("list: --json takes no value", "list", "--json=yes");
	REFUSED("list: --key: the value is empty", "list", "--key", "");
	REFUSED("push: --delay: 'soon' is not a duration (such as 15s) from 0ms to 3650d", "push",
		"--delay", "soon");
	REFUSED("push: --priority: '40000' is not a number from -32768 to 32767", "push",
		"--priority", "40000");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_word_is_named)
{
	begin();
	REFUSED("show: ID is missing", "show");
	REFUSED("show: one word too many: 'b'", "show", "a", "b");
	REFUSED("show: 'x' is not a UUID, nor the beginning of one (4 characters at least), nor a "
		"number of the log",
		"show", "x");
	REFUSED("status: one word too many: 'now'", "status", "now");
	REFUSED("list: no state 'ded'; did you mean 'dead'?", "list", "ded");
	REFUSED("list: no state 'gone'; it is one of pending, delayed, failed, parked, dead, "
		"discarded, published, all",
		"list", "gone");
	REFUSED("completion: SHELL is missing", "completion");
	REFUSED("completion: no shell 'tcsh'; it is one of bash, zsh, fish", "completion", "tcsh");
	REFUSED("completion: --json has no meaning here", "completion", "bash", "--json");
	REFUSED("setup: --print prints SQL: --json has no meaning with it", "setup", "--print",
		"--json");
	REFUSED("help: one word too many: 'c'", "help", "a", "b", "c");
	end();
}
OB_TEST_END

OB_TEST(a_message_from_options_needs_its_parts)
{
	begin();
	REFUSED("push: --type is missing", "push", "--event", "E", "--payload", "1");
	REFUSED("push: --event is missing", "push", "--type", "t", "--payload", "1");
	REFUSED("push: --payload is missing; or give --payload-file or --tombstone", "push",
		"--type", "t", "--event", "E");
	REFUSED("push: give only one of --payload, --payload-file and --tombstone", "push",
		"--type", "t", "--event", "E", "--payload", "1", "--tombstone");
	end();
}
OB_TEST_END

OB_TEST(what_users_type_cannot_reach_the_terminal_raw)
{
	begin();
	REFUSED("no command ' [31mred  x'; 'outbox help' lists them", "\033[31mred\n\x07x");
	REFUSED("list: no option '--\xEF\xBF\xBD'", "list", "--\xff");
	end();
}
OB_TEST_END

OB_TEST(a_directory_without_a_configuration_says_what_to_do)
{
	begin();
	expect(2, "",
	       "outbox: no outbox.yaml here: 'outbox init' writes one, --config names another, "
	       "--store takes the URL of a database\n",
	       "list", NULL);
	end();
}
OB_TEST_END

/* ---- help ------------------------------------------------------------ */

static const char *const names[] = {
	"init",         "config check", "setup",        "push",           "list",    "show",
	"status",       "why",          "retry",        "skip",           "discard", "replay",
	"readers list", "readers show", "readers seek", "readers remove", "cleanup", "partitions",
	"adopt",        "backends",     "version",      "completion",     "help",    "work",
	"demo",         "bench"
};

static void check_width(const char *text)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		ck_assert_msg(n <= 80, "%zu columns: %.*s", n, (int)n, line);
		ck_assert_msg(n == 0 || line[n - 1] != ' ', "a space ends: %.*s", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

OB_TEST(the_overview_lists_every_command_in_80_columns)
{
	begin();
	struct ob_run alone = outbox(NULL, NULL), help = outbox(NULL, "help", NULL),
		      option = outbox(NULL, "--help", NULL);
	ck_assert_int_eq(alone.code, 0);
	ck_assert_str_eq(alone.err, "");
	ck_assert_str_eq(alone.out, help.out);
	ck_assert_str_eq(alone.out, option.out);
	check_width(alone.out);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "\n  %-14s  ", names[i]);
		ck_assert_msg(strstr(alone.out, line) != NULL, "%s is not there", names[i]);
	}
	ob_run_done(&alone);
	ob_run_done(&help);
	ob_run_done(&option);
	end();
}
OB_TEST_END

OB_TEST(every_command_has_a_page_in_80_columns)
{
	begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char first[32], head[64];
		const char *space = strchr(names[i], ' ');
		const char *second = space ? space + 1 : "--help";

		(void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(names[i], " "), names[i]);
		struct ob_run page = outbox(NULL, first, second, "--help", NULL);
		struct ob_run help = outbox(NULL, "help", first, space ? second : NULL, NULL);
		ck_assert_int_eq(page.code, 0);
		ck_assert_str_eq(page.out, help.out);
		check_width(page.out);
		(void)snprintf(head, sizeof(head), "outbox %s: ", names[i]);
		ck_assert_int_eq(strncmp(page.out, head, strlen(head)), 0);
		ob_run_done(&page);
		ob_run_done(&help);
	}
	expect(0,
	       "Usage: outbox config COMMAND\n\nCommands:\n"
	       "  config check    find every fault of the configuration\n",
	       "", "help", "config", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_version_is_printed_and_exits)
{
	begin();
	expect(0, "outbox " OB_BUILD_VERSION "\n", "", "--version", NULL);
	struct ob_run r = outbox(NULL, "version", "--json", NULL);
	json_t *v = json_loads(r.out, 0, NULL);
	ck_assert_ptr_nonnull(v);
	ck_assert_str_eq(json_string_value(json_object_get(v, "version")), OB_BUILD_VERSION);
	ck_assert(json_is_string(json_object_get(v, "compiler")));
	const json_t *libraries = json_object_get(v, "libraries");
	static const char *const used[] = { "sqlite",  "libpq",      "libmariadb",
					    "hiredis", "librdkafka", "librabbitmq",
					    "libnats", "libcurl",    "openssl" };
	/* A build may lack some; those of this one are all there. */
	for (size_t u = 0; u < sizeof(used) / sizeof(used[0]); u++)
		ck_assert_msg(json_object_get(libraries, used[u]) || getenv("OB_FEW_BACKENDS"),
			      "no %s", used[u]);
	ck_assert(json_is_string(json_object_get(json_object_get(v, "libraries"), "jansson")));
	json_decref(v);
	ob_run_done(&r);
	expect_in_output("outbox " OB_BUILD_VERSION "\ncompiler   ", "version", NULL);
	end();
}
OB_TEST_END

OB_TEST(backends_are_listed_for_people_and_programs)
{
	begin();
	expect_in_output("sink   stdout    built in", "backends", NULL);
	struct ob_run r = outbox(NULL, "backends", "--json", NULL);
	json_t *list = json_loads(r.out, 0, NULL);
	ck_assert_uint_ge(json_array_size(list), 3);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "kind")),
			 "store");
	json_decref(list);
	ob_run_done(&r);
	end();
}
OB_TEST_END

/* ---- completion ------------------------------------------------------ */

/* What bash offers for the line "outbox WORDS", one a line. */
static struct ob_run complete(const char *words)
{
	const char *const argv[] = {
		"/bin/bash",
		"-c",
		"source ./outbox.bash; compopt() { :; }; COMP_WORDS=($1); [[ $1 == *' ' ]] && "
		"COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _outbox; "
		"printf '%s\\n' \"${COMPREPLY[@]}\"",
		"bash",
		words,
		NULL
	};
	struct ob_run r = { .argv = argv, .dir = dir };

	ob_run(&r);
	ck_assert_str_eq(r.err, "");
	r.argv = NULL;
	return r;
}

static void check_complete(const char *words, const char *want)
{
	struct ob_run r = complete(words);

	ck_assert_str_eq(r.out, want);
	ob_run_done(&r);
}

OB_TEST(bash_completes_commands_options_states_and_files)
{
	begin();
	if (access("/bin/bash", X_OK) == 0) {
		struct ob_run script = outbox(NULL, "completion", "bash", NULL);

		ck_assert_int_eq(script.code, 0);
		put_file("outbox.bash", script.out);
		ob_run_done(&script);
		put_file("my.yaml", "");
		check_complete("outbox st", "status\n");
		check_complete("outbox partitions re", "resize\n");
		check_complete("outbox config ", "check\n");
		check_complete("outbox config check --j", "--json\n");
		check_complete("outbox list d", "delayed\ndead\ndiscarded\n");
		check_complete("outbox readers s", "show\nseek\n");
		check_complete("outbox partitions f", "free\n");
		check_complete("outbox replay --si", "--sink\n--since\n");
		check_complete("outbox --json list --n", "--newest\n");
		check_complete("outbox -c my", "my.yaml\n");
		check_complete("outbox -c my.yaml list pu", "published\n");
		check_complete("outbox completion z", "zsh\n");
		check_complete("outbox help st", "status\n");
		check_complete("outbox init my", "my.yaml\n");
		check_complete("outbox list --key ", "\n");
	}
	end();
}
OB_TEST_END

OB_TEST(every_shell_has_every_command)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };

	begin();
	for (size_t s = 0; s < 3; s++) {
		struct ob_run r = outbox(NULL, "completion", shells[s], NULL);

		ck_assert_int_eq(r.code, 0);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			char word[32];

			(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(names[i], " "),
				       names[i]);
			ck_assert_msg(strstr(r.out, word) != NULL, "%s: no %s", shells[s], word);
		}
		ck_assert_ptr_nonnull(strstr(r.out, "payload-file"));
		ck_assert_ptr_nonnull(strstr(r.out, "delayed"));
		ob_run_done(&r);
	}
	end();
}
OB_TEST_END

/* ---- outputs that fail ----------------------------------------------- */

OB_TEST(a_full_disk_is_a_failure)
{
	const char *const argv[] = { getenv("OUTBOX_BIN"), "help", "push", NULL };
	struct ob_run r = { .argv = argv, .out_path = "/dev/full" };

	ob_run(&r);
	ck_assert_str_eq(r.err, "outbox: writing the output: No space left on device\n");
	ck_assert_int_eq(r.code, 1);
	ob_run_done(&r);
}
OB_TEST_END

OB_SUITE("cli_words", a_wrong_command_is_named_with_the_right_one,
	 a_wrong_option_is_named_with_the_right_one, a_wrong_word_is_named,
	 a_message_from_options_needs_its_parts, what_users_type_cannot_reach_the_terminal_raw,
	 a_directory_without_a_configuration_says_what_to_do,
	 the_overview_lists_every_command_in_80_columns, every_command_has_a_page_in_80_columns,
	 the_version_is_printed_and_exits, backends_are_listed_for_people_and_programs,
	 bash_completes_commands_options_states_and_files, every_shell_has_every_command,
	 a_full_disk_is_a_failure)

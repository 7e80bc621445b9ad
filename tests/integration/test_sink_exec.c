/* SPDX-License-Identifier: MIT */
/* The exec sink with programs that behave and with programs that do not. */
#include "run.h"
#include "sink/exec/child.h"
#include "sink_harness.h"
#include "suite.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets $id from the line that was read. */
#define EACH  "while read -r l; do id=${l#*:?}; id=${id%%?,*}; "
#define SH(x) "sh -c '" x "'"

enum { COMMAND_SIZE = 400, LEAKY_FD = 100 };

/*
 * The command of a program that writes to a file first, then says ok to everything, and
 * takes its time to end.
 */
static void say_ok(char out[COMMAND_SIZE], const char *path, const char *script)
{
	(void)snprintf(out, COMMAND_SIZE,
		       "sh -c 'exec 3>%s; %s; exec 3>&-; %s echo ok $id; done; sleep 20'", path,
		       script, EACH);
}

static struct ob_sink *make_with(const char *command, const char *name, const char *value)
{
	const struct ob_opt_value options[] = { { "command", command },
						{ "grace", "2s" },
						{ name, value } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)signal(SIGPIPE, SIG_IGN);
	int r = ob_sink_new(&ob_sink_exec, options, name ? 3 : 2, &ob_clock_system, &sink, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	return sink;
}

static struct ob_sink *make(const char *command)
{
	struct ob_sink *sink = make_with(command, NULL, NULL);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s", err.msg);
	return sink;
}

static void send_n(struct ob_sink *sink, uint64_t n)
{
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	parcel_init(&parcel, n, OB_STR_NULL, OB_STR("{}"));
	ck_assert_msg(ob_sink_send(sink, &parcel.delivery, &err) == 0, "%s", err.msg);
}

/* The next outcome must be this one. */
static struct ob_err expect(struct ob_sink *sink, uint64_t tag, enum ob_err_kind kind)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack ack = { 0 };

	for (int i = 0; i < 20 && ob_sink_poll(sink, 1000, &ack, 1, &err) == 0; i++)
		ack.tag = UINT64_MAX;
	ck_assert_uint_eq(ack.tag, tag);
	ck_assert_msg(ack.err.kind == kind, "kind %d: %s", ack.err.kind, ack.err.msg);
	return ack.err;
}

static void expect_msg(struct ob_sink *sink, uint64_t tag, enum ob_err_kind kind, const char *msg)
{
	struct ob_err err = expect(sink, tag, kind);

	ck_assert_str_eq(err.msg, msg);
}

OB_TEST(the_three_answers_are_told_apart)
{
	struct ob_sink *sink = make(SH(EACH "case $id in *1) echo ok $id;; *2) echo retry $id the "
					    "  disk is full;; *3) echo reject $id;; esac; done"));

	send_n(sink, 1);
	send_n(sink, 2);
	send_n(sink, 3);
	(void)expect(sink, 1, OB_ERR_NONE);
	expect_msg(sink, 2, OB_ERR_RETRY, "the handler says retry: the disk is full");
	expect_msg(sink, 3, OB_ERR_REJECT, "the handler says reject");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(answers_may_come_in_any_order_and_in_pieces)
{
	struct ob_sink *sink =
		make(SH("read -r a; read -r b; read -r c;"
			"for l in \"$c\" \"$a\" \"$b\"; do id=${l#*:?}; id=${id%%?,*};"
			"printf o; printf \"k %s\\r\\n\" $id; done; read -r x"));

	for (uint64_t n = 1; n <= 3; n++)
		send_n(sink, n);
	(void)expect(sink, 3, OB_ERR_NONE);
	(void)expect(sink, 1, OB_ERR_NONE);
	(void)expect(sink, 2, OB_ERR_NONE);
	ob_sink_free(sink);
}
OB_TEST_END

/* Whatever this program does: two messages are DOWN and it starts again. */
static void check_broken(const char *command, const char *msg)
{
	struct ob_sink *sink = make(command);
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	send_n(sink, 1);
	send_n(sink, 2);
	expect_msg(sink, 1, OB_ERR_DOWN, msg);
	expect_msg(sink, 2, OB_ERR_DOWN, msg);
	parcel_init(&parcel, 3, OB_STR_NULL, OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_int_eq(ob_sink_fd(sink), -1);
	ob_sink_free(sink);
}

OB_TEST(a_line_that_is_no_answer_ends_the_handler)
{
	check_broken(SH("read -r l; echo; read -r x"),
		     "the handler wrote a line that is no answer");
	check_broken(SH("read -r l; echo hello; read -r x; sleep 20"),
		     "the handler wrote a line that is no answer: hello");
	check_broken(SH("read -r l; id=${l#*:?}; echo ok ${id%%?,*} yes; sleep 20"),
		     "the handler wrote a line that is no answer: ok "
		     "01900000-0000-7000-8000-000000000001 yes");
	check_broken("yes", "the handler wrote a line that is no answer: y");
	check_broken(SH("exec cat /dev/zero"), "the handler wrote a line without an end");
}
OB_TEST_END

OB_TEST(an_unknown_id_ends_the_handler)
{
	check_broken(SH("read -r l; echo ok 01900000-0000-7000-8000-00000000000f; sleep 20"),
		     "the handler answered a message that it was not asked about: "
		     "ok 01900000-0000-7000-8000-00000000000f");
	check_broken(SH("read -r l; echo ok; sleep 20"),
		     "the handler answered a message that it was not asked about: ok");
}
OB_TEST_END

OB_TEST(a_second_answer_ends_the_handler_and_the_first_counts)
{
	struct ob_sink *sink = make(SH(EACH "echo ok $id; echo ok $id; sleep 20; done"));

	send_n(sink, 1);
	send_n(sink, 2);
	(void)expect(sink, 1, OB_ERR_NONE);
	expect_msg(sink, 2, OB_ERR_DOWN,
		   "the handler answered a message that it was not asked about: "
		   "ok 01900000-0000-7000-8000-000000000001");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_handler_that_ends_is_down_with_its_exit_code)
{
	check_broken(SH("read -r l; exit 7"), "the handler ended with exit code 7");
	check_broken(SH("read -r l; kill -9 $$"), "the handler ended by signal 9");
	check_broken(SH("exit 0"), "the handler ended with exit code 0");
	check_broken(SH("exec >&-; sleep 20"), "the handler closed its output");
	check_broken(SH("exec <&-; sleep 20"), "the handler closed its input");
}
OB_TEST_END

OB_TEST(answers_before_the_end_count)
{
	struct ob_sink *sink = make(SH("read -r l; id=${l#*:?}; echo ok ${id%%?,*}; exit 3"));

	send_n(sink, 1);
	send_n(sink, 2);
	(void)expect(sink, 1, OB_ERR_NONE);
	struct ob_err err = expect(sink, 2, OB_ERR_DOWN);
	ck_assert_str_eq(err.native, "exit 3");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_handler_without_any_answer_is_started_later_each_time)
{
	struct ob_sink *sink = make(SH("exit 1"));
	struct ob_err err = OB_ERR_INIT;

	send_n(sink, 1);
	(void)expect(sink, 1, OB_ERR_DOWN);
	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_ptr_nonnull(strstr(err.msg, "it is started again in"));
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_handler_that_has_answered_is_started_again_at_once)
{
	struct ob_sink *sink = make(SH("read -r l; id=${l#*:?}; echo ok ${id%%?,*}; exit 3"));
	struct ob_err err = OB_ERR_INIT;

	for (uint64_t n = 1; n <= 5; n++) {
		send_n(sink, 2 * n);
		send_n(sink, 2 * n + 1);
		(void)expect(sink, 2 * n, OB_ERR_NONE);
		(void)expect(sink, 2 * n + 1, OB_ERR_DOWN);
		ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s", err.msg);
	}
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(the_last_line_of_stderr_is_in_the_error)
{
	struct ob_sink *sink =
		make_with(SH("read -r l; echo first >&2; printf \"boom\\033[2J\\n\" >&2; exit 7"),
			  "stderr", "keep");
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	send_n(sink, 1);
	expect_msg(sink, 1, OB_ERR_DOWN, "the handler ended with exit code 7: boom [2J");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_message_that_is_not_answered_in_time_is_tried_again)
{
	struct ob_sink *sink = make_with(
		SH(EACH "case $id in *2) sleep 20;; esac; echo ok $id; done"), "timeout", "300ms");
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	for (uint64_t n = 1; n <= 3; n++)
		send_n(sink, n);
	(void)expect(sink, 1, OB_ERR_NONE);
	expect_msg(sink, 2, OB_ERR_RETRY,
		   "the handler did not answer within 300 ms (the sink's timeout)");
	expect_msg(sink, 3, OB_ERR_DOWN,
		   "the handler was ended: it did not answer another message in time");
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	send_n(sink, 3);
	(void)expect(sink, 3, OB_ERR_NONE);
	ob_sink_free(sink);
}
OB_TEST_END

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* What the program wrote into the file, as numbers. */
static void read_numbers(const char *path, long *out, size_t count)
{
	struct ob_buf text = OB_BUF_INIT(10000);
	char *at;

	read_file(path, &text);
	at = text.data;
	for (size_t i = 0; i < count; i++)
		out[i] = strtol(at, &at, 10);
	ob_buf_done(&text);
}

OB_TEST(a_handler_that_ignores_sigterm_is_killed_with_its_children)
{
	char dir[64], path[96], command[COMMAND_SIZE];
	long pids[2];

	ob_temp_dir(dir);
	(void)snprintf(path, sizeof(path), "%s/pids", dir);
	say_ok(command, path, "trap \"\" TERM; sleep 20 3>&- & echo $$ $! >&3");
	struct ob_sink *sink = make_with(command, "grace", "100ms");
	struct ob_err err = OB_ERR_INIT;
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	send_n(sink, 1);
	(void)expect(sink, 1, OB_ERR_NONE);
	read_numbers(path, pids, 2);
	ck_assert(pids[0] > 0 && !is_gone((pid_t)pids[0]));
	ck_assert(pids[1] > 0 && !is_gone((pid_t)pids[1]));
	ck_assert_int_ne(getpgid((pid_t)pids[0]), getpgrp());
	ck_assert_int_eq(getpgid((pid_t)pids[1]), (pid_t)pids[0]);
	ob_sink_free(sink);
	ck_assert(is_gone((pid_t)pids[0]));
	/* not our child: whoever adopts it may take a moment to notice its end */
	for (int i = 0; i < 1000 && getpgid((pid_t)pids[1]) > 0; i++)
		(void)poll(NULL, 0, 5);
	ck_assert_int_lt(getpgid((pid_t)pids[1]), 0);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_TEST(signals_and_descriptors_of_the_relay_do_not_reach_the_handler)
{
	struct ob_buf text = OB_BUF_INIT(10000);
	char dir[64], path[96], command[COMMAND_SIZE];
	sigset_t set;

	ob_temp_dir(dir);
	(void)snprintf(path, sizeof(path), "%s/state", dir);
	say_ok(command, path,
	       "grep Sig[BI] /proc/self/status >&3; "
	       "if [ -e /proc/$$/fd/100 ]; then echo leaked; else echo closed; fi >&3");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	int leaky = dup2(STDOUT_FILENO, LEAKY_FD); /* not close-on-exec */
	struct ob_sink *sink = make(command);
	send_n(sink, 1);
	(void)expect(sink, 1, OB_ERR_NONE);
	read_file(path, &text);
	const char *ignored = strstr(ob_buf_str(&text), "SigIgn:\t");
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&text), "SigBlk:\t0000000000000000\n"));
	/* the C library's own two signals, 32 and 33, are its affair */
	ck_assert(ignored && (strtoull(ignored + 8, NULL, 16) & 0x7fffffff) == 0);
	ck_assert_ptr_nonnull(strstr(ignored, "\nclosed\n"));
	ob_sink_free(sink);
	(void)close(leaky);
	ob_buf_done(&text);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

OB_TEST(a_hundred_restarts_leave_no_descriptor_and_no_process)
{
	struct ob_sink *sink = make_with("cat", "stderr", "keep");
	struct ob_err err = OB_ERR_INIT;
	size_t before = count_fds();

	for (uint64_t n = 0; n < 100; n++) {
		ck_assert_int_eq(ob_sink_open(sink, &err), 0);
		send_n(sink, n);
		ob_sink_reset(sink);
	}
	ob_sink_free(sink);
	ck_assert_uint_eq(count_fds(), before);
	ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}
OB_TEST_END

OB_TEST(a_command_that_cannot_run_is_fatal)
{
	static const char *const commands[][2] = {
		{ "/nowhere/handler x",
		  "starting '/nowhere/handler' (install the program, or correct the sink's "
		  "command): No such file or directory" },
		{ "/etc/passwd",
		  "starting '/etc/passwd' (install the program, or correct the sink's command): "
		  "Permission denied" },
		{ "sh -c 'x", "command: a quote or a backslash is left open" },
		{ "sh \\", "command: a quote or a backslash is left open" },
		{ "  ", "command: it names no program" },
		{ "''", "command: it names no program" },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct ob_sink *sink = make_with(commands[i][0], NULL, NULL);
		struct ob_err err = OB_ERR_INIT;

		ck_assert_int_lt(ob_sink_open(sink, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_str_eq(err.msg, commands[i][1]);
		ob_sink_free(sink);
	}
}
OB_TEST_END

OB_TEST(arguments_are_not_described)
{
	struct ob_sink *sink = make_with("/usr/bin/handler --token hush", NULL, NULL);
	struct ob_buf text = OB_BUF_INIT(1000);

	ob_sink_describe(sink, &text);
	ck_assert_str_eq(ob_buf_str(&text), "exec /usr/bin/handler");
	ob_buf_done(&text);
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(a_command_line_is_split_without_a_shell)
{
	static const struct {
		const char *command, *joined;
	} cases[] = {
		{ "a", "[a]" },
		{ "  a \t b  ", "[a][b]" },
		{ "a 'b c' \"d e\"", "[a][b c][d e]" },
		{ "a''b\"\"c ''", "[abc][]" },
		{ "'$x;*|' \"it's\" 'say \"x\"'", "[$x;*|][it's][say \"x\"]" },
		{ "a\\ b \"c\\\"d\" 'e\\f' \\'", "[a b][c\"d][e\\f][']" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ob_buf joined = OB_BUF_INIT(1000);
		struct ob_err err = OB_ERR_INIT;
		char **argv = NULL;

		ck_assert_int_eq(ob_exec_split(cases[i].command, &argv, &err), 0);
		for (size_t k = 0; argv[k]; k++)
			ob_buf_addf(&joined, "[%s]", argv[k]);
		ck_assert_str_eq(ob_buf_str(&joined), cases[i].joined);
		ob_buf_done(&joined);
		free((void *)argv);
	}
}
OB_TEST_END

OB_TEST(the_python_example_answers)
{
	char command[300];
	struct parcel parcel;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(command, sizeof(command), "python3 '%s/handler.py'", getenv("HANDLERS"));
	struct ob_sink *sink = make_with(command, "stderr", "keep");
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	send_n(sink, 1);
	(void)expect(sink, 1, OB_ERR_NONE);
	parcel_init(&parcel, 2, OB_STR_NULL, OB_STR("\xff"));
	parcel.message.event_type = OB_STR("Unwanted");
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
	expect_msg(sink, 2, OB_ERR_REJECT, "the handler says reject: ValueError: no such event");
	parcel_init(&parcel, 3, OB_STR_NULL, OB_STR_NULL);
	parcel.message.event_type = OB_STR("Later");
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
	expect_msg(sink, 3, OB_ERR_RETRY, "the handler says retry: the mail server is away");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(the_shell_example_answers)
{
	char dir[64], command[400], path[96];
	struct ob_buf text = OB_BUF_INIT(10000);
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct stored *stored;
	struct parcel parcel;

	ob_temp_dir(dir);
	(void)snprintf(command, sizeof(command), "sh '%s/handler.sh' '%s'", getenv("HANDLERS"),
		       dir);
	struct ob_sink *sink = make(command);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{\"a\\nb\":\"  \\\\ \"}"));
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
	(void)expect(sink, 1, OB_ERR_NONE);
	parcel.message.aggregate_type = OB_STR("../order");
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
	expect_msg(sink, 1, OB_ERR_REJECT,
		   "the handler says reject: the aggregate type is not a plain name");
	ob_sink_free(sink);
	(void)snprintf(path, sizeof(path), "%s/order.ndjson", dir);
	read_file(path, &text);
	ck_assert_uint_eq(sink_parse_lines(&arena, ob_buf_view(&text), &stored), 1);
	ck_assert(ob_str_eq(stored[0].body, parcel.delivery.body));
	ob_buf_done(&text);
	ob_arena_done(&arena);
	ob_temp_dir_remove(dir);
}
OB_TEST_END

OB_SUITE("exec sink", the_three_answers_are_told_apart, answers_may_come_in_any_order_and_in_pieces,
	 a_line_that_is_no_answer_ends_the_handler, an_unknown_id_ends_the_handler,
	 a_second_answer_ends_the_handler_and_the_first_counts,
	 a_handler_that_ends_is_down_with_its_exit_code, answers_before_the_end_count,
	 a_handler_without_any_answer_is_started_later_each_time,
	 a_handler_that_has_answered_is_started_again_at_once,
	 the_last_line_of_stderr_is_in_the_error,
	 a_message_that_is_not_answered_in_time_is_tried_again,
	 a_handler_that_ignores_sigterm_is_killed_with_its_children,
	 signals_and_descriptors_of_the_relay_do_not_reach_the_handler,
	 a_hundred_restarts_leave_no_descriptor_and_no_process, a_command_that_cannot_run_is_fatal,
	 arguments_are_not_described, a_command_line_is_split_without_a_shell,
	 the_python_example_answers, the_shell_example_answers)

/* SPDX-License-Identifier: MIT */
/*
 * The file sink against what disks, operators and other writers do. write() and
 * fdatasync() are wrapped by the linker, so that a test can watch and fail them.
 */
#include "base/cleanup.h"
#include "sink_harness.h"
#include "suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* What the wrapped calls do; all zero: what they always do. */
static struct {
	size_t piece; /* at most so many bytes a write */
	int64_t room; /* with `full`: ENOSPC once these are used up */
	bool full;
	unsigned fail_syncs; /* so many fail with EIO */
	const char
		*intruder; /* a failing sync first appends a line there, as another writer would */
	const char *rotated; /* so many times, the file there is moved away before it is locked */
	unsigned rotations;
	unsigned syncs;
	off_t synced_size; /* of the file at the last good sync */
} disk;

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
	if (disk.full && disk.room == 0) {
		errno = ENOSPC;
		return -1;
	}
	if (disk.full && (int64_t)n > disk.room)
		n = (size_t)disk.room;
	if (disk.piece && n > disk.piece)
		n = disk.piece;
	ssize_t r = __real_write(fd, bytes, n);
	if (disk.full && r > 0)
		disk.room -= r;
	return r;
}

int __wrap_flock(int fd, int operation)
{
	char to[128];

	if (disk.rotations > 0 && (operation & LOCK_EX)) {
		(void)snprintf(to, sizeof(to), "%s.away%u", disk.rotated, disk.rotations--);
		(void)rename(disk.rotated, to);
	}
	return __real_flock(fd, operation);
}

int __wrap_fdatasync(int fd)
{
	struct stat st;

	disk.syncs++;
	if (disk.fail_syncs > 0) {
		disk.fail_syncs--;
		if (disk.intruder) {
			OB_AUTOCLOSE int other = open(disk.intruder, O_WRONLY | O_APPEND);
			(void)!__real_write(other, "{}\n", 3);
		}
		errno = EIO;
		return -1;
	}
	if (fstat(fd, &st) == 0)
		disk.synced_size = st.st_size;
	return __real_fdatasync(fd);
}

static struct ob_sink *make_with(const struct sink_env *env, const struct ob_clock *clock,
				 const char *max_size, const char *keep)
{
	const struct ob_opt_value options[] = { { "path", env->path },
						{ "max_size", max_size },
						{ "keep", keep } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_new(&ob_sink_file, options, 3, clock, &sink, &err), 0);
	ck_assert_msg(ob_sink_open(sink, &err) == 0, "%s", err.msg);
	return sink;
}

/* Send messages from..from+count-1 without polling. */
static void send_some(struct ob_sink *sink, uint64_t from, size_t count)
{
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;

	for (uint64_t n = from; n < from + count; n++) {
		parcel_init(&parcel, n, OB_STR("k"), OB_STR("{\"some\":\"body\"}"));
		ck_assert_msg(ob_sink_send(sink, &parcel.delivery, &err) == 0, "%s", err.msg);
	}
}

static void deliver(struct ob_sink *sink, uint64_t from, size_t count)
{
	struct tally tally = { 0 };

	send_some(sink, from, count);
	sink_drain(sink, &tally, count);
	ck_assert_uint_eq(tally.confirmed, count);
}

/* Deliver and expect that all of it comes back DOWN. */
static void deliver_down(struct ob_sink *sink, uint64_t from, size_t count, const char *native)
{
	struct tally tally = { 0 };

	send_some(sink, from, count);
	sink_drain(sink, &tally, count);
	ck_assert_uint_eq(tally.failed, count);
	ck_assert_int_eq(tally.last.kind, OB_ERR_DOWN);
	ck_assert_str_eq(tally.last.native, native);
}

/* The file holds exactly the messages 0..count-1, in order. */
static void check_file(struct sink_env *env, size_t count)
{
	struct stored *stored;

	ck_assert_uint_eq(sink_read(env, &stored), count);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(stored[i].n, i);
}

static off_t file_size(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_size;
}

OB_TEST(nothing_is_confirmed_before_one_sync_of_all)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[200];
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	send_some(sink, 0, 100);
	ck_assert_uint_eq(disk.syncs, 0);
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 200, &err), 100);
	ck_assert_uint_eq(disk.syncs, 1);
	ck_assert_int_eq(disk.synced_size, file_size(env.path));
	check_file(&env, 100);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(without_fsync_nothing_is_synced)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_sink *sink = NULL;
	struct sink_env env;

	sink_env_init(&env);
	const struct ob_opt_value options[] = { { "path", env.path }, { "fsync", "no" } };
	ck_assert_int_eq(ob_sink_new(&ob_sink_file, options, 2, &ob_clock_system, &sink, &err), 0);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	deliver(sink, 0, 5);
	ck_assert_uint_eq(disk.syncs, 0);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_failed_sync_takes_the_lines_back_and_starts_over)
{
	struct ob_err err = OB_ERR_INIT;
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	deliver(sink, 0, 10);
	disk.fail_syncs = 1;
	deliver_down(sink, 10, 10, "EIO");
	check_file(&env, 10);
	struct parcel parcel;
	parcel_init(&parcel, 10, OB_STR("k"), OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err),
			 0); /* the descriptor is gone */
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	deliver(sink, 10, 10);
	check_file(&env, 20);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_failed_sync_leaves_the_lines_of_another_writer)
{
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	disk.fail_syncs = 1;
	disk.intruder = env.path;
	deliver_down(sink, 0, 3, "EIO");
	read_file(env.path, &env.text);
	ck_assert_str_eq(env.text.data + env.text.len - 4, "\n{}\n");
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_full_disk_takes_the_batch_back_and_goes_on_when_there_is_room)
{
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	deliver(sink, 0, 10);
	for (int64_t room = 0; room < 1000; room += 111) {
		disk.full = true;
		disk.room = room;
		deliver_down(sink, 10, 10, "ENOSPC");
		disk.full = false;
		check_file(&env, 10);
	}
	deliver(sink, 10, 10);
	check_file(&env, 20);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(short_writes_are_continued)
{
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	disk.piece = 7;
	deliver(sink, 0, 20);
	check_file(&env, 20);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(while_failed_outcomes_wait_nothing_is_accepted)
{
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;
	struct sink_env env;
	struct ob_ack acks[2];

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	disk.full = true;
	send_some(sink, 0, 3);
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 2, &err), 2);
	disk.full = false;
	parcel_init(&parcel, 9, OB_STR("k"), OB_STR("{}"));
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), OB_SINK_FULL);
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 2, &err), 1);
	ck_assert_int_eq(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

/* Rotated files in the order of their names, then the file itself, parsed as one. */
static size_t read_all(struct sink_env *env, size_t *ret_files, off_t max_size,
		       struct stored **ret_stored)
{
	struct dirent **names = NULL;
	int n = scandir(env->dir, &names, NULL, alphasort);
	struct ob_buf all = OB_BUF_INIT((size_t)1 << 30);
	char path[512];

	*ret_files = 0;
	for (int i = 0; i < n; i++) {
		if (strncmp(names[i]->d_name, "out.ndjson.", 11) == 0) {
			(void)snprintf(path, sizeof(path), "%s/%s", env->dir, names[i]->d_name);
			ck_assert(max_size == 0 || file_size(path) <= max_size);
			read_file(path, &all);
			(*ret_files)++;
		}
		free(names[i]);
	}
	free(names);
	read_file(env->path, &all);
	ob_arena_reset(&env->arena, SIZE_MAX);
	size_t count = sink_parse_lines(&env->arena, ob_buf_view(&all), ret_stored);
	ob_buf_done(&all);
	return count;
}

OB_TEST(rotation_loses_nothing_and_keeps_files_small)
{
	struct stored *stored;
	struct sink_env env;
	size_t files;

	sink_env_init(&env);
	struct ob_sink *sink = make_with(&env, &ob_clock_system, "2KB", "0");
	for (uint64_t i = 0; i < 200; i += 20)
		deliver(sink, i, 20);
	ck_assert_uint_eq(read_all(&env, &files, 2048, &stored), 200);
	ck_assert_uint_gt(files, 15);
	for (size_t i = 0; i < 200; i++)
		ck_assert_uint_eq(stored[i].n, i);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(rotated_files_are_named_in_order_when_the_clock_steps_back_and_the_newest_are_kept)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(INT64_C(1700000000000000));
	struct stored *stored;
	struct sink_env env;
	char path[200];
	size_t files;

	sink_env_init(&env);
	struct ob_sink *sink = make_with(&env, &clock.clock, "1", "3");
	for (uint64_t i = 0; i < 30; i++) {
		deliver(sink, i, 1);
		clock.real_us += i < 10 ? 1000000 : -5000000;
	}
	ck_assert_uint_eq(read_all(&env, &files, 0, &stored), 4);
	ck_assert_uint_eq(files, 3);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(stored[i].n, 26 + i);
	(void)snprintf(path, sizeof(path), "%s.20231114T221330-018", env.path);
	ck_assert_int_eq(access(path, F_OK), 0);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(pruning_removes_only_what_rotation_made)
{
	static const char *const foreign[] = { ".bak", ".20231114T221330", ".20231114T22133x-000",
					       ".20231114T221330-00x", ".20231114T221330-000.gz" };
	struct sink_env env;
	char path[200];

	sink_env_init(&env);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", env.path, foreign[i]);
		OB_AUTOCLOSE int fd = open(path, O_WRONLY | O_CREAT, 0600);
		ck_assert_int_ge(fd, 0);
	}
	struct ob_sink *sink = make_with(&env, &ob_clock_system, "1", "1");
	deliver(sink, 0, 10);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", env.path, foreign[i]);
		ck_assert_int_eq(access(path, F_OK), 0);
	}
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

enum { WRITERS = 3, EACH = 600 };

/* A process of its own: what it delivers it delivers in uneven batches. */
static void writer(const struct sink_env *env, uint64_t which, const char *max_size)
{
	struct ob_sink *sink = make_with(env, &ob_clock_system, max_size, "0");

	for (uint64_t i = 0; i < EACH;) {
		size_t count = 1 + (i * 7 + which) % 23;

		count = i + count > EACH ? EACH - i : count;
		deliver(sink, which * EACH + i, count);
		i += count;
	}
	ob_sink_free(sink);
}

static void run_writers(const struct sink_env *env, const char *max_size)
{
	pid_t pids[WRITERS];
	int status;

	for (uint64_t w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		ck_assert_int_ge(pids[w], 0);
		if (pids[w] == 0) {
			writer(env, w, max_size);
			_exit(0);
		}
	}
	for (size_t w = 0; w < WRITERS; w++) {
		ck_assert_int_eq(waitpid(pids[w], &status, 0), pids[w]);
		ck_assert_int_eq(status, 0);
	}
}

static void check_writers(const char *max_size)
{
	uint64_t next[WRITERS] = { 0 };
	struct stored *stored;
	struct sink_env env;
	size_t files;

	sink_env_init(&env);
	run_writers(&env, max_size);
	ck_assert_uint_eq(read_all(&env, &files, 0, &stored), (size_t)WRITERS * EACH);
	for (size_t i = 0; i < (size_t)WRITERS * EACH; i++)
		ck_assert_uint_eq(stored[i].n % EACH, next[stored[i].n / EACH]++);
	sink_env_done(&env);
}

OB_TEST(lines_of_several_processes_never_mix)
{
	check_writers("0");
}
OB_TEST_END

OB_TEST(a_file_that_others_rotate_all_the_time_is_no_outage)
{
	struct ob_err err = OB_ERR_INIT;
	struct sink_env env;
	struct ob_ack acks[4];
	struct tally tally = { 0 };

	sink_env_init(&env);
	struct ob_sink *sink = make_with(&env, &ob_clock_system, "20KB", "0");
	send_some(sink, 0, 1);
	disk.rotated = env.path;
	disk.rotations = 3;
	int n = ob_sink_poll(sink, 0, acks, 4, &err);
	ck_assert_int_eq(n, 0); /* not yet: the path led elsewhere each time */
	send_some(sink, 1, 1);  /* and it is still open */
	sink_drain(sink, &tally, 2);
	ck_assert_uint_eq(tally.confirmed, 2);
	check_file(&env, 2);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(several_processes_rotate_one_file_without_loss)
{
	check_writers("20KB");
}
OB_TEST_END

OB_TEST(a_writer_that_holds_the_lock_is_waited_for)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[4];
	struct sink_env env;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	OB_AUTOCLOSE int other = open(env.path, O_RDWR);
	ck_assert_int_eq(flock(other, LOCK_EX), 0);
	send_some(sink, 0, 2);
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 4, &err), 0);
	ck_assert_int_eq(ob_sink_poll(sink, 5, acks, 4, &err), 0);
	ck_assert_int_eq(flock(other, LOCK_UN), 0);
	ck_assert_int_eq(ob_sink_poll(sink, 0, acks, 4, &err), 2);
	check_file(&env, 2);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_file_that_was_moved_away_is_made_again)
{
	struct stored *stored;
	struct sink_env env;
	char moved[200];

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	deliver(sink, 0, 5);
	(void)snprintf(moved, sizeof(moved), "%s.1", env.path);
	ck_assert_int_eq(rename(env.path, moved), 0);
	deliver(sink, 5, 5);
	ck_assert_uint_eq(sink_read(&env, &stored), 5);
	ck_assert_uint_eq(stored[0].n, 5);
	ck_assert_int_eq(unlink(env.path), 0);
	deliver(sink, 10, 1);
	ck_assert_uint_eq(sink_read(&env, &stored), 1);
	ob_sink_free(sink);
	ob_buf_clear(&env.text);
	read_file(moved, &env.text);
	ck_assert_uint_eq(sink_parse_lines(&env.arena, ob_buf_view(&env.text), &stored), 5);
	sink_env_done(&env);
}
OB_TEST_END

static void write_text(const char *path, const char *text)
{
	OB_AUTOCLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(__real_write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

OB_TEST(a_torn_line_stays_and_stands_alone)
{
	struct stored *stored;
	struct sink_env env;

	sink_env_init(&env);
	write_text(env.path, "kept\n{\"id\":\"to");
	struct ob_sink *sink = sink_make(&env);
	ck_assert_int_eq(file_size(env.path), 14); /* opening alone changes nothing */
	deliver(sink, 0, 2);
	write_text(env.path, "{\"torn\":"); /* another writer died */
	deliver(sink, 2, 1);
	ob_sink_free(sink);
	read_file(env.path, &env.text);
	ck_assert(strncmp(env.text.data, "kept\n{\"id\":\"to\n{\"id\"", 20) == 0);
	const char *torn = strstr(env.text.data, "\n{\"torn\":\n{\"id\"");
	ck_assert_ptr_nonnull(torn);
	struct ob_str rest = { torn + 10, env.text.len - (size_t)(torn + 10 - env.text.data) };
	ck_assert_uint_eq(sink_parse_lines(&env.arena, rest, &stored), 1);
	sink_env_done(&env);
}
OB_TEST_END

/* Opening `path` is FATAL and the message holds `what`. */
static void check_refused(const char *path, const char *what)
{
	const struct ob_opt_value option = { "path", path };
	struct ob_err err = OB_ERR_INIT;
	struct ob_sink *sink = NULL;

	ck_assert_int_eq(ob_sink_new(&ob_sink_file, &option, 1, &ob_clock_system, &sink, &err), 0);
	ck_assert_int_eq(ob_sink_open(sink, &err), OUTBOX_ESINK);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(err.msg, what) != NULL, "%s", err.msg);
	ob_sink_free(sink);
}

OB_TEST(a_path_that_cannot_be_written_is_fatal_and_says_what_to_do)
{
	struct sink_env env;
	char path[200];

	sink_env_init(&env);
	(void)snprintf(path, sizeof(path), "%s/missing/out.ndjson", env.dir);
	check_refused(path, "(create its directory, or change the sink's path): No such file");
	check_refused(env.dir, "(name a file in it): Is a directory");
	(void)snprintf(path, sizeof(path), "%s/fifo", env.dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	check_refused(path, "it is not a regular file");
	check_refused("/dev/null", "it is not a regular file");
	write_text(env.path, "");
	ck_assert_int_eq(chmod(env.path, 0400), 0);
	ck_assert_int_eq(chmod(env.dir, 0755), 0);
	uid_t user = geteuid();
	if (user == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	check_refused(env.path, "let this user write the file and its directory");
	if (user == 0)
		ck_assert_int_eq(seteuid(user), 0);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_directory_that_vanishes_is_fatal_at_the_next_poll)
{
	struct ob_err err = OB_ERR_INIT;
	struct sink_env env;
	struct ob_ack ack;
	char moved[80];

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	(void)snprintf(moved, sizeof(moved), "%s.moved", env.dir);
	ck_assert_int_eq(rename(env.dir, moved), 0);
	send_some(sink, 0, 1);
	ck_assert_int_lt(ob_sink_poll(sink, 0, &ack, 1, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ob_sink_free(sink);
	ck_assert_int_eq(rename(moved, env.dir), 0);
	sink_env_done(&env);
}
OB_TEST_END

OB_SUITE("file sink", nothing_is_confirmed_before_one_sync_of_all, without_fsync_nothing_is_synced,
	 a_failed_sync_takes_the_lines_back_and_starts_over,
	 a_failed_sync_leaves_the_lines_of_another_writer,
	 a_full_disk_takes_the_batch_back_and_goes_on_when_there_is_room,
	 short_writes_are_continued, while_failed_outcomes_wait_nothing_is_accepted,
	 rotation_loses_nothing_and_keeps_files_small,
	 rotated_files_are_named_in_order_when_the_clock_steps_back_and_the_newest_are_kept,
	 pruning_removes_only_what_rotation_made, lines_of_several_processes_never_mix,
	 several_processes_rotate_one_file_without_loss,
	 a_file_that_others_rotate_all_the_time_is_no_outage,
	 a_writer_that_holds_the_lock_is_waited_for, a_file_that_was_moved_away_is_made_again,
	 a_torn_line_stays_and_stands_alone,
	 a_path_that_cannot_be_written_is_fatal_and_says_what_to_do,
	 a_directory_that_vanishes_is_fatal_at_the_next_poll)

/* SPDX-License-Identifier: MIT */
/* The SQLite store and its file: what can be wrong with it, locks, waking, a full disk. */
#include "store_sqlite_fixture.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>

static void write_file(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	(void)close(fd);
}

/* ---- the file -------------------------------------------------------- */

OB_TEST(a_missing_database_is_made_by_setup_alone)
{
	struct ob_store *store = open_store("a.db", NULL);
	bool news;

	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL,
	      "no such database; run `outbox setup`");
	fails(ob_store_tx_begin(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "no such database");
	fails(ob_store_wake_check(store, &news, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "a.db");
	ck_assert_int_lt(access(file("a.db"), F_OK), 0);
	ok(setup(store));
	ok(ob_store_check(store, &err));
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_database_without_tables_says_what_to_do)
{
	sql_on("a.db", "CREATE TABLE mine (x)");
	struct ob_store *store = open_store("a.db", NULL);

	fails(ob_store_check(store, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL, "run `outbox setup`");
	fails(try_put(store, (struct outbox_message){ .aggregate_type = "a", .event_type = "e" },
		      1),
	      OUTBOX_ESCHEMA, OB_ERR_FATAL, "outbox");
	uint32_t count;
	fails(ob_store_seed(store, "default", &count, &err), OUTBOX_ESCHEMA, OB_ERR_FATAL,
	      "no such table: outbox_meta; run `outbox setup`");
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_path_that_cannot_be_a_database_is_refused_in_one_line)
{
	char path[256];
	struct ob_store *store;

	(void)snprintf(path, sizeof(path), "%s/x.db", file("no-such-dir"));
	fails(try_open(path, NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL, "no-such-dir'");
	ck_assert_int_eq(mkdir(file("dir"), 0755), 0);
	fails(try_open(file("dir"), NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL, "is a directory");
	write_file(file("text"), "x", 1);
	(void)snprintf(path, sizeof(path), "%s/x.db", file("text"));
	fails(try_open(path, NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL, "ot a directory");
	fails(try_open("/dev/null", NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL, "regular file");
	fails(try_open("", NULL, &store), OUTBOX_ECONFIG, OB_ERR_FATAL, "sqlite:PATH");
	fails(try_open("//host/x.db", NULL, &store), OUTBOX_ECONFIG, OB_ERR_FATAL, "sqlite:PATH");
	fails(try_open(":memory:", NULL, &store), OUTBOX_ECONFIG, OB_ERR_FATAL, "give a file");
}
OB_TEST_END

OB_TEST(three_slashes_are_an_absolute_path)
{
	char path[256];
	struct ob_store *store;

	(void)snprintf(path, sizeof(path), "//%s", file("a.db"));
	ok(try_open(path, NULL, &store));
	ok(setup(store));
	ck_assert_int_eq(access(file("a.db"), F_OK), 0);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_file_that_is_no_database_is_refused_and_kept)
{
	char text[5000];
	struct ob_store *store;
	struct stat st;

	memset(text, 'x', sizeof(text));
	write_file(file("a.db"), text, sizeof(text));
	fails(try_open(file("a.db"), NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL,
	      "not a database; give the path of an SQLite database");
	ck_assert_str_eq(err.native, "SQLITE_26");
	ck_assert_int_eq(stat(file("a.db"), &st), 0);
	ck_assert_int_eq(st.st_size, sizeof(text));
}
OB_TEST_END

static void spoil(const char *path, off_t page)
{
	char noise[4096];
	int fd = open(path, O_WRONLY);

	memset(noise, 0xa5, sizeof(noise));
	ck_assert_int_eq(pwrite(fd, noise, sizeof(noise), page * 4096), (ssize_t)sizeof(noise));
	(void)close(fd);
}

OB_TEST(a_corrupt_database_is_fatal)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;

	put(store, "1", 50);
	int64_t page =
		number(lite(store)->db, "SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'");
	ob_store_free(store);
	spoil(file("a.db"), page - 1);
	store = open_store("a.db", NULL);
	ob_batch_init(&batch);
	for (int again = 0; again < 2; again++)
		fails(try_read(store, &batch), OUTBOX_ESTORE, OB_ERR_FATAL, "restore a backup");
	ck_assert_uint_eq(batch.count, 0);
	ob_batch_done(&batch);
	ob_store_free(store);

	for (page = 1; page < 20; page++) /* the schema too, but for its first page */
		spoil(file("a.db"), page);
	fails(try_open(file("a.db"), NULL, &store), OUTBOX_ESTORE, OB_ERR_FATAL, "malformed");
}
OB_TEST_END

/* ---- rights ---------------------------------------------------------- */

static bool is_refused(const char *text)
{
	struct ob_store *store = NULL;
	int r = try_open(file("dir/a.db"), NULL, &store);

	if (r < 0 && err.kind == OB_ERR_FATAL && strstr(err.msg, text))
		return true;
	(void)fprintf(stderr, "# %s\n", r < 0 ? err.msg : "opened");
	ob_store_free(store);
	return false;
}

static bool is_read_only(void)
{
	return is_refused("writable for this user");
}

static bool is_forbidden(void)
{
	return is_refused("Permission denied");
}

static void make_database(mode_t file_mode, mode_t dir_mode)
{
	char dir[128];

	(void)snprintf(dir, sizeof(dir), "%s", file("dir"));
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ob_store_free(new_store("dir/a.db", NULL));
	ck_assert_int_eq(chmod(file("dir/a.db"), file_mode), 0);
	ck_assert_int_eq(chmod(dir, dir_mode), 0);
}

OB_TEST(a_read_only_file_is_refused)
{
	make_database(0444, 0777);
	ck_assert(as_nobody(is_read_only));
}
OB_TEST_END

OB_TEST(a_read_only_directory_is_refused)
{
	make_database(0666, 0555);
	ck_assert(as_nobody(is_read_only));
	ck_assert_int_eq(chmod(file("dir"), 0755), 0);
}
OB_TEST_END

OB_TEST(a_file_without_rights_is_refused)
{
	make_database(0000, 0777);
	ck_assert(as_nobody(is_forbidden));
}
OB_TEST_END

OB_TEST(network_filesystems_are_known)
{
	ck_assert_str_eq(lite_network_fs(NFS_SUPER_MAGIC), "NFS");
	ck_assert_str_eq(lite_network_fs(0xff534d42), "SMB");
	ck_assert_ptr_null(lite_network_fs(EXT4_SUPER_MAGIC));
	ck_assert_ptr_null(lite_network_fs(TMPFS_MAGIC));
}
OB_TEST_END

/* ---- the connection -------------------------------------------------- */

OB_TEST(the_connection_is_safe_and_durable)
{
	struct ob_store *store = new_store("a.db", NULL);
	sqlite3 *db = lite(store)->db;
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(number(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
	ck_assert_int_eq(number(db, "PRAGMA synchronous"), 2);
	ck_assert_int_eq(number(db, "PRAGMA trusted_schema"), 0);
	ck_assert_int_ne(sqlite3_prepare_v2(db, "SELECT \"typo\" FROM outbox", -1, &stmt, NULL),
			 SQLITE_OK);
	ck_assert_int_ne(sqlite3_exec(db, "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(synchronous_can_be_relaxed_and_options_are_checked)
{
	struct ob_opt_value option = { "synchronous", "normal" };
	char url[160];
	struct ob_store_conf conf = { .url = url, .options = &option, .option_count = 1 };
	struct ob_store *store = NULL;

	ob_store_free(new_store("a.db", NULL));
	(void)snprintf(url, sizeof(url), "sqlite:%s", file("a.db"));
	ok(ob_store_connect(&conf, &store, &err));
	ck_assert_int_eq(number(lite(store)->db, "PRAGMA synchronous"), 1);
	ob_store_free(store);
	option.value = "off";
	fails(ob_store_connect(&conf, &store, &err), OUTBOX_ECONFIG, OB_ERR_FATAL, "full, normal");
}
OB_TEST_END

OB_TEST(a_description_names_the_version_and_the_file)
{
	struct ob_store *store = open_store("a.db", NULL);
	struct ob_buf out = OB_BUF_INIT(1000);

	ob_store_describe(store, &out);
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "SQLite 3."));
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "a.db"));
	ob_buf_done(&out);
	ob_store_free(store);
}
OB_TEST_END

/* ---- locks ----------------------------------------------------------- */

OB_TEST(a_lock_that_is_kept_is_down_and_passes)
{
	struct ob_store *store = new_store("a.db", NULL);
	sqlite3 *other = sql_open("a.db");
	uint32_t count;

	sql(other, "BEGIN IMMEDIATE");
	int64_t start = ob_clock_boot_us(&ob_clock_system);
	fails(ob_store_seed(store, "default", &count, &err), OUTBOX_EBUSY, OB_ERR_DOWN, "locked");
	ck_assert_int_ge(ob_clock_boot_us(&ob_clock_system) - start, 50000);
	sql(other, "COMMIT");
	ok(ob_store_seed(store, "default", &count, &err));
	(void)sqlite3_close(other);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(reading_does_not_wait_for_a_writer)
{
	struct ob_store *store = new_store("a.db", NULL);
	sqlite3 *other = sql_open("a.db");
	struct ob_batch batch;

	const struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	const struct ob_place place = { .start = OB_START_BEGINNING };
	struct ob_read_part part = { .partition = 0 };
	struct ob_read wish = { .reader = "default",
				.target = "default",
				.parts = &part,
				.part_count = 1,
				.limit = 9,
				.max_bytes = 999 };
	struct ob_read_done done;
	bool made;

	ok(ob_store_resize(store, 1, &err));
	ok(ob_store_reader_make(store, &reader, &place, &made, &err));
	put(store, "1", 3);
	ob_batch_init(&batch);
	sql(other, "BEGIN IMMEDIATE; DELETE FROM outbox");
	ok(ob_store_read(store, &wish, &batch, &done, &err));
	ck_assert_uint_eq(batch.count, 3);
	sql(other, "COMMIT");
	ok(ob_store_read(store, &wish, &batch, &done, &err));
	ck_assert_uint_eq(batch.count, 0);
	(void)sqlite3_close(other);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(other_operations_are_refused_inside_a_transaction)
{
	struct ob_store *store = new_store("a.db", NULL);
	uint32_t count;

	ok(ob_store_tx_begin(store, &err));
	fails(ob_store_seed(store, "default", &count, &err), OUTBOX_EINVAL, OB_ERR_FATAL,
	      "end it first");
	ok(ob_store_tx_end(store, true, &err));
	ok(ob_store_seed(store, "default", &count, &err));
	ob_store_free(store);
}
OB_TEST_END

/* ---- waking ---------------------------------------------------------- */

static void push_one(void)
{
	struct ob_store *store = open_store("a.db", NULL);

	put(store, "1", 1);
	ob_store_free(store);
}

static bool has_news(struct ob_store *store)
{
	bool news = false;

	ok(ob_store_wake_check(store, &news, &err));
	return news;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

OB_TEST(the_commit_of_another_process_wakes)
{
	struct ob_store *store = new_store("a.db", NULL);
	int fd = ob_store_wake_fd(store);

	ck_assert_int_ge(fd, 0);
	(void)has_news(store);
	ck_assert(!is_readable(fd, 0));
	pid_t pid = in_child(push_one);
	ck_assert(is_readable(fd, 10000));
	wait_child(pid);
	ck_assert(has_news(store));
	ck_assert(!has_news(store));
	ck_assert(!is_readable(fd, 0));
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(our_own_commits_are_no_news)
{
	struct ob_store *store = new_store("a.db", NULL);
	int fd = ob_store_wake_fd(store);

	(void)has_news(store);
	put(store, "1", 3);
	ck_assert(!has_news(store));
	/* The file was touched, so it looks again a few times; then it is quiet. */
	for (int looks = 0; is_readable(fd, 1000); looks++) {
		ck_assert_int_lt(looks, 20);
		ck_assert(!has_news(store));
	}
	ob_store_free(store);
}
OB_TEST_END

/* A writer touches the file before its commit can be seen, and no event tells of the rest. */
OB_TEST(a_touch_without_news_is_looked_at_again)
{
	struct ob_store *store = new_store("a.db", NULL);
	int fd = ob_store_wake_fd(store);
	int wal = open(file("a.db-wal"), O_RDWR | O_CLOEXEC);
	char byte;

	(void)has_news(store);
	ck_assert_int_ge(wal, 0);
	ck_assert_int_eq(pread(wal, &byte, 1, 0), 1);
	ck_assert_int_eq(pwrite(wal, &byte, 1, 0), 1); /* as it was */
	ck_assert(is_readable(fd, 10000));
	ck_assert(!has_news(store));
	ck_assert(is_readable(fd, 10000));
	(void)close(wal);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(without_a_file_to_watch_looking_is_enough)
{
	struct ob_store *store = new_store("a.db", NULL);

	ck_assert(!has_news(store));
	wait_child(in_child(push_one));
	ck_assert(has_news(store));
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_store_that_waits_for_its_database_is_woken_by_it)
{
	struct ob_store *store = open_store("a.db", NULL);

	ck_assert_int_ge(ob_store_wake_fd(store), 0);
	ok(setup(store));
	(void)has_news(store);
	wait_child(in_child(push_one));
	ck_assert(is_readable(ob_store_wake_fd(store), 10000));
	ck_assert(has_news(store));
	ob_store_free(store);
}
OB_TEST_END

/* ---- the disk -------------------------------------------------------- */

OB_TEST(a_full_disk_is_down_leaves_nothing_behind_and_passes)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct outbox_message large = { .aggregate_type = "a", .event_type = "e" };
	sqlite3 *db = lite(store)->db;
	struct ob_batch batch;
	char payload[60000];

	memset(payload, '1', sizeof(payload) - 1);
	payload[sizeof(payload) - 1] = '\0';
	large.payload = payload;
	put(store, "1", 3);
	ob_batch_init(&batch);
	sql(db, "PRAGMA max_page_count = 40");
	fails(try_put(store, large, 9), OUTBOX_ESTORE, OB_ERR_DOWN, "full");
	ck_assert_int_ne(sqlite3_get_autocommit(db), 0);
	ck_assert_uint_eq(read_all(store, &batch), 3);
	sql(db, "PRAGMA max_page_count = 1000000");
	ok(try_put(store, large, 9));
	ck_assert_uint_eq(read_all(store, &batch), 12);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_full_disk_while_settling_changes_nothing)
{
	struct ob_store *store = new_store("a.db", NULL);
	static const char rows[] = "SELECT count(*) FROM outbox_exceptions";
	struct ob_batch batch;
	uint32_t settled;
	char pages[64];

	put(store, "1", 600);
	ob_batch_init(&batch);
	ck_assert_uint_eq(read_all(store, &batch), 600);
	sqlite3 *db = lite(store)->db;
	int64_t journal = number(db, "SELECT count(*) FROM outbox_batches");
	(void)snprintf(pages, sizeof(pages), "PRAGMA max_page_count = %d",
		       (int)number(db, "PRAGMA page_count"));
	sql(db, pages);
	fails(try_settle(store, &batch, OB_OUTCOME_RETRY, &settled), OUTBOX_ESTORE, OB_ERR_DOWN,
	      "free some disk space");
	ck_assert_int_eq(number(db, rows), 0);
	ck_assert_int_eq(number(db, "SELECT count(*) FROM outbox_batches"), journal);
	sql(db, "PRAGMA max_page_count = 1000000");
	ok(try_settle(store, &batch, OB_OUTCOME_RETRY, &settled));
	ck_assert_uint_eq(settled, 16 * OB_LANES);
	ck_assert_int_eq(number(db, rows), 600);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_database_that_was_replaced_is_opened_again)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_store *other = new_store("b.db", NULL);
	struct ob_batch batch;

	ob_batch_init(&batch);
	put(store, "1", 1);
	put(other, "1", 5);
	ob_store_free(other);
	(void)has_news(store);
	sql(lite(store)->db, "PRAGMA wal_checkpoint(TRUNCATE)");
	ck_assert_int_eq(rename(file("b.db"), file("a.db")), 0);
	ck_assert(has_news(store));
	ck_assert_uint_eq(read_all(store, &batch), 5);
	put(store, "2", 1);
	ck_assert_int_eq(number_on("a.db", "SELECT count(*) FROM outbox"), 6);

	ck_assert_int_eq(rename(file("a.db"), file("c.db")), 0);
	fails(ob_store_tx_begin(store, &err), OUTBOX_ESTORE, OB_ERR_DOWN, "gone");
	ck_assert_int_eq(rename(file("c.db"), file("a.db")), 0);
	ok(ob_store_check(store, &err));
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_database_in_utf_16_is_read_as_utf_8)
{
	const struct outbox_message message = {
		.aggregate_type = "bestellung",
		.aggregate_id = "gr\xC3\xBC\xC3\x9F",
		.event_type = "e",
		.payload = "{\"a\":\"\xF0\x9F\x98\x80\"}",
	};
	struct ob_batch batch;

	sql_on("a.db", "PRAGMA encoding = 'UTF-16'; CREATE TABLE mine (x)");
	struct ob_store *store = new_store("a.db", NULL);
	ob_batch_init(&batch);
	ok(try_put(store, message, 1));
	ck_assert_uint_eq(read_all(store, &batch), 1);
	ck_assert(ob_str_eq(batch.messages[0].payload, ob_str(message.payload)));
	ck_assert(ob_str_eq(batch.messages[0].key, OB_STR("bestellung:gr\xC3\xBC\xC3\x9F")));
	ck_assert_uint_eq(settle(store, &batch, OB_OUTCOME_PUBLISHED), 16 * OB_LANES);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

LITE_SUITE("store_sqlite", a_missing_database_is_made_by_setup_alone,
	   a_database_without_tables_says_what_to_do,
	   a_path_that_cannot_be_a_database_is_refused_in_one_line,
	   three_slashes_are_an_absolute_path, a_file_that_is_no_database_is_refused_and_kept,
	   a_corrupt_database_is_fatal, a_read_only_file_is_refused,
	   a_read_only_directory_is_refused, a_file_without_rights_is_refused,
	   network_filesystems_are_known, the_connection_is_safe_and_durable,
	   synchronous_can_be_relaxed_and_options_are_checked,
	   a_description_names_the_version_and_the_file, a_lock_that_is_kept_is_down_and_passes,
	   reading_does_not_wait_for_a_writer, other_operations_are_refused_inside_a_transaction,
	   the_commit_of_another_process_wakes, our_own_commits_are_no_news,
	   a_touch_without_news_is_looked_at_again, without_a_file_to_watch_looking_is_enough,
	   a_store_that_waits_for_its_database_is_woken_by_it,
	   a_full_disk_is_down_leaves_nothing_behind_and_passes,
	   a_full_disk_while_settling_changes_nothing, a_database_that_was_replaced_is_opened_again,
	   a_database_in_utf_16_is_read_as_utf_8)

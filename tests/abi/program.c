/* SPDX-License-Identifier: MIT */
/*
 * A program as users write them. It is compiled against the first, this and a later header and
 * linked with this and a later library; it says "refused: ..." when the library is older than the
 * header. usage: program DATABASE
 */
#include <outbox/events.h>
#include <outbox/sqlite.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			(void)printf("line %d: %s\n", __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

/* What stands after an error must not be written. */
static struct {
	struct outbox_error error;
	unsigned char after[64];
} guarded;

static void guard(void)
{
	memset(&guarded, 0xa5, sizeof(guarded));
}

static int is_guarded(void)
{
	for (size_t i = 0; i < sizeof(guarded.after); i++) {
		if (guarded.after[i] != 0xa5)
			return 0;
	}
	return 1;
}

static sqlite3_int64 number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3_int64 n = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		n = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return n;
}

static void exec(sqlite3 *db, const char *sql)
{
	CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* More than the library keeps on its stack, each different in its first and its last member. */
static void push_many(sqlite3 *db, outbox *ob)
{
	enum { COUNT = 20 };
	struct outbox_message messages[COUNT];
	struct outbox_id ids[COUNT];
	char names[COUNT][8];

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "%d", i);
		messages[i].aggregate_type = "order";
		messages[i].aggregate_id = names[i];
		messages[i].event_type = "OrderPlaced";
		messages[i].payload = i % 2 ? NULL : "{}";
		messages[i].flags = i % 2 ? OUTBOX_TOMBSTONE : 0;
	}
	exec(db, "BEGIN IMMEDIATE");
	CHECK(outbox_push(ob, messages, COUNT, ids, &guarded.error) == 0);
	exec(db, "COMMIT");
	CHECK(strlen(ids[COUNT - 1].text) == 36);
	CHECK(number(db,
		     "SELECT count(*) FROM outbox WHERE aggregate_type = 'order' AND "
		     "(payload IS NULL) = (aggregate_id % 2)") == COUNT);
}

/* The fault of the second message is found, and nothing after the error is touched. */
static void push_wrong(sqlite3 *db, outbox *ob)
{
	struct outbox_message messages[2];

	memset(messages, 0, sizeof(messages));
	messages[0].aggregate_type = "order";
	messages[0].event_type = "OrderPlaced";
	messages[0].payload = "{}";
	messages[1] = messages[0];
	messages[1].payload = "{";
	guard();
	exec(db, "BEGIN IMMEDIATE");
	CHECK(outbox_push(ob, messages, 2, NULL, &guarded.error) == OUTBOX_EPAYLOADJSON);
	exec(db, "COMMIT");
	CHECK(guarded.error.status == OUTBOX_EPAYLOADJSON && guarded.error.index == 1);
	CHECK(strncmp(guarded.error.message, "message 1: payload is not valid JSON", 36) == 0);
	CHECK(is_guarded());
}

static void append(sqlite3 *db, outbox *ob)
{
	struct outbox_stream stream = { sizeof(stream), "account", "42", NULL };
	struct outbox_appended done = { sizeof(done), 0, 0, 0, 0, 0 };
	struct outbox_message events[3];

	memset(events, 0, sizeof(events));
	for (int i = 0; i < 3; i++) {
		events[i].event_type = "Deposited";
		events[i].payload = "{}";
	}
	exec(db, "BEGIN IMMEDIATE");
	CHECK(outbox_append(ob, &stream, OUTBOX_NO_STREAM, events, 3, NULL, &done,
			    &guarded.error) == 0);
	exec(db, "COMMIT");
	CHECK(done.last_version == 3);
}

int main(int argc, char **argv)
{
	struct outbox_options options;
	outbox *ob = NULL;
	sqlite3 *db = NULL;

	CHECK(argc == 2 && sqlite3_open(argv[1], &db) == SQLITE_OK);
	memset(&options, 0, sizeof(options));
	options.table = "outbox";
	guard();
	int r = outbox_sqlite_open(db, &options, &ob, &guarded.error);
	if (r == OUTBOX_EINVAL) {
		(void)printf("refused: %s\n", guarded.error.message);
		CHECK(is_guarded() && outbox_sqlite_open(db, NULL, &ob, NULL) == 0);
		guard();
		struct outbox_message message = { .aggregate_type = "order",
						  .event_type = "OrderPlaced",
						  .payload = "{}" };
		exec(db, "BEGIN IMMEDIATE");
		CHECK(outbox_push(ob, &message, 1, NULL, &guarded.error) == OUTBOX_EINVAL);
		(void)printf("refused: %s\n", guarded.error.message);
		exec(db, "COMMIT");
	} else {
		CHECK(r == 0);
		push_many(db, ob);
		push_wrong(db, ob);
		append(db, ob);
	}
	outbox_close(ob);
	CHECK(is_guarded() && sqlite3_close(db) == SQLITE_OK);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * An event-sourced bank account on SQLite: an aggregate with snapshots, and a projection that is
 * exactly once.
 *
 *   outbox setup --events --store sqlite:bank.db
 *   cc bank.c $(pkg-config --cflags --libs outbox outbox-sqlite outbox-relay sqlite3) -o bank
 *   ./bank bank.db open 42 Ann
 *   ./bank bank.db deposit 42 10000
 *   ./bank bank.db withdraw 42 2500
 *   ./bank bank.db show 42       # from the snapshot and the events after it
 *   ./bank bank.db project       # brings the table `balances` up to date
 */
#include <outbox/aggregate.h>
#include <outbox/relay.h>
#include <outbox/sqlite.h>
#include <sqlite3.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- events ---------------------------------------------------------- */

struct opened {
	const char *owner;
};

struct moved {
	int64_t cents;
};

static const struct outbox_field opened_fields[] = {
	OUTBOX_FIELD(struct opened, owner, OUTBOX_TEXT),
	OUTBOX_FIELDS_END,
};
static const struct outbox_field moved_fields[] = {
	OUTBOX_FIELD(struct moved, cents, OUTBOX_INTEGER),
	OUTBOX_FIELDS_END,
};
static const struct outbox_shape shapes[] = {
	{ "Opened", opened_fields },
	{ "Deposited", moved_fields },
	{ "Withdrawn", moved_fields },
	{ NULL, NULL },
};
static const struct outbox_serializer structs = OUTBOX_STRUCT_SERIALIZER(shapes);
static const struct outbox_serializer *const payloads[] = { &structs, NULL };
static const struct outbox_serializers serializers = { .payload = payloads };
static const struct outbox_event_kind kinds[] = {
	{ "Opened", 1 }, { "Deposited", 1 }, { "Withdrawn", 1 }, { NULL, 0 }
};

/* ---- the account ----------------------------------------------------- */

struct account {
	const char *owner;
	int64_t cents;
};

static const struct outbox_field account_fields[] = {
	OUTBOX_FIELD(struct account, owner, OUTBOX_TEXT),
	OUTBOX_FIELD(struct account, cents, OUTBOX_INTEGER),
	OUTBOX_FIELDS_END,
};

static int apply(void *state, const struct outbox_event *event, outbox_text *memory,
		 struct outbox_error *err)
{
	struct account *account = state;
	struct opened opened = { NULL };
	struct moved moved = { 0 };
	int r;

	if (strcmp(event->event_type, "Opened") == 0) {
		r = outbox_struct_read(opened_fields, event->payload, event->payload_size, &opened,
				       memory, err);
		account->owner = opened.owner;
		return r;
	}
	r = outbox_struct_read(moved_fields, event->payload, event->payload_size, &moved, memory,
			       err);
	account->cents += strcmp(event->event_type, "Deposited") == 0 ? moved.cents : -moved.cents;
	return r;
}

static const struct outbox_aggregate_type account_type = {
	.name = "account",
	.state_size = sizeof(struct account),
	.apply = apply,
	.kinds = kinds,
	.serializers = &serializers,
	.state_fields = account_fields,
	.state_revision = 1,
	.snapshot_every = 10,
};

/* What a command may do is decided by the state; what it does is an event. */
static const char *decide(outbox_aggregate *a, const char *command, const char *value,
			  struct outbox_error *err)
{
	const struct account *account = outbox_aggregate_state(a);
	const struct opened opened = { value };
	const struct moved moved = { strtoll(value, NULL, 10) };
	const char *type = strcmp(command, "deposit") == 0 ? "Deposited" : "Withdrawn";

	if (strcmp(command, "open") == 0) {
		if (account->owner)
			return "the account exists";
		return outbox_aggregate_record(a, "Opened", &opened, NULL, err) < 0 ? err->message
										    : NULL;
	}
	if (!account->owner)
		return "there is no such account";
	if (moved.cents <= 0)
		return "an amount is a number of cents";
	if (strcmp(command, "withdraw") == 0 && moved.cents > account->cents)
		return "the account has not so much";
	return outbox_aggregate_record(a, type, &moved, NULL, err) < 0 ? err->message : NULL;
}

/* Load, decide, store: in one transaction. Whoever was faster in another one is a conflict. */
static const char *run_command(sqlite3 *db, outbox *ob, const char *id, const char *command,
			       const char *value, struct outbox_error *err)
{
	outbox_aggregate *a = NULL;
	const char *wrong = NULL;

	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return sqlite3_errmsg(db);
	if (outbox_aggregate_load(ob, &account_type, id, NULL, &a, err) < 0)
		wrong = err->message;
	if (!wrong)
		wrong = decide(a, command, value, err);
	if (!wrong && outbox_aggregate_store(ob, a, NULL, err) < 0)
		wrong = err->message;
	outbox_aggregate_free(a);
	if (sqlite3_exec(db, wrong ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK &&
	    !wrong)
		wrong = sqlite3_errmsg(db);
	return wrong;
}

static const char *show(outbox *ob, const char *id, struct outbox_error *err)
{
	outbox_aggregate *a = NULL;

	if (outbox_aggregate_load(ob, &account_type, id, NULL, &a, err) < 0)
		return err->message;
	const struct account *account = outbox_aggregate_state(a);
	const char *wrong = account->owner ? NULL : "there is no such account";
	if (!wrong)
		printf("%s: %" PRId64 " cents after %" PRId64 " events, snapshot of %" PRId64 "\n",
		       account->owner, account->cents, outbox_aggregate_version(a),
		       outbox_aggregate_snapshot_version(a));
	outbox_aggregate_free(a);
	return wrong;
}

/* ---- the projection -------------------------------------------------- */

/* In the transaction in which the relay records how far it is: exactly once. */
static enum outbox_relay_result project(void *arg, const struct outbox_relay_message *message,
					outbox_relay_call *call)
{
	static const char sql[] =
		"INSERT INTO balances (account, cents) VALUES (?1, ?2) "
		"ON CONFLICT (account) DO UPDATE SET cents = cents + ?2";
	outbox_text *memory = outbox_text_new();
	struct outbox_error err;
	struct moved moved = { 0 };
	sqlite3_stmt *stmt = NULL;
	int done = SQLITE_ERROR;

	(void)arg;
	if (memory && strcmp(message->event_type, "Opened") != 0 &&
	    outbox_struct_read(moved_fields, message->payload, message->payload_size, &moved,
			       memory, &err) < 0) {
		outbox_relay_reason(call, err.message);
		outbox_text_free(memory);
		return OUTBOX_RELAY_REJECT;
	}
	outbox_text_free(memory);
	if (strcmp(message->event_type, "Withdrawn") == 0)
		moved.cents = -moved.cents;
	if (sqlite3_prepare_v2(outbox_relay_connection(call), sql, -1, &stmt, NULL) == SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, message->aggregate_id, -1, SQLITE_STATIC);
		sqlite3_bind_int64(stmt, 2, moved.cents);
		done = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	return done == SQLITE_DONE ? OUTBOX_RELAY_OK : OUTBOX_RELAY_RETRY;
}

static const char *run_projection(sqlite3 *db, const char *file, struct outbox_error *err)
{
	char store[512];
	const struct outbox_relay_options options = { .store = store,
						      .name = "balances",
						      .handler = project,
						      .flags = OUTBOX_RELAY_IN_TRANSACTION };
	outbox_relay *relay = NULL;

	snprintf(store, sizeof(store), "sqlite:%s", file);
	if (sqlite3_exec(db,
			 "CREATE TABLE IF NOT EXISTS balances (account TEXT PRIMARY KEY, cents "
			 "INTEGER NOT NULL)",
			 NULL, NULL, NULL) != SQLITE_OK)
		return sqlite3_errmsg(db);
	if (outbox_relay_new(&options, &relay, err) < 0)
		return err->message;
	int count = outbox_relay_process_once(relay, err);
	outbox_relay_free(relay);
	if (count < 0)
		return err->message;
	printf("%d events\n", count);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *wrong = "usage: bank FILE open|deposit|withdraw|show|project [ACCOUNT [VALUE]]";
	const char *command = argc > 2 ? argv[2] : "";
	struct outbox_error err;
	sqlite3 *db = NULL;
	outbox *ob = NULL;

	if (argc < 3 || sqlite3_open(argv[1], &db) != SQLITE_OK) {
		fprintf(stderr, "%s\n", db ? sqlite3_errmsg(db) : wrong);
		sqlite3_close(db);
		return EXIT_FAILURE;
	}
	sqlite3_busy_timeout(db, 10000);
	if (outbox_sqlite_open(db, NULL, &ob, &err) < 0)
		wrong = err.message;
	else if (strcmp(command, "project") == 0)
		wrong = run_projection(db, argv[1], &err);
	else if (strcmp(command, "show") == 0 && argc == 4)
		wrong = show(ob, argv[3], &err);
	else if (argc == 5)
		wrong = run_command(db, ob, argv[3], command, argv[4], &err);
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	outbox_close(ob);
	sqlite3_close(db);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

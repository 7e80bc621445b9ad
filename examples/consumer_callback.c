/* SPDX-License-Identifier: MIT */
/*
 * A consumer inside a program: each order of a Redis stream is entered once, until Ctrl-C.
 *
 *   outbox --store sqlite:shop.db setup --inbox      # once: makes the tables
 *   cc consumer_callback.c $(pkg-config --cflags --libs outbox-relay sqlite3) -o consumer_callback
 *   ./consumer_callback sqlite:shop.db "{ type: redis, url: 'redis://localhost', stream: orders }"
 *
 * The table: CREATE TABLE paid (order_id TEXT NOT NULL, payload TEXT NOT NULL)
 */
#include <outbox/consumer.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static outbox_consumer *consumer;

static void on_signal(int signo)
{
	(void)signo;
	/* It may be called here: it finishes what is in hand, then run() returns. */
	outbox_consumer_stop(consumer); /* NOLINT(bugprone-signal-handler) */
}

/* In the transaction that also has the inbox row: committed together, or not at all. */
static enum outbox_relay_result handle(void *arg, const struct outbox_relay_message *message,
				       outbox_relay_call *call)
{
	sqlite3 *db = outbox_relay_connection(call);
	sqlite3_stmt *stmt = NULL;

	(void)arg;
	if (!message->aggregate_id) {
		outbox_relay_reason(call, "an order needs an id");
		return OUTBOX_RELAY_REJECT; /* 'outbox dlq list' shows why */
	}
	int ok =
		sqlite3_prepare_v2(db, "INSERT INTO paid VALUES (?1, ?2)", -1, &stmt, NULL) ==
			SQLITE_OK &&
		sqlite3_bind_text(stmt, 1, message->aggregate_id, -1, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_bind_text(stmt, 2, message->payload, (int)message->payload_size,
				  SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(stmt) == SQLITE_DONE;
	if (!ok)
		outbox_relay_reason(call, sqlite3_errmsg(db));
	sqlite3_finalize(stmt);
	return ok ? OUTBOX_RELAY_OK : OUTBOX_RELAY_RETRY;
}

int main(int argc, char **argv)
{
	struct outbox_consumer_options options = {
		.store = argc > 1 ? argv[1] : "sqlite:shop.db",
		.name = "billing",
		.source = argc > 2 ? argv[2]
				   : "{ type: redis, url: 'redis://localhost', stream: orders }",
		.handler = handle,
		.flags = OUTBOX_CONSUMER_IN_TRANSACTION,
	};
	struct outbox_error err;

	if (outbox_consumer_new(&options, &consumer, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s\n", err.message);
		return EXIT_FAILURE;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	int r = outbox_consumer_run(consumer, &err);
	if (r != OUTBOX_OK)
		fprintf(stderr, "%s\n", err.message);
	outbox_consumer_free(consumer);
	return r == OUTBOX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

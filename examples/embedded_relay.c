/* SPDX-License-Identifier: MIT */
/*
 * A relay inside a program: prints what is committed to the outbox until Ctrl-C.
 *
 *   outbox setup                 # once: makes the tables
 *   cc embedded_relay.c $(pkg-config --cflags --libs outbox-relay) -o embedded_relay
 *   ./embedded_relay sqlite:outbox.db
 */
#include <outbox/relay.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static outbox_relay *relay;

static void on_signal(int signo)
{
	(void)signo;
	/* It may be called here: it finishes what is in hand, then run() returns. */
	outbox_relay_stop(relay); /* NOLINT(bugprone-signal-handler) */
}

static enum outbox_relay_result handle(void *arg, const struct outbox_relay_message *message,
				       outbox_relay_call *call)
{
	(void)arg;
	if (!message->aggregate_id) {
		outbox_relay_reason(call, "an order needs an id");
		return OUTBOX_RELAY_REJECT; /* dead at once; 'outbox list dead' shows why */
	}
	printf("%s %s: %.*s\n", message->event_type, message->aggregate_id,
	       (int)message->payload_size, (const char *)message->payload);
	return fflush(stdout) == 0 ? OUTBOX_RELAY_OK : OUTBOX_RELAY_RETRY;
}

int main(int argc, char **argv)
{
	struct outbox_relay_options options = {
		.store = argc > 1 ? argv[1] : "sqlite:outbox.db",
		.handler = handle,
		.handler_timeout_ms = 5000,
	};
	struct outbox_error err;

	if (outbox_relay_new(&options, &relay, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s\n", err.message);
		return EXIT_FAILURE;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	int r = outbox_relay_run(relay, &err);
	if (r != OUTBOX_OK)
		fprintf(stderr, "%s\n", err.message);
	outbox_relay_free(relay);
	return r == OUTBOX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

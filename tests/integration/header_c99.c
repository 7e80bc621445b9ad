/* SPDX-License-Identifier: MIT */
/* The public headers, compiled as strict C99, and a program that uses only the shared libraries. */
#include <outbox/aggregate.h>
#include <outbox/consumer.h>
#include <outbox/crypt.h>
#include <outbox/events.h>
#include <outbox/inbox.h>
#include <outbox/relay.h>
#include <outbox/serialize.h>
#include <outbox/sqlite.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct outbox_message message = { .aggregate_type = "order", .event_type = "OrderPlaced" };
	struct outbox_error error;
	int r = outbox_push(NULL, &message, 1, NULL, &error);

	if (r != OUTBOX_EINVAL || strcmp(outbox_status_name(r), "EINVAL") != 0)
		return 1;
	if (strcmp(outbox_version(), OUTBOX_VERSION) != 0 || strlen(outbox_id_new().text) != 36)
		return 1;
	outbox_close(NULL);
	outbox_relay_free(NULL);
	outbox_consumer_free(NULL);
	if (outbox_relay_new(NULL, NULL, &error) != OUTBOX_EINVAL)
		return 1;
	return outbox_sqlite_open(NULL, NULL, NULL, &error) == OUTBOX_EINVAL ? 0 : 1;
}

/* SPDX-License-Identifier: MIT */
/* The public headers, compiled as C++, and a program that uses only the shared libraries. */
#define X /* a macro of the user's must not collide with ours */
#include <outbox/aggregate.h>
#include <outbox/consumer.h>
#include <outbox/crypt.h>
#include <outbox/events.h>
#include <outbox/inbox.h>
#include <outbox/serialize.h>
#include <outbox/relay.h>
#include <outbox/sqlite.h>

#include <cstring>

int main()
{
	outbox_message message = outbox_message();
	outbox_error error;

	message.aggregate_type = "order";
	message.event_type = "OrderPlaced";
	int r = outbox_push(NULL, &message, 1, NULL, &error);
	if (r != OUTBOX_EINVAL || std::strcmp(outbox_strerror(r), "invalid argument") != 0)
		return 1;
	outbox *ob = NULL;
	r = outbox_sqlite_open(NULL, NULL, &ob, &error);
	outbox_close(ob);
	if (outbox_relay_new(NULL, NULL, &error) != OUTBOX_EINVAL)
		return 1;
	return r == OUTBOX_EINVAL && error.index == OUTBOX_NO_INDEX ? 0 : 1;
}

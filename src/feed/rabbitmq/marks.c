/* SPDX-License-Identifier: MIT */
/* Which deliveries of a channel are open. The broker closes the channel over an acknowledgement of
 * a delivery that has one already, so none is repeated. */
#include "feed/rabbitmq/rabbitmq.h"

#include <stdlib.h>

enum { DONE, OPEN, ENDING }; /* ENDING: to be acknowledged by this call */

bool ob_rabbitmq_mark_add(struct rabbitmq_feed *feed)
{
	if (feed->mark_count == feed->mark_room) {
		size_t room = feed->mark_room ? feed->mark_room * 2 : 1024;
		char *more = realloc(feed->marks, room);

		if (!more)
			return false;
		feed->marks = more;
		feed->mark_room = room;
	}
	feed->marks[feed->mark_count++] = OPEN;
	return true;
}

size_t ob_rabbitmq_marks_open(const struct rabbitmq_feed *feed)
{
	size_t open = 0;

	for (size_t i = 0; i < feed->mark_count; i++)
		open += feed->marks[i] == OPEN;
	return open;
}

void ob_rabbitmq_marks_void(struct rabbitmq_feed *feed)
{
	feed->void_tags += feed->past + feed->mark_count;
	feed->past = 0;
	feed->mark_count = 0;
}

/* The mark of a tag; NULL: void, or long done. */
static char *find_mark(struct rabbitmq_feed *feed, uint64_t tag)
{
	uint64_t from = feed->void_tags + feed->past + 1;

	return tag >= from && tag - from < feed->mark_count ? &feed->marks[tag - from] : NULL;
}

static bool add_ack(struct rabbitmq_feed *feed, size_t at, bool multiple)
{
	amqp_basic_ack_t ack = { .delivery_tag = feed->past + 1 + at, .multiple = multiple };

	return ob_rabbitmq_add_method(&ob_rabbitmq_link(feed)->conn, OB_RABBITMQ_CHANNEL,
				      AMQP_BASIC_ACK_METHOD, &ack);
}

static void forget_done(struct rabbitmq_feed *feed, size_t count)
{
	feed->past += count;
	feed->mark_count -= count;
	memmove(feed->marks, feed->marks + count, feed->mark_count);
}

bool ob_rabbitmq_marks_ack(struct rabbitmq_feed *feed, const uint64_t *tags, size_t count)
{
	size_t run = 0, last = 0;
	bool ok = true;

	for (size_t i = 0; i < count; i++) {
		char *mark = find_mark(feed, tags[i]);

		if (mark && *mark == OPEN)
			*mark = ENDING;
	}
	/* All up to one that is open by a single acknowledgement; it must name one that has none.
	 */
	for (; run < feed->mark_count && feed->marks[run] != OPEN; run++) {
		if (feed->marks[run] == ENDING)
			last = run + 1;
		feed->marks[run] = DONE;
	}
	if (last > 0)
		ok = add_ack(feed, last - 1, true);
	for (size_t i = 0; i < count && ok; i++) {
		char *mark = find_mark(feed, tags[i]);

		if (!mark || *mark != ENDING)
			continue;
		*mark = DONE;
		ok = add_ack(feed, (size_t)(mark - feed->marks), false);
	}
	forget_done(feed, run);
	return ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * A Kafka topic and a consumer group. Offsets are committed by us alone, and only up to the first
 * entry that is not acknowledged. While nothing may come in, the partitions are paused and polling
 * goes on: a handler that takes long does not lose them (max.poll.interval.ms). Rebalancing is
 * cooperative: what stays ours goes on.
 */
#include "feed/backends.h"
#include "sink/kafka/kafka.h"

#include <inttypes.h>
#include <stdlib.h>

enum { START_BEGINNING, START_END, POLL_MS = 1000, OFFSET_BITS = 48 };

/* An entry that was handed out. */
struct handed {
	int64_t offset;
	bool done;
};

struct part {
	int32_t number;
	bool ours;
	int64_t commit;        /* what the group has; -1: unknown */
	int64_t from;          /* with positions: go on here; -1: where the group is */
	struct handed *handed; /* ascending */
	size_t first, count, room;
};

struct kafka_feed {
	struct ob_feed base;
	char *topic, *group;
	int start;
	int64_t max_poll_ms, session_ms;

	rd_kafka_t *rk;
	struct part *parts;
	size_t part_count;
	bool paused, by_place, moved;
	struct ob_err trouble; /* the last thing that the library said of the brokers */
};

static struct part *part_of(struct kafka_feed *feed, int32_t number)
{
	struct part *more;

	for (size_t i = 0; i < feed->part_count; i++) {
		if (feed->parts[i].number == number)
			return &feed->parts[i];
	}
	more = realloc(feed->parts, (feed->part_count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	feed->parts = more;
	more[feed->part_count] = (struct part){ .number = number, .commit = -1, .from = -1 };
	return &more[feed->part_count++];
}

/* ---- rebalancing ----------------------------------------------------- */

static void forget_handed(struct part *part)
{
	part->first = part->count = 0;
}

static void take_parts(struct kafka_feed *feed, rd_kafka_topic_partition_list_t *list, bool ours)
{
	for (int i = 0; i < list->cnt; i++) {
		struct part *part = part_of(feed, list->elems[i].partition);

		if (!part)
			continue;
		part->ours = ours;
		forget_handed(part);
		/* The database's position wins over the group's. */
		if (ours && feed->by_place && part->from >= 0)
			list->elems[i].offset = part->from;
	}
	feed->moved = true;
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
			 rd_kafka_topic_partition_list_t *list, void *arg)
{
	struct kafka_feed *feed = arg;

	if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		take_parts(feed, list, true);
		rd_kafka_error_t *error = rd_kafka_incremental_assign(rk, list);
		rd_kafka_error_destroy(error);
		if (feed->paused)
			(void)rd_kafka_pause_partitions(rk, list);
		return;
	}
	take_parts(feed, list, false);
	rd_kafka_error_t *error = rd_kafka_incremental_unassign(rk, list);
	rd_kafka_error_destroy(error);
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *arg)
{
	struct kafka_feed *feed = arg;

	(void)rk;
	(void)ob_kafka_error((rd_kafka_resp_err_t)code, reason, NULL, &feed->trouble);
}

/* ---- opening --------------------------------------------------------- */

static void silent(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, struct ob_err *err)
{
	char why[200];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "the kafka source: %s: %s", name, why);
}

static int set_number(rd_kafka_conf_t *conf, const char *name, int64_t value, struct ob_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	return set(conf, name, text, err);
}

static int configure(struct kafka_feed *feed, rd_kafka_conf_t *conf, struct ob_err *err)
{
	const struct kafka_sink *link = (const struct kafka_sink *)feed->base.link;
	const struct {
		const char *name, *value;
	} fixed[] = {
		{ "bootstrap.servers", link->brokers },
		{ "group.id", feed->group ? feed->group : feed->base.group },
		{ "client.id", "outbox" },
		{ "enable.auto.commit", "false" },
		{ "enable.auto.offset.store", "false" },
		{ "enable.partition.eof", "false" },
		{ "partition.assignment.strategy", "cooperative-sticky" },
		{ "isolation.level", "read_committed" },
		{ "auto.offset.reset", feed->start == START_END ? "latest" : "earliest" },
		{ "allow.auto.create.topics", "false" },
	};
	int r = ob_kafka_properties(link->properties, conf, err);

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && r == 0; i++)
		r = set(conf, fixed[i].name, fixed[i].value, err);
	if (r == 0)
		r = set_number(conf, "max.poll.interval.ms", feed->max_poll_ms, err);
	if (r == 0)
		r = set_number(conf, "session.timeout.ms", feed->session_ms, err);
	rd_kafka_conf_set_opaque(conf, feed);
	rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, silent);
	return r;
}

static void drop(struct kafka_feed *feed)
{
	if (!feed->rk)
		return;
	(void)rd_kafka_consumer_close(feed->rk);
	rd_kafka_destroy(feed->rk);
	feed->rk = NULL;
	for (size_t i = 0; i < feed->part_count; i++) {
		forget_handed(&feed->parts[i]);
		feed->parts[i].ours = false;
	}
}

static int subscribe(struct kafka_feed *feed, struct ob_err *err)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	(void)rd_kafka_poll_set_consumer(feed->rk);
	(void)rd_kafka_topic_partition_list_add(list, feed->topic, RD_KAFKA_PARTITION_UA);
	rd_kafka_resp_err_t code = rd_kafka_subscribe(feed->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
		return 0;
	(void)ob_kafka_error(code, NULL, NULL, err);
	err->kind = OB_ERR_DOWN;
	return err->status;
}

static int kafka_feed_open(struct ob_feed *base, struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;
	char why[256];

	if (feed->rk)
		return 0;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int r = configure(feed, conf, err);
	if (r < 0) {
		rd_kafka_conf_destroy(conf);
		return r;
	}
	feed->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	if (!feed->rk) {
		rd_kafka_conf_destroy(conf);
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "the kafka source: %s", why);
	}
	r = subscribe(feed, err);
	if (r < 0)
		drop(feed);
	return r;
}

static int kafka_feed_seek(struct ob_feed *base, const struct ob_str *parts,
			   const struct ob_feed_place *places, size_t count, struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;

	feed->by_place = true;
	for (size_t i = 0; i < count; i++) {
		const char *slash = memrchr(parts[i].p, '/', parts[i].n);
		struct part *part =
			slash ? part_of(feed, (int32_t)strtol(slash + 1, NULL, 10)) : NULL;

		if (part)
			part->from = (int64_t)places[i].major + 1;
	}
	/* Partitions that are assigned already go there by a new subscription. */
	drop(feed);
	return kafka_feed_open(base, err);
}

/* ---- reading --------------------------------------------------------- */

static bool hand_out(struct part *part, int64_t offset)
{
	if (part->first > 0 && part->first == part->count)
		forget_handed(part);
	if (part->count == part->room) {
		size_t room = part->room ? part->room * 2 : 256;
		struct handed *more = realloc(part->handed, room * sizeof(*more));

		if (!more)
			return false;
		part->handed = more;
		part->room = room;
	}
	part->handed[part->count++] = (struct handed){ .offset = offset };
	return true;
}

static bool read_headers(const rd_kafka_message_t *m, struct ob_arena *arena,
			 struct ob_feed_draft *draft)
{
	rd_kafka_headers_t *headers = NULL;
	const char *name;
	const void *value;
	size_t size;
	bool ok = true;

	if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return true;
	for (size_t i = 0; ok && rd_kafka_header_get_all(headers, i, &name, &value, &size) ==
					 RD_KAFKA_RESP_ERR_NO_ERROR;
	     i++) {
		struct ob_str n, v;

		ok = ob_arena_copy(arena, ob_str(name), &n) &&
		     ob_arena_copy(arena, (struct ob_str){ value ? value : "", size }, &v);
		if (ok)
			ob_feed_entry_field(draft, n, v);
	}
	return ok;
}

static bool read_record(struct kafka_feed *feed, const rd_kafka_message_t *m,
			struct ob_arena *arena, struct ob_feed_entry *entry)
{
	struct ob_feed_draft draft;
	char part[300], where[340];

	*entry = (struct ob_feed_entry){ .place = { (uint64_t)m->offset, 0 } };
	entry->tag = ((uint64_t)m->partition + 1) << OFFSET_BITS | (uint64_t)m->offset;
	(void)snprintf(part, sizeof(part), "%.249s/%" PRId32, feed->topic, m->partition);
	(void)snprintf(where, sizeof(where), "%s %" PRId64, part, m->offset);
	ob_feed_entry_begin(&draft, entry);
	bool ok = read_headers(m, arena, &draft) &&
		  ob_arena_copy(arena, ob_str(part), &entry->part) &&
		  ob_arena_copy(arena, ob_str(where), &entry->where);
	if (ok && m->key)
		ok = ob_arena_copy(arena, (struct ob_str){ m->key, m->key_len },
				   &entry->message.key);
	if (ok && m->payload)
		ok = ob_arena_copy(arena, (struct ob_str){ m->payload, m->len },
				   &entry->message.payload);
	draft.tombstone = !m->payload;
	return ob_feed_entry_finish(&draft, arena) && ok;
}

static void pause_all(struct kafka_feed *feed, bool paused)
{
	rd_kafka_topic_partition_list_t *list = NULL;

	if (feed->paused == paused ||
	    rd_kafka_assignment(feed->rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	(void)(paused ? rd_kafka_pause_partitions(feed->rk, list)
		      : rd_kafka_resume_partitions(feed->rk, list));
	rd_kafka_topic_partition_list_destroy(list);
	feed->paused = paused;
}

/* 1: an entry; 0: none now; or an error. */
static int poll_one(struct kafka_feed *feed, int timeout_ms, struct ob_feed_batch *batch,
		    uint32_t max, struct ob_err *err)
{
	rd_kafka_message_t *m = rd_kafka_consumer_poll(feed->rk, timeout_ms);
	int r = 0;

	if (!m)
		return 0;
	if (m->err) {
		(void)ob_kafka_error(m->err, rd_kafka_message_errstr(m), NULL, err);
		err->kind = OB_ERR_DOWN;
		r = err->status;
		if (m->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
			r = ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				       "topic '%.150s' does not exist: create it", feed->topic);
	} else if (batch->count < max) {
		struct part *part = part_of(feed, m->partition);

		if (!part || !hand_out(part, m->offset) ||
		    !read_record(feed, m, &batch->arena, &batch->entries[batch->count]))
			r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				       "no memory for entries of kafka");
		else
			r = (int)++batch->count;
	}
	rd_kafka_message_destroy(m);
	return r < 0 ? r : r > 0;
}

static int kafka_feed_poll(struct ob_feed *base, int timeout_ms, uint32_t max,
			   struct ob_feed_batch *batch, struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;
	int r = 1;

	if (!feed->rk)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "kafka is not connected");
	/* Paused, polling hands nothing out and keeps the partitions. */
	pause_all(feed, max == 0);
	batch->entries = ob_arena_alloc(&batch->arena, (max + 1) * sizeof(*batch->entries));
	if (!batch->entries)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				  "no memory for entries of kafka");
	while (r > 0 && batch->count < max)
		r = poll_one(feed, batch->count ? 0 : timeout_ms, batch, max, err);
	if (max == 0)
		r = poll_one(feed, 0, batch, 0, err);
	batch->moved = feed->moved;
	feed->moved = false;
	/* What came before the failure is handed out; it will be told again. */
	return batch->count ? 0 : r < 0 ? r : 0;
}

/* ---- acknowledging --------------------------------------------------- */

static void mark_done(struct kafka_feed *feed, uint64_t tag)
{
	int32_t number = (int32_t)(tag >> OFFSET_BITS) - 1;
	int64_t offset = (int64_t)(tag & ((UINT64_C(1) << OFFSET_BITS) - 1));
	struct part *part = part_of(feed, number);

	for (size_t i = part ? part->first : 0; part && i < part->count; i++) {
		if (part->handed[i].offset == offset)
			part->handed[i].done = true;
	}
}

/* Up to the first that is not done. */
static bool advance(struct part *part)
{
	bool moved = false;

	while (part->first < part->count && part->handed[part->first].done) {
		part->commit = part->handed[part->first++].offset + 1;
		moved = true;
	}
	return moved && part->ours;
}

static int kafka_feed_ack(struct ob_feed *base, const uint64_t *tags, size_t count,
			  struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;

	if (!feed->rk)
		return 0; /* what was handed out comes again */
	for (size_t i = 0; i < count; i++)
		mark_done(feed, tags[i]);
	list = rd_kafka_topic_partition_list_new((int)feed->part_count + 1);
	for (size_t i = 0; i < feed->part_count; i++) {
		if (advance(&feed->parts[i]))
			rd_kafka_topic_partition_list_add(list, feed->topic, feed->parts[i].number)
				->offset = feed->parts[i].commit;
	}
	if (list->cnt > 0)
		code = rd_kafka_commit(feed->rk, list, 0);
	rd_kafka_topic_partition_list_destroy(list);
	/* A partition that moved is another member's: its offset is his to commit. */
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
	    code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
	    code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID || code == RD_KAFKA_RESP_ERR__NO_OFFSET)
		return 0;
	(void)ob_kafka_error(code, NULL, NULL, err);
	err->kind = OB_ERR_DOWN;
	return err->status;
}

/* The next open() begins behind what is committed; other members get the partitions at once. */
static void kafka_feed_give_back(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	(void)tags, (void)count;
	drop((struct kafka_feed *)base);
}

/* ---- the rest -------------------------------------------------------- */

static int kafka_feed_state(struct ob_feed *base, struct ob_feed_state *ret, struct ob_err *err)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;
	int64_t lag = 0;

	(void)err;
	for (size_t i = 0; feed->rk && i < feed->part_count; i++) {
		const struct part *part = &feed->parts[i];
		int64_t low = -1, high = -1;

		if (!part->ours ||
		    rd_kafka_get_watermark_offsets(feed->rk, feed->topic, part->number, &low,
						   &high) != RD_KAFKA_RESP_ERR_NO_ERROR)
			continue;
		if (high >= 0 && part->commit >= 0 && high > part->commit)
			lag += high - part->commit;
	}
	ret->lag = feed->rk ? lag : -1;
	return 0;
}

static void kafka_feed_close(struct ob_feed *base)
{
	struct kafka_feed *feed = (struct kafka_feed *)base;

	drop(feed);
	for (size_t i = 0; i < feed->part_count; i++)
		free(feed->parts[i].handed);
	free(feed->parts);
}

static void kafka_feed_describe(struct ob_feed *base, struct ob_buf *out)
{
	const struct kafka_feed *feed = (struct kafka_feed *)base;

	ob_buf_addf(out, "kafka %.200s topic %.200s group %.200s",
		    ((const struct kafka_sink *)base->link)->brokers, feed->topic,
		    feed->group ? feed->group : base->group);
}

static const char *const start_names[] = { "beginning", "end", NULL };

static const struct ob_opt kafka_feed_opts[] = {
	{
		.name = "topic",
		.type = OB_OPT_STR,
		.offset = offsetof(struct kafka_feed, topic),
		.flags = OB_OPT_REQUIRED,
		.help = "The topic to read.",
	},
	{
		.name = "group",
		.type = OB_OPT_STR,
		.offset = offsetof(struct kafka_feed, group),
		.help = "The consumer group; left out: the consumer's name.",
	},
	{
		.name = "start",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct kafka_feed, start),
		.dflt = "beginning",
		.choices = start_names,
		.help = "Where a group that is new begins.",
	},
	{
		.name = "max_poll",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct kafka_feed, max_poll_ms),
		.dflt = "5m",
		.min = 10000,
		.max = 86400000,
		.help = "max.poll.interval.ms: how long this process may be stuck before it loses "
			"its "
			"partitions; a slow handler does not count.",
	},
	{
		.name = "session",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct kafka_feed, session_ms),
		.dflt = "10s",
		.min = 1000,
		.max = 1800000,
		.help = "session.timeout.ms: how long a silent process keeps its partitions.",
	},
	OB_OPT_END,
};

static const char *const link_opts[] = { "brokers", "properties", NULL };

const struct ob_feed_ops ob_feed_kafka = {
	.name = "kafka",
	.caps = OB_FEED_PLACES,
	.size = sizeof(struct kafka_feed),
	.opts = kafka_feed_opts,
	.link = &ob_sink_kafka,
	.link_opts = link_opts,
	.poll_every_ms = POLL_MS,
	.open = kafka_feed_open,
	.seek = kafka_feed_seek,
	.poll = kafka_feed_poll,
	.ack = kafka_feed_ack,
	.give_back = kafka_feed_give_back,
	.state = kafka_feed_state,
	.close = kafka_feed_close,
	.describe = kafka_feed_describe,
};

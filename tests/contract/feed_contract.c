/* SPDX-License-Identifier: MIT */
/* The contract of feeds, on every source: what the sink of its kind wrote is read back. */
#include "doubles/memory_feed.h"
#include "feed/backends.h"
#include "sink_harness.h"

#include "config.h"
#if HAVE_RABBITMQ
#include "rabbitmq_server.h"
#endif

#include <stdlib.h>

enum { OPTIONS = 16, WAIT_MS = 200, TRIES = 300 };

/* What names the stream in each. */
static const struct feed_kind {
	const char *name;
	const struct ob_feed_ops *ops;
	const char *stream; /* the option; NULL: there is none */
	const char *value;  /* of it; NULL: each group has its own */
} kinds[] = {
	{ "memory", &ob_feed_memory, NULL, NULL },
#if HAVE_REDIS
	{ "redis", &ob_feed_redis, "stream", "orders" },
#endif
#if HAVE_KAFKA
	{ "kafka", &ob_feed_kafka, "topic", "orders" },
#endif
#if HAVE_RABBITMQ
	{ "rabbitmq", &ob_feed_rabbitmq, "queue", NULL },
#endif
#if HAVE_NATS
	{ "nats", &ob_feed_nats, "stream", "S1" },
#endif
};

/* A queue for each group, which gets all that the sink stores. */
static void make_queues(struct sink_env *env)
{
#if HAVE_RABBITMQ
	for (int i = 1; i < 10; i++) {
		char name[] = { 'g', (char)('0' + i), '\0' };

		rabbitmq_queue(env->peer, name, 0);
		rabbitmq_bind(env->peer, name, "contract", "");
		rabbitmq_purge(env->peer, name);
	}
#else
	(void)env;
#endif
}

struct box {
	struct sink_env env;
	struct ob_sink *sink;
	const struct feed_kind *kind;
};

static void box_init(struct box *box)
{
	sink_env_init(&box->env);
	box->sink = sink_make(&box->env);
	box->kind = NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, box->env.kind->name) == 0)
			box->kind = &kinds[i];
	}
	ck_assert_ptr_nonnull(box->kind);
	if (!box->kind->value && box->kind->stream)
		make_queues(&box->env);
	ob_memfeed_use(&box->env.log);
}

static void box_done(struct box *box)
{
	ob_sink_free(box->sink);
	sink_env_done(&box->env);
}

/* Store `count` messages of keys k0, k1, k2 in turn, numbered from `from` on. */
static void store(struct box *box, uint64_t from, uint64_t count)
{
	static const char *const names[] = { "k0", "k1", "k2" };
	struct tally tally = { 0 };
	struct parcel *parcels = calloc(count, sizeof(*parcels));
	char(*bodies)[32] = calloc(count, sizeof(*bodies));

	ck_assert(parcels && bodies);
	for (uint64_t i = 0; i < count; i++) {
		(void)snprintf(bodies[i], sizeof(bodies[i]), "{\"n\":%d}", (int)(from + i));
		parcel_init(&parcels[i], from + i, ob_str(names[(from + i) % 3]),
			    ob_str(bodies[i]));
		parcels[i].message.headers = OB_STR("{\"tenant\":\"a\"}");
		sink_push(box->sink, &parcels[i].delivery, &tally);
	}
	sink_drain(box->sink, &tally, count);
	ck_assert_uint_eq(tally.confirmed, count);
	free(parcels);
	free(bodies);
}

/* A feed with the sink's own connection. */
static struct ob_feed *make_feed(const struct box *box, const char *group, const char *stream)
{
	const struct ob_feed_ops *ops = box->kind->ops;
	struct ob_opt_value options[OPTIONS];
	struct ob_feed *feed = NULL;
	struct ob_err err = OB_ERR_INIT;
	size_t n = 0;

	for (const char *const *name = ops->link_opts; name && *name; name++) {
		const struct ob_opt *opt = ob_opt_find(box->sink->ops->opts, *name);
		const char *value =
			opt->type == OB_OPT_STR
				? *(char *const *)((const char *)box->sink + opt->offset)
				: NULL;

		if (value)
			options[n++] = (struct ob_opt_value){ *name, value };
	}
	if (box->kind->stream)
		options[n++] = (struct ob_opt_value){ box->kind->stream, stream };
	const struct ob_feed_conf conf = { .ops = ops,
					   .options = options,
					   .option_count = n,
					   .group = group,
					   .member = "outbox",
					   .sole = true };
	ck_assert_msg(ob_feed_new(&conf, &ob_clock_system, &feed, &err) == 0, "%s", err.msg);
	return feed;
}

static struct ob_feed *open_feed(const struct box *box, const char *group)
{
	struct ob_feed *feed = make_feed(box, group, box->kind->value ? box->kind->value : group);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_feed_open(feed, &err) == 0, "%s", err.msg);
	return feed;
}

struct got {
	uint64_t tags[1000], n[1000];
	char key[1000][8];
	struct ob_feed_place place[1000];
	char part[1000][64];
	size_t count;
};

static void note(struct got *got, const struct ob_feed_entry *e)
{
	char id[OB_UUID_TEXT_SIZE];

	ck_assert_msg(!e->fault.p, "%.*s", (int)e->fault.n, e->fault.p);
	ob_uuid_format(&e->message.id, id);
	got->tags[got->count] = e->tag;
	got->n[got->count] = strtoull(id + 24, NULL, 16);
	got->place[got->count] = e->place;
	(void)snprintf(got->key[got->count], 8, "%.*s", (int)e->message.key.n, e->message.key.p);
	(void)snprintf(got->part[got->count], 64, "%.*s", (int)e->part.n, e->part.p);
	got->count++;
}

/* Until `count` entries are here. */
static void read_entries(struct ob_feed *feed, size_t count, struct got *got)
{
	struct ob_feed_batch batch = OB_FEED_BATCH_INIT;
	struct ob_err err = OB_ERR_INIT;

	*got = (struct got){ .count = 0 };
	for (int i = 0; i < TRIES && got->count < count; i++) {
		ck_assert_msg(ob_feed_poll(feed, WAIT_MS, 50, &batch, &err) == 0, "%s", err.msg);
		ck_assert_uint_le(batch.count, 50);
		for (size_t k = 0; k < batch.count; k++)
			note(got, &batch.entries[k]);
	}
	ck_assert_uint_ge(got->count, count);
	ob_feed_batch_done(&batch);
}

/* A source that knows only how far it is in each part gives more again, but never less. */
static bool knows_each(const struct box *box)
{
	return box->kind->ops->caps & OB_FEED_STABLE_TAGS;
}

static bool has(const struct got *got, uint64_t n)
{
	for (size_t i = 0; i < got->count; i++) {
		if (got->n[i] == n)
			return true;
	}
	return false;
}

static void expect_none(struct ob_feed *feed)
{
	struct ob_feed_batch batch = OB_FEED_BATCH_INIT;
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < 3; i++) {
		ck_assert_msg(ob_feed_poll(feed, WAIT_MS, 50, &batch, &err) == 0, "%s", err.msg);
		ck_assert_uint_eq(batch.count, 0);
	}
	ob_feed_batch_done(&batch);
}

static void ack(struct ob_feed *feed, const uint64_t *tags, size_t count)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_feed_ack(feed, tags, count, &err) == 0, "%s", err.msg);
}

/* Each number once, and the numbers of a key ascend. */
static void expect_order(const struct got *got, uint64_t from, size_t count)
{
	uint64_t last[3] = { 0 }, sum = 0;

	ck_assert_uint_eq(got->count, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t n = got->n[i];

		ck_assert_uint_ge(n, from);
		ck_assert_uint_lt(n, from + count);
		ck_assert_uint_gt(n + 1, last[n % 3]);
		ck_assert_int_eq(got->key[i][1], (char)('0' + n % 3));
		last[n % 3] = n + 1;
		sum += n;
	}
	ck_assert_uint_eq(sum, count * from + count * (count - 1) / 2);
}

/* ---- cases ----------------------------------------------------------- */

OB_TEST(what_the_sink_stored_is_read_in_order_of_its_keys)
{
	struct box box;
	static struct got got;

	box_init(&box);
	store(&box, 1, 120);
	struct ob_feed *feed = open_feed(&box, "g1");
	read_entries(feed, 120, &got);
	expect_order(&got, 1, 120);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(a_message_comes_back_with_all_its_fields)
{
	struct ob_feed_batch batch = OB_FEED_BATCH_INIT;
	struct ob_err err = OB_ERR_INIT;
	struct box box;

	box_init(&box);
	store(&box, 7, 1);
	struct ob_feed *feed = open_feed(&box, "g2");
	for (int i = 0; i < TRIES && batch.count == 0; i++)
		ck_assert_msg(ob_feed_poll(feed, WAIT_MS, 1, &batch, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(batch.count, 1);
	const struct ob_feed_entry *e = &batch.entries[0];
	ck_assert(ob_str_eq(e->message.key, OB_STR("k1")));
	ck_assert(ob_str_eq(e->message.payload, OB_STR("{\"n\":7}")));
	ck_assert(ob_str_eq(e->message.headers, OB_STR("{\"tenant\":\"a\"}")));
	if (box.kind->ops != &ob_feed_memory) {
		ck_assert(ob_str_eq(e->message.event_type, OB_STR("OrderPlaced")));
		ck_assert(ob_str_eq(e->message.aggregate_type, OB_STR("order")));
		ck_assert(ob_str_eq(e->message.aggregate_id, OB_STR("1042")));
		ck_assert_int_eq(e->message.occurred_at_us, 1700000000123456);
	}
	ck_assert_int_eq(e->message.revision, 1);
	ck_assert(e->tag != 0 && e->part.p && e->where.n > 0 && e->where.n <= 480);
	ob_feed_batch_done(&batch);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(what_is_not_acknowledged_comes_again_to_the_next_and_the_rest_does_not)
{
	struct box box;
	static struct got got, again;

	box_init(&box);
	store(&box, 1, 30);
	struct ob_feed *feed = open_feed(&box, "g3");
	read_entries(feed, 30, &got);
	/* Those of the first ten numbers, in whichever partition. */
	for (size_t i = 0; i < 30; i++) {
		if (got.n[i] <= 10)
			ack(feed, &got.tags[i], 1);
	}
	ob_feed_free(feed);
	feed = open_feed(&box, "g3");
	read_entries(feed, 20, &again);
	if (knows_each(&box))
		expect_order(&again, 11, 20);
	for (uint64_t n = 11; n <= 30; n++)
		ck_assert(has(&again, n));
	ack(feed, again.tags, again.count);
	ack(feed, again.tags, again.count); /* twice is as good as once */
	expect_none(feed);
	ob_feed_free(feed);
	feed = open_feed(&box, "g3");
	expect_none(feed);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(an_acknowledgement_passes_nothing_that_has_none)
{
	struct box box;
	static struct got got, again;

	box_init(&box);
	store(&box, 1, 30);
	struct ob_feed *feed = open_feed(&box, "g4");
	read_entries(feed, 30, &got);
	/* All but the very first of each key. */
	for (size_t i = 0; i < 30; i++) {
		if (got.n[i] > 3)
			ack(feed, &got.tags[i], 1);
	}
	ob_feed_free(feed);
	feed = open_feed(&box, "g4");
	read_entries(feed, 3, &again);
	for (uint64_t n = 1; n <= 3; n++)
		ck_assert(has(&again, n));
	ck_assert(!knows_each(&box) || again.count == 3);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(groups_do_not_see_each_other)
{
	struct box box;
	static struct got got;

	box_init(&box);
	store(&box, 1, 20);
	struct ob_feed *one = open_feed(&box, "g5"), *two = open_feed(&box, "g6");
	read_entries(one, 20, &got);
	ack(one, got.tags, 20);
	expect_none(one);
	read_entries(two, 20, &got);
	expect_order(&got, 1, 20);
	ob_feed_free(one);
	ob_feed_free(two);
	box_done(&box);
}
OB_TEST_END

OB_TEST(with_room_for_none_nothing_is_handed_out)
{
	struct ob_feed_batch batch = OB_FEED_BATCH_INIT;
	struct ob_err err = OB_ERR_INIT;
	struct box box;
	static struct got got;

	box_init(&box);
	store(&box, 1, 10);
	struct ob_feed *feed = open_feed(&box, "g7");
	for (int i = 0; i < 20; i++) {
		ck_assert_msg(ob_feed_poll(feed, 10, 0, &batch, &err) == 0, "%s", err.msg);
		ck_assert_uint_eq(batch.count, 0);
	}
	read_entries(feed, 10, &got);
	expect_order(&got, 1, 10);
	ob_feed_batch_done(&batch);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(a_position_wins_over_what_the_source_has_recorded)
{
	struct box box;
	struct ob_err err = OB_ERR_INIT;
	static struct got got, again;
	struct ob_str parts[64];
	struct ob_feed_place places[64];
	size_t count = 0, behind = 0;

	box_init(&box);
	if (!(box.kind->ops->caps & OB_FEED_PLACES))
		return;
	store(&box, 1, 30);
	struct ob_feed *feed = open_feed(&box, "g8");
	read_entries(feed, 30, &got);
	ack(feed, got.tags, 30);
	ob_feed_free(feed);
	/* In every part: behind its first entry. */
	for (size_t i = 0; i < 30; i++) {
		size_t p = 0;

		while (p < count && !ob_str_eq(parts[p], ob_str(got.part[i])))
			p++;
		if (p < count)
			behind++;
		else {
			parts[count] = ob_str(got.part[i]);
			places[count++] = got.place[i];
		}
	}
	feed = open_feed(&box, "g8");
	ck_assert_msg(ob_feed_seek(feed, parts, places, count, &err) == 0, "%s", err.msg);
	read_entries(feed, behind, &again);
	for (size_t i = 0; i < behind; i++) {
		for (size_t k = 0; k < count; k++)
			ck_assert(!ob_str_eq(parts[k], ob_str(again.part[i])) ||
				  places[k].major < again.place[i].major ||
				  places[k].minor < again.place[i].minor);
	}
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

/* As when the lease is lost: everything is given back, in no order, and then comes again in order.
 */
OB_TEST(what_is_given_back_comes_again_in_order)
{
	struct ob_err err = OB_ERR_INIT;
	struct box box;
	static struct got got, again;

	box_init(&box);
	store(&box, 1, 60);
	struct ob_feed *feed = open_feed(&box, "g1");
	read_entries(feed, 30, &got);
	for (size_t i = 0; i < got.count; i++) {
		if (i % 3 != 0)
			ob_feed_give_back(feed, &got.tags[i], 1);
	}
	for (size_t i = 0; i < got.count; i += 3)
		ob_feed_give_back(feed, &got.tags[i], 1);
	ck_assert_msg(ob_feed_open(feed, &err) == 0, "%s", err.msg);
	read_entries(feed, 60, &again);
	expect_order(&again, 1, 60);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

OB_TEST(a_state_and_a_description_are_always_to_be_had)
{
	struct ob_buf text = OB_BUF_INIT(1000);
	struct ob_err err = OB_ERR_INIT;
	struct ob_feed_state state;
	struct box box;
	static struct got got;

	box_init(&box);
	store(&box, 1, 5);
	struct ob_feed *feed = open_feed(&box, "g9");
	read_entries(feed, 5, &got);
	ack(feed, got.tags, 5);
	ck_assert_msg(ob_feed_state(feed, &state, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(state.lag, 0);
	ob_feed_describe(feed, &text);
	ck_assert_uint_gt(text.len, 0);
	ob_buf_done(&text);
	ob_feed_free(feed);
	box_done(&box);
}
OB_TEST_END

SINK_SUITE("feed", what_the_sink_stored_is_read_in_order_of_its_keys,
	   a_message_comes_back_with_all_its_fields,
	   what_is_not_acknowledged_comes_again_to_the_next_and_the_rest_does_not,
	   an_acknowledgement_passes_nothing_that_has_none, groups_do_not_see_each_other,
	   with_room_for_none_nothing_is_handed_out,
	   a_position_wins_over_what_the_source_has_recorded,
	   what_is_given_back_comes_again_in_order, a_state_and_a_description_are_always_to_be_had)

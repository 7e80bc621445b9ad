/* SPDX-License-Identifier: MIT */
/* Workers that only count in the shares, so that the others let go. */
#include "cli/operate/standins.h"

enum { ARENA_MAX = 1 << 20 };

struct ob_standins_reader {
	const char *name;
	uint32_t joined;
};

/* The lowest ids there are, but nil: random ones of workers come behind them. */
static struct ob_uuid standin_id(uint32_t index)
{
	struct ob_uuid id = { { 0 } };

	id.b[14] = (uint8_t)((index + 1) >> 8);
	id.b[15] = (uint8_t)(index + 1);
	return id;
}

static int join_one(const struct ob_standins *s, struct ob_standins_reader *reader, int64_t ttl_ms,
		    struct ob_err *err)
{
	const struct ob_worker standin = {
		.id = standin_id(reader->joined),
		.reader = ob_str(reader->name),
		.hostname = OB_STR("resizing"),
		.pid = (int32_t)getpid(),
	};
	int r = ob_store_beat(s->store, &standin, ttl_ms, err);

	if (r == 0)
		reader->joined++;
	return r;
}

int ob_standins_join(struct ob_standins *s, struct ob_store *store, const struct ob_owners *owners,
		     int64_t ttl_ms, struct ob_err *err)
{
	struct ob_str last = OB_STR_NULL, name;
	int r = 0;

	*s = (struct ob_standins){ .store = store, .arena = OB_ARENA_INIT(ARENA_MAX) };
	if (owners->partition_count == 0)
		return 0;
	s->readers = ob_arena_alloc(&s->arena, owners->partition_count * sizeof(*s->readers));
	if (!s->readers)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "asking workers to let go");

	/* Lease rows come by reader, one for each partition. */
	for (size_t i = 0; i < owners->partition_count && r == 0; i++) {
		if (!ob_str_eq(owners->partitions[i].reader, last)) {
			last = owners->partitions[i].reader;
			/* The copy has a NUL behind it. */
			if (!ob_arena_copy(&s->arena, last, &name))
				return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL,
						  "asking workers to let go");
			s->readers[s->count++].name = name.p;
		}
		r = join_one(s, &s->readers[s->count - 1], ttl_ms, err);
	}
	return r;
}

void ob_standins_done(struct ob_standins *s)
{
	struct ob_err ignored = OB_ERR_INIT;

	for (size_t t = 0; t < s->count; t++) {
		for (uint32_t i = 0; i < s->readers[t].joined; i++) {
			const struct ob_uuid id = standin_id(i);

			(void)ob_store_leave(s->store, s->readers[t].name, &id, &ignored);
		}
	}
	ob_arena_done(&s->arena);
}

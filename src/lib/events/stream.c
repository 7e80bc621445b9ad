/* SPDX-License-Identifier: MIT */
/* The names of a stream, what is known of it, and its end. */
#include "lib/events/stream.h"
#include "base/utf8.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <inttypes.h>

static int check_name(const char *what, const char *name, int missing, struct outbox_error *err)
{
	struct ob_str s = ob_str(name);

	if (s.n == 0)
		return ob_fail(err, missing, OUTBOX_NO_INDEX, "the stream has no %s", what);
	if (!ob_utf8_valid(s))
		return ob_fail(err, OUTBOX_ETEXT, OUTBOX_NO_INDEX,
			       "the stream's %s is not valid UTF-8", what);
	if (s.n > OUTBOX_TEXT_MAX && ob_utf8_count(s) > OUTBOX_TEXT_MAX)
		return ob_fail(err, OUTBOX_ETOOLONG, OUTBOX_NO_INDEX,
			       "the stream's %s is longer than %d characters", what,
			       OUTBOX_TEXT_MAX);
	return 0;
}

int ob_stream_key(const struct outbox_stream *stream, struct ob_stream_key *ret,
		  struct outbox_error *err)
{
	if (!stream)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "stream is NULL");
	*ret = (struct ob_stream_key){
		.target = stream->target ? stream->target : "default",
		.type = stream->type,
		.id = stream->id,
	};
	int r = check_name("type", ret->type, OUTBOX_EAGGREGATETYPE, err);
	if (r == 0)
		r = check_name("id", ret->id, OUTBOX_EINVAL, err);
	return r < 0 ? r : check_name("target", ret->target, OUTBOX_EINVAL, err);
}

static int look(outbox *ob, const struct outbox_stream *stream, struct ob_stream_key *ret_key,
		struct ob_stream_state *ret, struct outbox_error *err)
{
	if (!ob)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	int r = ob_stream_key(stream, ret_key, err);
	return r < 0 ? r : ob->ops->look_stream(ob->driver, ret_key, ret, err);
}

int outbox_stream_look(outbox *ob, const struct outbox_stream *stream,
		       struct outbox_stream_info *ret_info, struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_stream_key key;
	struct ob_stream_state state;
	int r = look(ob, stream, &key, &state, err ? err : &unused);

	if (r < 0)
		return r;
	ret_info->version = state.version;
	ret_info->first_version = state.first_version;
	ret_info->end = (enum outbox_stream_end)state.end;
	return 0;
}

/* The state of a stream that may still be changed, inside the caller's transaction. */
static int look_to_change(outbox *ob, const struct outbox_stream *stream,
			  struct ob_stream_key *ret_key, struct ob_stream_state *ret,
			  struct outbox_error *err)
{
	int r = look(ob, stream, ret_key, ret, err);

	if (r < 0)
		return r;
	if (!ob->ops->in_transaction(ob->driver))
		return ob_fail(err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			       "no transaction is open on this connection: begin one, write, "
			       "commit");
	if (ret->end == OUTBOX_STREAM_TOMBSTONED)
		return ob_fail(err, OUTBOX_EENDED, OUTBOX_NO_INDEX,
			       "stream '%.60s' of '%.60s' is tombstoned: that is for ever",
			       ret_key->id, ret_key->type);
	return 0;
}

int outbox_stream_set_end(outbox *ob, const struct outbox_stream *stream,
			  enum outbox_stream_end end, struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_stream_key key;
	struct ob_stream_state state;

	if (!err)
		err = &unused;
	if ((int)end < OUTBOX_STREAM_OPEN || (int)end > OUTBOX_STREAM_TOMBSTONED)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no end %d", (int)end);
	int r = look_to_change(ob, stream, &key, &state, err);
	if (r == OUTBOX_EENDED && end == OUTBOX_STREAM_TOMBSTONED)
		return 0;
	if (r < 0)
		return r;
	state.end = end;
	if (end == OUTBOX_STREAM_OPEN)
		state.first_version = 1;
	return ob->ops->keep_stream(ob->driver, &key, &state, err);
}

int outbox_stream_truncate(outbox *ob, const struct outbox_stream *stream, int64_t first_version,
			   struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_stream_key key;
	struct ob_stream_state state;

	if (!err)
		err = &unused;
	int r = look_to_change(ob, stream, &key, &state, err);
	if (r < 0)
		return r;
	/* One past the last: nothing is left to read, and the next event is read. */
	if (first_version < 1 || first_version > state.version + 1)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "version %" PRId64 " is not between 1 and %" PRId64
			       ", one past the last of stream '%.60s' of '%.60s'",
			       first_version, state.version + 1, key.id, key.type);
	state.first_version = first_version;
	return ob->ops->keep_stream(ob->driver, &key, &state, err);
}

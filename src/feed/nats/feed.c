/* SPDX-License-Identifier: MIT */
/*
 * A pull consumer of a JetStream stream, durable under the group's name. Acknowledgements are
 * explicit. A message that takes long is told to be in progress (touch), so that ack_wait does not
 * hand it out again; the number of deliveries is not limited, because a limit reached is a message
 * that nobody tells of.
 */
#include "feed/backends.h"
#include "feed/nats/nats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

enum { START_BEGINNING, START_END, FETCH_MIN_MS = 10, PING_MS = 20000, ACK_PENDING = 10000 };

const char *ob_nats_durable(const struct nats_feed *feed)
{
	return feed->durable ? feed->durable : feed->base.group;
}

static void drop(struct nats_feed *feed)
{
	for (size_t i = 0; i < feed->count; i++)
		natsMsg_Destroy(feed->held[i].msg);
	feed->count = 0;
	ob_nats_gate_clear(&feed->gate);
	natsSubscription_Destroy(feed->sub);
	jsCtx_Destroy(feed->js);
	natsConnection_Destroy(feed->nc);
	feed->sub = NULL;
	feed->js = NULL;
	feed->nc = NULL;
}

static int failed(struct nats_feed *feed, natsStatus status, const char *doing, struct ob_err *err)
{
	(void)ob_nats_status(status, nats_GetLastError(NULL), err);
	if (err->kind != OB_ERR_FATAL)
		err->kind = OB_ERR_DOWN;
	if (natsConnection_IsClosed(feed->nc) || status == NATS_CONNECTION_CLOSED)
		drop(feed);
	return ob_err_context(err, "%s", doing);
}

/* ---- opening --------------------------------------------------------- */

static int connect_feed(struct nats_feed *feed, struct ob_err *err)
{
	struct nats_sink *link = (struct nats_sink *)feed->base.link;
	natsOptions *options = NULL;
	/* The sink's own connection tells best what is wrong; then the library's threads read. */
	int r = ob_sink_open(feed->base.link, err);

	ob_nats_conn_drop(link);
	if (r == 0)
		r = ob_nats_options_make(link, link->connect_timeout_ms, &options, err);
	if (r < 0)
		return r;
	natsStatus s = natsOptions_SetPingInterval(options, PING_MS);
	if (s == NATS_OK)
		s = natsConnection_Connect(&feed->nc, options);
	natsOptions_Destroy(options);
	if (s == NATS_OK)
		s = natsConnection_JetStream(&feed->js, feed->nc, NULL);
	if (s == NATS_OK)
		return 0;
	r = failed(feed, s, "connecting", err);
	drop(feed);
	return r;
}

/* Make the consumer if it is not there; one that is there stays as it is. */
static natsStatus make_consumer(struct nats_feed *feed, jsErrCode *code)
{
	jsConsumerInfo *info = NULL;
	jsConsumerConfig conf;
	natsStatus s = js_GetConsumerInfo(&info, feed->js, feed->stream, ob_nats_durable(feed),
					  NULL, code);

	if (s == NATS_NOT_FOUND && *code == JSConsumerNotFoundErr) {
		(void)jsConsumerConfig_Init(&conf);
		conf.Durable = ob_nats_durable(feed);
		conf.AckPolicy = js_AckExplicit;
		conf.AckWait = feed->ack_wait_ms * 1000000;
		conf.MaxAckPending = ACK_PENDING;
		conf.MaxDeliver = -1;
		conf.FilterSubject = feed->subject;
		conf.DeliverPolicy = feed->start == START_END ? js_DeliverNew : js_DeliverAll;
		s = js_AddConsumer(&info, feed->js, feed->stream, &conf, NULL, code);
	}
	if (s == NATS_OK && feed->base.sole)
		ob_nats_gate_close(feed, info);
	jsConsumerInfo_Destroy(info);
	return s;
}

static natsStatus subscribe(struct nats_feed *feed, jsErrCode *code)
{
	jsStreamInfo *info = NULL;
	jsSubOptions options;
	natsStatus s = js_GetStreamInfo(&info, feed->js, feed->stream, NULL, code);

	if (s == NATS_OK) {
		const char *subject = feed->subject               ? feed->subject
				      : info->Config->SubjectsLen ? info->Config->Subjects[0]
								  : ">";

		(void)jsSubOptions_Init(&options);
		options.Stream = feed->stream;
		options.Consumer = ob_nats_durable(feed);
		options.ManualAck = true;
		s = js_PullSubscribe(&feed->sub, feed->js, subject, ob_nats_durable(feed), NULL,
				     &options, code);
	}
	jsStreamInfo_Destroy(info);
	return s;
}

static int nats_feed_open(struct ob_feed *base, struct ob_err *err)
{
	struct nats_feed *feed = (struct nats_feed *)base;
	jsErrCode code = 0;
	int r = feed->nc ? 0 : connect_feed(feed, err);

	if (r < 0 || feed->sub)
		return r;
	natsStatus s = make_consumer(feed, &code);
	if (s == NATS_OK)
		s = subscribe(feed, &code);
	if (s == NATS_OK)
		return 0;
	if (code == JSStreamNotFoundErr)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "stream '%.150s' does not exist: add it", feed->stream);
	return failed(feed, s, "subscribing", err);
}

/* ---- reading --------------------------------------------------------- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undo the encoding of the sink's headers: %XX is a byte. */
static bool decode(const char *text, struct ob_arena *arena, struct ob_str *ret)
{
	size_t n = strlen(text), at = 0;
	char *out = ob_arena_alloc(arena, n + 1);

	if (!out)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool coded = text[i] == '%' && i + 2 < n && hex(text[i + 1]) >= 0 &&
			     hex(text[i + 2]) >= 0;

		unsigned char byte =
			(unsigned char)(coded ? hex(text[i + 1]) * 16 + hex(text[i + 2]) : 0);

		memcpy(out + at++, coded ? (const void *)&byte : text + i, 1);
		i += coded ? 2 : 0;
	}
	*ret = (struct ob_str){ out, at };
	return true;
}

/* "outbox-event-type" is our field event_type; "outbox-header-x" is the user's x. */
static bool field_name(const char *header, struct ob_arena *arena, struct ob_str *ret)
{
	if (strcasecmp(header, "Nats-Msg-Id") == 0) {
		*ret = OB_STR("id");
		return true;
	}
	if (strncasecmp(header, "outbox-header-", 14) == 0)
		return decode(header + 14, arena, ret);
	if (strncasecmp(header, "outbox-", 7) != 0)
		return decode(header, arena, ret);
	return ob_feed_entry_own_name(ob_str(header), arena, ret);
}

static bool read_headers(natsMsg *msg, struct ob_arena *arena, struct ob_feed_draft *draft)
{
	const char **names = NULL, *value = NULL;
	int count = 0;
	bool ok = true;

	if (natsMsgHeader_Keys(msg, &names, &count) != NATS_OK)
		return true;
	for (int i = 0; i < count && ok; i++) {
		struct ob_str name, text;

		if (natsMsgHeader_Get(msg, names[i], &value) != NATS_OK ||
		    (strncasecmp(names[i], "Nats-", 5) == 0 &&
		     strcasecmp(names[i], "Nats-Msg-Id") != 0))
			continue;
		ok = field_name(names[i], arena, &name) && decode(value, arena, &text);
		if (ok)
			ob_feed_entry_field(draft, name, text);
	}
	free(names);
	return ok;
}

static bool hold(struct nats_feed *feed, natsMsg *msg, uint64_t *ret_tag)
{
	if (feed->count == feed->room) {
		size_t room = feed->room ? feed->room * 2 : 256;
		struct ob_nats_held *more = realloc(feed->held, room * sizeof(*more));

		if (!more)
			return false;
		feed->held = more;
		feed->room = room;
	}
	*ret_tag = ++feed->last_tag;
	feed->held[feed->count++] = (struct ob_nats_held){ *ret_tag, msg };
	return true;
}

/* The message is the feed's afterwards, or destroyed. */
static bool take_msg(struct nats_feed *feed, natsMsg *msg, struct ob_feed_batch *batch)
{
	struct ob_feed_entry *entry = &batch->entries[batch->count];
	struct ob_str body = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) };
	jsMsgMetaData *meta = NULL;
	struct ob_feed_draft draft;
	char where[300];

	*entry = (struct ob_feed_entry){ .tag = 0 };
	if (natsMsg_GetMetaData(&meta, msg) == NATS_OK) {
		entry->place.major = meta->Sequence.Stream;
		entry->deliveries = (uint32_t)meta->NumDelivered;
		if (feed->gate.last_seq < meta->Sequence.Stream)
			feed->gate.last_seq = meta->Sequence.Stream;
	}
	jsMsgMetaData_Destroy(meta);
	(void)snprintf(where, sizeof(where), "%.200s %" PRIu64, feed->stream, entry->place.major);
	ob_feed_entry_begin(&draft, entry);
	bool ok = read_headers(msg, &batch->arena, &draft) &&
		  ob_arena_copy(&batch->arena, ob_str(feed->stream), &entry->part) &&
		  ob_arena_copy(&batch->arena, ob_str(where), &entry->where);
	if (ok && !draft.tombstone)
		ok = ob_arena_copy(&batch->arena, body.n ? body : OB_STR(""),
				   &entry->message.payload);
	ok = ob_feed_entry_finish(&draft, &batch->arena) && ok && hold(feed, msg, &entry->tag);
	if (ok)
		batch->count++;
	else
		natsMsg_Destroy(msg);
	return ok;
}

/* The messages are the feed's afterwards; what it cannot keep comes again after ack_wait. */
static int take_list(struct nats_feed *feed, natsMsgList *list, struct ob_feed_batch *batch,
		     struct ob_err *err)
{
	bool ok = true;

	batch->entries =
		ob_arena_alloc(&batch->arena, (size_t)(list->Count + 1) * sizeof(*batch->entries));
	for (int i = 0; i < list->Count; i++) {
		natsMsg *msg = list->Msgs[i];

		list->Msgs[i] = NULL;
		ok = ok && batch->entries;
		if (!ok)
			natsMsg_Destroy(msg);
		else
			ok = take_msg(feed, msg, batch);
	}
	return ok ? 0
		  : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for entries of nats");
}

static int nats_feed_poll(struct ob_feed *base, int timeout_ms, uint32_t max,
			  struct ob_feed_batch *batch, struct ob_err *err)
{
	struct nats_feed *feed = (struct nats_feed *)base;
	natsMsgList list = { 0 };
	jsErrCode code = 0;

	if (!feed->sub)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "nats is not connected");
	if (natsConnection_IsClosed(feed->nc)) {
		drop(feed);
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "nats has closed the connection");
	}
	if (max == 0)
		return 0;
	if (timeout_ms < FETCH_MIN_MS)
		timeout_ms = FETCH_MIN_MS;
	natsStatus s = ob_nats_gate_step(feed, timeout_ms);
	if (s == NATS_OK && feed->gate.closed)
		return 0;
	if (s == NATS_OK && !ob_nats_gate_take(feed, max, &list))
		s = natsSubscription_Fetch(&list, feed->sub, (int)max, timeout_ms, &code);
	if (s == NATS_TIMEOUT)
		return 0;
	if (s != NATS_OK)
		return failed(feed, s, "reading the stream", err);
	int r = take_list(feed, &list, batch, err);
	natsMsgList_Destroy(&list);
	return r;
}

/* ---- acknowledging --------------------------------------------------- */

static struct ob_nats_held *find(struct nats_feed *feed, uint64_t tag)
{
	size_t low = 0, high = feed->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (feed->held[mid].tag < tag)
			low = mid + 1;
		else
			high = mid;
	}
	return low < feed->count && feed->held[low].tag == tag ? &feed->held[low] : NULL;
}

static void forget(struct nats_feed *feed)
{
	size_t kept = 0;

	for (size_t i = 0; i < feed->count; i++) {
		if (feed->held[i].msg)
			feed->held[kept++] = feed->held[i];
	}
	feed->count = kept;
}

static int nats_feed_ack(struct ob_feed *base, const uint64_t *tags, size_t count,
			 struct ob_err *err)
{
	struct nats_feed *feed = (struct nats_feed *)base;
	natsStatus s = NATS_OK;

	for (size_t i = 0; i < count && s == NATS_OK; i++) {
		struct ob_nats_held *held = find(feed, tags[i]);

		if (!held || !held->msg)
			continue;
		s = natsMsg_Ack(held->msg, NULL);
		if (s != NATS_OK)
			break;
		natsMsg_Destroy(held->msg);
		held->msg = NULL;
	}
	forget(feed);
	if (s == NATS_OK && feed->nc)
		s = natsConnection_FlushTimeout(feed->nc,
						((struct nats_sink *)base->link)->timeout_ms);
	return s == NATS_OK ? 0 : failed(feed, s, "acknowledging", err);
}

/* All of them, in the order of the stream, in which they come again: single ones would come behind
 * later ones of their key. */
static void give_all_back(struct nats_feed *feed)
{
	for (size_t i = 0; i < feed->count; i++) {
		(void)natsMsg_Nak(feed->held[i].msg, NULL);
		natsMsg_Destroy(feed->held[i].msg);
		feed->held[i].msg = NULL;
	}
	forget(feed);
	ob_nats_gate_give_back(&feed->gate);
	/* The server may take up what we ask for next before it has taken them back. */
	feed->gate.closed = feed->base.sole;
}

static void nats_feed_give_back(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	struct nats_feed *feed = (struct nats_feed *)base;

	for (size_t i = 0; i < count; i++) {
		if (find(feed, tags[i])) {
			give_all_back(feed);
			return;
		}
	}
}

static void nats_feed_touch(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	struct nats_feed *feed = (struct nats_feed *)base;

	for (size_t i = 0; i < count; i++) {
		struct ob_nats_held *held = find(feed, tags[i]);

		if (held && held->msg)
			(void)natsMsg_InProgress(held->msg, NULL);
	}
}

/* ---- the rest -------------------------------------------------------- */

static int nats_feed_state(struct ob_feed *base, struct ob_feed_state *ret, struct ob_err *err)
{
	struct nats_feed *feed = (struct nats_feed *)base;
	jsConsumerInfo *info = NULL;
	jsStreamInfo *stream = NULL;
	jsErrCode code = 0;

	if (!feed->js)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "nats is not connected");
	natsStatus s = js_GetConsumerInfo(&info, feed->js, feed->stream, ob_nats_durable(feed),
					  NULL, &code);
	if (s == NATS_OK)
		s = js_GetStreamInfo(&stream, feed->js, feed->stream, NULL, &code);
	if (s == NATS_OK) {
		ret->lag = (int64_t)info->NumPending + info->NumAckPending;
		ret->retention_ms =
			stream->Config->MaxAge > 0 ? stream->Config->MaxAge / 1000000 : -1;
	}
	jsConsumerInfo_Destroy(info);
	jsStreamInfo_Destroy(stream);
	return s == NATS_OK ? 0 : failed(feed, s, "asking for the consumer", err);
}

static int nats_feed_check(struct ob_feed *base, struct ob_err *err)
{
	const struct nats_feed *feed = (struct nats_feed *)base;

	if (strpbrk(ob_nats_durable(feed), ".*> \t"))
		return ob_err_set(
			err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			"the name of a nats consumer has no dots, spaces or wildcards: set "
			"the option durable");
	return 0;
}

static void nats_feed_close(struct ob_feed *base)
{
	struct nats_feed *feed = (struct nats_feed *)base;

	/* What has no acknowledgement comes again at once, not after ack_wait. */
	give_all_back(feed);
	if (feed->nc)
		(void)natsConnection_FlushTimeout(feed->nc, 1000);
	drop(feed);
	free(feed->held);
	free(feed->gate.list);
}

static void nats_feed_describe(struct ob_feed *base, struct ob_buf *out)
{
	const struct nats_feed *feed = (struct nats_feed *)base;

	ob_sink_describe(base->link, out);
	ob_buf_addf(out, " stream %.200s consumer %.200s", feed->stream, ob_nats_durable(feed));
}

static const char *const start_names[] = { "beginning", "end", NULL };

static const struct ob_opt nats_feed_opts[] = {
	{
		.name = "stream",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_feed, stream),
		.flags = OB_OPT_REQUIRED,
		.help = "The JetStream stream to read.",
	},
	{
		.name = "subject",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_feed, subject),
		.help = "Only messages of this subject; left out: all of the stream.",
	},
	{
		.name = "durable",
		.type = OB_OPT_STR,
		.offset = offsetof(struct nats_feed, durable),
		.help = "The durable consumer; left out: the consumer's name.",
	},
	{
		.name = "start",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct nats_feed, start),
		.dflt = "beginning",
		.choices = start_names,
		.help = "Where a consumer that is new begins.",
	},
	{
		.name = "ack_wait",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct nats_feed, ack_wait_ms),
		.dflt = "60s",
		.min = 1000,
		.max = 86400000,
		.help = "How long a silent process keeps messages; while it lives they are kept in "
			"progress.",
	},
	OB_OPT_END,
};

static const char *const link_opts[] = {
	"url",        "username",     "password",        "token",    "creds",
	"nkey",       "nkey_seed",    "tls_ca",          "tls_cert", "tls_key",
	"tls_verify", "inbox_prefix", "connect_timeout", "timeout",  NULL
};

const struct ob_feed_ops ob_feed_nats = {
	.name = "nats",
	.size = sizeof(struct nats_feed),
	.opts = nats_feed_opts,
	.link = &ob_sink_nats,
	.link_opts = link_opts,
	.check = nats_feed_check,
	.open = nats_feed_open,
	.poll = nats_feed_poll,
	.ack = nats_feed_ack,
	.give_back = nats_feed_give_back,
	.touch = nats_feed_touch,
	.state = nats_feed_state,
	.close = nats_feed_close,
	.describe = nats_feed_describe,
};

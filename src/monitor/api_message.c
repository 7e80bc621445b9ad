/* SPDX-License-Identifier: MIT */
/* One message with its payload, and what each reader says of it. */
#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "monitor/api.h"
#include "monitor/mask.h"
#include "monitor/routes.h"
#include "operate/lookup.h"
#include "operate/verbs.h"
#include "operate/why.h"

#include <microhttpd.h>
#include <stdio.h>

enum { CUT = 256 << 10, KEY_ROWS = 1000, LINE_MAX_BYTES = 8192 };

#define BIT(view) (1U << OB_VIEW_##view)

static const char *const modes[] = { "shown", "masked", "hidden" };

/* ---- payload and headers --------------------------------------------- */

/* Between two characters. */
static struct ob_str cut_text(struct ob_str text)
{
	if (text.n <= CUT)
		return text;
	text.n = CUT;
	while (text.n && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
		text.n--;
	return text;
}

static void payload_text(struct ob_jout *j, struct ob_str bytes, enum ob_payloads mode)
{
	bool text = ob_utf8_valid(bytes) && !memchr(bytes.p ? bytes.p : "", '\0', bytes.n);
	struct ob_str cut = text ? cut_text(bytes) : bytes;

	if (!text && cut.n > CUT)
		cut.n = CUT;
	ob_jout_text(j, "payload", text ? cut : OB_STR_NULL);
	if (text || !bytes.p)
		ob_jout_null(j, "payload_base64");
	else
		ob_jout_base64(j, "payload_base64", cut);
	ob_jout_text(j, "payload_mode", ob_str(modes[mode]));
	ob_jout_bool(j, "payload_json", bytes.p && ob_json_valid(bytes, NULL));
	ob_jout_bool(j, "payload_cut", cut.n < bytes.n);
}

/* What cannot be masked, because it is no JSON, is hidden. */
static void payload_json(const struct ob_request *req, struct ob_jout *j, struct ob_str bytes)
{
	enum ob_payloads mode = ob_request_payloads(req);
	struct ob_buf masked = OB_BUF_INIT((size_t)512 << 20);

	if (mode == OB_PAYLOADS_MASKED && bytes.p &&
	    !ob_mask_json(&masked, bytes, req->monitor->conf->mask))
		mode = OB_PAYLOADS_HIDDEN;
	if (mode == OB_PAYLOADS_MASKED && bytes.p)
		bytes = ob_buf_view(&masked);
	payload_text(j, mode == OB_PAYLOADS_HIDDEN ? OB_STR_NULL : bytes, mode);
	ob_buf_done(&masked);
}

static void side_json(const struct ob_request *req, struct ob_jout *j, const char *key,
		      struct ob_str bytes)
{
	struct ob_buf masked = OB_BUF_INIT((size_t)512 << 20);
	struct ob_str shown = OB_STR_NULL;

	switch (ob_request_payloads(req)) {
	case OB_PAYLOADS_SHOWN:
		shown = bytes;
		break;
	case OB_PAYLOADS_MASKED:
		if (bytes.p && ob_mask_json(&masked, bytes, req->monitor->conf->mask))
			shown = ob_buf_view(&masked);
		break;
	case OB_PAYLOADS_HIDDEN:
		break;
	}
	ob_jout_text(j, key, shown.p ? cut_text(shown) : shown);
	ob_buf_done(&masked);
}

static void message_json(struct ob_request *req, const struct ob_lookup *l)
{
	const struct ob_message *m = &l->rows.messages[0];
	struct ob_jout *j = &req->out;

	ob_jout_begin(j, "message", '{');
	ob_api_log_members(j, m);
	ob_jout_begin(j, "targets", '[');
	for (uint32_t i = 0; i < l->rows.count; i++)
		ob_jout_text(j, NULL, l->rows.messages[i].target);
	ob_jout_end(j, ']');
	ob_jout_int(j, "revision", m->revision);
	if (m->sequence_number)
		ob_jout_int(j, "sequence_number", m->sequence_number);
	else
		ob_jout_null(j, "sequence_number");
	ob_jout_text(j, "partition_key", m->partition_key);
	ob_jout_text(j, "causation_id", m->causation_id);
	ob_jout_us(j, "occurred_us", m->occurred_at_us);
	payload_json(req, j, m->payload);
	side_json(req, j, "headers", m->headers);
	side_json(req, j, "snapshot", m->snapshot);
	ob_jout_end(j, '}');
}

/* ---- readers --------------------------------------------------------- */

static void why_json(struct ob_jout *j, const struct ob_why *why)
{
	struct ob_buf text = OB_BUF_INIT(LINE_MAX_BYTES), safe = OB_BUF_INIT(LINE_MAX_BYTES);
	char id[OB_UUID_TEXT_SIZE];

	ob_why_text(why, &text);
	ob_utf8_sanitize(&safe, ob_buf_view(&text), SIZE_MAX);
	ob_uuid_format(&why->holder.id, id);
	ob_jout_begin(j, "why", '{');
	ob_jout_text(j, "code", ob_str(ob_why_name(why->reason)));
	ob_jout_text(j, "text", ob_buf_view(&safe));
	ob_jout_text(j, "link_id", why->has_holder ? ob_str(id) : OB_STR_NULL);
	ob_jout_end(j, '}');
	ob_buf_done(&safe);
	ob_buf_done(&text);
}

static void reader_json(struct ob_jout *j, const char *reader, const struct ob_message *m,
			const struct ob_why *why)
{
	ob_jout_begin(j, NULL, '{');
	ob_api_state_members(j, reader, m);
	ob_jout_text(j, "target", m->target);
	ob_jout_int(j, "seq", m->seq);
	ob_jout_begin(j, "verbs", '[');
	for (int verb = 0; reader && verb < OB_VERBS; verb++) {
		if (ob_verb_allows((enum ob_verb)verb, m))
			ob_jout_text(j, NULL, ob_str(ob_verb_rules[verb].name));
	}
	ob_jout_end(j, ']');
	why_json(j, why);
	ob_jout_end(j, '}');
}

/* One row for one reader; `reader` NULL: nobody reads it. */
static int see(struct ob_request *req, struct ob_lookup *l, const struct ob_reader *reader,
	       const struct ob_message *row, struct ob_err *err)
{
	const struct ob_message *m = row;
	const char *name = NULL;
	struct ob_why why;
	int r = reader ? ob_lookup_see(l, reader, row, &m, &name, err) : 0;

	if (r < 0)
		return r;
	r = ob_why_find(&why, l->store, req->monitor->config, name, m, l->now_us, err);
	if (r == 0)
		reader_json(&req->out, name, m, &why);
	ob_why_done(&why);
	return r;
}

static int readers_json(struct ob_request *req, struct ob_lookup *l, struct ob_err *err)
{
	int r = 0;

	ob_jout_begin(&req->out, "readers", '[');
	for (uint32_t i = 0; r == 0 && i < l->rows.count; i++) {
		const struct ob_message *row = &l->rows.messages[i];
		bool any = false;

		for (size_t k = 0; r == 0 && k < l->readers.count; k++) {
			if (!ob_lookup_reads(l, &l->readers.list[k], row))
				continue;
			any = true;
			r = see(req, l, &l->readers.list[k], row, err);
		}
		if (r == 0 && !any)
			r = see(req, l, NULL, row, err);
	}
	ob_jout_end(&req->out, ']');
	return r;
}

/* ---- its key --------------------------------------------------------- */

struct key_counts {
	int64_t before, after;
	bool capped;
};

/* Exceptions of the message's key, earlier and later than it, as `reader` has them. */
static int count_key(struct ob_lookup *l, const struct ob_reader *reader, const char *key,
		     struct key_counts *ret, struct ob_err *err)
{
	const struct ob_filter filter = { .reader = ob_readers_text(&l->readers, reader->name),
					  .excepted = true,
					  .key = key,
					  .views = BIT(FAILED) | BIT(PARKED) | BIT(DEAD) |
						   BIT(PENDING) | BIT(DELAYED),
					  .limit = KEY_ROWS,
					  .brief = true };
	struct ob_batch batch;
	int64_t now_us;

	ob_batch_init(&batch);
	int r = ob_store_list(l->store, &filter, &batch, &now_us, err);
	*ret = (struct key_counts){ .capped = r == 0 && batch.count == KEY_ROWS };
	for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
		ret->before += batch.messages[i].seq < l->rows.messages[0].seq;
		ret->after += batch.messages[i].seq > l->rows.messages[0].seq;
	}
	ob_batch_done(&batch);
	return r;
}

/* Of the reader whose queue of this key is the longest: the others are not held up by it. */
static int key_json(struct ob_request *req, struct ob_lookup *l, struct ob_err *err)
{
	const struct ob_message *m = &l->rows.messages[0];
	struct ob_buf key = OB_BUF_INIT(LINE_MAX_BYTES);
	struct key_counts most = { 0 };
	bool read = false;
	int r = 0;

	ob_buf_add(&key, m->key);
	for (size_t i = 0; r == 0 && m->key.p && i < l->readers.count; i++) {
		struct key_counts counts;

		if (!ob_lookup_reads(l, &l->readers.list[i], m))
			continue;
		r = count_key(l, &l->readers.list[i], ob_buf_str(&key), &counts, err);
		if (r == 0 && (!read || counts.before + counts.after > most.before + most.after))
			most = counts;
		read = true;
	}
	ob_buf_done(&key);
	if (r < 0)
		return r;
	if (!read) {
		ob_jout_null(&req->out, "key");
		return 0;
	}
	ob_jout_begin(&req->out, "key", '{');
	ob_jout_int(&req->out, "before", most.before);
	ob_jout_int(&req->out, "behind", most.after);
	ob_jout_bool(&req->out, "capped", most.capped);
	ob_jout_end(&req->out, '}');
	return 0;
}

/* ---- the routes ------------------------------------------------------ */

static int find(struct ob_request *req, struct ob_asked *asked, struct ob_lookup *l,
		struct ob_err *err)
{
	return ob_lookup_find(l, asked->store, req->word, NULL, "; retention may have removed it",
			      err);
}

void ob_api_message(struct ob_request *req)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;
	struct ob_lookup l;

	req->type = "application/json";
	if (!ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = find(req, &asked, &l, &err);
	if (r == 0) {
		ob_jout_begin(&req->out, NULL, '{');
		ob_jout_text(&req->out, "store", ob_str(asked.pool->entry->name));
		ob_jout_int(&req->out, "now_us", l.now_us);
		message_json(req, &l);
		r = readers_json(req, &l, &err);
		if (r == 0)
			r = key_json(req, &l, &err);
		ob_jout_end(&req->out, '}');
	}
	ob_lookup_done(&l);
	ob_request_end(req, &asked, r, &err);
}

void ob_api_payload(struct ob_request *req)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;
	struct ob_lookup l;

	req->type = "application/octet-stream";
	if (ob_request_payloads(req) != OB_PAYLOADS_SHOWN) {
		ob_request_fail(req, 403, "payloads", "payloads are not shown to this role");
		return;
	}
	if (!ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = find(req, &asked, &l, &err);
	if (r == 0) {
		ob_buf_add(&req->out.b, l.rows.messages[0].payload);
		req->attachment = req->word;
		ob_log(req->monitor->log, OB_LOG_INFO, "payload downloaded", OB_KV("who", req->who),
		       OB_KV("origin", req->origin), OB_KV("id", req->word));
	}
	ob_lookup_done(&l);
	ob_request_end(req, &asked, r, &err);
}

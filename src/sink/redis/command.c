/* SPDX-License-Identifier: MIT */
/*
 * Messages as commands. Only arrays of strings with their lengths are ever
 * written, so no byte of a message can be taken for anything else.
 */
#include "sink/fields.h"
#include "sink/redis/redis.h"

#include <inttypes.h>
#include <openssl/sha.h>

/*
 * A run of one key in one stream, all or up to the first error: nothing behind an
 * error is stored. ARGV: for each message how many arguments its XADD has, and they.
 * Returns how many are stored and, when that is not all, the error.
 */
static const char script[] =
	"local done, at = 0, 1\n"
	"while at <= #ARGV do\n"
	"  local n = tonumber(ARGV[at])\n"
	"  local r = redis.pcall('XADD', KEYS[1], unpack(ARGV, at + 1, at + n))\n"
	"  if type(r) == 'table' and r.err then return {done, r.err} end\n"
	"  done, at = done + 1, at + n + 1\n"
	"end\n"
	"return {done}\n";

/* When it is first needed: OpenSSL takes 2 MB for it. */
static void name_script(char out[41])
{
	unsigned char digest[SHA_DIGEST_LENGTH];

	(void)SHA1((const unsigned char *)script, sizeof(script) - 1, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* ---- RESP ------------------------------------------------------------ */

enum { HEAD_MAX = 24 };

/* The type, a number and the end of a line; returns what follows. */
static char *put_head(char *out, char type, size_t n)
{
	char digits[HEAD_MAX];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	*out++ = type;
	while (at < sizeof(digits))
		*out++ = digits[at++];
	*out++ = '\r';
	*out++ = '\n';
	return out;
}

static void add_head(struct ob_buf *out, char type, size_t n)
{
	if (!ob_buf_reserve(out, HEAD_MAX))
		return;
	out->len = (size_t)(put_head(out->data + out->len, type, n) - out->data);
}

/* Twenty of these make a message: room is asked for once. */
static void add_word(struct ob_buf *out, struct ob_str word)
{
	if (!ob_buf_reserve(out, HEAD_MAX + word.n + 2))
		return;
	char *at = put_head(out->data + out->len, '$', word.n);
	if (word.n)
		memcpy(at, word.p, word.n);
	at += word.n;
	*at++ = '\r';
	*at++ = '\n';
	out->len = (size_t)(at - out->data);
	*at = '\0';
}

static void add_number(struct ob_buf *out, uint64_t n)
{
	char text[24];
	int size = snprintf(text, sizeof(text), "%" PRIu64, n);

	add_word(out, (struct ob_str){ text, (size_t)size });
}

void ob_redis_add_words(struct ob_buf *out, const char *const *words, size_t count)
{
	add_head(out, '*', count);
	for (size_t i = 0; i < count; i++)
		add_word(out, ob_str(words[i]));
}

/* ---- one message ----------------------------------------------------- */

/* Everything but headers, body and tombstone, whose number is known without their text. */
static void describe(struct ob_fields *f, const struct ob_delivery *d)
{
	ob_fields_init(f, d->message);
	ob_fields_put(f, OB_STR("key"), d->key);
	ob_fields_put(f, OB_STR("content_type"), d->content_type);
	ob_fields_put(f, OB_STR("snapshot"), d->snapshot);
}

static bool has_headers(const struct ob_delivery *d)
{
	return d->header_count > 0 || d->message->headers.p;
}

static bool is_trimming(const struct redis_sink *sink)
{
	return sink->max_len > 0 || sink->max_age_ms > 0;
}

/* What stands behind the stream's name: trimming, the star, names and values. */
static size_t count_args(const struct redis_sink *sink, const struct ob_fields *f,
			 const struct ob_delivery *d)
{
	size_t fields = f->count + (has_headers(d) ? 1 : 0) + 1;

	return (is_trimming(sink) ? 3 : 0) + 1 + 2 * fields;
}

static void add_trim(const struct redis_sink *sink, struct ob_buf *out)
{
	if (sink->max_len > 0) {
		add_word(out, OB_STR("MAXLEN"));
		add_word(out, OB_STR("~"));
		add_number(out, sink->max_len);
	} else if (sink->max_age_ms > 0) {
		int64_t ms = ob_clock_real_us(sink->base.clock) / 1000 - sink->max_age_ms;

		add_word(out, OB_STR("MINID"));
		add_word(out, OB_STR("~"));
		add_number(out, ms > 0 ? (uint64_t)ms : 0);
	}
}

static void add_args(struct redis_sink *sink, const struct ob_fields *f,
		     const struct ob_delivery *d, struct ob_buf *out)
{
	add_trim(sink, out);
	add_word(out, OB_STR("*"));
	for (uint32_t i = 0; i < f->count; i++) {
		add_word(out, f->name[i]);
		add_word(out, f->value[i]);
	}
	if (has_headers(d)) {
		ob_buf_clear(&sink->scratch);
		ob_line_add_headers(&sink->scratch, d);
		out->failed |= sink->scratch.failed;
		add_word(out, OB_STR("headers"));
		add_word(out, ob_buf_view(&sink->scratch));
	}
	add_word(out, d->body.p ? OB_STR("payload") : OB_STR("tombstone"));
	add_word(out, d->body.p ? d->body : OB_STR("1"));
}

/* ---- runs ------------------------------------------------------------ */

size_t ob_redis_input_size(const struct ob_delivery *d)
{
	const struct ob_message *m = d->message;
	size_t size = d->body.n + d->destination.n + d->key.n + m->headers.n + d->content_type.n;

	size += m->aggregate_type.n + m->aggregate_id.n + m->event_type.n;
	size += m->correlation_id.n + m->causation_id.n;
	for (size_t i = 0; i < d->header_count; i++)
		size += d->headers[i].name.n + d->headers[i].value.n;
	return size;
}

/* How many go together: those to one stream, as in a cluster only they live on one server. */
static uint32_t run_length(const struct redis_sink *sink, const struct ob_lane *lane)
{
	const struct ob_lane_item *item = lane->head;
	size_t bytes = ob_redis_input_size(&item->delivery);
	uint32_t n = 1;

	if (sink->no_scripts)
		return 1;
	for (item = item->next; item && n < OB_REDIS_RUN; item = item->next, n++) {
		bytes += ob_redis_input_size(&item->delivery);
		if (bytes > OB_REDIS_RUN_BYTES ||
		    !ob_str_eq(item->delivery.destination, lane->head->delivery.destination))
			break;
	}
	return n;
}

static void add_script(struct redis_sink *sink, const struct ob_lane *lane,
		       const struct ob_redis_command *command, struct ob_buf *out)
{
	const struct ob_lane_item *item = lane->head;
	struct ob_fields f;
	size_t args = 4;

	if (!sink->sha[0])
		name_script(sink->sha);
	for (uint32_t i = 0; i < command->count; i++, item = item->next) {
		describe(&f, &item->delivery);
		args += 1 + count_args(sink, &f, &item->delivery);
	}
	add_head(out, '*', args);
	add_word(out, command->eval ? OB_STR("EVAL") : OB_STR("EVALSHA"));
	add_word(out, command->eval ? OB_STR(script) : ob_str(sink->sha));
	add_word(out, OB_STR("1"));
	add_word(out, lane->head->delivery.destination);
	item = lane->head;
	for (uint32_t i = 0; i < command->count; i++, item = item->next) {
		describe(&f, &item->delivery);
		add_number(out, count_args(sink, &f, &item->delivery));
		add_args(sink, &f, &item->delivery, out);
	}
}

static void add_plain(struct redis_sink *sink, const struct ob_delivery *d, struct ob_buf *out)
{
	struct ob_fields f;

	describe(&f, d);
	add_head(out, '*', 2 + count_args(sink, &f, d));
	add_word(out, OB_STR("XADD"));
	add_word(out, d->destination);
	add_args(sink, &f, d, out);
}

int ob_redis_add_run(struct redis_sink *sink, const struct ob_redis_node *node,
		     struct ob_lane *lane, struct ob_buf *out, struct ob_redis_command *ret,
		     struct ob_err *err)
{
	struct ob_redis_command command = { .lane = lane, .count = run_length(sink, lane) };
	size_t from = out->len;

	command.script = command.count > 1;
	command.eval = command.script && !node->loaded;
	command.asking = lane->detour != NULL;
	if (command.asking)
		ob_redis_add_words(out, (const char *const[]){ "ASKING" }, 1);
	if (command.script)
		add_script(sink, lane, &command, out);
	else
		add_plain(sink, &lane->head->delivery, out);
	if (!out->failed) {
		*ret = command;
		return 0;
	}
	out->failed = false;
	out->len = from;
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a command");
}

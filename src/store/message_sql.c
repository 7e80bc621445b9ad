/* SPDX-License-Identifier: MIT */
/* Statements of operators: finding the names of values in them, and the values. */
#include "store/message_sql.h"

#include "base/cleanup.h"
#include "base/when.h"

#include <ctype.h>
#include <stdatomic.h>

static const char *const names[] = {
	[OB_VALUE_ID] = "id",
	[OB_VALUE_TYPE] = "type",
	[OB_VALUE_PAYLOAD] = "payload",
	[OB_VALUE_HEADERS] = "headers",
	[OB_VALUE_KEY] = "key",
	[OB_VALUE_AGGREGATE_TYPE] = "aggregate_type",
	[OB_VALUE_AGGREGATE_ID] = "aggregate_id",
	[OB_VALUE_SEQUENCE] = "sequence",
	[OB_VALUE_CORRELATION_ID] = "correlation_id",
	[OB_VALUE_CAUSATION_ID] = "causation_id",
	[OB_VALUE_OCCURRED_AT] = "occurred_at",
	[OB_VALUE_CREATED_AT] = "created_at",
	[OB_VALUE_REVISION] = "revision",
	[OB_VALUE_TARGET] = "target",
	[OB_VALUE_POSITION] = "position",
};

/* ---- parsing --------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Behind the closing quote; NULL: there is none. A doubled quote is no end. */
static const char *skip_quoted(const char *p, bool backslash)
{
	char quote = *p++;

	for (; *p; p++) {
		if ((backslash && *p == '\\' && p[1]) || (*p == quote && p[1] == quote))
			p++;
		else if (*p == quote)
			return p + 1;
	}
	return NULL;
}

/* Behind $tag$ ... $tag$; `p` itself where no such text begins; NULL: it has no end. */
static const char *skip_dollars(const char *p, const char *start)
{
	const char *tag_end = p + 1;

	if (p > start && is_word(p[-1]))
		return p;
	while (is_word(*tag_end))
		tag_end++;
	if (*tag_end != '$' || isdigit((unsigned char)p[1]))
		return p;
	size_t n = (size_t)(tag_end - p) + 1;
	for (const char *at = tag_end + 1; *at; at++) {
		if (strncmp(at, p, n) == 0)
			return at + n;
	}
	return NULL;
}

static const char *skip_comment(const char *p, unsigned caps)
{
	const char *end;

	if (p[0] == '/' && p[1] == '*') {
		end = strstr(p + 2, "*/");
		return end ? end + 2 : NULL;
	}
	if ((p[0] == '-' && p[1] == '-') || (p[0] == '#' && (caps & OB_STORE_MYSQL_WORDS)))
		return p + strcspn(p, "\n");
	return p;
}

/* A text that a prefix makes an escape string: E'...'. */
static bool is_escape_string(const char *p, const char *start)
{
	return *p == '\'' && p > start && (p[-1] == 'E' || p[-1] == 'e') &&
	       (p - 1 == start || !is_word(p[-2]));
}

/* Behind what is no SQL of its own at `p`: a quoted text, a comment; `p` if there is none. */
static const char *skip_opaque(const char *p, const char *start, unsigned caps)
{
	if (*p == '\'' || *p == '"' || *p == '`')
		return skip_quoted(p, *p != '`' && ((caps & OB_STORE_MYSQL_WORDS) ||
						    is_escape_string(p, start)));
	if (*p == '$' && !(caps & OB_STORE_MYSQL_WORDS))
		return skip_dollars(p, start);
	return skip_comment(p, caps);
}

static enum ob_message_value find_value(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return (enum ob_message_value)i;
	}
	return OB_VALUE_NONE;
}

static int unknown_name(const char *name, size_t n, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf all = OB_BUF_INIT(512);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ob_buf_addf(&all, "%s:%s", i ? " " : "", names[i]);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "a message has no value ':%.*s'; those it has: %s",
			  (int)(n < 60 ? n : 60), name, ob_buf_str(&all));
}

static size_t name_length(const char *colon, const char *start)
{
	size_t n = 0;

	if (colon[1] == ':' || (colon > start && colon[-1] == ':') ||
	    !(isalpha((unsigned char)colon[1]) || colon[1] == '_'))
		return 0;
	while (is_word(colon[1 + n]))
		n++;
	return n;
}

/* Nothing but blanks and comments may follow the end of the statement. */
static int check_rest(const char *p, unsigned caps, struct ob_err *err)
{
	while (*p) {
		const char *next = skip_comment(p, caps);

		if (!next || (next == p && !isspace((unsigned char)*p) && *p != ';'))
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "this is more than one SQL statement: put them into a "
					  "procedure, or into one statement");
		p = next == p ? p + 1 : next;
	}
	return 0;
}

static int find_values(struct ob_message_sql *sql, unsigned caps, struct ob_err *err)
{
	const char *from = sql->text, *p = sql->text;

	while (*p && *p != ';') {
		const char *next = skip_opaque(p, sql->text, caps);
		size_t n = *p == ':' ? name_length(p, sql->text) : 0;

		if (!next)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "a quote or comment in the SQL has no end: %.40s", p);
		if (n == 0) {
			p = next == p ? p + 1 : next;
			continue;
		}
		enum ob_message_value value = find_value(p + 1, n);
		if (value == OB_VALUE_NONE)
			return unknown_name(p + 1, n, err);
		if (sql->count == OB_MESSAGE_SQL_VALUES)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "the SQL names more than %d values",
					  OB_MESSAGE_SQL_VALUES);
		sql->pieces[sql->count++] =
			(struct ob_message_sql_piece){ { from, (size_t)(p - from) }, value };
		from = p += n + 1;
	}
	sql->pieces[sql->count] =
		(struct ob_message_sql_piece){ { from, (size_t)(p - from) }, OB_VALUE_NONE };
	return check_rest(p, caps, err);
}

int ob_message_sql_parse(const struct ob_store_ops *ops, const char *text,
			 struct ob_message_sql **ret_sql, struct ob_err *err)
{
	static atomic_uint_fast64_t serials;
	struct ob_message_sql *sql = calloc(1, sizeof(*sql));

	if (sql)
		sql->text = strdup(text);
	if (!sql || !sql->text) {
		ob_message_sql_free(sql);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	}
	sql->serial = atomic_fetch_add(&serials, 1) + 1;
	int r = text[strspn(text, " \t\r\n;")] != '\0'
			? find_values(sql, ops->caps, err)
			: ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "the SQL is empty");
	if (r < 0) {
		ob_message_sql_free(sql);
		return r;
	}
	*ret_sql = sql;
	return 0;
}

void ob_message_sql_free(struct ob_message_sql *sql)
{
	if (sql)
		free(sql->text);
	free(sql);
}

/* ---- for the backends ------------------------------------------------ */

void ob_message_sql_text(const struct ob_message_sql *sql, char style, struct ob_buf *out)
{
	for (size_t i = 0; i <= sql->count; i++) {
		ob_buf_add(out, sql->pieces[i].text);
		if (i < sql->count && style == '$')
			ob_buf_addf(out, "$%zu", i + 1);
		else if (i < sql->count)
			ob_buf_addc(out, style);
	}
}

static struct ob_str text_value(const struct ob_message *m, enum ob_message_value value)
{
	static const size_t offsets[] = {
		[OB_VALUE_TYPE] = offsetof(struct ob_message, event_type),
		[OB_VALUE_PAYLOAD] = offsetof(struct ob_message, payload),
		[OB_VALUE_HEADERS] = offsetof(struct ob_message, headers),
		[OB_VALUE_KEY] = offsetof(struct ob_message, key),
		[OB_VALUE_AGGREGATE_TYPE] = offsetof(struct ob_message, aggregate_type),
		[OB_VALUE_AGGREGATE_ID] = offsetof(struct ob_message, aggregate_id),
		[OB_VALUE_CORRELATION_ID] = offsetof(struct ob_message, correlation_id),
		[OB_VALUE_CAUSATION_ID] = offsetof(struct ob_message, causation_id),
		[OB_VALUE_TARGET] = offsetof(struct ob_message, target),
	};

	return *(const struct ob_str *)((const char *)m + offsets[value]);
}

static bool number_value(const struct ob_message *m, enum ob_message_value value, int64_t *ret)
{
	if (value == OB_VALUE_SEQUENCE)
		*ret = m->sequence_number;
	else if (value == OB_VALUE_REVISION)
		*ret = m->revision;
	else if (value == OB_VALUE_POSITION)
		*ret = m->seq;
	else if (value == OB_VALUE_OCCURRED_AT)
		*ret = m->occurred_at_us;
	else if (value == OB_VALUE_CREATED_AT)
		*ret = m->created_at_us;
	else
		return false;
	return true;
}

void ob_message_sql_bind(const struct ob_message_sql *sql, size_t at, const struct ob_message *m,
			 bool binary, struct ob_bound *ret)
{
	enum ob_message_value value = sql->pieces[at].value;

	*ret = (struct ob_bound){ .kind = OB_BOUND_NULL };
	if (value == OB_VALUE_ID) {
		ob_uuid_format(&m->id, ret->room);
		ret->kind = OB_BOUND_TEXT;
		ret->text = ob_str(ret->room);
	} else if (number_value(m, value, &ret->number)) {
		bool time = value == OB_VALUE_OCCURRED_AT || value == OB_VALUE_CREATED_AT;

		/* No number is 0 here; a message without a version has NULL. */
		if (ret->number != 0)
			ret->kind = time ? OB_BOUND_TIME : OB_BOUND_NUMBER;
	} else {
		ret->text = text_value(m, value);
		if (ret->text.p)
			ret->kind = value == OB_VALUE_PAYLOAD && binary ? OB_BOUND_BYTES
									: OB_BOUND_TEXT;
	}
}

int ob_message_sql_fail(bool broken, struct ob_err *err)
{
	if (err->kind != OB_ERR_DOWN) {
		err->kind = broken ? OB_ERR_FATAL : OB_ERR_RETRY;
		err->status = OUTBOX_ESTORE;
	}
	return err->status;
}

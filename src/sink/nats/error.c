/* SPDX-License-Identifier: MIT */
/* What the answers of JetStream and the errors of a NATS server mean for us. */
#include "base/utf8.h"
#include "sink/nats/nats.h"

#include <jansson.h>

struct rule {
	int code; /* of JetStream; 0: any */
	enum ob_err_kind kind;
	const char *holds; /* and a part of its text; NULL: any */
	const char *hint;
};

/*
 * The first that fits. What is about the stream, the cluster or our rights is DOWN: never dead.
 */
static const struct rule rules[] = {
	/* the stream cannot store, for reasons of its own: all have one code */
	{ 10077, OB_ERR_RETRY, "per subject", "the stream keeps no more of this subject" },
	{ 10077, OB_ERR_DOWN, "maximum messages", "the stream is full and discards what is new" },
	{ 10077, OB_ERR_DOWN, "maximum bytes", "the stream is full and discards what is new" },
	{ 10077, OB_ERR_REJECT, "too large", NULL },
	{ 10077, OB_ERR_DOWN, NULL, "the server cannot write the stream" },
	/* about this message */
	{ 10054, OB_ERR_REJECT, NULL, "larger than the stream's max_msg_size" },
	{ 10097, OB_ERR_REJECT, NULL, NULL },
	{ 10060, OB_ERR_RETRY, NULL, NULL }, /* another stream than expected */
	{ 10070, OB_ERR_RETRY, NULL, NULL }, /* wrong last message id */
	{ 10071, OB_ERR_RETRY, NULL, NULL }, /* wrong last sequence */
	/* about resources */
	{ 10002, OB_ERR_DOWN, NULL, "the account's limit is reached" },
	{ 10023, OB_ERR_DOWN, NULL, "the server lacks disk or memory for JetStream" },
	{ 10028, OB_ERR_DOWN, NULL, "the server lacks memory for JetStream" },
	{ 10047, OB_ERR_DOWN, NULL, "the server lacks disk for JetStream" },
	/* about the stream and JetStream itself */
	{ 10059, OB_ERR_DOWN, NULL, "the stream is gone" },
	{ 10109, OB_ERR_DOWN, NULL, "the stream is sealed" },
	{ 10039, OB_ERR_DOWN, NULL, "enable JetStream for the account" },
	{ 10076, OB_ERR_DOWN, NULL, "start the server with JetStream" },
	{ 10008, OB_ERR_DOWN, NULL, NULL },
	{ 10009, OB_ERR_DOWN, NULL, NULL },
	{ 10041, OB_ERR_DOWN, NULL, NULL },
};

static const struct rule *find_rule(int code, const char *text)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].code == code && (!rules[i].holds || strstr(text, rules[i].holds)))
			return &rules[i];
	}
	return NULL;
}

/* One safe line of what the peer says. */
static int set_said(struct ob_err *err, enum ob_err_kind kind, struct ob_str text, const char *hint)
{
	struct ob_buf line = OB_BUF_INIT(1200);

	ob_utf8_sanitize(&line, text, 250);
	(void)ob_err_set(err, OUTBOX_ESINK, kind, "nats: %s%s%s%s", ob_buf_str(&line),
			 hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
	ob_buf_done(&line);
	return err->status;
}

/* {"code":503,"err_code":10077,"description":"maximum bytes exceeded"} */
static void judge_error(const json_t *error, struct ob_err *err)
{
	const char *text = json_string_value(json_object_get(error, "description"));
	int status = (int)json_integer_value(json_object_get(error, "code"));
	int code = (int)json_integer_value(json_object_get(error, "err_code"));
	const struct rule *rule = find_rule(code, text ? text : "");
	/* Unknown ones: a server that is not able to says 5xx. */
	enum ob_err_kind kind = status >= 500 ? OB_ERR_DOWN : OB_ERR_RETRY;

	(void)set_said(err, rule ? rule->kind : kind,
		       ob_str(text ? text : "an error without words"), rule ? rule->hint : NULL);
	(void)snprintf(err->native, sizeof(err->native), "%d", code ? code : status);
}

/* Any answer, with a parser. */
static void judge_answer(struct ob_str json, struct ob_err *err)
{
	json_t *answer = json_loadb(json.p, json.n, 0, NULL);
	const json_t *error = json_object_get(answer, "error");

	*err = OB_ERR_INIT;
	if (json_is_object(error))
		judge_error(error, err);
	else if (!json_is_string(json_object_get(answer, "stream")) ||
		 json_integer_value(json_object_get(answer, "seq")) <= 0)
		(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				 "what answers on the subject is no stream: not an acknowledgement "
				 "of JetStream");
	json_decref(answer);
}

/* ---- the usual answer, without a parser ------------------------------ */

static const char *skip(const char *p, const char *end, char what)
{
	while (p < end && *p == ' ')
		p++;
	return p < end && *p == what ? p + 1 : NULL;
}

/* "text" without escapes */
static const char *word(const char *p, const char *end, struct ob_str *ret)
{
	const char *from = p ? skip(p, end, '"') : NULL;
	const char *to = from ? memchr(from, '"', (size_t)(end - from)) : NULL;

	if (!to || memchr(from, '\\', (size_t)(to - from)))
		return NULL;
	*ret = (struct ob_str){ from, (size_t)(to - from) };
	return to + 1;
}

/* {"stream":"S", "seq":7...: stored, also when "duplicate": true follows. False: look closer. */
static bool is_plain_ack(struct ob_str json)
{
	const char *p = json.p, *end = json.p + json.n;
	struct ob_str name;

	p = word(skip(p, end, '{'), end, &name);
	if (!p || !ob_str_eq(name, OB_STR("stream")) || !(p = skip(p, end, ':')) ||
	    !(p = word(p, end, &name)) || !(p = skip(p, end, ',')))
		return false;
	p = word(p, end, &name);
	if (!p || !ob_str_eq(name, OB_STR("seq")) || !(p = skip(p, end, ':')))
		return false;
	while (p < end && *p == ' ')
		p++;
	return p < end && *p >= '1' && *p <= '9';
}

static void no_responders(const struct nats_sink *sink, struct ob_str subject, struct ob_err *err)
{
	bool wait = sink->no_stream == OB_NATS_NO_STREAM_WAIT;

	(void)ob_err_set(err, OUTBOX_ESINK, wait ? OB_ERR_DOWN : OB_ERR_RETRY,
			 "no stream listens on the subject '%.*s': create one, or its leader is "
			 "being elected",
			 (int)(subject.n < 200 ? subject.n : 200), subject.p);
	(void)snprintf(err->native, sizeof(err->native), "503");
}

void ob_nats_ack(const struct nats_sink *sink, struct ob_str subject, natsMsg *msg,
		 struct ob_err *ret_outcome)
{
	struct ob_str answer = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) };

	*ret_outcome = OB_ERR_INIT;
	if (natsMsg_IsNoResponders(msg))
		no_responders(sink, subject, ret_outcome);
	else if (!is_plain_ack(answer))
		judge_answer(answer, ret_outcome);
}

/* ---- errors of the connection ---------------------------------------- */

/* The library puts "(conn.c:733): " in front. */
static const char *without_place(const char *text)
{
	const char *end = *text == '(' ? strstr(text, "): ") : NULL;

	return end ? end + 3 : text;
}

/*
 * Whatever the library meets is the server, the way to it, or our rights there: an outage. Only
 * what we give it can be wrong in itself, and that is checked before.
 */
int ob_nats_status(natsStatus status, const char *detail, struct ob_err *err)
{
	const char *text = detail && *detail ? without_place(detail) : natsStatus_GetText(status);
	const char *hint = NULL;

	if (status == NATS_CONNECTION_AUTH_FAILED || strcasestr(text, "authorization") ||
	    strcasestr(text, "authentication"))
		hint = "check user, password, token or key";
	else if (strstr(text, "for Subscription"))
		hint = "allow this user its inbox, or set inbox_prefix";
	else if (status == NATS_SECURE_CONNECTION_REQUIRED)
		hint = "the server wants TLS: write tls://";
	else if (status == NATS_SECURE_CONNECTION_WANTED)
		hint = "the server has no TLS, and without it nothing is sent";
	else if (status == NATS_NO_SERVER_SUPPORT)
		hint = "NATS 2.2 or later is needed";
	(void)set_said(err, OB_ERR_DOWN, ob_str(text), hint);
	(void)snprintf(err->native, sizeof(err->native), "%d", (int)status);
	return err->status;
}

struct ob_str ob_nats_denied(struct ob_str text)
{
	static const char words[] = "Permissions Violation for Publish to \"";
	const char *at = memmem(text.p, text.n, words, sizeof(words) - 1);
	const char *end = text.p + text.n;

	if (!at)
		return OB_STR_NULL;
	at += sizeof(words) - 1;
	end = memrchr(at, '"', (size_t)(end - at));
	return end ? (struct ob_str){ at, (size_t)(end - at) } : OB_STR_NULL;
}

bool ob_nats_is_denied(struct ob_str quoted, struct ob_str subject)
{
	size_t k = 0;

	for (size_t i = 0; i < quoted.n; i++, k++) {
		if (quoted.p[i] == '\\' && i + 1 < quoted.n)
			i++;
		if (k >= subject.n || quoted.p[i] != subject.p[k])
			return false;
	}
	return k == subject.n;
}

int ob_nats_denied_error(struct ob_str text, struct ob_err *err)
{
	int r = set_said(err, OB_ERR_RETRY, text, "allow this user to publish to the subject");

	(void)snprintf(err->native, sizeof(err->native), "permissions");
	return r;
}

/* SPDX-License-Identifier: MIT */
/* What the error replies of a Redis server mean for us. */
#include "base/utf8.h"
#include "sink/redis/redis.h"

struct rule {
	const char *code;  /* the reply's first word */
	const char *holds; /* and a part of its text; NULL: any */
	enum ob_err_kind kind;
	bool leave;
	const char *hint;
};

/* The first that fits. What is about the server or about our rights there is DOWN: never dead. */
static const struct rule rules[] = {
	{ "READONLY", NULL, OB_ERR_DOWN, true,
	  "it is a replica: the url must lead to the primary" },
	{ "LOADING", NULL, OB_ERR_DOWN, false, NULL },
	{ "MASTERDOWN", NULL, OB_ERR_DOWN, true, NULL },
	{ "BUSY", NULL, OB_ERR_DOWN, false, "a script of someone holds the server" },
	{ "OOM", NULL, OB_ERR_DOWN, false, "trim streams or raise maxmemory" },
	{ "MISCONF", NULL, OB_ERR_DOWN, false, "the server cannot save its data" },
	{ "NOREPLICAS", NULL, OB_ERR_DOWN, false, NULL },
	{ "CLUSTERDOWN", NULL, OB_ERR_DOWN, false, NULL },
	{ "TRYAGAIN", NULL, OB_ERR_DOWN, false, NULL },
	{ "MOVED", NULL, OB_ERR_DOWN, false, "the cluster sends us in circles" },
	{ "ASK", NULL, OB_ERR_DOWN, false, "the cluster sends us in circles" },
	{ "DENIED", NULL, OB_ERR_DOWN, true, "give it a password or turn protected mode off" },
	{ "NOAUTH", NULL, OB_ERR_DOWN, true, "set password" },
	{ "WRONGPASS", NULL, OB_ERR_DOWN, true, "check username and password" },
	/* About one stream, not about all. */
	{ "NOPERM", "key", OB_ERR_RETRY, false, "allow this user to write the stream" },
	{ "NOPERM", NULL, OB_ERR_DOWN, false, "allow this user to run the command" },
	{ "WRONGTYPE", NULL, OB_ERR_RETRY, false, "the destination names something else" },
	{ "ERR", "can't access at least one of the keys", OB_ERR_RETRY, false,
	  "allow this user to write the stream" },
	{ "ERR", "can't run this command", OB_ERR_DOWN, false, "allow this user to run XADD" },
	{ "ERR", "max number of clients", OB_ERR_DOWN, true, NULL },
	{ "ERR", "unknown command", OB_ERR_DOWN, false, "streams need Redis 5 or later" },
	{ "ERR", "AUTH", OB_ERR_DOWN, true, "check username and password" },
	{ "ERR", "invalid password", OB_ERR_DOWN, true, "check username and password" },
	{ "ERR", "DB index", OB_ERR_DOWN, true, "check the database number in the url" },
	{ "ERR", "SELECT is not allowed", OB_ERR_DOWN, true, "a cluster has only database 0" },
	/* The server closes the connection behind these two; nothing of the command was done. */
	{ "ERR", "invalid bulk length", OB_ERR_REJECT, true, "larger than its proto-max-bulk-len" },
	{ "ERR", "Protocol error", OB_ERR_DOWN, true, NULL },
	{ "ERR", "too large to be stored", OB_ERR_REJECT, false, NULL },
};

static bool starts(struct ob_str text, const char *word)
{
	size_t n = strlen(word);

	return text.n >= n && memcmp(text.p, word, n) == 0 && (text.n == n || text.p[n] == ' ');
}

static bool holds(struct ob_str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

/* Scripts of older servers hand errors on with their dash. */
static struct ob_str undash(struct ob_str text)
{
	return text.n > 0 && text.p[0] == '-' ? (struct ob_str){ text.p + 1, text.n - 1 } : text;
}

int ob_redis_error(struct ob_str text, bool *ret_leave, struct ob_err *err)
{
	struct ob_str bare = undash(text);
	struct ob_buf line = OB_BUF_INIT(1200);
	const struct rule *rule = NULL;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && !rule; i++) {
		if (starts(bare, rules[i].code) && (!rules[i].holds || holds(bare, rules[i].holds)))
			rule = &rules[i];
	}
	ob_utf8_sanitize(&line, bare, 250);
	const char *hint = rule && rule->hint ? rule->hint : "";
	(void)ob_err_set(err, OUTBOX_ESINK, rule ? rule->kind : OB_ERR_RETRY,
			 "redis says: %s%s%s%s", ob_buf_str(&line), *hint ? " (" : "", hint,
			 *hint ? ")" : "");
	ob_buf_done(&line);
	(void)snprintf(err->native, sizeof(err->native), "%s", rule ? rule->code : "ERR");
	*ret_leave = rule && rule->leave;
	return err->status;
}

bool ob_redis_is_noscript(struct ob_str text)
{
	return starts(undash(text), "NOSCRIPT");
}

bool ob_redis_is_script_denied(struct ob_str text)
{
	struct ob_str bare = undash(text);
	bool names = holds(bare, "'eval") || holds(bare, "'EVAL") || holds(bare, "`EVAL");

	return names && (starts(bare, "NOPERM") || holds(bare, "unknown command"));
}

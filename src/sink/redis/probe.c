/* SPDX-License-Identifier: MIT */
/* What a Redis server keeps, and whether the destinations can take messages. */
#include "sink/redis/redis.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVICTION, PERSISTENCE, VERSION, ROLE, DESTINATION };

const struct ob_check ob_redis_checks[] = {
	[EVICTION] = { "redis_eviction",
		       "A full server refuses writes and throws no stream away: maxmemory-policy.",
		       "set maxmemory-policy to noeviction" },
	[PERSISTENCE] = { "redis_persistence",
			  "The server keeps what it acknowledged: appendonly is on.",
			  "set appendonly to yes, and appendfsync to everysec or always" },
	[VERSION] = { "redis_version", "The server has streams: Redis 5.0 or newer.",
		      "upgrade the server" },
	[ROLE] = { "redis_role", "The server takes writes: it is no replica.",
		   "let the url lead to the primary" },
	[DESTINATION] = { "redis_destination",
			  "A constant destination is a stream, or not there yet.",
			  "choose another destination in the route, or rename what is there" },
	OB_CHECK_END,
};

static bool begins(struct ob_str text, const char *with)
{
	size_t n = strlen(with);

	return text.p && text.n >= n && memcmp(text.p, with, n) == 0;
}

static void judge_eviction(struct ob_str policy, struct ob_findings *out)
{
	if (begins(policy, "allkeys-"))
		ob_finding_add(out, &ob_redis_checks[EVICTION], OB_LEVEL_WARNING,
			       "a full redis may throw away whole streams: maxmemory-policy is "
			       "%.*s",
			       (int)policy.n, policy.p);
	else if (policy.p)
		ob_finding_add(out, &ob_redis_checks[EVICTION], OB_LEVEL_OK,
			       "maxmemory-policy is %.*s", (int)policy.n, policy.p);
}

static void judge_persistence(const struct ob_redis_health *h, struct ob_findings *out)
{
	const struct ob_check *check = &ob_redis_checks[PERSISTENCE];

	if (!h->aof.p)
		return;
	if (!begins(h->aof, "1"))
		ob_finding_add(
			out, check, OB_LEVEL_WARNING,
			"appendonly is off: what was acknowledged since the last snapshot is "
			"lost when the server crashes");
	else if (h->fsync.p && ob_str_eq(h->fsync, OB_STR("no")))
		ob_finding_add(out, check, OB_LEVEL_WARNING,
			       "appendfsync is no: what was acknowledged in the last half minute "
			       "may be lost in a power cut");
	else
		ob_finding_add(out, check, OB_LEVEL_OK, "appendonly is on%s%.*s",
			       h->fsync.p ? ", appendfsync is " : "", (int)h->fsync.n,
			       h->fsync.p ? h->fsync.p : "");
}

void ob_redis_judge(const struct ob_redis_health *h, struct ob_findings *out)
{
	long major = h->version.p ? strtol(h->version.p, NULL, 10) : 0;

	judge_eviction(h->policy, out);
	judge_persistence(h, out);
	if (h->version.p)
		ob_finding_add(out, &ob_redis_checks[VERSION],
			       major >= 5 ? OB_LEVEL_OK : OB_LEVEL_ERROR, "Redis %.*s%s",
			       (int)h->version.n, h->version.p,
			       major >= 5 ? "" : " has no streams");
	if (begins(h->role, "slave"))
		ob_finding_add(out, &ob_redis_checks[ROLE], OB_LEVEL_ERROR,
			       "the server is a replica, which refuses writes");
	else if (h->role.p)
		ob_finding_add(out, &ob_redis_checks[ROLE], OB_LEVEL_OK, "the server takes writes");
}

void ob_redis_advise(struct ob_sink *base, struct ob_findings *out)
{
	const struct redis_sink *sink = (const struct redis_sink *)base;

	if (sink->policy[0])
		judge_eviction(ob_str(sink->policy), out);
}

/* ---- asking ---------------------------------------------------------- */

static struct ob_str text_of(const redisReply *reply)
{
	bool text =
		reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);

	return text ? (struct ob_str){ reply->str, (size_t)reply->len } : OB_STR_NULL;
}

static int probe_server(struct redis_sink *sink, struct ob_findings *out, struct ob_err *err)
{
	static const char *const info[] = { "INFO" };
	static const char *const get[] = { "CONFIG", "GET", "appendfsync" };
	redisReply *about = NULL, *config = NULL;
	int r = ob_redis_node_ask(sink, sink->nodes[0], info, 1, &about, err);

	if (r == 0)
		r = ob_redis_node_ask(sink, sink->nodes[0], get, 3, &config, err);
	if (r == 0 && text_of(about).p) {
		struct ob_str all = text_of(about);
		/* Many users may not ask for the configuration. */
		bool told = config->type == REDIS_REPLY_ARRAY && config->elements == 2;
		const struct ob_redis_health health = {
			.version = ob_redis_info(all, "redis_version"),
			.role = ob_redis_info(all, "role"),
			.policy = ob_redis_info(all, "maxmemory_policy"),
			.aof = ob_redis_info(all, "aof_enabled"),
			.fsync = told ? text_of(config->element[1]) : OB_STR_NULL,
		};

		ob_redis_judge(&health, out);
	}
	freeReplyObject(about);
	freeReplyObject(config);
	return r;
}

static int probe_stream(struct redis_sink *sink, struct ob_str name, struct ob_findings *out,
			struct ob_err *err)
{
	const struct ob_check *check = &ob_redis_checks[DESTINATION];
	redisReply *reply = NULL;
	char text[512];

	if (name.n >= sizeof(text) || memchr(name.p, '\0', name.n))
		return 0;
	(void)snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	const char *words[] = { "TYPE", text };
	int r = ob_redis_node_ask(sink, sink->nodes[0], words, 2, &reply, err);
	struct ob_str type = r == 0 ? text_of(reply) : OB_STR_NULL;

	/* A cluster that has it elsewhere answers with an error: nothing is known. */
	if (type.p && ob_str_eq(type, OB_STR("none")))
		ob_finding_add(out, check, OB_LEVEL_OK, "stream %s is made by the first message",
			       text);
	else if (type.p && ob_str_eq(type, OB_STR("stream")))
		ob_finding_add(out, check, OB_LEVEL_OK, "stream %s is there", text);
	else if (type.p)
		ob_finding_add(out, check, OB_LEVEL_ERROR,
			       "key %s is a %.*s, no stream: every message to it will be refused",
			       text, (int)type.n, type.p);
	freeReplyObject(reply);
	return r;
}

int ob_redis_probe(struct ob_sink *base, const struct ob_str *destinations, size_t count,
		   struct ob_findings *out, struct ob_err *err)
{
	struct redis_sink *sink = (struct redis_sink *)base;
	int r = probe_server(sink, out, err);

	for (size_t i = 0; i < count && r == 0; i++)
		r = probe_stream(sink, destinations[i], out, err);
	return r;
}

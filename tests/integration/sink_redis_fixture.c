/* SPDX-License-Identifier: MIT */
/* The fixture of the tests of the Redis sink. */
#include "sink_redis_fixture.h"

struct redis_server server;

const char *url_of(const char *user, int db)
{
	static char url[160];

	(void)snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d/%d", user, server.port, db);
	return url;
}

const char *stream_text(struct redis_server *from, const char *stream)
{
	static struct ob_buf text;
	redisReply *entries = redis_ask(from, "XRANGE", stream, "-", "+", NULL);

	text.max = 1 << 20;
	ob_buf_clear(&text);
	ck_assert_msg(entries->type == REDIS_REPLY_ARRAY, "%s", entries->str);
	for (size_t i = 0; i < entries->elements; i++) {
		const redisReply *fields = entries->element[i]->element[1];

		for (size_t k = 0; k + 1 < fields->elements; k += 2) {
			if (strcmp(fields->element[k]->str, "payload") == 0)
				ob_buf_addf(&text, "%s%s", text.len ? " " : "",
					    fields->element[k + 1]->str);
		}
	}
	freeReplyObject(entries);
	return ob_buf_str(&text);
}

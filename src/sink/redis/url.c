/* SPDX-License-Identifier: MIT */
/* redis://user:password@host:port/db, rediss://... and unix:///path?db=n */
#include "sink/redis/redis.h"

#include <stdlib.h>

static int bad(const char *what, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the url of the redis sink %s; write redis://host:6379/0, "
			  "rediss://host:6379/0 for TLS, or unix:///path?db=0",
			  what);
}

static bool parse_db(const char *text, uint32_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	unsigned long v = strtoul(text, &end, 10);
	if (*end || v > 65535)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* "user:password@", "user@" or ":password@" */
static int parse_user(const char *p, size_t n, struct ob_redis_url *url, struct ob_err *err)
{
	const char *wrong;

	return ob_url_user(p, n, &url->user, &url->password, &wrong) ? 0 : bad(wrong, err);
}

static int parse_tcp(const char *rest, struct ob_redis_url *url, struct ob_err *err)
{
	size_t n = strcspn(rest, "/?");
	const char *at = memrchr(rest, '@', n);
	const char *host = at ? at + 1 : rest;
	int r = at ? parse_user(rest, (size_t)(at - rest), url, err) : 0;

	if (r < 0)
		return r;
	if (!ob_url_host(host, n - (size_t)(host - rest), "6379", &url->host))
		return bad("has no usable host and port", err);
	rest += n;
	if (*rest == '/')
		rest++;
	if (*rest && !parse_db(rest, &url->db))
		return bad("must end with the number of a database", err);
	return 0;
}

static int parse_unix(const char *rest, struct ob_redis_url *url, struct ob_err *err)
{
	size_t n = strcspn(rest, "?");

	if (*rest != '/' || !ob_url_copy(url->path, sizeof(url->path), rest, n))
		return bad("must name the socket by a full path of at most 107 bytes", err);
	rest += n;
	if (*rest && (strncmp(rest, "?db=", 4) != 0 || !parse_db(rest + 4, &url->db)))
		return bad("may have ?db= and a number behind the path, nothing else", err);
	return 0;
}

int ob_redis_url_parse(const char *text, struct ob_redis_url *ret_url, struct ob_err *err)
{
	struct ob_redis_url url = { .tls = strncmp(text, "rediss://", 9) == 0 };
	int r;

	if (strncmp(text, "redis://", 8) == 0 || url.tls)
		r = parse_tcp(text + (url.tls ? 9 : 8), &url, err);
	else if (strncmp(text, "unix://", 7) == 0)
		r = parse_unix(text + 7, &url, err);
	else
		r = bad("has an unknown beginning", err);
	if (r < 0) {
		ob_redis_url_done(&url);
		return r;
	}
	*ret_url = url;
	return 0;
}

void ob_redis_url_done(struct ob_redis_url *url)
{
	ob_url_wipe(&url->user);
	ob_url_wipe(&url->password);
}

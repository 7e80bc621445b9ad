/* SPDX-License-Identifier: MIT */
/* amqp://user:password@host:port,host:port/vhost, and amqps:// */
#include "sink/rabbitmq/rabbitmq.h"

#include <stdlib.h>

static int bad(const char *what, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the url of the rabbitmq sink %s; write "
			  "amqp://user@host:5672,host2:5672/vhost, or amqps:// for TLS",
			  what);
}

static int parse_hosts(const char *p, size_t n, struct ob_rabbitmq_url *url, struct ob_err *err)
{
	const char *end = p + n;

	for (bool more = true; more;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t size = (size_t)((comma ? comma : end) - p);

		if (url->host_count == OB_RABBITMQ_HOSTS)
			return bad("names more than 16 hosts", err);
		if (!ob_url_host(p, size, url->tls ? "5671" : "5672",
				 &url->hosts[url->host_count++]))
			return bad("has no usable host and port", err);
		more = comma != NULL;
		p = comma + (more ? 1 : 0);
	}
	return 0;
}

/* Nothing and "/" are the vhost "/"; a slash in a name is written %2f. */
static int parse_vhost(const char *rest, struct ob_rabbitmq_url *url, struct ob_err *err)
{
	bool given = *rest && rest[1];

	if (given && strpbrk(rest + 1, "/?#"))
		return bad("must end with the name of a vhost, in which a slash is %2f", err);
	url->vhost = given ? ob_url_decode(rest + 1, strlen(rest + 1)) : ob_url_decode("/", 1);
	if (!url->vhost || strlen(url->vhost) > OB_RABBITMQ_SHORT)
		return bad("has a vhost with a bad %-escape or of more than 255 bytes", err);
	return 0;
}

static int parse_rest(const char *rest, struct ob_rabbitmq_url *url, struct ob_err *err)
{
	size_t n = strcspn(rest, "/?#");
	const char *at = memrchr(rest, '@', n);
	const char *hosts = at ? at + 1 : rest;
	const char *wrong;

	if (rest[n] == '?' || rest[n] == '#')
		return bad("has a part behind a question mark", err);
	if (at && !ob_url_user(rest, (size_t)(at - rest), &url->user, &url->password, &wrong))
		return bad(wrong, err);
	int r = parse_hosts(hosts, n - (size_t)(hosts - rest), url, err);

	return r < 0 ? r : parse_vhost(rest + n, url, err);
}

int ob_rabbitmq_url_parse(const char *text, struct ob_rabbitmq_url *ret_url, struct ob_err *err)
{
	struct ob_rabbitmq_url url = { .tls = strncmp(text, "amqps://", 8) == 0 };
	int r;

	if (strncmp(text, "amqp://", 7) == 0 || url.tls)
		r = parse_rest(text + (url.tls ? 8 : 7), &url, err);
	else
		r = bad("has an unknown beginning", err);
	if (r < 0) {
		ob_rabbitmq_url_done(&url);
		return r;
	}
	*ret_url = url;
	return 0;
}

void ob_rabbitmq_url_done(struct ob_rabbitmq_url *url)
{
	ob_url_wipe(&url->user);
	ob_url_wipe(&url->password);
	free(url->vhost);
	*url = (struct ob_rabbitmq_url){ 0 };
}

/* SPDX-License-Identifier: MIT */
/* nats://user:password@host:port,host:port, tls://..., and a token in place of the user */
#include "sink/nats/nats.h"

#include <stdlib.h>

static int bad(const char *what, struct ob_err *err)
{
	return ob_err_set(
		err, OUTBOX_ECONFIG, OB_ERR_FATAL,
		"the url of the nats sink %s; write nats://host:4222, tls://host:4222, or "
		"several with commas between them",
		what);
}

/* "user:password", or a token alone. The first server that has them speaks for all. */
static int parse_user(const char *p, size_t n, struct ob_nats_url *url, struct ob_err *err)
{
	const char *colon = memchr(p, ':', n);
	size_t user = colon ? (size_t)(colon - p) : n;
	char *name;

	if (url->user || url->token)
		return 0;
	name = ob_url_decode(p, user);
	if (colon) {
		url->user = name;
		url->password = ob_url_decode(colon + 1, n - user - 1);
	} else {
		url->token = name;
	}
	return name && (!colon || url->password) ? 0
						 : bad("has a user, password or token with a bad "
						       "%-escape",
						       err);
}

static int parse_server(const char *p, size_t n, bool first, struct ob_nats_url *url,
			struct ob_err *err)
{
	bool tls = n >= 6 && memcmp(p, "tls://", 6) == 0;
	bool plain = n >= 7 && memcmp(p, "nats://", 7) == 0;
	struct ob_url_host *server = &url->servers[url->count];

	if (tls || plain) {
		p += tls ? 6 : 7;
		n -= tls ? 6 : 7;
	} else if (first || memmem(p, n, "://", 3)) {
		return bad("has an unknown beginning", err);
	}
	url->tls |= tls;
	if (n > 0 && p[n - 1] == '/')
		n--;
	const char *at = memrchr(p, '@', n);
	const char *host = at ? at + 1 : p;
	int r = at ? parse_user(p, (size_t)(at - p), url, err) : 0;

	if (r < 0)
		return r;
	if (url->count == OB_NATS_SERVERS)
		return bad("names more than 16 servers", err);
	if (!ob_url_host(host, n - (size_t)(host - p), "4222", server))
		return bad("has no usable host and port", err);
	url->count++;
	return 0;
}

int ob_nats_url_parse(const char *text, struct ob_nats_url *ret_url, struct ob_err *err)
{
	struct ob_nats_url *url = calloc(1, sizeof(*url));
	int r = 0;

	if (!url)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a url");
	for (bool first = true; r == 0; first = false) {
		size_t n = strcspn(text, ",");
		const char *p = text;

		text += n;
		for (; n > 0 && *p == ' '; n--)
			p++;
		r = parse_server(p, n, first, url, err);
		if (*text++ != ',')
			break;
	}
	if (r == 0)
		*ret_url = *url;
	else
		ob_nats_url_done(url);
	free(url);
	return r;
}

void ob_nats_url_done(struct ob_nats_url *url)
{
	ob_url_wipe(&url->user);
	ob_url_wipe(&url->password);
	ob_url_wipe(&url->token);
}

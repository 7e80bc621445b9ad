/* SPDX-License-Identifier: MIT */
/* mysql://user:password@host:port/database?option=value, taken apart. Messages never show it. */
#include "store/mysql/conn.h"

static int bad_url(const char *what, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the store's url %s: write mysql://user:password@host:3306/database, or "
			  "mysql://user@/database?socket=PATH",
			  what);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A part with its %XX resolved; the caller frees it. */
static int decode(struct ob_str part, char **ret_text, struct ob_err *err)
{
	char *out = malloc(part.n + 1);
	size_t n = 0;

	if (!out)
		return my_oom("reading the url", err);
	for (size_t i = 0; i < part.n; i++) {
		int high = -1, low = -1;

		if (part.p[i] != '%') {
			out[n++] = part.p[i];
			continue;
		}
		if (i + 2 < part.n) {
			high = hex_digit(part.p[i + 1]);
			low = hex_digit(part.p[i + 2]);
		}
		if (high < 0 || low < 0 || (high == 0 && low == 0)) {
			free(out);
			return bad_url("has a '%' without two hex digits (write %25 for it)", err);
		}
		out[n++] = (char)(high * 16 + low);
		i += 2;
	}
	out[n] = '\0';
	*ret_text = out;
	return 0;
}

/* Cut `s` at the first `c`: what stands before it; the rest stays in *s (absent: no `c`). */
static struct ob_str cut(struct ob_str *s, char c)
{
	const char *at = s->n ? memchr(s->p, c, s->n) : NULL;
	struct ob_str before = { s->p, at ? (size_t)(at - s->p) : s->n };

	*s = at ? (struct ob_str){ at + 1, s->n - before.n - 1 } : OB_STR_NULL;
	return before;
}

static int parse_port(struct ob_str text, uint32_t *ret_port, struct ob_err *err)
{
	uint32_t port = 0;

	for (size_t i = 0; i < text.n && port < 100000; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return bad_url("has a port that is no number", err);
		port = port * 10 + (uint32_t)(text.p[i] - '0');
	}
	if (port == 0 || port > 65535)
		return bad_url("has a port that is not between 1 and 65535", err);
	*ret_port = port;
	return 0;
}

/* host, host:port, [v6], [v6]:port */
static int parse_host(struct my_address *a, struct ob_str text, struct ob_err *err)
{
	struct ob_str host, rest = text;

	if (text.n && text.p[0] == '[') {
		rest = (struct ob_str){ text.p + 1, text.n - 1 };
		host = cut(&rest, ']');
		if (!rest.p || (rest.n && rest.p[0] != ':'))
			return bad_url("has a '[' without its ']'", err);
		rest = rest.n ? (struct ob_str){ rest.p + 1, rest.n - 1 } : OB_STR_NULL;
	} else {
		host = cut(&rest, ':');
	}
	int r = rest.p ? parse_port(rest, &a->port, err) : 0;
	if (r == 0 && host.n)
		r = decode(host, &a->host, err);
	return r;
}

static int parse_user(struct my_address *a, struct ob_str text, struct ob_err *err)
{
	struct ob_str password = text, user = cut(&password, ':');
	int r = user.n ? decode(user, &a->user, err) : 0;

	if (r == 0 && password.p)
		r = decode(password, &a->password, err);
	return r;
}

static int set_option(struct my_store *s, const struct ob_opt *opts, const char *name,
		      const char *value, struct ob_err *err)
{
	if (ob_opt_find(opts, name))
		return ob_opt_set(opts, s, name, value, err);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the store's url has an option '%.40s' that a mysql store does not know",
			  name);
}

static int parse_option(struct my_store *s, const struct ob_opt *opts, struct ob_str pair,
			struct ob_err *err)
{
	struct ob_str text = pair, key = cut(&text, '=');
	char *name = NULL, *value = NULL;
	int r = decode(key, &name, err);

	if (r == 0)
		r = decode(text.p ? text : OB_STR(""), &value, err);
	if (r == 0)
		r = set_option(s, opts, name, value, err);
	free(name);
	free(value);
	return r;
}

int my_url_parse(struct my_store *s, const struct ob_opt *opts, struct ob_err *err)
{
	struct my_address *a = &s->address;
	struct ob_str rest = ob_str(s->base.url);

	(void)cut(&rest, ':');
	if (rest.n < 2 || memcmp(rest.p, "//", 2) != 0)
		return bad_url("has no // after its type", err);
	rest = (struct ob_str){ rest.p + 2, rest.n - 2 };
	struct ob_str options = rest, path = cut(&options, '?'), server = cut(&path, '/');
	/* The last @: a password may hold one. */
	const char *at = server.n ? memrchr(server.p, '@', server.n) : NULL;
	struct ob_str user = { server.p, at ? (size_t)(at - server.p) : 0 };
	struct ob_str host = at ? (struct ob_str){ at + 1, server.n - user.n - 1 } : server;

	int r = parse_user(a, user, err);
	if (r == 0)
		r = parse_host(a, host, err);
	if (r == 0 && path.n)
		r = decode(path, &a->database, err);
	while (r == 0 && options.n)
		r = parse_option(s, opts, cut(&options, '&'), err);
	if (r == 0 && !a->database)
		r = bad_url("names no database", err);
	return r;
}

void my_url_done(struct my_address *address)
{
	if (address->password)
		explicit_bzero(address->password, strlen(address->password));
	free(address->host);
	free(address->user);
	free(address->password);
	free(address->database);
	*address = (struct my_address){ 0 };
}

const char *my_place(const struct my_store *s, char out[256])
{
	const struct my_address *a = &s->address;
	const char *database = a->database ? a->database : "";

	if (s->socket)
		(void)snprintf(out, 256, "%s, database '%s'", s->socket, database);
	else
		(void)snprintf(out, 256, "%s:%u, database '%s'", a->host ? a->host : "localhost",
			       a->port ? a->port : 3306, database);
	return out;
}

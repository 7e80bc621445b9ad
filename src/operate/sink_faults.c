/* SPDX-License-Identifier: MIT */
/* A relay meets these when it runs; `config check` can say so before. */
#include "operate/sink_faults.h"

#include "base/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *option_of(const struct ob_config_sink *sink, const char *name)
{
	for (size_t i = 0; i < sink->option_count; i++) {
		if (strcmp(sink->options[i].name, name) == 0)
			return sink->options[i].value;
	}
	return NULL;
}

/* ---- a program ---------------------------------------------------------- */

static bool is_program(const char *folder, size_t n, const char *name)
{
	char path[4096];
	int size = snprintf(path, sizeof(path), "%.*s%s%s", (int)n, folder, n ? "/" : "", name);

	return size > 0 && (size_t)size < sizeof(path) && access(path, X_OK) == 0;
}

/* As execvp() looks for it. */
static bool is_found(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return is_program("", 0, name);
	for (path = path ? path : "/usr/bin:/bin"; *path;) {
		size_t n = strcspn(path, ":");

		if (is_program(n ? path : ".", n ? n : 1, name))
			return true;
		path += n + (path[n] ? 1 : 0);
	}
	return false;
}

/* The first word; one with a backslash in it is not judged. */
static void check_command(const char *command, const char *name, struct ob_buf *out)
{
	char quote = (char)(*command == '"' || *command == '\'' ? *command : '\0');
	const char *word = command + (quote ? 1 : 0);
	size_t n = quote ? strcspn(word, (char[]){ quote, '\0' }) : strcspn(word, " \t'\"");
	char program[1024];

	if (n == 0 || n >= sizeof(program) || memchr(word, '\\', n) ||
	    (!quote && word[n] && word[n] != ' ' && word[n] != '\t'))
		return;
	memcpy(program, word, n);
	program[n] = '\0';
	if (!is_found(program))
		ob_buf_addf(out, "sinks.%s.command: there is no program '%.200s'\n", name, program);
}

/* ---- an address --------------------------------------------------------- */

static bool is_private_v4(const struct in_addr *address)
{
	uint32_t a = ntohl(address->s_addr);

	return a >> 24 == 10 || a >> 24 == 127 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 ||
	       a >> 16 == 0xa9fe || a == 0;
}

static bool is_private_v6(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_UNSPECIFIED(a) ||
	       (a->s6_addr[0] & 0xfe) == 0xfc;
}

/* Only of an address that is written out: names may change. */
static bool is_private(const char *url)
{
	const char *begin = strstr(url, "://");
	struct in6_addr v6;
	struct in_addr v4;
	char host[64];

	if (!begin)
		return false;
	begin += 3;
	bool bracket = *begin == '[';
	begin += bracket ? 1 : 0;
	size_t n = strcspn(begin, bracket ? "]" : ":/?#");
	if (n >= sizeof(host))
		return false;
	memcpy(host, begin, n);
	host[n] = '\0';
	if (bracket)
		return inet_pton(AF_INET6, host, &v6) == 1 && is_private_v6(&v6);
	return strcmp(host, "localhost") == 0 ||
	       (inet_pton(AF_INET, host, &v4) == 1 && is_private_v4(&v4));
}

static bool is_yes(const char *value)
{
	return value && (strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 ||
			 strcmp(value, "on") == 0);
}

void ob_sink_faults(const struct ob_config_sink *sink, struct ob_buf *out)
{
	const char *command = option_of(sink, "command"), *url = option_of(sink, "url");
	struct ob_err err = OB_ERR_INIT;

	if (command)
		check_command(command, sink->name, out);
	if (!url)
		return;
	if (!strchr(url, ',') && ob_url_check(url, &err) < 0)
		ob_buf_addf(out, "sinks.%s.url: %s\n", sink->name, err.msg);
	if (ob_opt_find(sink->ops->opts, "allow_private") &&
	    !is_yes(option_of(sink, "allow_private")) && is_private(url))
		ob_buf_addf(out,
			    "sinks.%s.url: its address is private and will be refused; set "
			    "allow_private if that is intended\n",
			    sink->name);
}

/* SPDX-License-Identifier: MIT */
/* The proxy of the chaos tests does what its plan says, in front of a peer played by the test. */
#include "chaos_proxy.h"
#include "suite.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

static struct chaos_proxy *proxy;
static int client, server; /* both ends of one connection through the proxy */

static void meet(const struct chaos_plan *plan)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	proxy = chaos_proxy_new(ntohs(at.sin_port));
	chaos_proxy_plan(proxy, plan);
	client = socket(AF_INET, SOCK_STREAM, 0);
	at.sin_port = htons((uint16_t)chaos_proxy_port(proxy));
	ck_assert_int_eq(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	server = accept(listener, NULL, NULL);
	ck_assert_int_ge(server, 0);
	(void)close(listener);
}

static void part(void)
{
	(void)close(client);
	(void)close(server);
	chaos_proxy_free(proxy);
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
}

/* Exactly this text comes, and then, when `end`, the end or a reset. */
static void expect(int fd, const char *text, bool end)
{
	char got[64] = "";
	size_t n = 0;
	ssize_t r = 1;

	while (n < strlen(text) || (end && r > 0)) {
		struct pollfd p = { fd, POLLIN, 0 };

		ck_assert_msg(poll(&p, 1, PATIENCE_MS) == 1, "\"%s\" and no more", got);
		r = read(fd, got + n, sizeof(got) - n - 1);
		ck_assert_msg(r > 0 || end, "\"%s\" and then the end", got);
		n += r > 0 ? (size_t)r : 0;
	}
	ck_assert_str_eq(got, text);
}

OB_TEST(a_plain_one_passes_everything_on)
{
	meet(&(struct chaos_plan){ 0 });
	say(client, "hello");
	expect(server, "hello", false);
	say(server, "world");
	expect(client, "world", false);
	(void)shutdown(client, SHUT_WR);
	expect(server, "", true);
	say(server, "late word");
	expect(client, "late word", false);
	ck_assert_uint_eq(chaos_proxy_cuts(proxy), 0);
	part();
}
OB_TEST_END

OB_TEST(a_cut_comes_after_exactly_so_many_bytes)
{
	meet(&(struct chaos_plan){ .cut = { { .after = 7 } }, .end = CHAOS_CLOSE, .slice = 2 });
	say(client, "0123");
	expect(server, "0123", false);
	say(client, "456789");
	expect(server, "456", true);
	ck_assert_uint_eq(chaos_proxy_cuts(proxy), 1);
	part();
}
OB_TEST_END

OB_TEST(bytes_to_match_do_not_pass_even_in_two_parts)
{
	struct chaos_plan plan = { .end = CHAOS_RESET };

	plan.cut[CHAOS_TO_CLIENT].match = "STOP";
	meet(&plan);
	say(server, "a ST");
	expect(client, "a ", false); /* what may become the match waits */
	say(server, "AY ST");
	expect(client, "STAY ", false);
	say(server, "OP gone");
	expect(client, "", true);
	part();
}
OB_TEST_END

OB_TEST(a_mute_connection_stays_open)
{
	struct chaos_plan plan = { .cut = { { .after = 1 } }, .end = CHAOS_MUTE, .times = 1 };
	struct pollfd p;

	meet(&plan);
	say(client, "xyz");
	expect(server, "x", false);
	say(server, "never");
	p = (struct pollfd){ client, POLLIN, 0 };
	ck_assert_int_eq(poll(&p, 1, 100), 0);
	chaos_proxy_break(proxy);
	expect(client, "", true);
	part();
}
OB_TEST_END

OB_TEST(what_the_server_says_of_itself_is_exchanged_even_in_parts)
{
	meet(&(struct chaos_plan){ 0 });
	chaos_proxy_swap(proxy, "here", "away", 4);
	say(client, "here");
	expect(server, "here", false);
	say(server, "here and he");
	expect(client, "away and ", false);
	say(server, "re, hehere, her");
	expect(client, "away, heaway, ", false);
	(void)shutdown(server, SHUT_WR);
	expect(client, "her", true);
	part();
}
OB_TEST_END

OB_SUITE("chaos proxy", a_plain_one_passes_everything_on, a_cut_comes_after_exactly_so_many_bytes,
	 bytes_to_match_do_not_pass_even_in_two_parts, a_mute_connection_stays_open,
	 what_the_server_says_of_itself_is_exchanged_even_in_parts)

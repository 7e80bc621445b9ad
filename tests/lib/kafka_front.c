/* SPDX-License-Identifier: MIT */
/* Addresses in flight, and a broker that refuses every login. */
#include "kafka_front.h"

#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ------------------------------------------------------- */

/* As in an answer about the cluster: the host, and the port in four bytes. */
static void put_address(char out[13], const char *host, int port)
{
	uint32_t number = htonl((uint32_t)port);

	ck_assert_uint_eq(strlen(host), 9);
	memcpy(out, host, 9);
	memcpy(out + 9, &number, 4);
}

void kafka_front_name(const struct kafka_mock *mock, struct chaos_proxy *proxy, const char *host,
		      int port)
{
	char from[13], to[13];

	put_address(from, "127.0.0.1", kafka_mock_port(mock));
	put_address(to, host, port);
	chaos_proxy_swap(proxy, from, to, sizeof(from));
}

/* ---- a broker that refuses ------------------------------------------- */

enum {
	API_SASL_HANDSHAKE = 17,
	API_VERSIONS = 18,
	API_SASL_AUTHENTICATE = 36,
	UNSUPPORTED_VERSION = 35,
	AUTHENTICATION_FAILED = 58,
	REQUEST_MAX = 4096,
	REQUEST_HEAD = 8, /* api, its version, and a number that the answer repeats */
};

struct kafka_bouncer {
	pthread_t thread;
	int listener, port;
	atomic_int client; /* -1: none */
	atomic_bool ends;
	atomic_uint refusals;
};

struct answer {
	unsigned char bytes[256];
	size_t size;
};

static void put(struct answer *answer, uint32_t value, size_t bytes)
{
	while (bytes-- > 0)
		answer->bytes[answer->size++] = (unsigned char)(value >> (8 * bytes));
}

static void put_text(struct answer *answer, const char *text)
{
	put(answer, (uint32_t)strlen(text), 2);
	memcpy(answer->bytes + answer->size, text, strlen(text));
	answer->size += strlen(text);
}

/* Which requests there are; to a version that it does not know a broker answers in the first one.
 */
static void put_versions(struct answer *answer, int version)
{
	static const uint16_t all[][3] = { { 0, 3, 7 },
					   { 3, 0, 2 },
					   { API_SASL_HANDSHAKE, 0, 1 },
					   { 22, 0, 1 },
					   { API_VERSIONS, 0, 0 },
					   { API_SASL_AUTHENTICATE, 0, 0 } };

	put(answer, version > 0 ? UNSUPPORTED_VERSION : 0, 2);
	put(answer, sizeof(all) / sizeof(all[0]), 4);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (size_t k = 0; k < 3; k++)
			put(answer, all[i][k], 2);
	}
}

/* False: nothing to say to that. */
static bool put_answer(struct kafka_bouncer *bouncer, int api, int version, struct answer *answer)
{
	switch (api) {
	case API_VERSIONS:
		put_versions(answer, version);
		return true;
	case API_SASL_HANDSHAKE:
		put(answer, 0, 2);
		put(answer, 1, 4);
		put_text(answer, "PLAIN");
		return true;
	case API_SASL_AUTHENTICATE:
		put(answer, AUTHENTICATION_FAILED, 2);
		put_text(answer, "Authentication failed: Invalid username or password");
		put(answer, 0, 4);
		(void)atomic_fetch_add(&bouncer->refusals, 1);
		return true;
	default:
		return false;
	}
}

static bool read_all(int fd, unsigned char *out, size_t size)
{
	return recv(fd, out, size, MSG_WAITALL) == (ssize_t)size;
}

static void talk(struct kafka_bouncer *bouncer, int fd)
{
	unsigned char size_bytes[4], request[REQUEST_MAX];

	while (read_all(fd, size_bytes, 4)) {
		struct answer answer = { .size = 4 };
		size_t size = (size_t)size_bytes[2] << 8 | size_bytes[3];

		if (size < REQUEST_HEAD || size > sizeof(request) || !read_all(fd, request, size))
			return;
		memcpy(answer.bytes + answer.size, request + 4, 4);
		answer.size += 4;
		if (!put_answer(bouncer, request[0] << 8 | request[1], request[2] << 8 | request[3],
				&answer))
			return;
		size = answer.size;
		answer.size = 0;
		put(&answer, (uint32_t)size - 4, 4);
		if (send(fd, answer.bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
			return;
	}
}

static void *serve(void *arg)
{
	struct kafka_bouncer *bouncer = arg;

	while (!atomic_load(&bouncer->ends)) {
		int fd = accept(bouncer->listener, NULL, NULL);

		if (fd < 0)
			continue;
		atomic_store(&bouncer->client, fd);
		if (!atomic_load(&bouncer->ends))
			talk(bouncer, fd);
		atomic_store(&bouncer->client, -1);
		(void)close(fd);
	}
	return NULL;
}

struct kafka_bouncer *kafka_bouncer_new(void)
{
	struct kafka_bouncer *bouncer = calloc(1, sizeof(*bouncer));

	ck_assert_ptr_nonnull(bouncer);
	atomic_init(&bouncer->client, -1);
	bouncer->listener = listen_on(0, &bouncer->port);
	ck_assert_int_eq(pthread_create(&bouncer->thread, NULL, serve, bouncer), 0);
	return bouncer;
}

int kafka_bouncer_port(const struct kafka_bouncer *bouncer)
{
	return bouncer->port;
}

unsigned kafka_bouncer_refusals(struct kafka_bouncer *bouncer)
{
	return atomic_load(&bouncer->refusals);
}

void kafka_bouncer_free(struct kafka_bouncer *bouncer)
{
	atomic_store(&bouncer->ends, true);
	(void)shutdown(bouncer->listener, SHUT_RDWR);
	(void)shutdown(atomic_load(&bouncer->client), SHUT_RDWR);
	(void)pthread_join(bouncer->thread, NULL);
	(void)close(bouncer->listener);
	free(bouncer);
}

/* SPDX-License-Identifier: MIT */
/*
 * Nothing may follow a refused message. With one request at a time the library still prepares the
 * next one, and sends it even when the answer to the first was a refusal, before its fatal error
 * stops it. A broker that checks sequence numbers refuses that one too, but not for a producer
 * that is new to it. So the connection is cut right there: answers are handled in the thread of the
 * broker's connection, which has not sent the next request yet.
 */
#include "sink/kafka/kafka.h"

#include <sys/socket.h>
#include <unistd.h>

/* The connection that the library's own thread serves; -1: none. */
static _Thread_local int thread_fd = -1;

static int open_socket(int domain, int type, int protocol, void *opaque)
{
	(void)opaque;
	thread_fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	return thread_fd;
}

static int close_socket(int fd, void *opaque)
{
	(void)opaque;
	if (fd == thread_fd)
		thread_fd = -1;
	return close(fd);
}

static rd_kafka_resp_err_t on_answer(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque)
{
	(void)rk, (void)opaque;
	/* A broker's own error; what the library finds by itself was not sent. */
	if (message->err > RD_KAFKA_RESP_ERR_NO_ERROR && thread_fd >= 0)
		(void)shutdown(thread_fd, SHUT_RDWR);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque,
				  /* NOLINTNEXTLINE(readability-non-const-parameter) */
				  char *why, size_t size)
{
	(void)conf, (void)why, (void)size;
	return rd_kafka_interceptor_add_on_acknowledgement(rk, "outbox", on_answer, opaque);
}

bool ob_kafka_guard(rd_kafka_conf_t *conf)
{
	rd_kafka_conf_set_socket_cb(conf, open_socket);
	rd_kafka_conf_set_closesocket_cb(conf, close_socket);
	return rd_kafka_conf_interceptor_add_on_new(conf, "outbox", on_new, NULL) ==
	       RD_KAFKA_RESP_ERR_NO_ERROR;
}

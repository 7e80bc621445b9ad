/* SPDX-License-Identifier: MIT */
/*
 * A private RabbitMQ for tests: its own directory, user data, node name, cookie and epmd, on
 * free ports of 127.0.0.1. It takes ten seconds to start, so a program starts one before
 * its tests. It ends with the process that started it.
 *
 * OUTBOX_TEST_RABBITMQ names a directory with rabbitmq-server, rabbitmqctl and epmd; without it the
 * installed ones run.
 *
 * Users: guest/guest may do all; limited/secret may write to exchanges named open.* only, and on
 * amq.topic with routing keys that begin with "open.". The vhost "other" is guest's alone.
 */
#ifndef OB_TESTS_RABBITMQ_SERVER_H
#define OB_TESTS_RABBITMQ_SERVER_H

#include "certs.h"
#include "config.h"

#if HAVE_RABBITMQ_FOLDER
#include <rabbitmq-c/amqp.h>
#else
#include <amqp.h>
#endif
#include <stdbool.h>
#include <sys/types.h>

enum { RABBITMQ_MESSAGE_MAX = 20 << 20 }; /* bytes that it takes in one */

struct rabbitmq_server {
	bool tls; /* in: also on a TLS port, with certificates of its own */
	char dir[64];
	char node[48];
	int port, tls_port, dist_port, epmd_port;
	pid_t pid, epmd;
	char ca[CERTS_PATH], other_ca[CERTS_PATH];
};

/* NULL, or why there can be none here; for a skip. */
const char *rabbitmq_server_missing(void);
/* Start and wait until it answers; call it where the tests are forked. Failures end the test. */
void rabbitmq_server_start(struct rabbitmq_server *server);
/* SIGKILL and gone; what is on its disk stays. */
void rabbitmq_server_kill(struct rabbitmq_server *server);
/* Start it again in the same place. */
void rabbitmq_server_again(struct rabbitmq_server *server);
/* Kill and remove everything. */
void rabbitmq_server_stop(struct rabbitmq_server *server);
/* Run rabbitmqctl with these words, NULL at the end. */
void rabbitmq_ctl(const struct rabbitmq_server *server, const char *const *words);

/* ---- a client of its own, rabbitmq_client.c; failures end the test ---- */

/* Connect; NULL when that fails. */
amqp_connection_state_t rabbitmq_try_connect(int port);
amqp_connection_state_t rabbitmq_connect(const struct rabbitmq_server *server);
void rabbitmq_disconnect(amqp_connection_state_t client);
/* A durable queue; `overflow`: of at most so many messages, then it refuses; 0: without a limit. */
void rabbitmq_queue(amqp_connection_state_t client, const char *name, int overflow);
/* The same of type quorum, with this node as its one member. */
void rabbitmq_quorum_queue(amqp_connection_state_t client, const char *name, int overflow);
/* A queue takes and confirms nothing any more, and goes on where it stood. */
void rabbitmq_suspend_queue(const struct rabbitmq_server *server, const char *name);
void rabbitmq_resume_queue(const struct rabbitmq_server *server, const char *name);
void rabbitmq_delete_queue(amqp_connection_state_t client, const char *name);
/* A durable exchange, and a queue bound to it. */
void rabbitmq_exchange(amqp_connection_state_t client, const char *name, const char *type);
void rabbitmq_bind(amqp_connection_state_t client, const char *queue, const char *exchange,
		   const char *key);
void rabbitmq_purge(amqp_connection_state_t client, const char *queue);
/* How many messages are ready in it. */
uint32_t rabbitmq_count(amqp_connection_state_t client, const char *queue);
/*
 * Take the next message out of a queue: false when there is none. The caller destroys it with
 * amqp_destroy_message(); `ret_key` is the routing key, of 256 bytes with a NUL.
 */
bool rabbitmq_get(amqp_connection_state_t client, const char *queue, amqp_message_t *ret_message,
		  char *ret_key, size_t *ret_key_size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Run a program with private brokers around it: with_brokers PROGRAM ARGUMENT...
 * It finds RabbitMQ through TEST_RABBITMQ_PORT, with the queues orders-1 to orders-9 of type
 * classic and quorum-1 to quorum-9, and NATS through TEST_NATS_PORT, with the streams ORDERS-1 to
 * ORDERS-9 of subjects orders.1 to orders.9. Where there is no broker, the variable is not set.
 */
#include "config.h"
#if HAVE_NATS
#include "nats_server.h"
#endif
#if HAVE_RABBITMQ
#include "rabbitmq_server.h"
#endif
#include "run_program.h"

#include <check.h>

enum { SOURCES = 9 };

#if HAVE_RABBITMQ
static void make_queues(const struct rabbitmq_server *rabbitmq)
{
	amqp_connection_state_t client = rabbitmq_connect(rabbitmq);

	for (int i = 1; i <= SOURCES; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "orders-%d", i);
		rabbitmq_queue(client, name, 0);
		(void)snprintf(name, sizeof(name), "quorum-%d", i);
		rabbitmq_quorum_queue(client, name, 0);
	}
	rabbitmq_disconnect(client);
}
#endif

#if HAVE_NATS
static void make_streams(struct nats_server *nats)
{
	for (int i = 1; i <= SOURCES; i++) {
		char name[32], subject[32];

		(void)snprintf(name, sizeof(name), "ORDERS-%d", i);
		(void)snprintf(subject, sizeof(subject), "orders.%d", i);
		nats_stream_add(nats, name, subject, NULL);
	}
}
#endif

static char **program;
static int code = EXIT_FAILURE;

/* The helpers that start brokers report by Check, and want to be called under it. */
static void run_around(void)
{
#if HAVE_RABBITMQ
	struct rabbitmq_server rabbitmq = { .tls = false };
	bool with_rabbitmq = !rabbitmq_server_missing();

	if (with_rabbitmq) {
		rabbitmq_server_start(&rabbitmq);
		make_queues(&rabbitmq);
		set_port("TEST_RABBITMQ_PORT", rabbitmq.port);
	}
#endif
#if HAVE_NATS
	struct nats_server nats = { .config = NULL };
	bool with_nats = !nats_server_missing();

	if (with_nats) {
		nats_server_start(&nats);
		make_streams(&nats);
		set_port("TEST_NATS_PORT", nats.port);
	}
#endif
	code = run_program(program);
#if HAVE_NATS
	if (with_nats)
		nats_server_end(&nats);
#endif
#if HAVE_RABBITMQ
	if (with_rabbitmq)
		rabbitmq_server_stop(&rabbitmq);
#endif
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("brokers");
	TCase *tcase = tcase_create("around");

	program = argv + 1;
	if (argc < 2)
		return EXIT_FAILURE;
	tcase_add_unchecked_fixture(tcase, run_around, NULL);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_SILENT);
	if (srunner_ntests_failed(runner) > 0)
		code = EXIT_FAILURE;
	srunner_free(runner);
	return code;
}

/* SPDX-License-Identifier: MIT */
/* One test for each pair of a store and a sink. All servers run once, for all of them. */
#include "matrix.h"

#include "config.h"
#include "mysql_server.h"
#include "pg_server.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 3, TIMEOUT_S = 120 };

char matrix_dir[64];
char *matrix_printed;

const struct matrix_peer *const matrix_peers[] = {
	&peer_stdout,   &peer_file, &peer_exec,
#if HAVE_HTTP
	&peer_http,
#endif
#if HAVE_REDIS
	&peer_redis,
#endif
#if HAVE_RABBITMQ
	&peer_rabbitmq,
#endif
#if HAVE_KAFKA
	&peer_kafka,
#endif
#if HAVE_NATS
	&peer_nats,
#endif
	NULL,
};

/* ---- the stores ------------------------------------------------------ */

static struct pg_server postgres;
static struct mysql_server mysql;
static const char *no_postgres, *no_mysql; /* why not */

static const char *sqlite_url(char out[256])
{
	(void)snprintf(out, 256, "sqlite:x.db");
	return NULL;
}

static const char *postgres_url(char out[256])
{
	pg_server_url(&postgres, "postgres", "postgres", out);
	return no_postgres;
}

static const char *mysql_url(char out[256])
{
	mysql_server_url(&mysql, "root", "mysql", out);
	return no_mysql;
}

static const struct store {
	const char *name;
	const char *(*url)(char out[256]); /* returns why there is none, or NULL */
} stores[] = {
	{ "sqlite", sqlite_url },
	{ "postgres", postgres_url },
	{ "mysql", mysql_url },
};
enum { STORES = sizeof(stores) / sizeof(stores[0]), PEERS_MAX = 16 };

/* ---- programs -------------------------------------------------------- */

char *matrix_run(const char *const *argv)
{
	const char *words[16] = { "/usr/bin/env" };
	struct ob_run run = { .argv = words, .dir = matrix_dir, .timeout_ms = 60000 };
	size_t n = 1;

	for (size_t i = 0; argv[i]; i++) {
		ck_assert_uint_lt(n, 15);
		words[n++] = argv[i];
	}
	ob_run(&run);
	ck_assert_msg(run.code == 0 && !run.timed_out, "%s: exit code %d: %s", argv[0], run.code,
		      run.err);
	char *out = run.out;
	run.out = NULL;
	ob_run_done(&run);
	return out;
}

static char *outbox(const char *in, const char *command, const char *option)
{
	const char *argv[] = { getenv("OUTBOX_BIN"), command, option, NULL };
	struct ob_run run = { .argv = argv, .dir = matrix_dir, .in = in, .timeout_ms = 60000 };

	ob_run(&run);
	ck_assert_msg(run.code == 0 && !run.timed_out, "outbox %s: exit code %d: %s", command,
		      run.code, run.err);
	char *out = run.out;
	run.out = NULL;
	ob_run_done(&run);
	return out;
}

/* ---- a pair ---------------------------------------------------------- */

static void write_config(const struct store *store, const struct matrix_peer *peer, const char *url)
{
	char path[128], options[512] = "";

	if (peer->options)
		peer->options(options, sizeof(options));
	(void)snprintf(path, sizeof(path), "%s/outbox.yaml", matrix_dir);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	(void)fprintf(f,
		      "stores: { %s: { url: \"%s\" } }\n"
		      "sinks: { out: { type: %s%s } }\n"
		      "relays: [ { route: { destination: \"{aggregate_type}\" } } ]\n",
		      store->name, url, peer->type, options);
	ck_assert_int_eq(fclose(f), 0);
}

/* What tells a message from all others, also of other pairs. */
static void payload_of(const char *destination, int n, char out[128])
{
	(void)snprintf(out, 128, "{\"pair\":\"%s\",\"n\":%d,\"text\":\"grün\"}", destination, n);
}

static void push_all(const char *destination)
{
	char lines[MATRIX_COUNT * 400] = "";
	size_t at = 0;

	for (int n = 0; n < MATRIX_COUNT; n++) {
		char payload[128];

		payload_of(destination, n, payload);
		at += (size_t)snprintf(lines + at, sizeof(lines) - at,
				       "{\"aggregate_type\":\"%s\",\"aggregate_id\":\"%d\","
				       "\"event_type\":\"Made\",\"headers\":{\"tenant\":\"t%d\"},"
				       "\"payload\":%s}\n",
				       destination, n % KEYS, n, payload);
	}
	free(outbox(lines, "push", NULL));
}

/* Each is there once, and behind the one before it of its key. */
static void check_all(const char *destination, const char *stored)
{
	const char *last[KEYS] = { stored, stored, stored };

	for (int n = 0; n < MATRIX_COUNT; n++) {
		char payload[128];

		payload_of(destination, n, payload);
		const char *found = strstr(stored, payload);
		ck_assert_msg(found != NULL, "%s is not in: %s", payload, stored);
		ck_assert_msg(found >= last[n % KEYS], "%s came too early: %s", payload, stored);
		ck_assert_msg(!strstr(found + 1, payload), "%s came twice: %s", payload, stored);
		last[n % KEYS] = found;
	}
}

static const char *peer_missing[PEERS_MAX]; /* by number: why not */

static void deliver(size_t at)
{
	const struct store *store = &stores[at % STORES];
	const struct matrix_peer *peer = matrix_peers[at / STORES];
	const char *missing = peer_missing[at / STORES];
	char url[256], destination[64];

	if (!missing)
		missing = store->url(url);
	if (missing) {
		(void)printf("# SKIP %s to %s: %s\n", store->name, peer->type, missing);
		(void)fflush(stdout);
		return;
	}
	ob_temp_dir(matrix_dir);
	(void)snprintf(destination, sizeof(destination), "matrix_%s_%s", store->name, peer->type);
	if (peer->begin)
		peer->begin(destination);
	write_config(store, peer, url);
	free(outbox(NULL, "setup", NULL));
	push_all(destination);
	matrix_printed = outbox(NULL, "work", "--once");
	char *stored = peer->read(destination);
	check_all(destination, stored);
	char *status = outbox(NULL, "status", "--json");
	ck_assert_ptr_nonnull(strstr(status, "\"pending\":0"));
	free(status);
	free(stored);
	free(matrix_printed);
	ob_temp_dir_remove(matrix_dir);
}

START_TEST(every_store_to_every_sink)
{
	deliver((size_t)_i);
}
END_TEST

/* ---- all of them ----------------------------------------------------- */

static void start_servers(void)
{
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	no_postgres = pg_server_start(&postgres, NULL) ? NULL : postgres.reason;
	no_mysql = mysql_server_start(&mysql, NULL) ? NULL : mysql.reason;
	for (size_t i = 0; matrix_peers[i]; i++)
		peer_missing[i] = matrix_peers[i]->start ? matrix_peers[i]->start() : NULL;
}

static void stop_servers(void)
{
	for (size_t i = 0; matrix_peers[i]; i++) {
		if (!peer_missing[i] && matrix_peers[i]->stop)
			matrix_peers[i]->stop();
	}
	mysql_server_stop(&mysql);
	pg_server_stop(&postgres);
}

int main(void)
{
	Suite *suite = suite_create("matrix");
	TCase *pairs = tcase_create("pairs");
	int count = 0;

	while (matrix_peers[count])
		count++;
	tcase_set_timeout(pairs, TIMEOUT_S);
	tcase_add_unchecked_fixture(pairs, start_servers, stop_servers);
	tcase_add_loop_test(pairs, every_store_to_every_sink, 0, count * (int)STORES);
	suite_add_tcase(suite, pairs);
	SRunner *runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

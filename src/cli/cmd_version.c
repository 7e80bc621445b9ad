/* SPDX-License-Identifier: MIT */
/* outbox version: what this binary is made of. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "config.h"

#if HAVE_RABBITMQ && HAVE_RABBITMQ_FOLDER
#include <rabbitmq-c/amqp.h>
#elif HAVE_RABBITMQ
#include <amqp.h>
#endif
#if HAVE_HTTP
#include <curl/curl.h>
#endif
#if HAVE_REDIS
#include <hiredis/hiredis.h>
#endif
#include <jansson.h>
#if HAVE_POSTGRES
#include <libpq-fe.h>
#endif
#if HAVE_KAFKA
#include <librdkafka/rdkafka.h>
#endif
#if HAVE_MYSQL
#include <mysql.h>
#endif
#if HAVE_NATS
#include <nats/nats.h>
#endif
#if HAVE_REDIS || HAVE_RABBITMQ || HAVE_NATS || HAVE_HTTP
#include <openssl/crypto.h>
#define WITH_OPENSSL 1
#else
#define WITH_OPENSSL 0
#endif
#if HAVE_SQLITE
#include <sqlite3.h>
#endif
#include <stdio.h>
#include <yaml.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

struct library {
	const char *name;
	const char *(*version)(void);
};

#if HAVE_POSTGRES
static const char *libpq_version(void)
{
	static char text[32];
	int number = PQlibVersion();

	(void)snprintf(text, sizeof(text), "%d.%d", number / 10000, number % 10000);
	return text;
}
#endif

#if HAVE_REDIS
/* It cannot be asked: what it was compiled with. */
static const char *hiredis_version(void)
{
	static char text[32];

	(void)snprintf(text, sizeof(text), "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	return text;
}
#endif

#if HAVE_HTTP
static const char *libcurl_version(void)
{
	return curl_version_info(CURLVERSION_NOW)->version;
}
#endif

#if WITH_OPENSSL
static const char *openssl_version(void)
{
	return OpenSSL_version(OPENSSL_VERSION_STRING);
}
#endif

static const struct library libraries[] = {
	{ "jansson", jansson_version_str },
	{ "libyaml", yaml_get_version_string },
#if HAVE_SQLITE
	{ "sqlite", sqlite3_libversion },
#endif
#if HAVE_POSTGRES
	{ "libpq", libpq_version },
#endif
#if HAVE_MYSQL
	{ "libmariadb", mysql_get_client_info },
#endif
#if HAVE_REDIS
	{ "hiredis", hiredis_version },
#endif
#if HAVE_KAFKA
	{ "librdkafka", rd_kafka_version_str },
#endif
#if HAVE_RABBITMQ
	{ "librabbitmq", amqp_version },
#endif
#if HAVE_NATS
	{ "libnats", nats_GetVersion },
#endif
#if HAVE_HTTP
	{ "libcurl", libcurl_version },
#endif
#if WITH_OPENSSL
	{ "openssl", openssl_version },
#endif
};

struct feature {
	const char *name;
	bool on;
};

static const struct feature features[] = {
	{ "assertions",
#ifdef NDEBUG
	  false
#else
	  true
#endif
	},
	{ "fault_points", OB_FAULT_POINTS },
};

enum {
	LIBRARY_COUNT = sizeof(libraries) / sizeof(libraries[0]),
	FEATURE_COUNT = sizeof(features) / sizeof(features[0]),
};

static int print_json(void)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "version", ob_str(OUTBOX_VERSION));
	ob_jout_text(&j, "compiler", ob_str(COMPILER));
	ob_jout_begin(&j, "libraries", '{');
	for (size_t i = 0; i < LIBRARY_COUNT; i++)
		ob_jout_text(&j, libraries[i].name, ob_str(libraries[i].version()));
	ob_jout_end(&j, '}');
	ob_jout_begin(&j, "features", '{');
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++)
		ob_jout_bool(&j, b->name, b->ops);
	for (size_t i = 0; i < FEATURE_COUNT; i++)
		ob_jout_bool(&j, features[i].name, features[i].on);
	ob_jout_end(&j, '}');
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int version_run(struct ob_cli *cli, const void *args)
{
	(void)args;
	if (cli->json)
		return print_json();
	printf("outbox %s\n", OUTBOX_VERSION);
	printf("%-11s %s\n", "compiler", COMPILER);
	for (size_t i = 0; i < LIBRARY_COUNT; i++)
		printf("%-11s %s\n", libraries[i].name, libraries[i].version());
	for (size_t i = 0; i < FEATURE_COUNT; i++) {
		if (features[i].on)
			printf("%-11s %s\n", "with", features[i].name);
	}
	return OB_EXIT_OK;
}

const struct ob_cmd ob_cmd_version = {
	.name = "version",
	.group = OB_GROUP_PROGRAM,
	.flags = OB_CMD_JSON,
	.summary = "the version, the compiler, the libraries",
	.description =
		"Prints what this program is made of: its version, the compiler that made "
		"it, and the versions of the libraries it runs with. Please put it into "
		"reports of faults. With --json the object also says which stores and which "
		"test helpers are built in.",
	.run = version_run,
};

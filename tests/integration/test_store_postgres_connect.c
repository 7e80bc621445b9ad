/* SPDX-License-Identifier: MIT */
/* Getting to PostgreSQL: TLS with a private authority, and several hosts of which one takes writes.
 */
#include "certs.h"
#include "pg_fixture.h"
#include "run.h"
#include "store/postgres/conn.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- TLS ------------------------------------------------------------- */

static struct pg_server secure;
static char certs[64], ca[CERTS_PATH], other_ca[CERTS_PATH];

/* The server insists that its key is its own and nobody else can read it. */
static void start_secure(void)
{
	static char cert_file[128], key_file[128];
	static const char *const settings[] = { "ssl=on", cert_file, key_file, NULL };
	const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
	char key[96];

	ob_temp_dir(certs);
	ck_assert_int_eq(chmod(certs, 0755), 0);
	certs_make(certs, ca, other_ca);
	(void)snprintf(key, sizeof(key), "%s/server.key", certs);
	ck_assert_int_eq(chmod(key, 0600), 0);
	if (user)
		ck_assert_int_eq(chown(key, user->pw_uid, user->pw_gid), 0);
	(void)snprintf(cert_file, sizeof(cert_file), "ssl_cert_file=%s/server.crt", certs);
	(void)snprintf(key_file, sizeof(key_file), "ssl_key_file=%s", key);
	ck_assert_msg(pg_server_start(&secure, settings), "%s", secure.reason);
}

static const char *secure_url(const char *host, const char *mode, const char *root)
{
	static char where[512];

	(void)snprintf(where, sizeof(where),
		       "postgresql://postgres@%s:%d/postgres?sslmode=%s&sslrootcert=%s", host,
		       secure.port, mode, root);
	return where;
}

OB_TEST(tls_with_a_private_authority_is_verified_in_full)
{
	struct ob_store_conf conf = { 0 };
	struct ob_store *store = NULL;

	start_secure();
	conf.url = secure_url("localhost", "verify-full", ca);
	ok(ob_store_connect(&conf, &store, &err));
	ok(store_setup(store, 2));
	ok(ob_store_check(store, &err));
	ob_store_free(store);

	expect_refused(secure_url("localhost", "verify-full", other_ca), OB_ERR_FATAL,
		       "certificate verify failed; the server's certificate is not signed by what "
		       "sslrootcert holds");
	expect_refused(secure_url("127.0.0.1", "verify-full", ca), OB_ERR_FATAL,
		       "does not match host name \"127.0.0.1\"; use the name of the certificate "
		       "as host");
	expect_refused(secure_url("localhost", "verify-full", "/nonexistent"), OB_ERR_FATAL,
		       "root certificate file \"/nonexistent\" does not exist");
	/* The name need not fit where only the authority is asked for. */
	conf.url = secure_url("127.0.0.1", "verify-ca", ca);
	ok(ob_store_connect(&conf, &store, &err));
	ob_store_free(store);
	pg_server_stop(&secure);
	ob_temp_dir_remove(certs);
}
OB_TEST_END

OB_TEST(a_server_without_tls_is_not_used_when_tls_is_demanded)
{
	char where[256];

	fixture_new();
	(void)snprintf(where, sizeof(where),
		       "postgresql://postgres@127.0.0.1:%d/postgres?sslmode=require", server.port);
	expect_refused(where, OB_ERR_FATAL,
		       "server does not support SSL, but SSL was required; turn on ssl in the "
		       "server, or ask for less with sslmode in the url");
}
OB_TEST_END

/* ---- several hosts ---------------------------------------------------- */

OB_TEST(of_several_hosts_the_one_that_takes_writes_is_used)
{
	static const char *const read_only[] = { "default_transaction_read_only=on", NULL };
	static const char *const said[] = { "", "&target_session_attrs=read-write" };
	struct pg_server replica;
	char where[512];

	ck_assert_msg(pg_server_start(&replica, read_only), "%s", replica.reason);
	for (size_t i = 0; i < 2; i++) {
		struct ob_store_conf conf = { .url = where };
		struct ob_store *store = NULL;

		(void)snprintf(where, sizeof(where),
			       "postgresql:///postgres?user=postgres&host=%s,%s&port=%d,%d%s",
			       replica.dir, server.dir, replica.port, server.port, said[i]);
		ok(ob_store_connect(&conf, &store, &err));
		ok(store_setup(store, 2));
		put(store, "a", NULL);
		ob_store_free(store);
	}
	pg_server_url(&server, "postgres", "postgres", url);
	PGconn *app = app_open();
	ck_assert_int_eq(number(app, "SELECT count(*) FROM outbox"), 2);
	PQfinish(app);
	/* Alone it is refused, and may become the primary any time: wait. */
	(void)snprintf(where, sizeof(where),
		       "postgresql:///postgres?user=postgres&host=%s&port=%d&target_session_attrs="
		       "read-write",
		       replica.dir, replica.port);
	expect_refused(where, OB_ERR_DOWN,
		       "session is read-only; none of the hosts takes writes: name the primary");
	pg_server_stop(&replica);
}
OB_TEST_END

/* ---- a server that cannot do -------------------------------------------- */

OB_TEST(a_database_of_another_encoding_is_refused)
{
	char where[256];

	fixture_new();
	PGconn *app = app_open();
	exec(app, "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0");
	pg_server_url(&server, "postgres", "plain", where);
	expect_refused(where, OB_ERR_FATAL,
		       "database 'plain' has the encoding SQL_ASCII: make one with ENCODING "
		       "'UTF8'");
	PQfinish(app);
}
OB_TEST_END

OB_TEST(a_server_that_is_too_old_is_refused)
{
	ck_assert_int_eq(pg_check_version(140000, "14.0", &err), 0);
	ck_assert_int_lt(pg_check_version(130014, "13.14", &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.msg, "PostgreSQL 13.14 is too old: upgrade it to 14 or newer");
}
OB_TEST_END

PG_SUITE("PostgreSQL connect", tls_with_a_private_authority_is_verified_in_full,
	 a_server_without_tls_is_not_used_when_tls_is_demanded,
	 of_several_hosts_the_one_that_takes_writes_is_used,
	 a_database_of_another_encoding_is_refused, a_server_that_is_too_old_is_refused)

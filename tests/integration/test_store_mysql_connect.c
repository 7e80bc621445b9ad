/* SPDX-License-Identifier: MIT */
/* Getting to MariaDB: TLS with a private authority. */
#include "certs.h"
#include "mysql_fixture.h"
#include "run.h"
#include "store/mysql/schema.h"

#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char certs[64], ca[CERTS_PATH], other_ca[CERTS_PATH];

static void start_secure(struct mysql_server *secure)
{
	static char ca_file[128], cert_file[128], key_file[128];
	static const char *const settings[] = { ca_file, cert_file, key_file, NULL };
	const struct passwd *user = geteuid() == 0 ? getpwnam("mysql") : NULL;
	char key[96];

	ob_temp_dir(certs);
	ck_assert_int_eq(chmod(certs, 0755), 0);
	certs_make(certs, ca, other_ca);
	(void)snprintf(key, sizeof(key), "%s/server.key", certs);
	if (user)
		ck_assert_int_eq(chown(key, user->pw_uid, user->pw_gid), 0);
	(void)snprintf(ca_file, sizeof(ca_file), "--ssl-ca=%s", ca);
	(void)snprintf(cert_file, sizeof(cert_file), "--ssl-cert=%s/server.crt", certs);
	(void)snprintf(key_file, sizeof(key_file), "--ssl-key=%s", key);
	ck_assert_msg(mysql_server_start(secure, settings), "%s", secure->reason);
}

static int connect_with(const char *url, const char *root, bool verify, struct ob_store **ret)
{
	const struct ob_opt_value options[] = { { "ssl_ca", root },
						{ "ssl_verify", verify ? "true" : "false" } };
	const struct ob_store_conf conf = { .url = url, .options = options, .option_count = 2 };

	return ob_store_connect(&conf, ret, &fault);
}

static void expect_refused(const char *url, const char *root, const char *message)
{
	struct ob_store *store = NULL;

	ck_assert_int_lt(connect_with(url, root, true, &store), 0);
	ck_assert_int_eq(fault.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(fault.msg, message), "'%s' is not in: %s", message, fault.msg);
}

OB_TEST(tls_with_a_private_authority_is_verified)
{
	static const char advice[] =
		"look at ssl_ca and ssl_verify, and at the server's certificate";
	struct mysql_server shared = server;
	struct ob_setup_done done;
	struct ob_store *store = NULL;
	char by_name[160], by_address[160];

	start_secure(&server);
	fixture_begin(0);
	sql(admin, "CREATE USER shop@'%%' REQUIRE SSL");
	sql(admin, "GRANT ALL ON %s.* TO shop@'%%'", database);
	/* The client takes "localhost" for the socket; this is the same place by TCP. */
	(void)snprintf(by_name, sizeof(by_name), "mysql://shop@LOCALHOST:%d/%s", server.port,
		       database);
	(void)snprintf(by_address, sizeof(by_address), "mysql://shop@127.0.0.1:%d/%s", server.port,
		       database);
	ok(connect_with(by_name, ca, true, &store));
	ok(ob_store_setup(store, &(struct ob_setup){ .partition_count = 2 }, &done, &fault));
	put(store, "a", "k");
	ob_store_free(store);
	expect_refused(by_name, other_ca, advice);
	expect_refused(by_address, ca, advice);
	expect_refused(by_name, "/nonexistent", advice);
	/* The name need not fit when told so. */
	ok(connect_with(by_address, ca, false, &store));
	ob_store_free(store);
	fixture_end();
	mysql_server_stop(&server);
	ob_temp_dir_remove(certs);
	server = shared;
}
OB_TEST_END

OB_TEST(a_server_without_tls_is_not_used_when_tls_is_demanded)
{
	struct mysql_server shared = server;
	char url[160];
	/* Each server knows one of them. */
	static const char *const plain[] = { "--loose-skip-ssl", "--loose-tls-version=", NULL };

	ob_temp_dir(certs);
	certs_make(certs, ca, other_ca);
	ck_assert_msg(mysql_server_start(&server, plain), "%s", server.reason);
	fixture_begin(0);
	sql(admin, "CREATE USER shop@'%%'");
	sql(admin, "GRANT ALL ON %s.* TO shop@'%%'", database);
	(void)snprintf(url, sizeof(url), "mysql://shop@127.0.0.1:%d/%s", server.port, database);
	expect_refused(url, ca, "look at ssl_ca");
	fixture_end();
	mysql_server_stop(&server);
	ob_temp_dir_remove(certs);
	server = shared;
}
OB_TEST_END

/* What is advised now; freed by the next call. */
static const char *advice(struct ob_store *store)
{
	static struct ob_buf lines = OB_BUF_INIT(1 << 16);
	struct ob_findings found;

	ob_buf_clear(&lines);
	ob_findings_init(&found);
	ok(ob_store_diagnose(store, &found, &fault));
	for (size_t i = 0; i < found.count; i++) {
		if (found.list[i].level != OB_LEVEL_OK)
			ob_buf_addf(&lines, "%s; %s\n", found.list[i].text.p,
				    found.list[i].check->advice);
	}
	ob_findings_done(&found);
	return ob_buf_str(&lines);
}

OB_TEST(settings_that_weaken_a_promise_are_told)
{
	fixture_begin(2);
	struct ob_store *store = fixture_store("root");
	sql(admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
	ck_assert_ptr_null(strstr(advice(store), "innodb_flush_log_at_trx_commit"));
	/* MySQL writes it unless it is told not to. */
	ck_assert_int_eq(strstr(advice(store), "the binary log is off") == NULL,
			 number(admin, "SELECT @@log_bin"));
	ck_assert_ptr_null(strstr(advice(store), "statements of others"));
	sql(admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 2");
	ck_assert_ptr_nonnull(strstr(advice(store), "innodb_flush_log_at_trx_commit is 2"));
	ob_store_free(store);
	make_user("blind", NULL);
	sql(admin, "GRANT ALL ON %s.* TO blind@localhost", database);
	store = fixture_store("blind");
	ck_assert_ptr_nonnull(strstr(advice(store), "does not see the statements of others"));
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_server_that_is_too_old_is_refused)
{
	static const char advice[] = "too old: use MariaDB 10.6 or MySQL 8.0.17, or newer";
	static const char *const old[] = { "10.5.99-MariaDB-log", "8.0.16", "5.7.44-log" };

	ck_assert_int_eq(my_check_version("10.6.0-MariaDB", &fault), 0);
	ck_assert_int_eq(my_check_version("11.4.2-MariaDB-ubu2404", &fault), 0);
	ck_assert_int_eq(my_check_version("8.0.17", &fault), 0);
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		ck_assert_int_lt(my_check_version(old[i], &fault), 0);
		ck_assert_int_eq(fault.kind, OB_ERR_FATAL);
		ck_assert_msg(strstr(fault.msg, advice) && strstr(fault.msg, old[i]), "%s",
			      fault.msg);
	}
}
OB_TEST_END

MYSQL_SUITE("MySQL connect", tls_with_a_private_authority_is_verified,
	    a_server_without_tls_is_not_used_when_tls_is_demanded,
	    settings_that_weaken_a_promise_are_told, a_server_that_is_too_old_is_refused)

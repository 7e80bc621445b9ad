/* SPDX-License-Identifier: MIT */
/* Databases, connections and stores for the tests on PostgreSQL. */
#include "pg_fixture.h"
#include "server.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct pg_server server;
struct ob_err err;
struct ob_batch batch;
char url[256];

static char database[64];

int pg_suite_run(const char *name, const char *const *settings, const TTest *const *tests,
		 size_t count, const char *only)
{
	int r = EXIT_SUCCESS;

	if (!pg_server_start(&server, settings))
		(void)printf("1..0 # SKIP %s\n", server.reason);
	else
		r = ob_suite_run(name, tests, count, only);
	pg_server_stop(&server);
	return r;
}

static PGconn *connect_to(const char *where)
{
	PGconn *conn = PQconnectdb(where);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	exec(conn, "SET client_min_messages = error");
	return conn;
}

void fixture_new(void)
{
	char admin_url[256];

	ob_batch_init(&batch);
	pg_server_url(&server, "postgres", "postgres", admin_url);
	PGconn *admin = connect_to(admin_url);
	(void)snprintf(database, sizeof(database), "t%d", (int)getpid());
	exec(admin, "CREATE DATABASE %s TEMPLATE template0", database);
	PQfinish(admin);
	pg_server_url(&server, "postgres", database, url);
}

const char *url_of(const char *user)
{
	static char other[256];

	pg_server_url(&server, user, database, other);
	return other;
}

PGconn *app_open(void)
{
	return connect_to(url);
}

void exec(PGconn *conn, const char *fmt, ...)
{
	char sql[4096];
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line above is not seen */
	int n = vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	ck_assert_int_lt(n, (int)sizeof(sql));
	PGresult *result = PQexec(conn, sql);
	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK ||
			      PQresultStatus(result) == PGRES_TUPLES_OK,
		      "%s: %s", sql, PQerrorMessage(conn));
	PQclear(result);
}

const char *text(PGconn *conn, const char *sql)
{
	static char value[4096];
	PGresult *result = PQexec(conn, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0, "%s: %s",
		      sql, PQerrorMessage(conn));
	(void)snprintf(value, sizeof(value), "%s",
		       PQgetisnull(result, 0, 0) ? "NULL" : PQgetvalue(result, 0, 0));
	PQclear(result);
	return value;
}

int64_t number(PGconn *conn, const char *sql)
{
	return strtoll(text(conn, sql), NULL, 10);
}

struct ob_store *store_open_with(const struct ob_opt_value *options)
{
	struct ob_store_conf conf = { .url = url, .options = options };
	struct ob_store *store = NULL;

	while (options && options[conf.option_count].name)
		conf.option_count++;
	ok(ob_store_connect(&conf, &store, &err));
	return store;
}

struct ob_store *store_open(void)
{
	return store_open_with(NULL);
}

int store_setup(struct ob_store *store, uint32_t partitions)
{
	struct ob_setup_done done;

	return ob_store_setup(store, &(struct ob_setup){ .partition_count = partitions }, &done,
			      &err);
}

struct ob_store *store_new(uint32_t partitions)
{
	struct ob_store *store = store_open();

	ok(store_setup(store, partitions));
	return store;
}

void expect_refused(const char *where, enum ob_err_kind kind, const char *message)
{
	const struct ob_store_conf conf = { .url = where };
	struct ob_store *store = NULL;

	ck_assert_int_lt(ob_store_connect(&conf, &store, &err), 0);
	ck_assert_msg(strstr(err.msg, message), "'%s' is not in: %s", message, err.msg);
	ck_assert_int_eq(err.kind, kind);
}

void put(struct ob_store *store, const char *label, const char *key)
{
	const struct outbox_message message = { .aggregate_type = "order",
						.event_type = label,
						.partition_key = key,
						.payload = "{}" };
	size_t index;

	ok(ob_store_tx_begin(store, &err));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &err));
	ok(ob_store_tx_end(store, true, &err));
}

struct ob_uuid uuid(uint8_t n)
{
	return (struct ob_uuid){ { [0] = n, [6] = 0x40, [8] = 0x80 } };
}

/* ---- a pooler ---------------------------------------------------------- */

bool pooler_start(pid_t *ret_pid, char through[256])
{
	char path[128], config[512];
	const char *const argv[] = { "/usr/sbin/pgbouncer", path, NULL };
	int port = server_free_port();

	if (access(argv[0], X_OK) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/pgbouncer.ini", server.dir);
	(void)snprintf(config, sizeof(config),
		       "[databases]\n* = host=%s port=%d "
		       "user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
		       "listen_port=%d\nauth_type=any\npool_mode=transaction\n"
		       "default_pool_size=3\nunix_socket_dir=\n",
		       server.dir, server.port, port);

	FILE *file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	(void)fputs(config, file);
	ck_assert_int_eq(fclose(file), 0);
	*ret_pid = pg_server_run(&server, argv);
	(void)snprintf(through, 256, "postgresql://postgres@127.0.0.1:%d/%s", port, database);
	return *ret_pid > 0;
}

void pooler_stop(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	(void)waitpid(pid, NULL, 0);
}

/* ---- a worker ---------------------------------------------------------- */

void worker_begin(struct worker *w, struct ob_store *store, uint8_t n, uint32_t want)
{
	const struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	struct ob_owned owned[WORKER_PARTS];
	struct ob_lease *leases;
	size_t count;
	bool made;

	*w = (struct worker){ .store = store, .id = uuid(n), .arena = OB_ARENA_INIT(1 << 20) };
	ok(ob_store_reader_make(store, &reader, &(struct ob_place){ OB_START_BEGINNING, 0 }, &made,
				&err));
	ok(ob_store_seed(store, "default", &w->partitions, &err));
	ck_assert_uint_le(w->partitions, 64);
	ok(ob_store_take(store, "default", &w->id, want, 60000, &w->arena, &leases, &count, &err));
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		for (size_t i = 0; i < count; i++)
			owned[w->count++] = (struct ob_owned){
				.partition = lane * w->partitions + leases[i].partition,
				.epoch = leases[i].epoch,
			};
	}
	ok(ob_store_take_over(store, "default", &w->id, owned, w->count, &err));
	for (size_t i = 0; i < w->count; i++) {
		ck_assert(!owned[i].lost);
		w->parts[i] = (struct worker_part){
			.partition = owned[i].partition,
			.epoch = owned[i].epoch,
			.batch = owned[i].batch,
			.at = owned[i].progress,
		};
	}
}

static const char *labels_of(const struct ob_batch *from)
{
	static char labels[65536];
	size_t n = 0;

	labels[0] = '\0';
	for (uint32_t i = 0; i < from->count && n < sizeof(labels) - 64; i++)
		n += (size_t)snprintf(labels + n, sizeof(labels) - n, "%s%.40s", i ? " " : "",
				      from->messages[i].event_type.p);
	return labels;
}

const char *worker_read(struct worker *w, uint32_t limit)
{
	struct ob_read_part parts[WORKER_PARTS];
	struct ob_read read = {
		.reader = "default",
		.target = "default",
		.parts = parts,
		.part_count = w->count,
		.limit = limit,
		.max_bytes = 1 << 20,
		.exception_limit = limit,
	};

	for (size_t i = 0; i < w->count; i++)
		parts[i] = (struct ob_read_part){ .partition = w->parts[i].partition,
						  .from = w->parts[i].at };
	ok(ob_store_read(w->store, &read, &batch, &w->done, &err));
	for (size_t i = 0; i < w->count; i++) {
		ob_progress_done(&w->parts[i].at);
		w->parts[i].at = parts[i].after;
		w->parts[i].reached |= parts[i].reached;
	}
	return labels_of(&batch);
}

size_t worker_settle_with(struct worker *w, const struct ob_change *changes, size_t change_count,
			  const struct ob_promote *promotes, size_t promote_count)
{
	struct ob_settle_part parts[WORKER_PARTS];
	struct ob_settle settle = {
		.reader = "default",
		.owner = w->id,
		.parts = parts,
		.part_count = w->count,
		.changes = changes,
		.change_count = change_count,
		.promotes = promotes,
		.promote_count = promote_count,
	};
	size_t missing = 0;

	for (size_t i = 0; i < w->count; i++)
		parts[i] = (struct ob_settle_part){ .partition = w->parts[i].partition,
						    .epoch = w->parts[i].epoch,
						    .batch = w->parts[i].batch + 1,
						    .progress = w->parts[i].at };
	ok(ob_store_settle(w->store, &settle, &err));
	for (size_t i = 0; i < w->count; i++) {
		missing += parts[i].settled != OB_SETTLED;
		w->parts[i].batch = parts[i].batch;
		w->parts[i].reached = false;
	}
	return missing;
}

size_t worker_settle(struct worker *w)
{
	return worker_settle_with(w, NULL, 0, NULL, 0);
}

int read_one(struct ob_store *store)
{
	struct ob_read_part part = { .partition = 0 };
	struct ob_read read = { .reader = "default",
				.target = "default",
				.parts = &part,
				.part_count = 1,
				.limit = 10,
				.max_bytes = 1 << 20,
				.exception_limit = 10 };
	struct ob_read_done done;
	int r = ob_store_read(store, &read, &batch, &done, &err);

	if (r == 0)
		ob_progress_done(&part.after);
	return r;
}

void worker_end(struct worker *w)
{
	for (size_t i = 0; i < w->count; i++)
		ob_progress_done(&w->parts[i].at);
	ob_arena_done(&w->arena);
}

const char *delivered(struct ob_store *store)
{
	struct worker w;

	worker_begin(&w, store, 99, 64);
	const char *labels = worker_read(&w, 1000);
	ck_assert_uint_eq(worker_settle(&w), 0);
	ok(ob_store_leave(store, "default", &w.id, &err));
	worker_end(&w);
	return labels;
}

/* SPDX-License-Identifier: MIT */
/* What the crash tests share. */
#include "rig.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>

enum { BUSY_MS = 10000, ROLLBACK_PC = 15, ARENA_MAX = 8 << 20, FILE_MAX = 64 << 20 };

int64_t rig_now_ms(void)
{
	return ob_clock_boot_us(&ob_clock_system) / 1000;
}

void rig_breathe(void)
{
	(void)poll(NULL, 0, 2);
}

static void write_config(const struct rig *rig)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/outbox.yaml", rig->dir);
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	(void)fprintf(f,
		      "stores: { main: { url: \"sqlite:outbox.db\" } }\n"
		      "sinks: { out: { type: file, path: events.ndjson } }\n"
		      "relays:\n"
		      "  - batch_size: %d\n"
		      "    idle_backoff_ms: 100ms\n"
		      "    leasing: { lease_ttl: %dms, lease_renew: %dms, heartbeat_ttl: 2s }\n",
		      RIG_BATCH, RIG_LEASE_MS, RIG_LEASE_MS * 3 / 10);
	ck_assert_int_eq(fclose(f), 0);
}

void rig_init(struct rig *rig, const char *name, uint64_t seed)
{
	struct ob_setup setup = { .partition_count = RIG_PARTITIONS };
	struct ob_setup_done done;
	struct ob_err err = OB_ERR_INIT;
	struct ob_store_conf conf = { .url = rig->url };

	*rig = (struct rig){ 0 };
	(void)snprintf(rig->name, sizeof(rig->name), "%s", name);
	ob_temp_dir(rig->dir);
	(void)snprintf(rig->database, sizeof(rig->database), "%s/outbox.db", rig->dir);
	(void)snprintf(rig->events, sizeof(rig->events), "%s/events.ndjson", rig->dir);
	(void)snprintf(rig->url, sizeof(rig->url), "sqlite:%s", rig->database);
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	write_config(rig);
	ck_assert_msg(ob_store_connect(&conf, &rig->store, &err) == 0, "%s", err.msg);
	ck_assert_msg(ob_store_setup(rig->store, &setup, &done, &err) == 0, "%s", err.msg);

	struct ob_orders_conf orders = {
		.path = rig->database,
		.seed = seed,
		.customers = RIG_CUSTOMERS,
		.rollback_pc = ROLLBACK_PC,
		.busy_ms = BUSY_MS,
	};
	ck_assert_msg(ob_orders_new(&orders, &rig->orders, &err) == 0, "%s", err.msg);
}

void rig_done(struct rig *rig)
{
	ob_orders_free(rig->orders);
	ob_store_free(rig->store);
	ob_temp_dir_remove(rig->dir);
}

static void start(const struct rig *rig, struct ob_child *child, const char *const *argv,
		  const char *fault, const char *log)
{
	const char *program = getenv("OUTBOX_BIN");
	struct ob_err err = OB_ERR_INIT;
	char path[128];
	struct ob_child_conf conf = { program, argv, rig->dir, path };

	ck_assert_msg(program != NULL, "OUTBOX_BIN is not set");
	(void)snprintf(path, sizeof(path), "%s/%s", rig->dir, log);
	if (fault)
		(void)setenv("OUTBOX_FAULT", fault, 1);
	ck_assert_msg(ob_child_start(child, &conf, &err) == 0, "%s", err.msg);
	(void)unsetenv("OUTBOX_FAULT");
}

void rig_start(const struct rig *rig, struct ob_child *child, const char *fault, const char *log)
{
	static const char *const argv[] = { "outbox", "--config", "outbox.yaml", "work", NULL };

	start(rig, child, argv, fault, log);
}

void rig_start_resize(const struct rig *rig, struct ob_child *child, const char *count)
{
	const char *const argv[] = { "outbox", "--config", "outbox.yaml", "partitions",
				     "resize", count,      NULL };

	start(rig, child, argv, NULL, "resize.log");
}

void rig_write(struct rig *rig)
{
	struct ob_err err = OB_ERR_INIT;

	int64_t end = rig_now_ms() + RIG_SOON_MS;

	while (ob_orders_step(rig->orders, &err) < 0)
		ck_assert_msg(err.kind == OB_ERR_DOWN && rig_now_ms() < end, "%s: %s", rig->name,
			      err.msg);
}

int rig_pace_ms(struct rig *rig)
{
	int slowest = 0;

	for (int i = 0; i < 5; i++) {
		int64_t start = rig_now_ms();

		rig_write(rig);
		int took = (int)(rig_now_ms() - start);
		slowest = took > slowest ? took : slowest;
	}
	return slowest;
}

bool rig_try_write(struct rig *rig)
{
	struct ob_err err = OB_ERR_INIT;

	return ob_orders_step(rig->orders, &err) == 0;
}

static struct ob_stats stats_of(struct rig *rig, struct ob_arena *arena)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_stats *stats;
	size_t count;
	int64_t now;

	ck_assert_msg(ob_store_stats(rig->store, "default", arena, &stats, &count, &now, &err) == 0,
		      "%s: %s", rig->name, err.msg);
	return count ? *stats : (struct ob_stats){ 0 };
}

uint64_t rig_count(struct rig *rig, enum ob_view view)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	uint64_t n = stats_of(rig, &arena).count[view];

	ob_arena_done(&arena);
	return n;
}

uint64_t rig_waiting(struct rig *rig)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_stats stats = stats_of(rig, &arena);
	uint64_t n = 0;

	for (int i = 0; i < OB_VIEW_COUNT; i++)
		n += i == OB_VIEW_PUBLISHED ? 0 : stats.count[i];
	ob_arena_done(&arena);
	return n;
}

static bool belongs_to(const struct ob_worker *workers, size_t count, const struct ob_uuid *owner,
		       pid_t pid)
{
	bool yes = pid == 0;

	for (size_t i = 0; i < count && !yes; i++)
		yes = workers[i].pid == pid && ob_uuid_eq(&workers[i].id, owner);
	return yes;
}

uint32_t rig_leased(struct rig *rig, pid_t pid)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_err err = OB_ERR_INIT;
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t partition_count, worker_count;
	uint32_t n = 0;

	ck_assert_msg(ob_store_partitions(rig->store, "default", &arena, &partitions,
					  &partition_count, &err) == 0 &&
			      ob_store_workers(rig->store, "default", &arena, &workers,
					       &worker_count, &err) == 0,
		      "%s: %s", rig->name, err.msg);
	for (size_t i = 0; i < partition_count; i++)
		n += partitions[i].leased &&
		     belongs_to(workers, worker_count, &partitions[i].owner, pid);
	ob_arena_done(&arena);
	return n;
}

static char *read_all(const char *path)
{
	struct ob_buf text = OB_BUF_INIT(FILE_MAX);
	char block[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	ob_buf_adds(&text, "");
	while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
		ob_buf_add(&text, (struct ob_str){ block, (size_t)n });
	if (fd >= 0)
		(void)close(fd);
	ck_assert(!text.failed);
	return text.data ? ob_buf_take(&text) : strdup("");
}

size_t rig_lines(const struct rig *rig)
{
	char *text = read_all(rig->events);
	size_t n = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	free(text);
	return n;
}

static int add_row(void *arg, int count, char **values, char **names)
{
	struct ob_buf *out = arg;

	(void)names;
	for (int i = 0; i < count; i++)
		ob_buf_addf(out, "%s ", values[i] ? values[i] : "-");
	ob_buf_addc(out, '\n');
	return 0;
}

static char *query(const struct rig *rig, const char *sql)
{
	struct ob_buf out = OB_BUF_INIT(FILE_MAX);
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(rig->database, &db, SQLITE_OPEN_READONLY, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, add_row, &out, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	ck_assert(!out.failed && out.len > 0);
	return ob_buf_take(&out);
}

char *rig_rows(const struct rig *rig)
{
	return query(rig,
		     "SELECT seq, status, attempts, available_at, published_at, last_error, "
		     "locked_by FROM outbox ORDER BY seq");
}

bool rig_locked(const struct rig *rig)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(rig->database, &db, SQLITE_OPEN_READWRITE, NULL),
			 SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 500);
	bool locked = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK;
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return locked;
}

unsigned long rig_attempts(const struct rig *rig)
{
	char *text = query(rig, "SELECT sum(attempts) FROM outbox");
	unsigned long sum = strtoul(text, NULL, 10);

	free(text);
	return sum;
}

char *rig_log(const struct rig *rig, const char *log)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", rig->dir, log);
	return read_all(path);
}

void rig_expect_log(const struct rig *rig, const char *log, const char *text, int timeout_ms)
{
	int64_t end = rig_now_ms() + timeout_ms;
	bool found = false;

	while (!found) {
		char *said = rig_log(rig, log);

		found = strstr(said, text) != NULL;
		ck_assert_msg(found || rig_now_ms() < end, "%s: no '%s' in its log:\n%s", rig->name,
			      text, said);
		free(said);
		if (!found)
			rig_breathe();
	}
}

static uint32_t count_of(const char *text, const char *words)
{
	uint32_t n = 0;

	for (; (text = strstr(text, words)); text++)
		n++;
	return n;
}

/* A worker that was kept from renewing may have sent what another sends again. */
static uint32_t leases_lost(const struct rig *rig)
{
	static const char *const says[] = { "leases lost", "results are discarded" };
	uint32_t n = 0;
	char path[128];
	glob_t logs = { 0 };

	(void)snprintf(path, sizeof(path), "%s/*.log", rig->dir);
	if (glob(path, 0, NULL, &logs) == 0) {
		for (size_t i = 0; i < logs.gl_pathc; i++) {
			char *text = read_all(logs.gl_pathv[i]);

			n += count_of(text, says[0]) + count_of(text, says[1]);
			free(text);
		}
	}
	globfree(&logs);
	return n;
}

void rig_audit(struct rig *rig)
{
	struct ob_audit_lines lines = { 0 };
	struct ob_audit audit;
	struct ob_err err = OB_ERR_INIT;
	uint64_t most = ((uint64_t)rig->crashes + leases_lost(rig)) * RIG_IN_FLIGHT;

	if (rig->older[0])
		ck_assert_msg(ob_audit_read(&lines, rig->older, &err) == 0, "%s", err.msg);
	ck_assert_msg(ob_audit_read(&lines, rig->events, &err) == 0, "%s", err.msg);
	ck_assert_msg(ob_audit_run(ob_orders_journal(rig->orders), &lines, &audit, &err) == 0, "%s",
		      err.msg);
	ck_assert_uint_gt(audit.committed, 0);
	ck_assert_msg(ob_audit_holds(&audit, most),
		      "%s: committed %" PRIu64 ", lost %" PRIu64 ", ghosts %" PRIu64
		      ", out of order %" PRIu64 ", duplicates %" PRIu64 " of %" PRIu64
		      " allowed\n%s",
		      rig->name, audit.committed, audit.lost, audit.ghosts, audit.out_of_order,
		      audit.duplicates, most, ob_buf_str(&audit.examples));
	ck_assert_msg(audit.unreadable <= rig->crashes, "%s: %" PRIu64 " torn lines", rig->name,
		      audit.unreadable);
	ob_audit_done(&audit);
	ob_audit_lines_done(&lines);
}

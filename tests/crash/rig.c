/* SPDX-License-Identifier: MIT */
/* What the crash tests share. */
#include "rig.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>

enum { ARENA_MAX = 8 << 20, FILE_MAX = 256 << 20, PAGE = 5000 };

const char *rig_volume, *rig_options;

static const struct place *chosen;

const struct place *rig_place(void)
{
	return chosen;
}

int rig_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	int r = EXIT_SUCCESS;

	chosen = place_chosen();
	const char *missing = chosen->start();
	if (missing)
		(void)printf("1..0 # SKIP %s\n", missing);
	else
		r = ob_suite_run(name, tests, count, only);
	chosen->stop();
	return r;
}

/* Demand that a call on a store succeeds, once the database is there and lets it. */
#define patiently(rig, call) \
	do { \
		struct ob_err err = OB_ERR_INIT; \
		int64_t patient_end_ = rig_now_ms() + RIG_SOON_MS; \
		while ((call) < 0) { \
			ck_assert_msg(err.kind == OB_ERR_DOWN && rig_now_ms() < patient_end_, \
				      "%s: %s", (rig)->name, err.msg); \
			rig_breathe(); \
		} \
	} while (0)

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
		      "stores: { main: { url: \"%s\"%s%s } }\n"
		      "sinks: { out: { type: file, path: events.ndjson } }\n"
		      "relays:\n"
		      "  - batch_size: %d\n"
		      "    idle_backoff_ms: 100ms\n"
		      "    leasing: { lease_ttl: %dms, lease_renew: %dms, heartbeat_ttl: 2s }\n",
		      rig->url, rig_options ? ", " : "", rig_options ? rig_options : "", RIG_BATCH,
		      RIG_LEASE_MS, RIG_LEASE_MS * 3 / 10);
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
	(void)snprintf(rig->events, sizeof(rig->events), "%s/events.ndjson", rig->dir);
	chosen->make(rig_volume && !chosen->move ? rig_volume : rig->dir, rig->url);
	if (rig_volume && chosen->move)
		chosen->move(rig->url, rig_volume);
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	write_config(rig);
	ck_assert_msg(ob_store_connect(&conf, &rig->store, &err) == 0, "%s", err.msg);
	ck_assert_msg(ob_store_setup(rig->store, &setup, &done, &err) == 0, "%s", err.msg);
	books_init(&rig->books);
	ck_assert_msg(shop_open(&rig->shop, &rig->books, rig->url, seed, &err) == 0, "%s", err.msg);
}

void rig_done(struct rig *rig)
{
	shop_close(&rig->shop);
	books_done(&rig->books);
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
	patiently(rig, shop_step(&rig->shop, RIG_SOON_MS, &err));
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

	return shop_step(&rig->shop, RIG_SOON_MS, &err) == 0;
}

static struct ob_stats stats_of(struct rig *rig, struct ob_arena *arena)
{
	struct ob_stats *stats;
	size_t count;
	int64_t now;

	patiently(rig, ob_store_stats(rig->store, "default", arena, &stats, &count, &now, &err));
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
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t partition_count, worker_count;
	uint32_t n = 0;

	patiently(rig, ob_store_partitions(rig->store, "default", &arena, &partitions,
					   &partition_count, &err));
	patiently(rig,
		  ob_store_workers(rig->store, "default", &arena, &workers, &worker_count, &err));
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

/* Every row, a page at a time. */
static void each_row(struct rig *rig, void (*look)(const struct ob_message *message, void *arg),
		     void *arg)
{
	struct ob_filter filter = { .limit = PAGE };
	struct ob_batch batch;
	int64_t now;

	ob_batch_init(&batch);
	do {
		patiently(rig, ob_store_list(rig->store, &filter, &batch, &now, &err));
		for (uint32_t i = 0; i < batch.count; i++)
			look(&batch.messages[i], arg);
		if (batch.count)
			filter.after_seq = batch.messages[batch.count - 1].seq;
	} while (batch.count == PAGE);
	ob_batch_done(&batch);
}

static void add_row(const struct ob_message *m, void *arg)
{
	ob_buf_addf(arg, "%" PRId64 " %d %" PRIu32 " %" PRId64 " %" PRId64 " %.*s %.*s\n", m->seq,
		    (int)m->state, m->attempts, m->available_at_us, m->published_at_us,
		    (int)m->last_error.n, m->last_error.p ? m->last_error.p : "",
		    (int)m->locked_by.n, m->locked_by.p ? m->locked_by.p : "");
}

char *rig_rows(struct rig *rig)
{
	struct ob_buf out = OB_BUF_INIT(FILE_MAX);

	each_row(rig, add_row, &out);
	ck_assert(!out.failed && out.len > 0);
	return ob_buf_take(&out);
}

static void add_attempts(const struct ob_message *m, void *arg)
{
	*(unsigned long *)arg += m->attempts;
}

unsigned long rig_attempts(struct rig *rig)
{
	unsigned long sum = 0;

	each_row(rig, add_attempts, &sum);
	return sum;
}

/* A transaction that writes and changes nothing waits for what everybody waits for. */
bool rig_locked(const struct rig *rig)
{
	const struct ob_opt_value options[] = { { "busy_timeout", "500ms" } };
	const struct ob_store_conf conf = { .url = rig->url,
					    .options = options,
					    .option_count = 1 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store = NULL;

	if (chosen->concurrent)
		return false;
	ck_assert_msg(ob_store_connect(&conf, &store, &err) == 0, "%s: %s", rig->name, err.msg);
	bool locked = ob_store_tx_begin(store, &err) < 0;
	ob_store_free(store);
	return locked;
}

void rig_pause(struct rig *rig, struct ob_child *child)
{
	OB_AUTOCLOSE int fd = open(rig->events, O_RDONLY | O_CLOEXEC);
	struct ob_err ignored = OB_ERR_INIT;

	patiently(rig, ob_store_tx_begin(rig->store, &err));
	ck_assert(fd < 0 || flock(fd, LOCK_EX) == 0);
	ob_child_signal(child, SIGSTOP);
	ck_assert_msg(ob_child_wait_stop(child, RIG_SOON_MS), "%s: it does not stop", rig->name);
	(void)ob_store_tx_end(rig->store, false, &ignored);
}

/* Has it got as far as to wait for signals? Before that, one ends it without a word. */
static bool is_listening(struct ob_child *child)
{
	char path[64], line[256];
	unsigned long long blocked = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)child->pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	}
	if (f)
		(void)fclose(f);
	return (blocked & (1ULL << (SIGTERM - 1))) || ob_child_look(child) != OB_CHILD_RUNS;
}

void rig_stop(const struct rig *rig, struct ob_child *child)
{
	rig_until(rig, is_listening(child), RIG_SOON_MS);
	ob_child_signal(child, SIGTERM);
	ck_assert_msg(ob_child_wait_end(child, RIG_SOON_MS), "%s: it does not stop", rig->name);
	ck_assert_msg(child->code == 0, "%s: it ended with %d", rig->name, child->code);
}

char *rig_log(const struct rig *rig, const char *log)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", rig->dir, log);
	return read_all(path);
}

static uint32_t count_of(const char *text, const char *words)
{
	uint32_t n = 0;

	for (; (text = strstr(text, words)); text++)
		n++;
	return n;
}

uint32_t rig_said(const struct rig *rig, const char *log, const char *text)
{
	char *said = rig_log(rig, log);
	uint32_t n = count_of(said, text);

	free(said);
	return n;
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
	ck_assert_msg(ob_audit_run(&rig->books.journal, &lines, &audit, &err) == 0, "%s", err.msg);
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

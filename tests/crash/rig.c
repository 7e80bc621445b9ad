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

enum { ARENA_MAX = 8 << 20, FILE_MAX = 256 << 20, PAGE = 5000, WORDS_MAX = 12, TAIL_MAX = 3000 };

struct rig_extra rig_extra;

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
	const struct rig_extra *extra = &rig_extra;
	int lease_ms = extra->lease_ms ? extra->lease_ms : RIG_LEASE_MS;
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/outbox.yaml", rig->dir);
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	(void)fprintf(
		f,
		"stores: { main: { url: \"%s\", %s } }\n"
		"sinks: { out: { %s } }\n"
		"relays:\n"
		"  - { batch_size: %d, idle_backoff_ms: 100ms,\n"
		"      leasing: { lease_ttl: %dms, lease_renew: %dms, heartbeat_ttl: %dms },\n"
		"      %s }\n",
		rig->url, extra->store ? extra->store : "retention: { every: 1h }",
		extra->sink ? extra->sink : "type: file, path: events.ndjson", RIG_BATCH, lease_ms,
		lease_ms * 3 / 10, lease_ms, extra->relay ? extra->relay : "ordering: key");
	ck_assert_int_eq(fclose(f), 0);
}

void rig_init(struct rig *rig, const char *name, uint64_t seed)
{
	const struct ob_setup setup = { .partition_count = RIG_PARTITIONS };
	const struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	const struct ob_place beginning = { .start = OB_START_BEGINNING };
	const struct ob_store_conf conf = { .url = rig->url };
	struct ob_setup_done done;
	struct ob_err err = OB_ERR_INIT;
	bool made;

	*rig = (struct rig){ .in_flight = RIG_IN_FLIGHT };
	(void)snprintf(rig->name, sizeof(rig->name), "%s", name);
	ob_temp_dir(rig->dir);
	(void)snprintf(rig->events, sizeof(rig->events), "%s/events.ndjson", rig->dir);
	chosen->make(rig_extra.volume && !chosen->move ? rig_extra.volume : rig->dir, rig->url);
	if (rig_extra.volume && chosen->move)
		chosen->move(rig->url, rig_extra.volume);
	(void)unsetenv("OUTBOX_CONFIG");
	(void)unsetenv("OUTBOX_STORE");
	write_config(rig);
	ck_assert_msg(ob_store_connect(&conf, &rig->store, &err) == 0, "%s", err.msg);
	ck_assert_msg(ob_store_setup(rig->store, &setup, &done, &err) == 0, "%s", err.msg);
	/* Before the first worker does: without a reader nothing waits for anybody. */
	ck_assert_msg(ob_store_reader_make(rig->store, &reader, &beginning, &made, &err) == 0, "%s",
		      err.msg);
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

void rig_start_command(const struct rig *rig, struct ob_child *child, const char *const *words,
		       const char *log)
{
	const char *argv[WORDS_MAX + 4] = { "outbox", "--config", "outbox.yaml" };

	for (size_t i = 0; words[i]; i++) {
		ck_assert_uint_lt(i, WORDS_MAX);
		argv[3 + i] = words[i];
	}
	start(rig, child, argv, NULL, log);
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

	patiently(rig, ob_store_stats(rig->store, "default", 0, arena, &stats, &count, &now, &err));
	ck_assert_uint_eq(count, 1);
	return *stats;
}

/* Every message of these views (0: all), as the reader has it, a page at a time. */
static void each_row(struct rig *rig, unsigned views,
		     void (*look)(const struct ob_message *message, void *arg), void *arg)
{
	struct ob_filter filter = { .reader = "default", .views = views, .limit = PAGE };
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

static void add_one(const struct ob_message *m, void *arg)
{
	(void)m;
	++*(uint64_t *)arg;
}

uint64_t rig_count(struct rig *rig, enum ob_view view)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	uint64_t n = 0;

	if (view == OB_VIEW_PUBLISHED)
		each_row(rig, 1U << view, add_one, &n);
	else
		n = stats_of(rig, &arena).count[view];
	ob_arena_done(&arena);
	return n;
}

uint64_t rig_waiting(struct rig *rig)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_stats stats = stats_of(rig, &arena);
	uint64_t n = 0;

	for (int i = 0; i < OB_VIEW_COUNT; i++)
		n += i == OB_VIEW_PUBLISHED || i == OB_VIEW_DISCARDED ? 0 : stats.count[i];
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

static void add_row(const struct ob_message *m, void *arg)
{
	ob_buf_addf(arg, "%" PRId64 " %s %d %d %" PRIu32 " %" PRId64 " %" PRId64 " %.*s\n", m->seq,
		    ob_view_name(m->view), m->excepted, (int)m->state, m->attempts, m->due_us,
		    m->published_at_us, (int)m->last_error.n,
		    m->last_error.p ? m->last_error.p : "");
}

char *rig_rows(struct rig *rig)
{
	struct ob_buf out = OB_BUF_INIT(FILE_MAX);

	each_row(rig, 0, add_row, &out);
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

	each_row(rig, 0, add_attempts, &sum);
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

char *rig_file(const struct rig *rig, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
	return read_all(path);
}

char *rig_tail(const struct rig *rig, const char *name)
{
	char *text = rig_file(rig, name);
	size_t size = strlen(text);

	if (size > TAIL_MAX)
		memmove(text, text + size - TAIL_MAX, TAIL_MAX + 1);
	return text;
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
	char *said = rig_file(rig, log);
	uint32_t n = count_of(said, text);

	free(said);
	return n;
}

void rig_expect_log(const struct rig *rig, const char *log, const char *text, int timeout_ms)
{
	int64_t end = rig_now_ms() + timeout_ms;
	bool found = false;

	while (!found) {
		found = rig_said(rig, log, text) > 0;
		ck_assert_msg(found || rig_now_ms() < end, "%s: no '%s' in its log:\n%s", rig->name,
			      text, rig_tail(rig, log));
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

/* Nobody has written into the journal after a later owner did: that is the fence (P7). */
static void audit_journal(const struct rig *rig)
{
	static const char trespasses[] =
		"SELECT count(*) FROM (SELECT epoch, lag(epoch) OVER "
		"(PARTITION BY reader, partition_no ORDER BY batch) AS was FROM outbox_batches) AS "
		"j "
		"WHERE epoch < was";

	ck_assert_msg(chosen->number(rig->url, trespasses) == 0,
		      "%s: a journal row of an owner whose time was over", rig->name);
}

void rig_audit(struct rig *rig)
{
	struct ob_audit_lines lines = { 0 };
	struct ob_audit audit;
	struct ob_err err = OB_ERR_INIT;
	uint64_t most = ((uint64_t)rig->crashes + leases_lost(rig)) * rig->in_flight + rig->repeats;

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
	audit_journal(rig);
	ob_audit_done(&audit);
	ob_audit_lines_done(&lines);
}

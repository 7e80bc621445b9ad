/* SPDX-License-Identifier: MIT */
#include "store_sqlite_fixture.h"

#include <ftw.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct ob_err err;
static char directory[] = "/tmp/outbox-sqlite-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int lite_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	/* Others must be able to look inside: tests change their user. */
	if (!mkdtemp(directory) || chmod(directory, 0755) < 0) {
		perror(directory);
		return EXIT_FAILURE;
	}
	int r = ob_suite_run(name, tests, count, only);
	(void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}

/* ---- files and stores ------------------------------------------------ */

const char *file(const char *name)
{
	static char paths[4][128];
	static unsigned turn;
	static pid_t test; /* children of a test use its files */
	char *path = paths[turn++ % 4];

	if (!test)
		test = getpid();
	(void)snprintf(path, sizeof(paths[0]), "%s/%d-%s", directory, (int)test, name);
	return path;
}

int try_open(const char *path, const struct ob_layout *layout, struct ob_store **ret_store)
{
	static char urls[8][160];
	static unsigned turn;
	char *url = urls[turn++ % 8];
	const struct ob_opt_value options[] = { { "busy_timeout", "50ms" } };
	const struct ob_store_conf conf = {
		.url = url,
		.options = options,
		.option_count = 1,
		.layout = layout,
	};

	(void)snprintf(url, sizeof(urls[0]), "sqlite:%s", path);
	return ob_store_connect(&conf, ret_store, &err);
}

struct ob_store *open_store(const char *name, const struct ob_layout *layout)
{
	struct ob_store *store = NULL;

	ok(try_open(file(name), layout, &store));
	return store;
}

int setup(struct ob_store *store)
{
	const struct ob_setup wish = { .partition_count = 16 };
	struct ob_setup_done done;

	return ob_store_setup(store, &wish, &done, &err);
}

struct ob_store *new_store(const char *name, const struct ob_layout *layout)
{
	struct ob_store *store = open_store(name, layout);

	ok(setup(store));
	ok(ob_store_check(store, &err));
	return store;
}

struct lite_store *lite(struct ob_store *store)
{
	return (struct lite_store *)store;
}

/* ---- SQL ------------------------------------------------------------- */

sqlite3 *sql_open(const char *name)
{
	sqlite3 *db = NULL;

	ck_assert_int_eq(sqlite3_open(file(name), &db), SQLITE_OK);
	return db;
}

void sql(sqlite3 *db, const char *text)
{
	ck_assert_msg(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", text,
		      sqlite3_errmsg(db));
}

int64_t number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *stmt = NULL;

	ck_assert_msg(sqlite3_prepare_v2(db, text, -1, &stmt, NULL) == SQLITE_OK, "%s: %s", text,
		      sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

void sql_on(const char *name, const char *text)
{
	sqlite3 *db = sql_open(name);

	sql(db, text);
	(void)sqlite3_close(db);
}

int64_t number_on(const char *name, const char *text)
{
	sqlite3 *db = sql_open(name);
	int64_t value = number(db, text);

	(void)sqlite3_close(db);
	return value;
}

/* ---- messages -------------------------------------------------------- */

int try_put(struct ob_store *store, struct outbox_message message, int count)
{
	size_t index;
	int r = ob_store_tx_begin(store, &err);

	for (int i = 0; i < count && r >= 0; i++)
		r = ob_store_tx_push(store, &message, 1, NULL, &index, &err);
	if (r >= 0)
		r = ob_store_tx_end(store, true, &err);
	if (r < 0) {
		struct ob_err ignored;
		ck_assert_int_eq(ob_store_tx_end(store, false, &ignored), 0);
	}
	return r;
}

void put(struct ob_store *store, const char *key, int count)
{
	const struct outbox_message message = {
		.aggregate_type = "order",
		.aggregate_id = key,
		.event_type = "OrderPlaced",
		.payload = "{}",
	};

	ok(try_put(store, message, count));
}

/* ---- a worker -------------------------------------------------------- */

enum { NUMBERS_MAX = 64 * OB_LANES, LIMIT = 1000 };

static struct worker {
	struct ob_uuid id;
	uint32_t count;
	struct ob_owned owned[NUMBERS_MAX];
	struct ob_read_part parts[NUMBERS_MAX];
} worker = { .id = { { 1 } } };

static int take_all(struct ob_store *store)
{
	const struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	const struct ob_place place = { .start = OB_START_BEGINNING };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_lease *leases;
	uint32_t hashes;
	size_t taken;
	bool made;
	int r = ob_store_reader_make(store, &reader, &place, &made, &err);

	if (r >= 0)
		r = ob_store_seed(store, "default", &hashes, &err);
	if (r >= 0)
		r = ob_store_take(store, "default", &worker.id, hashes, 60000, &arena, &leases,
				  &taken, &err);
	if (r >= 0)
		r = ob_store_renew(store, "default", &worker.id, 60000, &arena, &leases, &taken,
				   &err);
	worker.count = 0;
	for (uint32_t lane = 0; r >= 0 && lane < OB_LANES; lane++) {
		for (size_t i = 0; i < taken; i++)
			worker.owned[worker.count++] = (struct ob_owned){
				.partition = lane * hashes + leases[i].partition,
				.epoch = leases[i].epoch,
			};
	}
	ob_arena_done(&arena);
	return r < 0 ? r
		     : ob_store_take_over(store, "default", &worker.id, worker.owned, worker.count,
					  &err);
}

int try_read(struct ob_store *store, struct ob_batch *batch)
{
	struct ob_read wish = {
		.reader = "default",
		.target = "default",
		.parts = worker.parts,
		.limit = LIMIT,
		.max_bytes = 1 << 24,
		.exception_limit = LIMIT,
	};
	struct ob_read_done done;
	int r = take_all(store);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < worker.count; i++)
		worker.parts[i] = (struct ob_read_part){
			.partition = worker.owned[i].partition,
			.from = worker.owned[i].progress,
		};
	wish.part_count = worker.count;
	return ob_store_read(store, &wish, batch, &done, &err);
}

uint32_t read_all(struct ob_store *store, struct ob_batch *batch)
{
	ok(try_read(store, batch));
	return batch->count;
}

int try_settle(struct ob_store *store, const struct ob_batch *batch, enum ob_outcome_kind kind,
	       uint32_t *ret_settled)
{
	const struct ob_decide decide = { .ordering = OB_ORDER_KEY };
	struct ob_settle_part parts[NUMBERS_MAX];
	struct ob_change *changes = calloc(batch->count + 1, sizeof(*changes));
	struct ob_promote *promotes = calloc(batch->count + 1, sizeof(*promotes));
	struct ob_settle wish = {
		.reader = "default",
		.owner = worker.id,
		.parts = parts,
		.part_count = worker.count,
		.changes = changes,
		.promotes = promotes,
	};
	bool promote;

	ck_assert(changes && promotes);
	for (uint32_t i = 0; i < worker.count; i++)
		parts[i] = (struct ob_settle_part){
			.partition = worker.owned[i].partition,
			.epoch = worker.owned[i].epoch,
			.batch = worker.owned[i].batch + 1,
			.progress = worker.parts[i].after,
		};
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct ob_message *m = &batch->messages[i];
		enum ob_outcome_kind own = m->held ? OB_OUTCOME_PARK : kind;

		if (!ob_exception_decide(&decide, m, own, 0, OB_STR("why"),
					 &changes[wish.change_count], &promote))
			continue;
		wish.change_count++;
		if (promote)
			promotes[wish.promote_count++] =
				(struct ob_promote){ m->partition, ob_exception_queue(&decide, m) };
	}
	int r = ob_store_settle(store, &wish, &err);
	*ret_settled = 0;
	for (uint32_t i = 0; i < worker.count; i++)
		*ret_settled += parts[i].settled == OB_SETTLED;
	free(changes);
	free(promotes);
	return r;
}

uint32_t settle(struct ob_store *store, const struct ob_batch *batch, enum ob_outcome_kind kind)
{
	uint32_t settled;

	ok(try_settle(store, batch, kind, &settled));
	ok(ob_store_leave(store, "default", &worker.id, &err));
	return settled;
}

/* ---- processes ------------------------------------------------------- */

enum { NOBODY = 65534 };

bool as_nobody(bool (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		bool changed = geteuid() != 0 || (setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 &&
						  setuid(NOBODY) == 0);
		_exit(changed && fn() ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

pid_t in_child(void (*fn)(void))
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	return pid;
}

void wait_child(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* SPDX-License-Identifier: MIT */
/* The MySQL store: workers and leases. */
#include "store/mysql/lease.h"
#include "base/cleanup.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

enum { LIST_MAX = 1 << 20 };

/* ---- workers --------------------------------------------------------- */

int my_beat(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
	    struct ob_err *err)
{
	const struct my_arg args[] = {
		MY_UUID("id", &worker->id),           MY_STR("reader", worker->reader),
		MY_STR("hostname", worker->hostname), MY_INT("pid", worker->pid),
		MY_INT("ttl", my_us(ttl_ms)),         MY_INT("published", worker->published),
		MY_INT("failed", worker->failed),     MY_END,
	};
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "writing the heartbeat");
	p.writes = true;
	(void)my_packet_add(&p, sql_mysql_hold_session, args);
	(void)MY_ADD0(&p, sql_mysql_begin_write);
	(void)my_packet_add(&p, sql_mysql_count_minute, args);
	(void)my_packet_add(&p, sql_mysql_beat, args);
	(void)MY_ADD0(&p, sql_mysql_commit);
	int r = my_packet_run(&p, err);
	return r;
}

static void add_uuid(struct ob_buf *list, struct ob_str id)
{
	ob_buf_adds(list, list->len ? ",X'" : "X'");
	for (size_t i = 0; i < id.n; i++)
		ob_buf_addf(list, "%02X", (unsigned char)id.p[i]);
	ob_buf_addc(list, '\'');
}

static int forget(struct my_packet *p, const char *reader, const char *ids, uint32_t *ret_gone,
		  struct ob_err *err)
{
	const struct my_arg args[] = { MY_TEXT("reader", reader), MY_SQL("ids", ids), MY_END };

	my_packet_clear(p);
	p->writes = true;
	(void)MY_ADD0(p, sql_mysql_begin_write);
	size_t forgotten = my_packet_add(p, sql_mysql_forget_worker, args);
	(void)my_packet_add(p, sql_mysql_free_gone_leases, args);
	(void)MY_ADD0(p, sql_mysql_commit);
	int r = my_packet_run(p, err);
	if (r == 0)
		*ret_gone = (uint32_t)my_changed(p, forgotten);
	return r;
}

int my_reap(struct ob_store *store, const char *reader, const struct ob_uuid *self,
	    uint32_t *ret_gone, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf ids = OB_BUF_INIT(LIST_MAX);
	uint32_t gone = 0;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "looking for workers that are gone");
	(void)MY_ADD(&p, sql_mysql_gone_workers, MY_TEXT("reader", reader), MY_UUID("self", self));
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);)
		add_uuid(&ids, my_str(&p, 0));
	if (r == 0 && ids.len)
		r = forget(&p, reader, ob_buf_str(&ids), &gone, err);
	if (r == 0)
		*ret_gone = gone;
	return r;
}

int my_leave(struct ob_store *store, const char *reader, const struct ob_uuid *worker,
	     struct ob_err *err)
{
	const struct my_arg args[] = { MY_TEXT("reader", reader), MY_UUID("id", worker), MY_END };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "leaving");
	p.writes = true;
	(void)MY_ADD0(&p, sql_mysql_begin_write);
	(void)my_packet_add(&p, sql_mysql_leave_leases, args);
	(void)my_packet_add(&p, sql_mysql_leave_worker, args);
	(void)MY_ADD0(&p, sql_mysql_commit);
	(void)my_packet_add(&p, sql_mysql_leave_session, args);
	int r = my_packet_run(&p, err);
	return r;
}

static bool read_worker(const struct my_packet *p, struct my_rows *rows)
{
	struct ob_worker *w = my_rows_add(rows);

	if (!w)
		return false;
	(void)ob_uuid_scan(my_str(p, 0), &w->id);
	w->pid = (int32_t)my_int(p, 3);
	w->started_at_us = my_time(p, 4);
	w->heartbeat_until_us = my_time(p, 5);
	w->published = (uint64_t)my_int(p, 6);
	w->failed = (uint64_t)my_int(p, 7);
	return ob_arena_copy(rows->arena, my_str(p, 1), &w->reader) &&
	       ob_arena_copy(rows->arena, my_str(p, 2), &w->hostname);
}

static bool read_partition(const struct my_packet *p, struct my_rows *rows)
{
	struct ob_partition *partition = my_rows_add(rows);

	if (!partition)
		return false;
	partition->number = (uint32_t)my_int(p, 1);
	(void)ob_uuid_scan(my_str(p, 2), &partition->owner);
	partition->epoch = (uint64_t)my_int(p, 3);
	partition->until_us = my_time(p, 4);
	partition->leased = my_int(p, 5);
	partition->pos = my_int(p, 6);
	partition->moved_at_us = my_time(p, 7);
	return ob_arena_copy(rows->arena, my_str(p, 0), &partition->reader);
}

static bool read_lease(const struct my_packet *p, struct my_rows *rows)
{
	struct ob_lease *lease = my_rows_add(rows);

	if (!lease)
		return false;
	lease->partition = (uint32_t)my_int(p, 0);
	lease->epoch = (uint64_t)my_int(p, 1);
	return true;
}

typedef bool read_fn(const struct my_packet *p, struct my_rows *rows);

static int read_rows(struct my_packet *p, size_t statement, read_fn *read, struct my_rows *rows,
		     struct ob_err *err)
{
	rows->count = 0;
	for (my_use(p, statement); my_step(p);) {
		if (!read(p, rows))
			return my_oom(p->doing, err);
	}
	return 0;
}

/* All rows of a statement that has the reader as its only value. */
static int list_rows(struct ob_store *store, const char *tmpl, const char *reader, read_fn *read,
		     struct my_rows *rows, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "listing");
	(void)MY_ADD(&p, tmpl, MY_TEXT("reader", reader));
	int r = my_packet_run(&p, err);
	if (r == 0)
		r = read_rows(&p, 0, read, rows, err);
	return r;
}

int my_workers(struct ob_store *store, const char *reader, struct ob_arena *arena,
	       struct ob_worker **ret_workers, size_t *ret_count, struct ob_err *err)
{
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_worker) };
	int r = list_rows(store, sql_mysql_workers, reader, read_worker, &rows, err);

	if (r < 0)
		return r;
	*ret_workers = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

int my_partitions(struct ob_store *store, const char *reader, struct ob_arena *arena,
		  struct ob_partition **ret_partitions, size_t *ret_count, struct ob_err *err)
{
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_partition) };
	int r = list_rows(store, sql_mysql_partitions, reader, read_partition, &rows, err);

	if (r < 0)
		return r;
	*ret_partitions = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

/* ---- leases ---------------------------------------------------------- */

/* "[0,3]": partitions below `count` that have no row yet; "" when all have. */
static void list_missing(struct my_packet *p, size_t statement, int64_t count, struct ob_buf *out)
{
	bool there[OB_PARTITIONS_MAX] = { false };

	for (my_use(p, statement); my_step(p);) {
		if (my_int(p, 0) < OB_PARTITIONS_MAX)
			there[my_int(p, 0)] = true;
	}
	for (int64_t i = 0; i < count && i < OB_PARTITIONS_MAX; i++) {
		if (!there[i])
			ob_buf_addf(out, "%c%d", out->len ? ',' : '[', (int)i);
	}
	if (out->len)
		ob_buf_addc(out, ']');
}

int my_seed(struct ob_store *store, const char *reader, uint32_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf missing = OB_BUF_INIT(LIST_MAX);
	struct my_store *s = (struct my_store *)store;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int64_t count;
	int r = my_meta(s, "partition_count", &count, err);

	if (r < 0)
		return r;
	my_packet_init(&p, s, "making lease rows");
	(void)MY_ADD(&p, sql_mysql_lease_rows, MY_TEXT("reader", reader));
	r = my_packet_run(&p, err);
	if (r == 0) {
		list_missing(&p, 0, count, &missing);
		my_packet_clear(&p);
		p.writes = true;
		(void)MY_ADD0(&p, sql_mysql_begin_write);
		if (missing.len)
			(void)MY_ADD(&p, sql_mysql_seed, MY_TEXT("reader", reader),
				     MY_BUF("parts", &missing), MY_INT("count", count));
		(void)MY_ADD(&p, sql_mysql_prune_leases, MY_TEXT("reader", reader),
			     MY_INT("count", count));
		(void)MY_ADD0(&p, sql_mysql_commit);
		r = my_packet_run(&p, err);
	}
	if (r == 0)
		*ret_count = (uint32_t)count;
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own nine parameters */
int my_take(struct ob_store *store, const char *reader, const struct ob_uuid *owner, uint32_t want,
	    int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases, size_t *ret_count,
	    struct ob_err *err)
{
	const struct my_arg args[] = { MY_TEXT("reader", reader), MY_UUID("id", owner),
				       MY_INT("want", want), MY_INT("ttl", my_us(ttl_ms)), MY_END };
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "taking leases");
	p.writes = true;
	(void)MY_ADD0(&p, sql_mysql_begin_write);
	(void)my_packet_add(&p, sql_mysql_take_look, args);
	(void)my_packet_add(&p, sql_mysql_take, args);
	size_t taken = my_packet_add(&p, sql_mysql_taken, args);
	(void)MY_ADD0(&p, sql_mysql_commit);
	int r = my_packet_run(&p, err);
	if (r == 0)
		r = read_rows(&p, taken, read_lease, &rows, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

/* Read without locks, extend by number, read again what is held. */
static int renew(struct my_packet *p, const struct my_arg *args, struct my_rows *rows,
		 struct ob_err *err)
{
	(void)my_packet_add(p, sql_mysql_note_held, args);
	(void)my_packet_add(p, sql_mysql_renew, args);
	size_t held = my_packet_add(p, sql_mysql_held_leases, args);
	int r = my_packet_run(p, err);

	return r < 0 ? r : read_rows(p, held, read_lease, rows, err);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int my_renew(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	     int64_t ttl_ms, struct ob_arena *arena, struct ob_lease **ret_leases,
	     size_t *ret_count, struct ob_err *err)
{
	const struct my_arg args[] = { MY_TEXT("reader", reader), MY_UUID("id", owner),
				       MY_INT("ttl", my_us(ttl_ms)), MY_END };
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_lease) };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, (struct my_store *)store, "renewing leases");
	p.writes = true;
	int r = renew(&p, args, &rows, err);
	if (r < 0)
		return r;
	*ret_leases = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}

static int change_listed(struct ob_store *store, const char *tmpl, const char *reader,
			 const struct ob_uuid *owner, const uint32_t *partitions, size_t count,
			 struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf numbers = OB_BUF_INIT(LIST_MAX);
	const struct ob_uuid nobody = { 0 };

	for (size_t i = 0; i < count; i++)
		my_add_number(&numbers, partitions[i]);
	const struct my_arg args[] = { MY_TEXT("reader", reader),
				       MY_UUID("id", owner ? owner : &nobody),
				       MY_INT("all", count == 0),
				       MY_SQL("numbers", my_list(&numbers)), MY_END };
	int r = my_change((struct my_store *)store, "releasing leases", tmpl, args, err);
	return r < 0 ? r : 0;
}

int my_release(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
	       const uint32_t *partitions, size_t count, struct ob_err *err)
{
	return change_listed(store, sql_mysql_release, reader, owner, partitions, count, err);
}

int my_free_leases(struct ob_store *store, const char *reader, const uint32_t *partitions,
		   size_t count, struct ob_err *err)
{
	int r = change_listed(store, sql_mysql_forget_holders, reader, NULL, partitions, count,
			      err);

	return r < 0 ? r
		     : change_listed(store, sql_mysql_free_leases, reader, NULL, partitions, count,
				     err);
}

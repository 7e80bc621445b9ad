/* SPDX-License-Identifier: MIT */
/* Pushing into MySQL: one multi-row INSERT on the caller's own connection. */
#include "lib/mysql_push.h"

#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "base/utf8.h"
#include "lib/duplicate.h"
#include "lib/events/drivers.h"
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/options.h"
#include "outbox/mysql.h"
#include "sql_mysql.h"

#include <errmsg.h>

enum {
	/* Rows of one statement at most: parameters are numbered with 16 bits. */
	CHUNK_MAX = 500,
	SQL_MAX = 1 << 20,
	/* Of a packet, for what is neither payload, headers nor snapshot of a row. */
	ROW_OVERHEAD = 16 * 1024,
	PACKET_MIN = 64 * 1024,
};

static const struct ob_insert_sql insert_sql = { sql_mysql_push_head, sql_mysql_push_row, '`' };

/* The values of one row, which parameters point to. */
struct row_values {
	int64_t number[OB_INSERT_FIELDS];
	unsigned long size[OB_INSERT_FIELDS];
	char id[OB_UUID_TEXT_SIZE]; /* as text, or its digits */
};

struct ob_str ob_mysql_id(const struct ob_mysql_driver *driver, const struct ob_uuid *id,
			  char text[OB_UUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	ob_uuid_format(id, text);
	if (driver->layout.string_id)
		return (struct ob_str){ text, OB_UUID_TEXT };
	for (size_t i = 0; i < sizeof(id->b); i++) {
		text[2 * i] = digits[id->b[i] >> 4];
		text[2 * i + 1] = digits[id->b[i] & 15];
	}
	return (struct ob_str){ text, 2 * sizeof(id->b) };
}

/* The library's structs have no const, but it only reads parameters. */
static void *plain(const void *p)
{
	void *q;

	memcpy(&q, &p, sizeof(q));
	return q;
}

/* As a blob: the server does not convert it from the session's character set. */
MYSQL_BIND ob_mysql_bind_bytes(struct ob_str value, unsigned long *size)
{
	if (!value.p)
		return (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_NULL };
	*size = value.n;
	return (MYSQL_BIND){
		.buffer_type = MYSQL_TYPE_BLOB,
		.buffer = plain(value.p),
		.buffer_length = value.n,
		.length = size,
	};
}

static MYSQL_BIND bind_int(int64_t value, int64_t *number)
{
	*number = value;
	return (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_LONGLONG, .buffer = number };
}

static MYSQL_BIND bind_optional_int(int64_t value, int64_t *number)
{
	return value ? bind_int(value, number) : (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_NULL };
}

/* ---- statements ------------------------------------------------------ */

static int prepare_text(struct ob_mysql_driver *driver, const struct ob_buf *sql, const char *doing,
			MYSQL_STMT **ret_stmt, struct outbox_error *err)
{
	MYSQL_STMT *stmt = mysql_stmt_init(driver->db);

	if (!stmt)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (mysql_stmt_prepare(stmt, ob_buf_str(sql), sql->len) != 0) {
		struct ob_mysql_failure f = ob_mysql_stmt_failure(stmt, doing);

		(void)mysql_stmt_close(stmt);
		return ob_mysql_fail(driver, NULL, &f, err);
	}
	*ret_stmt = stmt;
	return 0;
}

int ob_mysql_prepare(const struct ob_mysql_driver *driver, const char *tmpl, MYSQL_STMT **ret_stmt,
		     struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;
	int r = ob_sqltmpl_expand(&sql, tmpl, &driver->layout, '`', NULL, &inner);

	if (r < 0)
		return ob_fail(err, inner.status, OUTBOX_NO_INDEX, "%s", inner.msg);
	MYSQL_STMT *stmt = mysql_stmt_init(driver->db);
	if (!stmt || mysql_stmt_prepare(stmt, ob_buf_str(&sql), sql.len) != 0) {
		r = ob_fail(err, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "%.200s",
			    stmt ? mysql_stmt_error(stmt) : "out of memory");
		/* Closing the statement clears the number on the connection. */
		if (stmt)
			(void)snprintf(err->native, sizeof(err->native), "%u",
				       mysql_stmt_errno(stmt));
		if (stmt)
			(void)mysql_stmt_close(stmt);
		return r;
	}
	*ret_stmt = stmt;
	return 0;
}

static int prepare_insert(struct ob_mysql_driver *driver, size_t rows, unsigned shape,
			  MYSQL_STMT **ret_stmt, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	int r = ob_insert_build(&insert_sql, &driver->layout, shape, rows, &sql, err);

	return r < 0 ? r : prepare_text(driver, &sql, "preparing the insert", ret_stmt, err);
}

/* The place where the insert of that many rows is kept. */
static MYSQL_STMT **slot_of(struct ob_mysql_driver *driver, size_t rows, unsigned shape)
{
	MYSQL_STMT **slot = rows == 1 ? &driver->one[shape] : &driver->many;
	bool fits = rows == 1 || (driver->many_rows == rows && driver->many_shape == shape);

	/* The library takes its statements off a session that was reset or reconnected. */
	if (*slot && (!fits || !(*slot)->mysql)) {
		(void)mysql_stmt_close(*slot);
		*slot = NULL;
	}
	return slot;
}

static int get_insert(struct ob_mysql_driver *driver, size_t rows, unsigned shape,
		      MYSQL_STMT **ret_stmt, struct outbox_error *err)
{
	MYSQL_STMT **slot = slot_of(driver, rows, shape);

	if (!*slot) {
		int r = prepare_insert(driver, rows, shape, slot, err);
		if (r < 0)
			return r;
		if (rows > 1) {
			driver->many_rows = rows;
			driver->many_shape = shape;
		}
	}
	*ret_stmt = *slot;
	return 0;
}

/* ---- values ---------------------------------------------------------- */

static MYSQL_BIND bind_field(const struct ob_mysql_driver *driver, const struct ob_push_row *row,
			     int f, struct row_values *v)
{
	const struct outbox_message *m = row->message;
	unsigned long *size = &v->size[f];
	int64_t *number = &v->number[f];

	switch ((int)ob_insert_fields[f]) {
	case OB_COL_id:
		return ob_mysql_bind_bytes(ob_mysql_id(driver, &row->id, v->id), size);
	case OB_COL_aggregate_type:
		return ob_mysql_bind_bytes(ob_str(m->aggregate_type), size);
	case OB_COL_aggregate_id:
		return ob_mysql_bind_bytes(ob_str(m->aggregate_id), size);
	case OB_COL_event_type:
		return ob_mysql_bind_bytes(ob_str(m->event_type), size);
	case OB_COL_payload:
		return ob_mysql_bind_bytes(row->payload, size);
	case OB_COL_target:
		return ob_mysql_bind_bytes(ob_str(ob_push_target(row)), size);
	case OB_COL_priority:
		return bind_int(m->priority, number);
	case OB_COL_revision:
		return bind_int(m->revision ? m->revision : 1, number);
	case OB_COL_sequence_number:
		return bind_optional_int(m->sequence_number, number);
	case OB_COL_headers:
		return ob_mysql_bind_bytes(row->headers, size);
	case OB_COL_snapshot:
		return ob_mysql_bind_bytes(row->snapshot, size);
	case OB_COL_correlation_id:
		return ob_mysql_bind_bytes(ob_str(m->correlation_id), size);
	case OB_COL_causation_id:
		return ob_mysql_bind_bytes(ob_str(m->causation_id), size);
	case OB_COL_partition_key:
		return ob_mysql_bind_bytes(ob_str(m->partition_key), size);
	case OB_COL_occurred_at:
		return bind_optional_int(m->occurred_at_us, number);
	default: /* OB_COL_available_at: how long from now */
		return bind_optional_int((int64_t)m->delay_ms * 1000, number);
	}
}

static int run_insert(struct ob_mysql_driver *driver, MYSQL_STMT *stmt, unsigned shape,
		      const struct ob_mysql_chunk *chunk, struct ob_mysql_failure *failure)
{
	struct row_values *values = calloc(chunk->count, sizeof(*values));
	MYSQL_BIND *binds = calloc(chunk->count * OB_INSERT_FIELDS, sizeof(*binds));
	size_t at = 0;
	int r = 0;

	if (!values || !binds) {
		*failure = (struct ob_mysql_failure){ CR_OUT_OF_MEMORY, "out of memory",
						      "storing the messages" };
		r = -1;
	}
	for (size_t i = 0; i < chunk->count && r == 0; i++) {
		for (int f = 0; f < OB_INSERT_FIELDS; f++) {
			if (ob_insert_uses(&driver->layout, shape, ob_insert_fields[f]))
				binds[at++] = bind_field(driver, &chunk->rows[i], f, &values[i]);
		}
	}
	if (r == 0 && (mysql_stmt_bind_param(stmt, binds) || mysql_stmt_execute(stmt) != 0)) {
		*failure = ob_mysql_stmt_failure(stmt, "storing the messages");
		r = -1;
	}
	free(values);
	free(binds);
	return r;
}

static bool mysql_in_transaction(void *self)
{
	const struct ob_mysql_driver *driver = self;
	static const char ask[] = "DO 0";
	unsigned status = SERVER_STATUS_AUTOCOMMIT;

	/*
	 * An error, a deadlock for one, may have ended the transaction, but its packet does not
	 * tell: the status is that of before. The answer to any statement does; of a ping's it is
	 * not read.
	 */
	if (mysql_errno(driver->db) != 0)
		(void)mysql_real_query(driver->db, ask, sizeof(ask) - 1);
	(void)mariadb_get_infov(driver->db, MARIADB_CONNECTION_SERVER_STATUS, &status);
	/* Without autocommit the insert itself begins one. */
	return (status & SERVER_STATUS_IN_TRANS) || !(status & SERVER_STATUS_AUTOCOMMIT);
}

static int insert_chunk(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
			unsigned shape, struct outbox_error *err)
{
	struct ob_mysql_failure failure = { 0 };
	MYSQL_STMT *stmt;
	int r = get_insert(driver, chunk->count, shape, &stmt, err);

	if (r < 0)
		return r;
	if (run_insert(driver, stmt, shape, chunk, &failure) == 0)
		return 0;
	r = ob_mysql_fail(driver, chunk, &failure, err);
	(void)mysql_in_transaction(driver); /* so that the caller, too, reads a true status */
	return r;
}

/* ---- several statements ---------------------------------------------- */

static size_t row_size(const struct ob_push_row *row)
{
	return row->payload.n + row->headers.n + row->snapshot.n + ROW_OVERHEAD;
}

/* A statement that is too large for the server would cost the connection. */
static size_t chunk_size(const struct ob_mysql_driver *driver, const struct ob_push_row *rows,
			 size_t count)
{
	size_t bytes = row_size(&rows[0]), size = 1;

	while (size < count && size < CHUNK_MAX && bytes + row_size(&rows[size]) <= driver->packet)
		bytes += row_size(&rows[size++]);
	return size;
}

static int run(struct ob_mysql_driver *driver, const char *sql, struct outbox_error *err)
{
	if (mysql_real_query(driver->db, sql, strlen(sql)) == 0)
		return 0;
	struct ob_mysql_failure f = ob_mysql_db_failure(driver->db, sql);
	return ob_mysql_fail(driver, NULL, &f, err);
}

/* Take back what the call did so far. */
static void undo(struct ob_mysql_driver *driver, struct outbox_error *err)
{
	struct outbox_error first = *err, second;

	/* After a deadlock the server has rolled everything back, and the error says so. */
	if (!mysql_in_transaction(driver))
		return;
	if (run(driver, "ROLLBACK TO SAVEPOINT outbox_push", &second) == 0)
		(void)run(driver, "RELEASE SAVEPOINT outbox_push", &second);
	else if (strcmp(first.native, "1213") != 0)
		(void)ob_fail(err, first.status, first.index,
			      "%.150s; undoing it failed too: roll the transaction back",
			      first.message);
	memcpy(err->native, first.native, sizeof(err->native));
}

static int insert_chunks(struct ob_mysql_driver *driver, const struct ob_push_row *rows,
			 size_t count, unsigned shape, struct outbox_error *err)
{
	int r = run(driver, "SAVEPOINT outbox_push", err);

	if (r < 0)
		return r;
	for (size_t done = 0; done < count && r == 0;) {
		struct ob_mysql_chunk chunk = {
			.rows = rows + done,
			.count = chunk_size(driver, rows + done, count - done),
			.first = done,
		};

		r = insert_chunk(driver, &chunk, shape, err);
		done += chunk.count;
	}
	if (r == 0)
		r = run(driver, "RELEASE SAVEPOINT outbox_push", err);
	if (r != 0)
		undo(driver, err);
	return r;
}

/* What the server would do badly: cut text that is no UTF-8, or close the connection. */
static int check_rows(const struct ob_mysql_driver *driver, const struct ob_push_row *rows,
		      size_t count, struct outbox_error *err)
{
	for (size_t i = 0; i < count; i++) {
		if ((!driver->layout.binary_payload && !ob_utf8_valid(rows[i].payload)) ||
		    !ob_utf8_valid(rows[i].headers) || !ob_utf8_valid(rows[i].snapshot)) {
			(void)ob_fail(err, OUTBOX_ESTORE, i, "a document is not valid UTF-8");
			return OB_DRIVER_CHECK;
		}
		if (row_size(&rows[i]) > driver->packet)
			return ob_fail(
				err, OUTBOX_ETOOLONG, i,
				"payload, headers and snapshot are %zu bytes together, but the "
				"server's max_allowed_packet is %zu: raise it",
				row_size(&rows[i]) - ROW_OVERHEAD, driver->packet);
	}
	return 0;
}

int ob_mysql_insert(void *self, const struct ob_push_row *rows, size_t count,
		    struct outbox_error *err)
{
	struct ob_mysql_driver *driver = self;
	struct ob_mysql_chunk all = { .rows = rows, .count = count };
	unsigned shape = ob_insert_shape(rows, count);
	int r = check_rows(driver, rows, count, err);

	if (r != 0)
		return r;
	if (chunk_size(driver, rows, count) == count)
		return insert_chunk(driver, &all, shape, err);
	return insert_chunks(driver, rows, count, shape, err);
}

/* ---- opening --------------------------------------------------------- */

static void mysql_driver_close(void *self)
{
	struct ob_mysql_driver *driver = self;

	for (int i = 0; i < OB_INSERT_SHAPES; i++) {
		if (driver->one[i])
			(void)mysql_stmt_close(driver->one[i]);
	}
	if (driver->many)
		(void)mysql_stmt_close(driver->many);
	if (driver->look)
		(void)mysql_stmt_close(driver->look);
	free(driver);
}

OB_DEFINE_CLEANUP(struct ob_mysql_driver *, mysql_driver_close)

static const struct ob_driver_ops mysql_ops = {
	.abi = OB_DRIVER_ABI,
	.in_transaction = mysql_in_transaction,
	.insert = ob_mysql_insert,
	.append = ob_mysql_append,
	.look_stream = ob_mysql_look_stream,
	.keep_stream = ob_mysql_keep_stream,
	.pin_log = ob_mysql_pin_log,
	.ask = ob_mysql_ask,
	.read_events = ob_mysql_read_events,
	.inbox = ob_mysql_inbox,
	.close = mysql_driver_close,
};

static int read_packet(struct ob_mysql_driver *driver, struct outbox_error *err)
{
	int r = run(driver, sql_mysql_push_packet, err);
	MYSQL_RES *result = r == 0 ? mysql_store_result(driver->db) : NULL;
	MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;

	driver->packet = row && row[0] ? strtoul(row[0], NULL, 10) : 0;
	if (driver->packet < PACKET_MIN)
		driver->packet = PACKET_MIN;
	if (result)
		mysql_free_result(result);
	return r;
}

/* See that everything is there now, not at the first push. */
static int open_driver(struct ob_mysql_driver *driver, const struct outbox_options *options,
		       struct outbox_error *err)
{
	MYSQL_STMT *unused;
	int r = ob_options_layout(options, &driver->layout, err);

	if (r == 0)
		r = read_packet(driver, err);
	if (r == 0)
		r = ob_mysql_check_table(driver, err);
	if (r == 0)
		r = get_insert(driver, 1, 0, &unused, err);
	return r;
}

int outbox_mysql_open_sized(MYSQL *db, const void *options, size_t options_size, outbox **ret_ob,
			    struct outbox_error *err)
{
	struct outbox_error unused;
	struct outbox_options copy;
	const struct outbox_options *ours = NULL;

	if (!err)
		err = &unused;
	if (!db)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no connection");
	OB_CLEANUP(mysql_driver_closep)
	struct ob_mysql_driver *driver = calloc(1, sizeof(*driver));
	if (!driver)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	driver->db = db;
	int r = ob_options_take(options, options_size, &copy, &ours, err);
	if (r == 0)
		r = open_driver(driver, ours, err);
	if (r < 0)
		return r;
	struct ob_check_rules rules = ob_options_rules(ours, &driver->layout);
	r = outbox_driver_attach(&mysql_ops, driver, &rules, ret_ob, err);
	if (r == 0)
		(void)OB_TAKE(driver);
	return r;
}

OUTBOX_API int first_mysql_open(MYSQL *db, const void *options, outbox **ret_ob,
				struct outbox_error *err) OB_FIRST_ABI("outbox_mysql_open");

int first_mysql_open(MYSQL *db, const void *options, outbox **ret_ob, struct outbox_error *err)
{
	return outbox_mysql_open_sized(db, options, ob_grow_options.first, ret_ob, err);
}

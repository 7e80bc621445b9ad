/* SPDX-License-Identifier: MIT */
/* The MySQL store: what is there under our names, and whether the promises can rest on it. */
#include "base/cleanup.h"
#include "store/mysql/parts.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

#include <ctype.h>
#include <inttypes.h>

enum { COMPANION_COLUMNS = 11 };

/* Columns of the companion tables; of the log the layout knows them. */
static const char *const companion_columns[OB_TABLE_COUNT][COMPANION_COLUMNS] = {
	[OB_TABLE_readers] = { "name", "target", "filter", "temporary", "created_at" },
	[OB_TABLE_batches] = { "reader", "partition_no", "batch", "epoch", "owner", "at", "pos",
			       "published", "failed", "seen" },
	[OB_TABLE_exceptions] = { "reader", "partition_no", "seq", "state", "attempts", "due",
				  "queue", "last_error", "since" },
	[OB_TABLE_leases] = { "reader", "partition_no", "lease_owner", "lease_until", "lease_epoch",
			      "updated_at" },
	[OB_TABLE_workers] = { "id", "reader", "hostname", "pid", "started_at", "heartbeat_until",
			       "published", "failed", "session", "state" },
	[OB_TABLE_throughput] = { "minute", "reader", "worker", "published", "failed" },
	[OB_TABLE_audit] = { "number", "at", "who", "origin", "verb", "reader", "filter",
			     "messages", "plan", "reason" },
	[OB_TABLE_meta] = { "name", "value" },
};

const char *my_schema(const struct my_store *s)
{
	return s->base.layout->schema[0] ? s->base.layout->schema : NULL;
}

int my_meta(struct my_store *s, const char *name, int64_t *ret_value, struct ob_err *err)
{
	int r = MY_NUMBER(s, "reading the schema version", ret_value, err,
			  s->in_work ? sql_mysql_meta_lock : sql_mysql_meta_get,
			  OB_ARG_TEXT("name", name));

	return r != 0 ? (r < 0 ? r : 0)
		      : ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				   "table '%s' has no '%s': it was not made by `outbox setup`",
				   s->base.layout->table[OB_TABLE_meta], name);
}

static bool is(struct ob_str value, const char *text)
{
	return value.p && value.n == strlen(text) && strncasecmp(value.p, text, value.n) == 0;
}

/* ---- tables ---------------------------------------------------------- */

static int judge_table(const struct my_packet *p, const char *name, struct ob_err *err)
{
	if (!is(my_str(p, 0), "BASE TABLE"))
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "'%s' exists and is no table: choose another table name in the "
				  "layout",
				  name);
	if (!is(my_str(p, 1), "InnoDB"))
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "table '%s' uses the engine %.*s, which has no transactions: run "
				  "ALTER TABLE %s ENGINE=InnoDB",
				  name, (int)my_str(p, 1).n, my_str(p, 1).p, name);
	return 0;
}

static int find_tables(struct my_store *s, struct my_found *found, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "reading the schema");
	for (int t = 0; t < OB_TABLE_COUNT; t++)
		(void)MY_ADD(&p, sql_mysql_table_info, OB_ARG_TEXT("schema", my_schema(s)),
			     OB_ARG_TEXT("table", s->base.layout->table[t]));
	int r = my_packet_run(&p, err);
	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++) {
		my_use(&p, (size_t)t);
		if (!my_step(&p))
			continue;
		found->table[t] = found->any = true;
		r = judge_table(&p, s->base.layout->table[t], err);
	}
	return r;
}

int my_look_schema(struct my_store *s, struct my_found *found, struct ob_err *err)
{
	char place[256];
	*found = (struct my_found){ 0 };
	int r = find_tables(s, found, err);
	if (r == 0 && found->table[OB_TABLE_meta])
		r = my_meta(s, "schema_version", &found->version, err);
	if (r == 0 && found->table[OB_TABLE_meta])
		r = my_meta(s, "partition_count", &found->partition_count, err);
	if (r == 0 && found->table[OB_TABLE_meta] && found->table[OB_TABLE_outbox])
		r = my_parts_look(s, &found->partition_rows, err);
	if (r < 0)
		return r;
	if (found->version > OB_SCHEMA_VERSION)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: the tables have schema version %" PRId64
				  ", made by a newer outbox; upgrade this program (it knows %d)",
				  my_place(s, place), found->version, OB_SCHEMA_VERSION);
	return 0;
}

/* ---- columns --------------------------------------------------------- */

/* The last number of an expression: of "... MOD 16" or "(... % 16)". */
static int64_t last_number(struct ob_str text)
{
	int64_t number = 0;

	for (size_t i = 0; i < text.n; i++) {
		bool digit = isdigit((unsigned char)text.p[i]);
		bool goes_on = i > 0 && isdigit((unsigned char)text.p[i - 1]);

		if (digit)
			number = (goes_on ? number * 10 : 0) + (text.p[i] - '0');
		if (number > 100000)
			return 0;
	}
	return number;
}

static int wrong_type(const struct ob_layout *layout, enum ob_column column, struct ob_str type,
		      const char *want, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "column '%s' of table '%s' is %.*s, but must be %s: correct the layout, "
			  "or move the rows to a table made by `outbox setup`",
			  layout->column[column], layout->table[OB_TABLE_outbox], (int)type.n,
			  type.p, want);
}

/* What a column of ours must be, as far as a promise rests on it. */
static int check_column(struct my_store *s, enum ob_column column, const struct my_packet *q,
			struct my_found *found, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	struct ob_str type = my_str(q, 1), extra = my_str(q, 2), expression = my_str(q, 3);

	switch ((int)column) {
	case OB_COL_seq:
		if (!is(type, "bigint"))
			return wrong_type(layout, column, type, "bigint", err);
		if (!is(extra, "auto_increment"))
			return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
					  "column '%s' of table '%s' is not AUTO_INCREMENT: the "
					  "database must number the rows; move them to a table "
					  "made by `outbox setup`",
					  layout->column[column], layout->table[OB_TABLE_outbox]);
		return 0;
	case OB_COL_id:
		if (!is(type, layout->string_id ? "varchar" : "varbinary"))
			return wrong_type(layout, column, type,
					  layout->string_id ? "varchar (id_type is string)"
							    : "varbinary(16)",
					  err);
		return 0;
	case OB_COL_payload:
		if (!is(type, layout->binary_payload ? "longblob" : "longtext"))
			return wrong_type(layout, column, type,
					  layout->binary_payload
						  ? "longblob (payload_type is binary)"
						  : "longtext",
					  err);
		return 0;
	case OB_COL_partition_no:
		found->modulus = last_number(expression);
		if (!expression.n)
			return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
					  "column '%s' of table '%s' is not generated: rows would "
					  "get no partition; move the rows to a table made by "
					  "`outbox setup`",
					  layout->column[column], layout->table[OB_TABLE_outbox]);
		return 0;
	default:
		return 0;
	}
}

/* What is asked of one table. */
struct wanted {
	enum ob_table table;
	const char *const *names; /* of columns; "" or NULL: none here */
	size_t count;
	bool types;     /* look at the types too */
	uint64_t there; /* bits of the names that were found */
};

static int read_columns(struct my_store *s, struct wanted *w, struct my_found *found,
			struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = MY_QUERY(&p, s, "reading the schema", err, sql_mysql_column_info,
			 OB_ARG_TEXT("schema", my_schema(s)),
			 OB_ARG_TEXT("table", s->base.layout->table[w->table]));

	while (r == 0 && my_step(&p)) {
		for (size_t i = 0; i < w->count && r == 0; i++) {
			if (!w->names[i] || !w->names[i][0] || !is(my_str(&p, 0), w->names[i]))
				continue;
			w->there |= UINT64_C(1) << i;
			if (w->types && i < OB_COL_COUNT)
				r = check_column(s, (enum ob_column)i, &p, found, err);
		}
	}
	return r;
}

int my_has_column(struct my_store *s, const char *table, const char *column, bool *ret_has,
		  struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = MY_QUERY(&p, s, "reading the schema", err, sql_mysql_column_info,
			 OB_ARG_TEXT("schema", my_schema(s)), OB_ARG_TEXT("table", table));

	*ret_has = false;
	while (r == 0 && my_step(&p))
		*ret_has = *ret_has || is(my_str(&p, 0), column);
	return r;
}

static int check_table(struct my_store *s, struct wanted *w, struct my_found *found,
		       struct ob_err *err)
{
	int r = read_columns(s, w, found, err);

	/* That a column is missing tells more than that another has a wrong type. */
	for (size_t i = 0; r == 0 && i < w->count; i++) {
		if (w->names[i] && w->names[i][0] && !(w->there & (UINT64_C(1) << i)))
			return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
					  "table '%s' has no column '%s': it is not ours, or the "
					  "layout is not the one it was made with; correct the "
					  "layout, or grant this user SELECT on the whole table",
					  s->base.layout->table[w->table], w->names[i]);
	}
	w->types = w->table == OB_TABLE_outbox;
	return r < 0 || !w->types ? r : read_columns(s, w, found, err);
}

int my_check_columns(struct my_store *s, struct my_found *found, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	const char *names[OB_COL_COUNT];
	int r = 0;

	/* No transaction ids here. */
	for (int c = 0; c < OB_COL_COUNT; c++)
		names[c] = c == OB_COL_txid ? "" : layout->column[c];
	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++) {
		bool log = t == OB_TABLE_outbox;
		struct wanted w = {
			.table = (enum ob_table)t,
			.names = log ? names : companion_columns[t],
			.count = log ? OB_COL_COUNT : COMPANION_COLUMNS,
		};

		if (found->table[t])
			r = check_table(s, &w, found, err);
	}
	return r;
}

/* ---- indexes --------------------------------------------------------- */

int my_index_columns(struct my_store *s, const char *suffix, char out[1024], struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	char name[2 * OB_IDENT_SIZE];

	(void)snprintf(name, sizeof(name), "%s_%s", table, suffix);
	int r = MY_QUERY(&p, s, "reading the schema", err, sql_mysql_index_info,
			 OB_ARG_TEXT("schema", my_schema(s)), OB_ARG_TEXT("table", table),
			 OB_ARG_TEXT("index", name));
	struct ob_str columns = r == 0 && my_step(&p) ? my_str(&p, 0) : OB_STR_NULL;
	(void)snprintf(out, 1024, "%.*s", (int)columns.n, columns.p ? columns.p : "");
	return r;
}

static int check_indexes(struct my_store *s, bool partitioned, struct ob_err *err)
{
	static const char *const indexes[] = { "uniq_id", "uniq_aggregate_sequence" };
	const struct ob_layout *layout = s->base.layout;
	size_t count = sizeof(indexes) / sizeof(indexes[0]);
	char columns[1024];
	int r = 0;

	if (!layout->column[OB_COL_sequence_number][0] || partitioned)
		count--;
	for (size_t i = 0; i < count && r == 0; i++) {
		r = my_index_columns(s, indexes[i], columns, err);
		if (r == 0 && !columns[0])
			r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				       "index '%s_%s' is missing: run `outbox setup`",
				       layout->table[OB_TABLE_outbox], indexes[i]);
	}
	return r;
}

/* ---- the server ------------------------------------------------------ */

int my_check_version(const char *version, struct ob_err *err)
{
	bool maria = strstr(version, "MariaDB") != NULL;
	unsigned a = 0, b = 0, c = 0;

	(void)sscanf(version, "%u.%u.%u", &a, &b, &c);
	unsigned number = a * 10000 + b * 100 + c;
	if (number >= (maria ? 100600u : 80017u))
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the server is %s %.40s, too old: use MariaDB 10.6 or MySQL 8.0.17, or "
			  "newer",
			  maria ? "MariaDB" : "MySQL", version);
}

static bool contains(struct ob_str text, const char *word)
{
	return text.p && memmem(text.p, text.n, word, strlen(word));
}

/* A row of the template server. */
static int check_settings(const struct my_packet *q, struct ob_err *err)
{
	if (!contains(my_str(q, 1), "STRICT_TRANS_TABLES") &&
	    !contains(my_str(q, 1), "STRICT_ALL_TABLES"))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"the server's sql_mode is not strict: keys and payloads that "
			"producers write would be cut silently; add STRICT_TRANS_TABLES to "
			"the global sql_mode");
	if (my_int(q, 2) || my_int(q, 6))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"the server is read-only, perhaps a replica: connect to the server "
			"that takes writes");
	if (my_int(q, 3) != 1)
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"auto_increment_increment is %lld: with several servers that take "
			"writes, numbers do not follow the order of commits and messages of "
			"a key would be sent out of order; set it to 1 and write to one "
			"server",
			(long long)my_int(q, 3));
	if (my_int(q, 4) && is(my_str(q, 5), "STATEMENT"))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"binlog_format is STATEMENT, which refuses READ COMMITTED writes: "
			"set the global binlog_format to ROW or MIXED");
	return 0;
}

static int check_server(struct my_store *s, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = my_query(&p, s, "reading the server's settings", sql_mysql_server, OB_NO_ARGS, err);

	if (r < 0 || !my_step(&p))
		return r;
	r = my_check_version(my_str(&p, 0).p, err);
	return r < 0 ? r : check_settings(&p, err);
}

/* ---- check ----------------------------------------------------------- */

static int check_found(struct my_store *s, struct my_found *found, struct ob_err *err)
{
	char place[256];

	(void)my_place(s, place);
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		/* The server shows nobody a table that he has no right on. */
		if (!found->table[t])
			return ob_err_set(err, found->any ? OUTBOX_ESTORE : OUTBOX_ESCHEMA,
					  OB_ERR_FATAL,
					  "%s: table '%s' is missing; run `outbox setup`%s", place,
					  s->base.layout->table[t],
					  !found->any ? ""
						      : ", or grant this user the rights that "
							"`outbox setup --grants` prints");
	}
	if (found->version < OB_SCHEMA_VERSION)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: the tables have schema version %" PRId64
				  ", this program needs %d; run `outbox setup`",
				  place, found->version, OB_SCHEMA_VERSION);
	int r = my_check_columns(s, found, err);
	if (r == 0 && found->modulus != found->partition_count)
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "rows are spread over %" PRId64
			       " partitions, but table '%s' says %" PRId64
			       ": a resize was interrupted; run `outbox partitions resize %" PRId64
			       "` again",
			       found->modulus, s->base.layout->table[OB_TABLE_meta],
			       found->partition_count, found->modulus);
	return r < 0 ? r : check_indexes(s, found->partition_rows > 0, err);
}

int my_check(struct ob_store *store, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_found found = { 0 };
	int r = check_server(s, err);

	if (r == 0)
		r = my_look_schema(s, &found, err);
	return r < 0 ? r : check_found(s, &found, err);
}

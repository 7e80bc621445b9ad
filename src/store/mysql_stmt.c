/* SPDX-License-Identifier: MIT */
/*
 * Prepared statements of the MySQL store, made from their templates on first
 * use. Every value is a parameter; a list of values is as many parameters as the
 * statement was prepared for, the last value repeated.
 */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql.h"

#include "sql_mysql.h"

enum { SQL_MAX = 1 << 20, PLACES_MAX = 1024, SEARCH_AGAIN_MAX = 64 };

static const size_t list_sizes[MY_LIST_SIZES] = { 1, 8, 64, MY_LIST_MAX };
static const size_t lane_sizes[MY_LIST_SIZES] = { 1, 4, 16, MY_LANES_MAX };

static const struct {
	const char *tmpl, *doing;
} statements[] = {
#define X(name, what) { sql_mysql_##name, what },
	MY_MAP(X)
#undef X
};

/* The parts of a search: each lane's, then one that stands there once; or all between two others.
 */
static const struct {
	const char *doing, *lane[2], *once, *begin, *end;
} searches[MY_SEARCH_COUNT] = {
	[MY_SEARCH_FREE] = { .doing = "fetching",
			     .lane = { sql_mysql_lane_pending },
			     .once = sql_mysql_any_held },
	[MY_SEARCH_NONE] = { .doing = "fetching",
			     .lane = { sql_mysql_lane_pending, sql_mysql_lane_failed } },
	[MY_SEARCH_KEY] = { .doing = "fetching",
			    .lane = { sql_mysql_lane_pending_key, sql_mysql_lane_failed },
			    .once = sql_mysql_any_held },
	[MY_SEARCH_PARTITION] = { .doing = "fetching",
				  .lane = { sql_mysql_lane_pending_partition,
					    sql_mysql_lane_failed },
				  .once = sql_mysql_any_held },
	[MY_SEARCH_CLAIM] = { .doing = "claiming",
			      .lane = { sql_mysql_lane_claim, sql_mysql_lane_claim_failed } },
	[MY_SEARCH_BEFORE] = { .doing = "fetching",
			       .lane = { sql_mysql_before_lane },
			       .begin = sql_mysql_before,
			       .end = sql_mysql_before_end },
};

/* One parameter, in the order of the statement. */
struct place {
	char name[24];
	int64_t number;
	unsigned long size;
};

struct my_query {
	MYSQL_STMT *stmt;
	const char *doing;
	MYSQL_BIND *in; /* place_count of both */
	struct place *places;
	size_t place_count;
	MYSQL_BIND out[MY_COLUMNS_MAX];
	struct {
		int64_t number;
		char *bytes;
		size_t room;
		unsigned long size;
		my_bool null, error;
	} cell[MY_COLUMNS_MAX];
	unsigned column_count;
	bool open;    /* rows are held */
	bool spoiled; /* make it anew */
};

/* ---- making ---------------------------------------------------------- */

void my_query_free(struct my_query *query)
{
	if (!query)
		return;
	if (query->stmt)
		(void)mysql_stmt_close(query->stmt);
	for (int i = 0; i < MY_COLUMNS_MAX; i++)
		free(query->cell[i].bytes);
	free(query->in);
	free(query->places);
	free(query);
}

void my_finalize(struct my_store *s)
{
	for (int size = 0; size < MY_LIST_SIZES; size++) {
		for (int id = 0; id < MY_COUNT; id++) {
			my_query_free(s->query[id][size]);
			s->query[id][size] = NULL;
		}
		for (int search = 0; search < MY_SEARCH_COUNT; search++) {
			my_query_free(s->search[search][size]);
			s->search[search][size] = NULL;
		}
	}
}

static size_t name_length(const char *p)
{
	size_t n = 0;

	while ((p[n] >= 'a' && p[n] <= 'z') || p[n] == '_')
		n++;
	return n;
}

/* Replace :name by ?, and :name* by `count` of them. */
static int translate(struct my_query *query, const char *text, size_t count, struct ob_buf *sql,
		     struct ob_err *err)
{
	query->places = calloc(PLACES_MAX, sizeof(*query->places));
	if (!query->places)
		return my_oom(query->doing, err);
	while (*text) {
		size_t n = *text == ':' ? name_length(text + 1) : 0;

		if (n == 0) {
			ob_buf_addc(sql, *text++);
			continue;
		}
		bool list = text[1 + n] == '*';
		for (size_t i = 0; i < (list ? count : 1); i++) {
			if (query->place_count == PLACES_MAX)
				return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
						  "%s: too many parameters", query->doing);
			struct place *place = &query->places[query->place_count++];
			(void)snprintf(place->name, sizeof(place->name), "%.*s", (int)n, text + 1);
			ob_buf_adds(sql, i ? ",?" : "?");
		}
		text += 1 + n + list;
	}
	return sql->failed ? my_oom(query->doing, err) : 0;
}

static int stmt_err(struct my_store *s, const struct my_query *query, struct ob_err *err)
{
	return my_err(s, mysql_stmt_errno(query->stmt), mysql_stmt_error(query->stmt), query->doing,
		      err);
}

static int make_stmt(struct my_store *s, struct my_query *query, const char *text, size_t count,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	my_bool yes = 1;
	int r = translate(query, text, count, &sql, err);

	if (r < 0)
		return r;
	query->in = calloc(query->place_count + 1, sizeof(*query->in));
	query->stmt = mysql_stmt_init(s->db);
	if (!query->in || !query->stmt)
		return my_oom(query->doing, err);
	(void)mysql_stmt_attr_set(query->stmt, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
	if (mysql_stmt_prepare(query->stmt, ob_buf_str(&sql), sql.len) != 0)
		return stmt_err(s, query, err);
	query->column_count = mysql_stmt_field_count(query->stmt);
	if (query->column_count > MY_COLUMNS_MAX)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "%s: too many columns",
				  query->doing);
	return 0;
}

static int prepare_text(struct my_store *s, const char *text, size_t count, const char *doing,
			struct my_query **ret_query, struct ob_err *err)
{
	struct my_query *query = calloc(1, sizeof(*query));

	if (!query)
		return my_oom(doing, err);
	query->doing = doing;
	int r = make_stmt(s, query, text, count, err);
	if (r < 0) {
		my_query_free(query);
		return r;
	}
	*ret_query = query;
	return 0;
}

/* The smallest size that holds `count`. */
static int size_of(const size_t sizes[MY_LIST_SIZES], size_t count)
{
	int size = 0;

	while (size < MY_LIST_SIZES - 1 && sizes[size] < count)
		size++;
	return size;
}

size_t my_lane_size(size_t lanes)
{
	return lane_sizes[size_of(lane_sizes, lanes)];
}

static void clear(struct my_query *query)
{
	if (query->open)
		(void)mysql_stmt_free_result(query->stmt);
	query->open = false;
	for (size_t i = 0; i < query->place_count; i++)
		query->in[i] = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_NULL };
}

static void drop_spoiled(struct my_query **slot)
{
	if (*slot && (*slot)->spoiled) {
		my_query_free(*slot);
		*slot = NULL;
	}
}

int my_prepare(struct my_store *s, enum my_id id, size_t count, struct my_query **ret_query,
	       struct ob_err *err)
{
	int size = size_of(list_sizes, count);
	struct my_query **slot = &s->query[id][size];

	drop_spoiled(slot);
	if (!*slot) {
		OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(SQL_MAX);
		int r = ob_sqltmpl_expand(&text, statements[id].tmpl, s->base.layout, '`', NULL,
					  err);
		if (r == 0)
			r = prepare_text(s, ob_buf_str(&text), list_sizes[size],
					 statements[id].doing, slot, err);
		if (r < 0)
			return r;
	}
	clear(*slot);
	*ret_query = *slot;
	return 0;
}

static int add_part(struct my_store *s, const char *joined_by, const char *part,
		    struct ob_buf *text, struct ob_err *err)
{
	ob_buf_adds(text, joined_by);
	return part ? ob_sqltmpl_expand(text, part, s->base.layout, '`', NULL, err) : 0;
}

static int add_lanes(struct my_store *s, enum my_search search, size_t lanes, struct ob_buf *text,
		     struct ob_err *err)
{
	const char *const *lane = searches[search].lane;
	const char *join = searches[search].begin ? " OR " : " UNION ALL ";
	int r = add_part(s, "", searches[search].begin, text, err);

	for (int part = 0; part < 2 && lane[part]; part++) {
		for (size_t i = 0; i < lanes && r == 0; i++)
			r = add_part(s, part + i > 0 ? join : "", lane[part], text, err);
	}
	if (r == 0 && searches[search].once)
		r = add_part(s, join, searches[search].once, text, err);
	return r < 0 ? r : add_part(s, "", searches[search].end, text, err);
}

int my_prepare_search(struct my_store *s, enum my_search search, size_t lanes,
		      struct my_query **ret_query, struct ob_err *err)
{
	int size = size_of(lane_sizes, lanes);
	struct my_query **slot = &s->search[search][size];

	drop_spoiled(slot);
	if (!*slot) {
		OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(SQL_MAX);
		int r = add_lanes(s, search, lane_sizes[size], &text, err);
		if (r == 0)
			r = prepare_text(s, ob_buf_str(&text), 1, searches[search].doing, slot,
					 err);
		if (r < 0)
			return r;
	}
	clear(*slot);
	*ret_query = *slot;
	return 0;
}

void my_search_done(struct my_store *s, struct my_query *query, size_t rows)
{
	if (rows >= SEARCH_AGAIN_MAX && mariadb_connection(s->db))
		query->spoiled = true;
}

int my_prepare_parts(struct my_store *s, const char *const *parts, size_t part_count, size_t count,
		     struct my_query **ret_query, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(SQL_MAX);
	int r = 0;

	for (size_t i = 0; i < part_count && r == 0; i++) {
		if (parts[i])
			r = ob_sqltmpl_expand(&text, parts[i], s->base.layout, '`', NULL, err);
	}
	if (r == 0)
		r = prepare_text(s, ob_buf_str(&text), count, "looking for rows", ret_query, err);
	if (r == 0)
		clear(*ret_query);
	return r;
}

/* ---- binding --------------------------------------------------------- */

static bool is_named(const struct my_query *query, size_t i, const char *name)
{
	return strcmp(query->places[i].name, name) == 0;
}

static void bind_int_at(struct my_query *query, size_t i, int64_t value)
{
	query->places[i].number = value;
	query->in[i] = (MYSQL_BIND){
		.buffer_type = MYSQL_TYPE_LONGLONG,
		.buffer = &query->places[i].number,
	};
}

/* The library's structs have no const, but it only reads parameters. */
static void *plain(const void *p)
{
	void *q;

	memcpy(&q, &p, sizeof(q));
	return q;
}

static void bind_bytes_at(struct my_query *query, size_t i, enum enum_field_types type,
			  struct ob_str value)
{
	if (!value.p)
		return;
	query->places[i].size = value.n;
	query->in[i] = (MYSQL_BIND){
		.buffer_type = type,
		.buffer = plain(value.p),
		.buffer_length = value.n,
		.length = &query->places[i].size,
	};
}

void my_bind_int(struct my_query *query, const char *name, int64_t value)
{
	for (size_t i = 0; i < query->place_count; i++) {
		if (is_named(query, i, name))
			bind_int_at(query, i, value);
	}
}

void my_bind_str(struct my_query *query, const char *name, struct ob_str value)
{
	for (size_t i = 0; i < query->place_count; i++) {
		if (is_named(query, i, name))
			bind_bytes_at(query, i, MYSQL_TYPE_STRING, value);
	}
}

void my_bind_text(struct my_query *query, const char *name, const char *value)
{
	my_bind_str(query, name, ob_str(value));
}

void my_bind_uuid(struct my_query *query, const char *name, const struct ob_uuid *value)
{
	struct ob_str bytes = { (const char *)value->b, sizeof(value->b) };

	for (size_t i = 0; i < query->place_count; i++) {
		if (is_named(query, i, name))
			bind_bytes_at(query, i, MYSQL_TYPE_BLOB, bytes);
	}
}

void my_bind_list(struct my_query *query, const char *name, const int64_t *values, size_t count)
{
	size_t k = 0;

	for (size_t i = 0; i < query->place_count; i++) {
		if (is_named(query, i, name)) {
			bind_int_at(query, i, values[k < count ? k : count - 1]);
			k++;
		}
	}
}

void my_bind_texts(struct my_query *query, const char *name, const char *const *values,
		   size_t count)
{
	size_t k = 0;

	for (size_t i = 0; i < query->place_count; i++) {
		if (is_named(query, i, name)) {
			bind_bytes_at(query, i, MYSQL_TYPE_STRING,
				      ob_str(values[k < count ? k : count - 1]));
			k++;
		}
	}
}

void my_bind_ids(struct my_store *s, struct my_query *query, const char *name,
		 const struct ob_uuid *const *ids, size_t count, char (*texts)[OB_UUID_TEXT_SIZE])
{
	bool text = s->base.layout->string_id;
	size_t k = 0;

	for (size_t i = 0; i < count && text; i++)
		ob_uuid_format(ids[i], texts[i]);
	for (size_t i = 0; i < query->place_count; i++) {
		if (!is_named(query, i, name))
			continue;
		size_t at = k < count ? k : count - 1;
		if (text)
			bind_bytes_at(query, i, MYSQL_TYPE_STRING, ob_str(texts[at]));
		else
			bind_bytes_at(
				query, i, MYSQL_TYPE_BLOB,
				(struct ob_str){ (const char *)ids[at]->b, sizeof(ids[at]->b) });
		k++;
	}
}

/* ---- running --------------------------------------------------------- */

/*
 * MariaDB sends the columns of a result only once for each statement. When a lock
 * times out behind them, server and library no longer agree on whether they were
 * sent, and the next run would wait for ever: a statement that failed is not used again.
 */
static int spoil(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	query->spoiled = true;
	return stmt_err(s, query, err);
}

static int execute(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	if (query->place_count && mysql_stmt_bind_param(query->stmt, query->in))
		return spoil(s, query, err);
	if (mysql_stmt_execute(query->stmt) != 0)
		return spoil(s, query, err);
	return 0;
}

int my_run(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	int r = execute(s, query, err);

	return r < 0 ? r : (int)mysql_stmt_affected_rows(query->stmt);
}

static bool is_number(enum enum_field_types type)
{
	return type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_SHORT ||
	       type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_INT24;
}

/* Room for the longest value of each column. */
static int bind_result(struct my_query *query, struct ob_err *err)
{
	MYSQL_RES *meta = mysql_stmt_result_metadata(query->stmt);

	if (!meta)
		return my_oom(query->doing, err);
	for (unsigned i = 0; i < query->column_count; i++) {
		const MYSQL_FIELD *field = mysql_fetch_field_direct(meta, i);
		MYSQL_BIND *bind = &query->out[i];

		*bind = (MYSQL_BIND){ .is_null = &query->cell[i].null,
				      .error = &query->cell[i].error,
				      .length = &query->cell[i].size };
		if (is_number(field->type)) {
			bind->buffer_type = MYSQL_TYPE_LONGLONG;
			bind->buffer = &query->cell[i].number;
			continue;
		}
		if (field->max_length >= query->cell[i].room) {
			char *more = realloc(query->cell[i].bytes, field->max_length + 1);

			if (!more) {
				mysql_free_result(meta);
				return my_oom(query->doing, err);
			}
			query->cell[i].bytes = more;
			query->cell[i].room = field->max_length + 1;
		}
		bind->buffer_type = MYSQL_TYPE_BLOB;
		bind->buffer = query->cell[i].bytes;
		bind->buffer_length = query->cell[i].room;
	}
	mysql_free_result(meta);
	return 0;
}

int my_open(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	int r = execute(s, query, err);

	if (r < 0)
		return r;
	query->open = true;
	if (mysql_stmt_store_result(query->stmt) != 0)
		return spoil(s, query, err);
	r = bind_result(query, err);
	if (r == 0 && mysql_stmt_bind_result(query->stmt, query->out))
		r = stmt_err(s, query, err);
	return r;
}

int my_step(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	int r = mysql_stmt_fetch(query->stmt);

	if (r == 0)
		return 1;
	if (r == MYSQL_DATA_TRUNCATED)
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "%s: a value was cut",
			       query->doing);
	else if (r != MYSQL_NO_DATA)
		r = stmt_err(s, query, err);
	else
		r = 0;
	(void)mysql_stmt_free_result(query->stmt);
	query->open = false;
	return r;
}

int my_first(struct my_store *s, struct my_query *query, struct ob_err *err)
{
	int r = my_open(s, query, err);

	return r < 0 ? r : my_step(s, query, err);
}

int64_t my_int(const struct my_query *query, int column)
{
	return query->cell[column].null ? 0 : query->cell[column].number;
}

struct ob_str my_str(const struct my_query *query, int column)
{
	if (query->cell[column].null)
		return OB_STR_NULL;
	return (struct ob_str){ query->cell[column].bytes, query->cell[column].size };
}

/* ---- memory ---------------------------------------------------------- */

void *my_rows_add(struct my_rows *rows)
{
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? rows->capacity * 2 : 32;
		char *more = ob_arena_alloc(rows->arena, capacity * rows->size);

		if (!more)
			return NULL;
		if (rows->count)
			memcpy(more, rows->data, rows->count * rows->size);
		rows->data = more;
		rows->capacity = capacity;
	}
	return rows->data + rows->count++ * rows->size;
}

int my_oom(const char *doing, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", doing);
}

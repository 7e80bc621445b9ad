/* SPDX-License-Identifier: MIT */
/* Packets of SQL and their answers. */
#include "store/mysql/sql.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <mysqld_error.h>

enum {
	SQL_MAX = 256 << 20,
	TEMPLATES = 256,
	DEADLOCK_TRIES = 10,
	TIMEOUT_TRIES = 2,
};

/* ---- templates ------------------------------------------------------- */

/* Templates are constants, so their address tells them apart. */
struct my_templates {
	struct {
		const char *tmpl;
		char *text;
	} entries[TEMPLATES];
};

void my_templates_free(struct my_templates *templates)
{
	for (size_t i = 0; templates && i < TEMPLATES; i++)
		free(templates->entries[i].text);
	free(templates);
}

static size_t slot_of(const struct my_templates *templates, const char *tmpl)
{
	size_t i = ((uintptr_t)tmpl >> 5) % TEMPLATES;

	while (templates->entries[i].tmpl && templates->entries[i].tmpl != tmpl)
		i = (i + 1) % TEMPLATES;
	return i;
}

/* With the layout's names in it; NULL: out of memory. */
static const char *template_text(struct my_store *s, const char *tmpl, struct ob_err *err)
{
	if (!s->templates)
		s->templates = calloc(1, sizeof(*s->templates));
	if (!s->templates)
		return NULL;
	size_t i = slot_of(s->templates, tmpl);
	if (!s->templates->entries[i].tmpl) {
		OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(SQL_MAX);

		if (ob_sql_expand(s->base.layout, tmpl, '`', 0, &text, err) < 0)
			return NULL;
		s->templates->entries[i].text = ob_buf_take(&text);
		if (s->templates->entries[i].text)
			s->templates->entries[i].tmpl = tmpl;
	}
	return s->templates->entries[i].text;
}

/* ---- literals -------------------------------------------------------- */

static void add_hex(struct ob_buf *out, struct ob_str bytes)
{
	static const char digits[] = "0123456789ABCDEF";

	ob_buf_adds(out, "X'");
	for (size_t i = 0; i < bytes.n; i++) {
		ob_buf_addc(out, digits[(unsigned char)bytes.p[i] >> 4]);
		ob_buf_addc(out, digits[(unsigned char)bytes.p[i] & 15]);
	}
	ob_buf_addc(out, '\'');
}

/*
 * Our session's character set is utf8mb4 and its sql_mode has backslashes, so this is all there is
 * to escape. What is no UTF-8 equals no text of the database: it is compared as bytes.
 */
static void add_text(struct ob_buf *out, struct ob_str text)
{
	size_t from = 0;

	if (!ob_utf8_valid(text)) {
		add_hex(out, text);
		return;
	}
	ob_buf_addc(out, '\'');
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c != '\'' && c != '\\' && c != '\0')
			continue;
		ob_buf_add(out, (struct ob_str){ text.p + from, i - from });
		if (c == '\0')
			c = '0';
		ob_buf_addc(out, '\\');
		ob_buf_addc(out, c);
		from = i + 1;
	}
	ob_buf_add(out, (struct ob_str){ text.p + from, text.n - from });
	ob_buf_addc(out, '\'');
}

static void add_list(struct ob_buf *out, const struct ob_sql_table *list)
{
	char type = list->types[0];

	for (size_t i = 0; i < list->count; i++) {
		ob_buf_adds(out, i ? "," : "");
		if (type == 'i')
			ob_buf_addf(out, "%" PRId64, list->cells[i].number);
		else if (type == 't')
			add_text(out, list->cells[i].text);
		else
			add_hex(out, list->cells[i].text);
	}
	/* Nothing equals NULL. */
	if (list->count == 0)
		ob_buf_adds(out, "NULL");
	out->failed |= list->failed;
}

static void add_json(struct ob_buf *out, const struct ob_sql_table *table)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf json = OB_BUF_INIT(SQL_MAX);

	ob_sql_table_json(table, false, &json);
	add_text(out, ob_buf_view(&json));
	out->failed |= json.failed;
}

static void add_value(struct ob_buf *out, const struct ob_sql_arg *arg)
{
	if (arg->kind == OB_SQL_KIND_INT)
		ob_buf_addf(out, "%" PRId64, arg->number);
	else if (arg->kind == OB_SQL_KIND_LIST)
		add_list(out, arg->table);
	else if (arg->kind == OB_SQL_KIND_TABLE)
		add_json(out, arg->table);
	else if (!arg->text.p)
		ob_buf_adds(out, "NULL");
	else if (arg->kind == OB_SQL_KIND_TEXT)
		add_text(out, arg->text);
	else if (arg->kind == OB_SQL_KIND_BYTES)
		add_hex(out, arg->text);
	else
		ob_buf_add(out, arg->text);
}

int my_sql_expand(struct my_store *s, struct ob_buf *out, const char *tmpl,
		  const struct ob_sql_arg *args, struct ob_err *err)
{
	(void)ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "out of memory");
	const char *text = template_text(s, tmpl, err);

	if (!text)
		return err->status;
	for (const char *colon; (colon = strchr(text, ':'));) {
		size_t n = ob_sql_name_length(colon);

		ob_buf_add(out, (struct ob_str){ text, (size_t)(colon - text) + (n == 0) });
		text = colon + 1 + n;
		if (n == 0)
			continue;
		const struct ob_sql_arg *arg = ob_sql_find(args, colon + 1, n);
		if (!arg)
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
					  "no value for '%.*s' in an SQL template", (int)n,
					  colon + 1);
		add_value(out, arg);
	}
	ob_buf_adds(out, text);
	if (out->failed)
		return my_oom("building SQL", err);
	*err = OB_ERR_INIT;
	return 0;
}

/* ---- packets --------------------------------------------------------- */

void my_packet_init(struct my_packet *p, struct my_store *s, const char *doing)
{
	*p = (struct my_packet){ .s = s, .doing = doing, .text = OB_BUF_INIT(SQL_MAX) };
}

static void drop_answers(struct my_packet *p)
{
	for (size_t i = 0; i < p->answer_count; i++) {
		if (p->answers[i].rows)
			mysql_free_result(p->answers[i].rows);
	}
	p->answer_count = 0;
	p->rows = NULL;
}

void my_packet_clear(struct my_packet *p)
{
	drop_answers(p);
	ob_buf_clear(&p->text);
	p->statements = 0;
	p->err = OB_ERR_INIT;
}

void my_packet_done(struct my_packet *p)
{
	drop_answers(p);
	free(p->answers);
	ob_buf_done(&p->text);
}

size_t my_packet_add(struct my_packet *p, const char *tmpl, const struct ob_sql_arg *args)
{
	struct ob_err err;

	if (p->statements > 0)
		ob_buf_addc(&p->text, ';');
	if (p->err.status == 0 && my_sql_expand(p->s, &p->text, tmpl, args, &err) < 0)
		p->err = err;
	return p->statements++;
}

static int keep_answer(struct my_packet *p, struct ob_err *err)
{
	MYSQL *db = p->s->db;

	if (p->answer_count == p->answer_room) {
		size_t room = p->answer_room ? p->answer_room * 2 : 16;
		struct my_answer *more = reallocarray(p->answers, room, sizeof(*more));

		if (!more)
			return my_oom(p->doing, err);
		p->answers = more;
		p->answer_room = room;
	}
	MYSQL_RES *rows = mysql_store_result(db);
	if (!rows && mysql_field_count(db) > 0)
		return my_err(p->s, mysql_errno(db), mysql_error(db), p->doing, err);
	p->answers[p->answer_count++] =
		(struct my_answer){ rows, rows ? 0 : (uint64_t)mysql_affected_rows(db) };
	return 0;
}

/* What is left of the answers of a packet that is given up. */
static void drain(struct my_store *s)
{
	while (mysql_more_results(s->db) && mysql_next_result(s->db) == 0) {
		MYSQL_RES *rows = mysql_use_result(s->db);

		if (rows)
			mysql_free_result(rows);
	}
}

static int send_packet(struct my_packet *p, struct ob_err *err)
{
	MYSQL *db = p->s->db;
	int more = 0;

	drop_answers(p);
	if (mysql_real_query(db, ob_buf_str(&p->text), p->text.len) != 0)
		return my_err(p->s, mysql_errno(db), mysql_error(db), p->doing, err);
	while (more == 0) {
		int r = keep_answer(p, err);

		if (r < 0) {
			drain(p->s);
			return r;
		}
		more = mysql_next_result(db);
	}
	return more > 0 ? my_err(p->s, mysql_errno(db), mysql_error(db), p->doing, err) : 0;
}

static bool try_again(const struct my_store *s, int tries)
{
	return !s->broken && ((s->code == ER_LOCK_DEADLOCK && tries < DEADLOCK_TRIES) ||
			      (s->code == ER_LOCK_WAIT_TIMEOUT && tries < TIMEOUT_TRIES));
}

static int run_ready(struct my_packet *p, struct ob_err *err)
{
	struct my_store *s = p->s;
	int tries = 0, r;

	do {
		s->code = 0;
		r = send_packet(p, err);
		if (r < 0 && !s->in_work)
			my_rollback(s);
	} while (r < 0 && !s->in_work && try_again(s, ++tries));
	return r;
}

int my_packet_run(struct my_packet *p, struct ob_err *err)
{
	struct my_store *s = p->s;

	if (p->err.status) {
		*err = p->err;
		return err->status;
	}
	if (s->in_tx && !s->joined)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	int r = s->in_work ? 0 : my_ready(s, s->patient, err);
	if (r < 0)
		return r;
	if (p->writes && !s->in_work && OB_FAULT("store.before_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	r = run_ready(p, err);
	if (r == 0 && p->writes && !s->in_work && OB_FAULT("store.after_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

int my_query(struct my_packet *p, struct my_store *s, const char *doing, const char *tmpl,
	     const struct ob_sql_arg *args, struct ob_err *err)
{
	my_packet_init(p, s, doing);
	(void)my_packet_add(p, tmpl, args);
	int r = my_packet_run(p, err);
	my_use(p, 0);
	return r;
}

int my_change(struct my_store *s, const char *doing, const char *tmpl,
	      const struct ob_sql_arg *args, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, doing);
	p.writes = true;
	(void)my_packet_add(&p, tmpl, args);
	int r = my_packet_run(&p, err);
	return r < 0 ? r : (int)my_changed(&p, 0);
}

int my_number(struct my_store *s, const char *doing, const char *tmpl,
	      const struct ob_sql_arg *args, int64_t *ret_number, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = my_query(&p, s, doing, tmpl, args, err);

	if (r < 0)
		return r;
	r = my_step(&p);
	*ret_number = r ? my_int(&p, 0) : 0;
	return r;
}

/* ---- answers --------------------------------------------------------- */

void my_use(struct my_packet *p, size_t statement)
{
	p->rows = statement < p->answer_count ? p->answers[statement].rows : NULL;
	if (p->rows)
		mysql_data_seek(p->rows, 0);
}

int my_step(struct my_packet *p)
{
	p->row = p->rows ? mysql_fetch_row(p->rows) : NULL;
	if (!p->row)
		return 0;
	p->sizes = mysql_fetch_lengths(p->rows);
	return 1;
}

uint64_t my_changed(const struct my_packet *p, size_t statement)
{
	return statement < p->answer_count ? p->answers[statement].changed : 0;
}

struct ob_str my_str(const struct my_packet *p, unsigned column)
{
	return p->row[column] ? (struct ob_str){ p->row[column], p->sizes[column] } : OB_STR_NULL;
}

int64_t my_int(const struct my_packet *p, unsigned column)
{
	const char *text = p->row[column];
	uint64_t value = 0;

	if (!text)
		return 0;
	bool negative = *text == '-';
	for (text += negative; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return negative ? -(int64_t)value : (int64_t)value;
}

static int64_t digits(const char *text, int count)
{
	int64_t value = 0;

	for (int i = 0; i < count; i++)
		value = value * 10 + (text[i] - '0');
	return value;
}

/* Days since 1970 of a date of the Gregorian calendar; years are counted from March on. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	year -= month <= 2;
	int64_t era = year / 400, of_era = year - era * 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t my_time(const struct my_packet *p, unsigned column)
{
	enum { WHOLE = sizeof("0000-00-00 00:00:00") - 1, EXACT = WHOLE + 7 };
	const char *t = p->row[column];

	if (!t || p->sizes[column] < WHOLE)
		return 0;
	int64_t seconds = days_of(digits(t, 4), digits(t + 5, 2), digits(t + 8, 2)) * 86400 +
			  digits(t + 11, 2) * 3600 + digits(t + 14, 2) * 60 + digits(t + 17, 2);
	return seconds * 1000000 + (p->sizes[column] >= EXACT ? digits(t + WHOLE + 1, 6) : 0);
}

/* ---- small things ---------------------------------------------------- */

void my_add_number(struct ob_buf *list, int64_t number)
{
	ob_buf_addf(list, "%s%" PRId64, list->len ? "," : "", number);
}

const char *my_list(const struct ob_buf *list)
{
	return list->len ? ob_buf_str(list) : "NULL";
}

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

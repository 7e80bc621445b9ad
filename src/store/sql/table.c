/* SPDX-License-Identifier: MIT */
/* Values of statements: tables, names, durations. */
#include "store/sql/sql.h"

#include "base/json.h"

#include <inttypes.h>

static void add_cell(struct ob_sql_table *table, struct ob_sql_cell cell)
{
	if (table->count == table->room && !table->failed) {
		size_t room = table->room ? table->room * 2 : 64;
		struct ob_sql_cell *more = reallocarray(table->cells, room, sizeof(*more));

		table->failed = !more;
		table->cells = more ? more : table->cells;
		table->room = more ? room : table->room;
	}
	if (!table->failed)
		table->cells[table->count++] = cell;
}

void ob_sql_table_int(struct ob_sql_table *table, int64_t number)
{
	add_cell(table, (struct ob_sql_cell){ .number = number });
}

void ob_sql_table_str(struct ob_sql_table *table, struct ob_str text)
{
	add_cell(table, (struct ob_sql_cell){ .text = text });
}

size_t ob_sql_table_rows(const struct ob_sql_table *table)
{
	return table->count / strlen(table->types);
}

void ob_sql_table_done(struct ob_sql_table *table)
{
	free(table->cells);
	*table = OB_SQL_TABLE(table->types);
}

static void add_json(struct ob_buf *out, char type, const struct ob_sql_cell *cell)
{
	if (type == 'i') {
		ob_buf_addf(out, "%" PRId64, cell->number);
	} else if (type == 't' || !cell->text.p) {
		ob_json_add_string(out, cell->text);
	} else {
		ob_buf_addc(out, '"');
		for (size_t i = 0; i < cell->text.n; i++)
			ob_buf_addf(out, "%02x", (unsigned char)cell->text.p[i]);
		ob_buf_addc(out, '"');
	}
}

void ob_sql_table_json(const struct ob_sql_table *table, bool flat, struct ob_buf *out)
{
	size_t columns = strlen(table->types), rows = ob_sql_table_rows(table);

	ob_buf_addc(out, '[');
	for (size_t row = 0; row < rows; row++) {
		ob_buf_adds(out, row ? "," : "");
		ob_buf_adds(out, flat ? "" : "[");
		for (size_t c = 0; c < columns; c++) {
			ob_buf_adds(out, c ? "," : "");
			add_json(out, table->types[c], &table->cells[row * columns + c]);
		}
		ob_buf_adds(out, flat ? "" : "]");
	}
	ob_buf_addc(out, ']');
	out->failed |= table->failed;
}

const struct ob_sql_arg *ob_sql_find(const struct ob_sql_arg *args, const char *name, size_t size)
{
	for (; args->name; args++) {
		if (strlen(args->name) == size && memcmp(args->name, name, size) == 0)
			return args;
	}
	return NULL;
}

bool ob_sql_has_raw(const struct ob_sql_arg *args)
{
	while (args->name && args->kind != OB_SQL_KIND_RAW)
		args++;
	return args->name != NULL;
}

int64_t ob_sql_us(int64_t ms)
{
	const int64_t most = INT64_C(3155760000000) * 1000; /* a hundred years */

	return ms > most / 1000 ? most : ms * 1000;
}

size_t ob_sql_name_length(const char *colon)
{
	size_t n = 0;

	while ((colon[n + 1] >= 'a' && colon[n + 1] <= 'z') || colon[n + 1] == '_')
		n++;
	return n;
}

/* SPDX-License-Identifier: MIT */
/* Checking and keeping the names of tables and columns. */
#include "base/layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const table_names[] = {
#define X(name) #name,
	OB_TABLE_MAP(X)
#undef X
};

static const struct {
	const char *name;
	bool optional;
} columns[] = {
#define X(name, optional) { #name, optional },
	OB_COLUMN_MAP(X)
#undef X
};

bool ob_ident_valid(const char *name, size_t size)
{
	if (size == 0 || size > OB_IDENT_MAX)
		return false;
	for (size_t i = 0; i < size; i++) {
		char c = name[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		bool later = (c >= '0' && c <= '9') || c == '$';

		if (!letter && !(later && i > 0))
			return false;
	}
	return true;
}

static int bad_name(const char *what, const char *name, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "%s '%.80s' is not a name: use letters, digits, '_' and '$', not a digit "
			  "first, at most %d characters",
			  what, name, OB_IDENT_MAX);
}

void ob_layout_default(struct ob_layout *layout)
{
	*layout = (struct ob_layout){ 0 };
	for (int t = 0; t < OB_TABLE_COUNT; t++)
		(void)snprintf(layout->table[t], OB_IDENT_SIZE, "%s%s",
			       t == OB_TABLE_outbox ? "" : "outbox_", table_names[t]);
	for (int c = 0; c < OB_COL_COUNT; c++)
		(void)snprintf(layout->column[c], OB_IDENT_SIZE, "%s", columns[c].name);
}

int ob_layout_set_table(struct ob_layout *layout, const char *name, struct ob_err *err)
{
	const char *dot = strchr(name, '.');
	const char *base = dot ? dot + 1 : name;
	/* The longest suffix of a companion table or an index; a cut name might meet another. */
	const int longest = OB_IDENT_MAX - (int)sizeof("_uniq_aggregate_sequence") + 1;

	if (dot && !ob_ident_valid(name, (size_t)(dot - name)))
		return bad_name("schema", name, err);
	if (!ob_ident_valid(base, strlen(base)))
		return bad_name("table", name, err);
	if (strlen(base) > (size_t)longest)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "table '%s' is too long: use at most %d characters, so that the "
				  "names made from it fit",
				  base, longest);

	(void)snprintf(layout->schema, OB_IDENT_SIZE, "%.*s", dot ? (int)(dot - name) : 0, name);
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		int n = snprintf(layout->table[t], OB_IDENT_SIZE, "%s%s%s", base,
				 t == OB_TABLE_outbox ? "" : "_",
				 t == OB_TABLE_outbox ? "" : table_names[t]);
		assert(n > 0 && n < OB_IDENT_SIZE); /* the length was checked above */
		(void)n;
	}
	return 0;
}

int ob_column_find(const char *name, size_t size)
{
	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (strlen(columns[c].name) == size && memcmp(columns[c].name, name, size) == 0)
			return c;
	}
	return -1;
}

int ob_layout_set_column(struct ob_layout *layout, const char *column, const char *name,
			 struct ob_err *err)
{
	int c = ob_column_find(column, strlen(column));

	if (c < 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no column '%.80s'", column);
	if (!name && !columns[c].optional)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "column '%s' cannot be switched off", column);
	if (name && !ob_ident_valid(name, strlen(name)))
		return bad_name("column", name, err);
	(void)snprintf(layout->column[c], OB_IDENT_SIZE, "%s", name ? name : "");
	return 0;
}

int ob_layout_check(const struct ob_layout *layout, struct ob_err *err)
{
	for (int a = 0; a < OB_COL_COUNT; a++) {
		for (int b = a + 1; b < OB_COL_COUNT; b++) {
			/* Databases compare column names without regard to case. */
			if (layout->column[a][0] &&
			    strcasecmp(layout->column[a], layout->column[b]) == 0)
				return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
						  "columns '%s' and '%s' have the same name '%s'",
						  columns[a].name, columns[b].name,
						  layout->column[a]);
		}
	}
	return 0;
}

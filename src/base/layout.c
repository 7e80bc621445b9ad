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

static const struct {
	enum ob_column column;
	const char *name;
} sources[] = {
#define X(column, name) { OB_COL_##column, name },
	OB_SOURCE_MAP(X)
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

/* "name" or "schema.name": where the table's part starts in *ret_base. */
static int split_name(const char *name, const char **ret_base, struct ob_err *err)
{
	const char *dot = strchr(name, '.');
	const char *base = dot ? dot + 1 : name;

	if (dot && !ob_ident_valid(name, (size_t)(dot - name)))
		return bad_name("schema", name, err);
	if (!ob_ident_valid(base, strlen(base)))
		return bad_name("table", name, err);
	*ret_base = base;
	return 0;
}

static void keep_schema(char schema[OB_IDENT_SIZE], const char *name, const char *base)
{
	(void)snprintf(schema, OB_IDENT_SIZE, "%.*s", base > name ? (int)(base - name - 1) : 0,
		       name);
}

int ob_layout_set_table(struct ob_layout *layout, const char *name, struct ob_err *err)
{
	const char *base = name;
	/* The longest suffix of a companion table or an index; a cut name might meet another. */
	const int longest = OB_IDENT_MAX - (int)sizeof("_uniq_aggregate_sequence") + 1;

	int r = split_name(name, &base, err);
	if (r < 0)
		return r;
	if (strlen(base) > (size_t)longest)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "table '%s' is too long: use at most %d characters, so that the "
				  "names made from it fit",
				  base, longest);

	keep_schema(layout->schema, name, base);
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

int ob_layout_set_source(struct ob_layout *layout, const char *name, struct ob_err *err)
{
	struct ob_source *source = &layout->source;
	const char *base = name;
	int r = split_name(name, &base, err);

	if (r < 0)
		return r;
	*source = (struct ob_source){ 0 };
	keep_schema(source->schema, name, base);
	(void)snprintf(source->table, OB_IDENT_SIZE, "%s", base);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		(void)snprintf(source->column[sources[i].column], OB_IDENT_SIZE, "%s",
			       sources[i].name);
	return 0;
}

int ob_layout_set_source_column(struct ob_layout *layout, const char *column, const char *name,
				struct ob_err *err)
{
	size_t i = 0, count = sizeof(sources) / sizeof(sources[0]);

	while (i < count && strcmp(columns[sources[i].column].name, column) != 0)
		i++;
	if (i == count)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "column '%.80s' is not one that is copied", column);
	if (!name && sources[i].name[0])
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "column '%s' must be copied: give its name", column);
	if (name && !ob_ident_valid(name, strlen(name)))
		return bad_name("column", name, err);
	(void)snprintf(layout->source.column[sources[i].column], OB_IDENT_SIZE, "%s",
		       name ? name : "");
	return 0;
}

static int check_source(const struct ob_layout *layout, struct ob_err *err)
{
	const struct ob_source *source = &layout->source;

	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		if (strcasecmp(source->table, layout->table[t]) == 0 &&
		    strcasecmp(source->schema, layout->schema) == 0)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "table '%s' is yours and one of ours: call ours "
					  "otherwise, for example 'table: %.30s_relay'",
					  source->table, source->table);
	}
	/* A trigger looks for names where it is, not where we are. */
	if (source->schema[0] && !layout->schema[0])
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "table '%s.%s' names its schema: name that of our table "
				  "too, for example 'table: %s.%s'",
				  source->schema, source->table, source->schema,
				  layout->table[OB_TABLE_outbox]);
	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (source->column[c][0] && !layout->column[c][0])
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "column '%s' cannot be copied: it is switched off",
					  columns[c].name);
	}
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
	return layout->source.table[0] ? check_source(layout, err) : 0;
}

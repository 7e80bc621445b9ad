/* SPDX-License-Identifier: MIT */
/* Checking the table before the first push. */
#include "lib/table.h"

#include "lib/fail.h"
#include "lib/insert.h"

#include <strings.h>

/* The option must say what the column holds; a wrong one would fail at the first push. */
static int check_type(const struct ob_layout *layout, const struct ob_table_types *types,
		      const char *column, const char *type, struct outbox_error *err)
{
	bool id = strcasecmp(column, layout->column[OB_COL_id]) == 0;
	bool payload = strcasecmp(column, layout->column[OB_COL_payload]) == 0;
	const char *flag = id ? "OUTBOX_STRING_ID" : "OUTBOX_BINARY_PAYLOAD";
	bool set = id ? layout->string_id : layout->binary_payload;
	const char *with = id ? types->text_id : types->binary_payload;
	const char *without = id ? types->binary_id : types->text_payload;

	if ((!id && !payload) || strcasecmp(type, set ? without : with) != 0)
		return 0;
	return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
		       "column '%s' of table '%s' is %s: open the outbox %s %s", column,
		       layout->table[OB_TABLE_outbox], type, set ? "without" : "with", flag);
}

int ob_table_column(const struct ob_layout *layout, const struct ob_table_types *types,
		    const char *name, const char *type, struct ob_table_seen *seen,
		    struct outbox_error *err)
{
	seen->any = true;
	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (strcasecmp(name, layout->column[c]) == 0)
			seen->columns |= 1u << c;
	}
	return check_type(layout, types, name, type, err);
}

int ob_table_complete(const struct ob_layout *layout, const struct ob_table_seen *seen,
		      struct outbox_error *err)
{
	const char *table = layout->table[OB_TABLE_outbox];

	if (!seen->any)
		return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
			       "there is no table '%s%s%s': run `outbox setup`", layout->schema,
			       layout->schema[0] ? "." : "", table);
	for (int i = 0; i < OB_INSERT_FIELDS; i++) {
		enum ob_column column = ob_insert_fields[i];

		if (layout->column[column][0] && !(seen->columns & (1u << column)))
			return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
				       "table '%s' has no column '%s': run `outbox setup`, or name "
				       "the columns in the options",
				       table, layout->column[column]);
	}
	return 0;
}

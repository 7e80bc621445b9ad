/* SPDX-License-Identifier: MIT */
/* Judging a table that is copied from. */
#include "store/source.h"

#include "base/buf.h"

static bool is_among(const char *type, const char *const *types)
{
	for (; *types; types++) {
		if (strcasecmp(type, *types) == 0)
			return true;
	}
	return false;
}

static const char *const *types_of(const struct ob_layout *layout, int column,
				   const struct ob_source_types *types)
{
	switch (column) {
	case OB_COL_id:
		return layout->string_id ? types->string : types->id;
	case OB_COL_payload:
		return layout->binary_payload ? types->bytes : types->json;
	case OB_COL_headers:
		return types->json;
	case OB_COL_occurred_at:
		return types->time;
	default:
		return NULL;
	}
}

static int wrong_type(const struct ob_layout *layout, int column, const char *type,
		      const char *const *types, struct ob_err *err)
{
	struct ob_buf names = OB_BUF_INIT(512);
	const char *option = column == OB_COL_id        ? ", or change id_type"
			     : column == OB_COL_payload ? ", or change payload_type"
							: "";

	for (size_t i = 0; types[i]; i++)
		ob_buf_addf(&names, "%s%s", i ? ", " : "", types[i]);
	int r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			   "column '%s' of table '%s' is %s and cannot be copied: it must be one "
			   "of %s%s",
			   layout->source.column[column], layout->source.table, type,
			   ob_buf_str(&names), option);
	ob_buf_done(&names);
	return r;
}

int ob_source_check(const struct ob_layout *layout, int column, const char *type,
		    const struct ob_source_types *types, struct ob_err *err)
{
	const char *const *allowed = types_of(layout, column, types);

	if (!type)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "table '%s' has no column '%s': correct layout.debezium.columns",
				  layout->source.table, layout->source.column[column]);
	return !allowed || is_among(type, allowed) ? 0
						   : wrong_type(layout, column, type, allowed, err);
}

int ob_source_no_table(const struct ob_layout *layout, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "there is no table '%s%s%s' to copy from: create it first, or correct "
			  "layout.debezium.table",
			  layout->source.schema, layout->source.schema[0] ? "." : "",
			  layout->source.table);
}

void ob_source_trigger(const struct ob_layout *layout, char out[OB_SOURCE_TRIGGER_SIZE])
{
	(void)snprintf(out, OB_SOURCE_TRIGGER_SIZE, "%s_copy", layout->table[OB_TABLE_outbox]);
}

int ob_source_no_trigger(const struct ob_layout *layout, struct ob_err *err)
{
	char name[OB_SOURCE_TRIGGER_SIZE];

	ob_source_trigger(layout, name);
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "table '%s' has no trigger '%s' as this layout needs it: its rows would "
			  "not be delivered; run `outbox setup`",
			  layout->source.table, name);
}

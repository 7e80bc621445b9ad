/* SPDX-License-Identifier: MIT */
/* Writing the multi-row INSERT. */
#include "lib/insert.h"

#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/fail.h"

enum { ROW_MAX = 1 << 16 };

const enum ob_column ob_insert_fields[OB_INSERT_FIELDS] = {
	OB_COL_id,           OB_COL_aggregate_type, OB_COL_aggregate_id,
	OB_COL_event_type,   OB_COL_payload,        OB_COL_target,
	OB_COL_priority,     OB_COL_revision,       OB_COL_sequence_number,
	OB_COL_headers,      OB_COL_snapshot,       OB_COL_correlation_id,
	OB_COL_causation_id, OB_COL_partition_key,  OB_COL_occurred_at,
	OB_COL_available_at,
};

unsigned ob_insert_shape(const struct ob_push_row *rows, size_t count)
{
	unsigned shape = 0;

	for (size_t i = 0; i < count; i++) {
		if (rows[i].message->occurred_at_us != 0)
			shape |= OB_INSERT_OCCURRED;
		if (rows[i].message->delay_ms != 0)
			shape |= OB_INSERT_DELAYED;
	}
	return shape;
}

bool ob_insert_uses(const struct ob_layout *layout, unsigned shape, enum ob_column field)
{
	if (field == OB_COL_occurred_at)
		return shape & OB_INSERT_OCCURRED;
	if (field == OB_COL_available_at)
		return shape & OB_INSERT_DELAYED;
	return layout->column[field][0] != '\0';
}

static int expand(const struct ob_insert_sql *sql, const char *tmpl, const struct ob_layout *layout,
		  struct ob_buf *out, struct outbox_error *err)
{
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(out, tmpl, layout, sql->quote, NULL, &inner) < 0)
		return ob_fail(err, inner.status, OUTBOX_NO_INDEX, "%s", inner.msg);
	return 0;
}

int ob_insert_build(const struct ob_insert_sql *sql, const struct ob_layout *layout, unsigned shape,
		    size_t rows, struct ob_buf *out, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf row = OB_BUF_INIT(ROW_MAX);
	struct ob_layout shaped = *layout;

	/* The columns that no message of the call sets are left to their defaults. */
	if (!(shape & OB_INSERT_OCCURRED))
		shaped.column[OB_COL_occurred_at][0] = '\0';
	if (!(shape & OB_INSERT_DELAYED))
		shaped.column[OB_COL_available_at][0] = '\0';
	int r = expand(sql, sql->head, &shaped, out, err);
	if (r == 0)
		r = expand(sql, sql->row, &shaped, &row, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rows; i++) {
		ob_buf_adds(out, i ? "," : "");
		ob_buf_add(out, ob_buf_view(&row));
	}
	return out->failed ? ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory") : 0;
}

/* SPDX-License-Identifier: MIT */
/* Reading the public options of a writer; every library of a database carries its own copy. */
#include "lib/options.h"

#include "lib/fail.h"

static int set_columns(struct ob_layout *layout, const struct outbox_options *options,
		       struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < options->column_count && r == 0; i++) {
		const struct outbox_column *column = &options->columns[i];

		if (!column->column)
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
					  "columns[%zu] has no column", i);
		r = ob_layout_set_column(layout, column->column, column->name, err);
	}
	return r;
}

static int set_layout(struct ob_layout *layout, const struct outbox_options *options,
		      struct ob_err *err)
{
	const unsigned known = OUTBOX_NO_PAYLOAD_CHECK | OUTBOX_NO_HEADERS_CHECK |
			       OUTBOX_BINARY_PAYLOAD | OUTBOX_STRING_ID;
	int r = 0;

	if (options->flags & ~known)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "flags 0x%x are unknown",
				  options->flags & ~known);
	if (options->column_count > 0 && !options->columns)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "columns is NULL");
	layout->string_id = options->flags & OUTBOX_STRING_ID;
	layout->binary_payload = options->flags & OUTBOX_BINARY_PAYLOAD;
	if (options->table)
		r = ob_layout_set_table(layout, options->table, err);
	if (r == 0)
		r = set_columns(layout, options, err);
	if (r == 0)
		r = ob_layout_check(layout, err);
	return r;
}

int ob_options_take(const void *options, size_t size, struct outbox_options *copy,
		    const struct outbox_options **ret, struct outbox_error *err)
{
	struct ob_err fault = OB_ERR_INIT;

	*ret = NULL;
	if (!options)
		return 0;
	if (ob_grow_check(&ob_grow_options, size, &fault) < 0)
		return ob_fail(err, fault.status, OUTBOX_NO_INDEX, "%s", fault.msg);
	ob_grow_copy(&ob_grow_options, options, size, copy);
	*ret = copy;
	return 0;
}

int ob_options_layout(const struct outbox_options *options, struct ob_layout *ret_layout,
		      struct outbox_error *err)
{
	struct ob_err inner = OB_ERR_INIT;

	ob_layout_default(ret_layout);
	if (options && set_layout(ret_layout, options, &inner) < 0)
		return ob_fail(err, inner.status, OUTBOX_NO_INDEX, "%s", inner.msg);
	return 0;
}

static uint32_t off_columns(const struct ob_layout *layout)
{
	uint32_t off = 0;

	for (int c = 0; c < OB_COL_COUNT; c++) {
		if (!layout->column[c][0])
			off |= 1u << c;
	}
	return off;
}

struct ob_check_rules ob_options_rules(const struct outbox_options *options,
				       const struct ob_layout *layout)
{
	return (struct ob_check_rules){
		.flags = options ? options->flags : 0,
		.off_columns = off_columns(layout),
	};
}

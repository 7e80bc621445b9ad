/* SPDX-License-Identifier: MIT */
/* Messages as arrays, one for each field: the parameters of a push into PostgreSQL. */
#include "lib/postgres_push.h"

#include "lib/duplicate.h"

enum {
	CHUNK_ROWS = 1000, /* more gains nothing */
	CHUNK_BYTES = 64 << 20,
};

/* The fields of a row, in the order of the parameters in push.sql. */
static const struct field {
	enum ob_column column;
	enum ob_pgtype type;
} fields[OB_POSTGRES_FIELDS] = {
	{ OB_COL_id, OB_PG_UUID },
	{ OB_COL_aggregate_type, OB_PG_TEXT },
	{ OB_COL_aggregate_id, OB_PG_TEXT },
	{ OB_COL_event_type, OB_PG_TEXT },
	{ OB_COL_payload, OB_PG_JSON },
	{ OB_COL_target, OB_PG_TEXT },
	{ OB_COL_priority, OB_PG_INT8 },
	{ OB_COL_available_at, OB_PG_INT8 },
	{ OB_COL_revision, OB_PG_INT8 },
	{ OB_COL_sequence_number, OB_PG_INT8 },
	{ OB_COL_headers, OB_PG_JSON },
	{ OB_COL_snapshot, OB_PG_JSON },
	{ OB_COL_correlation_id, OB_PG_TEXT },
	{ OB_COL_causation_id, OB_PG_TEXT },
	{ OB_COL_partition_key, OB_PG_TEXT },
	{ OB_COL_occurred_at, OB_PG_INT8 },
};

/* From here on a field may be left out: the table's default is what a row that does not set it
 * means. */
enum { FIRST_LEFT_OUT = 6 };

/* Those of push_find. */
static const struct field find_fields[OB_POSTGRES_FIND_FIELDS] = {
	{ OB_COL_id, OB_PG_UUID },
	{ OB_COL_target, OB_PG_TEXT },
	{ OB_COL_aggregate_type, OB_PG_TEXT },
	{ OB_COL_aggregate_id, OB_PG_TEXT },
	{ OB_COL_sequence_number, OB_PG_INT8 },
};

size_t ob_postgres_fit(const struct ob_push_row *rows, size_t count)
{
	size_t bytes = 0, n = 0;

	while (n < count && n < CHUNK_ROWS && bytes < CHUNK_BYTES) {
		bytes += rows[n].payload.n + rows[n].headers.n + rows[n].snapshot.n;
		n++;
	}
	return n;
}

static struct ob_str text_of(const struct ob_push_row *row, enum ob_column column)
{
	const struct outbox_message *m = row->message;

	switch ((int)column) {
	case OB_COL_aggregate_type:
		return ob_str(m->aggregate_type);
	case OB_COL_aggregate_id:
		return ob_str(m->aggregate_id);
	case OB_COL_event_type:
		return ob_str(m->event_type);
	case OB_COL_payload:
		return row->payload;
	case OB_COL_target:
		return ob_str(ob_push_target(row));
	case OB_COL_headers:
		return row->headers;
	case OB_COL_snapshot:
		return row->snapshot;
	case OB_COL_correlation_id:
		return ob_str(m->correlation_id);
	case OB_COL_causation_id:
		return ob_str(m->causation_id);
	case OB_COL_partition_key:
		return ob_str(m->partition_key);
	default:
		return OB_STR_NULL;
	}
}

static int64_t number_of(const struct ob_push_row *row, enum ob_column column)
{
	const struct outbox_message *m = row->message;

	switch ((int)column) {
	case OB_COL_priority:
		return m->priority;
	case OB_COL_available_at:
		return (int64_t)m->delay_ms;
	case OB_COL_revision:
		return m->revision ? m->revision : 1;
	case OB_COL_sequence_number:
		return m->sequence_number;
	case OB_COL_occurred_at:
		return m->occurred_at_us;
	default:
		return 0;
	}
}

static bool is_set(const struct ob_push_row *row, const struct field *field)
{
	if (field->type == OB_PG_INT8)
		return number_of(row, field->column) != (field->column == OB_COL_revision);
	return text_of(row, field->column).p != NULL;
}

uint32_t ob_postgres_columns(const struct ob_push_row *rows, size_t count)
{
	uint32_t columns = 0;

	for (int f = 0; f < OB_POSTGRES_FIELDS; f++) {
		bool set = f < FIRST_LEFT_OUT;

		for (size_t i = 0; i < count && !set; i++)
			set = is_set(&rows[i], &fields[f]);
		columns |= (uint32_t)set << fields[f].column;
	}
	return columns;
}

uint32_t ob_postgres_all_columns(void)
{
	uint32_t columns = 0;

	for (int f = 0; f < OB_POSTGRES_FIELDS; f++)
		columns |= UINT32_C(1) << fields[f].column;
	return columns;
}

static void add_number(struct ob_pgarray *array, const struct ob_push_row *row,
		       const struct field *field)
{
	bool may_lack =
		field->column == OB_COL_sequence_number || field->column == OB_COL_occurred_at;

	if (may_lack && !is_set(row, field))
		ob_pgarray_null(array);
	else
		ob_pgarray_int(array, number_of(row, field->column));
}

static void add_field(struct ob_pgarray *array, const struct field *field,
		      const struct ob_push_row *row)
{
	if (field->type == OB_PG_UUID)
		ob_pgarray_uuid(array, &row->id);
	else if (field->type == OB_PG_INT8)
		add_number(array, row, field);
	else
		ob_pgarray_str(array, text_of(row, field->column));
}

/* False when out of memory. */
static bool bind_field(struct ob_pgarray *array, const struct field *field, enum ob_pgtype type,
		       const struct ob_postgres_chunk *chunk)
{
	ob_pgarray_begin(array, type);
	for (size_t i = 0; i < chunk->count; i++)
		add_field(array, field, &chunk->rows[i]);
	return ob_pgarray_end(array);
}

bool ob_postgres_bind(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
		      uint32_t columns, struct ob_postgres_values *ret)
{
	bool find = columns == 0;
	const struct field *list = find ? find_fields : fields;
	int count = find ? OB_POSTGRES_FIND_FIELDS : OB_POSTGRES_FIELDS;

	*ret = (struct ob_postgres_values){ 0 };
	for (int f = 0; f < count; f++) {
		struct ob_pgarray *array = &driver->arrays[f];
		bool bytes = list[f].column == OB_COL_payload && driver->layout.binary_payload;
		enum ob_pgtype type = bytes ? OB_PG_BYTEA : list[f].type;

		ret->types[f] = ob_pgarray_type(type);
		ret->formats[f] = 1;
		if (!find && !(columns >> list[f].column & 1))
			continue;
		if (!bind_field(array, &list[f], type, chunk))
			return false;
		ret->values[f] = ob_buf_str(&array->data);
		ret->lengths[f] = (int)array->data.len;
	}
	return true;
}

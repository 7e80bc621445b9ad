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

static void add_number(struct ob_pgarray *array, const struct ob_push_row *row,
		       enum ob_column column)
{
	const struct outbox_message *m = row->message;

	if ((column == OB_COL_sequence_number && m->sequence_number == 0) ||
	    (column == OB_COL_occurred_at && m->occurred_at_us == 0)) {
		ob_pgarray_null(array);
		return;
	}
	ob_pgarray_int(array, column == OB_COL_sequence_number ? m->sequence_number
			      : column == OB_COL_occurred_at   ? m->occurred_at_us
			      : column == OB_COL_available_at  ? (int64_t)m->delay_ms
			      : column == OB_COL_revision      ? (m->revision ? m->revision : 1)
							       : m->priority);
}

static void add_field(struct ob_pgarray *array, const struct field *field,
		      const struct ob_push_row *row)
{
	if (field->type == OB_PG_UUID)
		ob_pgarray_uuid(array, &row->id);
	else if (field->type == OB_PG_INT8)
		add_number(array, row, field->column);
	else
		ob_pgarray_str(array, text_of(row, field->column));
}

bool ob_postgres_bind(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
		      bool find, struct ob_postgres_values *ret)
{
	const struct field *list = find ? find_fields : fields;
	int count = find ? OB_POSTGRES_FIND_FIELDS : OB_POSTGRES_FIELDS;

	for (int f = 0; f < count; f++) {
		struct ob_pgarray *array = &driver->arrays[f];
		bool bytes = list[f].column == OB_COL_payload && driver->layout.binary_payload;

		ob_pgarray_begin(array, bytes ? OB_PG_BYTEA : list[f].type);
		for (size_t i = 0; i < chunk->count; i++)
			add_field(array, &list[f], &chunk->rows[i]);
		if (!ob_pgarray_end(array))
			return false;
		ret->values[f] = ob_buf_str(&array->data);
		ret->lengths[f] = (int)array->data.len;
		ret->formats[f] = 1;
	}
	return true;
}

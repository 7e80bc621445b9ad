/* SPDX-License-Identifier: MIT */
/* A push as a statement that the application sends itself: for event loops and pipelines. */
#include "lib/fail.h"
#include "lib/postgres_push.h"

int ob_postgres_statement(void *self, const struct ob_push_row *rows, size_t count,
			  const struct outbox_postgres_statement **ret, struct outbox_error *err)
{
	struct ob_postgres_driver *driver = self;
	struct ob_postgres_chunk chunk = { .rows = rows, .count = count };
	struct ob_postgres_values *v = &driver->values;
	int r = ob_postgres_check_encoding(driver, err);

	if (r == 0 && ob_postgres_fit(rows, count) < count)
		r = ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			    "%zu messages do not fit into one statement, %zu of them do: ask for "
			    "several",
			    count, ob_postgres_fit(rows, count));
	if (r == 0)
		r = ob_postgres_name_columns(driver, ob_postgres_columns(rows, count), err);
	if (r == 0 && !ob_postgres_bind(driver, &chunk, false, v))
		r = ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (r < 0)
		return r;
	driver->statement = (struct outbox_postgres_statement){
		.sql = driver->insert,
		.param_count = OB_POSTGRES_FIELDS,
		.types = v->types,
		.values = v->values,
		.lengths = v->lengths,
		.formats = v->formats,
	};
	*ret = &driver->statement;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A push that the application sends itself: the checks of a push, without the sending. */
#include "base/cleanup.h"
#include "lib/fail.h"
#include "lib/handle.h"
#include "outbox/postgres.h"

#include <stdlib.h>

static int check_call(const outbox *ob, const void *messages, size_t count,
		      struct outbox_error *err)
{
	if (!ob || !messages)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "%s is NULL",
			       ob ? "messages" : "the outbox");
	if (!ob->ops->statement)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "this outbox is not on PostgreSQL");
	if (count < 1 || count > OUTBOX_POSTGRES_STATEMENT_MAX)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "a statement stores 1 to %u messages, not %zu",
			       OUTBOX_POSTGRES_STATEMENT_MAX, count);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): as outbox_push(), and what it returns */
int outbox_postgres_statement_sized(outbox *ob, const void *messages, size_t count,
				    size_t message_size, struct outbox_id *ret_ids,
				    const struct outbox_postgres_statement **ret_statement,
				    struct outbox_error *err)
{
	OB_AUTOFREE struct outbox_message *copies = NULL;
	const struct outbox_message *ours = NULL;
	struct outbox_error unused;

	if (!err)
		err = &unused;
	int r = check_call(ob, messages, count, err);
	if (r == 0)
		r = ob_push_messages(messages, count, message_size, &ours, &copies, err);
	if (r < 0)
		return r;
	OB_AUTOFREE struct ob_push_row *rows = calloc(count, sizeof(*rows));
	if (!rows)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	r = ob_push_prepare(ob, ours, count, rows, err);
	if (r == 0)
		r = ob->ops->statement(ob->driver, rows, count, ret_statement, err);
	r = ob_push_outcome(ob, r, rows, count, err);
	for (size_t i = 0; r == 0 && ret_ids && i < count; i++)
		ob_uuid_format(&rows[i].id, ret_ids[i].text);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* The SQLite store: exceptions change as src/log/exception.c has decided. */
#include "store/sqlite/exception.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/sqlite/stmt.h"

static struct ob_sql_arg due_arg(const struct lite_store *s, const struct ob_change *change)
{
	if (change->due == OB_DUE_AFTER)
		return OB_ARG_INT("due", s->now + ob_sql_us(change->delay_ms));
	if (change->due == OB_DUE_AVAILABLE)
		return OB_ARG_INT("due", change->available_at_us);
	return OB_ARG_STR("due", OB_STR_NULL);
}

int lite_exception_change(struct lite_store *s, const char *reader, const struct ob_change *change,
			  bool verb, struct ob_err *err)
{
	static const int ids[] = {
		[OB_CHANGE_ADD] = LITE_exception_add,
		[OB_CHANGE_SET] = LITE_exception_set,
		[OB_CHANGE_REMOVE] = LITE_exception_remove,
	};
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX);

	if (change->error.p)
		ob_utf8_sanitize(&text, change->error, OB_LAST_ERROR_MAX);
	int r = lite_run(
		s, ids[change->kind],
		OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("partition", change->partition),
			OB_ARG_INT("seq", change->seq), OB_ARG_INT("state", change->state),
			OB_ARG_INT("attempts", change->attempts),
			OB_ARG_INT("was_attempts", change->was_attempts),
			OB_ARG_INT("operator", verb), due_arg(s, change),
			OB_ARG_STR("queue", change->queue),
			OB_ARG_STR("error", change->error.p ? ob_buf_view(&text) : OB_STR_NULL)),
		err);
	(void)sqlite3_clear_bindings(s->stmt[ids[change->kind]]); /* `text` ends here */
	return r < 0 ? r : 0;
}

int lite_exception_promote(struct lite_store *s, const char *reader,
			   const struct ob_promote *promote, struct ob_err *err)
{
	int r = lite_run(s, LITE_promote,
			 OB_ARGS(OB_ARG_TEXT("reader", reader),
				 OB_ARG_INT("partition", promote->partition),
				 OB_ARG_STR("queue", promote->queue)),
			 err);

	return r < 0 ? r : 0;
}

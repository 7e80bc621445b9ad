/* SPDX-License-Identifier: MIT */
/* The MySQL store: changes of exceptions. All of a kind are one statement, as a JSON list. */
#include "store/mysql/change.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { JSON_MAX = 256 << 20 };

static void add_error(struct ob_buf *out, struct ob_str error)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT((size_t)4 * OB_LAST_ERROR_MAX);

	if (error.p)
		ob_utf8_sanitize(&text, error, OB_LAST_ERROR_MAX);
	ob_json_add_string(out, error.p ? ob_buf_view(&text) : OB_STR_NULL);
}

/* In the order of the template change_list. */
static void add_change(struct ob_buf *out, const struct ob_change *c)
{
	ob_buf_addf(out, "%c[%u,%" PRId64 ",%d,%u,%u,", out->len ? ',' : '[', c->partition, c->seq,
		    (int)c->state, c->attempts, c->was_attempts);
	if (c->due == OB_DUE_AFTER)
		ob_buf_addf(out, "%" PRId64 ",null,", my_us(c->delay_ms));
	else if (c->due == OB_DUE_AVAILABLE)
		ob_buf_addf(out, "null,%" PRId64 ",", c->available_at_us);
	else
		ob_buf_adds(out, "null,null,");
	ob_json_add_string(out, c->queue);
	ob_buf_addc(out, ',');
	add_error(out, c->error);
	ob_buf_addc(out, ']');
}

static void add_kind(struct my_packet *p, const struct my_changes *changes,
		     enum ob_change_kind kind, const char *tmpl)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf list = OB_BUF_INIT(JSON_MAX);

	for (size_t i = 0; i < changes->change_count; i++) {
		if (changes->changes[i].kind == kind)
			add_change(&list, &changes->changes[i]);
	}
	if (list.len == 0)
		return;
	ob_buf_addc(&list, ']');
	(void)MY_ADD(p, tmpl, OB_ARG_TEXT("reader", changes->reader),
		     OB_ARG_STR("changes", ob_buf_view(&list)),
		     OB_ARG_INT("any", changes->any_state));
	if (list.failed)
		(void)my_oom("changing exceptions", &p->err);
}

static void add_promotes(struct my_packet *p, const struct my_changes *changes)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf list = OB_BUF_INIT(JSON_MAX);

	for (size_t i = 0; i < changes->promote_count; i++) {
		ob_buf_addf(&list, "%c[%u,", i ? ',' : '[', changes->promotes[i].partition);
		ob_json_add_string(&list, changes->promotes[i].queue);
		ob_buf_addc(&list, ']');
	}
	ob_buf_addc(&list, ']');
	(void)MY_ADD(p, sql_mysql_promote, OB_ARG_TEXT("reader", changes->reader),
		     OB_ARG_STR("queues", ob_buf_view(&list)));
	if (list.failed)
		(void)my_oom("changing exceptions", &p->err);
}

void my_changes_add(struct my_packet *p, const struct my_changes *changes)
{
	add_kind(p, changes, OB_CHANGE_REMOVE, sql_mysql_change_remove);
	add_kind(p, changes, OB_CHANGE_SET, sql_mysql_change_set);
	add_kind(p, changes, OB_CHANGE_ADD, sql_mysql_change_add);
	if (changes->promote_count)
		add_promotes(p, changes);
}

/* SPDX-License-Identifier: MIT */
/* The MySQL store: exceptions that may be tried now. */
#include "base/cleanup.h"
#include "store/mysql/message.h"
#include "store/mysql/read.h"
#include "store/share.h"

#include "sql_mysql.h"

enum { HEADS_PIECE = 64 };

/* Columns after those of a message. */
enum { COL_ATTEMPTS = OB_SQL_MESSAGE_COLUMNS, COL_STATE, COL_QUEUE, COL_MAY_GO };

size_t my_due_ask(struct my_packet *p, const struct my_due *due)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf exclude = OB_BUF_INIT(64 << 20);

	/* NOT IN a list with NULL is never true: 0 is no number of a row. */
	my_add_number(&exclude, 0);
	for (size_t i = 0; i < due->read->exclude_count; i++)
		my_add_number(&exclude, due->read->exclude[i]);
	return MY_ADD(p, sql_mysql_due_heads, OB_ARG_TEXT("reader", due->read->reader),
		      OB_ARG_RAW("numbers", due->partitions),
		      OB_ARG_RAW("exclude", ob_buf_str(&exclude)),
		      OB_ARG_INT("limit", due->read->exception_limit));
}

/* A head with what follows it; 1: there is no room for more. */
static int read_queue(struct my_packet *p, size_t statement, struct my_due *due, struct ob_err *err)
{
	struct ob_message m;

	for (my_use(p, statement); my_step(p);) {
		int r = my_read_message(p, &m, err);

		if (r < 0)
			return r;
		/* What follows a row that may not go, or that is on its way, waits for it. */
		if (!my_int(p, COL_MAY_GO) || ob_read_excludes(due->read, m.seq))
			return 0;
		if (due->batch->count == due->read->exception_limit ||
		    !my_read_fits(due->read, due->batch, &m))
			return 1;
		m.attempts = (uint32_t)my_int(p, COL_ATTEMPTS);
		m.state = (uint8_t)my_int(p, COL_STATE);
		m.excepted = true;
		m.queue = my_str(p, COL_QUEUE);
		r = my_add_message(due->batch, &m, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void ask_queue(struct my_packet *p, const struct my_packet *found, const struct my_due *due)
{
	struct ob_str queue = my_str(found, 2);

	if (queue.p)
		(void)MY_ADD(
			p, sql_mysql_due_queue, OB_ARG_TEXT("reader", due->read->reader),
			OB_ARG_INT("partition", my_int(found, 0)),
			OB_ARG_INT("seq", my_int(found, 1)), OB_ARG_STR("queue", queue),
			OB_ARG_INT("limit", due->read->exception_limit - due->batch->count + 1));
	else
		(void)MY_ADD(p, sql_mysql_due_row, OB_ARG_TEXT("reader", due->read->reader),
			     OB_ARG_INT("partition", my_int(found, 0)),
			     OB_ARG_INT("seq", my_int(found, 1)));
}

int my_due_read(struct my_packet *found, size_t statement, struct my_due *due, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	uint32_t heads = 0;
	int r = 0;
	bool more = true;

	my_packet_init(&p, found->s, "reading exceptions");
	my_use(found, statement);
	while (r == 0 && more) {
		my_packet_clear(&p);
		while (p.statements < HEADS_PIECE && (more = my_step(found)) != 0) {
			ask_queue(&p, found, due);
			heads++;
		}
		if (p.statements == 0)
			break;
		r = my_packet_run(&p, err);
		for (size_t i = 0; i < p.statements && r == 0; i++)
			r = read_queue(&p, i, due, err);
	}
	due->more = r > 0 || heads == due->read->exception_limit;
	return r < 0 ? r : 0;
}

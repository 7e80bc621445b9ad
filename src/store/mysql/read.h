/* SPDX-License-Identifier: MIT */
/* Reading the log and the exceptions that are due. */
#ifndef OB_STORE_MYSQL_READ_H
#define OB_STORE_MYSQL_READ_H

#include "store/mysql/sql.h"

ob_store_read_fn my_read;

/* Does one more message of that size go into the batch? */
bool my_read_fits(const struct ob_read *read, const struct ob_batch *batch,
		  const struct ob_message *message);

/* The exceptions that are due, in the order of the contract: due.c. */
struct my_due {
	struct ob_read *read;
	struct ob_batch *batch;
	const char *partitions; /* their numbers, as SQL */
	bool more;              /* there may be more */
};

/* Append the statement that finds them; its number. */
size_t my_due_ask(struct my_packet *p, const struct my_due *due);
/* Read what it found into the batch. */
int my_due_read(struct my_packet *found, size_t statement, struct my_due *due, struct ob_err *err);

#endif

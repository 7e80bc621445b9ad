/* SPDX-License-Identifier: MIT */
/* The header for PostgreSQL as strict C99 and as C++, and a program that uses only its libraries.
 */
#include <outbox/postgres.h>

#include <stddef.h>

int main(void)
{
	struct outbox_error error;
	outbox *ob = NULL;

	return outbox_postgres_open(NULL, NULL, &ob, &error) == OUTBOX_EINVAL && !ob ? 0 : 1;
}

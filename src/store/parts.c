/* SPDX-License-Identifier: MIT */
/* Which partitions a log should have. */
#include "store/parts.h"
#include "base/layout.h"
#include "outbox/outbox.h"

enum {
	AHEAD = 2,    /* that are not begun are enough, */
	APART = 10000 /* numbers that may be drawn while partitions are made */
};

struct ob_part ob_parts_ahead(int64_t rows, int64_t last, int64_t top, bool apart)
{
	const struct ob_part none = { 0 };

	/* Numbers end before this can overflow. */
	if (rows < 1 || rows > INT64_MAX / 16 || last < 0 || top < 0 ||
	    last > INT64_MAX / 2 - rows || top > INT64_MAX / 2 - rows)
		return none;
	int64_t next = (last / rows + 1) * rows; /* where the one after that of `last` begins */
	if (top >= next + AHEAD * rows)
		return none;
	int64_t low = top;
	if (apart && top <= last) {
		int64_t clear = last + (rows > APART ? rows : APART);

		low = (clear / rows + 1) * rows;
		next = low + rows;
	}
	return (struct ob_part){ .low = low, .high = next + (AHEAD + 1) * rows };
}

bool ob_part_name_valid(struct ob_str name)
{
	/* Some databases allow a character more than our own names have. */
	size_t last = name.n == OB_IDENT_MAX + 1 ? OB_IDENT_MAX : name.n;

	return ob_ident_valid(name.p, last) &&
	       (last == name.n || ob_ident_valid((char[]){ '_', name.p[last] }, 2));
}

bool ob_part_bound(struct ob_str text, int64_t *ret_bound)
{
	bool minus = text.n > 0 && text.p[0] == '-',
	     sign = minus || (text.n > 0 && text.p[0] == '+');
	uint64_t value = 0;

	if (ob_str_eq(text, OB_STR("MAXVALUE"))) {
		*ret_bound = INT64_MAX;
		return true;
	}
	if (text.n <= (size_t)sign || text.n > 20)
		return false;
	for (size_t i = sign; i < text.n; i++) {
		unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (value > (uint64_t)INT64_MAX + minus)
		return false;
	*ret_bound = minus ? (int64_t)-value : (int64_t)value;
	return true;
}

int ob_parts_foreign(const char *table, const char *why, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "table '%s' %s, which `outbox setup --partitioned` does not make: choose "
			  "another table name in the layout",
			  table, why);
}

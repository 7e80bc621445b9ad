/* SPDX-License-Identifier: MIT */
#include "cli/operate/place.h"

#include "base/when.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool parse_number(const char *text, int64_t *ret)
{
	char *end;

	if (text[strspn(text, "0123456789")] || !*text)
		return false;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	*ret = n;
	return errno == 0;
}

bool ob_place_parse(const char *text, struct ob_place *ret_place)
{
	struct ob_place place = { .start = OB_START_BEGINNING };

	if (strcmp(text, "end") == 0)
		place.start = OB_START_END;
	else if (parse_number(text, &place.at))
		place.start = OB_START_SEQ;
	else if (ob_when_parse(ob_str(text), &place.at))
		place.start = OB_START_TIME;
	else if (strcmp(text, "beginning") != 0)
		return false;
	*ret_place = place;
	return true;
}

void ob_place_text(const struct ob_place *place, struct ob_buf *out)
{
	char iso[OB_WHEN_SIZE];

	switch (place->start) {
	case OB_START_BEGINNING:
		ob_buf_adds(out, "the beginning");
		return;
	case OB_START_END:
		ob_buf_adds(out, "the end");
		return;
	case OB_START_TIME:
		ob_when_iso(place->at, iso);
		ob_buf_adds(out, iso);
		return;
	case OB_START_SEQ:
		ob_buf_addf(out, "number %" PRId64, place->at);
		return;
	}
}

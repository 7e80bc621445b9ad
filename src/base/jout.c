/* SPDX-License-Identifier: MIT */
/* Appends to one buffer, so that a failure leaves nothing half written. */
#include "base/jout.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/when.h"

#include <inttypes.h>

static void begin_value(struct ob_jout *j, const char *key)
{
	if (j->comma)
		ob_buf_addc(&j->b, ',');
	j->comma = true;
	if (key) {
		ob_json_add_string(&j->b, ob_str(key));
		ob_buf_addc(&j->b, ':');
	}
}

void ob_jout_begin(struct ob_jout *j, const char *key, char bracket)
{
	begin_value(j, key);
	ob_buf_addc(&j->b, bracket);
	j->comma = false;
}

void ob_jout_end(struct ob_jout *j, char bracket)
{
	ob_buf_addc(&j->b, bracket);
	j->comma = true;
}

void ob_jout_text(struct ob_jout *j, const char *key, struct ob_str text)
{
	begin_value(j, key);
	ob_json_add_string(&j->b, text);
}

void ob_jout_int(struct ob_jout *j, const char *key, int64_t value)
{
	begin_value(j, key);
	ob_buf_addf(&j->b, "%" PRId64, value);
}

void ob_jout_bool(struct ob_jout *j, const char *key, bool value)
{
	begin_value(j, key);
	ob_buf_adds(&j->b, value ? "true" : "false");
}

void ob_jout_when(struct ob_jout *j, const char *key, int64_t us)
{
	char text[OB_WHEN_SIZE];

	ob_when_iso(us, text);
	ob_jout_text(j, key, us ? ob_str(text) : OB_STR_NULL);
}

void ob_jout_raw(struct ob_jout *j, const char *key, struct ob_str json)
{
	begin_value(j, key);
	/* In valid JSON a line break stands only between values. */
	while (json.n) {
		size_t n = 0;

		while (n < json.n && json.p[n] != '\n' && json.p[n] != '\r')
			n++;
		ob_buf_add(&j->b, (struct ob_str){ json.p, n });
		if (n < json.n) {
			ob_buf_addc(&j->b, ' ');
			n++;
		}
		json.p += n;
		json.n -= n;
	}
}

void ob_jout_base64(struct ob_jout *j, const char *key, struct ob_str bytes)
{
	begin_value(j, key);
	ob_buf_addc(&j->b, '"');
	ob_base64_encode(&j->b, bytes);
	ob_buf_addc(&j->b, '"');
}

void ob_jout_done(struct ob_jout *j)
{
	ob_buf_done(&j->b);
}

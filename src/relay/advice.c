/* SPDX-License-Identifier: MIT */
/* Lines of advice to the log. */
#include "relay/advice.h"

enum { ADVICE_MAX = 1000 };

void ob_advice_log(const struct ob_log *log, const char *relay, const char *what,
		   const struct ob_buf *lines)
{
	struct ob_str text = ob_buf_view(lines);

	while (log && text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		size_t n = end ? (size_t)(end - text.p) : text.n;
		char line[ADVICE_MAX];

		(void)snprintf(line, sizeof(line), "%.*s", (int)(n < ADVICE_MAX ? n : ADVICE_MAX),
			       text.p);
		ob_log(log, OB_LOG_WARN, what, OB_KV("relay", relay), OB_KV("advice", line));
		n += end != NULL;
		text = (struct ob_str){ text.p + n, text.n - n };
	}
}

/* SPDX-License-Identifier: MIT */
/* Makes the text safe first, then breaks it by characters, not bytes. */
#include "cli/out/para.h"

#include "base/utf8.h"

enum { TEXT_CHARS = 16000, TEXT_BYTES = TEXT_CHARS * 4 };

static void wrap(FILE *out, const char *text, size_t width)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");
		size_t chars = ob_utf8_count((struct ob_str){ text, n });

		if (column && column + 1 + chars > width) {
			(void)fputc('\n', out);
			column = 0;
		} else if (column) {
			(void)fputc(' ', out);
			column++;
		}
		(void)fwrite(text, 1, n, out);
		column += chars;
		text += n + strspn(text + n, " ");
	}
	(void)fputc('\n', out);
}

void ob_para_print(FILE *out, struct ob_str text, size_t width)
{
	struct ob_buf safe = OB_BUF_INIT(TEXT_BYTES);

	ob_utf8_sanitize(&safe, text, TEXT_CHARS);
	if (width)
		wrap(out, ob_buf_str(&safe), width);
	else
		(void)fprintf(out, "%s\n", ob_buf_str(&safe));
	ob_buf_done(&safe);
}

/* SPDX-License-Identifier: MIT */
/* Prints a value whole, so that a failure prints nothing half. */
#include "cli/out/jprint.h"

#include "cli/cli.h"

#include <stdio.h>

int ob_jout_print(struct ob_jout *j)
{
	struct ob_str text = ob_buf_view(&j->b);

	if (j->b.failed)
		return ob_cli_fail("out of memory while writing JSON");
	/* A failing write stays in the stream's state, where main() looks. */
	(void)fwrite(text.p, 1, text.n, stdout);
	(void)fputc('\n', stdout);
	ob_buf_clear(&j->b);
	j->comma = false;
	return OB_EXIT_OK;
}

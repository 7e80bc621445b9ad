/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/configuration.md from the option tables, or with --sample the
 * sample file:  build/docs/gen-reference >docs/configuration.md
 */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct ob_buf out = OB_BUF_INIT(1 << 20);

	if (argc > 1 && strcmp(argv[1], "--sample") == 0)
		ob_config_sample(&out);
	else
		ob_config_reference(&out);
	bool ok = !out.failed && fwrite(out.data, 1, out.len, stdout) == out.len &&
		  fflush(stdout) == 0;
	ob_buf_done(&out);
	if (!ok)
		(void)fprintf(stderr, "gen-reference: cannot write: %m\n");
	return ok ? 0 : 1;
}

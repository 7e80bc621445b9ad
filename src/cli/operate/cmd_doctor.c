/* SPDX-License-Identifier: MIT */
/* outbox doctor: what is wrong, or will be, and what to do about it. */
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "operate/doctor.h"

#include <stdio.h>

enum { LINE_BYTES = 8192, LINE_CHARS = 2000 };

struct doctor_args {
	bool quiet;
};

static void print_finding(const struct ob_finding *finding)
{
	struct ob_buf subject = OB_BUF_INIT(LINE_BYTES), text = OB_BUF_INIT(LINE_BYTES);

	ob_utf8_sanitize(&subject, finding->subject, LINE_CHARS);
	ob_utf8_sanitize(&text, finding->text, LINE_CHARS);
	printf("%-7s  %s: %s\n", ob_level_name(finding->level), ob_buf_str(&subject),
	       ob_buf_str(&text));
	if (finding->level != OB_LEVEL_OK)
		printf("         -> %s (%s)\n", finding->check->advice, finding->check->code);
	ob_buf_done(&subject);
	ob_buf_done(&text);
}

static void print_text(const struct ob_findings *findings, bool quiet)
{
	for (size_t i = 0; i < findings->count; i++) {
		if (!quiet || findings->list[i].level != OB_LEVEL_OK)
			print_finding(&findings->list[i]);
	}
	size_t errors = ob_findings_count(findings, OB_LEVEL_ERROR);
	size_t warnings = ob_findings_count(findings, OB_LEVEL_WARNING);

	printf("%zu error%s, %zu warning%s, %zu ok\n", errors, errors == 1 ? "" : "s", warnings,
	       warnings == 1 ? "" : "s", ob_findings_count(findings, OB_LEVEL_OK));
}

static int print_json(const struct ob_findings *findings)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "at", ob_clock_real_us(&ob_clock_system));
	ob_findings_json(&j, findings);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* Without --store, every store of the configuration. */
static int load(struct ob_session *session, const struct ob_cli *cli)
{
	*session = (struct ob_session){ 0 };
	return cli->store ? ob_session_load(session, cli)
			  : ob_cli_load_config(cli, &session->config);
}

static int doctor_run(struct ob_cli *cli, const void *opts)
{
	const struct doctor_args *args = opts;
	struct ob_findings findings;
	struct ob_session session;
	int r = load(&session, cli);

	ob_findings_init(&findings);
	if (!r) {
		const struct ob_doctor doctor = { .config = session.config,
						  .store = session.entry };

		ob_doctor_run(&doctor, &findings);
		if (findings.failed)
			r = ob_cli_fail("out of memory");
		else if (cli->json)
			r = print_json(&findings);
		else
			print_text(&findings, args->quiet);
	}
	if (!r && ob_findings_worst(&findings) == OB_LEVEL_ERROR)
		r = OB_EXIT_FAILURE;
	ob_findings_done(&findings);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "quiet",
		.letter = 'q',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct doctor_args, quiet),
		.help = "Do not print what is in order.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox doctor",
	"outbox doctor --quiet",
	"outbox doctor --store main --json",
	NULL,
};

const struct ob_cmd ob_cmd_doctor = {
	.name = "doctor",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "find what is wrong, or will be, and what to do",
	.description =
		"Connects to every store and sink of the configuration and checks them: whether "
		"the start-up checks of a relay pass, what of the server's settings weakens a "
		"promise, old transactions, bloat, clocks, readers that nobody runs, targets that "
		"nobody reads, dead messages, the rights of the configuration file, what the "
		"destinations keep, and whether those that a route names as a constant are "
		"there. Nothing is changed and no message is sent; sinks are opened as a relay "
		"opens them, so the program of an exec sink is started.\n\n"
		"Each finding is ok, a warning (it works, and yet weakens a promise or will bite "
		"later) or an error (it does not work), with what to do about it. The exit code "
		"is 1 when there is an error, else 0. docs/operate.md lists all checks.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct doctor_args),
	.run = doctor_run,
};

/* SPDX-License-Identifier: MIT */
/* Who runs this program, and taking down what it changed. */
#include "cli/operate/decide.h"

#include "base/log.h"
#include "cli/cli.h"

#include <pwd.h>
#include <stdio.h>
#include <syslog.h>

enum { HOST_BYTES = 128, USER_BYTES = 80, PASSWD_BYTES = 16384 };

static void name_user(char out[USER_BYTES])
{
	char buffer[PASSWD_BYTES];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found)
		(void)snprintf(out, USER_BYTES, "%s", entry.pw_name);
	else
		(void)snprintf(out, USER_BYTES, "uid %u", (unsigned)geteuid());
}

/* Under sudo the person is the one who typed it. */
static void name_person(char *out, size_t size)
{
	const char *sudo = getenv("SUDO_USER");
	char user[USER_BYTES], host[HOST_BYTES] = "";

	name_user(user);
	(void)gethostname(host, sizeof(host) - 1);
	if (geteuid() == 0 && sudo && *sudo)
		(void)snprintf(out, size, "%.60s (as %s)@%s", sudo, user, host);
	else
		(void)snprintf(out, size, "%s@%s", user, host);
}

void ob_cli_decide(struct ob_cli_decision *decision, const char *verb, const char *reader,
		   const char *filter, const char *reason)
{
	name_person(decision->who, sizeof(decision->who));
	ob_decision_init(&decision->d, &(struct ob_decision_conf){ .who = decision->who,
								   .origin = "cli",
								   .verb = verb,
								   .reader = reader,
								   .filter = filter,
								   .reason = reason });
}

static void write_syslog(void *arg, enum ob_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	syslog(LOG_NOTICE, "%s", line);
}

void ob_cli_decided_with(const struct ob_cli_decision *decision, uint64_t count)
{
	const struct ob_audit_row *row = &decision->d.row;
	const struct ob_log log = { .level = OB_LOG_INFO,
				    .format = OB_LOG_LOGFMT,
				    .clock = &ob_clock_system,
				    .hook = write_syslog };

	openlog("outbox", LOG_PID, LOG_USER);
	ob_log(&log, OB_LOG_INFO, "decided", OB_KS("verb", row->verb), OB_KS("who", row->who),
	       OB_KS("reader", row->reader), OB_KS("filter", row->filter),
	       OB_KI("count", (int64_t)count), OB_KS("plan", row->plan),
	       OB_KS("reason", row->reason));
	closelog();
}

void ob_cli_decided(const struct ob_cli_decision *decision, struct ob_store *store, uint64_t count)
{
	struct ob_audit_row row = decision->d.row;
	struct ob_err err = OB_ERR_INIT;

	row.count = count;
	if (ob_store_audit(store, &row, &err) < 0)
		ob_cli_warn("it is done, but the audit has no entry of it: %s", err.msg);
	ob_cli_decided_with(decision, count);
}

/* SPDX-License-Identifier: MIT */
/* Rules on errors. */
#include "relay/failures.h"

#include "base/glob.h"

static bool rule_matches(const char *pattern, const char *text)
{
	return !pattern || ob_glob_match(ob_str(pattern), ob_str(text));
}

enum ob_err_kind ob_failures_kind(const struct ob_config_failure *rules, size_t count,
				  const struct ob_err *err)
{
	if (err->kind == OB_ERR_FATAL || err->kind == OB_ERR_LOST)
		return err->kind;
	for (size_t i = 0; i < count; i++) {
		if (rule_matches(rules[i].code, err->native) &&
		    rule_matches(rules[i].error, err->msg))
			return rules[i].then;
	}
	return err->kind;
}

enum ob_err_kind ob_failures_classify(void *arg, const struct ob_message *message,
				      const struct ob_err *err)
{
	const struct ob_config_relay *relay = *(const struct ob_config_relay *const *)arg;

	(void)message;
	return ob_failures_kind(relay->failures, relay->failure_count, err);
}

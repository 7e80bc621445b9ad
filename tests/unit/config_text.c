/* SPDX-License-Identifier: MIT */
/* Configurations from texts. */
#include "config_text.h"

#include <check.h>

struct ob_config *config_load(struct ob_str text)
{
	struct ob_buf faults = OB_BUF_INIT(CONFIG_FAULTS_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_config_parse(text, "c.yaml", &faults, &config, &err) == 0, "%s%s",
		      ob_buf_str(&faults), err.msg);
	ck_assert_uint_eq(faults.len, 0);
	ob_buf_done(&faults);
	return config;
}

struct ob_config *config_good(const char *text)
{
	return config_load(ob_str(text));
}

char *config_faults(struct ob_str text, struct ob_err *err)
{
	struct ob_buf faults = OB_BUF_INIT(CONFIG_FAULTS_MAX);
	struct ob_config *config = NULL;

	ck_assert_int_eq(ob_config_parse(text, "c.yaml", &faults, &config, err), OUTBOX_ECONFIG);
	ck_assert_ptr_null(config);
	ck_assert(!faults.failed);
	return ob_buf_take(&faults);
}

void config_bad(const char *text, const char *expected)
{
	struct ob_err err = OB_ERR_INIT;
	OB_AUTOFREE char *found = config_faults(ob_str(text), &err);

	ck_assert_str_eq(found, expected);
}

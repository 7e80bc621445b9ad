/* SPDX-License-Identifier: MIT */
/* Errors: one clean line, whatever a peer or a user put into it. */
#include "base/err.h"
#include "base/utf8.h"
#include "suite.h"

#include <errno.h>

OB_TEST(a_failure_is_one_statement)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "opening %s", "x"),
			 OUTBOX_ESTORE);
	ck_assert_int_eq(err.status, OUTBOX_ESTORE);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(err.msg, "opening x");
	ck_assert_str_eq(err.native, "");
	ck_assert_int_eq(ob_err_context(&err, "store %d", 1), OUTBOX_ESTORE);
	ck_assert_str_eq(err.msg, "store 1: opening x");
}
OB_TEST_END

OB_TEST(errno_is_named_and_explained)
{
	struct ob_err err = OB_ERR_INIT;

	errno = ENOENT;
	ck_assert_int_eq(ob_err_errno(&err, OUTBOX_ECONFIG, OB_ERR_FATAL, "reading %s", "a.yaml"),
			 OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "reading a.yaml: No such file or directory");
	ck_assert_str_eq(err.native, "ENOENT");
}
OB_TEST_END

OB_TEST(a_message_is_one_line_of_valid_text)
{
	struct ob_err err = OB_ERR_INIT;

	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s",
			 "FATAL: no\n\tsuch role\x1B[31m\n");
	ck_assert_str_eq(err.msg, "FATAL: no  such role [31m");
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "caf\xC3\xA9 \xFF.");
	ck_assert_str_eq(err.msg, "caf\xC3\xA9 ?.");
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN,
			 "a\xC2\x9B"
			 "b\xE2\x80\xA8"
			 "c");
	ck_assert_str_eq(err.msg, "a b c");
	(void)ob_err_context(&err, "in %s", "x\ny");
	ck_assert_str_eq(err.msg, "in x y: a b c");
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s", "");
	ck_assert_str_eq(err.msg, "");
}
OB_TEST_END

OB_TEST(a_long_message_is_cut_between_characters)
{
	struct ob_err err = OB_ERR_INIT;
	char text[1200];

	for (int shift = 0; shift < 3; shift++) {
		memset(text, 'x', sizeof(text));
		for (int i = shift; i + 3 < 1199; i += 3)
			memcpy(text + i, "\xE2\x82\xAC", 3);
		text[1199] = '\0';
		(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s", text);
		ck_assert(ob_utf8_valid(ob_str(err.msg)));
		ck_assert_uint_gt(strlen(err.msg), sizeof(err.msg) - 5);
		(void)ob_err_context(&err, "context");
		ck_assert(ob_utf8_valid(ob_str(err.msg)));
		ck_assert_int_eq(strncmp(err.msg, "context: ", 9), 0);
		ck_assert_str_eq(err.msg + strlen(err.msg) - 3, "...");
	}
}
OB_TEST_END

OB_TEST(every_kind_has_a_name)
{
	static const char *const names[] = { "none", "down", "retry", "reject", "lost", "fatal" };

	for (int kind = OB_ERR_NONE; kind <= OB_ERR_FATAL; kind++)
		ck_assert_str_eq(ob_err_kind_name((enum ob_err_kind)kind), names[kind]);
}
OB_TEST_END

OB_SUITE("err", a_failure_is_one_statement, errno_is_named_and_explained,
	 a_message_is_one_line_of_valid_text, a_long_message_is_cut_between_characters,
	 every_kind_has_a_name)

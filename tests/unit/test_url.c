/* SPDX-License-Identifier: MIT */
/* Users, passwords and ports of URLs. */
#include "base/url.h"
#include "suite.h"

#include <string.h>

static int check(const char *url)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_url_check(url, &err);

	/* Nothing of it is ever said. */
	ck_assert_ptr_null(strstr(err.msg, "w:rd"));
	ck_assert_ptr_null(strstr(err.msg, "secret"));
	ck_assert_ptr_null(strstr(err.msg, "db1"));
	return r;
}

OB_TEST(a_url_that_everybody_reads_alike_passes)
{
	static const char *const urls[] = {
		"sqlite:outbox.db",
		"sqlite:/a@b/outbox.db",
		"postgresql:///shop?host=/run/postgresql",
		"postgresql://localhost/shop",
		"postgresql://u:secret@a:5432,b:5433/shop",
		"mysql://u:p%40ss%2Fw@[::1]:3306/shop",
		"mysql://u@/shop?socket=/run/mysqld.sock",
		"mysql://u:secret@db1:/shop",
	};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		ck_assert_msg(check(urls[i]) == 0, "%s", urls[i]);
}
OB_TEST_END

OB_TEST(a_password_that_looks_like_the_rest_is_refused)
{
	static const char *const urls[] = {
		"mysql://sp:p@ss/w:rd#1@db1/shop", "mysql://sp:p/w:rd@db1/shop",
		"mysql://sp:p?w:rd@db1/shop",      "mysql://sp:p#w:rd@db1/shop",
		"postgresql://sp:p@w:rd@db1/shop", "postgresql://sp:secret@db1/shop?options=a@b",
	};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		ck_assert_msg(check(urls[i]) < 0, "%s", urls[i]);
}
OB_TEST_END

OB_TEST(a_port_is_a_number_from_1_to_65535)
{
	ck_assert_int_eq(check("mysql://db1:65535/shop"), 0);
	ck_assert_int_lt(check("mysql://db1:65536/shop"), 0);
	ck_assert_int_lt(check("mysql://db1:0/shop"), 0);
	ck_assert_int_lt(check("mysql://db1:33o6/shop"), 0);
	ck_assert_int_lt(check("postgresql://u:secret@a:5432,b:99999/shop"), 0);
	ck_assert_int_lt(check("mysql://[::1]:99999/shop"), 0);
}
OB_TEST_END

OB_TEST(the_password_of_a_url_is_found)
{
	size_t at;

	ck_assert_uint_eq(ob_url_password("mysql://u:secret@h/d", &at), 6);
	ck_assert_uint_eq(at, 10);
	ck_assert_uint_eq(ob_url_password("redis://:secret@h", &at), 6);
	ck_assert_uint_eq(ob_url_password("mysql://u@h:3306/d", &at), 0);
	ck_assert_uint_eq(ob_url_password("sqlite:a:b@c", &at), 0);
	/* As much as may be of it. */
	ck_assert_uint_eq(ob_url_password("mysql://u:a@b/c@h/d", &at), 5);
}
OB_TEST_END

OB_SUITE("url", a_url_that_everybody_reads_alike_passes,
	 a_password_that_looks_like_the_rest_is_refused, a_port_is_a_number_from_1_to_65535,
	 the_password_of_a_url_is_found)

/* SPDX-License-Identifier: MIT */
/* The one thing that every store's URL has in common: a user and a password before its host. */
#ifndef OB_BASE_URL_H
#define OB_BASE_URL_H

#include "base/err.h"

/*
 * Can everybody who reads it find the same user, password and host? A password with an '@', '/',
 * '?' or '#' in it cannot be told from a host, a path or options, and a part of it would end up in
 * messages as one of these. And are its ports ports? The message holds nothing of the URL. Without
 * "//" it is no question.
 */
int ob_url_check(const char *url, struct ob_err *err);

/* Where the password stands: its length, 0 if there is none; *ret_at: its first character. */
size_t ob_url_password(const char *url, size_t *ret_at);

#endif

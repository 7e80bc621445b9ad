/* SPDX-License-Identifier: MIT */
/* Filling the public struct outbox_error. */
#ifndef OB_LIB_FAIL_H
#define OB_LIB_FAIL_H

#include "outbox/outbox.h"

/*
 * Fill *err and return `status`. The text becomes one line of valid UTF-8,
 * cut between characters: values of the caller may stand in it as they are.
 */
int ob_fail(struct outbox_error *err, int status, size_t index, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), nonnull(1)));

/* Put "message 3: " before the text of an error that is about one message. */
void ob_fail_prefix(struct outbox_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* The handle behind `outbox`, and the steps that pushing and appending share. */
#ifndef OB_LIB_HANDLE_H
#define OB_LIB_HANDLE_H

#include "lib/check.h"

struct outbox {
	const struct ob_driver_ops *ops;
	void *driver; /* owned */
	struct ob_check_rules rules;
};

/*
 * The caller's messages as ours. Where the program was built with this version of the header, these
 * are his; else copies, and *ret_memory (to be freed) is where they are.
 */
int ob_push_messages(const void *messages, size_t count, size_t message_size,
		     const struct outbox_message **ret, struct outbox_message **ret_memory,
		     struct outbox_error *err);
/* What can be wrong with the call itself; `most`: messages that one may have. */
int ob_push_check_call(const outbox *ob, const void *messages, size_t count, size_t most,
		       struct outbox_error *err);
/* Check every message and give ids, before anything is written. */
int ob_push_prepare(const outbox *ob, const struct outbox_message *messages, size_t count,
		    struct ob_push_row *rows, struct outbox_error *err);
/* What a driver returned, made ready for the caller. */
int ob_push_outcome(const outbox *ob, int r, const struct ob_push_row *rows, size_t count,
		    struct outbox_error *err);

#endif

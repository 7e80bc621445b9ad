/* SPDX-License-Identifier: MIT */
/*
 * What the library of a database (liboutbox-sqlite, ...) gives to the core.
 * Both come from one source tree, but they are loaded as two files that may be
 * of different versions: OB_DRIVER_ABI changes with everything in here.
 */
#ifndef OB_LIB_DRIVER_H
#define OB_LIB_DRIVER_H

#include "base/uuid.h"
#include "outbox/outbox.h"

enum { OB_DRIVER_ABI = 1 };

/* A message that passed the checks. Sizes are known, the id is set. */
struct ob_push_row {
	const struct outbox_message *message; /* the caller's */
	struct ob_uuid id;
	struct ob_str payload, headers, snapshot; /* borrowed from the message; absent: NULL */
};

/*
 * insert() returns this when a CHECK of the table refused a row and the driver
 * cannot know which; *err is filled as for OUTBOX_ESTORE. The core then looks
 * whether a check that was switched off names the fault.
 */
enum { OB_DRIVER_CHECK = 1 };

struct ob_driver_ops {
	unsigned abi; /* OB_DRIVER_ABI */
	/* Is a transaction open on the connection? Without a round trip. */
	bool (*in_transaction)(void *driver);
	/*
	 * Store rows (at least one), in order, all or nothing; see outbox_push().
	 * Fills *err (never NULL) when it fails: 0, a negative status, or OB_DRIVER_CHECK.
	 */
	int (*insert)(void *driver, const struct ob_push_row *rows, size_t count,
		      struct outbox_error *err);
	/* Free the driver; the connection is left as it is. */
	void (*close)(void *driver);
};

/* What the checks must know of the table. */
struct ob_check_rules {
	unsigned flags;       /* OUTBOX_NO_PAYLOAD_CHECK ... */
	uint32_t off_columns; /* bits 1 << enum ob_column: switched off */
};

/*
 * Make the handle. On success it owns `driver`; when it fails, the caller
 * still does. Exported for the libraries of databases, no part of the API.
 */
OUTBOX_API int outbox_driver_attach(const struct ob_driver_ops *ops, void *driver,
				    const struct ob_check_rules *rules, outbox **ret_ob,
				    struct outbox_error *err);

#endif

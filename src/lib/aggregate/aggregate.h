/* SPDX-License-Identifier: MIT */
/* What the files of aggregates share. */
#ifndef OB_LIB_AGGREGATE_AGGREGATE_H
#define OB_LIB_AGGREGATE_AGGREGATE_H

#include "lib/driver.h"
#include "lib/serialize/text.h"
#include "outbox/aggregate.h"

struct outbox_aggregate {
	const struct outbox_aggregate_type *type;
	struct outbox_stream stream; /* its id is ours */
	char *id;
	void *state;
	int64_t version;          /* of the last event that is stored */
	int64_t snapshot_version; /* that it was loaded from; 0: none */
	outbox_upcast *upcast;
	struct outbox_text memory; /* of the state, and of what was recorded */
	struct outbox_message *recorded;
	size_t count, room;
	bool stored;
	bool past; /* not the newest state: nothing is recorded */
};

/* Apply one event as it was stored, upcast. */
int ob_aggregate_apply(outbox_aggregate *a, const struct outbox_event *event,
		       struct outbox_error *err);
/* The snapshot up to a version, if one can be read: state and version are set. */
int ob_aggregate_find_snapshot(outbox *ob, outbox_aggregate *a, int64_t to_version,
			       struct outbox_error *err);
/* Should one be kept now that these versions were stored? */
bool ob_aggregate_is_due(const outbox_aggregate *a, int64_t before, int64_t after);

#endif

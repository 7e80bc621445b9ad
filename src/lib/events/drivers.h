/* SPDX-License-Identifier: MIT */
/* The event operations of each database, for its table of operations; contracts in lib/driver.h. */
#ifndef OB_LIB_EVENTS_DRIVERS_H
#define OB_LIB_EVENTS_DRIVERS_H

#include "lib/driver.h"

#define OB_EVENT_OPS(db) \
	int ob_##db##_append(void *driver, const struct ob_append *call, \
			     struct ob_append_done *ret_done, struct outbox_error *err); \
	int ob_##db##_look_stream(void *driver, const struct ob_stream_key *stream, \
				  struct ob_stream_state *ret_state, struct outbox_error *err); \
	int ob_##db##_keep_stream(void *driver, const struct ob_stream_key *stream, \
				  const struct ob_stream_state *state, struct outbox_error *err); \
	int ob_##db##_pin_log(void *driver, int64_t *ret_end, char **ret_now, \
			      struct outbox_error *err); \
	int ob_##db##_read_events(void *driver, const struct ob_event_query *query, \
				  struct ob_event_page *page, struct outbox_error *err); \
	int ob_##db##_ask(void *driver, enum ob_ask ask, const struct ob_ask_value *values, \
			  size_t count, struct ob_answer *ret, struct outbox_error *err); \
	/* The insert of a push. */ \
	int ob_##db##_insert(void *driver, const struct ob_push_row *rows, size_t count, \
			     struct outbox_error *err);
OB_EVENT_OPS(sqlite)
OB_EVENT_OPS(postgres)
OB_EVENT_OPS(mysql)
#undef OB_EVENT_OPS

#endif

/* SPDX-License-Identifier: MIT */
/* The fields of a message. */
#include "sink/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

void ob_fields_put(struct ob_fields *f, struct ob_str name, struct ob_str value)
{
	if (!value.p)
		return;
	assert(f->count < OB_FIELDS_MAX);
	f->name[f->count] = name;
	f->value[f->count++] = value;
}

void ob_fields_init(struct ob_fields *f, const struct ob_message *m)
{
	f->count = 0;
	ob_uuid_format(&m->id, f->id);
	ob_fields_put(f, OB_STR("id"), ob_str(f->id));
	ob_fields_put(f, OB_STR("event_type"), m->event_type);
	ob_fields_put(f, OB_STR("aggregate_type"), m->aggregate_type);
	ob_fields_put(f, OB_STR("aggregate_id"), m->aggregate_id);
	if (m->revision != 0) {
		(void)snprintf(f->revision, sizeof(f->revision), "%" PRId32, m->revision);
		ob_fields_put(f, OB_STR("revision"), ob_str(f->revision));
	}
	if (m->sequence_number != 0) {
		(void)snprintf(f->sequence, sizeof(f->sequence), "%" PRId64, m->sequence_number);
		ob_fields_put(f, OB_STR("sequence_number"), ob_str(f->sequence));
	}
	ob_fields_put(f, OB_STR("correlation_id"), m->correlation_id);
	ob_fields_put(f, OB_STR("causation_id"), m->causation_id);
	if (ob_line_time(m->occurred_at_us, f->time))
		ob_fields_put(f, OB_STR("occurred_at"), ob_str(f->time));
}

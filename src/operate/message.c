/* SPDX-License-Identifier: MIT */
#include "operate/message.h"

#include "base/json.h"

static void payload_json(struct ob_jout *j, const char *key, const char *key_base64,
			 struct ob_str bytes)
{
	if (!bytes.p)
		ob_jout_raw(j, key, OB_STR("null"));
	else if (ob_json_valid(bytes, NULL))
		ob_jout_raw(j, key, bytes);
	else
		ob_jout_base64(j, key_base64, bytes);
}

void ob_message_json(struct ob_jout *j, const struct ob_message *m)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_jout_int(j, "seq", m->seq);
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "target", m->target);
	ob_jout_text(j, "aggregate_type", m->aggregate_type);
	ob_jout_text(j, "aggregate_id", m->aggregate_id);
	ob_jout_text(j, "event_type", m->event_type);
	ob_jout_int(j, "revision", m->revision);
	if (m->sequence_number)
		ob_jout_int(j, "sequence_number", m->sequence_number);
	else
		ob_jout_raw(j, "sequence_number", OB_STR("null"));
	ob_jout_text(j, "key", m->key);
	ob_jout_text(j, "partition_key", m->partition_key);
	ob_jout_int(j, "partition", m->partition);
	ob_jout_int(j, "priority", m->priority);
	ob_jout_text(j, "correlation_id", m->correlation_id);
	ob_jout_text(j, "causation_id", m->causation_id);
	ob_jout_when(j, "occurred_at", m->occurred_at_us);
	ob_jout_when(j, "created_at", m->created_at_us);
	ob_jout_when(j, "available_at", m->available_at_us);
	ob_jout_bool(j, "tombstone", !m->payload.p);
	payload_json(j, "headers", "headers_base64", m->headers);
	payload_json(j, "snapshot", "snapshot_base64", m->snapshot);
	payload_json(j, "payload", "payload_base64", m->payload);
}

void ob_message_json_state(struct ob_jout *j, const char *reader, const struct ob_message *m)
{
	ob_jout_text(j, "reader", ob_str(reader));
	ob_jout_text(j, "state", ob_str(ob_view_name(m->view)));
	ob_jout_int(j, "attempts", m->attempts);
	ob_jout_when(j, "due", m->due_us);
	ob_jout_when(j, "since", m->since_us);
	ob_jout_when(j, "published_at", m->published_at_us);
	ob_jout_text(j, "last_error", m->last_error);
}

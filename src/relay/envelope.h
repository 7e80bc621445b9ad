/* SPDX-License-Identifier: MIT */
/*
 * Envelopes: CloudEvents 1.0 in binary mode (attributes as headers, by the binding that the sink
 * declares) and in structured mode (one JSON document), and the form of Debezium's
 * outbox router (an id header, the payload as it is).
 */
#ifndef OB_RELAY_ENVELOPE_H
#define OB_RELAY_ENVELOPE_H

#include "config/config.h"

/* The attributes, in the order in which they are written. */
#define OB_CE_MAP(X) \
	X(SPECVERSION, "specversion") \
	X(ID, "id") \
	X(SOURCE, "source") \
	X(TYPE, "type") \
	X(SUBJECT, "subject") \
	X(TIME, "time") \
	X(DATACONTENTTYPE, "datacontenttype") \
	X(PARTITIONKEY, "partitionkey") \
	X(SEQUENCE, "sequence") \
	X(CORRELATIONID, "correlationid") \
	X(CAUSATIONID, "causationid") \
	X(SNAPSHOT, "snapshot") \
	X(TRACEPARENT, "traceparent") \
	X(TRACESTATE, "tracestate")

enum ob_ce {
#define X(name, text) OB_CE_##name,
	OB_CE_MAP(X)
#undef X
		OB_CE_COUNT
};

enum { OB_ENVELOPE_BODY_MAX = 80 << 20 }; /* bytes of a payload in a structured event */

/* What a sink makes of envelopes. */
struct ob_envelope_conf {
	const struct ob_sink_ops *sink;
	struct ob_str names[OB_CE_COUNT]; /* with the prefix of the binding; p NULL: no header */
	struct ob_buf scratch;            /* the document in the making */
};

/* What an envelope is made of besides the delivery. */
struct ob_envelope_input {
	enum ob_envelope kind;
	struct ob_str source;
	struct ob_header *headers; /* the stored ones and the route's; the envelope adds its own */
	size_t *header_count, header_max;
};

int ob_envelope_init(struct ob_envelope_conf *conf, const struct ob_sink_ops *sink,
		     struct ob_arena *arena, struct ob_err *err);
void ob_envelope_done(struct ob_envelope_conf *conf);

/* OUTBOX_ECONFIG when the sink cannot carry it. */
int ob_envelope_check(const struct ob_envelope_conf *conf, enum ob_envelope kind,
		      struct ob_err *err);
bool ob_envelope_sets_headers(enum ob_envelope kind);
bool ob_envelope_has_source(enum ob_envelope kind);

/*
 * Wrap a delivery whose destination, key and content type are set. REJECT when the message
 * has no place in it; DOWN when out of memory.
 */
int ob_envelope_apply(struct ob_envelope_conf *conf, const struct ob_envelope_input *input,
		      struct ob_arena *arena, struct ob_delivery *delivery, struct ob_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* What the streams of a NATS server keep, and whether the destinations can take messages. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_read.h"
#include "sink/nats/nats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DESTINATION, STORAGE, COPIES, LIMITS };

const struct ob_check ob_nats_checks[] = {
	[DESTINATION] = { "nats_destination", "A stream listens to each constant destination.",
			  "make a stream with that subject, or correct the destination in the "
			  "route" },
	[STORAGE] = { "nats_storage", "A stream keeps its messages in files.",
		      "make the stream with file storage" },
	[COPIES] = { "nats_copies", "A stream has several copies.",
		     "use 3 replicas, or set sync_interval to always" },
	[LIMITS] = { "nats_limits", "A stream refuses what does not fit, and drops nothing old.",
		     "set the discard policy to new, or watch that consumers keep up" },
	OB_CHECK_END,
};

/* ---- judging --------------------------------------------------------- */

void ob_nats_judge(const struct ob_nats_stream_health *h, struct ob_findings *out)
{
	if (!h->stream) {
		ob_finding_add(out, &ob_nats_checks[DESTINATION], OB_LEVEL_WARNING,
			       "no stream listens to subject %s: %s", h->subject,
			       h->fails ? "messages to it fail" : "messages to it wait");
		return;
	}
	ob_finding_add(out, &ob_nats_checks[DESTINATION], OB_LEVEL_OK,
		       "stream %s listens to subject %s", h->stream, h->subject);
	ob_finding_add(out, &ob_nats_checks[STORAGE], h->in_memory ? OB_LEVEL_WARNING : OB_LEVEL_OK,
		       h->in_memory ? "stream %s is in memory: what was acknowledged is gone when "
				      "the server ends"
				    : "stream %s is in files",
		       h->stream);
	if (h->replicas < 2)
		ob_finding_add(out, &ob_nats_checks[COPIES], OB_LEVEL_WARNING,
			       "stream %s has one copy, which the server writes to the disk every "
			       "two minutes unless told otherwise: a power cut may lose what was "
			       "acknowledged",
			       h->stream);
	else
		ob_finding_add(out, &ob_nats_checks[COPIES], OB_LEVEL_OK,
			       "stream %s has %" PRId64 " copies", h->stream, h->replicas);
	if (h->bounded && h->drops_old)
		ob_finding_add(
			out, &ob_nats_checks[LIMITS], OB_LEVEL_WARNING,
			"stream %s drops its oldest messages when it is full, whether or not "
			"they were read",
			h->stream);
}

/* ---- asking ---------------------------------------------------------- */

/* "streams": ["A", ...]: the first of them into `out`; false: there is none. */
static bool first_stream(struct ob_str text, char *out, size_t size)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	if (!ob_json_valid_object(text, NULL))
		return false;
	ob_json_begin(&cursor, text);
	while (ob_json_next(&cursor, &m)) {
		const char *quote, *end;

		if (!ob_str_eq(m.name, OB_STR("\"streams\"")) || m.value.n < 4)
			continue;
		/* A stream's name holds no quote and no backslash. */
		quote = memchr(m.value.p, '"', m.value.n);
		end = quote ? memchr(quote + 1, '"', m.value.n - (size_t)(quote + 1 - m.value.p))
			    : NULL;
		if (!end || (size_t)(end - quote) > size)
			return false;
		(void)snprintf(out, size, "%.*s", (int)(end - quote - 1), quote + 1);
		return true;
	}
	return false;
}

static natsStatus find_stream(natsConnection *nc, const char *subject, int64_t timeout_ms,
			      char *out, size_t size)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf ask = OB_BUF_INIT(2 * OB_NATS_SUBJECT_MAX + 64);
	natsMsg *reply = NULL;

	ob_buf_adds(&ask, "{\"subject\":");
	ob_json_add_string(&ask, ob_str(subject));
	ob_buf_addc(&ask, '}');
	out[0] = '\0';
	natsStatus s = natsConnection_RequestString(&reply, nc, "$JS.API.STREAM.NAMES",
						    ob_buf_str(&ask), timeout_ms);
	if (s == NATS_OK) {
		struct ob_str text = { natsMsg_GetData(reply),
				       (size_t)natsMsg_GetDataLength(reply) };

		if (!first_stream(text, out, size))
			out[0] = '\0';
		natsMsg_Destroy(reply);
	}
	return s;
}

static natsStatus probe_subject(const struct nats_sink *sink, natsConnection *nc, jsCtx *js,
				const char *subject, struct ob_findings *out)
{
	struct ob_nats_stream_health h = { .subject = subject,
					   .fails = sink->no_stream == OB_NATS_NO_STREAM_FAIL };
	char name[256];
	jsStreamInfo *info = NULL;
	natsStatus s = find_stream(nc, subject, sink->timeout_ms, name, sizeof(name));

	if (s == NATS_OK && name[0])
		s = js_GetStreamInfo(&info, js, name, NULL, NULL);
	if (s != NATS_OK)
		return s;
	if (info && info->Config) {
		h.stream = name;
		h.in_memory = info->Config->Storage == js_MemoryStorage;
		h.replicas = info->Config->Replicas;
		h.drops_old = info->Config->Discard == js_DiscardOld;
		h.bounded = info->Config->MaxMsgs > 0 || info->Config->MaxBytes > 0;
	}
	ob_nats_judge(&h, out);
	jsStreamInfo_Destroy(info);
	return NATS_OK;
}

/* Questions that wait for their answer need a connection that the library drives itself. */
int ob_nats_probe(struct ob_sink *base, const struct ob_str *destinations, size_t count,
		  struct ob_findings *out, struct ob_err *err)
{
	struct nats_sink *sink = (struct nats_sink *)base;
	natsOptions *options = NULL;
	natsConnection *nc = NULL;
	jsCtx *js = NULL;
	int r = ob_nats_options_make(sink, sink->connect_timeout_ms, &options, err);

	if (r < 0)
		return r;
	natsStatus s = natsConnection_Connect(&nc, options);
	if (s == NATS_OK)
		s = natsConnection_JetStream(&js, nc, NULL);
	for (size_t i = 0; i < count && s == NATS_OK; i++) {
		char subject[OB_NATS_SUBJECT_MAX + 1];
		struct ob_err ignored = OB_ERR_INIT;

		if (destinations[i].n > OB_NATS_SUBJECT_MAX ||
		    ob_nats_subject_check(destinations[i], &ignored) < 0)
			continue;
		(void)snprintf(subject, sizeof(subject), "%.*s", (int)destinations[i].n,
			       destinations[i].p);
		s = probe_subject(sink, nc, js, subject, out);
	}
	if (s != NATS_OK)
		r = ob_nats_status(s, nats_GetLastError(NULL), err);
	jsCtx_Destroy(js);
	natsConnection_Destroy(nc);
	natsOptions_Destroy(options);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* The reasons in sentences: what the matter is, since when, and what to do about it. */
#include "base/count.h"
#include "base/when.h"
#include "operate/owners.h"
#include "operate/snapshot.h"
#include "operate/why.h"

#include <inttypes.h>

/* An error of the database that is older has passed. */
#define RECENT_US (INT64_C(60) * 1000000)

/* "3m12s ago (2026-05-01T12:00:00.123456Z)", or "in 3m12s (...)". */
static void add_when(struct ob_buf *out, int64_t us, int64_t now_us)
{
	char iso[OB_WHEN_SIZE], age[OB_WHEN_SIZE];

	ob_when_iso(us, iso);
	ob_when_age(us > now_us ? us - now_us : now_us - us, age);
	if (us > now_us)
		ob_buf_addf(out, "in %s (%s)", age, iso);
	else
		ob_buf_addf(out, "%s ago (%s)", age, iso);
}

static void add_error(struct ob_buf *out, const struct ob_message *m)
{
	if (!m->last_error.p)
		return;
	ob_buf_adds(out, " The last error: ");
	ob_buf_add(out, m->last_error);
	ob_buf_addc(out, '.');
}

static void add_attempts(struct ob_buf *out, const struct ob_message *m)
{
	ob_count_add(out, m->attempts, "attempt");
}

/* ---- one function for each reason ------------------------------------ */

static void say_published(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_adds(out, "is out: it was published");
	if (why->message->published_at_us) {
		ob_buf_addc(out, ' ');
		add_when(out, why->message->published_at_us, why->now_us);
	}
	ob_buf_addc(out, '.');
}

static void say_discarded(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_adds(out, "was discarded");
	if (why->message->since_us) {
		ob_buf_addc(out, ' ');
		add_when(out, why->message->since_us, why->now_us);
	}
	ob_buf_adds(out, ": somebody decided that it is not delivered.");
}

static void say_filtered(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_addf(out,
		    "is not for reader %s: it matches none of the patterns in 'types' and "
		    "'aggregates' of that relay, which passes it over.",
		    why->reader);
}

static void say_delayed(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_adds(out, "is not due yet: it becomes due ");
	add_when(out, why->message->due_us ? why->message->due_us : why->message->available_at_us,
		 why->now_us);
	ob_buf_addc(out, '.');
}

static void say_retry_waits(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_adds(out, "failed and waits for its next attempt, which is due ");
	add_when(out, why->message->due_us, why->now_us);
	ob_buf_adds(out, ", after ");
	add_attempts(out, why->message);
	ob_buf_addc(out, '.');
	add_error(out, why->message);
	ob_buf_adds(out, " 'outbox retry' makes it due now.");
}

static void say_held(const struct ob_why *why, struct ob_buf *out)
{
	const struct ob_message *h = &why->holder;
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&h->id, id);
	ob_buf_addf(out, "waits for message %s", id);
	if (h->key.p && ob_str_eq(h->key, why->message->key)) {
		ob_buf_adds(out, " of the same key ");
		ob_buf_add(out, h->key);
	} else {
		ob_buf_adds(out, " of the same partition");
	}
	if (h->state == OB_STATE_DEAD_HOLD) {
		ob_buf_adds(out, ", which is dead and holds what comes after it.");
	} else {
		ob_buf_adds(out, h->state == OB_STATE_DELAYED
					 ? ", which is delayed; it becomes due "
					 : ", which failed; its next attempt is due ");
		if (h->due_us > why->now_us)
			add_when(out, h->due_us, why->now_us);
		else
			ob_buf_adds(out, "now");
		ob_buf_addc(out, '.');
	}
	add_error(out, h);
	if (h->state != OB_STATE_DELAYED)
		ob_buf_addf(out, " 'outbox retry %s' tries that one again,", id);
	ob_buf_addf(out, " 'outbox skip %s' gives it up.", id);
}

static void say_parked(const struct ob_why *why, struct ob_buf *out)
{
	(void)why;
	ob_buf_adds(
		out,
		"is parked, but no failed, dead or delayed message was found that holds it: it may "
		"have been let go in this moment. Ask again.");
}

static void say_dead(const struct ob_why *why, struct ob_buf *out)
{
	const struct ob_message *m = why->message;

	ob_buf_adds(out, "is dead: it was given up");
	if (m->since_us) {
		ob_buf_addc(out, ' ');
		add_when(out, m->since_us, why->now_us);
	}
	ob_buf_adds(out, " after ");
	add_attempts(out, m);
	ob_buf_addc(out, '.');
	add_error(out, m);
	if (why->reason == OB_WHY_DEAD_HOLD) {
		ob_buf_adds(out,
			    " The messages of its key wait until you decide: 'outbox retry' "
			    "sends it again, 'outbox skip' or 'outbox discard' lets them go "
			    "on without it.");
	} else {
		ob_buf_adds(out,
			    " Its key goes on without it. 'outbox retry' sends it again, 'outbox "
			    "discard' settles that it is never sent.");
	}
}

static void add_due(struct ob_buf *out, const struct ob_why *why)
{
	if (why->message->view != OB_VIEW_FAILED) {
		ob_buf_adds(out, "is due");
		return;
	}
	ob_buf_adds(out, "failed, and its next attempt is due");
}

/* How far the reader is from it, in numbers of the log. */
static void add_distance(struct ob_buf *out, const struct ob_why *why)
{
	if (!why->has_pos)
		return;
	if (why->message->seq > why->pos)
		ob_buf_addf(out,
			    " Its number %" PRId64 " is %" PRId64
			    " after the reader's position %" PRId64 ".",
			    why->message->seq, why->message->seq - why->pos, why->pos);
	else
		ob_buf_addf(
			out,
			" Its transaction committed after the reader had passed its number %" PRId64
			": it comes with the next read.",
			why->message->seq);
}

static void say_no_reader(const struct ob_why *why, struct ob_buf *out)
{
	ob_buf_adds(out, "waits, and nobody has ever read its target ");
	ob_buf_add(out, why->message->target);
	if (why->no_relay) {
		ob_buf_adds(out, ": add a relay with 'reads: ");
		ob_buf_add(out, why->message->target);
		ob_buf_adds(out, "' to the configuration, then start it with 'outbox work'.");
	} else {
		ob_buf_adds(out, ": start a relay with 'outbox work'.");
	}
}

static void say_no_worker(const struct ob_why *why, struct ob_buf *out)
{
	add_due(out, why);
	ob_buf_addf(out, ", but no worker is alive for reader %s", why->reader);
	if (why->no_relay)
		ob_buf_adds(out,
			    ", and the configuration has no relay of that name: add one, then "
			    "start it with 'outbox work'.");
	else
		ob_buf_adds(out, ": start one with 'outbox work'.");
	add_distance(out, why);
	add_error(out, why->message);
}

static void say_no_lease(const struct ob_why *why, struct ob_buf *out)
{
	char label[8];

	ob_partition_label(why->hash, label);
	add_due(out, why);
	ob_buf_addf(out, ", but no worker holds a lease on its partition %s. ", label);
	ob_count_add(out, why->workers, "worker");
	ob_buf_addf(out,
		    " of its reader %s alive and should take the partition within seconds; 'outbox "
		    "partitions free' takes it from a worker that cannot be asked.",
		    why->workers == 1 ? "is" : "are");
	add_distance(out, why);
	add_error(out, why->message);
}

static void say_leased(const struct ob_why *why, struct ob_buf *out)
{
	char label[8], id[OB_OWNER_SHORT_SIZE], left[OB_WHEN_SIZE];

	ob_partition_label(why->hash, label);
	ob_owner_short(&why->worker.id, id);
	ob_when_age(why->lease_until_us - why->now_us, left);
	add_due(out, why);
	ob_buf_addf(out, ", and worker %s", id);
	if (why->worker.hostname.p) {
		ob_buf_adds(out, " (");
		ob_buf_add(out, why->worker.hostname);
		ob_buf_addf(out, ", pid %d)", why->worker.pid);
	}
	ob_buf_addf(out, " holds its partition %s for %s more", label, left);
	if (why->reason == OB_WHY_SINK_DOWN) {
		ob_buf_adds(out, ", but ");
		ob_report_down_text(&why->report, why->now_us, out);
		ob_buf_adds(out,
			    ". It costs no message an attempt: delivery goes on by itself "
			    "when the sink is back.");
	} else if (why->reason != OB_WHY_LEASED) {
		ob_buf_addf(out, ", but %s.", ob_why_help(why->reason));
	} else if (why->has_report) {
		ob_buf_adds(out, ": it should go out in a moment. Its sink is up");
		if (why->report.store_error.at_us &&
		    why->now_us - why->report.store_error.at_us < RECENT_US)
			ob_buf_addf(out, ", but the database refused it something lately: %s",
				    why->report.store_error.text);
		ob_buf_addc(out, '.');
	} else {
		ob_buf_adds(out,
			    ": it should go out in a moment. If it does not, the sink may be "
			    "down: that worker's output says so.");
	}
	add_distance(out, why);
	add_error(out, why->message);
}

void ob_why_text(const struct ob_why *why, struct ob_buf *out)
{
	static void (*const say[])(const struct ob_why *, struct ob_buf *) = {
		[OB_WHY_PUBLISHED] = say_published,
		[OB_WHY_DISCARDED] = say_discarded,
		[OB_WHY_FILTERED] = say_filtered,
		[OB_WHY_DELAYED] = say_delayed,
		[OB_WHY_RETRY_WAITS] = say_retry_waits,
		[OB_WHY_HELD] = say_held,
		[OB_WHY_PARKED] = say_parked,
		[OB_WHY_DEAD] = say_dead,
		[OB_WHY_DEAD_HOLD] = say_dead,
		[OB_WHY_NO_READER] = say_no_reader,
		[OB_WHY_NO_WORKER] = say_no_worker,
		[OB_WHY_NO_LEASE] = say_no_lease,
		[OB_WHY_COUNT] = NULL, /* all others are a worker's, which has a lease */
	};

	if (say[why->reason])
		say[why->reason](why, out);
	else
		say_leased(why, out);
}

void ob_why_sentence(const struct ob_why *why, bool several, struct ob_buf *out)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&why->message->id, id);
	if (several && why->reader)
		ob_buf_addf(out, "For reader %s, message %s ", why->reader, id);
	else
		ob_buf_addf(out, "Message %s ", id);
	ob_why_text(why, out);
}

static void int_or_null(struct ob_jout *j, const char *key, bool known, int64_t value)
{
	if (known)
		ob_jout_int(j, key, value);
	else
		ob_jout_raw(j, key, OB_STR("null"));
}

void ob_why_json(struct ob_jout *j, const struct ob_why *why, struct ob_str text)
{
	const struct ob_message *m = why->message;
	char id[OB_UUID_TEXT_SIZE], other[OB_UUID_TEXT_SIZE];
	bool down = why->reason == OB_WHY_SINK_DOWN;

	ob_uuid_format(&m->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "target", m->target);
	ob_jout_text(j, "reader", ob_str(why->reader));
	ob_jout_text(j, "state", ob_str(ob_view_name(m->view)));
	ob_jout_text(j, "reason", ob_str(ob_why_name(why->reason)));
	ob_jout_text(j, "text", text);
	ob_jout_int(j, "seq", m->seq);
	int_or_null(j, "position", why->has_pos, why->pos);
	ob_jout_text(j, "key", m->key);
	ob_jout_int(j, "partition", m->partition);
	ob_jout_int(j, "attempts", m->attempts);
	ob_jout_text(j, "last_error", m->last_error);
	ob_jout_when(j, "due", m->due_us);
	ob_jout_when(j, "published_at", m->published_at_us);
	ob_uuid_format(&why->holder.id, other);
	ob_jout_text(j, "behind", why->has_holder ? ob_str(other) : OB_STR_NULL);
	ob_uuid_format(&why->worker.id, other);
	ob_jout_text(j, "lease_owner", why->leased ? ob_str(other) : OB_STR_NULL);
	ob_jout_when(j, "lease_until", why->lease_until_us);
	ob_jout_text(j, "sink", down ? ob_str(why->report.sink_name) : OB_STR_NULL);
	ob_jout_when(j, "sink_down_since", down ? why->report.breaker_since_us : 0);
	ob_jout_text(j, "sink_why", down ? ob_str(why->report.breaker_why) : OB_STR_NULL);
	ob_jout_end(j, '}');
}

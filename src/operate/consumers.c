/* SPDX-License-Identifier: MIT */
/* The consumers of one database: rows and reports put together. */
#include "operate/consumers.h"

#include "base/count.h"
#include "base/when.h"

enum { ARENA_MAX = 1 << 30 };

/* ---- reading --------------------------------------------------------- */

/* Which of two is shown first, and speaks for the consumer: who has the lease, then who lives. */
static int rank_of(const struct ob_consumer_view *view, const struct ob_consumer_member *m)
{
	bool owner = view->row.held && ob_uuid_eq(&view->row.owner, &m->id);

	return owner ? 2 : m->alive ? 1 : 0;
}

/* Keep the list sorted: by rank, then who was heard last. */
static void add_process(struct ob_consumer_view *view, const struct ob_consumer_member *m)
{
	struct ob_consumer_process p = { .member = *m };
	size_t at = view->process_count++;

	p.told = ob_consumer_report_read(&p.report, m->state);
	for (; at > 0; at--) {
		const struct ob_consumer_member *before = &view->processes[at - 1].member;
		int rank = rank_of(view, m), other = rank_of(view, before);

		if (rank < other ||
		    (rank == other && m->heartbeat_until_us <= before->heartbeat_until_us))
			break;
		view->processes[at] = view->processes[at - 1];
	}
	view->processes[at] = p;
	if (!m->alive)
		return;
	view->alive++;
	view->rate += p.report.rate;
	view->in_flight += p.report.in_flight;
}

static bool fill_view(struct ob_consumers *c, struct ob_consumer_view *view,
		      const struct ob_consumer_member *members, size_t count)
{
	size_t own = 0;

	for (size_t i = 0; i < count; i++)
		own += ob_str_eq(members[i].consumer, view->row.name);
	view->processes = ob_arena_alloc(&c->arena, (own + 1) * sizeof(*view->processes));
	if (!view->processes)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ob_str_eq(members[i].consumer, view->row.name))
			add_process(view, &members[i]);
	}
	if (view->process_count && view->processes[0].told)
		view->leader = &view->processes[0];
	return true;
}

int ob_consumers_take(struct ob_consumers *c, struct ob_store *store, const char *consumer,
		      struct ob_err *err)
{
	struct ob_consumer_member *members = NULL;
	struct ob_consumer_row *rows = NULL;
	size_t count = 0, member_count = 0;

	*c = (struct ob_consumers){ .arena = OB_ARENA_INIT(ARENA_MAX), .installed = true };
	int r = ob_inbox_exists(store, &c->installed, err);
	if (r < 0 || !c->installed)
		return r;
	r = ob_consumer_list(store, consumer, &c->arena, &rows, &count, err);
	if (r == 0)
		r = ob_consumer_members(store, consumer, &c->arena, &members, &member_count, err);
	if (r == OUTBOX_ESCHEMA) {
		c->installed = false;
		*err = OB_ERR_INIT;
		return 0;
	}
	if (r < 0)
		return r;
	c->views = ob_arena_alloc(&c->arena, (count + 1) * sizeof(*c->views));
	for (size_t i = 0; c->views && i < count; i++) {
		c->views[i] = (struct ob_consumer_view){ .row = rows[i] };
		if (!fill_view(c, &c->views[i], members, member_count))
			c->views = NULL;
	}
	if (!c->views)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "listing consumers");
	c->count = count;
	c->now_us = count ? rows[0].now_us : 0;
	return 0;
}

void ob_consumers_done(struct ob_consumers *c)
{
	ob_arena_done(&c->arena);
}

/* ---- for people ------------------------------------------------------ */

static bool is_down(const char *state)
{
	return strcmp(state, "down") == 0;
}

const char *ob_consumer_word(const struct ob_consumer_view *view)
{
	const struct ob_consumer_report *r = view->leader ? &view->leader->report : NULL;

	if (view->alive == 0)
		return "stopped";
	if (r && r->full)
		return "full";
	if (r && is_down(r->source_state))
		return "source down";
	if (r && r->alarm)
		return "failing";
	if (r && is_down(r->handler_state))
		return "handler down";
	if (!view->row.held)
		return "waiting";
	return view->row.dead ? "held" : "ok";
}

bool ob_consumer_is_bad(const struct ob_consumer_view *view)
{
	const char *word = ob_consumer_word(view);

	return strcmp(word, "ok") != 0 && strcmp(word, "held") != 0 && strcmp(word, "waiting") != 0;
}

static void add_since(struct ob_buf *out, int64_t now_us, int64_t since_us, const char *why)
{
	char age[OB_WHEN_SIZE];

	if (since_us) {
		ob_when_age(now_us - since_us, age);
		ob_buf_addf(out, " since %s", age);
	}
	if (why && *why)
		ob_buf_addf(out, ": %s", why);
}

void ob_consumer_trouble_text(const struct ob_consumer_view *view, struct ob_buf *out)
{
	const struct ob_consumer_report *r = view->leader ? &view->leader->report : NULL;
	int64_t now = view->row.now_us;

	if (view->alive == 0) {
		ob_buf_adds(out, "no process runs it");
		add_since(out, now, view->row.updated_at_us, r ? r->last_error : NULL);
	} else if (r && r->full) {
		ob_buf_adds(out, "no room to park more, the source is paused: decide about ");
		ob_count_add(out, view->row.parked, "parked message");
	} else if (r && is_down(r->source_state)) {
		ob_buf_adds(out, "source down");
		add_since(out, now, r->source_since_us, r->source_why);
	} else if (r && r->alarm) {
		ob_buf_adds(out, "most keys fail");
		add_since(out, now, r->breaker_since_us, r->breaker_why);
	} else if (r && is_down(r->handler_state)) {
		ob_buf_adds(out, "handler down");
		add_since(out, now, r->handler_since_us, r->handler_why);
	} else if (view->row.dead) {
		ob_count_add(out, view->row.dead, "dead message");
		add_since(out, now, view->row.parked_since_us, NULL);
	}
}

/* ---- for programs ---------------------------------------------------- */

static void process_json(struct ob_jout *j, const struct ob_consumer_view *view,
			 const struct ob_consumer_process *p)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&p->member.id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "hostname", p->member.hostname);
	ob_jout_int(j, "pid", p->member.pid);
	ob_jout_when(j, "started_at", p->member.started_at_us);
	ob_jout_when(j, "heartbeat_until", p->member.heartbeat_until_us);
	ob_jout_bool(j, "alive", p->member.alive);
	ob_jout_bool(j, "has_lease", rank_of(view, &p->member) == 2);
	if (p->told) {
		ob_jout_begin(j, "state", '{');
		ob_consumer_report_json(j, &p->report);
		ob_jout_end(j, '}');
	} else {
		ob_jout_raw(j, "state", OB_STR("null"));
	}
	ob_jout_end(j, '}');
}

static void known_ms(struct ob_jout *j, const char *key, int64_t us)
{
	if (us < 0)
		ob_jout_raw(j, key, OB_STR("null"));
	else
		ob_jout_int(j, key, us / 1000);
}

void ob_consumer_view_json(struct ob_jout *j, const struct ob_consumer_view *view)
{
	struct ob_buf trouble = OB_BUF_INIT(1024);
	const struct ob_consumer_row *row = &view->row;
	char rate[32];

	ob_consumer_trouble_text(view, &trouble);
	(void)snprintf(rate, sizeof(rate), "%.1f", view->rate);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "consumer", row->name);
	ob_jout_text(j, "source", row->source);
	ob_jout_text(j, "status", ob_str(ob_consumer_word(view)));
	ob_jout_text(j, "trouble", trouble.len ? ob_buf_view(&trouble) : OB_STR_NULL);
	ob_jout_when(j, "updated_at", row->updated_at_us);
	ob_jout_int(j, "handled", (int64_t)row->handled);
	ob_jout_int(j, "duplicates", (int64_t)row->duplicates);
	ob_jout_int(j, "failed", (int64_t)row->failed);
	ob_jout_raw(j, "rate", ob_str(rate));
	ob_jout_int(j, "in_flight", (int64_t)view->in_flight);
	if (row->lag < 0)
		ob_jout_raw(j, "lag", OB_STR("null"));
	else
		ob_jout_int(j, "lag", row->lag);
	known_ms(j, "oldest_ms", row->oldest_us);
	ob_jout_int(j, "parked", (int64_t)row->parked);
	ob_jout_int(j, "dead", (int64_t)row->dead);
	ob_jout_when(j, "parked_since", row->parked_since_us);
	ob_jout_int(j, "held_keys", view->leader ? (int64_t)view->leader->report.held_keys : 0);
	ob_jout_begin(j, "processes", '[');
	for (size_t i = 0; i < view->process_count; i++)
		process_json(j, view, &view->processes[i]);
	ob_jout_end(j, ']');
	ob_jout_end(j, '}');
	ob_buf_done(&trouble);
}

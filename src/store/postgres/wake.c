/* SPDX-License-Identifier: MIT */
/*
 * Noticing the commits of others by LISTEN, which is a hint and never a count. Behind a pooler
 * it may succeed and never deliver, so it is tried out first; where it does not work, the
 * relay polls by time.
 */
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"

#include <inttypes.h>
#include <poll.h>

enum { SELF_TEST_MS = 2000 };

static const char *channel_of(const struct pg_store *s)
{
	return s->base.layout->table[OB_TABLE_outbox];
}

/* Take what has arrived; true when something was for us. */
static bool take_notifications(const struct pg_store *s, PGconn *conn, const char *payload)
{
	PGnotify *notify;
	bool any = false;

	while ((notify = PQnotifies(conn))) {
		if (strcmp(notify->relname, channel_of(s)) == 0 &&
		    (!payload || strcmp(notify->extra, payload) == 0))
			any = true;
		PQfreemem(notify);
	}
	return any;
}

/* A statement on a connection that is not the store's own. */
static int run_on(struct pg_store *s, PGconn *conn, enum pg_id id, struct ob_err *err)
{
	PGconn *kept = s->conn;

	s->conn = conn;
	int r = pg_add(s, id, NULL, err);
	if (r == 0)
		r = pg_flush(s, err);
	s->conn = kept;
	return r;
}

static int send_self(struct pg_store *s, const char *payload, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, channel_of(s));
	pg_text(&p, payload);
	int r = pg_add(s, PG_notify, &p, err);
	return r < 0 ? r : pg_flush(s, err);
}

/* Does a notification that the store's connection sends arrive where we listen? */
static bool delivers(struct pg_store *s, struct ob_err *err)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + SELF_TEST_MS * INT64_C(1000);
	struct ob_uuid id = ob_uuid_new();
	char payload[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&id, payload);
	if (send_self(s, payload, err) < 0)
		return false;
	for (;;) {
		if (!PQconsumeInput(s->listener))
			return false;
		if (take_notifications(s, s->listener, payload))
			return true;
		if (!pg_wait(s->listener, false, end))
			return false;
	}
}

static void start_listening(struct pg_store *s)
{
	struct ob_err ignored = OB_ERR_INIT;

	if (s->listen_tried || s->in_tx || s->notify != 0 || pg_ready(s, &ignored) < 0)
		return;
	s->listen_tried = true;
	/* A pooler gives our own connection to others between two transactions. */
	if (!s->listen_url && s->pooled)
		return;
	if (s->listen_url) {
		if (pg_connect(s, s->listen_url, &s->listener, &ignored) < 0)
			s->listener = NULL;
	} else {
		s->listener = s->conn;
	}
	if (s->listener && run_on(s, s->listener, PG_listen, &ignored) == 0 &&
	    delivers(s, &ignored))
		s->listening = true;
	pg_clear(s);
}

int pg_wake_fd(struct ob_store *store)
{
	struct pg_store *s = (struct pg_store *)store;

	s->watched = true;
	start_listening(s);
	return s->listening && s->listener ? PQsocket(s->listener) : -1;
}

int pg_wake_check(struct ob_store *store, bool *ret_news, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = s->in_tx ? 0 : pg_ready(s, err);

	if (r < 0)
		return r;
	start_listening(s);
	*ret_news = false;
	if (!s->listening)
		return 0;
	/* Without a look at the fd before, what is on its way is fetched by asking. */
	if (!s->watched && !s->in_tx)
		r = run_on(s, s->listener, PG_ping, err);
	if (r == 0 && !PQconsumeInput(s->listener)) {
		r = pg_err(s, NULL, "looking for news", err);
		s->broken = true;
	}
	if (r == 0)
		*ret_news = take_notifications(s, s->listener, NULL);
	return r;
}

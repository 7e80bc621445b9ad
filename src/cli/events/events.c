/* SPDX-License-Identifier: MIT */
/* Commands about events: a connection with the library's handle, and printing. */
#include "cli/events/events.h"

#include "base/json.h"
#include "base/when.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"

#include <stdio.h>

enum { PAYLOAD_SHOWN = 60 };

int ob_events_begin(struct ob_events_session *s, const struct ob_cli *cli)
{
	struct ob_err err = OB_ERR_INIT;
	int r;

	*s = (struct ob_events_session){ 0 };
	r = ob_session_open(&s->session, cli);
	if (r)
		return r;
	if (ob_store_tx_begin(s->session.store, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	s->begun = true;
	if (ob_store_tx_writer(s->session.store, &s->ob, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

int ob_events_commit(struct ob_events_session *s)
{
	struct ob_err err = OB_ERR_INIT;

	s->begun = false;
	if (ob_store_tx_end(s->session.store, true, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

void ob_events_done(struct ob_events_session *s)
{
	struct ob_err ignored = OB_ERR_INIT;

	if (s->begun)
		(void)ob_store_tx_end(s->session.store, false, &ignored);
	ob_session_done(&s->session);
}

int ob_events_fail(const struct outbox_error *err)
{
	return ob_cli_fail("%s", err->message);
}

/* ---- printing -------------------------------------------------------- */

static int print_json(const struct outbox_event *e)
{
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_str payload = { e->payload, e->payload_size };

	ob_jout_begin(&j, NULL, '{');
	ob_jout_int(&j, "position", e->position);
	ob_jout_text(&j, "type", ob_str(e->type));
	ob_jout_text(&j, "stream", ob_str(e->stream_id));
	ob_jout_int(&j, "version", e->version);
	ob_jout_text(&j, "id", ob_str(e->id));
	ob_jout_text(&j, "event_type", ob_str(e->event_type));
	ob_jout_int(&j, "revision", e->revision);
	if (!payload.p || ob_json_valid(payload, NULL))
		ob_jout_raw(&j, "payload", payload.p ? payload : OB_STR("null"));
	else
		ob_jout_base64(&j, "payload_base64", payload);
	ob_jout_raw(&j, "headers",
		    e->headers ? (struct ob_str){ e->headers, e->headers_size } : OB_STR("null"));
	ob_jout_text(&j, "correlation_id", ob_str(e->correlation_id));
	ob_jout_text(&j, "causation_id", ob_str(e->causation_id));
	ob_jout_when(&j, "occurred_at", e->occurred_at_us);
	ob_jout_when(&j, "created_at", e->created_at_us);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static void add_row(struct ob_grid *table, const struct outbox_event *e)
{
	char when[OB_WHEN_SIZE], shown[PAYLOAD_SHOWN + 4] = "";
	size_t n = e->payload_size < PAYLOAD_SHOWN ? e->payload_size : PAYLOAD_SHOWN;

	ob_when_iso(e->created_at_us, when);
	if (e->payload)
		memcpy(shown, e->payload, n);
	ob_grid_int(table, e->position);
	ob_grid_cell(table, ob_str(e->type));
	ob_grid_cell(table, ob_str(e->stream_id));
	ob_grid_int(table, e->version);
	ob_grid_cell(table, ob_str(e->event_type));
	ob_grid_cell(table, ob_str(when));
	ob_grid_cell(table, e->payload ? (struct ob_str){ shown, n } : OB_STR_NULL);
}

int ob_events_print(const struct ob_cli *cli, outbox_event_reader *reader)
{
	static const struct ob_grid_column columns[] = {
		{ "POSITION", OB_GRID_RIGHT }, { "TYPE", OB_GRID_SHRINK },
		{ "STREAM", OB_GRID_SHRINK },  { "VERSION", OB_GRID_RIGHT },
		{ "EVENT", OB_GRID_SHRINK },   { "CREATED", 0 },
		{ "PAYLOAD", OB_GRID_SHRINK },
	};
	const struct outbox_event *event;
	struct outbox_error err;
	struct ob_grid table;
	int got, r = OB_EXIT_OK;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	while (r == OB_EXIT_OK && (got = outbox_events_next(reader, &event, &err)) != 0) {
		if (got < 0)
			r = ob_events_fail(&err);
		else if (cli->json)
			r = print_json(event);
		else
			add_row(&table, event);
	}
	if (r == OB_EXIT_OK && !cli->json)
		ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
	outbox_events_close(reader);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* What a replay is: a copy of a relay under another name, with a place to begin and an end. */
#include "cli/replay/replay.h"

#include "base/glob.h"
#include "base/when.h"
#include "operate/readers.h"

#include <stdio.h>

enum { FAULTS_BYTES = 1 << 20, ARENA_MAX = 16 << 20, ROWS_MAX = 1000 };

static const char header_name[] = "outbox-replay";

/* ---- which messages ----------------------------------------------------- */

static bool has_seq(const struct ob_replay_which *w, int64_t seq)
{
	size_t low = 0, high = w->seq_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->seqs[middle] < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->seq_count && w->seqs[low] == seq;
}

static bool is_text(const char *wanted, struct ob_str text)
{
	return !wanted || ob_str_eq(ob_str(wanted), text);
}

static bool matches(const char *pattern, struct ob_str text)
{
	return !pattern || ob_glob_match(ob_str(pattern), text);
}

bool ob_replay_wants(void *arg, const struct ob_message *m)
{
	const struct ob_replay_which *w = arg;

	/* What is not due yet has not been: it is no part of what is sent again. */
	if (m->delayed || (w->seq_count && !has_seq(w, m->seq)))
		return false;
	if ((w->since_us && m->created_at_us < w->since_us) ||
	    (w->until_us && m->created_at_us > w->until_us))
		return false;
	return is_text(w->key, m->key) && matches(w->type, m->aggregate_type) &&
	       is_text(w->aggregate, m->aggregate_id) && matches(w->event, m->event_type);
}

/* ---- the command line ---------------------------------------------------- */

static int read_when(const struct ob_cli *cli, const char *option, const char *text,
		     int64_t *ret_us)
{
	if (!text || ob_when_parse(ob_str(text), ret_us))
		return OB_EXIT_OK;
	return ob_cli_usage(cli, "--%s: '%s' is not a time such as 2026-05-01T00:00:00Z", option,
			    text);
}

static bool is_name(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n && n <= OB_REPLAY_NAME_MAX && !text[n];
}

static int read_args(struct ob_replay *replay)
{
	const struct ob_replay_args *a = replay->args;
	const struct ob_cli *cli = replay->cli;
	char id[OB_UUID_TEXT_SIZE];
	struct ob_uuid uuid = ob_uuid_new();

	for (size_t i = 0; i < cli->operand_count; i++) {
		struct ob_uuid given;

		if (!ob_uuid_parse(ob_str(cli->operands[i]), &given))
			return ob_cli_usage(cli, "'%s' is not a UUID", cli->operands[i]);
	}
	if (a->name && !is_name(a->name))
		return ob_cli_usage(cli,
				    "--name: '%s' is not a name: use letters, digits, '.', '_' and "
				    "'-', at most %d characters",
				    a->name, OB_REPLAY_NAME_MAX);
	if (a->to && a->from > a->to)
		return ob_cli_usage(cli, "--from lies after --to");
	ob_uuid_format(&uuid, id);
	(void)snprintf(replay->name, sizeof(replay->name), "replay-%s",
		       id + OB_UUID_TEXT - 8); /* where ids differ */
	if (a->name)
		(void)snprintf(replay->name, sizeof(replay->name), "%s", a->name);
	replay->which.key = a->key;
	replay->which.type = a->type;
	replay->which.aggregate = a->aggregate;
	replay->which.event = a->event;
	int r = read_when(cli, "since", a->since, &replay->which.since_us);
	if (!r)
		r = read_when(cli, "until", a->until, &replay->which.until_us);
	if (!r && a->since && a->until && replay->which.since_us > replay->which.until_us)
		return ob_cli_usage(cli, "--since lies after --until");
	return r;
}

/* ---- the relay ------------------------------------------------------------ */

/* A database without a configuration: --sink is no name then, but the sink itself. */
static bool is_bare_url(const struct ob_cli *cli)
{
	return cli->store && strchr(cli->store, ':') && !cli->config_given;
}

static int load(struct ob_replay *replay)
{
	struct ob_work_args work = { .workers = replay->args->workers };
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);

	if (is_bare_url(replay->cli))
		work.sink = replay->args->sink;
	if (replay->args->relay)
		work.relays.words[work.relays.count++] = replay->args->relay;
	int r = ob_work_plan_load(replay->cli, &work, &faults, &replay->plan);
	if (r)
		ob_work_print_faults(replay->cli, ob_buf_view(&faults));
	ob_buf_done(&faults);
	return r;
}

static int choose_relay(struct ob_replay *replay)
{
	const struct ob_work_plan *plan = replay->plan;
	struct ob_buf names = OB_BUF_INIT(1000);

	if (plan->count == 1) {
		replay->conf = *plan->relays[0];
		return OB_EXIT_OK;
	}
	for (size_t i = 0; i < plan->count; i++)
		ob_buf_addf(&names, "%s%s", i ? ", " : "", plan->relays[i]->name);
	int r = ob_cli_fail("several relays: %s; choose one with --relay", ob_buf_str(&names));
	ob_buf_done(&names);
	return r;
}

static int choose_sink(struct ob_replay *replay)
{
	const struct ob_config *config = replay->plan->config;
	const char *wanted = is_bare_url(replay->cli) ? NULL : replay->args->sink;
	struct ob_buf names = OB_BUF_INIT(1000);

	for (size_t i = 0; wanted && i < config->sink_count; i++) {
		if (strcmp(config->sinks[i].name, wanted) == 0) {
			replay->conf.sink = &config->sinks[i];
			wanted = NULL;
		}
	}
	if (!wanted)
		return OB_EXIT_OK;
	for (size_t i = 0; i < config->sink_count; i++)
		ob_buf_addf(&names, "%s%s", i ? ", " : "", config->sinks[i].name);
	int r = ob_cli_fail("%s has no sink '%s'; it has %s", replay->cli->config, wanted,
			    ob_buf_str(&names));
	ob_buf_done(&names);
	return r;
}

/* The headers of a route and ours, which tells whoever gets the message that it is sent again. */
static bool add_header(struct ob_replay *replay, struct ob_config_route *route)
{
	size_t count = 0;
	struct ob_config_header *list =
		ob_arena_alloc(&replay->arena, (route->header_count + 1) * sizeof(*list));

	if (!list)
		return false;
	for (size_t i = 0; i < route->header_count; i++) {
		if (strcasecmp(route->headers[i].name, header_name) != 0)
			list[count++] = route->headers[i];
	}
	list[count++] = (struct ob_config_header){ header_name, replay->name };
	route->headers = list;
	route->header_count = count;
	return count <= OB_CONFIG_HEADERS_MAX;
}

static int mark(struct ob_replay *replay)
{
	struct ob_config_route *route = &replay->conf.route;
	struct ob_config_rule *rules =
		ob_arena_alloc(&replay->arena, (route->rule_count + 1) * sizeof(*rules));
	bool fits = rules && add_header(replay, route);

	for (size_t i = 0; fits && i < route->rule_count; i++) {
		rules[i] = route->rules[i];
		fits = add_header(replay, &rules[i].route);
	}
	if (!fits)
		return ob_cli_fail("relay %s has %d headers: there is no room for %s",
				   replay->conf.name, OB_CONFIG_HEADERS_MAX, header_name);
	route->rules = rules;
	return OB_EXIT_OK;
}

/* ---- from where to where ---------------------------------------------------- */

static int compare_seqs(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The number of the message that is read by the relay; 0 and printed when there is none. */
static int64_t find_seq(struct ob_replay *replay, const char *text, struct ob_batch *batch)
{
	struct ob_uuid id;
	struct ob_filter filter = { .id = &id, .limit = ROWS_MAX };
	struct ob_err err = OB_ERR_INIT;
	int64_t now_us;

	(void)ob_uuid_parse(ob_str(text), &id); /* checked before */
	if (ob_store_list(replay->store, &filter, batch, &now_us, &err) < 0) {
		(void)ob_cli_fail("%s", err.msg);
		return 0;
	}
	for (uint32_t i = 0; i < batch->count; i++) {
		if (ob_str_eq(batch->messages[i].target, ob_str(replay->conf.reads)))
			return batch->messages[i].seq;
	}
	(void)ob_cli_fail("no message %s for target %s: it was removed since, or never committed",
			  text, replay->conf.reads);
	return 0;
}

static int find_ids(struct ob_replay *replay)
{
	const struct ob_cli *cli = replay->cli;
	struct ob_replay_which *w = &replay->which;
	struct ob_batch batch;
	int r = OB_EXIT_OK;

	if (!cli->operand_count)
		return OB_EXIT_OK;
	w->seqs = ob_arena_alloc(&replay->arena, cli->operand_count * sizeof(*w->seqs));
	if (!w->seqs)
		return ob_cli_fail("out of memory");
	ob_batch_init(&batch);
	for (size_t i = 0; !r && i < cli->operand_count; i++) {
		int64_t seq = find_seq(replay, cli->operands[i], &batch);

		if (seq)
			w->seqs[w->seq_count++] = seq;
		else
			r = OB_EXIT_FAILURE;
	}
	ob_batch_done(&batch);
	qsort(w->seqs, w->seq_count, sizeof(*w->seqs), compare_seqs);
	return r;
}

/* The newest number there is: what comes after it is no part of a replay. */
static int find_end(struct ob_replay *replay)
{
	const struct ob_filter newest = { .newest_first = true, .limit = 1 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	int64_t now_us;
	int r = OB_EXIT_OK;

	ob_batch_init(&batch);
	if (ob_store_list(replay->store, &newest, &batch, &now_us, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (batch.count)
		replay->end_seq = batch.messages[0].seq;
	ob_batch_done(&batch);
	return r;
}

static int find_range(struct ob_replay *replay)
{
	const struct ob_replay_args *a = replay->args;
	const struct ob_replay_which *w = &replay->which;
	int r = find_end(replay);

	if (!r)
		r = find_ids(replay);
	if (r)
		return r;
	int64_t from = a->from;
	if (w->seq_count) {
		from = w->seqs[0] > from ? w->seqs[0] : from;
		replay->end_seq = w->seqs[w->seq_count - 1];
	}
	if (a->to && a->to < replay->end_seq)
		replay->end_seq = a->to;
	replay->place = (struct ob_place){ .start = OB_START_BEGINNING };
	if (from)
		replay->place = (struct ob_place){ .start = OB_START_SEQ, .at = from };
	else if (a->since)
		replay->place = (struct ob_place){ .start = OB_START_TIME, .at = w->since_us };
	replay->empty = replay->end_seq == 0 || from > replay->end_seq;
	return OB_EXIT_OK;
}

/* ---- the whole ------------------------------------------------------------- */

int ob_replay_name_taken(const struct ob_replay *replay)
{
	return ob_cli_fail("there is a reader %s already: give this one another --name",
			   replay->name);
}

static int open_store(struct ob_replay *replay)
{
	struct ob_readers readers = { 0 };
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (ob_store_connect(&replay->conf.store->conf, &replay->store, &err) < 0 ||
	    ob_store_check(replay->store, &err) < 0 ||
	    ob_readers_load(&readers, replay->store, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (ob_readers_find(&readers, replay->name))
		r = ob_replay_name_taken(replay);
	ob_readers_done(&readers);
	return r;
}

int ob_replay_plan(struct ob_replay *replay)
{
	replay->arena = OB_ARENA_INIT(ARENA_MAX);
	int r = read_args(replay);

	if (!r)
		r = load(replay);
	if (!r)
		r = choose_relay(replay);
	if (!r)
		r = choose_sink(replay);
	if (!r)
		r = mark(replay);
	if (!r && replay->cli->json && ob_work_uses_stdout(&replay->conf))
		r = ob_cli_usage(replay->cli,
				 "--json writes to standard output, and so does the sink %s",
				 replay->conf.sink->name);
	replay->conf.name = replay->name;
	if (!r)
		r = open_store(replay);
	return r ? r : find_range(replay);
}

void ob_replay_done(struct ob_replay *replay)
{
	ob_store_free(replay->store);
	ob_work_plan_unref(replay->plan);
	ob_arena_done(&replay->arena);
}

/* SPDX-License-Identifier: MIT */
/* The operator verbs: their table, their options, and what a command line of theirs means. */
#include "cli/operate/operate.h"

#include "operate/readers.h"

#include <string.h>

const char *ob_operate_phrase(const struct ob_operate_task *task, bool did)
{
	const struct ob_verb_rule *verb = &ob_verb_rules[task->verb];

	return did ? verb->did : verb->ask;
}

void ob_operate_json(struct ob_jout *j, const struct ob_operate_task *task, const char *reader,
		     const struct ob_message *m, const char *state, const char *error)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "verb", ob_str(ob_verb_rules[task->verb].name));
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "reader", ob_str(reader));
	ob_jout_text(j, "state", ob_str(state));
	ob_jout_bool(j, "done", !error && !task->args->dry_run);
	ob_jout_bool(j, "dry_run", task->args->dry_run);
	ob_jout_text(j, "error", ob_str(error));
	ob_jout_end(j, '}');
}

static int unknown_state(const struct ob_cli *cli, const char *word)
{
	static const char *const names[] = {
#define X(name, text) (text),
		OB_VIEW_MAP(X)
#undef X
	};
	const char *near = ob_suggest(word, names, OB_VIEW_COUNT);
	struct ob_buf all = OB_BUF_INIT(400);

	if (near)
		return ob_cli_usage(cli, "--state: no state '%s'; did you mean '%s'?", word, near);
	ob_views_text((1U << OB_VIEW_COUNT) - 1, "or", &all);
	int r = ob_cli_usage(cli, "--state: no state '%s'; it is one of %s", word,
			     ob_buf_str(&all));
	ob_buf_done(&all);
	return r;
}

/* A state that was named but allows nothing is a mistake to hear of, not zero rows. */
static int check_allowed(const struct ob_operate_task *task, const char *word, unsigned view)
{
	const struct ob_verb_rule *verb = &ob_verb_rules[task->verb];
	struct ob_buf all = OB_BUF_INIT(400);

	if (verb->allowed & view)
		return OB_EXIT_OK;
	ob_views_text(verb->allowed, "and", &all);
	int r = ob_cli_usage(task->cli, "--state: only %s messages can be %s, not %s ones",
			     ob_buf_str(&all), verb->can, word);
	ob_buf_done(&all);
	return r;
}

/* "failed,dead" */
static int parse_states(const struct ob_operate_task *task, const char *text, unsigned *ret_views)
{
	unsigned views = 0;

	for (;;) {
		size_t n = strcspn(text, ",");
		char word[32];

		(void)snprintf(word, sizeof(word), "%.*s", n < 31 ? (int)n : 31, text);
		int view = ob_view_parse(word);
		if (view < 0)
			return unknown_state(task->cli, word);
		int r = check_allowed(task, word, 1U << view);
		if (r)
			return r;
		views |= 1U << view;
		if (!text[n])
			break;
		text += n + 1;
	}
	*ret_views = views;
	return OB_EXIT_OK;
}

static int check_ids(const struct ob_operate_task *task)
{
	const struct ob_operate_args *a = task->args;
	struct ob_uuid id;

	if (a->key || a->type || a->aggregate || a->event || a->state || a->all)
		return ob_cli_usage(task->cli, "give ids or filters, not both");
	for (size_t i = 0; i < task->id_count; i++) {
		if (!ob_uuid_parse(ob_str(task->ids[i]), &id))
			return ob_cli_usage(task->cli, "'%s' is not a UUID", task->ids[i]);
	}
	return OB_EXIT_OK;
}

static int make_filter(const struct ob_operate_task *task, struct ob_filter *ret_filter)
{
	const struct ob_operate_args *a = task->args;
	unsigned views = ob_verb_rules[task->verb].usual;

	if (!a->key && !a->type && !a->aggregate && !a->event && !a->state && !a->all)
		return ob_cli_usage(
			task->cli,
			"say which messages: their ids, a filter such as --key, or --all");
	int r = a->state ? parse_states(task, a->state, &views) : OB_EXIT_OK;
	if (r)
		return r;
	*ret_filter = (struct ob_filter){ .views = views,
					  .key = a->key,
					  .aggregate_type = a->type,
					  .aggregate_id = a->aggregate,
					  .event_type = a->event };
	return OB_EXIT_OK;
}

int ob_operate_run(const struct ob_operate_task *task)
{
	struct ob_readers readers = { 0 };
	struct ob_filter filter = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	int r = task->id_count ? check_ids(task) : make_filter(task, &filter);

	if (r)
		return r;
	r = ob_session_open(&session, task->cli);
	if (!r && ob_readers_name(&readers, session.store, task->args->reader, false,
				  &filter.reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && task->id_count)
		r = ob_operate_ids(task, filter.reader, session.store);
	else if (!r)
		r = ob_operate_bulk(task, &filter, session.store);
	ob_readers_done(&readers);
	ob_session_done(&session);
	return r;
}

#define TEXT_OPTION(option, word, text) \
	{ \
		.name = #option, .arg = (word), .type = OB_CMD_TEXT, \
		.offset = offsetof(struct ob_operate_args, option), .help = (text) \
	}

const struct ob_cmd_opt ob_operate_options[] = {
	TEXT_OPTION(key, "KEY", "Only this ordering key, such as order:1042."),
	TEXT_OPTION(type, "TYPE", "Only this aggregate type."),
	TEXT_OPTION(aggregate, "ID", "Only this aggregate id."),
	TEXT_OPTION(event, "EVENT", "Only this event type."),
	TEXT_OPTION(reader, "NAME", "Whose messages; may be left out when there is one reader."),
	TEXT_OPTION(state, "STATES", "Only these states, with commas between them."),
	{
		.name = "all",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_operate_args, all),
		.help = "No filter is needed.",
	},
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_operate_args, yes),
		.help = "Do not ask.",
	},
	{
		.name = "dry-run",
		.letter = 'n',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_operate_args, dry_run),
		.help = "Only say which messages it would be.",
	},
	OB_REASON_OPTION(struct ob_operate_args, reason),
	OB_CMD_OPT_END,
};

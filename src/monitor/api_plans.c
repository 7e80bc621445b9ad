/* SPDX-License-Identifier: MIT */
/* The API of verbs: plan, run, watch, stop. */
#include "monitor/api.h"
#include "monitor/jobs.h"
#include "monitor/routes.h"
#include "operate/readers.h"

#include <stdio.h>

enum { TYPE_NUMBER = 100, IDS_MAX = 1000, COMMAND_MAX = 8192 };

/* ---- what is asked ---------------------------------------------------- */

static bool bad(struct ob_request *req, const char *what)
{
	ob_request_fail(req, 400, "invalid", "%s", what);
	return false;
}

/* A text of the body into the plan's memory; absent stays NULL. False: answered. */
static bool take_text(struct ob_request *req, struct ob_plan *plan, const json_t *from,
		      const char *name, const char **ret)
{
	const json_t *value = json_object_get(from, name);
	const char *text = json_string_value(value);
	char line[80];

	*ret = NULL;
	if (!value || json_is_null(value))
		return true;
	(void)snprintf(line, sizeof(line), "%s is no text", name);
	/* A NUL would cut it short, and another message could match. */
	if (!text || strlen(text) != json_string_length(value))
		return bad(req, line);
	*ret = ob_arena_strdup(&plan->arena, text);
	return *ret || bad(req, "out of memory");
}

static bool take_ids(struct ob_request *req, struct ob_plan *plan, const json_t *list)
{
	size_t count = json_array_size(list);
	struct ob_uuid *ids = ob_arena_alloc(&plan->arena, (count + 1) * sizeof(*ids));

	if (!json_is_array(list) || count == 0 || count > IDS_MAX || !ids)
		return bad(req, "ids is a list of 1 to 1000 UUIDs");
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text || !ob_uuid_parse(ob_str(text), &ids[i]))
			return bad(req, "ids has something that is no UUID");
	}
	plan->ask.ids = ids;
	plan->ask.id_count = count;
	return true;
}

static bool take_states(struct ob_request *req, struct ob_plan *plan, const json_t *list)
{
	const struct ob_verb_rule *rule = &ob_verb_rules[plan->ask.verb];

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) == 0)
		return bad(req, "filter.state is a list of states");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		int view = name ? ob_view_parse(name) : -1;

		if (view < 0 || !(rule->allowed & 1U << view)) {
			ob_request_fail(req, 400, "invalid", "%s messages cannot be %s",
					name ? name : "such", rule->can);
			return false;
		}
		plan->filter.views |= 1U << view;
	}
	return true;
}

static bool take_filter(struct ob_request *req, struct ob_plan *plan, const json_t *from)
{
	struct ob_filter *f = &plan->filter;

	if (!json_is_object(from))
		return bad(req, "filter is no object");
	if (!take_states(req, plan, json_object_get(from, "state")))
		return false;
	plan->ask.filter = f;
	return take_text(req, plan, from, "key", &f->key) &&
	       take_text(req, plan, from, "aggregate_type", &f->aggregate_type) &&
	       take_text(req, plan, from, "aggregate_id", &f->aggregate_id) &&
	       take_text(req, plan, from, "event_type", &f->event_type) &&
	       take_text(req, plan, from, "correlation", &f->correlation_id) &&
	       take_text(req, plan, from, "error", &f->error);
}

static bool take_verb(struct ob_request *req, struct ob_plan *plan, const json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "verb"));

	for (int verb = 0; name && verb < OB_VERBS; verb++) {
		if (strcmp(ob_verb_rules[verb].name, name) == 0) {
			plan->ask.verb = (enum ob_verb)verb;
			return true;
		}
	}
	return bad(req, "verb is none of retry, skip, discard");
}

/* Known at the second step at the latest, since it is typed while the first is looked at. */
static bool take_reason(struct ob_request *req, struct ob_plan *plan, const json_t *body)
{
	const char *reason;

	if (!take_text(req, plan, body, "reason", &reason))
		return false;
	if (reason && strlen(reason) > OB_REASON_MAX)
		return bad(req, "reason has at most 500 bytes");
	if (reason)
		plan->reason = reason;
	return true;
}

static bool take_ask(struct ob_request *req, struct ob_plan *plan, const json_t *body)
{
	const json_t *ids = json_object_get(body, "ids"), *filter = json_object_get(body, "filter");
	const json_t *group = json_object_get(body, "group");

	if (!take_verb(req, plan, body) ||
	    !take_text(req, plan, body, "reader", &plan->ask.reader) ||
	    !take_reason(req, plan, body))
		return false;
	if (!!ids + !!filter + !!group != 1)
		return bad(req, "exactly one of ids, group and filter says which messages");
	if (ids)
		return take_ids(req, plan, ids);
	return filter ? take_filter(req, plan, filter)
		      : take_text(req, plan, body, "group", &plan->ask.group);
}

/* ---- planning --------------------------------------------------------- */

/* The only reader, where none is named. */
static int choose_reader(struct ob_plan *plan, struct ob_store *store, struct ob_err *err)
{
	struct ob_readers readers;
	const char *name;
	int r = ob_readers_name(&readers, store, plan->ask.reader, false, &name, err);

	if (r == 0) {
		plan->ask.reader = ob_arena_strdup(&plan->arena, name);
		if (!plan->ask.reader)
			r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	}
	ob_readers_done(&readers);
	return r;
}

static int collect(struct ob_request *req, struct ob_plan *plan, struct ob_plan_set *set,
		   struct ob_asked *asked, struct ob_err *err)
{
	int r = choose_reader(plan, asked->store, err);

	*set = (struct ob_plan_set){ 0 };
	if (r == 0)
		r = ob_plan_collect(set, asked->store, req->monitor->config, &plan->ask, err);
	return r;
}

static void plan_json(struct ob_request *req, const struct ob_plan *plan,
		      const struct ob_plan_set *set)
{
	struct ob_buf command = OB_BUF_INIT(COMMAND_MAX);
	bool several = ob_watch_count(req->monitor->watch) > 1;
	struct ob_jout *j = &req->out;

	ob_plan_command(&plan->ask, set, several ? plan->pool->entry->name : NULL, &command);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "plan", ob_str(plan->id));
	ob_jout_text(j, "store", ob_str(plan->pool->entry->name));
	ob_jout_text(j, "reader", ob_str(plan->ask.reader));
	ob_jout_text(j, "verb", ob_str(ob_verb_rules[plan->ask.verb].name));
	ob_jout_int(j, "count", (int64_t)set->count);
	ob_jout_int(j, "refused", (int64_t)set->refused);
	ob_jout_begin(j, "sample", '[');
	for (uint32_t i = 0; i < set->sample.count; i++)
		ob_api_brief(j, plan->ask.reader, &set->sample.messages[i]);
	ob_jout_end(j, ']');
	ob_jout_text(j, "command", ob_buf_view(&command));
	ob_jout_bool(j, "type_number", set->count >= TYPE_NUMBER);
	ob_jout_int(j, "expires_us", plan->expires_us);
	ob_jout_end(j, '}');
	ob_buf_done(&command);
}

static void make_plan(struct ob_request *req, const json_t *body)
{
	const char *store = json_string_value(json_object_get(body, "store"));
	struct ob_plan_set set = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;

	if (!ob_request_store(req, store, &asked))
		return;
	struct ob_plan *plan = ob_plan_new(asked.pool);
	int r = plan ? 0 : ob_err_set(&err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	bool good = plan && take_ask(req, plan, body);
	if (good)
		r = collect(req, plan, &set, &asked, &err);
	ob_request_end(req, &asked, r, &err);
	if (good && r == 0) {
		plan->count = set.count;
		plan->hash = set.hash;
		ob_jobs_keep_take(req->monitor->jobs, plan);
		plan_json(req, plan, &set);
		plan = NULL;
	}
	ob_plan_set_done(&set);
	ob_plan_free(plan);
}

void ob_api_plan(struct ob_request *req)
{
	json_t *body = ob_request_json(req);

	req->type = "application/json";
	if (body)
		make_plan(req, body);
	json_decref(body);
}

/* ---- running ---------------------------------------------------------- */

static void refuse_changed(struct ob_request *req, size_t was, size_t now)
{
	ob_request_fail(req, 409, "changed",
			"the messages have changed: there were %zu, now there are %zu; look again",
			was, now);
	req->out.b.len--; /* the brace that closes it */
	ob_jout_int(&req->out, "count", (int64_t)now);
	ob_jout_end(&req->out, '}');
}

static void run_plan(struct ob_request *req, struct ob_plan *plan)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_plan_set set = { 0 };
	struct ob_asked asked;
	bool taken = false;

	if (!ob_request_store(req, plan->pool->entry->name, &asked)) {
		ob_plan_free(plan);
		return;
	}
	int r = collect(req, plan, &set, &asked, &err);
	ob_request_end(req, &asked, r, &err);
	if (r == 0 && (set.count != plan->count || set.hash != plan->hash)) {
		refuse_changed(req, plan->count, set.count);
	} else if (r == 0) {
		/* The plan may be gone as soon as its job runs. */
		char id[OB_JOB_ID];

		(void)snprintf(id, sizeof(id), "%s", plan->id);
		taken = ob_jobs_run_take(req->monitor->jobs, plan, &set, req->who, req->origin);
		if (!taken)
			ob_request_fail(req, 429, "busy", "other verbs run: wait for one to end");
		else if (ob_job_json(req->monitor->jobs, id, &req->out))
			req->status = 202;
	}
	ob_plan_set_done(&set);
	if (!taken)
		ob_plan_free(plan);
}

void ob_api_run(struct ob_request *req)
{
	json_t *body = ob_request_json(req);
	const json_t *count = json_object_get(body, "count");

	req->type = "application/json";
	if (body && !json_is_integer(count)) {
		(void)bad(req, "count is the number of messages that the plan said");
	} else if (body) {
		struct ob_plan *plan = ob_jobs_pick(req->monitor->jobs, req->word);

		if (!plan)
			ob_request_fail(req, 404, "not_found",
					"no such plan; it may be over: plan again");
		else if (!take_reason(req, plan, body))
			ob_plan_free(plan);
		else if (json_integer_value(count) == (json_int_t)plan->count)
			run_plan(req, plan);
		else {
			refuse_changed(req, (size_t)json_integer_value(count), plan->count);
			ob_plan_free(plan);
		}
	}
	json_decref(body);
}

/* ---- jobs ------------------------------------------------------------- */

void ob_api_job(struct ob_request *req)
{
	req->type = "application/json";
	if (!ob_job_json(req->monitor->jobs, req->word, &req->out))
		ob_request_fail(req, 404, "not_found", "no such job");
}

void ob_api_job_stop(struct ob_request *req)
{
	(void)ob_job_stop(req->monitor->jobs, req->word);
	ob_api_job(req);
}

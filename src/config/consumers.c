/* SPDX-License-Identifier: MIT */
/* Reading consumers: and giving each its store, its source and its handler. */
#include "config/sections.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

_Static_assert(offsetof(struct ob_consumer_draft, consumer) == 0, "the tables serve both structs");

enum { NAME_MAX_CHARS = 200 };
enum { DEDUP_IDS, DEDUP_POSITION, DEDUP_NONE }; /* dedup_names */

/* ---- the source ------------------------------------------------------ */

static bool is_type(const char *key)
{
	return strcmp(key, "type") == 0;
}

/* Keys that neither the source nor its connection knows. */
static void check_keys(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct ob_feed_ops *ops)
{
	for (struct ob_yaml *child = node->first; child; child = child->next) {
		if (is_type(child->key) || ob_feed_opt(ops, child->key))
			continue;
		const char *near = ob_opt_suggest(ops->opts, child->key);

		ob_diags_add(&walk->diags, child->key_at, "unknown key '%.80s' in %s%s%s%s",
			     child->key, path, near ? "; did you mean '" : "", near ? near : "",
			     near ? "'?" : "");
	}
}

/* Those of the sink's options that are about its connection. */
static const struct ob_opt *link_table(struct ob_walk *walk, const struct ob_feed_ops *ops)
{
	struct ob_opt *table;
	size_t count = 0, n = 0;

	while (ops->link_opts[count])
		count++;
	table = ob_arena_alloc(walk->arena, (count + 1) * sizeof(*table));
	for (const struct ob_opt *opt = ops->link->opts; table && opt->name; opt++) {
		if (ob_feed_opt(ops, opt->name) == opt)
			table[n++] = *opt;
	}
	walk->failed |= !table;
	return table;
}

static void keep_options(struct ob_walk *walk, const struct ob_backend_options *own,
			 const struct ob_backend_options *link, struct ob_config_consumer *c)
{
	struct ob_opt_value *all =
		ob_arena_alloc(walk->arena, (own->count + link->count + 1) * sizeof(*all));

	if (!all) {
		walk->failed = true;
		return;
	}
	if (own->count)
		memcpy(all, own->values, own->count * sizeof(*all));
	if (link->count)
		memcpy(all + own->count, link->values, link->count * sizeof(*all));
	c->feed_options = all;
	c->feed_option_count = own->count + link->count;
}

static const char *scalar(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	const char *text = NULL;

	return node && ob_walk_text(walk, node, path, "a text", &text) ? text : NULL;
}

/* A log of ours is a store of the configuration. */
static void find_log(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		     struct ob_consumer_draft *draft)
{
	struct ob_yaml *value = ob_yaml_get(node, "store");
	const char *name = scalar(walk, value, path);

	if (name)
		draft->consumer.log = ob_config_find_store(draft->config, name);
	if (name && !draft->consumer.log)
		ob_walk_fault(walk, value, "%s.store: no store '%.80s' in 'stores'", path, name);
}

void ob_read_source(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_section *section, void *base)
{
	struct ob_consumer_draft *draft = base;
	struct ob_config_consumer *c = &draft->consumer;
	struct ob_backend_options own = { 0 }, link = { 0 };
	const struct ob_feed_backend *backend;
	struct ob_err err = OB_ERR_INIT;
	size_t faults = walk->diags.count;

	(void)section;
	if (!node) {
		ob_diags_add(&walk->diags, ob_walk_place(node),
			     "%s is missing: write for example 'source: { type: redis, url: "
			     "\"redis://localhost\", stream: orders }'",
			     path);
		return;
	}
	if (!ob_walk_is_mapping(walk, node, path))
		return;
	struct ob_yaml *type = ob_yaml_get(node, "type");
	const char *name = scalar(walk, type, path);
	if (!name || ob_feed_find(name, &backend, &err) < 0) {
		ob_walk_fault(walk, type ? type : node, "%s.type: %s", path,
			      name ? err.msg : "is missing");
		return;
	}
	c->feed = backend->ops;
	check_keys(walk, node, path, c->feed);
	ob_read_backend_options(walk, node, path, c->feed->opts, c->feed->size, &own);
	if (c->feed->link) {
		const struct ob_opt *table = link_table(walk, c->feed);

		if (table)
			ob_read_backend_options(walk, node, path, table, c->feed->link->size,
						&link);
	}
	keep_options(walk, &own, &link, c);
	if (ob_feed_opt(c->feed, "store"))
		find_log(walk, node, path, draft);
	const struct ob_feed_conf conf = { .ops = c->feed,
					   .options = c->feed_options,
					   .option_count = c->feed_option_count,
					   .store = c->log ? &c->log->conf : NULL,
					   .group = "check",
					   .member = "check" };
	if (walk->diags.count == faults && !walk->failed && ob_feed_check(&conf, &err) < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
}

/* ---- the handler ----------------------------------------------------- */

void ob_read_handler(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		     const struct ob_section *section, void *base)
{
	struct ob_config_consumer *c = &((struct ob_consumer_draft *)base)->consumer;
	struct ob_backend_options options = { 0 };
	const struct ob_sink_backend *backend;
	struct ob_err err = OB_ERR_INIT;
	size_t faults = walk->diags.count;

	if (!node || !ob_walk_is_mapping(walk, node, path))
		return;
	if (ob_sink_find(section->name, &backend, &err) < 0) {
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
		return;
	}
	const struct ob_section plain = { .opts = NULL };
	ob_walk_keys(walk, node, path, &plain, backend->ops->opts);
	ob_read_backend_options(walk, node, path, backend->ops->opts, backend->ops->size, &options);
	if (c->by != OB_CONSUME_NONE)
		ob_walk_fault(walk, node, "%s: a consumer has one handler", path);
	c->by = strcmp(section->name, "exec") == 0 ? OB_CONSUME_EXEC : OB_CONSUME_HTTP;
	c->handler = backend->ops;
	c->handler_options = options.values;
	c->handler_option_count = options.count;
	if (walk->diags.count == faults && !walk->failed &&
	    ob_sink_check(c->handler, options.values, options.count, &err) < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
}

void ob_read_consumer_failures(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			       const struct ob_section *section, void *base)
{
	struct ob_config_consumer *c = &((struct ob_consumer_draft *)base)->consumer;

	(void)section;
	ob_read_failure_list(walk, node, path, &c->failures, &c->failure_count);
}

static void check_sql(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      struct ob_consumer_draft *draft)
{
	struct ob_config_consumer *c = &draft->consumer;
	struct ob_yaml *value = ob_yaml_get(node, "sql");
	const struct ob_store_backend *backend;
	struct ob_message_sql *sql = NULL;
	struct ob_err err = OB_ERR_INIT;

	if (!draft->sql) {
		if (c->by == OB_CONSUME_NONE)
			ob_diags_add(&walk->diags, ob_walk_place(node),
				     "%s has no handler: write 'sql', 'exec' or 'http'", path);
		return;
	}
	if (c->by != OB_CONSUME_NONE)
		ob_walk_fault(walk, value, "%s.sql: a consumer has one handler", path);
	c->by = OB_CONSUME_SQL;
	c->sql = ob_walk_keep(walk, draft->sql);
	if (c->store && c->store->conf.url &&
	    ob_store_find(c->store->conf.url, &backend, &err) == 0 &&
	    ob_message_sql_parse(backend->ops, draft->sql, &sql, &err) < 0)
		ob_walk_fault(walk, value, "%s.sql: %s", path, err.msg);
	ob_message_sql_free(sql);
}

/* ---- one consumer ---------------------------------------------------- */

static void find_store(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       struct ob_consumer_draft *draft)
{
	struct ob_yaml *value = ob_yaml_get(node, "store");

	if (value && value->faulty)
		return;
	draft->consumer.store = ob_config_find_store(draft->config, draft->store);
	if (draft->consumer.store || draft->config->store_count == 0)
		return;
	if (draft->store)
		ob_walk_fault(walk, value, "%s.store: no store '%.80s' in 'stores'", path,
			      draft->store);
	else
		ob_diags_add(&walk->diags, ob_walk_place(node),
			     "%s needs 'store': there are %zu to choose from", path,
			     draft->config->store_count);
}

static void find_letters(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			 struct ob_consumer_draft *draft)
{
	struct ob_config_consumer *c = &draft->consumer;
	struct ob_yaml *value = ob_yaml_get(node, "dead_letters");

	if (!draft->letter_sink)
		return;
	for (size_t i = 0; i < draft->config->sink_count; i++) {
		if (strcmp(draft->config->sinks[i].name, draft->letter_sink) == 0)
			c->letter_sink = &draft->config->sinks[i];
	}
	c->letter_destination = ob_walk_keep(walk, draft->letter_destination);
	if (!c->letter_sink)
		ob_walk_fault(walk, value, "%s.dead_letters.sink: no sink '%.80s' in 'sinks'", path,
			      draft->letter_sink);
	if (c->on_dead == OB_ON_DEAD_HOLD)
		ob_walk_fault(walk, value,
			      "%s.dead_letters needs 'on_dead: release': a message that leaves "
			      "cannot hold its key",
			      path);
}

static void check_dedup(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			struct ob_config_consumer *c)
{
	struct ob_yaml *value = ob_yaml_get(node, "dedup");

	if (value && value->faulty)
		return;
	if (c->by != OB_CONSUME_SQL) {
		if (value && c->dedup == DEDUP_POSITION)
			ob_walk_fault(walk, value,
				      "%s.dedup: position needs an sql handler, whose transaction "
				      "it is written in",
				      path);
		c->dedup = DEDUP_NONE; /* the handler asks the inbox itself */
		return;
	}
	if (c->dedup != DEDUP_POSITION)
		return;
	if (c->feed && !(c->feed->caps & OB_FEED_PLACES))
		ob_walk_fault(walk, value, "%s.dedup: the %s source has no positions", path,
			      c->feed->name);
	if (c->ordering != 0)
		ob_walk_fault(walk, value,
			      "%s.dedup: position needs 'ordering: key': one process at a time",
			      path);
}

static void check_name(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct ob_consumer_draft *draft)
{
	struct ob_yaml *value = ob_yaml_get(node, "name");
	struct ob_str name = ob_str(draft->name);

	if (!value || value->faulty || !name.p)
		return;
	bool control = false;
	for (size_t i = 0; i < name.n; i++)
		control |= (unsigned char)name.p[i] < 0x20;
	if (name.n == 0 || control || ob_utf8_count(name) > NAME_MAX_CHARS)
		ob_walk_fault(walk, value, "%s.name: must be 1 to %d characters on one line", path,
			      NAME_MAX_CHARS);
	for (size_t i = 0; i < draft->config->consumer_count; i++) {
		if (strcmp(draft->config->consumers[i].name, draft->name) == 0)
			ob_walk_fault(walk, value,
				      "%s: consumers[%zu] has the name '%.80s' already", path, i,
				      draft->name);
	}
}

static void read_consumer(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  struct ob_config *config)
{
	struct ob_consumer_draft draft = { .config = config };
	struct ob_err err = OB_ERR_INIT;

	if (ob_section_defaults(&ob_consumer_section, &draft, &err) < 0) {
		walk->failed = true;
		return;
	}
	ob_walk_fill(walk, node, path, &ob_consumer_section, &draft);
	check_name(walk, node, path, &draft);
	find_store(walk, node, path, &draft);
	check_sql(walk, node, path, &draft);
	find_letters(walk, node, path, &draft);
	check_dedup(walk, node, path, &draft.consumer);
	draft.consumer.name = ob_walk_keep(walk, draft.name ? draft.name : "");
	draft.consumer.written = ob_walk_written(walk, node);
	ob_opt_free(ob_consumer_section.opts, &draft);
	free(draft.letter_sink);
	free(draft.letter_destination);
	config->consumers[config->consumer_count++] = draft.consumer;
}

void ob_read_consumers(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct ob_section *section, void *base)
{
	struct ob_config *config = base;
	size_t index = 0;

	(void)section;
	if (!node || ob_yaml_is_null(node) || !ob_walk_is_list(walk, node, path, "consumer"))
		return;
	config->consumers = ob_arena_alloc(walk->arena, node->count * sizeof(*config->consumers));
	if (!config->consumers) {
		walk->failed = true;
		return;
	}
	for (struct ob_yaml *item = node->first; item; item = item->next, index++) {
		char full[OB_PATH_SIZE];

		(void)snprintf(full, sizeof(full), "%s[%zu]", path, index);
		if (item->kind == OB_YAML_MAPPING)
			read_consumer(walk, item, full, config);
		else
			(void)ob_walk_is_mapping(walk, item, full); /* reports it */
	}
}

/* SPDX-License-Identifier: MIT */
/* Backends that exist in name only, with options of every kind, for the tests of the configuration.
 */
#include "feed/feed.h"
#include "sink/sink.h"
#include "store/store.h"

struct stub_store {
	struct ob_store base;
	int64_t busy_timeout;
	char *password;
	uint32_t pin;
};

struct stub_sink {
	struct ob_sink base;
	char *path, *token;
	int64_t max_size;
	bool fsync;
};

static const struct ob_opt store_opts[] = {
	{
		.name = "busy_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct stub_store, busy_timeout),
		.dflt = "5s",
		.min = 1,
		.max = 60000,
		.help = "Time to wait for a lock.",
	},
	{
		.name = "password",
		.type = OB_OPT_STR,
		.offset = offsetof(struct stub_store, password),
		.flags = OB_OPT_SECRET,
		.help = "A secret.",
	},
	{
		.name = "pin",
		.type = OB_OPT_U32,
		.offset = offsetof(struct stub_store, pin),
		.min = 1,
		.max = 9999,
		.flags = OB_OPT_SECRET,
		.help = "A secret number.",
	},
	OB_OPT_END,
};

static const struct ob_opt sink_opts[] = {
	{
		.name = "path",
		.type = OB_OPT_STR,
		.offset = offsetof(struct stub_sink, path),
		.flags = OB_OPT_REQUIRED,
		.help = "The file.",
	},
	{
		.name = "max_size",
		.type = OB_OPT_SIZE,
		.offset = offsetof(struct stub_sink, max_size),
		.dflt = "0",
		.help = "A | in a help.",
	},
	{
		.name = "fsync",
		.type = OB_OPT_BOOL,
		.offset = offsetof(struct stub_sink, fsync),
		.dflt = "true",
		.help = "Sync.",
	},
	OB_OPT_END,
};

static const struct ob_store_ops store_ops = {
	.name = "sqlite",
	.size = sizeof(struct stub_store),
	.opts = store_opts,
};
static const struct ob_sink_ops sink_ops = {
	.name = "file",
	.size = sizeof(struct stub_sink),
	.opts = sink_opts,
};
static const struct ob_sink_ops bare_ops = { .name = "stdout", .size = sizeof(struct ob_sink) };
static const struct ob_sink_ops bound_ops = { .name = "http",
					      .size = sizeof(struct ob_sink),
					      .ce_prefix = "ce-" };

const struct ob_store_backend ob_store_backends[] = {
	{ .name = "sqlite", .ops = &store_ops, .help = "Stub." },
	{ .name = "mysql", .package = "libmysql", .help = "Stub." },
	{ .name = NULL },
};

const struct ob_sink_backend ob_sink_backends[] = {
	{ .name = "stdout", .ops = &bare_ops, .help = "Stub." },
	{ .name = "file", .ops = &sink_ops, .help = "Stub." },
	{ .name = "http", .ops = &bound_ops, .help = "Stub." },
	{ .name = NULL },
};

int ob_store_find(const char *url, const struct ob_store_backend **ret_backend, struct ob_err *err)
{
	size_t n = strcspn(url, ":");

	if (strlen("sqlite") == n && strncmp(url, "sqlite:", n + 1) == 0) {
		*ret_backend = &ob_store_backends[0];
		return 0;
	}
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no such store");
}

int ob_sink_find(const char *type, const struct ob_sink_backend **ret_backend, struct ob_err *err)
{
	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		if (strcmp(b->name, type) == 0) {
			*ret_backend = b;
			return 0;
		}
	}
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no such sink '%s'", type);
}

int ob_sink_check(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
		  size_t option_count, struct ob_err *err)
{
	(void)ops;
	for (size_t i = 0; i < option_count; i++) {
		if (strcmp(options[i].value, "/nowhere") == 0)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "'%s' is no place",
					  options[i].value);
	}
	return 0;
}

int ob_sink_check_binary(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
			 size_t option_count, struct ob_err *err)
{
	(void)options;
	(void)option_count;
	if (ops->ce_prefix)
		return 0;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "CloudEvents has no binary mode for a sink of type '%s'; use "
			  "cloudevents-structured",
			  ops->name);
}

/* A source whose connection is the sink `file`. */
struct stub_feed {
	struct ob_feed base;
	char *stream;
};

static const struct ob_opt feed_opts[] = {
	{
		.name = "stream",
		.type = OB_OPT_STR,
		.offset = offsetof(struct stub_feed, stream),
		.flags = OB_OPT_REQUIRED,
		.help = "The stream.",
	},
	OB_OPT_END,
};

static const char *const feed_link_opts[] = { "path", NULL };

static const struct ob_feed_ops feed_ops = { .name = "redis",
					     .size = sizeof(struct stub_feed),
					     .opts = feed_opts,
					     .link = &sink_ops,
					     .link_opts = feed_link_opts };

const struct ob_feed_backend ob_feed_backends[] = {
	{ .name = "redis", .ops = &feed_ops, .help = "Stub." },
	{ .name = NULL },
};

int ob_feed_find(const char *type, const struct ob_feed_backend **ret_backend, struct ob_err *err)
{
	if (strcmp(type, "redis") != 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no such source '%s'", type);
	*ret_backend = &ob_feed_backends[0];
	return 0;
}

const struct ob_opt *ob_feed_opt(const struct ob_feed_ops *ops, const char *name)
{
	if (strcmp(name, "path") == 0)
		return ob_opt_find(ops->link->opts, name);
	return ob_opt_find(ops->opts, name);
}

int ob_feed_check(const struct ob_feed_conf *conf, struct ob_err *err)
{
	for (size_t i = 0; i < conf->option_count; i++) {
		if (strcmp(conf->options[i].value, "nowhere") == 0)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "there is no stream");
	}
	return 0;
}

int ob_message_sql_parse(const struct ob_store_ops *ops, const char *text,
			 struct ob_message_sql **ret_sql, struct ob_err *err)
{
	(void)ops;
	*ret_sql = NULL;
	return strstr(text, ":wrong")
		       ? ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "no value ':wrong'")
		       : 0;
}

void ob_message_sql_free(struct ob_message_sql *sql)
{
	(void)sql;
}

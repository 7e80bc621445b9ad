/* SPDX-License-Identifier: MIT */
/* From the command line and the file to the relays that shall run. */
#include "base/json.h"
#include "base/utf8.h"
#include "cli/work/work.h"

enum { YAML_BYTES = 256 * 1024 };

static void fault(struct ob_buf *faults, const char *text)
{
	ob_buf_adds(faults, text);
	ob_buf_addc(faults, '\n');
}

static bool names_url(const struct ob_cli *cli)
{
	return cli->store && strchr(cli->store, ':');
}

/* ---- a database and a sink, both of the command line -------------------- */

/* JSON is YAML; only ${...} must not be taken for a variable. */
static void add_text(struct ob_buf *yaml, const char *text)
{
	struct ob_buf safe = OB_BUF_INIT(YAML_BYTES);

	for (const char *p = text; *p; p++)
		ob_buf_adds(&safe, p[0] == '$' && p[1] == '{' ? "$$" : (char[]){ *p, '\0' });
	ob_json_add_string(yaml, ob_buf_view(&safe));
	yaml->failed = yaml->failed || safe.failed;
	ob_buf_done(&safe);
}

/* The option that says where the sink is: its url, path, command or brokers. */
static const struct ob_opt *place_option(const struct ob_sink_ops *ops)
{
	const struct ob_opt *opt = ops->opts;

	while (opt && opt->name && !(opt->flags & OB_OPT_REQUIRED))
		opt++;
	return opt && opt->name ? opt : NULL;
}

static bool takes_url(const struct ob_sink_ops *ops, const char *url)
{
	const struct ob_opt *opt = place_option(ops);
	struct ob_err ignored = OB_ERR_INIT;

	return opt && strcmp(opt->name, "url") == 0 &&
	       ob_sink_check(ops, &(struct ob_opt_value){ opt->name, url }, 1, &ignored) == 0;
}

/* `stdout`, `file:PATH`, or a URL: what stands before the colon is a type, or some type's scheme.
 */
static const struct ob_sink_backend *find_sink(const char *text)
{
	size_t n = strcspn(text, ":");

	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		if (strlen(b->name) == n && memcmp(b->name, text, n) == 0)
			return b;
	}
	for (const struct ob_sink_backend *b = ob_sink_backends; text[n] && b->name; b++) {
		if (b->ops && takes_url(b->ops, text))
			return b;
	}
	return NULL;
}

static int add_sink(struct ob_buf *yaml, const char *text, struct ob_buf *faults)
{
	const struct ob_sink_backend *backend = find_sink(text);
	const char *colon = strchr(text, ':');

	if (!backend) {
		ob_buf_addf(faults,
			    "--sink: '%.*s' is no sink: name a type that needs no more, such as "
			    "stdout, or file:PATH, or its URL\n",
			    (int)strcspn(text, ":"), text);
		return OB_EXIT_USAGE;
	}
	ob_buf_adds(yaml, "sinks: { out: { type: ");
	add_text(yaml, backend->name);

	const struct ob_opt *opt = colon && backend->ops ? place_option(backend->ops) : NULL;

	if (opt) {
		ob_buf_addf(yaml, ", %s: ", opt->name);
		add_text(yaml, strcmp(opt->name, "url") == 0 ? text : colon + 1);
	}
	ob_buf_adds(yaml, " } }\n");
	return OB_EXIT_OK;
}

static int load_url(const struct ob_cli *cli, const char *sink, struct ob_buf *faults,
		    struct ob_config **ret_config)
{
	struct ob_buf yaml = OB_BUF_INIT(YAML_BYTES);
	struct ob_err err = OB_ERR_INIT;

	/* Messages that went where nobody looks would count as delivered. */
	if (!sink) {
		fault(faults,
		      "--store names a database and no sink: add --sink, such as --sink stdout, "
		      "or --config with the file whose relays shall run on it");
		return OB_EXIT_USAGE;
	}
	ob_buf_adds(&yaml, "stores: { main: { url: ");
	add_text(&yaml, cli->store);
	ob_buf_adds(&yaml, " } }\n");
	int r = add_sink(&yaml, sink, faults);
	if (!r &&
	    ob_config_parse(ob_buf_view(&yaml), "the command line", faults, ret_config, &err) < 0)
		r = OB_EXIT_FAILURE;
	ob_buf_done(&yaml);
	return r;
}

/* The relays of the file, on this database instead of theirs. */
static int replace_store(const struct ob_cli *cli, struct ob_config *config, struct ob_buf *faults)
{
	const struct ob_store_backend *here = NULL, *there = NULL;
	struct ob_err err = OB_ERR_INIT;

	if (config->store_count != 1) {
		ob_buf_addf(faults,
			    "%s has %zu stores: a URL in --store cannot say which of them it "
			    "stands for; name one of them\n",
			    cli->config, config->store_count);
		return OB_EXIT_USAGE;
	}
	const char *url = ob_arena_strdup(&config->arena, cli->store);
	if (!url || ob_store_find(config->stores[0].conf.url, &there, &err) < 0 ||
	    ob_store_find(url, &here, &err) < 0) {
		fault(faults, "out of memory");
		return OB_EXIT_FAILURE;
	}
	config->stores[0].conf.url = url;
	if (here != there) /* options of another kind of database */
		config->stores[0].conf.option_count = 0;
	return OB_EXIT_OK;
}

static int load_file(const struct ob_cli *cli, struct ob_buf *faults, struct ob_config **ret_config)
{
	struct ob_err err = OB_ERR_INIT;

	if (!cli->config_given && access(cli->config, F_OK) != 0) {
		ob_buf_addf(faults,
			    "no %s here: 'outbox init' writes one, --config names another, "
			    "--store with --sink does without\n",
			    cli->config);
		return OB_EXIT_USAGE;
	}
	if (ob_config_load(cli->config, faults, ret_config, &err) < 0) {
		if (!faults->len)
			fault(faults, err.msg);
		return OB_EXIT_FAILURE;
	}
	return OB_EXIT_OK;
}

static int load(const struct ob_cli *cli, const char *sink, struct ob_buf *faults,
		struct ob_config **ret_config)
{
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;
	bool url = names_url(cli);

	/* Its message is better than one about a file that is not there. */
	if (url && ob_config_of_store(cli->store, &config, &err) < 0) {
		fault(faults, err.msg);
		return OB_EXIT_FAILURE;
	}
	ob_config_free(config);
	if (url && !cli->config_given)
		return load_url(cli, sink, faults, ret_config);
	if (sink) {
		fault(faults,
		      "--sink goes with the URL of a database in --store; the relays of a "
		      "configuration name their sinks");
		return OB_EXIT_USAGE;
	}
	int r = load_file(cli, faults, ret_config);
	if (!r && url)
		r = replace_store(cli, *ret_config, faults);
	return r;
}

/* ---- choosing ------------------------------------------------------------ */

static bool is_named(const struct ob_cmd_list *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->words[i], name) == 0)
			return true;
	}
	return names->count == 0;
}

static const struct ob_config_relay *find_relay(const struct ob_config *config, const char *name)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (strcmp(config->relays[i].name, name) == 0)
			return &config->relays[i];
	}
	return NULL;
}

static void no_such_relay(const struct ob_cli *cli, const struct ob_config *config,
			  const char *name, struct ob_buf *faults)
{
	ob_buf_addf(faults, "%s has no relay '%s'; it has ", cli->config, name);
	for (size_t i = 0; i < config->relay_count; i++)
		ob_buf_addf(faults, "%s%s", i ? ", " : "", config->relays[i].name);
	ob_buf_adds(faults, config->relay_count ? "\n" : "none\n");
}

static int choose(const struct ob_cli *cli, const struct ob_work_args *args,
		  struct ob_work_plan *plan, struct ob_buf *faults)
{
	const struct ob_config *config = plan->config;
	const char *store = names_url(cli) ? NULL : cli->store;

	for (size_t i = 0; i < args->relays.count; i++) {
		if (!find_relay(config, args->relays.words[i])) {
			no_such_relay(cli, config, args->relays.words[i], faults);
			return OB_EXIT_FAILURE;
		}
	}
	if (store && !ob_config_find_store(config, store)) {
		ob_buf_addf(faults, "%s has no store '%s'\n", cli->config, store);
		return OB_EXIT_FAILURE;
	}
	for (size_t i = 0; i < config->relay_count; i++) {
		const struct ob_config_relay *relay = &config->relays[i];

		if (is_named(&args->relays, relay->name) &&
		    (!store || strcmp(relay->store->name, store) == 0))
			plan->relays[plan->count++] = relay;
	}
	if (plan->count)
		return OB_EXIT_OK;
	if (config->relay_count)
		ob_buf_addf(faults, "%s: no relay of store '%s' is among those named\n",
			    cli->config, store ? store : "?");
	else
		ob_buf_addf(faults,
			    "%s has no relay: add 'relays:' with a store and a sink, or one "
			    "store and one sink\n",
			    cli->config);
	return OB_EXIT_FAILURE;
}

static void apply_options(struct ob_config *config, const struct ob_work_args *args)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		struct ob_config_relay *relay = &config->relays[i];

		if (args->workers)
			relay->workers = (uint32_t)args->workers;
	}
}

/* ---- the plan -------------------------------------------------------------- */

struct ob_work_plan *ob_work_plan_ref(struct ob_work_plan *plan)
{
	plan->refs++;
	return plan;
}

void ob_work_plan_unref(struct ob_work_plan *plan)
{
	if (!plan || --plan->refs)
		return;
	ob_config_free(plan->config);
	free(plan->relays);
	free(plan);
}

int ob_work_plan_load(const struct ob_cli *cli, const struct ob_work_args *args,
		      struct ob_buf *faults, struct ob_work_plan **ret_plan)
{
	struct ob_work_plan *plan = calloc(1, sizeof(*plan));

	if (!plan) {
		fault(faults, "out of memory");
		return OB_EXIT_FAILURE;
	}
	plan->refs = 1;
	int r = load(cli, args->sink, faults, &plan->config);
	if (!r) {
		size_t count = plan->config->relay_count;

		plan->relays = calloc(count ? count : 1, sizeof(struct ob_config_relay *));
		r = plan->relays ? choose(cli, args, plan, faults) : OB_EXIT_FAILURE;
	}
	if (r) {
		ob_work_plan_unref(plan);
		return r;
	}
	apply_options(plan->config, args);
	*ret_plan = plan;
	return OB_EXIT_OK;
}

bool ob_work_uses_stdout(const struct ob_config_relay *relay)
{
	return relay->sink->ops == &ob_sink_stdout;
}

bool ob_work_plan_uses_stdout(const struct ob_work_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (ob_work_uses_stdout(plan->relays[i]))
			return true;
	}
	return false;
}

/* A fault of the file stands behind its place there; all others behind our name. */
void ob_work_print_faults(const struct ob_cli *cli, struct ob_str faults)
{
	size_t path = strlen(cli->config);

	while (faults.n) {
		const char *nl = memchr(faults.p, '\n', faults.n);
		size_t n = nl ? (size_t)(nl - faults.p) : faults.n;
		struct ob_buf safe = OB_BUF_INIT(8192);

		ob_utf8_sanitize(&safe, (struct ob_str){ faults.p, n }, 1000);
		if (n > path && memcmp(faults.p, cli->config, path) == 0 && faults.p[path] == ':')
			(void)fprintf(stderr, "%s\n", ob_buf_str(&safe));
		else
			(void)ob_cli_fail("%s", ob_buf_str(&safe));
		ob_buf_done(&safe);
		n += nl ? 1 : 0;
		faults.p += n;
		faults.n -= n;
	}
}

/* SPDX-License-Identifier: MIT */
/* outbox bench: how fast is it here, on this machine or with this configuration? */
#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/demo/demo.h"
#include "cli/out/jprint.h"

#include <inttypes.h>
#include <stdio.h>

enum { SINGLE_MAX = 500, EACH = 100, ARENA_MAX = 64 << 20, SIZE_MAX_BYTES = 1 << 20 };

static const char prefix[] = "bench_";

struct bench_args {
	int64_t messages, size;
	const char *relay;
};

struct run {
	const struct ob_cli *cli;
	const struct bench_args *args;
	bool own;  /* no configuration was given: all is in `files` */
	bool made; /* the reader is ours */
	struct ob_demo_files files;
	struct ob_config *config;
	const struct ob_config_relay *relay;
	struct ob_signals signals;
	struct ob_bench bench;
	struct ob_bench_figures figures;
};

/* ---- what is measured ------------------------------------------------ */

/* The relay that --relay names, or the only one. */
static int choose_relay(struct run *run)
{
	const struct ob_config *config = run->config;
	const char *name = run->args->relay;

	for (size_t i = 0; i < config->relay_count; i++) {
		if (name ? strcmp(config->relays[i].name, name) == 0 : config->relay_count == 1)
			run->relay = &config->relays[i];
	}
	if (!run->relay && name)
		return ob_cli_fail("%s has no relay '%s'", run->cli->config, name);
	if (!run->relay)
		return ob_cli_fail(
			"%s has %zu relays: name one that is meant for this with --relay",
			run->cli->config, config->relay_count);
	if (name && strncmp(run->relay->reads, prefix, strlen(prefix)) != 0)
		return ob_cli_fail(
			"relay %s reads %s: give it a target of its own, such as 'reads: "
			"%s%s'",
			name, run->relay->reads, prefix, name);
	return OB_EXIT_OK;
}

/*
 * None of the user's messages may go out by this, and none of his consumers be surprised: the log
 * is empty, or the relay has a target of its own, and its reader begins at the end.
 */
static int refuse_rows(struct run *run)
{
	const struct ob_filter any = { .limit = 1 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	int64_t now_us;
	int r = OB_EXIT_OK;

	ob_batch_init(&batch);
	if (run->args->relay)
		r = OB_EXIT_OK;
	else if (ob_store_list(run->bench.store, &any, &batch, &now_us, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (batch.count)
		r = ob_cli_fail(
			"the outbox has messages, and bench does not touch what is yours: "
			"give it a relay with 'reads: %s...' and name it with --relay",
			prefix);
	ob_batch_done(&batch);
	return r;
}

static int make_reader(struct run *run)
{
	const struct ob_place end = { .start = OB_START_END };
	const struct ob_reader reader = { .name = ob_str(run->relay->name),
					  .target = ob_str(run->relay->reads),
					  .filter = OB_STR("") };
	struct ob_err err = OB_ERR_INIT;
	bool made;

	if (ob_store_reader_make(run->bench.store, &reader, &end, &made, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (!made)
		return ob_cli_fail(
			"reader %s is in use: stop its relay and forget it with 'outbox "
			"readers remove %s', then measure",
			run->relay->name, run->relay->name);
	run->made = true;
	return OB_EXIT_OK;
}

static int open_store(struct run *run)
{
	struct ob_store_conf conf = run->relay->store->conf;
	struct ob_err err = OB_ERR_INIT;

	if (run->own)
		conf.url = run->files.url; /* the configuration's is relative to its directory */
	if (ob_store_connect(&conf, &run->bench.store, &err) < 0 ||
	    ob_store_check(run->bench.store, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	run->bench.store->writer_flags = run->config->writer_flags;
	int r = refuse_rows(run);
	return r ? r : make_reader(run);
}

static int prepare(struct run *run)
{
	struct ob_cli mine = *run->cli;
	struct ob_err err = OB_ERR_INIT;

	if (ob_signals_init(&run->signals, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (run->own) {
		(void)unsetenv("OUTBOX_STORE");
		if (ob_demo_files_make(&run->files, "bench", "", &err) < 0)
			return ob_cli_fail("%s", err.msg);
		mine.config = run->files.config;
		mine.config_given = true;
	}
	int r = ob_cli_load_config(&mine, &run->config);
	if (!r)
		r = choose_relay(run);
	if (r)
		return r;
	run->bench.reader = run->relay->name;
	run->bench.target = run->relay->reads;
	run->bench.config = run->own ? run->files.config : run->cli->config;
	run->bench.dir = run->own ? run->files.dir : ".";
	run->bench.log = run->own ? run->files.log : "/dev/stderr";
	run->bench.signals = &run->signals;
	return open_store(run);
}

static void make_payload(struct run *run)
{
	struct ob_buf *payload = &run->bench.payload;

	*payload = OB_BUF_INIT(SIZE_MAX_BYTES + 64);
	ob_buf_adds(payload, "{\"note\":\"");
	while (payload->len + 2 < (size_t)run->args->size)
		ob_buf_addc(payload, 'x');
	ob_buf_adds(payload, "\"}");
}

/* ---- measuring and telling ------------------------------------------- */

static int measure(struct run *run, struct ob_err *err)
{
	uint64_t messages = (uint64_t)run->args->messages;
	uint64_t single = messages < SINGLE_MAX ? messages : SINGLE_MAX;

	make_payload(run);
	int r = ob_bench_latency(&run->bench, &run->figures, err);
	if (r == 0)
		r = ob_bench_push(&run->bench, single, 1, &run->figures.single_rate, err);
	if (r == 0)
		r = ob_bench_push(&run->bench, messages, EACH, &run->figures.batch_rate, err);
	if (r == 0)
		r = ob_bench_drain(&run->bench, &run->figures, err);
	return r;
}

static int print_json(const struct run *run)
{
	const struct ob_bench_figures *f = &run->figures;
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "store", ob_str(run->bench.store->ops->name));
	ob_jout_text(&j, "sink", ob_str(run->relay->sink->name));
	ob_jout_int(&j, "messages", run->args->messages);
	ob_jout_int(&j, "size", (int64_t)run->bench.payload.len);
	ob_jout_int(&j, "push_single_per_second", (int64_t)f->single_rate);
	ob_jout_int(&j, "push_batch_per_second", (int64_t)f->batch_rate);
	ob_jout_int(&j, "drain_per_second", (int64_t)f->drain_rate);
	ob_jout_int(&j, "latency_p50_us", (int64_t)(f->p50_ms * 1e3));
	ob_jout_int(&j, "latency_p99_us", (int64_t)(f->p99_ms * 1e3));
	ob_jout_int(&j, "latency_max_us", (int64_t)(f->max_ms * 1e3));
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int print_figures(const struct run *run)
{
	const struct ob_bench_figures *f = &run->figures;

	if (run->cli->json)
		return print_json(run);
	printf("%s to the sink '%s', %" PRId64
	       " messages of %zu bytes%s\n\n"
	       "pushed one by one     %8.0f messages/s\n"
	       "pushed by %d         %8.0f messages/s\n"
	       "delivered             %8.0f messages/s\n"
	       "commit to delivered   %8.2f ms p50, %.2f ms p99, %.2f ms at most\n",
	       run->bench.store->ops->name, run->relay->sink->name, run->args->messages,
	       run->bench.payload.len, run->own ? ", in a temporary directory" : "", f->single_rate,
	       EACH, f->batch_rate, f->drain_rate, f->p50_ms, f->p99_ms, f->max_ms);
	return OB_EXIT_OK;
}

static int bench_run(struct ob_cli *cli, const void *opts)
{
	struct run run = { .cli = cli,
			   .args = opts,
			   .own = !cli->config_given,
			   .signals = { .fd = -1 },
			   .bench = { .arena = OB_ARENA_INIT(ARENA_MAX) } };
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (run.own && run.args->relay)
		r = ob_cli_usage(cli, "--relay names a relay of a configuration: give --config");
	if (!r)
		r = prepare(&run);
	if (!r && measure(&run, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r)
		r = print_figures(&run);
	if (run.made && ob_bench_clean(&run.bench, &err) < 0 && !r)
		r = ob_cli_fail("%s", err.msg);
	ob_child_done(&run.bench.relay);
	ob_buf_done(&run.bench.payload);
	ob_arena_done(&run.bench.arena);
	ob_store_free(run.bench.store);
	ob_config_free(run.config);
	if (run.files.dir[0])
		ob_demo_files_remove(&run.files);
	if (run.signals.fd >= 0)
		ob_signals_done(&run.signals);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "messages",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct bench_args, messages),
		.min = 1,
		.max = 10000000,
		.dflt = "20000",
		.help = "How many messages are pushed and delivered.",
	},
	{
		.name = "size",
		.arg = "BYTES",
		.type = OB_CMD_INT,
		.offset = offsetof(struct bench_args, size),
		.min = 16,
		.max = SIZE_MAX_BYTES,
		.dflt = "300",
		.help = "Size of a payload.",
	},
	{
		.name = "relay",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct bench_args, relay),
		.help = "The relay of the configuration to measure; the target that it reads must "
			"begin with bench_.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox bench",
	"outbox bench --messages 200000 --size 1000",
	"outbox --config outbox.yaml bench --relay bench_redis",
	NULL,
};

const struct ob_cmd ob_cmd_bench = {
	.name = "bench",
	.group = OB_GROUP_PROGRAM,
	.flags = OB_CMD_USES_CONFIG | OB_CMD_JSON,
	.summary = "measure this machine or a configuration",
	.description =
		"Pushes messages, delivers them with a relay in a process of its own, and says how "
		"fast that was: pushing one message and 100 in a transaction, delivering what was "
		"pushed, and the time from a commit to the delivery on record, one message at a "
		"time.\n\n"
		"Without --config it works in a temporary directory, from SQLite to a file. With "
		"--config it measures that configuration, and its messages really go to the sink, "
		"with the aggregate type outbox_bench. So that it meets nothing of yours it wants "
		"an empty outbox, or a relay with a target of its own, which --relay names. The "
		"reader of that relay is made at the end of the log and removed afterwards; the "
		"messages stay in the log until retention removes them.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct bench_args),
	.run = bench_run,
};

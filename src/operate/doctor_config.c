/* SPDX-License-Identifier: MIT */
/* The doctor on the configuration file and its sinks. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/url.h"
#include "operate/doctor.h"
#include "operate/sink_faults.h"

#include <sys/stat.h>

enum { FILE_MAX = 16 << 20, DESTINATIONS_MAX = 64, LINES_MAX = 8192 };

/* ---- the file -------------------------------------------------------- */

/* Does the text stand in the file, and not only in a variable of the environment? */
static bool stands_in(const struct ob_buf *file, struct ob_str text)
{
	return text.n > 0 && file->len > 0 && memmem(file->data, file->len, text.p, text.n);
}

/* Of a URL only the password is one. */
static bool has_password_in(const struct ob_buf *file, const char *url)
{
	size_t at, n = ob_url_password(url, &at);

	return n > 0 && stands_in(file, (struct ob_str){ url + at, n });
}

static bool is_secret_in(const struct ob_buf *file, const char *value)
{
	return strstr(value, "://") ? has_password_in(file, value) : stands_in(file, ob_str(value));
}

static bool holds_option(const struct ob_buf *file, const struct ob_opt *opts,
			 const struct ob_opt_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ob_opt *row = ob_opt_find(opts, values[i].name);

		if (row && (row->flags & OB_OPT_SECRET) && is_secret_in(file, values[i].value))
			return true;
	}
	return false;
}

static bool holds_secret(const struct ob_config *config, const struct ob_buf *file)
{
	struct ob_err ignored = OB_ERR_INIT;

	for (size_t i = 0; i < config->store_count; i++) {
		const struct ob_store_conf *conf = &config->stores[i].conf;
		const struct ob_store_backend *backend;

		if (has_password_in(file, conf->url))
			return true;
		if (ob_store_find(conf->url, &backend, &ignored) == 0 &&
		    holds_option(file, backend->ops->opts, conf->options, conf->option_count))
			return true;
	}
	for (int role = 0; role < OB_MONITOR_ROLES; role++) {
		if (stands_in(file, ob_str(config->monitor.tokens[role])))
			return true;
	}
	for (size_t i = 0; i < config->sink_count; i++) {
		const struct ob_config_sink *sink = &config->sinks[i];

		if (holds_option(file, sink->ops->opts, sink->options, sink->option_count))
			return true;
	}
	return false;
}

void ob_doctor_config(const struct ob_config *config, struct ob_findings *out)
{
	const struct ob_check *check = &ob_doctor_table[OB_DOCTOR_CONFIG_RIGHTS];
	OB_CLEANUP(ob_buf_done) struct ob_buf file = OB_BUF_INIT(FILE_MAX);
	struct ob_err ignored = OB_ERR_INIT;
	struct stat st;

	if (!config->path || stat(config->path, &st) < 0 ||
	    ob_file_read(config->path, FILE_MAX - 1, &file, &ignored) < 0)
		return;
	out->subject = config->path;
	if (!holds_secret(config, &file))
		ob_finding_add(out, check, OB_LEVEL_OK, "the file holds no password");
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		ob_finding_add(out, check, OB_LEVEL_WARNING,
			       "the file holds a password, and %s (mode %04o)",
			       st.st_mode & S_IRWXO ? "everybody on this machine can read it"
						    : "its group can read it",
			       (unsigned)st.st_mode & 07777);
	else
		ob_finding_add(out, check, OB_LEVEL_OK,
			       "the file holds a password, and only its owner can read it");
}

/* ---- a sink ---------------------------------------------------------- */

static void note(struct ob_str *list, size_t *count, const char *destination)
{
	struct ob_str name = ob_str(destination);

	/* One with a field of the message in it is not known before there is a message. */
	if (!destination || strchr(destination, '{') || *count == DESTINATIONS_MAX)
		return;
	for (size_t i = 0; i < *count; i++) {
		if (ob_str_eq(list[i], name))
			return;
	}
	list[(*count)++] = name;
}

static size_t find_destinations(const struct ob_config *config, const struct ob_config_sink *sink,
				struct ob_str *list)
{
	size_t count = 0;

	for (size_t i = 0; i < config->relay_count; i++) {
		const struct ob_config_route *route = &config->relays[i].route;

		if (config->relays[i].sink != sink)
			continue;
		note(list, &count, route->destination);
		for (size_t r = 0; r < route->rule_count; r++)
			note(list, &count, route->rules[r].route.destination);
	}
	return count;
}

static bool add_faults(const struct ob_config_sink *sink, struct ob_findings *out)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf faults = OB_BUF_INIT(LINES_MAX);
	char *rest;

	ob_sink_faults(sink, &faults);
	for (char *line = faults.len ? strtok_r(faults.data, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_SINK_OPTIONS], OB_LEVEL_ERROR, "%s",
			       line);
	return faults.len > 0;
}

void ob_doctor_sink(const struct ob_doctor *doctor, const struct ob_config_sink *conf,
		    struct ob_findings *out)
{
	const struct ob_check *check = &ob_doctor_table[OB_DOCTOR_SINK_CONNECT];
	OB_CLEANUP(ob_buf_done) struct ob_buf about = OB_BUF_INIT(LINES_MAX);
	struct ob_str destinations[DESTINATIONS_MAX];
	struct ob_err err = OB_ERR_INIT;
	struct ob_sink *sink = NULL;

	if (add_faults(conf, out))
		return;
	int r = ob_sink_new(conf->ops, conf->options, conf->option_count, &ob_clock_system, &sink,
			    &err);
	if (r == 0)
		r = ob_sink_open(sink, &err);
	if (r == 0) {
		ob_sink_describe(sink, &about);
		ob_finding_add(out, check, OB_LEVEL_OK, "%s", ob_buf_str(&about));
	}
	if (r == 0 && !doctor->connect_only)
		r = ob_sink_probe(sink, destinations,
				  find_destinations(doctor->config, conf, destinations), out, &err);
	if (r < 0)
		ob_finding_add(out, check, OB_LEVEL_ERROR, "%s", err.msg);
	ob_sink_free(sink);
}

/* SPDX-License-Identifier: MIT */
/* The doctor's round: configuration, stores, sinks, consumers. */
#include "operate/doctor.h"

enum { LINE_MAX_BYTES = 4096 };

const struct ob_check ob_doctor_table[] = {
#define X(name, code, what, advice) [OB_DOCTOR_##name] = { code, what, advice },
	OB_DOCTOR_MAP(X)
#undef X
		OB_CHECK_END,
};

static void check_open(const struct ob_doctor *doctor, const struct ob_config_store *entry,
		       struct ob_store *store, struct ob_findings *out)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_check(store, &err) < 0) {
		ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_STORE_SCHEMA], OB_LEVEL_ERROR, "%s",
			       err.msg);
		return;
	}
	ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_STORE_SCHEMA], OB_LEVEL_OK,
		       "the tables have schema version %d and all that a relay needs",
		       OB_SCHEMA_VERSION);
	if (doctor->connect_only)
		return;
	if (ob_store_diagnose(store, out, &err) < 0)
		ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_STORE_SETTINGS], OB_LEVEL_ERROR,
			       "%s", err.msg);
	ob_doctor_readers(doctor, entry, store, out);
}

static void check_store(const struct ob_doctor *doctor, const struct ob_config_store *entry,
			struct ob_findings *out)
{
	struct ob_buf about = OB_BUF_INIT(LINE_MAX_BYTES);
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store = NULL;

	out->subject = entry->name;
	if (ob_store_connect(&entry->conf, &store, &err) < 0) {
		ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_STORE_CONNECT], OB_LEVEL_ERROR, "%s",
			       err.msg);
	} else {
		ob_store_describe(store, &about);
		ob_finding_add(out, &ob_doctor_table[OB_DOCTOR_STORE_CONNECT], OB_LEVEL_OK, "%s",
			       ob_buf_str(&about));
		check_open(doctor, entry, store, out);
	}
	ob_store_free(store);
	ob_buf_done(&about);
}

void ob_doctor_run(const struct ob_doctor *doctor, struct ob_findings *out)
{
	const struct ob_config *config = doctor->config;

	if (!doctor->connect_only)
		ob_doctor_config(config, out);
	for (size_t i = 0; i < config->store_count; i++) {
		if (!doctor->store || doctor->store == &config->stores[i])
			check_store(doctor, &config->stores[i], out);
	}
	for (size_t i = 0; i < config->sink_count; i++) {
		out->subject = config->sinks[i].name;
		ob_doctor_sink(doctor, &config->sinks[i], out);
	}
	for (size_t i = 0; i < config->consumer_count && !doctor->connect_only; i++) {
		out->subject = config->consumers[i].name;
		ob_doctor_consumer(&config->consumers[i], out);
	}
	out->subject = "";
}

const struct ob_check *ob_doctor_checks(size_t index, const char **ret_name)
{
	size_t n = 0;

	*ret_name = "";
	if (index == n++)
		return ob_doctor_table;
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++) {
		*ret_name = b->name;
		if (b->ops && b->ops->checks && index == n++)
			return b->ops->checks;
	}
	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		*ret_name = b->name;
		if (b->ops && b->ops->checks && index == n++)
			return b->ops->checks;
	}
	for (const struct ob_feed_backend *b = ob_feed_backends; b->name; b++) {
		*ret_name = b->name;
		if (b->ops && b->ops->checks && index == n++)
			return b->ops->checks;
	}
	return NULL;
}

void ob_findings_json(struct ob_jout *j, const struct ob_findings *findings)
{
	ob_jout_begin(j, "findings", '[');
	for (size_t i = 0; i < findings->count; i++) {
		const struct ob_finding *finding = &findings->list[i];
		bool ok = finding->level == OB_LEVEL_OK;

		ob_jout_begin(j, NULL, '{');
		ob_jout_text(j, "code", ob_str(finding->check->code));
		ob_jout_text(j, "level", ob_str(ob_level_name(finding->level)));
		ob_jout_text(j, "subject", finding->subject);
		ob_jout_text(j, "text", finding->text);
		ob_jout_text(j, "advice", ok ? OB_STR_NULL : ob_str(finding->check->advice));
		ob_jout_end(j, '}');
	}
	ob_jout_end(j, ']');
	ob_jout_int(j, "errors", (int64_t)ob_findings_count(findings, OB_LEVEL_ERROR));
	ob_jout_int(j, "warnings", (int64_t)ob_findings_count(findings, OB_LEVEL_WARNING));
}

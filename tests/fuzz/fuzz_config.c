/* SPDX-License-Identifier: MIT */
/* Any bytes as a configuration: it loads, or every fault is a safe line with a place in the file.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "config/config.h"

enum { FAULTS_MAX = 256 * 1024 };

/* "f:" at the start of every line, nothing a terminal would obey, and no empty report. */
static void check_faults(const struct ob_buf *faults)
{
	const char *line = ob_buf_str(faults);

	FUZZ_CHECK(!faults->failed && faults->len > 0);
	FUZZ_CHECK(faults->data[faults->len - 1] == '\n');
	FUZZ_CHECK(ob_utf8_valid(ob_buf_view(faults)));
	FUZZ_CHECK(strlen(line) == faults->len);
	while (*line) {
		FUZZ_CHECK(line[0] == 'f' && line[1] == ':');
		for (; *line != '\n'; line++)
			FUZZ_CHECK((unsigned char)*line >= 0x20 && *line != 0x7f);
		line++;
	}
}

/* Whatever loads is whole. */
static void check_config(const struct ob_config *config)
{
	FUZZ_CHECK(config->store_count > 0);
	for (size_t i = 0; i < config->store_count; i++)
		FUZZ_CHECK(config->stores[i].name && config->stores[i].conf.url);
	for (size_t i = 0; i < config->sink_count; i++)
		FUZZ_CHECK(config->sinks[i].name && config->sinks[i].ops);
	for (size_t i = 0; i < config->relay_count; i++) {
		const struct ob_config_relay *r = &config->relays[i];

		FUZZ_CHECK(r->name && *r->name && r->store && r->sink && r->route.destination);
		FUZZ_CHECK(r->workers >= 1 && r->batch_size >= 1);
		FUZZ_CHECK(r->leasing.lease_renew_ms < r->leasing.lease_ttl_ms);
		FUZZ_CHECK(r->reads && *r->reads);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ob_str text = { size ? (const char *)data : "", size };
	struct ob_buf faults = OB_BUF_INIT(FAULTS_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;
	int r = ob_config_parse(text, "f", &faults, &config, &err);

	FUZZ_CHECK(r == 0 || r == OUTBOX_ECONFIG);
	if (r == 0) {
		FUZZ_CHECK(faults.len == 0);
		check_config(config);
	} else {
		FUZZ_CHECK(!config && err.msg[0]);
		check_faults(&faults);
	}
	ob_config_free(config);
	ob_buf_done(&faults);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The JSON validator agrees with jansson, and the string writer makes what both accept. */
#include "fuzz.h"

#include "json_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ob_str text = { size ? (const char *)data : "", size };
	struct ob_json_fault fault = { 0 };
	struct ob_buf written = OB_BUF_INIT(6 * size + 2); /* each byte as \u001f at most */

	FUZZ_CHECK(json_oracle_agrees(text));
	if (!ob_json_valid(text, &fault)) {
		FUZZ_CHECK(fault.what && fault.offset <= size);
		FUZZ_CHECK(!ob_json_valid_object(text, NULL));
	}

	ob_json_add_string(&written, text);
	FUZZ_CHECK(!written.failed);
	FUZZ_CHECK(ob_json_valid(ob_buf_view(&written), NULL));
	FUZZ_CHECK(json_oracle_agrees(ob_buf_view(&written)));
	FUZZ_CHECK(!memchr(written.data, '\n', written.len));
	ob_buf_done(&written);
	return 0;
}

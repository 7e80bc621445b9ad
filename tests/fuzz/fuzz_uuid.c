/* SPDX-License-Identifier: MIT */
/* What parses as a UUID is written and read back as the same UUID. */
#include "fuzz.h"

#include "base/uuid.h"

#include <ctype.h>

/* The text without dashes, in lower case, is what was parsed. */
static bool same_digits(const char *canonical, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '-')
			continue;
		canonical += *canonical == '-';
		if (*canonical++ != tolower(data[i]))
			return false;
	}
	return *canonical == '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ob_str text = { size ? (const char *)data : "", size };
	struct ob_uuid id, again;
	char canonical[OB_UUID_TEXT_SIZE];

	if (size == sizeof(id.b))
		FUZZ_CHECK(ob_uuid_scan(text, &id) && memcmp(id.b, data, size) == 0);
	if (!ob_uuid_parse(text, &id)) {
		FUZZ_CHECK(!ob_uuid_parse_v7(text, &id));
		FUZZ_CHECK(size == sizeof(id.b) || !ob_uuid_scan(text, &id));
		return 0;
	}
	FUZZ_CHECK(size == 32 || size == OB_UUID_TEXT);
	ob_uuid_format(&id, canonical);
	FUZZ_CHECK(strlen(canonical) == OB_UUID_TEXT);
	FUZZ_CHECK(same_digits(canonical, data, size));
	FUZZ_CHECK(ob_uuid_parse(ob_str(canonical), &again) && ob_uuid_eq(&id, &again));
	FUZZ_CHECK(ob_uuid_scan(text, &again) && ob_uuid_eq(&id, &again));
	if (ob_uuid_parse_v7(text, &again))
		FUZZ_CHECK(ob_uuid_version(&again) == 7);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Status codes as text, and the version. */
#include "outbox/outbox.h"

static const struct {
	int status;
	const char *name, *text;
} statuses[] = {
#define X(name, value, text) { value, #name, text },
	OUTBOX_STATUS_MAP(X)
#undef X
};

enum { STATUS_COUNT = sizeof(statuses) / sizeof(statuses[0]) };

const char *outbox_strerror(int status)
{
	for (int i = 0; i < STATUS_COUNT; i++) {
		if (statuses[i].status == status)
			return statuses[i].text;
	}
	return "unknown status";
}

const char *outbox_status_name(int status)
{
	for (int i = 0; i < STATUS_COUNT; i++) {
		if (statuses[i].status == status)
			return statuses[i].name;
	}
	return "UNKNOWN";
}

const char *outbox_version(void)
{
	return OUTBOX_VERSION;
}

/* SPDX-License-Identifier: MIT */
/* Lists of findings. */
#include "base/finding.h"

#include <stdarg.h>
#include <stdio.h>

enum { ARENA_MAX = 16 << 20, TEXT_MAX = 1024, ROOM = 32 };

void ob_findings_init(struct ob_findings *findings)
{
	*findings = (struct ob_findings){ .arena = OB_ARENA_INIT(ARENA_MAX), .subject = "" };
}

void ob_findings_done(struct ob_findings *findings)
{
	ob_arena_done(&findings->arena);
	*findings = (struct ob_findings){ .subject = "" };
}

static bool make_room(struct ob_findings *findings)
{
	size_t room = findings->room ? findings->room * 2 : ROOM;
	struct ob_finding *list;

	if (findings->count < findings->room)
		return true;
	if (room > OB_FINDINGS_MAX)
		return false;
	list = ob_arena_alloc(&findings->arena, room * sizeof(*list));
	if (!list)
		return false;
	if (findings->count)
		memcpy(list, findings->list, findings->count * sizeof(*list));
	findings->list = list;
	findings->room = room;
	return true;
}

void ob_finding_add(struct ob_findings *findings, const struct ob_check *check, enum ob_level level,
		    const char *fmt, ...)
{
	struct ob_finding finding = { .check = check, .level = level };
	char text[TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (findings->failed || !make_room(findings) ||
	    !ob_arena_copy(&findings->arena, ob_str(text), &finding.text) ||
	    !ob_arena_copy(&findings->arena, ob_str(findings->subject), &finding.subject)) {
		findings->failed = true;
		return;
	}
	findings->list[findings->count++] = finding;
}

enum ob_level ob_findings_worst(const struct ob_findings *findings)
{
	enum ob_level worst = OB_LEVEL_OK;

	for (size_t i = 0; i < findings->count; i++) {
		if (findings->list[i].level > worst)
			worst = findings->list[i].level;
	}
	return worst;
}

size_t ob_findings_count(const struct ob_findings *findings, enum ob_level level)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings->list[i].level == level;
	return count;
}

const char *ob_level_name(enum ob_level level)
{
	static const char *const names[] = { "ok", "warning", "error" };

	return names[level];
}

/* SPDX-License-Identifier: MIT */
/* Committed against delivered: one table by id, one walk over the lines, one over the journal. */
#include "cli/demo/audit.h"

#include "base/cleanup.h"
#include "cli/out/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>

enum { LINE_BYTES = 1 << 20, EXAMPLES = 3, GROW_FIRST = 1024 };

/* ---- the two lists ---------------------------------------------------- */

/* Room for one more of `size` bytes; false when there is none. */
static bool grow(void **items, size_t *cap, size_t count, size_t size)
{
	size_t more = *cap ? *cap * 2 : GROW_FIRST;

	if (count < *cap)
		return true;
	if (more > OB_AUDIT_RECORDS_MAX)
		return false;
	void *grown = realloc(*items, more * size);
	if (!grown)
		return false;
	*items = grown;
	*cap = more;
	return true;
}

static int too_many(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "too many messages to audit");
}

int ob_audit_note(struct ob_audit_journal *journal, const struct ob_audit_entry *entry,
		  struct ob_err *err)
{
	void *items = journal->entries;

	if (!grow(&items, &journal->cap, journal->count, sizeof(*entry)))
		return too_many(err);
	journal->entries = items;
	journal->entries[journal->count++] = *entry;
	journal->committed += entry->committed;
	return 0;
}

void ob_audit_journal_done(struct ob_audit_journal *journal)
{
	free(journal->entries);
	*journal = (struct ob_audit_journal){ 0 };
}

static int add_line(struct ob_audit_lines *lines, struct ob_str line, struct ob_err *err)
{
	json_t *object = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
	const char *text = json_string_value(json_object_get(object, "id"));
	struct ob_uuid id;
	void *items = lines->ids;
	int r = 0;

	if (!text || !ob_uuid_parse(ob_str(text), &id)) {
		lines->unreadable++;
	} else if (!grow(&items, &lines->cap, lines->count, sizeof(id))) {
		r = too_many(err);
	} else {
		lines->ids = items;
		lines->ids[lines->count++] = id;
	}
	json_decref(object);
	return r;
}

int ob_audit_read(struct ob_audit_lines *lines, const char *path, struct ob_err *err)
{
	OB_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ob_lines in;
	struct ob_str line;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_FATAL, "opening '%s'", path);
	ob_lines_init(&in, fd, path, LINE_BYTES);
	while ((r = ob_lines_next(&in, &line, err)) > 0) {
		r = line.n ? add_line(lines, line, err) : 0;
		if (r < 0)
			break;
	}
	ob_lines_done(&in);
	return r;
}

void ob_audit_lines_done(struct ob_audit_lines *lines)
{
	free(lines->ids);
	*lines = (struct ob_audit_lines){ 0 };
}

/* ---- comparing -------------------------------------------------------- */

struct compare {
	const struct ob_audit_journal *journal;
	const struct ob_audit_lines *lines;
	struct ob_audit *audit;
	uint32_t *slots; /* entry + 1, by id; 0: free */
	size_t mask;
	uint32_t *copies; /* of each entry */
	uint32_t *latest; /* of each key: the latest entry that has arrived, + 1 */
};

static size_t hash(const struct ob_uuid *id)
{
	uint64_t a, b;

	memcpy(&a, id->b, sizeof(a));
	memcpy(&b, id->b + 8, sizeof(b));
	return (size_t)(((a ^ b) * UINT64_C(0x9E3779B97F4A7C15)) >> 20);
}

/* The slot of that id, or the free one where it would stand. */
static uint32_t *slot_of(const struct compare *c, const struct ob_uuid *id)
{
	size_t at = hash(id) & c->mask;

	while (c->slots[at] && !ob_uuid_eq(&c->journal->entries[c->slots[at] - 1].id, id))
		at = (at + 1) & c->mask;
	return &c->slots[at];
}

static int make_tables(struct compare *c, struct ob_err *err)
{
	size_t count = c->journal->count, size = 16, keys = 0;

	while (size < count * 2)
		size *= 2;
	for (size_t i = 0; i < count; i++) {
		size_t key = c->journal->entries[i].key;

		keys = key >= keys ? key + 1 : keys;
	}
	c->mask = size - 1;
	c->slots = calloc(size, sizeof(*c->slots));
	c->copies = calloc(count + 1, sizeof(*c->copies));
	c->latest = calloc(keys + 1, sizeof(*c->latest));
	if (!c->slots || !c->copies || !c->latest)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "auditing: out of memory");
	for (size_t i = 0; i < count; i++)
		*slot_of(c, &c->journal->entries[i].id) = (uint32_t)i + 1;
	return 0;
}

__attribute__((format(printf, 4, 5))) static void
example(struct compare *c, uint64_t so_far, const struct ob_uuid *id, const char *fmt, ...)
{
	char text[OB_UUID_TEXT_SIZE], what[160];
	va_list ap;

	if (so_far > EXAMPLES)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ob_uuid_format(id, text);
	ob_buf_addf(&c->audit->examples, "%s %s\n", text, what);
}

static void first_copy(struct compare *c, uint32_t index, size_t line)
{
	const struct ob_audit_entry *entry = &c->journal->entries[index];
	uint32_t *latest = &c->latest[entry->key];

	c->audit->delivered++;
	if (*latest < index + 1) {
		*latest = index + 1;
		return;
	}
	example(c, ++c->audit->out_of_order, &entry->id,
		"of key %" PRIu32 " is on line %zu, behind a message committed after it",
		entry->key, line);
}

static void walk_lines(struct compare *c)
{
	for (size_t i = 0; i < c->lines->count; i++) {
		const struct ob_uuid *id = &c->lines->ids[i];
		uint32_t found = *slot_of(c, id);

		if (!found)
			example(c, ++c->audit->ghosts, id,
				"on line %zu was never written by the producer", i + 1);
		else if (!c->journal->entries[found - 1].committed)
			example(c, ++c->audit->ghosts, id,
				"on line %zu was rolled back, yet delivered", i + 1);
		else if (c->copies[found - 1]++ == 0)
			first_copy(c, found - 1, i + 1);
		else
			example(c, ++c->audit->duplicates, id, "came again on line %zu", i + 1);
	}
}

static void walk_journal(struct compare *c)
{
	for (size_t i = 0; i < c->journal->count; i++) {
		const struct ob_audit_entry *entry = &c->journal->entries[i];

		if (!entry->committed)
			c->audit->rolled_back++;
		else if (c->copies[i] == 0)
			example(c, ++c->audit->lost, &entry->id,
				"of key %" PRIu32 " was committed, but never delivered",
				entry->key);
		c->audit->committed += entry->committed;
	}
}

int ob_audit_run(const struct ob_audit_journal *journal, const struct ob_audit_lines *lines,
		 struct ob_audit *ret_audit, struct ob_err *err)
{
	struct ob_audit audit = { .unreadable = lines->unreadable,
				  .examples = OB_BUF_INIT(OB_AUDIT_EXAMPLES_BYTES) };
	struct compare c = { .journal = journal, .lines = lines, .audit = &audit };
	int r = make_tables(&c, err);

	if (r == 0) {
		walk_lines(&c);
		walk_journal(&c);
		*ret_audit = audit;
	}
	free(c.slots);
	free(c.copies);
	free(c.latest);
	return r;
}

bool ob_audit_holds(const struct ob_audit *audit, uint64_t duplicates_max)
{
	return audit->lost == 0 && audit->ghosts == 0 && audit->out_of_order == 0 &&
	       audit->duplicates <= duplicates_max && audit->delivered == audit->committed;
}

void ob_audit_done(struct ob_audit *audit)
{
	ob_buf_done(&audit->examples);
}

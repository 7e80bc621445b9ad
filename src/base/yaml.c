/* SPDX-License-Identifier: MIT */
/* libyaml's events to a tree. Iterative: the depth of the input costs no stack. */
#include "base/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

struct frame {
	struct ob_yaml *node;
	struct ob_yaml **tail;
	const char *key; /* of a mapping: read, its value is next */
	struct ob_yaml_pos key_at;
};

struct builder {
	struct ob_arena *arena;
	struct ob_yaml *root;
	struct frame frames[OB_YAML_DEPTH_MAX];
	size_t depth, nodes;
	struct ob_yaml_pos at; /* of the fault */
	struct ob_err *err;
};

static struct ob_yaml_pos pos_of(yaml_mark_t mark)
{
	return (struct ob_yaml_pos){ (uint32_t)mark.line + 1, (uint32_t)mark.column + 1 };
}

static int fault(struct builder *b, struct ob_yaml_pos at, const char *text)
{
	b->at = at;
	return ob_err_set(b->err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%s", text);
}

static int no_memory(struct builder *b)
{
	return ob_err_set(b->err, OUTBOX_ENOMEM, OB_ERR_FATAL, "reading YAML");
}

static struct frame *top(struct builder *b)
{
	return b->depth ? &b->frames[b->depth - 1] : NULL;
}

/* Hang a new node where it belongs: under the open list or mapping, or as the root. */
static struct ob_yaml *add_node(struct builder *b, enum ob_yaml_kind kind, struct ob_yaml_pos at)
{
	struct frame *frame = top(b);
	struct ob_yaml *node = ob_arena_alloc(b->arena, sizeof(*node));

	if (!node)
		return NULL;
	node->kind = kind;
	node->at = at;
	if (!frame) {
		b->root = node;
		return node;
	}
	node->key = frame->key;
	node->key_at = frame->key_at;
	frame->key = NULL;
	*frame->tail = node;
	frame->tail = &node->next;
	frame->node->count++;
	return node;
}

static bool wants_key(struct builder *b)
{
	struct frame *frame = top(b);

	return frame && frame->node->kind == OB_YAML_MAPPING && !frame->key;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
	struct ob_str value = { (const char *)event->data.scalar.value, event->data.scalar.length };
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct ob_yaml_pos at = pos_of(event->start_mark);
	struct ob_str copy;

	if (memchr(value.p, '\0', value.n))
		return fault(b, at, "a text cannot hold a NUL character");
	if (!ob_arena_copy(b->arena, value, &copy))
		return no_memory(b);
	if (wants_key(b)) {
		if (plain && strcmp(copy.p, "<<") == 0)
			return fault(b, at, "merge keys are not supported: write the keys out");
		top(b)->key = copy.p;
		top(b)->key_at = at;
		return 0;
	}
	struct ob_yaml *node = add_node(b, OB_YAML_SCALAR, at);
	if (!node)
		return no_memory(b);
	node->text = copy.p;
	node->plain = plain;
	return 0;
}

static int on_start(struct builder *b, const yaml_event_t *event, enum ob_yaml_kind kind)
{
	struct ob_yaml_pos at = pos_of(event->start_mark);

	if (wants_key(b))
		return fault(b, at, "a key must be a text");
	if (b->depth == OB_YAML_DEPTH_MAX)
		return fault(b, at, "nested too deeply: 32 levels are the most");
	struct ob_yaml *node = add_node(b, kind, at);
	if (!node)
		return no_memory(b);
	node->flow = kind == OB_YAML_MAPPING
			     ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
			     : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	b->frames[b->depth++] = (struct frame){ .node = node, .tail = &node->first };
	return 0;
}

static int by_key(const void *pa, const void *pb)
{
	const struct ob_yaml *a = *(struct ob_yaml *const *)pa, *b = *(struct ob_yaml *const *)pb;
	int r = strcmp(a->key, b->key);

	if (r == 0)
		r = (a->key_at.line > b->key_at.line) - (a->key_at.line < b->key_at.line);
	if (r == 0)
		r = (a->key_at.col > b->key_at.col) - (a->key_at.col < b->key_at.col);
	return r;
}

/* libyaml does not care about duplicates. Sorted, so that a file of duplicates costs little. */
static int mark_duplicates(struct builder *b, struct ob_yaml *mapping)
{
	size_t n = 0;

	if (mapping->count < 2)
		return 0;
	struct ob_yaml **sorted =
		ob_arena_alloc(b->arena, mapping->count * sizeof(struct ob_yaml *));
	if (!sorted)
		return no_memory(b);
	for (struct ob_yaml *child = mapping->first; child; child = child->next)
		sorted[n++] = child;
	qsort(sorted, n, sizeof(struct ob_yaml *), by_key);
	for (size_t i = 1; i < n; i++) {
		struct ob_yaml *before = sorted[i - 1];

		if (strcmp(before->key, sorted[i]->key) == 0)
			sorted[i]->earlier = before->earlier ? before->earlier : before;
	}
	return 0;
}

static int on_end(struct builder *b)
{
	struct ob_yaml *node = top(b)->node;

	b->depth--;
	return node->kind == OB_YAML_MAPPING ? mark_duplicates(b, node) : 0;
}

/* What may stand before any value but not in our files. */
static const char *refused_property(const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (event->type == YAML_ALIAS_EVENT)
		return "aliases are not supported: write the value out";
	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor)
		return "anchors are not supported: write the value out";
	return tag ? "tags are not supported" : NULL;
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	const char *refused = refused_property(event);

	if (refused)
		return fault(b, pos_of(event->start_mark), refused);
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->nodes)
			return fault(b, pos_of(event->start_mark),
				     "a second document: only one is allowed");
		return 0;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(b);
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		if (++b->nodes > OB_YAML_NODES_MAX)
			return fault(b, pos_of(event->start_mark),
				     "too large: 20000 keys and values are the most");
		if (event->type == YAML_SCALAR_EVENT)
			return on_scalar(b, event);
		return on_start(b, event,
				event->type == YAML_MAPPING_START_EVENT ? OB_YAML_MAPPING
									: OB_YAML_LIST);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_ALIAS_EVENT:
		break;
	}
	return 0;
}

/* Bytes that are no text have an offset only. */
static struct ob_yaml_pos pos_of_offset(struct ob_str text, size_t offset)
{
	struct ob_yaml_pos at = { 1, 1 };

	for (size_t i = 0; i < offset && i < text.n; i++) {
		if (text.p[i] == '\n') {
			at.line++;
			at.col = 1;
		} else if (((unsigned char)text.p[i] & 0xc0) != 0x80) {
			at.col++;
		}
	}
	return at;
}

/* The byte at a place, or NUL. */
static char byte_at(struct ob_str text, struct ob_yaml_pos at)
{
	struct ob_yaml_pos here = { 1, 1 };

	for (size_t i = 0; i < text.n; i++) {
		if (here.line == at.line && here.col == at.col)
			return text.p[i];
		here.col += ((unsigned char)text.p[i] & 0xc0) != 0x80;
		if (text.p[i] == '\n')
			here = (struct ob_yaml_pos){ here.line + 1, 1 };
	}
	return '\0';
}

static int library_fault(struct builder *b, const yaml_parser_t *parser, struct ob_str text)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	if (parser->error == YAML_READER_ERROR)
		return fault(b, pos_of_offset(text, parser->problem_offset), parser->problem);

	struct ob_yaml_pos at = pos_of(parser->problem_mark);
	bool tab = byte_at(text, at) == '\t' && !strstr(parser->problem, "tab");

	b->at = at;
	return ob_err_set(b->err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%s%s%s%s", parser->problem,
			  parser->context ? " " : "", parser->context ? parser->context : "",
			  tab ? " (a tab: indent with spaces)" : "");
}

static int run(struct builder *b, struct ob_str text)
{
	yaml_parser_t parser;
	yaml_event_t event;
	bool more = true;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return no_memory(b);
	/* Nobody writes UTF-16 on purpose; libyaml would guess it from the first bytes. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
	while (r == 0 && more) {
		if (!yaml_parser_parse(&parser, &event)) {
			r = library_fault(b, &parser, text);
			break;
		}
		more = event.type != YAML_STREAM_END_EVENT;
		r = on_event(b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return r;
}

int ob_yaml_parse(struct ob_str text, struct ob_arena *arena, struct ob_yaml **ret_root,
		  struct ob_yaml_pos *ret_at, struct ob_err *err)
{
	struct builder b = { .arena = arena, .err = err };
	int r;

	if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0) {
		text.p += 3;
		text.n -= 3;
	}
	if (text.n > OB_YAML_SIZE_MAX)
		r = fault(&b, (struct ob_yaml_pos){ 0 }, "is larger than 1024 KB");
	else
		r = run(&b, text.p ? text : OB_STR(""));
	if (r < 0) {
		*ret_at = b.at;
		return r;
	}
	*ret_root = b.root;
	return 0;
}

struct ob_yaml *ob_yaml_get(const struct ob_yaml *node, const char *key)
{
	if (!node || node->kind != OB_YAML_MAPPING)
		return NULL;
	for (struct ob_yaml *child = node->first; child; child = child->next) {
		if (strcmp(child->key, key) == 0)
			return child;
	}
	return NULL;
}

bool ob_yaml_is_null(const struct ob_yaml *node)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };

	if (node->kind != OB_YAML_SCALAR || !node->plain)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(node->text, words[i]) == 0)
			return true;
	}
	return false;
}

const char *ob_yaml_kind_name(const struct ob_yaml *node)
{
	switch (node->kind) {
	case OB_YAML_SCALAR:
		return "a text";
	case OB_YAML_LIST:
		return "a list";
	case OB_YAML_MAPPING:
		return "a mapping";
	}
	return "nothing";
}

/* SPDX-License-Identifier: MIT */
/* A cluster: which server has a stream. Learnt from the redirections, a slot at a time. */
#include "sink/redis/redis.h"

#include <stdlib.h>

enum { SLOTS = 16384 };

/* CRC-16/XMODEM */
static uint16_t crc16(struct ob_str s)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < s.n; i++) {
		crc = (uint16_t)(crc ^ (unsigned char)s.p[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

uint16_t ob_redis_slot(struct ob_str name)
{
	const char *open = memchr(name.p, '{', name.n);
	size_t rest = open ? name.n - (size_t)(open - name.p) - 1 : 0;
	const char *close = open ? memchr(open + 1, '}', rest) : NULL;

	if (close && close > open + 1)
		name = (struct ob_str){ open + 1, (size_t)(close - open) - 1 };
	return crc16(name) % SLOTS;
}

bool ob_redis_redirect_parse(struct ob_str text, struct ob_redis_redirect *ret)
{
	char copy[320], *end;

	if (text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	ret->ask = strncmp(copy, "ASK ", 4) == 0;
	if (!ret->ask && strncmp(copy, "MOVED ", 6) != 0)
		return false;
	unsigned long slot = strtoul(copy + (ret->ask ? 4 : 6), &end, 10);
	char *colon = strrchr(end, ':');
	if (*end != ' ' || slot >= SLOTS || !colon)
		return false;
	*colon = '\0';
	ret->slot = (uint16_t)slot;
	return snprintf(ret->host, sizeof(ret->host), "%s", end + 1) < (int)sizeof(ret->host) &&
	       snprintf(ret->port, sizeof(ret->port), "%s", colon + 1) < (int)sizeof(ret->port);
}

static struct ob_redis_node *find_node(struct redis_sink *sink, const char *host, const char *port,
				       uint8_t *ret_index)
{
	for (uint32_t i = 0; i < sink->node_count; i++) {
		struct ob_redis_node *node = sink->nodes[i];

		*ret_index = (uint8_t)i;
		if (strcmp(node->host, host) == 0 && strcmp(node->port, port) == 0)
			return node;
	}
	if (sink->node_count == OB_REDIS_NODES)
		return NULL;
	struct ob_redis_node *node = ob_redis_node_new(sink, host, port);
	if (!node)
		return NULL;
	*ret_index = (uint8_t)sink->node_count;
	sink->nodes[sink->node_count++] = node;
	return node;
}

bool ob_redis_redirect(struct redis_sink *sink, const struct ob_redis_node *from,
		       struct ob_lane *lane, const struct ob_redis_redirect *to)
{
	uint8_t index = 0;
	struct ob_redis_node *node =
		find_node(sink, to->host[0] ? to->host : from->host, to->port, &index);

	if (!node || lane->redirects++ >= OB_REDIS_REDIRECTS)
		return false;
	if (to->ask) {
		lane->detour = node; /* this command alone: the slot is still being moved */
		return true;
	}
	if (!sink->slots)
		sink->slots = calloc(SLOTS, 1);
	if (!sink->slots)
		return false;
	sink->slots[to->slot] = index;
	return true;
}

struct ob_redis_node *ob_redis_route(struct redis_sink *sink, const struct ob_lane *lane,
				     struct ob_err *err)
{
	struct ob_redis_node *node = lane->detour;

	if (!node && sink->slots)
		node = sink->nodes[sink->slots[ob_redis_slot(lane->head->delivery.destination)]];
	if (!node)
		node = sink->nodes[0];
	return node->open || ob_redis_node_open(sink, node, err) == 0 ? node : NULL;
}

void ob_redis_forget_node(struct redis_sink *sink, const struct ob_redis_node *node)
{
	for (size_t i = 0; sink->slots && i < SLOTS; i++) {
		if (sink->nodes[sink->slots[i]] == node)
			sink->slots[i] = 0;
	}
}

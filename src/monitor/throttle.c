/* SPDX-License-Identifier: MIT */
/* A bucket for each address, kept as the time at which it will be full. */
#include "monitor/throttle.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { NETWORK = 8 }; /* bytes of an IPv6 address that its owner cannot choose */

static void name_address(const char *address, char out[OB_THROTTLE_ADDRESS])
{
	struct in6_addr six;

	(void)snprintf(out, OB_THROTTLE_ADDRESS, "%.47s", *address ? address : "unknown");
	if (inet_pton(AF_INET6, address, &six) != 1)
		return;
	memset(six.s6_addr + NETWORK, 0, sizeof(six.s6_addr) - NETWORK);
	(void)inet_ntop(AF_INET6, &six, out, OB_THROTTLE_ADDRESS);
}

/* Its slot, or the one that is free or was wrong longest ago. */
static const struct ob_throttle_slot *find_slot(const struct ob_throttle *throttle,
						const char *address)
{
	const struct ob_throttle_slot *found = &throttle->slots[0];

	for (int i = 0; i < OB_THROTTLE_SLOTS; i++) {
		const struct ob_throttle_slot *slot = &throttle->slots[i];

		if (strcmp(slot->address, address) == 0)
			return slot;
		if (slot->full_us < found->full_us)
			found = slot;
	}
	return found;
}

bool ob_throttle_allows(const struct ob_throttle *throttle, const char *address, int64_t now_us)
{
	char name[OB_THROTTLE_ADDRESS];

	name_address(address, name);
	const struct ob_throttle_slot *slot = find_slot(throttle, name);
	return strcmp(slot->address, name) != 0 ||
	       slot->full_us - now_us <= (OB_THROTTLE_BURST - 1) * (int64_t)OB_THROTTLE_US;
}

void ob_throttle_note(struct ob_throttle *throttle, const char *address, int64_t now_us)
{
	char name[OB_THROTTLE_ADDRESS];

	name_address(address, name);
	struct ob_throttle_slot *slot =
		&throttle->slots[find_slot(throttle, name) - throttle->slots];
	if (strcmp(slot->address, name) != 0 || slot->full_us < now_us)
		slot->full_us = now_us;
	memcpy(slot->address, name, sizeof(name));
	slot->full_us += OB_THROTTLE_US;
	throttle->wrong++;
}

/* SPDX-License-Identifier: MIT */
/* Tables of the special ranges (IANA's registries, and what clouds use for metadata). */
#include "sink/http/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct range4 {
	uint8_t net[4];
	unsigned bits;
};

static const struct range4 refused4[] = {
	{ { 0 }, 8 },                 /* this network; the kernel takes 0.0.0.0 for loopback */
	{ { 10 }, 8 },                /* private */
	{ { 100, 64 }, 10 },          /* carriers; also the metadata of one cloud */
	{ { 127 }, 8 },               /* loopback */
	{ { 168, 63, 129, 16 }, 32 }, /* a cloud's agent, public by its number only */
	{ { 169, 254 }, 16 },         /* link-local, the metadata of most clouds */
	{ { 172, 16 }, 12 },          /* private */
	{ { 192, 0, 0 }, 24 },        /* protocol assignments */
	{ { 192, 0, 2 }, 24 },        /* documentation */
	{ { 192, 88, 99 }, 24 },      /* 6to4 relays, withdrawn */
	{ { 192, 168 }, 16 },         /* private */
	{ { 198, 18 }, 15 },          /* benchmarks */
	{ { 198, 51, 100 }, 24 },     /* documentation */
	{ { 203, 0, 113 }, 24 },      /* documentation */
	{ { 224 }, 4 },               /* multicast */
	{ { 240 }, 4 },               /* reserved, broadcast */
};

struct range6 {
	uint8_t net[16];
	unsigned bits;
};

/* Inside 2000::/3, the only part of IPv6 that is public at all. */
static const struct range6 refused6[] = {
	{ { 0x20, 0x01 }, 23 },             /* protocol assignments, with Teredo */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x3f, 0xff }, 20 },             /* documentation */
};

static bool has_prefix(const uint8_t *addr, const uint8_t *net, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(addr, net, bytes) != 0)
		return false;
	return rest == 0 || (addr[bytes] ^ net[bytes]) >> (8 - rest) == 0;
}

static bool is_public4(const uint8_t *addr)
{
	for (size_t i = 0; i < sizeof(refused4) / sizeof(refused4[0]); i++) {
		if (has_prefix(addr, refused4[i].net, refused4[i].bits))
			return false;
	}
	return true;
}

static bool is_public6(const uint8_t *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const uint8_t global[1] = { 0x20 };
	static const uint8_t six_to_four[2] = { 0x20, 0x02 };

	if (has_prefix(addr, mapped, 96) || has_prefix(addr, nat64, 96))
		return is_public4(addr + 12);
	if (has_prefix(addr, six_to_four, 16))
		return is_public4(addr + 2);
	for (size_t i = 0; i < sizeof(refused6) / sizeof(refused6[0]); i++) {
		if (has_prefix(addr, refused6[i].net, refused6[i].bits))
			return false;
	}
	return has_prefix(addr, global, 3);
}

/* The bytes of the address, of a sockaddr that may stand anywhere in memory. */
static int get_bytes(const struct sockaddr *addr, uint8_t out[16])
{
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	if (addr->sa_family == AF_INET) {
		memcpy(&in4, addr, sizeof(in4));
		memcpy(out, &in4.sin_addr, 4);
		return 4;
	}
	if (addr->sa_family != AF_INET6)
		return 0;
	memcpy(&in6, addr, sizeof(in6));
	memcpy(out, &in6.sin6_addr, 16);
	return 16;
}

bool ob_http_addr_is_public(const struct sockaddr *addr)
{
	uint8_t bytes[16];
	int n = get_bytes(addr, bytes);

	return n == 4 ? is_public4(bytes) : n == 16 && is_public6(bytes);
}

bool ob_http_addr_is_loopback(const struct sockaddr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };
	static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	uint8_t bytes[16];
	int n = get_bytes(addr, bytes);

	if (n == 4)
		return bytes[0] == 127;
	return n == 16 && (has_prefix(bytes, one, 128) || has_prefix(bytes, mapped, 104));
}

void ob_http_addr_format(const struct sockaddr *addr, char *out, size_t size)
{
	uint8_t bytes[16];
	int n = get_bytes(addr, bytes);

	if (n == 0 || !inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, out, (socklen_t)size))
		(void)snprintf(out, size, "an address of another family");
}

/* SPDX-License-Identifier: MIT */
/*
 * UUID text forms and the version 7 generator. Behind the 48 bits of time come
 * 42 bits of counter (the 12 behind the version, then the upper 30 behind the
 * variant) and 32 random bits. Each millisecond starts the counter at a random
 * place in its lower half, so at least 2^41 ids fit behind any start.
 */
#include "base/uuid.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

enum { COUNTER_BITS = 42 };
#define COUNTER_LAST ((UINT64_C(1) << COUNTER_BITS) - 1)

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Is a dash written before byte i of the canonical form? */
static bool dash_before(size_t i)
{
	return i == 4 || i == 6 || i == 8 || i == 10;
}

bool ob_uuid_parse(struct ob_str text, struct ob_uuid *ret)
{
	bool dashes = text.n == OB_UUID_TEXT;
	const char *p = text.p;
	struct ob_uuid id;

	if (!p || (!dashes && text.n != 2 * sizeof(id.b)))
		return false;
	for (size_t i = 0; i < sizeof(id.b); i++) {
		if (dashes && dash_before(i) && *p++ != '-')
			return false;
		int high = hex_value(p[0]), low = hex_value(p[1]);
		if (high < 0 || low < 0)
			return false;
		id.b[i] = (uint8_t)(high << 4 | low);
		p += 2;
	}
	*ret = id;
	return true;
}

bool ob_uuid_scan(struct ob_str value, struct ob_uuid *ret)
{
	if (value.p && value.n == sizeof(ret->b)) {
		memcpy(ret->b, value.p, sizeof(ret->b));
		return true;
	}
	return ob_uuid_parse(value, ret);
}

bool ob_uuid_parse_v7(struct ob_str text, struct ob_uuid *ret)
{
	struct ob_uuid id;

	if (!ob_uuid_parse(text, &id) || ob_uuid_version(&id) != 7 || id.b[8] >> 6 != 2)
		return false;
	*ret = id;
	return true;
}

void ob_uuid_format(const struct ob_uuid *id, char out[OB_UUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char *p = out;

	for (size_t i = 0; i < sizeof(id->b); i++) {
		if (dash_before(i))
			*p++ = '-';
		*p++ = digits[id->b[i] >> 4];
		*p++ = digits[id->b[i] & 15];
	}
	*p = '\0';
}

bool ob_uuid_eq(const struct ob_uuid *a, const struct ob_uuid *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

bool ob_uuid_is_nil(const struct ob_uuid *id)
{
	static const struct ob_uuid nil;

	return ob_uuid_eq(id, &nil);
}

int ob_uuid_version(const struct ob_uuid *id)
{
	return id->b[6] >> 4;
}

/* For machines whose sandbox forbids getrandom(). */
static ssize_t read_urandom(uint8_t *out, size_t size)
{
	OB_AUTOCLOSE int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : read(fd, out, size);
}

static void fill_random(uint8_t *out, size_t size)
{
	while (size) {
		ssize_t n = getrandom(out, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			n = read_urandom(out, size);
		if (n <= 0)
			abort(); /* without randomness ids would repeat: losing messages is worse */
		out += n;
		size -= (size_t)n;
	}
}

/* `size` random bytes, at most 8; each byte of the pool is used once and wiped. */
static uint64_t draw(struct ob_uuid_gen *gen, size_t size)
{
	uint64_t bits = 0;

	if (gen->pool_left < size) {
		fill_random(gen->pool, sizeof(gen->pool));
		gen->pool_left = sizeof(gen->pool);
	}
	gen->pool_left -= size;
	memcpy(&bits, gen->pool + gen->pool_left, size);
	memset(gen->pool + gen->pool_left, 0, size);
	return bits;
}

void ob_uuid_gen_init(struct ob_uuid_gen *gen, const struct ob_clock *clock)
{
	*gen = (struct ob_uuid_gen){ .clock = clock };
}

/* Move to the next place after the last id: a later millisecond or the next count. */
static void advance(struct ob_uuid_gen *gen)
{
	int64_t now_us = ob_clock_real_us(gen->clock);
	uint64_t now_ms = now_us > 0 ? (uint64_t)now_us / 1000 : 0;

	if (now_ms <= gen->last_ms && gen->counter < COUNTER_LAST) {
		gen->counter++;
		return;
	}
	gen->last_ms = now_ms > gen->last_ms ? now_ms : gen->last_ms + 1;
	gen->counter = draw(gen, 6) & (COUNTER_LAST >> 1);
}

struct ob_uuid ob_uuid_gen_next(struct ob_uuid_gen *gen)
{
	struct ob_uuid id;

	advance(gen);
	uint64_t ms = gen->last_ms, random = draw(gen, 4);
	uint64_t high = gen->counter >> 30, low = gen->counter & ((1U << 30) - 1);
	for (int i = 0; i < 6; i++)
		id.b[i] = (uint8_t)(ms >> (40 - 8 * i));
	id.b[6] = (uint8_t)(0x70 | high >> 8);
	id.b[7] = (uint8_t)high;
	id.b[8] = (uint8_t)(0x80 | low >> 24);
	id.b[9] = (uint8_t)(low >> 16);
	id.b[10] = (uint8_t)(low >> 8);
	id.b[11] = (uint8_t)low;
	for (int i = 12; i < 16; i++)
		id.b[i] = (uint8_t)(random >> (8 * (i - 12)));
	return id;
}

/* The process's generator. `lock` guards all of it. */
static struct {
	pthread_mutex_t lock;
	struct ob_uuid_gen gen;
	bool fork_watched;
	pid_t pid; /* looked at only when fork is not watched */
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t process_once = PTHREAD_ONCE_INIT;

/*
 * Both processes hold the same state now. The child throws its random bytes
 * away and counts as if the millisecond were used up: its next id has a new
 * start, and still lies behind those made before the fork.
 */
static void forget_shared_state(void)
{
	memset(process.gen.pool, 0, sizeof(process.gen.pool));
	process.gen.pool_left = 0;
	process.gen.counter = COUNTER_LAST;
}

static void before_fork(void)
{
	(void)pthread_mutex_lock(&process.lock);
}

static void after_fork_in_parent(void)
{
	(void)pthread_mutex_unlock(&process.lock);
}

static void after_fork_in_child(void)
{
	forget_shared_state();
	(void)pthread_mutex_unlock(&process.lock);
}

static void process_init(void)
{
	ob_uuid_gen_init(&process.gen, &ob_clock_system);
	process.pid = getpid();
	process.fork_watched =
		pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

struct ob_uuid ob_uuid_new(void)
{
	(void)pthread_once(&process_once, process_init);
	(void)pthread_mutex_lock(&process.lock);
	if (!process.fork_watched && process.pid != getpid()) {
		forget_shared_state();
		process.pid = getpid();
	}
	struct ob_uuid id = ob_uuid_gen_next(&process.gen);
	(void)pthread_mutex_unlock(&process.lock);
	return id;
}

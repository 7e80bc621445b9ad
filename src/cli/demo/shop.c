/* SPDX-License-Identifier: MIT */
/* The shop takes orders at a steady pace until it is closed. */
#include "cli/demo/demo.h"

#include "base/cleanup.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { PACE_US = 5000, BUSY_MS = 10000, ROLLBACK_PC = 10 };

struct ob_demo_shop {
	pthread_mutex_t lock; /* guards the counts and the error */
	uint64_t committed, rolled_back;
	struct ob_err err;
	struct ob_orders *orders; /* the thread's, until it has ended */
	pthread_t thread;
	bool runs;
	int stop_fd;
};

static bool told_to_stop(const struct ob_demo_shop *shop, int64_t until_us)
{
	struct pollfd fd = { .fd = shop->stop_fd, .events = POLLIN };
	int64_t left = until_us - ob_clock_boot_us(&ob_clock_system);

	return poll(&fd, 1, left > 0 ? (int)((left + 999) / 1000) : 0) > 0;
}

static int take_order(struct ob_demo_shop *shop)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_orders_step(shop->orders, &err);

	(void)pthread_mutex_lock(&shop->lock);
	if (r < 0 && err.kind == OB_ERR_DOWN)
		r = 0; /* nothing was written, the next one may pass */
	else if (r < 0)
		shop->err = err;
	shop->committed = ob_orders_journal(shop->orders)->committed;
	shop->rolled_back = ob_orders_journal(shop->orders)->count - shop->committed;
	(void)pthread_mutex_unlock(&shop->lock);
	return r;
}

static void *run(void *arg)
{
	struct ob_demo_shop *shop = arg;
	int64_t next_us = ob_clock_boot_us(&ob_clock_system);

	while (!told_to_stop(shop, next_us) && take_order(shop) == 0) {
		int64_t now_us = ob_clock_boot_us(&ob_clock_system);

		/* what was missed is not made up for: a slow disk sets the pace */
		next_us = next_us + PACE_US > now_us ? next_us + PACE_US : now_us;
	}
	return NULL;
}

OB_DEFINE_CLEANUP(struct ob_demo_shop *, ob_demo_shop_free)

int ob_demo_shop_open(const struct ob_demo_files *files, struct ob_demo_shop **ret_shop,
		      struct ob_err *err)
{
	struct ob_orders_conf conf = {
		.path = files->database,
		.seed = (uint64_t)ob_clock_real_us(&ob_clock_system),
		.customers = OB_DEMO_CUSTOMERS,
		.rollback_pc = ROLLBACK_PC,
		.busy_ms = BUSY_MS,
	};
	OB_CLEANUP(ob_demo_shop_freep) struct ob_demo_shop *shop = calloc(1, sizeof(*shop));

	if (!shop)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "opening the shop");
	(void)pthread_mutex_init(&shop->lock, NULL);
	shop->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (shop->stop_fd < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "opening an eventfd");
	int r = ob_orders_new(&conf, &shop->orders, err);
	if (r < 0)
		return r;
	if (pthread_create(&shop->thread, NULL, run, shop) != 0)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting the shop's thread");
	shop->runs = true;
	*ret_shop = OB_TAKE(shop);
	return 0;
}

int ob_demo_shop_counts(struct ob_demo_shop *shop, uint64_t *ret_committed,
			uint64_t *ret_rolled_back, struct ob_err *err)
{
	int r;

	(void)pthread_mutex_lock(&shop->lock);
	*ret_committed = shop->committed;
	*ret_rolled_back = shop->rolled_back;
	r = shop->err.status;
	if (r < 0)
		*err = shop->err;
	(void)pthread_mutex_unlock(&shop->lock);
	return r;
}

void ob_demo_shop_close(struct ob_demo_shop *shop)
{
	if (!shop->runs)
		return;
	(void)eventfd_write(shop->stop_fd, 1);
	(void)pthread_join(shop->thread, NULL);
	shop->runs = false;
}

const struct ob_audit_journal *ob_demo_shop_journal(const struct ob_demo_shop *shop)
{
	return ob_orders_journal(shop->orders);
}

void ob_demo_shop_free(struct ob_demo_shop *shop)
{
	if (!shop)
		return;
	ob_demo_shop_close(shop);
	ob_orders_free(shop->orders);
	if (shop->stop_fd >= 0)
		(void)close(shop->stop_fd);
	(void)pthread_mutex_destroy(&shop->lock);
	free(shop);
}

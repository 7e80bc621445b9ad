/* SPDX-License-Identifier: MIT */
/* What leaser and worker share, and the arithmetic of shares. */
#include "relay/leaser.h"

int ob_lease_view_init(struct ob_lease_view *view, struct ob_err *err)
{
	*view = (struct ob_lease_view){ 0 };
	view->leases = calloc(OB_PARTITIONS_MAX, sizeof(*view->leases));
	if (!view->leases)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a view of leases");
	(void)pthread_mutex_init(&view->lock, NULL);
	return 0;
}

void ob_lease_view_done(struct ob_lease_view *view)
{
	if (!view->leases)
		return;
	(void)pthread_mutex_destroy(&view->lock);
	free(view->leases);
	view->leases = NULL;
}

uint32_t ob_fair_share(uint32_t partitions, uint32_t workers, uint32_t index)
{
	if (workers == 0 || index >= workers)
		return 0;
	return partitions / workers + (index < partitions % workers ? 1 : 0);
}

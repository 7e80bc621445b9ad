/* SPDX-License-Identifier: MIT */
/* The files of the pages, in the program. */
#ifndef OB_MONITOR_ASSETS_H
#define OB_MONITOR_ASSETS_H

#include <stddef.h>

struct ob_asset {
	const char *name, *type, *etag;
	const unsigned char *raw;
	size_t size;
	const unsigned char *gzip;
	size_t gzip_size;
};

/* The file of that name, or NULL. */
const struct ob_asset *ob_asset_find(const char *name);

#endif

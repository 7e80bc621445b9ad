/* SPDX-License-Identifier: MIT */
#include "monitor/assets.h"

#include "assets_data.h"

#include <string.h>

const struct ob_asset *ob_asset_find(const char *name)
{
	for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
		if (strcmp(assets[i].name, name) == 0)
			return &assets[i];
	}
	return NULL;
}

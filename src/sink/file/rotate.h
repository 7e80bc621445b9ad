/* SPDX-License-Identifier: MIT */
/*
 * Setting a full file aside. "out.ndjson" becomes
 * "out.ndjson.20260504T030201-000": the time in UTC and a number, so that the
 * names sort in the order of rotation even when the clock steps back.
 */
#ifndef OB_SINK_FILE_ROTATE_H
#define OB_SINK_FILE_ROTATE_H

#include <stdint.h>

/*
 * Rename `path`; never over an existing file. 0, or -1 with errno. The caller
 * holds whatever keeps others from doing the same, and syncs the directory.
 */
int ob_rotate_rename(const char *path, int64_t now_us);
/*
 * Remove the oldest rotated files of `path` until `keep` are left; 0: keep all.
 * What cannot be removed stays: a full directory is no reason to stop.
 */
void ob_rotate_prune(const char *path, uint32_t keep);
/* Make what was created or renamed in the directory of `path` durable. 0, or -1 with errno. */
int ob_rotate_sync_dir(const char *path);

#endif

-- The connection itself: transactions and settings.

-- name: begin_write
-- IMMEDIATE: a read that turns into a write would fail at once when someone else wrote.
BEGIN IMMEDIATE;

-- name: begin_read
BEGIN;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: wal
PRAGMA journal_mode = WAL;

-- name: synchronous_full
PRAGMA synchronous = FULL;

-- name: synchronous_normal
PRAGMA synchronous = NORMAL;

-- name: cache
-- 16 MB at most: with SQLite's 2 MB a batch of large rows is read and written twice.
PRAGMA cache_size = -16000;

-- name: only_read
-- Of a connection that only looks.
PRAGMA query_only = 1;

-- name: data_version
-- Changes when another connection commits, not when this one does.
PRAGMA data_version;

-- name: journal_mode
PRAGMA journal_mode;

-- name: pages
SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size;

-- name: time
SELECT :now;

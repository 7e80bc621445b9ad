/* SPDX-License-Identifier: MIT */
/* A file for the bare loop: a line of JSON for each message, one write and one sync for a batch. */
#include "base/json.h"
#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_MAX = 512 << 20 };

struct sink {
	int fd;
	struct ob_buf lines;
};

static void *file_open(const char *address)
{
	struct sink *s = bench_need(calloc(1, sizeof(*s)));

	s->fd = open(address, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (s->fd < 0)
		bench_fatal("%s: %m", address);
	s->lines = OB_BUF_INIT(LINES_MAX);
	return s;
}

static void add_line(struct ob_buf *out, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS];
	size_t count = bare_fields(row, fields);

	for (size_t i = 0; i < count; i++) {
		ob_buf_addc(out, i ? ',' : '{');
		ob_json_add_string(out, fields[i].name);
		ob_buf_addc(out, ':');
		ob_json_add_string(out, fields[i].value);
	}
	ob_buf_add(out, OB_STR(",\"payload\":"));
	ob_buf_add(out, row->payload);
	ob_buf_add(out, OB_STR("}\n"));
}

static void file_publish(void *sink, const struct bare_row *rows, size_t count)
{
	struct sink *s = sink;

	ob_buf_clear(&s->lines);
	for (size_t i = 0; i < count; i++)
		add_line(&s->lines, &rows[i]);
	for (size_t at = 0; at < s->lines.len;) {
		ssize_t n = write(s->fd, s->lines.data + at, s->lines.len - at);

		if (n < 0)
			bench_fatal("writing the file: %m");
		at += (size_t)n;
	}
	if (fdatasync(s->fd) < 0)
		bench_fatal("syncing the file: %m");
}

const struct bare_sink_ops bare_file = { "file", file_open, file_publish };

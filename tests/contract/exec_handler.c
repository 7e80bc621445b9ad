/* SPDX-License-Identifier: MIT */
/* The handler of the exec sink under test: appends every line to a file, then says ok. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const char before_id[] = "{\"id\":\"";
	const size_t prefix = sizeof(before_id) - 1;
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	int fd = argc == 2 ? open(argv[1], O_WRONLY | O_APPEND) : -1;
	if (fd < 0)
		return 2;
	while ((n = getline(&line, &size, stdin)) > 0) {
		if ((size_t)n < prefix + 36 || memcmp(line, before_id, prefix) != 0)
			return 3;
		if (write(fd, line, (size_t)n) != n)
			return 4;
		(void)printf("ok %.36s\n", line + prefix);
		if (fflush(stdout) != 0)
			return 5;
	}
	free(line);
	return 0;
}

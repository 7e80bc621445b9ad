/* SPDX-License-Identifier: MIT */
/* The program on a terminal, with a person at it. */
#ifndef OB_TESTS_CLI_TERMINAL_H
#define OB_TESTS_CLI_TERMINAL_H

/*
 * Run the program with these words on a terminal of its own. When `prompt` has
 * appeared, type `answer`. Demands that all that stands on the terminal at
 * the end is `want` (line breaks are "\r\n") and returns the exit code.
 */
int at_terminal(const char *const *words, const char *prompt, const char *answer, const char *want);

#endif

/* SPDX-License-Identifier: MIT */
/* The same program as C++. */
#include "header_postgres.c"

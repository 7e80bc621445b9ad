/* SPDX-License-Identifier: MIT */
/* The states of exceptions as numbers of SQL templates: {=waiting}, {=failed}, ... */
#ifndef OB_STORE_NUMBERS_H
#define OB_STORE_NUMBERS_H

#include "base/sqltmpl.h"
#include "log/exception.h"

/* Rows of a table of struct ob_sqltmpl_number. */
#define OB_STATE_NUMBER(name, word, number) { #word, OB_STATE_##name },
#define OB_STATE_NUMBERS                    OB_STATE_MAP(OB_STATE_NUMBER)

#endif

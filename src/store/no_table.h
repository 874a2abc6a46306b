/* SPDX-License-Identifier: Apache-2.0 */
/* The error text for a table that does not exist. All functions and requests use the same text.
 * It begins like the text of Reverb, and lists the tables that exist. */
#ifndef RP_STORE_NO_TABLE_H
#define RP_STORE_NO_TABLE_H

#include "reprise/tensor.h"

/* An iterator: each call returns the name of the next table; after the last table, it returns
 * NULL. */
typedef const char *rp_next_table(void *ctx);

/* Writes the error text about the table `name`, with as many names from next(ctx) as fit.
 * Returns RP_NOT_FOUND. */
rp_status rp_no_table(rp_string name, rp_next_table *next, void *ctx, rp_error *err);

#endif

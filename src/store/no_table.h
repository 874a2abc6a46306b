/* SPDX-License-Identifier: Apache-2.0 */
/* The error of a table that does not exist, the same in every call: it begins as Reverb's does
 * and lists the tables that exist. */
#ifndef RP_STORE_NO_TABLE_H
#define RP_STORE_NO_TABLE_H

#include "reprise/tensor.h"

/* Returns the names of tables, one after the other, and then NULL. */
typedef const char *rp_next_table(void *ctx);

/* Writes the error about `name`, with as many names of `next` as fit. Returns RP_NOT_FOUND. */
rp_status rp_no_table(rp_string name, rp_next_table *next, void *ctx, rp_error *err);

#endif

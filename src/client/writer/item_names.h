/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature, which lists the
 * columns that an item of the table must have. */
#ifndef RP_CLIENT_WRITER_ITEM_NAMES_H
#define RP_CLIENT_WRITER_ITEM_NAMES_H

#include "reprise/trajectory_writer.h"

/* The columns of an item are matched with those of the signature by position. If a name differs
 * from that of the signature at the same position, the caller has probably exchanged two
 * columns of the same type, and the result is RP_INVALID.
 *
 * A name is a path: keys of dicts and positions in lists, joined with '/'. Two paths differ if
 * their first unequal parts are two keys. They do not differ if one of these parts is a
 * position, because an item given as a list fits a table whose signature is a dict. These
 * columns always fit: a column without a name; a column whose name is the end of the
 * signature's path ("logits" for "extras/logits"); and every column if the signature is a
 * single leaf. `columns` must have as many columns as the signature. */
RP_NODISCARD rp_status rp_item_names_check(const rp_signature *signature,
                                           const rp_item_column *columns, rp_error *err);

enum { RP_NAME_LIST_BYTES = 128 };
/* Lists the names of the columns of a signature, "action, obs", as many as fit, and how many
 * more there are. Returns `text`. */
const char *rp_item_names_list(const rp_signature *signature, char text[RP_NAME_LIST_BYTES]);

/* Returns the last part of the error text for an item that does not fit a cached signature:
 * that this signature is possibly out of date, because no server sent the present one within
 * `wait`. */
const char *rp_item_names_old(rp_wait wait);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature. */
#ifndef RP_CLIENT_WRITER_ITEM_NAMES_H
#define RP_CLIENT_WRITER_ITEM_NAMES_H

#include "reprise/trajectory_writer.h"

/* Columns are matched by position. So a column that has a name must have the name that the
 * signature has at its position: otherwise two columns of one type would be exchanged. A name
 * is a path: keys and positions, joined with '/'. Two paths differ if the first parts that are
 * not equal are both names. A position is not compared with a name, nor is a column without a
 * name: a list may be an item of a table whose signature is a dict. If the signature is one
 * leaf, nothing is compared. The end of the signature's path is accepted as well: "logits" for
 * "extras/logits". RP_INVALID. `columns` must have as many columns as the signature. */
RP_NODISCARD rp_status rp_item_names_check(const rp_signature *signature,
                                           const rp_item_column *columns, rp_error *err);

enum { RP_NAME_LIST_BYTES = 128 };
/* Lists the names of the columns of a signature, "action, obs", as many as fit, and how many
 * more there are. Returns `text`. */
const char *rp_item_names_list(const rp_signature *signature, char text[RP_NAME_LIST_BYTES]);

/* Returns the end of the error of an item that does not fit a signature which could not be
 * asked for again within `wait`. */
const char *rp_item_names_old(rp_wait wait);

#endif

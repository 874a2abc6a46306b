/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature.
 *
 * The columns of an item are matched with the signature by position, as in Reverb. So an item
 * whose names differ would return its columns under the names of others. A writer compares each
 * pair of table and structure once, and at most CORE_NAMES pairs. */
#ifndef REPRISE_PYTHON_NAMES_H
#define REPRISE_PYTHON_NAMES_H

#include "core.h"

enum { CORE_NAMES = 16 }; /* pairs that a writer remembers */

/* The pairs that were compared: references, or NULL. Zeroes are an empty one. */
typedef struct core_names {
    PyObject *tables[CORE_NAMES], *structures[CORE_NAMES];
    int64_t ask_ns; /* no signature is requested before this time */
} core_names;

typedef struct core_names_question {
    PyObject *client, *table;
    const char *table_name;
    PyObject *structure; /* of the item */
    bool is_step;        /* of a writer of whole steps, whose error has another text */
} core_names_question;

/* Compares a pair, unless it was compared before. ValueError if the names differ. Requests the
 * signature and waits for it for at most `timeout_ms` (< 0: no limit), and half a second. If no
 * server can be reached or responds, nothing is compared, and an item five seconds later tries
 * again. */
int core_names_check(core_names *names, const core_names_question *question,
                     int64_t timeout_ms);

void core_names_clear(core_names *names);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature.
 *
 * The columns of an item are matched with the signature by position, as in Reverb. So if the
 * names of an item differ from those of the signature, its samples would have columns under
 * wrong names. A writer compares each pair of a table and a structure (the nest of an item's
 * columns) once. After CORE_NAMES pairs it compares no others. */
#ifndef REPRISE_PYTHON_NAMES_H
#define REPRISE_PYTHON_NAMES_H

#include "core.h"

enum { CORE_NAMES = 16 }; /* pairs that a writer remembers */

/* The pairs that were compared. Each entry is a reference, or NULL if it is not used.
 * Zero-initialise it. */
typedef struct core_names {
    PyObject *tables[CORE_NAMES], *structures[CORE_NAMES];
    bool prioritized[CORE_NAMES]; /* the table has a prioritized selector */
    int64_t ask_ns;               /* no signature is requested before this time */
    int64_t waited_ns; /* how long requests have waited in vain; the owner clears it once a
                          server has answered */
} core_names;

typedef struct core_names_question {
    PyObject *client, *table;
    const char *table_name;
    PyObject *structure; /* the structure of the item */
    bool is_step; /* the item is from a writer of whole steps, for which the error has another
                     text */
} core_names_question;

/* Compares a pair that was not compared before. ValueError if the names differ. Requests the
 * signature from a server and waits at most half a second. If `timeout_ms` is not negative,
 * also waits no longer than that. If no server responds, nothing is compared and the call
 * succeeds; the next request is made five seconds later at the earliest. A table that does not
 * exist is left to the item, whose error has the tables. */
int core_names_check(core_names *names, const core_names_question *question,
                     int64_t timeout_ms);

/* Like core_names_check(), for an item that is to be in several tables: NotFoundError if the
 * table does not exist, and ValueError if it refuses the priority, so that no table gets the
 * item. Before a priority is refused, the server is asked again, since the table may have been
 * created anew. */
int core_names_check_all(core_names *names, const core_names_question *question,
                         double priority, int64_t timeout_ms);

void core_names_clear(core_names *names);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature, which lists the
 * columns that an item of the table must have.
 *
 * The columns of an item are matched with the signature by position, as in Reverb. If the names
 * of an item differed from those of the signature, its samples would have columns under wrong
 * names. A writer compares each pair of a table and a structure (the nest of an item's columns,
 * nest.h) once. After CORE_NAMES different pairs, the writer compares no others. */
#ifndef REPRISE_PYTHON_NAMES_H
#define REPRISE_PYTHON_NAMES_H

#include "core.h"

enum { CORE_NAMES = 16 }; /* pairs that a writer remembers */

/* The pairs that were compared. Each entry is a reference, or NULL if it is not used.
 * Zero-initialise it. */
typedef struct core_names {
    PyObject *tables[CORE_NAMES], *structures[CORE_NAMES];
    bool prioritized[CORE_NAMES]; /* the table samples or evicts by priority */
    int64_t ask_ns;               /* no signature is requested before this time */
    int64_t waited_ns; /* sum of the times of requests that failed. The owner passes it to
                          core_wait_after(), so that warnings report the whole wait, and sets it
                          to 0 when a server responds */
} core_names;

typedef struct core_names_question {
    PyObject *client, *table;
    const char *table_name;
    PyObject *structure; /* the structure of the item */
    bool is_step; /* the item is from a writer of whole steps, for which the error has another
                     text */
} core_names_question;

/* Compares the table and structure in `question`, unless this pair was compared before or
 * CORE_NAMES pairs are remembered. ValueError if the names differ. Requests the signature from
 * a server, and waits for at most half a second, and for at most `timeout_ms` if that is not
 * negative. If no server responds, compares nothing and returns 0; the next request is made
 * five seconds later at the earliest. If the table does not exist, also returns 0: the
 * insertion of the item then fails, with an error that lists the tables. */
int core_names_check(core_names *names, const core_names_question *question,
                     int64_t timeout_ms);

/* Like core_names_check(), for a caller that inserts one item into several tables. Must be
 * called for each table before the first insertion, so that after a failure no table has the
 * item. Also fails with NotFoundError if the table does not exist, and with ValueError if it
 * does not accept `priority`. Before this ValueError, asks the server again, because another
 * process could have dropped the table and created it with other options. */
int core_names_check_all(core_names *names, const core_names_question *question,
                         double priority, int64_t timeout_ms);

void core_names_clear(core_names *names);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters through a table: a learner publishes them, actors and evaluators fetch them.
 *
 * The table has one item, the latest parameters, with a version: 1, 2, ... A client asks the
 * table for its version before it fetches, so parameters that have not changed are not sent
 * again. Both work with a store of this process and with a server. If a server lost its tables,
 * versions begin anew; clients fetch them although they are smaller.
 *
 * One thread at a time may use a source or a client. */
#ifndef REPRISE_RL_VARIABLES_H
#define REPRISE_RL_VARIABLES_H

#include "reprise/client.h"
#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_variable_source rp_variable_source;
typedef struct rp_variable_client rp_variable_client;

/* What both sides must agree on. */
typedef struct rp_variable_options {
    rp_client *client; /* must outlive the source or client */
    const char *table; /* copied; the source creates it, if it does not exist */
    size_t count;      /* numbers, >= 1 */
    /* For a source only: what ends its waits for the server. Zero: nothing does. */
    int64_t timeout_ms; /* the longest wait of a call; 0: no limit */
    rp_cancel *cancel;  /* may be NULL */
} rp_variable_options;

/* Makes a source. Versions continue those of a table that exists. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_variable_source_new(const rp_allocator *alloc,
                                                     const rp_variable_options *options,
                                                     rp_variable_source **out, rp_error *err);
RP_API void rp_variable_source_free(rp_variable_source *source); /* NULL is fine */

/* Publishes `count` numbers, with one number of the learner's own beside them (its steps, for
 * example), and waits until they are in the table. Writes their version. The statuses are those
 * of a writer. After a failure the numbers may have been published or not: free the source, and
 * make another one. */
RP_API RP_NODISCARD rp_status rp_variable_source_publish(rp_variable_source *source,
                                                         const rp_real *numbers, int64_t note,
                                                         int64_t *version, rp_error *err);

/* Asks the table whether its latest item is that of the last publication. It is not if others
 * have written to the table, or deleted the item: then publish again; versions go on from
 * there. A status of the client. */
RP_API RP_NODISCARD rp_status rp_variable_source_is_latest(rp_variable_source *source,
                                                           bool *latest, rp_error *err);

/* Makes a client. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_variable_client_new(const rp_allocator *alloc,
                                                     const rp_variable_options *options,
                                                     rp_variable_client **out, rp_error *err);
RP_API void rp_variable_client_free(rp_variable_client *client); /* NULL is fine */

typedef struct rp_variables {
    int64_t version; /* 0: nothing has been published */
    int64_t note;
    bool changed; /* fetched by this call */
} rp_variables;

/* No number of a client is larger in size. */
#define RP_VARIABLE_BOUND 1e6F

/* Fetches the parameters if they are not those of the last call: writes `count` numbers.
 * Otherwise `numbers` stays as it is. Waits for the server only.
 * RP_CORRUPT (an item of another size, that cannot be decoded, or with numbers that are not
 * finite or over RP_VARIABLE_BOUND; `numbers` may have been written to; the item is not fetched
 * again, so that later calls succeed until the table has another one), or a status of the
 * client. */
RP_API RP_NODISCARD rp_status rp_variable_client_update(rp_variable_client *client,
                                                        rp_real *numbers, rp_wait wait,
                                                        rp_variables *out, rp_error *err);

RP_END_DECLS

#endif

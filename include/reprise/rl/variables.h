/* SPDX-License-Identifier: Apache-2.0 */
/* Shares parameters through a table, within a process or between processes. A learner publishes
 * parameters with a variable source (rp_variable_source). Actors and evaluators fetch
 * parameters with a variable client (rp_variable_client). Below, these two are called source
 * and client.
 *
 * The table has one item: the latest parameters. Each publication has a version: 1, 2, ... A
 * client first asks the table for the version, so parameters that have not changed are not sent
 * again. The table is in a store of this process or on a server. If a server has lost its
 * tables, versions start at 1 again, and a client fetches the new parameters although their
 * version is smaller.
 *
 * One thread at a time may use a source or a client. */
#ifndef REPRISE_RL_VARIABLES_H
#define REPRISE_RL_VARIABLES_H

#include "reprise/client.h"
#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_variable_source rp_variable_source;
typedef struct rp_variable_client rp_variable_client;

/* The options of a source or a client. A source and its clients must use the same `table` and
 * `count`. */
typedef struct rp_variable_options {
    rp_client *client; /* the connection to the store or server (reprise/client.h). Must outlive
                          the source or the variable client */
    const char *table; /* copied; the source creates the table if it does not exist */
    size_t count;      /* number of parameters, >= 1 */
    /* The next two fields limit the waits of a source for the server. A variable client ignores
     * them, because rp_variable_client_update() has the argument `wait`. */
    int64_t timeout_ms; /* longest wait of a call; 0: no limit */
    rp_cancel *cancel;  /* cancels the waits of all calls; may be NULL */
} rp_variable_options;

/* Makes a source. If the table exists already, the versions of this source follow its latest
 * version. Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_variable_source_new(const rp_allocator *alloc,
                                                     const rp_variable_options *options,
                                                     rp_variable_source **out, rp_error *err);
RP_API void rp_variable_source_free(rp_variable_source *source); /* NULL is fine */

/* Publishes `count` numbers and waits until they are in the table. Writes their version to
 * `*version`. `note` is any number that the learner publishes along with them, for example its
 * number of steps. The errors are those of a trajectory writer (reprise/trajectory_writer.h).
 * After an error it is unknown whether the numbers were published. The caller must then free
 * the source; it is allowed to make another source. */
RP_API RP_NODISCARD rp_status rp_variable_source_publish(rp_variable_source *source,
                                                         const rp_real *numbers, int64_t note,
                                                         int64_t *version, rp_error *err);

/* Asks the table whether its item is the last publication of this source. Sets `*latest` to
 * false if another program has written to the table or has deleted the item. The caller should
 * then publish again; the version of that publication follows the latest version in the table.
 * The errors are those of `client` in the options. */
RP_API RP_NODISCARD rp_status rp_variable_source_is_latest(rp_variable_source *source,
                                                           bool *latest, rp_error *err);

/* Makes a client. Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_variable_client_new(const rp_allocator *alloc,
                                                     const rp_variable_options *options,
                                                     rp_variable_client **out, rp_error *err);
RP_API void rp_variable_client_free(rp_variable_client *client); /* NULL is fine */

typedef struct rp_variables {
    int64_t version; /* version of the parameters in `numbers`; 0: nothing has been fetched
                        yet */
    int64_t note;    /* the note that was published with them */
    bool changed;    /* true: this call has fetched new parameters */
} rp_variables;

/* The largest magnitude of a parameter that a client accepts. */
#define RP_VARIABLE_BOUND 1e6F

/* If the parameters have changed since the last call, fetches them: writes `count` numbers to
 * `numbers`. Otherwise leaves `numbers` unchanged. Waits only for the responses of the server,
 * not for a publication.
 * Errors: RP_CORRUPT (see below), or a status of the client.
 *
 * RP_CORRUPT means that the item has another size, cannot be decoded, or has numbers that are
 * not finite or over RP_VARIABLE_BOUND. After RP_CORRUPT, `numbers` has possibly been
 * overwritten. The client does not fetch the bad item again: later calls succeed, without new
 * parameters, until the table has another item. */
RP_API RP_NODISCARD rp_status rp_variable_client_update(rp_variable_client *client,
                                                        rp_real *numbers, rp_wait wait,
                                                        rp_variables *out, rp_error *err);

RP_END_DECLS

#endif

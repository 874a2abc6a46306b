/* SPDX-License-Identifier: Apache-2.0 */
/* A writer: the caller appends steps, then creates items of any recent steps. A step has one
 * value for each of its columns, such as an observation and an action. The value is stored as
 * one row of the column.
 *
 * Each column collects consecutive rows into chunks, which are compressed and sent as a whole.
 * Items that use the same rows share the chunks. Background threads compress chunks and send
 * items in the order in which the items were created, so appending a step never waits for the
 * network. An item is sent when the chunks that it needs are complete. A chunk is complete when
 * it is full, or at the next flush or end of an episode.
 *
 * An item is unconfirmed until a server has confirmed its insert. If a server goes away, the
 * writer sends unconfirmed items again, under the same keys, when the server is back. The
 * number and the bytes of unconfirmed items are bounded. At the bound,
 * rp_trajectory_writer_create_item() waits.
 *
 * One thread at a time may use a writer. Several writers can write to one table. */
#ifndef REPRISE_TRAJECTORY_WRITER_H
#define REPRISE_TRAJECTORY_WRITER_H

#include "reprise/client.h"
#include "reprise/codec.h"

RP_BEGIN_DECLS

typedef struct rp_trajectory_writer rp_trajectory_writer;

/* Options of one column. 0 means the default. */
typedef struct rp_column_options {
    int32_t history;        /* number of latest rows to which new items can refer; 0: the
                               `history` of the writer's options */
    int32_t chunk_length;   /* rows of a chunk, at most the history; 0: tuned to the data */
    rp_chunk_options chunk; /* how chunks are compressed */
} rp_column_options;

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_trajectory_writer_options {
    rp_column_options column; /* * options of the columns for which the caller does not call
                                 rp_trajectory_writer_configure(). `history` must be >= 1 */
    bool unchecked;           /* do not compare items with the signature of their table */
    bool exact; /* true: the shape of an item's column (its number of rows, then the shape of a
                   row) must fit the shape in the signature. false: a column is also accepted if
                   the shape of a row alone fits */
    size_t max_items; /* the most unconfirmed items; 0: 100,000 */
    size_t max_bytes; /* the most bytes of rows and chunks of unconfirmed items; 0: 1 GiB */
    size_t group; /* items are sent to their table in groups of this size, which costs less per
                     item. A flush sends incomplete groups too. At most 128; 0: 1 */
} rp_trajectory_writer_options;

/* Creates a writer. If `unchecked` is false, fetches the signatures of the tables (the columns
 * that their items must have, tensor.h), and waits for them until `wait` ends. If no server
 * responds by then, the writer checks items as soon as it has got the signatures. The client
 * must outlive the writer. Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status
rp_trajectory_writer_new(rp_client *client, const rp_trajectory_writer_options *options,
                         rp_wait wait, rp_trajectory_writer **out, rp_error *err);

/* Frees a writer without waiting. Drops unconfirmed items: a server can still insert those that
 * were already sent, but items that were not sent are lost. */
RP_API void rp_trajectory_writer_free(rp_trajectory_writer *writer); /* NULL is fine */

/* Sets the options of a column before its first row. Errors: RP_INVALID (a chunk longer than
 * the history), RP_PRECONDITION (the column has rows). */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_configure(rp_trajectory_writer *writer,
                                                             uint32_t column, const char *name,
                                                             const rp_column_options *options,
                                                             rp_error *err);

/* A reference to a row. `cell` is the number of the row among all rows ever appended to its
 * column, from 0. */
typedef struct rp_ref {
    uint32_t column;
    uint64_t cell;
} rp_ref;

/* A value for one column of a step. The caller numbers the columns, from 0. The first value of
 * a column sets its dtype and shape. `name` (may be NULL) is for error texts. */
typedef struct rp_value {
    uint32_t column;
    const char *name;
    rp_tensor tensor;
} rp_value;

enum { RP_STEP_OPEN = 1 }; /* more values of this step follow in another call */

/* Appends copies of the values of one step. A column without a value has no row in this step.
 * `refs` (may be NULL) gets one reference for each value. If the call fails, nothing is
 * appended. Errors: RP_INVALID (a dtype or shape that is invalid or differs from that of its
 * column; a column twice in a step; unknown flags; the text names the column, the value and the
 * expected one), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_append(rp_trajectory_writer *writer,
                                                          const rp_value *values, size_t count,
                                                          uint32_t flags, rp_ref *refs,
                                                          rp_error *err);

/* Returns the number of complete steps of this episode. */
RP_API int64_t rp_trajectory_writer_steps(const rp_trajectory_writer *writer);
/* Returns true if the latest step is open (RP_STEP_OPEN). */
RP_API bool rp_trajectory_writer_is_open(const rp_trajectory_writer *writer);

/* Finds the row of a column in step `step` of this episode. A negative `step` counts back from
 * the latest step, which is -1 even if it is open. A negative step can also be a step of the
 * previous episode, if that episode ended without `clear` (rp_trajectory_writer_end_episode()).
 * Returns false if there is no such row, or if the row has left the history. */
RP_API bool rp_trajectory_writer_find(const rp_trajectory_writer *writer, uint32_t column,
                                      int64_t step, rp_ref *ref);
/* Returns true if the row is in the history, so that new items can refer to the row. */
RP_API bool rp_trajectory_writer_has(const rp_trajectory_writer *writer, rp_ref ref);
/* Gets the dtype and shape of a column's rows. Returns false if the column has no value yet. */
RP_API bool rp_trajectory_writer_spec(const rp_trajectory_writer *writer, uint32_t column,
                                      rp_spec *spec);
/* Copies a row to `dst`. Errors: RP_PRECONDITION (the row has left the history), RP_INVALID
 * (`bytes` is not the size of the row, or the row holds strings), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_copy(rp_trajectory_writer *writer,
                                                        rp_ref ref, void *dst, size_t bytes,
                                                        rp_error *err);

/* One column of an item: any rows, in any order, even the same row several times. The rows can
 * be of several columns of the writer, if these columns have the same dtype and shape. */
typedef struct rp_item_column {
    const rp_ref *refs;
    size_t count;     /* >= 1 */
    bool squeeze;     /* the column has exactly one row, and readers see it without the row
                         dimension */
    const char *name; /* NULL: the name is not compared. If both `name` and the name of the
                         column in the signature are set, they must be equal. If the latter is a
                         path such as "obs/image", its end ("image") is enough */
} rp_item_column;

/* An item to create. */
typedef struct rp_new_item {
    const char *table;
    double priority;
    const rp_item_column *columns;
    size_t column_count; /* >= 1 */
} rp_new_item;

/* Creates an item. The call compares the item's columns with those of the table's signature by
 * position, unless the writer is `unchecked`. If the signature is a dict, its columns are
 * sorted by name (rp_signature_flat()). The call also compares names, as rp_item_column says.
 * `*key` (`key` may be NULL) gets the key of the item. If the call fails, no item is created.
 *
 * The call waits while the unconfirmed items have reached max_items or max_bytes. For the first
 * item of a table, the call also waits at most a second for the signature. If no server can be
 * reached, it does not wait for the signature: the writer takes the item unchecked, and the
 * server checks the item later.
 *
 * Errors: RP_NOT_FOUND (no such table), RP_UNAVAILABLE (in the TLS handshake, client and
 * server do not accept each other), RP_UNAUTHENTICATED (the token is not known), RP_INVALID (a
 * priority that is NaN, no columns, an empty column, rows of different dtypes or shapes, an
 * item that does not fit the signature; the text names the column), RP_PRECONDITION (a row has
 * left the history), RP_DEADLINE, RP_CANCELLED, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_create_item(rp_trajectory_writer *writer,
                                                               const rp_new_item *item,
                                                               rp_wait wait, uint64_t *key,
                                                               rp_error *err);

/* Completes the chunks of all but the latest `leave` items and waits until at most `leave`
 * items are unconfirmed. While a server cannot be reached, its items stay unconfirmed.
 *
 * Items that servers reject are dropped. If servers have rejected items since the last flush,
 * the call returns the status of the first rejected item; the text has its error text and the
 * number of rejected items. A closed table rejects items with RP_CANCELLED.
 *
 * After RP_DEADLINE and RP_CANCELLED, the writer continues to send in the background, and the
 * text says why items are unconfirmed. To learn this reason after a deadline, the call asks the
 * servers about one table after another, at most once a second. The timeout for a table is a
 * tenth of the time waited so far, but not below 50 ms and not above half a second. If the
 * servers do not respond, the call therefore returns late. Waits that follow each other within
 * 50 ms count as one longer wait. With rp_wait_none() the call does not ask, and the text has
 * only the number of unconfirmed items. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_flush(rp_trajectory_writer *writer,
                                                         size_t leave, rp_wait wait,
                                                         rp_error *err);

/* Flushes all items, then starts a new episode at step 0. With `clear`, the call empties the
 * history. Without `clear`, later items can refer to rows of the previous episode. If the call
 * fails, the episode continues. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_end_episode(rp_trajectory_writer *writer,
                                                               bool clear, rp_wait wait,
                                                               rp_error *err);

/* Returns the number of unconfirmed items. The call first processes confirmations that have
 * arrived. Although `writer` is const, no other thread may use the writer during this call. */
RP_API size_t rp_trajectory_writer_pending(const rp_trajectory_writer *writer);
/* Returns the number of items that servers have confirmed since the writer was created. An item
 * that is neither confirmed nor pending was rejected. No other thread may use the writer during
 * this call. */
RP_API uint64_t rp_trajectory_writer_confirmed(const rp_trajectory_writer *writer);
/* Writes what the unconfirmed items wait for, cut to fit `size`. If servers have rejected items
 * since the last flush, the text begins with their number and the reason for the first. If only
 * the servers know what items wait for, the call asks them, for at most half a second for each
 * table. */
RP_API void rp_trajectory_writer_why(rp_trajectory_writer *writer, char *text, size_t size);

RP_END_DECLS

#endif

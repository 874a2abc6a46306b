/* SPDX-License-Identifier: Apache-2.0 */
/* A writer: the caller appends steps, then creates items of any recent steps.
 *
 * Each column collects its rows into chunks; items that use the same rows share the chunks. The
 * calls neither compress nor wait for the network: background threads compress chunks and send
 * items in the order in which they were created. An item is sent when the chunks that it needs
 * are complete: when they are full, or at the next flush or end of an episode.
 *
 * If a server goes away, the writer sends unconfirmed items again, under the same keys, when
 * the server is back. The number and bytes of unconfirmed items are bounded; at the bound
 * rp_trajectory_writer_create_item() waits.
 *
 * One thread at a time may use a writer; several writers may write to one table. */
#ifndef REPRISE_TRAJECTORY_WRITER_H
#define REPRISE_TRAJECTORY_WRITER_H

#include "reprise/client.h"
#include "reprise/codec.h"

RP_BEGIN_DECLS

typedef struct rp_trajectory_writer rp_trajectory_writer;

/* Options of one column. 0 means the default. */
typedef struct rp_column_options {
    int32_t history;        /* latest rows that items may refer to; 0: that of the writer */
    int32_t chunk_length;   /* rows of a chunk, at most the history; 0: tuned to the data */
    rp_chunk_options chunk; /* codec and delta */
} rp_column_options;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_trajectory_writer_options {
    rp_column_options column; /* * of columns that are not configured; `history` >= 1 */
    bool unchecked;           /* do not compare items with the signature of their table */
    bool exact; /* the shape of an item's column must be the shape in the signature. If false, a
                   column is also accepted if each of its rows has the shape in the signature */
    size_t max_items; /* the most unconfirmed items; 0: 100,000 */
    size_t max_bytes; /* the most bytes of rows and chunks of unconfirmed items; 0: 1 GiB */
    size_t group; /* items are sent to their table in groups of this size, which costs less per
                     item. A flush also sends an incomplete group. At most 128; 0: 1 */
} rp_trajectory_writer_options;

/* Creates a writer. If `unchecked` is false, fetches the signatures of the tables and waits for
 * them until `wait` ends. If no server responds by then, items are checked from the first
 * response on. The client must outlive the writer. Returns owned. RP_INVALID, RP_NO_RESOURCE.
 */
RP_API RP_NODISCARD rp_status
rp_trajectory_writer_new(rp_client *client, const rp_trajectory_writer_options *options,
                         rp_wait wait, rp_trajectory_writer **out, rp_error *err);

/* Frees a writer without waiting. Items that have not been sent are dropped. */
RP_API void rp_trajectory_writer_free(rp_trajectory_writer *writer); /* NULL is fine */

/* Sets the options of a column before its first row. RP_INVALID (a chunk longer than the
 * history), RP_PRECONDITION (the column has rows). */
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
 * a column sets its dtype and shape. `name` (may be NULL) is for messages. */
typedef struct rp_value {
    uint32_t column;
    const char *name;
    rp_tensor tensor;
} rp_value;

enum { RP_STEP_OPEN = 1 }; /* more values of this step follow in another call */

/* Appends copies of the values of one step. A column without a value has no row in this step.
 * `refs` (may be NULL) gets one reference for each value. If the call fails, nothing is
 * appended. RP_INVALID (a dtype or shape that is invalid or differs from that of its column; a
 * column twice in a step; unknown flags; the text names the column, the value and the expected
 * one),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_append(rp_trajectory_writer *writer,
                                                          const rp_value *values, size_t count,
                                                          uint32_t flags, rp_ref *refs,
                                                          rp_error *err);

/* Returns the number of complete steps of this episode. */
RP_API int64_t rp_trajectory_writer_steps(const rp_trajectory_writer *writer);
/* Returns true if the latest step is open (RP_STEP_OPEN). */
RP_API bool rp_trajectory_writer_is_open(const rp_trajectory_writer *writer);

/* Finds the row of a column in step `step` of this episode. A negative `step` counts back from
 * the latest step, open or not, which is -1. It may reach into the previous episode if the rows
 * of that episode were kept. Returns false if there is no such row or the row has left the
 * history. */
RP_API bool rp_trajectory_writer_find(const rp_trajectory_writer *writer, uint32_t column,
                                      int64_t step, rp_ref *ref);
/* Returns true if the row is in the history, so that items may refer to it. */
RP_API bool rp_trajectory_writer_has(const rp_trajectory_writer *writer, rp_ref ref);
/* Gets dtype and shape of the rows of a column. Returns false if the column has no value yet.
 */
RP_API bool rp_trajectory_writer_spec(const rp_trajectory_writer *writer, uint32_t column,
                                      rp_spec *spec);
/* Copies a row. RP_PRECONDITION (the row has left the history), RP_INVALID (`bytes` is not the
 * size of the row, or the row holds strings), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_copy(rp_trajectory_writer *writer,
                                                        rp_ref ref, void *dst, size_t bytes,
                                                        rp_error *err);

/* One column of an item: any rows, in any order, repeated or not. The rows may be of several
 * columns, if these have the same dtype and shape. */
typedef struct rp_item_column {
    const rp_ref *refs;
    size_t count;     /* >= 1 */
    bool squeeze;     /* the column has exactly one row, and readers see it without the row
                         dimension */
    const char *name; /* may be NULL; otherwise it must be the name that the signature has for
                         this column, or the end of that path, if the signature has names */
} rp_item_column;

/* An item to create. */
typedef struct rp_new_item {
    const char *table;
    double priority;
    const rp_item_column *columns;
    size_t column_count; /* >= 1 */
} rp_new_item;

/* Creates an item. Its columns are matched with those of the table's signature by position: a
 * dict, as rp_signature_flat() makes it, has its columns sorted by name. If a column and the
 * signature both have names, these must be the same, unless the writer is `unchecked`.
 * Waits while the writer holds max_items or max_bytes. For the first item of a
 * table the call also waits for the signature, at most a second. If no server can be reached,
 * it does not wait: the item is taken unchecked, and the server checks it later. `*key` (may be
 * NULL) gets the key of the item. If the call fails, no item is created.
 * RP_NOT_FOUND (no such table), RP_UNAVAILABLE (TLS: one side refuses the other),
 * RP_UNAUTHENTICATED (the token is not known), RP_INVALID (a priority that is NaN, no columns,
 * an empty column, rows of different dtypes or shapes, an item that does not fit the signature;
 * the text names the column), RP_PRECONDITION (a row has left the history), RP_DEADLINE,
 * RP_CANCELLED,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_create_item(rp_trajectory_writer *writer,
                                                               const rp_new_item *item,
                                                               rp_wait wait, uint64_t *key,
                                                               rp_error *err);

/* Completes the chunks of all but the latest `leave` items and waits until at most `leave`
 * items are unconfirmed. After RP_DEADLINE and RP_CANCELLED, sending continues in the
 * background, and the text says why items are unconfirmed. To know that, the call asks the
 * servers after its deadline, once a second at most, for at most a tenth of the wait (at least
 * 50 ms, at most half a second). Waits that follow each other at once count as one. With
 * rp_wait_none() the text has only the number of unconfirmed items, since finding the reason
 * takes longer than such a call. Items that servers have rejected since the last flush are
 * dropped. In this case the status and the text are those of the first rejected item, and the
 * text has the number of rejected items. A closed table rejects its items with RP_CANCELLED.
 * While a server cannot be reached, its items stay unconfirmed. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_flush(rp_trajectory_writer *writer,
                                                         size_t leave, rp_wait wait,
                                                         rp_error *err);

/* Flushes all items, then starts a new episode at step 0. With `clear`, the history is emptied.
 * Without it, items may refer to rows of the previous episode. If the call fails, the episode
 * continues. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_end_episode(rp_trajectory_writer *writer,
                                                               bool clear, rp_wait wait,
                                                               rp_error *err);

/* Returns the number of unconfirmed items. The call first processes confirmations that have
 * arrived. So it counts as a use of the writer, although `writer` is const: one thread at a
 * time. */
RP_API size_t rp_trajectory_writer_pending(const rp_trajectory_writer *writer);
/* Returns the number of items that servers have confirmed since the writer was created. An item
 * that is neither confirmed nor pending was rejected. This call also counts as a use of the
 * writer. */
RP_API uint64_t rp_trajectory_writer_confirmed(const rp_trajectory_writer *writer);
/* Writes a sentence that says what the unconfirmed items wait for, cut to fit `size`, and
 * before it how many items were refused since the last flush, if any were. If only the servers
 * know, asks them, for at most half a second for each table. */
RP_API void rp_trajectory_writer_why(rp_trajectory_writer *writer, char *text, size_t size);

RP_END_DECLS

#endif

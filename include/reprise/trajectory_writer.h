/* SPDX-License-Identifier: Apache-2.0 */
/* A writer: append steps, then make items of any of the recent ones.
 *
 * Every column collects its rows into chunks of its own; every item that uses a row shares it.
 * Nothing here compresses or waits for the network: chunks are compressed and items sent in the
 * background, in the order in which they were created. An item goes out once the chunks it
 * needs are complete: when they are full, or at the next flush or end of an episode.
 *
 * If a server goes away, what it has not confirmed is sent again, under the same keys, when it
 * is back. What a writer may hold unconfirmed is bounded; at the bound create_item waits.
 *
 * One thread at a time; several writers may write to one table. */
#ifndef REPRISE_TRAJECTORY_WRITER_H
#define REPRISE_TRAJECTORY_WRITER_H

#include "reprise/client.h"

RP_BEGIN_DECLS

typedef struct rp_trajectory_writer rp_trajectory_writer;

/* Of one column. Zeros are defaults. */
typedef struct rp_column_options {
    int32_t history;        /* rows that items may refer to; 0: the writer's */
    int32_t chunk_length;   /* rows a chunk, at most the history; 0: tuned to the data */
    rp_chunk_options chunk; /* codec and delta */
} rp_column_options;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_trajectory_writer_options {
    rp_column_options column; /* * of every column that is not configured: `history` >= 1 */
    bool unchecked;           /* do not compare items with the signature of their table */
    bool exact;               /* a signature is one of items: that of a step does not do */
    size_t max_items;         /* created and not confirmed; 0: 100,000 */
    size_t max_bytes;         /* of rows and chunks that they hold; 0: 1 GiB */
} rp_trajectory_writer_options;

/* Fetches the tables' signatures, unless unchecked, and waits for them as long as `wait` says;
 * without a server that answers in time it goes on and checks when one does. RP_INVALID,
 * RP_NO_RESOURCE. The client must outlive it. Returns owned. */
RP_API RP_NODISCARD rp_status
rp_trajectory_writer_new(rp_client *client, const rp_trajectory_writer_options *options,
                         rp_wait wait, rp_trajectory_writer **out, rp_error *err);

/* Frees it; items that are not confirmed are dropped, if they have not gone out. */
RP_API void rp_trajectory_writer_free(rp_trajectory_writer *writer); /* NULL is fine */

/* Sets the options of a column, which need not exist yet. RP_INVALID (a chunk longer than the
 * history), RP_PRECONDITION (it has rows already). */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_configure(rp_trajectory_writer *writer,
                                                             uint32_t column, const char *name,
                                                             const rp_column_options *options,
                                                             rp_error *err);

/* A row of a column: the `cell`-th that was ever appended to it. */
typedef struct rp_ref {
    uint32_t column;
    uint64_t cell;
} rp_ref;

/* A value for one column of a step. Columns are numbered as the user likes, from 0; the first
 * value of one gives it its dtype and shape. `name` (may be NULL) is for messages. */
typedef struct rp_value {
    uint32_t column;
    const char *name;
    rp_tensor tensor;
} rp_value;

enum { RP_STEP_OPEN = 1 }; /* more values of this step follow in another call */

/* Appends values of one step, copied; columns that get none have no row in this step. `refs`
 * (may be NULL) gets one reference for each value. On failure nothing was appended.
 * RP_INVALID (names the column, what came and what was expected; a column twice in a step),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_append(rp_trajectory_writer *writer,
                                                          const rp_value *values, size_t count,
                                                          uint32_t flags, rp_ref *refs,
                                                          rp_error *err);

/* Steps that are complete since the episode began; whether one is open. */
RP_API int64_t rp_trajectory_writer_steps(const rp_trajectory_writer *writer);
RP_API bool rp_trajectory_writer_is_open(const rp_trajectory_writer *writer);

/* The row of a column in step `step` of this episode; a negative one counts back from the
 * latest step, open or not: -1, and on into the episode before if its rows were kept. False if
 * there is none, or no longer. */
RP_API bool rp_trajectory_writer_find(const rp_trajectory_writer *writer, uint32_t column,
                                      int64_t step, rp_ref *ref);
/* Whether items may still refer to a row. */
RP_API bool rp_trajectory_writer_has(const rp_trajectory_writer *writer, rp_ref ref);
/* The dtype and shape of a column's rows; false before its first value. */
RP_API bool rp_trajectory_writer_spec(const rp_trajectory_writer *writer, uint32_t column,
                                      rp_spec *spec);
/* Copies a row. RP_PRECONDITION (no longer there), RP_INVALID (`bytes` is not its size, or it
 * holds strings), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_copy(rp_trajectory_writer *writer,
                                                        rp_ref ref, void *dst, size_t bytes,
                                                        rp_error *err);

/* One column of an item: any rows, in any order, repeated or not, of any columns that have one
 * dtype and shape. */
typedef struct rp_item_column {
    const rp_ref *refs;
    size_t count;     /* >= 1 */
    bool squeeze;     /* exactly one row, shown to the reader without the row dimension */
    const char *name; /* for messages; may be NULL */
} rp_item_column;

/* Creates an item. Waits only while the writer holds max_items or max_bytes. `*key` (may be
 * NULL) gets its key. Nothing was created on RP_NOT_FOUND (no such table), RP_INVALID (a
 * priority that is no number, no columns, an empty one, rows that do not go together, the
 * signature; names the column), RP_PRECONDITION (a row is no longer in the history),
 * RP_DEADLINE, RP_CANCELLED, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_create_item(
    rp_trajectory_writer *writer, const char *table, double priority,
    const rp_item_column *columns, size_t column_count, rp_wait wait, uint64_t *key,
    rp_error *err);

/* Completes the chunks that all but the latest `leave` items need, and waits until at most that
 * many are unconfirmed. RP_DEADLINE and RP_CANCELLED: they go on in the background. If a server
 * has refused items for good since the last flush, the status and sentence of the first, which
 * says how many; they are dropped. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_flush(rp_trajectory_writer *writer,
                                                         size_t leave, rp_wait wait,
                                                         rp_error *err);

/* Flushes all, then begins a new episode at step 0: with an empty history (`clear`), or with
 * the rows of the old one still there to be referred to. On failure the episode goes on. */
RP_API RP_NODISCARD rp_status rp_trajectory_writer_end_episode(rp_trajectory_writer *writer,
                                                               bool clear, rp_wait wait,
                                                               rp_error *err);

/* Items created and not confirmed; the same by what they wait for, as a sentence. */
RP_API size_t rp_trajectory_writer_pending(const rp_trajectory_writer *writer);
RP_API void rp_trajectory_writer_why(rp_trajectory_writer *writer, char *text, size_t size);

RP_END_DECLS

#endif

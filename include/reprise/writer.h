/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: turns a stream of steps into chunks and items.
 *
 * Append steps, one value for each column; then create items that refer to any of the recent
 * steps. Rows are collected into chunks, each column its own, and every item that uses a row
 * shares it. An item is inserted into its table once the chunks it needs are complete: when
 * they are full, or at the next rp_writer_flush() or rp_writer_end_episode().
 *
 * A writer belongs to one thread at a time; several writers may write to one table. */
#ifndef REPRISE_WRITER_H
#define REPRISE_WRITER_H

#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_writer rp_writer;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_writer_options {
    const rp_spec *columns; /* * dtype and shape of one step of each column; copied */
    size_t column_count;    /* * */
    int32_t history;        /* * how many of the latest steps items may refer to, >= 1 */
    int32_t chunk_length;   /* steps a chunk, at most `history`. 0: tuned to the data */
    rp_chunk_options chunk; /* codec and delta */
    /* Items that may wait to be inserted before rp_writer_create_item() does: then it first
     * completes the chunks they wait for. 0: 64. */
    size_t max_pending;
} rp_writer_options;

/* RP_INVALID, RP_NO_RESOURCE. Returns owned. The store must outlive the writer. */
RP_API RP_NODISCARD rp_status rp_writer_new(rp_store *store, const rp_writer_options *options,
                                            rp_writer **out, rp_error *err);

/* Frees it. Items that were created but not flushed are dropped. NULL is fine. */
RP_API void rp_writer_free(rp_writer *writer);

/* Appends a step: one tensor for each column, copied. A tensor whose data is NULL leaves that
 * column out of this step. On failure nothing was appended.
 * RP_INVALID (names the column, what came and what was expected), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_writer_append(rp_writer *writer, const rp_tensor *step,
                                               rp_error *err);

/* Steps appended since the episode began. */
RP_API int64_t rp_writer_steps(const rp_writer *writer);

/* Some steps of one column: `count` of them, from the episode's step `start` on, every
 * `stride`-th. A negative `start` counts from the end: -1 is the latest step. The stride may be
 * negative, or 0 to repeat a step. */
typedef struct rp_pick {
    uint32_t column;
    int64_t start;
    int32_t count; /* >= 1 */
    int32_t stride;
    bool squeeze; /* one step, shown to the reader without the step dimension */
} rp_pick;

/* Creates an item in `table`: one column for each pick. Waits only if max_pending items are
 * waiting to be inserted.
 *
 * Nothing was created on RP_NOT_FOUND (no such table), RP_PRECONDITION (the step is no longer,
 * or not yet, in the history), RP_INVALID (names what is wrong) and RP_NO_RESOURCE. While it
 * makes room it may meet trouble with an earlier item: RP_DEADLINE and RP_CANCELLED leave that
 * one pending, and a sentence "item ... was dropped" says that its table refuses it for good,
 * or is gone; in both cases nothing was created either. `*key` (may be NULL) gets the item's
 * key. */
RP_API RP_NODISCARD rp_status rp_writer_create_item(rp_writer *writer, const char *table,
                                                    double priority, const rp_pick *picks,
                                                    size_t pick_count, rp_wait wait,
                                                    uint64_t *key, rp_error *err);

/* The same for the commonest case: the latest `steps` steps of all columns. */
RP_API RP_NODISCARD rp_status rp_writer_create_latest(rp_writer *writer, const char *table,
                                                      double priority, int32_t steps,
                                                      rp_wait wait, uint64_t *key,
                                                      rp_error *err);

/* Completes the open chunks that items wait for and inserts all items; in a store with a log,
 * waits until that has them. If the log fails, its status comes back: the items are in their
 * tables, and the next call waits for the log again.
 * RP_DEADLINE, RP_CANCELLED and RP_NO_RESOURCE for lack of memory: what is left stays for the
 * next call. RP_INVALID, and RP_NO_RESOURCE for an item over a byte limit: its table refuses
 * that item for good, it was dropped, and the sentence names it; call again for the rest. So
 * does RP_NOT_FOUND: its table was dropped. */
RP_API RP_NODISCARD rp_status rp_writer_flush(rp_writer *writer, rp_wait wait, rp_error *err);

/* Flushes, then starts a new episode: step 0, empty history. On failure the episode goes on. */
RP_API RP_NODISCARD rp_status rp_writer_end_episode(rp_writer *writer, rp_wait wait,
                                                    rp_error *err);

/* Items created but not yet inserted. */
RP_API size_t rp_writer_pending(const rp_writer *writer);

RP_END_DECLS

#endif

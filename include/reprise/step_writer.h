/* SPDX-License-Identifier: Apache-2.0 */
/* A writer like Reverb's older one (the class Writer, not TrajectoryWriter): appends whole
 * steps and creates items of the latest n steps. trajectory_writer.h explains steps, rows,
 * chunks and unconfirmed items.
 *
 * One thread at a time may use a writer. */
#ifndef REPRISE_STEP_WRITER_H
#define REPRISE_STEP_WRITER_H

#include "reprise/trajectory_writer.h"

RP_BEGIN_DECLS

typedef struct rp_step_writer rp_step_writer;

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_step_writer_options {
    int32_t max_sequence_length; /* * the most steps of an item, >= 1 */
    int32_t chunk_length;        /* rows of a chunk, 1 to max_sequence_length; 0: 10, or
                                    max_sequence_length if that is less */
    bool delta;                  /* delta encoding (rp_chunk_options) */
    size_t max_in_flight;        /* the most unconfirmed items; 0: 25 */
} rp_step_writer_options;

/* Creates a writer like rp_trajectory_writer_new(), with the same errors. Returns owned. */
RP_API RP_NODISCARD rp_status rp_step_writer_new(rp_client *client,
                                                 const rp_step_writer_options *options,
                                                 rp_wait wait, rp_step_writer **out,
                                                 rp_error *err);
/* Frees a writer without waiting. Drops unconfirmed items, so the caller should flush first.
 * NULL is fine. */
RP_API void rp_step_writer_free(rp_step_writer *writer);

/* Appends a step: one tensor for each column. Every step must have the same number of columns.
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_step_writer_append(rp_step_writer *writer,
                                                    const rp_tensor *step, size_t column_count,
                                                    rp_error *err);
/* Appends several steps: row i of the tensors is one step. All tensors must have the same
 * number of rows. Errors: RP_INVALID, RP_NO_RESOURCE (possibly after some of the steps were
 * appended). */
RP_API RP_NODISCARD rp_status rp_step_writer_append_sequence(rp_step_writer *writer,
                                                             const rp_tensor *steps,
                                                             size_t column_count,
                                                             rp_error *err);

/* Creates an item of the latest `steps` steps. `*key` (`key` may be NULL) gets the key of the
 * item. Waits while max_in_flight items are unconfirmed. Errors: RP_INVALID (more steps than
 * the episode has, or than max_sequence_length; a priority that is NaN; an item that does not
 * fit the signature), RP_NOT_FOUND (no such table), RP_DEADLINE, RP_CANCELLED, RP_NO_RESOURCE.
 */
RP_API RP_NODISCARD rp_status rp_step_writer_create_item(rp_step_writer *writer,
                                                         const char *table, int32_t steps,
                                                         double priority, rp_wait wait,
                                                         uint64_t *key, rp_error *err);

/* Sends all items and waits until they are confirmed. */
RP_API RP_NODISCARD rp_status rp_step_writer_flush(rp_step_writer *writer, rp_wait wait,
                                                   rp_error *err);

/* Flushes, then starts a new episode. An item has steps of one episode only. */
RP_API RP_NODISCARD rp_status rp_step_writer_end_episode(rp_step_writer *writer, rp_wait wait,
                                                         rp_error *err);

/* Returns the number of unconfirmed items, which freeing the writer now would drop. */
RP_API size_t rp_step_writer_pending(const rp_step_writer *writer);

RP_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reverb's first writer: whole steps in, items of the latest n steps out. */
#ifndef REPRISE_STEP_WRITER_H
#define REPRISE_STEP_WRITER_H

#include "reprise/trajectory_writer.h"

RP_BEGIN_DECLS

typedef struct rp_step_writer rp_step_writer;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_step_writer_options {
    int32_t max_sequence_length; /* * >= 1: the most steps an item has */
    int32_t chunk_length;        /* 1 to max_sequence_length; 0: at most 10 */
    bool delta;
    size_t max_in_flight; /* items sent and not confirmed; 0: 25 */
} rp_step_writer_options;

RP_API RP_NODISCARD rp_status rp_step_writer_new(rp_client *client,
                                                 const rp_step_writer_options *options,
                                                 rp_wait wait, rp_step_writer **out,
                                                 rp_error *err);
/* Frees it without waiting: flush before, or items that are not confirmed are dropped. NULL is
 * fine. */
RP_API void rp_step_writer_free(rp_step_writer *writer);

/* One tensor for each column, as many in every step. */
RP_API RP_NODISCARD rp_status rp_step_writer_append(rp_step_writer *writer,
                                                    const rp_tensor *step, size_t column_count,
                                                    rp_error *err);
/* The same for as many steps as the tensors have rows, each the same number. Short of memory,
 * the first of them may be in. */
RP_API RP_NODISCARD rp_status rp_step_writer_append_sequence(rp_step_writer *writer,
                                                             const rp_tensor *steps,
                                                             size_t column_count,
                                                             rp_error *err);

/* An item of the latest `steps` steps. RP_INVALID (more than there are, or than
 * max_sequence_length; NaN; the signature), RP_NOT_FOUND, and what waiting ends with. */
RP_API RP_NODISCARD rp_status rp_step_writer_create_item(rp_step_writer *writer,
                                                         const char *table, int32_t steps,
                                                         double priority, rp_wait wait,
                                                         uint64_t *key, rp_error *err);

/* Sends everything and waits for all confirmations. */
RP_API RP_NODISCARD rp_status rp_step_writer_flush(rp_step_writer *writer, rp_wait wait,
                                                   rp_error *err);

/* The same, after which steps are those of a new episode: items are of its steps only. */
RP_API RP_NODISCARD rp_status rp_step_writer_end_episode(rp_step_writer *writer, rp_wait wait,
                                                         rp_error *err);

/* Items created and not confirmed: what freeing it now would drop. */
RP_API size_t rp_step_writer_pending(const rp_step_writer *writer);

RP_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A batch writer appends a step of many environments at once: each row goes to the structured
 * writer of its environment. These writers send their items through one common sink
 * (client/sink/sink.h). */
#ifndef RP_CLIENT_WRITER_BATCH_WRITER_H
#define RP_CLIENT_WRITER_BATCH_WRITER_H

#include "client/writer/structured_writer.h"

/* Creates a batch writer that has no structured writers yet. Before the first append, call
 * rp_batch_writer_add() once for each environment, in the order of the environments. It takes
 * the structured writer. RP_INVALID (`environments` is 0), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_batch_writer_open(const rp_allocator *alloc, size_t environments,
                                            rp_batch_writer **out, rp_error *err);
void rp_batch_writer_add(rp_batch_writer *batch, rp_structured_writer *writer);

#endif

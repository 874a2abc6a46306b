/* SPDX-License-Identifier: Apache-2.0 */
/* A batch writer: appends a step of many environments in one call. Each environment has its own
 * structured writer, which gets the environment's row. These writers send their items through a
 * common sink (client/sink/sink.h). */
#ifndef RP_CLIENT_WRITER_BATCH_WRITER_H
#define RP_CLIENT_WRITER_BATCH_WRITER_H

#include "client/writer/structured_writer.h"

/* Creates a batch writer without structured writers. Before the first append, the caller must
 * call rp_batch_writer_add() once for each environment, in the order of the environments. The
 * batch writer owns each added structured writer. Returns RP_INVALID if `environments` is 0.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_batch_writer_open(const rp_allocator *alloc, size_t environments,
                                            rp_batch_writer **out, rp_error *err);
void rp_batch_writer_add(rp_batch_writer *batch, rp_structured_writer *writer);

#endif

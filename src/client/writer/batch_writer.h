/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of batch writers (reprise/structured_writer.h). A batch writer appends
 * a step of many environments in one call: each value is an array with one row for each
 * environment. Each environment has its own structured writer, which appends the environment's
 * rows. These writers send their items through a common sink (client/sink/sink.h). */
#ifndef RP_CLIENT_WRITER_BATCH_WRITER_H
#define RP_CLIENT_WRITER_BATCH_WRITER_H

#include "client/writer/structured_writer.h"

/* Creates a batch writer without structured writers. Before any other call, the caller must
 * call rp_batch_writer_add() exactly once for each environment, in the order of the
 * environments. The batch writer owns each added structured writer. Errors: RP_INVALID if
 * `environments` is 0, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_batch_writer_open(const rp_allocator *alloc, size_t environments,
                                            rp_batch_writer **out, rp_error *err);
void rp_batch_writer_add(rp_batch_writer *batch, rp_structured_writer *writer);

#endif

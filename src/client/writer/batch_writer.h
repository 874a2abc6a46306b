/* SPDX-License-Identifier: Apache-2.0 */
/* A batch writer over structured writers, which share one sink. */
#ifndef RP_CLIENT_WRITER_BATCH_WRITER_H
#define RP_CLIENT_WRITER_BATCH_WRITER_H

#include "client/writer/structured_writer.h"

/* Creates a batch writer without writers. Add one for each environment, in their order; the
 * batch writer takes them. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_batch_writer_open(const rp_allocator *alloc, size_t environments,
                                            rp_batch_writer **out, rp_error *err);
void rp_batch_writer_add(rp_batch_writer *batch, rp_structured_writer *writer);

#endif

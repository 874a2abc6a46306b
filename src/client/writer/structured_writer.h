/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of structured writers. */
#ifndef RP_CLIENT_WRITER_STRUCTURED_WRITER_H
#define RP_CLIENT_WRITER_STRUCTURED_WRITER_H

#include "client/writer/trajectory_writer.h"
#include "reprise/structured_writer.h"

/* Checks patterns. Returns RP_INVALID ("Invalid configuration at position i: ...") naming the
 * part that is wrong. Pure. */
RP_NODISCARD rp_status rp_pattern_check(const rp_pattern *patterns, size_t count,
                                        rp_error *err);

/* Returns the options of the trajectory writer that a structured writer uses. The patterns must
 * have been checked. */
rp_trajectory_writer_options
rp_structured_writer_under(const rp_pattern *patterns, size_t count,
                           const rp_structured_writer_options *options);

/* Creates a structured writer; takes `writer` on RP_OK. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_structured_writer_open(rp_trajectory_writer *writer,
                                                 const rp_pattern *patterns, size_t count,
                                                 rp_structured_writer **out, rp_error *err);

rp_trajectory_writer *rp_structured_writer_inner(rp_structured_writer *writer);
/* Appends without waiting, even if the writer is over its bounds. */
RP_NODISCARD rp_status rp_structured_writer_append_now(rp_structured_writer *writer,
                                                       const rp_value *values, size_t count,
                                                       uint32_t flags, rp_error *err);
/* Ends an episode without waiting for its items to be confirmed. */
RP_NODISCARD rp_status rp_structured_writer_end_now(rp_structured_writer *writer, bool clear,
                                                    rp_error *err);

#endif

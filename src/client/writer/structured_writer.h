/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of structured writers (reprise/structured_writer.h), which are built
 * on trajectory writers. */
#ifndef RP_CLIENT_WRITER_STRUCTURED_WRITER_H
#define RP_CLIENT_WRITER_STRUCTURED_WRITER_H

#include "client/writer/trajectory_writer.h"
#include "reprise/structured_writer.h"

/* Checks patterns. Returns RP_INVALID if a pattern is wrong; the error text is "Invalid
 * configuration at position i: ..." and names the wrong part. Pure. */
RP_NODISCARD rp_status rp_pattern_check(const rp_pattern *patterns, size_t count,
                                        rp_error *err);

/* Returns the options for the trajectory writer of a structured writer with these patterns,
 * which must have been checked. */
rp_trajectory_writer_options
rp_structured_writer_under(const rp_pattern *patterns, size_t count,
                           const rp_structured_writer_options *options);

/* Creates a structured writer over `writer`. On RP_OK, the structured writer owns `writer`.
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_structured_writer_open(rp_trajectory_writer *writer,
                                                 const rp_pattern *patterns, size_t count,
                                                 rp_structured_writer **out, rp_error *err);

/* Returns the trajectory writer under a structured writer. */
rp_trajectory_writer *rp_structured_writer_inner(rp_structured_writer *writer);
/* Compares the names of the patterns' columns with the signatures of their tables, once for
 * each pattern. Waits at most a second for a signature. If it has not arrived by then, the next
 * call of this function requests it again. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_structured_writer_compare_names(rp_structured_writer *writer,
                                                          rp_wait wait, rp_error *err);
/* Appends a step without waiting, even if the writer has more unconfirmed items than its limits
 * allow. */
RP_NODISCARD rp_status rp_structured_writer_append_now(rp_structured_writer *writer,
                                                       const rp_value *values, size_t count,
                                                       uint32_t flags, rp_error *err);
/* Ends an episode without waiting until its items are confirmed. */
RP_NODISCARD rp_status rp_structured_writer_end_now(rp_structured_writer *writer, bool clear,
                                                    rp_error *err);

#endif

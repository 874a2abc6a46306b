/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of step writers (reprise/step_writer.h), which are built on trajectory
 * writers. */
#ifndef RP_CLIENT_WRITER_STEP_WRITER_H
#define RP_CLIENT_WRITER_STEP_WRITER_H

#include "client/writer/trajectory_writer.h"
#include "reprise/step_writer.h"

enum { RP_STEP_IN_FLIGHT = 25 }; /* default of rp_step_writer_options.max_in_flight */

/* Writes to `out` the options of the trajectory writer under a step writer with `options`.
 * Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_step_writer_under(const rp_step_writer_options *options,
                                            rp_trajectory_writer_options *out, rp_error *err);

/* Creates a step writer over `writer`. On RP_OK, the step writer owns `writer`.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_step_writer_open(rp_trajectory_writer *writer,
                                           const rp_step_writer_options *options,
                                           rp_step_writer **out, rp_error *err);

/* Returns row `row` of a tensor, whose rank must be >= 1. The result borrows the tensor's
 * data. */
rp_tensor rp_tensor_row(const rp_tensor *tensor, int64_t row);

#endif

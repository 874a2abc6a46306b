/* SPDX-License-Identifier: Apache-2.0 */
/* Shares parameters between threads of one process without a lock: one thread publishes
 * parameters, and any number of threads copy them. (variables.h shares parameters with other
 * processes.)
 *
 * Every publication has a version: 1, 2, ... The publishing thread never waits for readers, and
 * readers never wait for a lock. If two publications begin while a reader copies, the reader
 * detects this and copies again. If the publishing thread makes no pauses, a reader possibly
 * repeats its copy without end. */
#ifndef REPRISE_RL_SHARED_PARAMS_H
#define REPRISE_RL_SHARED_PARAMS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_shared_params rp_shared_params;

/* Makes an object for `count` >= 1 numbers. Nothing is published yet. Returns owned.
 * Errors: RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_shared_params_new(const rp_allocator *alloc, size_t count,
                                                   rp_shared_params **out, rp_error *err);
RP_API void rp_shared_params_free(rp_shared_params *shared); /* NULL is fine */

/* Publishes the `count` numbers at `numbers`. Returns their version. One thread at a time may
 * call this. */
RP_API uint64_t rp_shared_params_publish(rp_shared_params *shared, const rp_real *numbers);

/* Returns the latest version, or 0 if nothing was published. */
RP_API uint64_t rp_shared_params_version(const rp_shared_params *shared);

/* Copies the latest published numbers to `numbers`, unless their version is `have`, the version
 * that the caller already has. Returns the version of the latest numbers, 0 if nothing was
 * published. Any thread may call this. */
RP_API uint64_t rp_shared_params_read(const rp_shared_params *shared, uint64_t have,
                                      rp_real *numbers);

RP_END_DECLS

#endif

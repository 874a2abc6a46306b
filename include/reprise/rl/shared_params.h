/* SPDX-License-Identifier: Apache-2.0 */
/* Shares parameters between threads of one process without a lock: one thread publishes them,
 * and any number of threads copy them. (For other processes, see variables.h.)
 *
 * Every publication has a version: 1, 2, ... The writer never waits for readers, and readers
 * never wait for a lock. If two publications begin while a reader copies, the reader notices
 * this and copies again. If the writer publishes without pauses, a reader may have to repeat
 * its copy any number of times. */
#ifndef REPRISE_RL_SHARED_PARAMS_H
#define REPRISE_RL_SHARED_PARAMS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_shared_params rp_shared_params;

/* Allocates space for `count` >= 1 numbers. Nothing is published yet. Returns owned.
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_shared_params_new(const rp_allocator *alloc, size_t count,
                                                   rp_shared_params **out, rp_error *err);
RP_API void rp_shared_params_free(rp_shared_params *shared); /* NULL is fine */

/* Publishes `count` numbers, and returns their version. One thread at a time may call this. */
RP_API uint64_t rp_shared_params_publish(rp_shared_params *shared, const rp_real *numbers);

/* Returns the latest version, or 0 if nothing was published. */
RP_API uint64_t rp_shared_params_version(const rp_shared_params *shared);

/* Copies the numbers of the latest publication, if its version is not `have`. Otherwise leaves
 * `numbers` unchanged. Returns the version of `numbers`. Any thread may call this. */
RP_API uint64_t rp_shared_params_read(const rp_shared_params *shared, uint64_t have,
                                      rp_real *numbers);

RP_END_DECLS

#endif

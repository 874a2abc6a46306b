/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that threads of one process share: one thread publishes, any number of threads
 * copy, without a lock.
 *
 * Every publication has a version: 1, 2, ... A writer never waits for readers. A reader waits
 * for no lock. If two publications begin during its copy, the reader notices this and copies
 * again. While publications follow each other without a pause, this may happen any number of
 * times.
 * (variables.h has parameters for other processes.) */
#ifndef REPRISE_RL_SHARED_PARAMS_H
#define REPRISE_RL_SHARED_PARAMS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef struct rp_shared_params rp_shared_params;

/* Makes room for `count` numbers, >= 1, without a version. Returns owned. RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_shared_params_new(const rp_allocator *alloc, size_t count,
                                                   rp_shared_params **out, rp_error *err);
RP_API void rp_shared_params_free(rp_shared_params *shared); /* NULL is fine */

/* Publishes `count` numbers. One thread at a time. Returns their version. */
RP_API uint64_t rp_shared_params_publish(rp_shared_params *shared, const rp_real *numbers);

/* The latest version; 0: none. */
RP_API uint64_t rp_shared_params_version(const rp_shared_params *shared);

/* Copies the latest numbers, all of one publication, unless their version is `have`: then
 * `numbers` stays as it is. Returns the version of `numbers`. Any thread. */
RP_API uint64_t rp_shared_params_read(const rp_shared_params *shared, uint64_t have,
                                      rp_real *numbers);

RP_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: a thread of the server, the thread's event loop, and the connections that belong to
 * it. server_state.h defines rp_worker. */
#ifndef RP_SERVER_CORE_WORKER_H
#define RP_SERVER_CORE_WORKER_H

#include "server/core/server_state.h"

/* Sets up a worker without starting a thread. The thread that runs the worker's loop is the
 * worker's thread. Errors: RP_NO_RESOURCE. After a failure the caller must still call
 * rp_worker_deinit(). */
RP_NODISCARD rp_status rp_worker_init(rp_worker *worker, rp_server *server, size_t index,
                                      rp_error *err);
/* Starts a thread that runs the worker's loop. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_worker_start(rp_worker *worker, rp_error *err);
/* Ends all connections of the worker and its thread. Returns when the thread has ended. */
void rp_worker_stop(rp_worker *worker);
/* Frees the worker's resources. If the worker has no thread of its own, it must have no
 * connections and no outstanding operations. */
void rp_worker_deinit(rp_worker *worker);
/* Each of the next three functions posts to the worker's loop, and may be called on any thread.
 * On its thread, the worker then copies the server's limits (rp_worker_update_limits()),
 * releases its references to dropped tables (rp_worker_release_dropped()), or drains its
 * connections (rp_worker_drain()). */
void rp_worker_update_limits(rp_worker *worker);
void rp_worker_release_dropped(rp_worker *worker);
void rp_worker_drain(rp_worker *worker);

#endif

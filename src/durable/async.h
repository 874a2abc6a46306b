/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of rp_durable (the data directory of a store) that do not block, for the server. */
#ifndef RP_DURABLE_ASYNC_H
#define RP_DURABLE_ASYNC_H

#include "reprise/durable.h"

/* rp_durable_start_checkpoint() requests a checkpoint as rp_durable_checkpoint() does, but does
 * not wait for its end. When the checkpoint has ended, `on_done` is called once, on the
 * checkpoint thread, with the path of the manifest and, after a failure, the error text. */
typedef void rp_checkpoint_done(void *ctx, rp_status status, const char *path,
                                const char *text);
RP_NODISCARD rp_status rp_durable_start_checkpoint(rp_durable *durable,
                                                   rp_checkpoint_done *on_done, void *ctx,
                                                   rp_error *err);

/* Sets `*total` to the size of the file system of the data directory, and `*available` to its
 * free bytes. Both are values that the checkpoint thread has read earlier. If they are not
 * known, changes neither. If they are older than a second, the checkpoint thread reads them
 * again, for later calls; if it is writing a checkpoint, it finishes the checkpoint first. Does
 * not wait for the disk. Any thread may call this function. */
void rp_durable_space(rp_durable *durable, uint64_t *total, uint64_t *available);

/* Returns the log sequence number (LSN) up to which every change is as safe as the durability
 * mode promises; UINT64_MAX without a journal. */
uint64_t rp_durable_safe(rp_durable *durable);

/* Returns true if the backlog of the journal is at its bound, so that changes must wait. When
 * the backlog has become shorter, the listeners (rp_durable_listen()) are called. Any thread
 * may call this function, and may hold any lock of a rank below 44 (util/mutex.h). */
bool rp_durable_is_behind(rp_durable *durable);

/* Adds a listener; there can be 64 listeners. `on_safe` is called on the journal's thread in
 * two cases: more changes have become safe; or rp_durable_is_behind() has returned true and the
 * backlog has become shorter since then. All changes up to `lsn` are safe. `on_safe` must not
 * block. */
typedef void rp_safe_listener(void *ctx, uint64_t lsn);
RP_NODISCARD rp_status rp_durable_listen(rp_durable *durable, rp_safe_listener *on_safe,
                                         void *ctx);
/* Removes a listener. When this function returns, the listener is not running and will not be
 * called. */
void rp_durable_unlisten(rp_durable *durable, rp_safe_listener *on_safe, void *ctx);

#endif

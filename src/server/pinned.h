/* SPDX-License-Identifier: Apache-2.0 */
/* What insert streams make the server keep outside its tables, against the limits: chunks that
 * no item refers to (pinned), and inserts that wait for their tables (parked).
 *
 * The server's sum of both is bounded by the limit pinned_bytes, but for 64 KiB that every
 * connection may hold whatever the others do. */
#ifndef RP_SERVER_PINNED_H
#define RP_SERVER_PINNED_H

#include "server/inside.h"

/* Adds to the server's sum; modulo SIZE_MAX + 1, so `change` may stand for less. */
void rp_pinned_add(rp_worker *worker, size_t change);

/* True if the sum is over its limit and this connection holds more than its least share. */
bool rp_pinned_is_full(const rp_connection *c);

/* Refuses the call because of that. */
void rp_pinned_refuse(rp_task *task);

/* The call's stream has `bytes` of chunks without an item, where it had `*counted`. True if
 * that is over a limit: then the call has been refused. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

#endif

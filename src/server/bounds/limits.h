/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server: their defaults and their bounds. */
#ifndef RP_SERVER_BOUNDS_LIMITS_H
#define RP_SERVER_BOUNDS_LIMITS_H

#include "reprise/server.h"

/* Completes `limits`: replaces each zero by the default, and checks the other values.
 * RP_INVALID names the limit, the value and the bound. If message_bytes is larger than
 * rp_server_limits_side_bytes(), lowers it to that, since the queue has no room for a larger
 * message. */
RP_NODISCARD rp_status rp_server_limits_complete(rp_server_limits *limits, rp_error *err);

/* Half of queued_bytes, rounded up: the limit of a side of the queue. One side counts the
 * queued bytes that come from peers, the other those that go to peers
 * (server/core/queue_budget.h). */
size_t rp_server_limits_side_bytes(const rp_server_limits *limits);

#endif

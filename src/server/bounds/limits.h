/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in and checks the limits of a server (rp_server_limits). */
#ifndef RP_SERVER_BOUNDS_LIMITS_H
#define RP_SERVER_BOUNDS_LIMITS_H

#include "reprise/server.h"

/* Completes `limits`: replaces each zero by the default, and checks the other values. If a
 * value is out of bounds, returns RP_INVALID, and `err` names the limit, the value and the
 * bound. If message_bytes is larger than rp_server_limits_side_bytes(), lowers message_bytes to
 * that value, since a side has no room for a larger message. */
RP_NODISCARD rp_status rp_server_limits_complete(rp_server_limits *limits, rp_error *err);

/* Returns the limit of each side of the budget of queued bytes: half of the limit queued_bytes,
 * rounded up. One side counts queued bytes that peers send, the other queued bytes that are
 * sent to peers (server/core/queue_budget.h). */
size_t rp_server_limits_side_bytes(const rp_server_limits *limits);

#endif

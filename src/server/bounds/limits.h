/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server: defaults, and what they may be. */
#ifndef RP_SERVER_BOUNDS_LIMITS_H
#define RP_SERVER_BOUNDS_LIMITS_H

#include "reprise/server.h"

/* Puts the default where there is a zero, and checks the rest: RP_INVALID names the limit, the
 * value and the bound. Lowers message_bytes to rp_server_limits_side_bytes(): the queue has no
 * room for a larger message. */
RP_NODISCARD rp_status rp_server_limits_complete(rp_server_limits *limits, rp_error *err);

/* Of each side of the queue (queue_budget.h): half of queued_bytes. */
size_t rp_server_limits_side_bytes(const rp_server_limits *limits);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server: defaults, and what they may be. */
#ifndef RP_SERVER_LIMITS_H
#define RP_SERVER_LIMITS_H

#include "reprise/server.h"

/* Puts the default where there is a zero, and checks the rest: RP_INVALID names the limit, the
 * value and the bound. Lowers message_bytes to rp_server_limits_read_bytes(): the queue has no
 * room for a larger message. */
RP_NODISCARD rp_status rp_server_limits_complete(rp_server_limits *limits, rp_error *err);

/* The part of queued_bytes that messages of one peer may use: half. */
size_t rp_server_limits_read_bytes(const rp_server_limits *limits);

#endif

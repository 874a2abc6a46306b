/* SPDX-License-Identifier: Apache-2.0 */
/* Checks addresses to listen on, without binding them. */
#ifndef RP_CLI_SERVE_ADDRESS_CHECK_H
#define RP_CLI_SERVE_ADDRESS_CHECK_H

#include "reprise/status.h"

/* Returns RP_INVALID, with the reason in `why`, unless the text is "host:port", "[v6]:port",
 * ":port", "unix:/path" or "fd:n". Sets `*is_open` if other machines can certainly reach the
 * address; it stays false for host names, since they are not resolved. Pure. */
RP_NODISCARD rp_status rp_address_check(const char *address, bool *is_open, char *why,
                                        size_t why_bytes);

/* Writes the address, cut to fit. If it is a TCP address with port 0, writes `port` instead of
 * 0. Returns `text`. */
char *rp_address_with_port(const char *address, int port, char *text, size_t size);

#endif

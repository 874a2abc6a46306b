/* SPDX-License-Identifier: Apache-2.0 */
/* Checks addresses to listen on, without binding them. */
#ifndef RP_CLI_SERVE_ADDRESS_CHECK_H
#define RP_CLI_SERVE_ADDRESS_CHECK_H

#include "reprise/status.h"

/* Returns RP_INVALID, with the reason in `why`, unless the text is "host:port", "[v6]:port",
 * ":port", "unix:/path" or "fd:n". `*is_open` is true if other machines can certainly reach the
 * address; it is false for host names other than localhost, since they are not resolved. Pure.
 */
RP_NODISCARD rp_status rp_address_check(const char *address, bool *is_open, char *why,
                                        size_t why_bytes);

/* Writes the address, with `port` in the place of port 0 of TCP, cut to fit. Returns `text`. */
char *rp_address_with_port(const char *address, int port, char *text, size_t size);

#endif

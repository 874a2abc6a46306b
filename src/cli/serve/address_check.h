/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the addresses on which a server is to listen, without binding them. */
#ifndef RP_CLI_SERVE_ADDRESS_CHECK_H
#define RP_CLI_SERVE_ADDRESS_CHECK_H

#include "reprise/status.h"

/* Checks that an address has one of the forms "host:port", "[v6]:port", ":port", "unix:/path"
 * and "fd:n". Otherwise returns RP_INVALID, with the reason in `why`. Sets `*is_open` to true
 * only if it is certain that other machines can reach the address. A host name is not resolved,
 * so the result for it is false. Pure. */
RP_NODISCARD rp_status rp_address_check(const char *address, bool *is_open, char *why,
                                        size_t why_bytes);

/* Writes the address, cut to fit. In a TCP address with port 0, replaces the 0 with `port`.
 * Returns `text`. */
char *rp_address_with_port(const char *address, int port, char *text, size_t size);

#endif

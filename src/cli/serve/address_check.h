/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on, looked at without binding them. */
#ifndef RP_CLI_SERVE_ADDRESS_CHECK_H
#define RP_CLI_SERVE_ADDRESS_CHECK_H

#include "reprise/status.h"

/* RP_INVALID, with what is wrong in `why`, if the text is none of "host:port", "[v6]:port",
 * ":port", "unix:/path" and "fd:n". `*is_open` says that others than this machine can certainly
 * reach it; of a name other than localhost that is not known, and it is false. Pure. */
RP_NODISCARD rp_status rp_address_check(const char *address, bool *is_open, char *why,
                                        size_t why_bytes);

/* Writes the address with another port, if it is one of TCP with the port 0, else as it is;
 * returns `text`, cut to fit. */
char *rp_address_with_port(const char *address, int port, char *text, size_t size);

#endif

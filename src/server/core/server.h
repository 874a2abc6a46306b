/* SPDX-License-Identifier: Apache-2.0 */
/* rp_server_new(), the first part of rp_server_start(), for tests that need a server which is
 * not started. The other functions of a server are declared in reprise/server.h. */
#ifndef RP_SERVER_CORE_SERVER_H
#define RP_SERVER_CORE_SERVER_H

#include "server/core/server_state.h"

/* Makes a server without starting it: sets up everything that needs no thread and no
 * descriptor, and zeroes the workers. Parameters and errors are the same as for
 * rp_server_start(). rp_server_free() frees the server. */
RP_NODISCARD rp_status rp_server_new(rp_store *store, const rp_server_options *options,
                                     rp_server **out, rp_error *err);

#endif

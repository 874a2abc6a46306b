/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a server's life that tests use one by one; reprise/server.h has the rest. */
#ifndef RP_SERVER_CORE_SERVER_H
#define RP_SERVER_CORE_SERVER_H

#include "server/core/server_state.h"

/* Sets up everything that needs no thread and no descriptor; the workers are zeroed. As
 * rp_server_start() otherwise. rp_server_free() frees it. */
RP_NODISCARD rp_status rp_server_new(rp_store *store, const rp_server_options *options,
                                     rp_server **out, rp_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A change that a POST request asks for: of a table, or a checkpoint. */
#ifndef RP_SERVER_HTTP_ACTION_H
#define RP_SERVER_HTTP_ACTION_H

#include "reprise/status.h"
#include "wire/admin_messages.h"

typedef enum rp_action_kind {
    RP_ACTION_PAUSE,
    RP_ACTION_RESUME,
    RP_ACTION_RESET,
    RP_ACTION_ALTER,
    RP_ACTION_CHECKPOINT,
} rp_action_kind;

enum { RP_ACTION_WAIT_MS = 2000 }; /* how long a response waits for the disk */

typedef struct rp_action {
    rp_action_kind kind;
    rp_string table;
    uint32_t sides;            /* RP_SIDE_..., of RP_ACTION_PAUSE and RP_ACTION_RESUME */
    rp_wire_alter_table alter; /* of RP_ACTION_ALTER; `table` is not used */
    bool is_late;              /* result: done or begun, but not on disk after the wait */
} rp_action;

/* Reads the body of a request to pause or resume ({"inserts": true, "samples": true}, both by
 * default) or to alter ({"max_size": 1000}). An empty body is an empty object. Unknown keys are
 * mistakes. RP_INVALID. Pure functions of bytes from a peer. */
RP_NODISCARD rp_status rp_action_read_sides(const void *body, size_t size, rp_action *action,
                                            rp_error *err);
RP_NODISCARD rp_status rp_action_read_alter(const void *body, size_t size, rp_action *action,
                                            rp_error *err);

#endif

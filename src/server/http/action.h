/* SPDX-License-Identifier: Apache-2.0 */
/* rp_action: what a plain HTTP POST request asks the server to do: to change a table or to
 * write a checkpoint. */
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

enum { RP_ACTION_WAIT_MS = 2000 }; /* the longest time that a response waits for the disk */

typedef struct rp_action {
    rp_action_kind kind;
    rp_string table;
    uint32_t sides;            /* RP_SIDE_...; for RP_ACTION_PAUSE and RP_ACTION_RESUME */
    rp_wire_alter_table alter; /* for RP_ACTION_ALTER; its `table` is not used */
    bool is_late; /* result: the change is done or has begun, but was not on disk when the wait
                     ended */
} rp_action;

/* Both functions read the body of a request. rp_action_read_sides() is for requests to pause or
 * resume: {"inserts": true, "samples": true}, where a missing key means true.
 * rp_action_read_alter() is for requests to alter a table: {"max_size": 1000}. An empty body
 * stands for an empty object. Unknown keys are errors. The result depends only on the bytes of
 * the body. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_action_read_sides(const void *body, size_t size, rp_action *action,
                                            rp_error *err);
RP_NODISCARD rp_status rp_action_read_alter(const void *body, size_t size, rp_action *action,
                                            rp_error *err);

#endif

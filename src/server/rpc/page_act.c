/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the changes that POST requests ask for. */
#include "server/core/page_response.h"
#include "server/core/served_table.h"
#include "server/rpc/methods.h"
#include "table/table_log.h"
#include "util/clock.h"
#include "util/error.h"

/* Checks that the server can be changed now. */
static rp_status check_ready(rp_server *server, rp_error *err)
{
    rp_durable_info info;

    if (atomic_load_explicit(&server->draining, memory_order_relaxed))
        return rp_fail(err, RP_UNAVAILABLE, "the server is shutting down");
    /* Acquire: pairs with rp_server_set_health(), so that the loaded store is visible. */
    if (!atomic_load_explicit(&server->is_loaded, memory_order_acquire))
        return rp_server_fail_loading(server, err);
    if (server->safety.durable == NULL) return RP_OK;
    rp_durable_get_info(server->safety.durable, &info);
    if (info.max_backlog_bytes == 0 || info.backlog_bytes < info.max_backlog_bytes)
        return RP_OK;
    rp_safety_why_behind(&server->safety, err);
    return RP_UNAVAILABLE;
}

static rp_status checkpoint(rp_server *server, rp_action *action, rp_error *err)
{
    rp_status st;

    if (server->safety.durable == NULL)
        return rp_fail(err, RP_PRECONDITION,
                       "this server keeps nothing on disk: start it with a data directory");
    if (!rp_checkpoint_queue_spend(server, rp_now_ns()))
        return rp_fail(err, RP_NO_RESOURCE,
                       "checkpoints are written at most every %lld ms: try again later",
                       (long long)rp_server_limits_now(server).checkpoint_spacing_ms);
    st = rp_durable_checkpoint(server->safety.durable, rp_wait_ms(RP_ACTION_WAIT_MS), NULL, 0,
                               err);
    action->is_late = st == RP_DEADLINE; /* it is written all the same */
    return st == RP_DEADLINE ? RP_OK : st;
}

static rp_status alter(rp_served_table *served, const rp_action *action, uint64_t *lsn,
                       rp_error *err)
{
    rp_table_alteration change = rp_alteration_of(&action->alter, served->table);
    rp_status st = rp_table_alter_logged(served->table, &change, lsn, err);

    rp_served_table_altered(served); /* even after a failure: a part may have changed */
    return st;
}

static rp_status change(rp_server *server, rp_served_table *served, const rp_action *action,
                        uint64_t *lsn, rp_error *err)
{
    switch (action->kind) {
    case RP_ACTION_PAUSE:
    case RP_ACTION_RESUME:
        return rp_table_set_paused_logged(served->table, action->sides,
                                          action->kind == RP_ACTION_PAUSE, lsn, err);
    case RP_ACTION_RESET:
        if (server->reset_off)
            return rp_fail(err, RP_DENIED, "this server does not allow Reset");
        return rp_table_reset_logged(served->table, lsn, err);
    case RP_ACTION_ALTER: return alter(served, action, lsn, err);
    case RP_ACTION_CHECKPOINT: break;
    }
    return rp_fail(err, RP_INTERNAL, "not a change of a table");
}

rp_status rp_page_act(void *ctx, rp_action *action, rp_error *err)
{
    rp_server *server = ctx;
    rp_served_table *served;
    uint64_t lsn = 0;
    rp_status st = check_ready(server, err);

    action->is_late = false;
    if (st != RP_OK) return st;
    if (action->kind == RP_ACTION_CHECKPOINT) return checkpoint(server, action, err);
    served = rp_served_table_find(server, action->table, err);
    if (served == NULL) return err->code;
    st = change(server, served, action, &lsn, err);
    st = rp_table_wait_durable(served->table, st, lsn, rp_wait_ms(RP_ACTION_WAIT_MS), err);
    action->is_late = st == RP_DEADLINE;
    rp_served_table_unref(served);
    return st == RP_DEADLINE ? RP_OK : st;
}

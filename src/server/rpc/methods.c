/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/methods.h"

#include "server/rpc/sample_fetch.h"

const rp_task_kind *const rp_task_kinds[RP_METHODS] = {
    [RP_METHOD_INSERT_STREAM] = &rp_insert_stream_kind,
    [RP_METHOD_SAMPLE_STREAM] = &rp_sample_stream_kind,
    [RP_METHOD_MUTATE_PRIORITIES] = &rp_mutate_kind,
    [RP_METHOD_RESET] = &rp_reset_kind,
    [RP_METHOD_CHECKPOINT] = &rp_checkpoint_kind,
    [RP_METHOD_SERVER_INFO] = &rp_server_info_kind,
    [RP_METHOD_INITIALIZE_CONNECTION] = &rp_initialize_kind,
    [RP_METHOD_PEEK] = &rp_peek_kind,
    [RP_METHOD_SAMPLE] = &rp_sample_kind,
    [RP_METHOD_SAMPLE_SHARED] = &rp_sample_shared_kind,
    [RP_METHOD_WHY_BLOCKED] = &rp_why_blocked_kind,
    [RP_METHOD_CLIENTS] = &rp_clients_kind,
    [RP_METHOD_STATUS] = &rp_status_kind,
    [RP_METHOD_UPDATE] = &rp_update_kind,
    [RP_METHOD_DELETE] = &rp_delete_kind,
    [RP_METHOD_CREATE_TABLE] = &rp_create_table_kind,
    [RP_METHOD_DROP_TABLE] = &rp_drop_table_kind,
    [RP_METHOD_ALTER_TABLE] = &rp_alter_table_kind,
    [RP_METHOD_PAUSE_TABLE] = &rp_pause_table_kind,
    [RP_METHOD_RESUME_TABLE] = &rp_resume_table_kind,
    [RP_METHOD_LOG_SCALARS] = &rp_log_scalars_kind,
    [RP_METHOD_READ_RUNS] = &rp_read_runs_kind,
    [RP_METHOD_CREATE_ROLLOUTS] = &rp_create_rollouts_kind,
    [RP_METHOD_DROP_ROLLOUTS] = &rp_drop_rollouts_kind,
    [RP_METHOD_LIST_ROLLOUTS] = &rp_list_rollouts_kind,
    [RP_METHOD_APPLY_ROLLOUTS] = &rp_apply_rollouts_kind,
    [RP_METHOD_PEEK_ROLLOUTS] = &rp_peek_rollouts_kind,
    [RP_METHOD_READ_CURSOR] = &rp_read_cursor_kind,
    [RP_METHOD_HEALTH_CHECK] = &rp_health_check_kind,
    [RP_METHOD_HEALTH_WATCH] = &rp_health_watch_kind,
    [RP_METHOD_REFLECTION] = &rp_reflection_kind,
};

void rp_worker_free_pools(rp_worker *worker)
{
    rp_insert_batches_free(worker);
    rp_sample_fetches_free(worker);
}

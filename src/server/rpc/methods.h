/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of tasks (core/task.h) that implement the methods of the server. */
#ifndef RP_SERVER_RPC_METHODS_H
#define RP_SERVER_RPC_METHODS_H

#include "server/core/task.h"
#include "wire/admin_messages.h"

/* Service deepmind.reverb.ReverbService: */
extern const rp_task_kind rp_insert_stream_kind, rp_sample_stream_kind, rp_mutate_kind,
    rp_reset_kind, rp_checkpoint_kind, rp_server_info_kind, rp_initialize_kind;
/* Services of reprise.v1: */
extern const rp_task_kind rp_sample_shared_kind, rp_peek_kind, rp_sample_kind,
    rp_why_blocked_kind, rp_clients_kind, rp_status_kind, rp_update_kind, rp_delete_kind,
    rp_create_table_kind, rp_drop_table_kind, rp_alter_table_kind, rp_pause_table_kind,
    rp_resume_table_kind, rp_log_scalars_kind, rp_read_runs_kind, rp_create_rollouts_kind,
    rp_drop_rollouts_kind, rp_list_rollouts_kind, rp_apply_rollouts_kind, rp_peek_rollouts_kind,
    rp_read_cursor_kind;
/* Services of gRPC (health, reflection): */
extern const rp_task_kind rp_health_check_kind, rp_health_watch_kind, rp_reflection_kind;

/* Frees the batches that a worker keeps for reuse. */
void rp_insert_batches_free(rp_worker *worker);

/* Returns the change of a table that a request asks for. If the request lacks a field of the
 * rate limiter, the result has the value that this field has in the table. */
rp_table_alteration rp_alteration_of(const rp_wire_alter_table *asked, rp_table *table);

#endif

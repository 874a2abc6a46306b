/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/journal/redo_rollouts.h"

#include <assert.h>
#include <string.h>

#include "durable/format/rollout_records.h"
#include "util/clock.h"
#include "util/error.h"

/* The LSN of the last operation in the image of the rollouts; 0: there is no image. */
static uint64_t image_lsn(const rp_rollouts_redo *o, rp_string name)
{
    for (size_t i = 0; o->found != NULL && i < o->found->count; i++) {
        rp_string other = rp_rollouts_name(o->found->at[i].rollouts);

        if (other.size == name.size && memcmp(other.data, name.data, name.size) == 0)
            return o->found->at[i].lsn;
    }
    return 0;
}

/* A change that was logged is possible again, unless the record or the state is wrong. */
static rp_status impossible(rp_status st, rp_error *err)
{
    if (st == RP_OK || st == RP_NO_RESOURCE) return st;
    if (err != NULL) err->code = RP_CORRUPT;
    return RP_CORRUPT;
}

/* True if there is no place for the rollouts that a record creates. That happens only between
 * the cut of the checkpoint and its list of rollouts, if these ones were dropped before the
 * list was made, and the rollouts that took their place are there already, from the image. So
 * the record is skipped, as are the later ones on these rollouts. */
static bool is_crowded_out(const rp_rollouts_redo *o, const rp_record *record)
{
    return record->kind == RP_RECORD_ROLLOUTS_CREATE && record->number <= o->lsn &&
           rp_rollout_set_is_full(rp_store_rollouts(o->store));
}

static rp_status create(const rp_rollouts_redo *o, const rp_rollout_record *record,
                        rp_error *err)
{
    rp_rollout_options *options = NULL;
    rp_rollouts *rollouts = NULL;
    rp_status st =
        rp_rollout_options_read(o->alloc, record->body.data, record->body.size, &options, err);

    if (st == RP_OK)
        st = rp_rollouts_new(o->alloc, rp_system_seed(), record->name, options, &rollouts, err);
    if (st == RP_OK) st = rp_rollout_set_add(rp_store_rollouts(o->store), rollouts, err);
    rp_rollouts_unref(rollouts);
    rp_rollout_options_free(options, o->alloc);
    return impossible(st, err);
}

static rp_status apply(const rp_rollouts_redo *o, const rp_rollout_record *record,
                       rp_rollouts *rollouts, rp_error *err)
{
    rp_rollout_op op;
    rp_rollout_result result = {0};
    rp_status st = rp_rollout_op_read(o->alloc, record->body.data, record->body.size, &op, err);

    if (st != RP_OK) return impossible(st, err);
    st = rp_rollouts_apply_step(rollouts, &op, &result, err);
    rp_rollout_batch_free(result.batch);
    rp_rollout_op_deinit(&op, o->alloc);
    if (st == RP_OK && !result.changed)
        st = rp_fail(err, RP_CORRUPT, "rollouts '%.*s': the operation changes nothing",
                     (int)record->name.size, record->name.data);
    return impossible(st, err);
}

rp_status rp_redo_rollouts(const rp_rollouts_redo *o, const rp_record *from, bool *applied,
                           rp_error *err)
{
    rp_rollout_set *set = rp_store_rollouts(o->store);
    rp_rollout_record record;
    rp_rollouts *rollouts;
    rp_status st = rp_rollout_record_read(from->kind, from->payload, from->size, &record, err);

    *applied = false;
    if (st != RP_OK || from->number <= image_lsn(o, record.name)) return st;
    rollouts = rp_rollout_set_find(set, record.name);
    if (rollouts == NULL && is_crowded_out(o, from)) return RP_OK;
    *applied = rollouts != NULL || from->kind == RP_RECORD_ROLLOUTS_CREATE;
    if (from->kind == RP_RECORD_ROLLOUTS_CREATE)
        st = create(o, &record, err);
    else if (rollouts != NULL && from->kind == RP_RECORD_ROLLOUTS_OP)
        st = apply(o, &record, rollouts, err);
    else if (rollouts != NULL)
        st = impossible(rp_rollout_set_drop(set, record.name, NULL, err), err);
    else if (from->number > o->lsn && !o->salvage)
        st = rp_fail(err, RP_CORRUPT, "there are no rollouts '%.*s'", (int)record.name.size,
                     record.name.data);
    rp_rollouts_unref(rollouts);
    return st;
}

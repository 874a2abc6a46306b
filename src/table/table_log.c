/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the log. Small things are noted, and told together before anything else happens. */
#include "table/table_log.h"

#include <assert.h>

static_assert((int)RP_TOLD_AT_ONCE >= (int)RP_BLOCK, "a block is told as one change");

void rp_table_set_log(rp_table *t, rp_table_log *log)
{
    rp_mutex_lock(&t->mu);
    atomic_store_explicit(&t->telling.log, log, memory_order_release);
    t->telling.lsn = 0;
    t->keeps_numbers = false;
    rp_mutex_unlock(&t->mu);
}

void rp_table_nudge(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    rp_table_leave(t);
}

static void tell_locked(rp_table *t, const rp_change *change) RP_REQUIRES(t->mu)
{
    rp_table_log *log = rp_table_log_of(t);

    t->telling.lsn = log->changed(log, t, change);
}

void rp_tell_noted_locked(rp_table *t)
{
    rp_telling *told = &t->telling;

    if (told->inserted_count > 0) {
        rp_change change = {.kind = RP_CHANGED_INSERT,
                            .wall_ns = told->wall_ns,
                            .dead = told->dead,
                            .inserted = told->inserted,
                            .count = told->inserted_count};
        told->inserted_count = 0;
        tell_locked(t, &change);
    }
    if (told->evicted > 0) {
        rp_change change = {.kind = RP_CHANGED_EVICT, .count = told->evicted};
        told->evicted = 0;
        tell_locked(t, &change);
    }
    if (told->drawn > 0) {
        rp_change change = {.kind = RP_CHANGED_SAMPLE, .count = told->drawn};
        told->drawn = 0;
        tell_locked(t, &change);
    }
    if (told->update_count > 0) {
        rp_change change = {.kind = RP_CHANGED_UPDATE,
                            .updates = told->updates,
                            .count = told->update_count,
                            .by_extension = true};
        told->update_count = 0;
        tell_locked(t, &change);
    }
    told->dead = t->slots.dead;
}

void rp_tell_locked(rp_table *t, const rp_change *change)
{
    rp_tell_noted_locked(t);
    tell_locked(t, change);
}

void rp_note_inserted_locked(rp_table *t, const rp_insert *item, double priority,
                             rp_trajectory *trajectory)
{
    rp_telling *told = &t->telling;

    told->inserted[told->inserted_count++] = (rp_inserted){
        .key = item->key,
        .priority = priority,
        .trajectory = trajectory,
        .times_sampled = trajectory != NULL ? item->times_sampled : 0,
        .evicted = (uint32_t)told->evicted,
    };
    told->evicted = 0;
    if (told->inserted_count == RP_TOLD_AT_ONCE) rp_tell_noted_locked(t);
}

void rp_note_update_locked(rp_table *t, uint64_t key, double priority)
{
    rp_telling *told = &t->telling;

    if (rp_table_log_of(t) == NULL) return;
    told->updates[told->update_count++] = (rp_update){.key = key, .priority = priority};
    if (told->update_count == RP_TOLD_AT_ONCE) rp_tell_noted_locked(t);
}

rp_status rp_table_wait_safe(rp_table *t, rp_status st, uint64_t lsn, rp_wait wait,
                             rp_error *err)
{
    rp_table_log *log = rp_table_log_of(t);
    rp_status safe;

    if (log == NULL || lsn == 0) return st;
    if (wait.until_ns == RP_NOW || st != RP_OK) wait.until_ns = RP_FOREVER;
    safe = log->wait(log, lsn, wait, st == RP_OK ? err : NULL);
    return st == RP_OK ? safe : st;
}

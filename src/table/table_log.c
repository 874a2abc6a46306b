/* SPDX-License-Identifier: Apache-2.0 */
/* The change log. Small changes are collected in the log buffer of the table and logged
 * together before any other change.
 *
 * Invariants:
 *   L1  the buffer is empty whenever the table's lock is free;
 *   L2  without a log the buffer stays empty;
 *   L3  LSNs never descend. */
#include "table/table_log.h"

#include <assert.h>

static_assert((int)RP_LOG_BATCH >= (int)RP_BLOCK, "a block is logged as one record");

void rp_table_set_log(rp_table *t, rp_table_log *log)
{
    rp_mutex_lock(&t->mu);
    assert(rp_log_buffer_is_empty(&t->log_buffer)); /* L1 */
    atomic_store_explicit(&t->log_buffer.log, log, memory_order_release);
    t->log_buffer.lsn = 0;
    t->keeps_numbers = false;
    rp_mutex_unlock(&t->mu);
}

void rp_table_retry_parked(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    rp_table_unlock(t);
}

static void tell_locked(rp_table *t, const rp_log_record *change) RP_REQUIRES(t->mu)
{
    rp_table_log *log = rp_table_log_of(t);
    uint64_t lsn;

    assert(rp_mutex_is_held(&t->mu) && log != NULL); /* L2 */
    lsn = log->changed(log, t, change);
    assert(lsn > 0 && lsn >= t->log_buffer.lsn); /* L3 */
    t->log_buffer.lsn = lsn;
}

void rp_log_flush_locked(rp_table *t)
{
    rp_log_buffer *told = &t->log_buffer;

    if (told->inserted_count > 0) {
        rp_log_record change = {.kind = RP_LOGGED_INSERT,
                                .wall_ns = told->wall_ns,
                                .dead = told->dead,
                                .inserted = told->inserted,
                                .count = told->inserted_count};
        told->inserted_count = 0;
        tell_locked(t, &change);
    }
    if (told->evicted > 0) {
        rp_log_record change = {.kind = RP_LOGGED_EVICT, .count = told->evicted};
        told->evicted = 0;
        tell_locked(t, &change);
    }
    if (told->drawn > 0) {
        rp_log_record change = {.kind = RP_LOGGED_SAMPLE, .count = told->drawn};
        told->drawn = 0;
        tell_locked(t, &change);
    }
    if (told->update_count > 0) {
        rp_log_record change = {.kind = RP_LOGGED_UPDATE,
                                .updates = told->updates,
                                .count = told->update_count,
                                .by_extension = true};
        told->update_count = 0;
        tell_locked(t, &change);
    }
    told->dead = t->slots.retired;
}

void rp_log_locked(rp_table *t, const rp_log_record *change)
{
    rp_log_flush_locked(t);
    tell_locked(t, change);
}

void rp_log_add_inserted_locked(rp_table *t, const rp_insert *item, double priority,
                                rp_trajectory *trajectory)
{
    rp_log_buffer *told = &t->log_buffer;

    told->inserted[told->inserted_count++] = (rp_inserted){
        .key = item->key,
        .priority = priority,
        .trajectory = trajectory,
        .times_sampled = trajectory != NULL ? item->times_sampled : 0,
        .evicted = (uint32_t)told->evicted,
    };
    told->evicted = 0;
    assert(told->inserted_count <= RP_LOG_BATCH);
    if (told->inserted_count == RP_LOG_BATCH) rp_log_flush_locked(t);
}

void rp_log_add_update_locked(rp_table *t, uint64_t key, double priority)
{
    rp_log_buffer *told = &t->log_buffer;

    if (rp_table_log_of(t) == NULL) return;
    told->updates[told->update_count++] = (rp_update){.key = key, .priority = priority};
    assert(told->update_count <= RP_LOG_BATCH);
    if (told->update_count == RP_LOG_BATCH) rp_log_flush_locked(t);
}

rp_status rp_table_wait_for_log(rp_table *t, rp_error *err)
{
    rp_table_log *log = rp_table_log_of(t);

    if (log == NULL || !log->is_behind(log, false)) return RP_OK;
    return log->wait(log, RP_LOG_ALL, rp_wait_forever(), err);
}

rp_status rp_table_wait_durable(rp_table *t, rp_status st, uint64_t lsn, rp_wait wait,
                                rp_error *err)
{
    rp_table_log *log = rp_table_log_of(t);
    rp_status safe;

    if (log == NULL || lsn == 0) return st;
    if (wait.until_ns == RP_NOW || st != RP_OK) wait.until_ns = RP_FOREVER;
    safe = log->wait(log, lsn, wait, st == RP_OK ? err : NULL);
    return st == RP_OK ? safe : st;
}

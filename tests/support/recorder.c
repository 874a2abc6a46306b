/* SPDX-License-Identifier: Apache-2.0 */
#include "support/recorder.h"

#include "support/unit.h"
#include "util/error.h"

static rp_status on_prepare(rp_table_log *log, rp_trajectory *const *trajectories, size_t count,
                            uint64_t *claimed, rp_error *err)
{
    rp_test_recorder *r = (rp_test_recorder *)log;

    (void)trajectories;
    rp_mutex_lock(&r->mu);
    r->prepared += count > 0;
    *claimed = r->prepare_status == RP_OK ? count : 0;
    r->claimed += *claimed;
    rp_mutex_unlock(&r->mu);
    if (r->prepare_status == RP_OK) return RP_OK;
    return rp_fail(err, r->prepare_status, "the journal has no memory");
}

static void on_unclaim(rp_table_log *log, uint64_t claimed)
{
    rp_test_recorder *r = (rp_test_recorder *)log;

    rp_mutex_lock(&r->mu);
    assert_true(claimed <= r->claimed);
    r->claimed -= claimed;
    rp_mutex_unlock(&r->mu);
}

static void *copy(const void *data, size_t count, size_t size)
{
    void *out = calloc(count + 1, size);

    assert_non_null(out);
    if (data != NULL) memcpy(out, data, count * size);
    return out;
}

static size_t *pool_indices(const rp_test_recorder *r, const rp_log_record *change)
{
    size_t *out = copy(NULL, change->count, sizeof *out);

    for (size_t i = 0; i < change->count; i++) {
        out[i] = SIZE_MAX;
        for (size_t j = 0; j < r->pool_count; j++)
            if (r->pool[j] == change->inserted[i].trajectory) out[i] = j;
    }
    return out;
}

static uint64_t on_changed(rp_table_log *log, const rp_table *table,
                           const rp_log_record *change)
{
    rp_test_recorder *r = (rp_test_recorder *)log;
    rp_test_told told = {table, *change, NULL};
    uint64_t lsn;

    if (change->inserted != NULL) {
        told.change.inserted = copy(change->inserted, change->count, sizeof(rp_inserted));
        told.pool_index = pool_indices(r, change);
    }
    if (change->updates != NULL)
        told.change.updates = copy(change->updates, change->count, sizeof(rp_update));
    if (change->keys != NULL)
        told.change.keys = copy(change->keys, change->count, sizeof(uint64_t));
    rp_mutex_lock(&r->mu);
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->told = realloc(r->told, r->capacity * sizeof *r->told);
        if (r->told == NULL) abort();
    }
    r->told[r->count++] = told;
    lsn = r->count;
    rp_mutex_unlock(&r->mu);
    return lsn;
}

static uint64_t on_table(rp_table_log *log, const rp_table *table)
{
    (void)log, (void)table;
    return 1;
}

static bool is_behind(const rp_table_log *log, bool is_insert)
{
    (void)is_insert;
    return atomic_load(&((const rp_test_recorder *)log)->behind);
}

static rp_status on_wait(rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err)
{
    rp_test_recorder *r = (rp_test_recorder *)log;

    (void)wait;
    rp_mutex_lock(&r->mu);
    r->waits++;
    r->waited = lsn;
    rp_mutex_unlock(&r->mu);
    if (r->wait_status != RP_OK && err != NULL)
        *err = (rp_error){.code = r->wait_status, .text = "the recorder cannot write"};
    return r->wait_status;
}

void rp_test_recorder_init(rp_test_recorder *r, rp_trajectory *const *pool, size_t pool_count)
{
    memset(r, 0, sizeof *r);
    r->log = (rp_table_log){.prepare = on_prepare,
                            .unclaim = on_unclaim,
                            .changed = on_changed,
                            .created = on_table,
                            .dropped = on_table,
                            .is_behind = is_behind,
                            .wait = on_wait};
    r->pool = pool;
    r->pool_count = pool_count;
    rp_mutex_init(&r->mu, RP_RANK_WAITER);
}

void rp_test_recorder_deinit(rp_test_recorder *r)
{
    assert_int_equal(r->claimed, 0); /* every claim has ended */
    for (size_t i = 0; i < r->count; i++) {
        free((void *)r->told[i].change.inserted);
        free((void *)r->told[i].change.updates);
        free((void *)r->told[i].change.keys);
        free(r->told[i].pool_index);
    }
    free(r->told);
    rp_mutex_deinit(&r->mu);
}

rp_status rp_test_recorder_replay(const rp_test_recorder *r, const rp_table *from, rp_table *to,
                                  rp_trajectory *const *pool, rp_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const rp_test_told *told = &r->told[i];
        rp_inserted *inserted = (rp_inserted *)told->change.inserted;
        rp_status st;

        if (told->table != from) continue;
        for (size_t j = 0; inserted != NULL && j < told->change.count; j++)
            inserted[j].trajectory =
                told->pool_index[j] == SIZE_MAX ? NULL : pool[told->pool_index[j]];
        st = rp_table_redo(to, &told->change, err);
        if (st != RP_OK) return st;
    }
    rp_table_redo_end(to);
    return RP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading samples from disk. The threads of the disk tier read chunks on disk after the items
 * are drawn. So an operation that is complete in its table is complete for its caller only when
 * its chunks are read. */
#include <assert.h>

#include "table/spill.h"
#include "table/table.h"
#include "util/error.h"
#include "util/mem.h"

typedef struct op_load {
    rp_sample_load load;
    rp_op *op;
    rp_allocator alloc;
} op_load;

typedef struct waiter {
    rp_mutex mu; /* rank 60 */
    rp_cond cv;
    bool over RP_GUARDED_BY(mu);
} waiter;

static void wake(rp_sample_load *load)
{
    waiter *w = load->user;

    rp_mutex_lock(&w->mu);
    w->over = true;
    rp_cond_signal(&w->cv);
    rp_mutex_unlock(&w->mu);
}

rp_status rp_spill_load(rp_spill *spill, rp_sample *samples, size_t count, rp_error *err)
{
    waiter w = {.over = false};
    rp_sample_load load = {.samples = samples, .count = count, .on_done = wake, .user = &w};

    rp_mutex_init(&w.mu, RP_RANK_WAITER);
    rp_cond_init(&w.cv);
    if (!spill->start_load(spill, &load)) {
        rp_mutex_lock(&w.mu);
        while (!w.over) (void)rp_cond_wait(&w.cv, &w.mu, RP_FOREVER);
        rp_mutex_unlock(&w.mu);
    }
    rp_cond_deinit(&w.cv);
    rp_mutex_deinit(&w.mu);
    if (load.status != RP_OK && err != NULL) *err = load.error;
    return load.status;
}

bool rp_table_has_tier(const rp_table *table)
{
    return table->account.budget->spill != NULL;
}

bool rp_table_start_load(rp_table *table, rp_sample_load *load)
{
    rp_spill *spill = table->account.budget->spill;

    load->status = RP_OK;
    return spill == NULL || spill->start_load(spill, load);
}

/* Fails an operation whose samples could not be read. */
static void fail(rp_op *op, rp_status status, const char *text)
{
    rp_samples_release(op->samples, op->done);
    op->done = 0;
    op->status =
        rp_fail(&op->error, status, "table '%.60s': %.180s", op->table->options.name, text);
}

static void end(op_load *l)
{
    rp_allocator alloc = l->alloc;

    if (l->load.status != RP_OK) fail(l->op, l->load.status, l->load.error.text);
    rp_release(&alloc, l, sizeof *l);
}

static void on_loaded(rp_sample_load *load)
{
    op_load *l = load->user;
    rp_op *op = l->op;

    end(l);
    op->on_done(op);
}

bool rp_op_load(rp_op *op)
{
    rp_spill *spill = op->table->account.budget->spill;
    rp_status st;
    rp_error why;
    op_load *l;

    assert(!op->parked);
    if (spill == NULL || op->is_insert || op->status != RP_OK || op->done == 0) return true;
    if (op->on_done == NULL) { /* the call blocks for the disk */
        st = rp_spill_load(spill, op->samples, op->done, &why);
        if (st != RP_OK) fail(op, st, why.text);
        return true;
    }
    l = rp_alloc_zero(&op->table->alloc, sizeof *l);
    if (l == NULL) {
        fail(op, RP_NO_RESOURCE, "out of memory for samples on their way from disk");
        return true;
    }
    l->load.samples = op->samples;
    l->load.count = op->done;
    l->load.on_done = on_loaded;
    l->load.user = l;
    l->op = op;
    l->alloc = op->table->alloc;
    if (!spill->start_load(spill, &l->load)) return false;
    end(l);
    return true;
}

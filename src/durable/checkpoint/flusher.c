/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/checkpoint/flusher.h"

#include <assert.h>

#include "util/thread.h"

void rp_flusher_init(rp_flusher *f, rp_segments *segments)
{
    *f = (rp_flusher){.segments = segments};
    rp_mutex_init(&f->mu, RP_RANK_WAITER);
    rp_cond_init(&f->wanted);
    rp_cond_init(&f->ended);
}

static void *run(void *arg)
{
    rp_flusher *f = arg;

    rp_mutex_lock(&f->mu);
    while (!f->is_stopping && f->status == RP_OK) {
        rp_error why = {.text = ""};
        rp_status st;

        if (!f->is_wanted) {
            (void)rp_cond_wait(&f->wanted, &f->mu, INT64_MAX);
            continue;
        }
        f->is_wanted = false;
        rp_mutex_unlock(&f->mu);
        st = rp_segments_flush(f->segments, &why);
        rp_mutex_lock(&f->mu);
        f->status = st;
        f->why = why;
        f->passes++;
        rp_cond_signal(&f->ended);
    }
    rp_mutex_unlock(&f->mu);
    return NULL;
}

rp_status rp_flusher_request(rp_flusher *f, bool wait, rp_error *err)
{
    uint64_t passes;
    rp_status st;

    if (!f->has_thread) f->has_thread = rp_thread_start(&f->thread, "rp-flusher", run, f);
    if (!f->has_thread) return rp_segments_flush(f->segments, err);
    rp_mutex_lock(&f->mu);
    assert(!f->is_stopping); /* F1 */
    f->is_wanted = true;
    rp_cond_signal(&f->wanted);
    passes = f->passes;
    while (wait && f->status == RP_OK && f->passes == passes)
        (void)rp_cond_wait(&f->ended, &f->mu, INT64_MAX);
    st = f->status;
    if (st != RP_OK && err != NULL) *err = f->why;
    rp_mutex_unlock(&f->mu);
    return st;
}

rp_status rp_flusher_end(rp_flusher *f, rp_error *err)
{
    rp_status st;

    if (f->has_thread) {
        rp_mutex_lock(&f->mu);
        f->is_stopping = true;
        rp_cond_signal(&f->wanted);
        rp_mutex_unlock(&f->mu);
        (void)pthread_join(f->thread, NULL);
        f->has_thread = false;
    }
    rp_mutex_lock(&f->mu);
    f->is_stopping = f->is_wanted = false;
    st = f->status;
    if (st != RP_OK && err != NULL) *err = f->why;
    rp_mutex_unlock(&f->mu);
    return st;
}

void rp_flusher_deinit(rp_flusher *f)
{
    assert(!f->has_thread);
    rp_cond_deinit(&f->ended);
    rp_cond_deinit(&f->wanted);
    rp_mutex_deinit(&f->mu);
}

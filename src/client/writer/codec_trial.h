/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the codec is tried on the next chunk of a column. Once two chunks in a row
 * have not become smaller, the next ones are stored as they are: 3, 7, 15, 31, then 63 of them
 * before one is tried again. So data that become compressible are soon compressed. Also keeps
 * the template of a stored chunk of one row, with which the next such chunk is made.
 *
 * A plain value; zeroed, it has no experience. One thread asks, another one may record. */
#ifndef RP_CLIENT_WRITER_CODEC_TRIAL_H
#define RP_CLIENT_WRITER_CODEC_TRIAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "chunk/chunk.h"
#include "chunk/template.h"

enum {
    RP_TRIAL_SURE = 2, /* chunks in a row that did not become smaller */
    RP_TRIAL_MOST = 6, /* bound of stored_run: at most 2^6 - 1 chunks are not tried */
};

typedef struct rp_codec_trial {
    /* Tried chunks since the last that became smaller, at most RP_TRIAL_MOST. Relaxed, as is
     * has_template: an old value is fine. */
    atomic_uint_least32_t stored_run;
    uint32_t untried; /* chunks before the next that is tried; used by the thread that asks */
    atomic_bool has_template;   /* once set, `template` stays as it is */
    rp_chunk_template template; /* guarded by the owner's lock */
} rp_codec_trial;

/* Must not be called while another thread uses the value. */
static inline void rp_codec_trial_reset(rp_codec_trial *t)
{
    atomic_store_explicit(&t->stored_run, 0, memory_order_relaxed);
    atomic_store_explicit(&t->has_template, false, memory_order_relaxed);
    t->untried = 0;
    t->template.rows_bytes = 0;
}

/* Returns true if there is a template: read it with the owner's lock. */
static inline bool rp_codec_trial_has_template(const rp_codec_trial *t)
{
    return atomic_load_explicit(&t->has_template, memory_order_relaxed);
}

/* Returns true if the next chunk is to be stored as it is. */
static inline bool rp_codec_trial_skips(rp_codec_trial *t)
{
    uint32_t run = atomic_load_explicit(&t->stored_run, memory_order_relaxed);

    if (run < RP_TRIAL_SURE) return false;
    if (t->untried > 0) {
        t->untried--;
        return true;
    }
    t->untried = ((uint32_t)1 << run) - 1;
    return false;
}

/* Records a tried chunk. The caller holds the owner's lock. */
static inline void rp_codec_trial_record(rp_codec_trial *t, const rp_chunk *chunk)
{
    uint32_t run = atomic_load_explicit(&t->stored_run, memory_order_relaxed);

    if (chunk->columns[0].shape.dims[0] == 1 && !rp_codec_trial_has_template(t)) {
        rp_chunk_template_set(&t->template, chunk); /* does nothing if it is compressed */
        atomic_store_explicit(&t->has_template, t->template.rows_bytes > 0,
                              memory_order_relaxed);
    }
    if (chunk->places[0].form != RP_FORM_STORED)
        run = 0;
    else if (run < RP_TRIAL_MOST)
        run++;
    atomic_store_explicit(&t->stored_run, run, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a writer tries to compress the next chunk of a column with its codec. If
 * compression has made neither of two chunks in a row smaller, the next 3 chunks are stored
 * without a trial, and then one chunk is tried again. As long as a trial fails, the next 7, 15,
 * 31, and then always 63 chunks are stored without a trial. So data that become compressible
 * are soon compressed. The struct also keeps the template (chunk/template.h) of an uncompressed
 * chunk of one row, from which the writer makes the next chunk of this kind quickly.
 *
 * A zeroed struct is a valid start. One thread at a time calls rp_codec_trial_skips(), while
 * another thread is allowed to call rp_codec_trial_record(). */
#ifndef RP_CLIENT_WRITER_CODEC_TRIAL_H
#define RP_CLIENT_WRITER_CODEC_TRIAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "chunk/chunk.h"
#include "chunk/template.h"

enum {
    RP_TRIAL_SURE = 2, /* number of tried chunks in a row that did not become smaller, after
                          which chunks are stored without a trial */
    RP_TRIAL_MOST = 6, /* bound of stored_run: at most 2^6 - 1 chunks in a row are not tried */
};

typedef struct rp_codec_trial {
    /* Number of tried chunks since the last one that became smaller, at most RP_TRIAL_MOST.
     * stored_run and has_template are accessed with relaxed order, because an old value does no
     * harm. */
    atomic_uint_least32_t stored_run;
    uint32_t untried; /* chunks to store before the next trial. Only the thread that calls
                         rp_codec_trial_skips() uses it */
    atomic_bool has_template;   /* once this is set, `template` never changes */
    rp_chunk_template template; /* guarded by the owner's lock */
} rp_codec_trial;

/* Restores the zeroed state. Must not be called while another thread uses the struct. */
static inline void rp_codec_trial_reset(rp_codec_trial *t)
{
    atomic_store_explicit(&t->stored_run, 0, memory_order_relaxed);
    atomic_store_explicit(&t->has_template, false, memory_order_relaxed);
    t->untried = 0;
    t->template.rows_bytes = 0;
}

/* Returns true if there is a template. To read the template, the caller must hold the owner's
 * lock. */
static inline bool rp_codec_trial_has_template(const rp_codec_trial *t)
{
    return atomic_load_explicit(&t->has_template, memory_order_relaxed);
}

/* Returns true if the caller must store the next chunk uncompressed. */
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

/* Records the result of trying the codec on a chunk. The caller must hold the owner's lock. */
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

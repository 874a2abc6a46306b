/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that prefetches batches: the thread waits for samples and decodes them. It never
 * acquires the GIL. */
#ifndef REPRISE_PYTHON_PREFETCH_H
#define REPRISE_PYTHON_PREFETCH_H

#include "batch_arrays.h"

typedef struct core_prefetch core_prefetch;

typedef struct core_prefetch_options {
    size_t size;  /* items per batch */
    size_t depth; /* batches that are prefetched, >= 1 */
    size_t reuse; /* 0: each batch has its own memory; n: the memory of a batch is reused after
                     n more batches have been taken */
    rp_ragged ragged;
    bool whole; /* this and `ragged`: as in rp_sampler_batch() */
    /* depth + reuse sets of arrays that the caller gave; each batch uses one set, in turn.
     * NULL: the batches have memory of their own. core_prefetch_new() takes ownership. */
    core_given **sets;
    size_t set_columns; /* number of columns in each set */
} core_prefetch_options;

/* Starts the thread. Borrows sampler and pool, which must outlive the thread. */
int core_prefetch_new(rp_sampler *sampler, core_pool *pool,
                      const core_prefetch_options *options, core_prefetch **out);
/* Ends the thread, and releases the GIL while it waits for the end. Calls of
 * core_prefetch_take() that wait end with RP_CANCELLED. The caller must close the sampler
 * first. Can be called more than once. */
void core_prefetch_stop(core_prefetch *p);
/* Frees a stopped prefetcher; NULL is fine. Must not be called in a forked child. */
void core_prefetch_free(core_prefetch *p);

/* Waits for the next batch and returns it. If the sampler ends and no batch is left, returns
 * None and sets `*ended` to the reason. */
PyObject *core_prefetch_take(core_prefetch *p, int64_t timeout_ms, const char **ended);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that makes batches ahead: it waits for samples and decodes them while Python works,
 * and never takes the GIL. */
#ifndef REPRISE_PYTHON_PREFETCH_H
#define REPRISE_PYTHON_PREFETCH_H

#include "batch_arrays.h"

typedef struct core_prefetch core_prefetch;

typedef struct core_prefetch_options {
    size_t size;  /* of a batch */
    size_t depth; /* batches made ahead, >= 1 */
    size_t reuse; /* 0: every batch has memory of its own; n: that of a batch is written again
                     once n more have been taken */
    rp_ragged ragged;
    bool whole;
    /* The caller's memory: depth + reuse sets of columns, which are taken; else NULL. */
    core_given **sets;
    size_t set_columns; /* of each set */
} core_prefetch_options;

/* Starts it. Both are borrowed: `sampler` must outlive it. */
int core_prefetch_new(rp_sampler *sampler, core_pool *pool,
                      const core_prefetch_options *options, core_prefetch **out);
/* Ends it, and waits of others with RP_CANCELLED: close the sampler before. Gives up the GIL
 * meanwhile. May be called more than once. */
void core_prefetch_stop(core_prefetch *p);
/* Frees it, stopped; NULL is fine. In the child of a fork it may not be called. */
void core_prefetch_free(core_prefetch *p);

/* The next batch: a new reference; None if the sequence is over, and then `*ended` says why;
 * NULL with an exception. */
PyObject *core_prefetch_take(core_prefetch *p, int64_t timeout_ms, const char **ended);

#endif

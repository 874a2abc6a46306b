/* SPDX-License-Identifier: Apache-2.0 */
/* Converts samples to Python objects: to tuples with an array for each column, or to stacked
 * arrays. */
#ifndef REPRISE_PYTHON_SAMPLE_ARRAYS_H
#define REPRISE_PYTHON_SAMPLE_ARRAYS_H

#include "core.h"

enum { CORE_DECODER_BYTES = 4 << 20 }; /* limit of the decoded chunks that a decoder caches */

/* A decoder that several threads share. The GIL guards `busy`. */
typedef struct core_decoder {
    rp_decoder *decoder;
    bool busy; /* a thread that has released the GIL decodes with it */
} core_decoder;

/* Calls `run` with the shared decoder, or with a new decoder if another thread uses the shared
 * one. Releases the GIL during `run` if `bytes`, the size of the decoded data, is large. */
typedef rp_status (*core_decode)(rp_decoder *decoder, const void *arg, rp_error *err);
int core_decoder_run(core_decoder *shared, core_decode run, const void *arg, size_t bytes);

/* Returns a list with a tuple for each sample: (key, probability, table_size, priority,
 * times_sampled, [array of each column]). Borrows the samples. Small samples are decoded with
 * the GIL held, since releasing the GIL costs more than decoding them. */
PyObject *core_samples_list(core_decoder *decoder, const rp_sample *samples, size_t count);

/* Returns how many of the samples, from the first on, can be stacked, because they have the
 * same number of columns, with the same dtypes and ranks. Returns 0 if `count` is 0. */
size_t core_samples_alike(const rp_sample *samples, size_t count);

/* Stacks samples that are alike, as core_samples_alike() defines it. Returns a tuple of five
 * arrays with one value for each sample (keys, probabilities, table sizes, priorities, times
 * sampled) and two lists with one entry for each column. If all samples have the same shape in
 * a column, its entry in the first list is the stacked array, and its entry in the second is
 * None. Otherwise the first entry is an array of one dimension with the values of all samples
 * end to end, and the second is an int64 array whose row i is the shape of sample i. Borrows
 * the samples. */
PyObject *core_samples_stack(core_decoder *decoder, const rp_sample *samples, size_t count);

#endif

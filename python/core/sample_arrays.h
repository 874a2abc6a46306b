/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as Python objects: tuples with an array for each column. */
#ifndef REPRISE_PYTHON_SAMPLE_ARRAYS_H
#define REPRISE_PYTHON_SAMPLE_ARRAYS_H

#include "core.h"

enum { CORE_DECODER_BYTES = 4 << 20 }; /* of decoded chunks that a decoder keeps */

/* A decoder that several threads share. The GIL guards `busy`. */
typedef struct core_decoder {
    rp_decoder *decoder;
    bool busy; /* a thread decodes with it without the GIL */
} core_decoder;

/* Decodes with `run`: with the shared decoder, or with a new one if another thread uses that.
 * The GIL is released if `bytes`, the size of what is decoded, is large. */
typedef rp_status (*core_decode)(rp_decoder *decoder, const void *arg, rp_error *err);
int core_decoder_run(core_decoder *shared, core_decode run, const void *arg, size_t bytes);

/* Returns a list with a tuple for each sample: (key, probability, table_size, priority,
 * times_sampled, [array of each column]). Borrows the samples. Small samples are decoded with
 * the GIL held, since releasing it costs more than the copy. */
PyObject *core_samples_list(core_decoder *decoder, const rp_sample *samples, size_t count);

/* Returns how many of the first samples can be stacked: they have the same columns, with the
 * same dtypes and ranks. 0 if `count` is. */
size_t core_samples_alike(const rp_sample *samples, size_t count);

/* Stacks samples that are alike. Returns a tuple of arrays with one value for each sample
 * (keys, probabilities, table sizes, priorities, times sampled) and two lists with an entry for
 * each column. If all samples have the same shape in a column, its entries are the stacked
 * array, and None. Otherwise they are the values of all samples end to end, with one dimension,
 * and the shapes: int64, a row for each sample. Borrows the samples. */
PyObject *core_samples_stack(core_decoder *decoder, const rp_sample *samples, size_t count);

#endif

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

/* Returns a list with a tuple for each sample: (key, probability, table_size, priority,
 * times_sampled, [array of each column]). Borrows the samples. Small samples are decoded with
 * the GIL held, since releasing it costs more than the copy. */
PyObject *core_samples_list(core_decoder *decoder, const rp_sample *samples, size_t count);

#endif

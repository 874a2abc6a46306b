/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the results of Client.sample() from those of Sampler.next(). */
#ifndef REPRISE_PYTHON_SAMPLE_STEPS_H
#define REPRISE_PYTHON_SAMPLE_STEPS_H

#include "core.h"

/* replay_samples(found, SampleInfo, ReplaySample, structure or None, steps). `found` is a list
 * of (key, probability, table_size, priority, times_sampled, [columns]). Returns a list with an
 * element for each of them: with `steps`, a list with a ReplaySample for each row; otherwise
 * one ReplaySample with whole columns. The data has that structure, or is a list if `structure`
 * is None. ValueError if columns that are to be split into steps differ in length. */
PyObject *core_replay_samples(PyObject *self, PyObject *const *args, Py_ssize_t count);

#endif

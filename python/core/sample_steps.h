/* SPDX-License-Identifier: Apache-2.0 */
/* The results of Client.sample(), from those of Sampler.next(). */
#ifndef REPRISE_PYTHON_SAMPLE_STEPS_H
#define REPRISE_PYTHON_SAMPLE_STEPS_H

#include "core.h"

/* replay_samples(found, SampleInfo, ReplaySample, structure or None, steps). `found` is a list
 * of (key, probability, table_size, priority, times_sampled, [columns]). Returns a list with an
 * element for each: with `steps`, a list of a ReplaySample for each row; else one ReplaySample
 * with whole columns. The data has that structure, or is a list. ValueError if columns differ
 * in length and are to be split into steps. */
PyObject *core_replay_samples(PyObject *self, PyObject *const *args, Py_ssize_t count);

#endif

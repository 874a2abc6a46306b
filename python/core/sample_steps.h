/* SPDX-License-Identifier: Apache-2.0 */
/* What Client.sample() gives, of what Sampler.next() gives. */
#ifndef REPRISE_PYTHON_SAMPLE_STEPS_H
#define REPRISE_PYTHON_SAMPLE_STEPS_H

#include "core.h"

/* replay_samples(found, SampleInfo, ReplaySample, structure or None, steps): a list as long as
 * `found`, a list of (key, probability, table_size, priority, times_sampled, [columns]). With
 * `steps` its elements are lists of ReplaySample, one for each row; else one with the columns.
 * The data has that structure, or is a list. ValueError if columns differ in length. */
PyObject *core_replay_samples(PyObject *self, PyObject *const *args, Py_ssize_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Converts results of Sampler.next() into results of Client.sample(). */
#ifndef REPRISE_PYTHON_SAMPLE_STEPS_H
#define REPRISE_PYTHON_SAMPLE_STEPS_H

#include "core.h"

/* replay_samples(found, SampleInfo, ReplaySample, structure or None, steps). `found` is a list
 * of (key, probability, table_size, priority, times_sampled, [columns]). Returns a list with
 * one element for each of these tuples. If `steps` is true, an element is a list with a
 * ReplaySample for each row; otherwise an element is one ReplaySample with whole columns. The
 * data of a ReplaySample has the given structure, or is a list if `structure` is None.
 * ValueError if `steps` is set and the columns differ in length. */
PyObject *core_replay_samples(PyObject *self, PyObject *const *args, Py_ssize_t count);

#endif

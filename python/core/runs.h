/* SPDX-License-Identifier: Apache-2.0 */
/* Client.report(): reports scalars and actors of a training run to the server. */
#ifndef REPRISE_PYTHON_RUNS_H
#define REPRISE_PYTHON_RUNS_H

#include "core.h"

/* report(run, scalars, actors, env, states, timeout): `scalars` is a list of tuples (name,
 * step, time, value), `actors` of tuples (name, epsilon, return, version, version_lag),
 * `states` a float32 array of two dimensions, or None. Returns how many of these scalars and
 * actors the server has dropped. */
PyObject *core_client_report(core_client *self, PyObject *const *args, Py_ssize_t count);

#endif

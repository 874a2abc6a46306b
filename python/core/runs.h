/* SPDX-License-Identifier: Apache-2.0 */
/* Reports to runs: Client.report(). */
#ifndef REPRISE_PYTHON_RUNS_H
#define REPRISE_PYTHON_RUNS_H

#include "core.h"

/* report(run, scalars, actors, env, states, timeout): `scalars` is a list of tuples (name,
 * step, time, value), `actors` of tuples (name, epsilon, return, version, version_lag),
 * `states` an array of float32 with two dimensions, or None. Returns how many of the scalars
 * and actors were dropped. */
PyObject *core_client_report(core_client *self, PyObject *const *args, Py_ssize_t count);

#endif

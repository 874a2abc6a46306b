/* SPDX-License-Identifier: Apache-2.0 */
/* Reads keys and priorities of items from Python objects. */
#ifndef REPRISE_PYTHON_KEYS_H
#define REPRISE_PYTHON_KEYS_H

#include "core.h"

/* Reads a priority from any Python number. */
int core_priority_from(PyObject *obj, double *priority);

/* Reads keys from a list, a tuple or an array. None means no keys. `what` is the name of the
 * keys in error texts. The caller frees `*out` with PyMem_RawFree(); on failure it is NULL. */
int core_keys_from(PyObject *obj, const char *what, uint64_t **out, size_t *count);

/* Reads updates of priorities. Either `keys` is a dict from key to priority, and `priorities`
 * is None. Or `keys` is as in core_keys_from(), and `priorities` is a sequence with a priority
 * for each key, or one priority for all keys. The caller frees `*out` with PyMem_RawFree(); on
 * failure it is NULL. */
int core_updates_from(PyObject *keys, PyObject *priorities, rp_update **out, size_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and priorities of items, as Python gives them. */
#ifndef REPRISE_PYTHON_KEYS_H
#define REPRISE_PYTHON_KEYS_H

#include "core.h"

/* Reads keys from a list, a tuple or an array; None is no keys. `what` names them in errors.
 * The caller frees `*out` with PyMem_RawFree(); on failure it is NULL. */
int core_keys_from(PyObject *obj, const char *what, uint64_t **out, size_t *count);

/* Reads updates: a dict from key to priority; or keys as above, with a priority for each or one
 * for all. The caller frees `*out` with PyMem_RawFree(); on failure it is NULL. */
int core_updates_from(PyObject *keys, PyObject *priorities, rp_update **out, size_t *count);

#endif

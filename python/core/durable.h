/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Durable: the data directory of a store, which keeps the store's tables on disk.
 * Servers and clients use it. */
#ifndef REPRISE_PYTHON_DURABLE_H
#define REPRISE_PYTHON_DURABLE_H

#include "core.h"

extern PyTypeObject core_Durable;
extern PyMethodDef core_durable_functions[]; /* functions of the module */

/* Returns the C object, which is valid until the Durable is closed. Returns NULL with an
 * exception if the Durable is closed, or if this process is a forked child of the process that
 * made it. */
rp_durable *core_durable_of(PyObject *durable);

/* Converts the state of a data directory to a dict. */
PyObject *core_durable_dict(const rp_durable_info *info);

#endif

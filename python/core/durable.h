/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Durable, for servers and clients. */
#ifndef REPRISE_PYTHON_DURABLE_H
#define REPRISE_PYTHON_DURABLE_H

#include "core.h"

extern PyTypeObject core_Durable;
extern PyMethodDef core_durable_functions[]; /* functions of the module */

/* Returns the C object, valid until it is closed. NULL with an exception if it is closed, or if
 * this process is a forked child of the one that made it. */
rp_durable *core_durable_of(PyObject *durable);

/* Converts the state of a data directory to a dict. */
PyObject *core_durable_dict(const rp_durable_info *info);

#endif

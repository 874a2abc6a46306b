/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.Durable, for servers and clients. */
#ifndef REPRISE_PYTHON_DURABLE_H
#define REPRISE_PYTHON_DURABLE_H

#include "core.h"

extern PyTypeObject core_Durable;
extern PyMethodDef core_durable_functions[]; /* of the module */

/* The C object, valid until it is closed. NULL with an exception if it is closed, or was made
 * by a process that forked this one. */
rp_durable *core_durable_of(PyObject *durable);

/* The state of a data directory, as a dict. */
PyObject *core_durable_dict(const rp_durable_info *info);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What servers and clients need of a reprise._core.Durable. */
#ifndef REPRISE_PYTHON_DURABLE_H
#define REPRISE_PYTHON_DURABLE_H

#include "core.h"

extern PyTypeObject core_Durable;

/* NULL with an exception if it is closed, or belongs to a process that forked this one. Valid
 * until it is closed. */
rp_durable *core_durable_of(PyObject *durable);

/* Everything known of one, as a dict. */
PyObject *core_durable_dict(const rp_durable_info *info);

#endif

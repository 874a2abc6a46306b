/* SPDX-License-Identifier: Apache-2.0 */
/* The functions with which module.c sets up the module, in addition to the types in core.h. */
#ifndef REPRISE_PYTHON_MODULE_H
#define REPRISE_PYTHON_MODULE_H

#include "core.h"

/* Adds `obj` to the module. Borrows the reference. */
int core_add(PyObject *module, const char *name, PyObject *obj);

/* Add the exceptions to the module (status.c), and look up the Python classes that nest.c
 * needs. */
int core_init_status(PyObject *module);
int core_init_nest(PyObject *module);

extern PyMethodDef core_nest_functions[];      /* structure.c */
extern PyMethodDef core_signature_functions[]; /* signature.c */

#endif

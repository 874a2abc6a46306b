/* SPDX-License-Identifier: Apache-2.0 */
/* What module.c puts together: the part of each file that makes things of the module. Beside
 * these, a type is enough: module.c holds the list. */
#ifndef REPRISE_PYTHON_MODULE_H
#define REPRISE_PYTHON_MODULE_H

#include "core.h"

/* Adds `obj` to the module; its reference stays the caller's. */
int core_add(PyObject *module, const char *name, PyObject *obj);

int core_init_status(PyObject *module);
int core_init_nest(PyObject *module);

extern PyMethodDef core_durable_functions[];   /* durable.c */
extern PyMethodDef core_nest_functions[];      /* structure.c */
extern PyMethodDef core_signature_functions[]; /* signature.c */

#endif

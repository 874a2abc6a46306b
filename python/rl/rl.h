/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module reprise._rl: the agents of libreprise-rl as Python types.
 *
 *   module.c    the contents of the module, and statuses as exceptions
 *   dqn.c       the type Dqn: an agent with a replay of its own in this process
 *   settings.c  settings of DQN from and to Python
 *
 * Environments are Python objects: the Python package steps them and passes arrays to this
 * module. The module uses arrays through the buffer protocol, so it does not need NumPy.
 *
 * A function is called with the GIL held, unless a comment says otherwise. A function that
 * returns PyObject * returns a new reference, or NULL with an exception set. A function that
 * returns int returns 0, or -1 with an exception set. */
#ifndef REPRISE_PYTHON_RL_H
#define REPRISE_PYTHON_RL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <assert.h>

#include <reprise/reprise.h>
#include <reprise/rl/dqn.h>

/* Casts a function for an entry of a PyMethodDef. */
#define RL_METHOD(function) ((PyCFunction)(void (*)(void))(function))

extern PyTypeObject rl_Dqn;

/* Sets the exception for a status other than RP_OK: ValueError for RP_INVALID, otherwise
 * reprise.errors.StatusError. Always returns NULL. */
PyObject *rl_raise(rp_status status, const rp_error *err);

/* Changes the settings that the dict names to the numbers in the dict. */
int rl_settings_from(PyObject *dict, rp_dqn_settings *settings);
/* Makes a dict of all settings. */
PyObject *rl_settings_dict(const rp_dqn_settings *settings);
/* Makes a list with a tuple (name, kind, default, low, high, about) for each setting. */
PyObject *rl_settings_list(PyObject *module, PyObject *ignored);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of reprise._rl. Its exceptions are those of reprise._core. */
#include <string.h>

#include "rl.h"

static PyObject *status_error; /* reprise.errors.StatusError */

/* The name of a status in gRPC. */
static const char *code_name(rp_status status)
{
    switch (status) {
    case RP_NOT_FOUND: return "NOT_FOUND";
    case RP_PRECONDITION: return "FAILED_PRECONDITION";
    case RP_NO_RESOURCE: return "RESOURCE_EXHAUSTED";
    case RP_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case RP_UNAVAILABLE: return "UNAVAILABLE";
    case RP_CORRUPT: return "DATA_LOSS";
    case RP_CANCELLED: return "CANCELLED";
    default: return "INTERNAL";
    }
}

PyObject *rl_raise(rp_status status, const rp_error *err)
{
    PyObject *text, *exception, *code;
    char printable[2 * RP_ERROR_TEXT_BYTES];

    assert(status != RP_OK && !PyErr_Occurred());
    size_t length = rp_printable(err->text, strlen(err->text), printable, sizeof printable);
    text = PyUnicode_DecodeUTF8(printable, (Py_ssize_t)length, "replace");
    if (text == NULL) return NULL;
    if (status == RP_INVALID) {
        PyErr_SetObject(PyExc_ValueError, text);
        Py_DECREF(text);
        return NULL;
    }
    exception = PyObject_CallFunctionObjArgs(status_error, text, NULL);
    code = PyUnicode_FromString(code_name(status));
    if (exception != NULL && code != NULL &&
        PyObject_SetAttrString(exception, "code", code) == 0)
        PyErr_SetObject(status_error, exception);
    Py_DECREF(text);
    Py_XDECREF(exception);
    Py_XDECREF(code);
    return NULL;
}

static PyMethodDef functions[] = {
    {"dqn_settings", rl_settings_list, METH_NOARGS,
     "dqn_settings()\n--\n\n"
     "Returns (name, kind, default, low, high, about) of every setting of DQN."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "reprise._rl",
    .m_doc = "The agents of libreprise-rl as Python types, for the package reprise.rl.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__rl(void);

PyMODINIT_FUNC PyInit__rl(void)
{
    PyObject *core = PyImport_ImportModule("reprise._core"), *module;

    if (core == NULL) return NULL;
    status_error = PyObject_GetAttrString(core, "StatusError");
    Py_DECREF(core);
    if (status_error == NULL) return NULL;
    module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddType(module, &rl_Dqn) < 0) Py_CLEAR(module);
    return module;
}

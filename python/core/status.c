/* SPDX-License-Identifier: Apache-2.0 */
/* Converts statuses to exceptions. The classes are made here; in Python they are in
 * reprise.errors. */
#include "core.h"
#include "module.h"

PyObject *core_ReverbError, *core_DeadlineExceededError, *core_StatusError, *core_NotFoundError;

/* The name of a status in gRPC. */
static const char *code_name(rp_status status)
{
    switch (status) {
    case RP_OK: return "OK";
    case RP_CANCELLED: return "CANCELLED";
    case RP_INVALID: return "INVALID_ARGUMENT";
    case RP_DEADLINE: return "DEADLINE_EXCEEDED";
    case RP_NOT_FOUND: return "NOT_FOUND";
    case RP_EXISTS: return "ALREADY_EXISTS";
    case RP_DENIED: return "PERMISSION_DENIED";
    case RP_NO_RESOURCE: return "RESOURCE_EXHAUSTED";
    case RP_PRECONDITION: return "FAILED_PRECONDITION";
    case RP_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case RP_INTERNAL: return "INTERNAL";
    case RP_UNAVAILABLE: return "UNAVAILABLE";
    case RP_CORRUPT: return "DATA_LOSS";
    case RP_UNAUTHENTICATED: return "UNAUTHENTICATED";
    }
    return "UNKNOWN";
}

static PyObject *class_of(rp_status status)
{
    if (status == RP_INVALID) return PyExc_ValueError;
    if (status == RP_NOT_FOUND) return core_NotFoundError;
    return status == RP_DEADLINE ? core_DeadlineExceededError : core_StatusError;
}

PyObject *core_text(const char *text)
{
    char printable[2 * RP_ERROR_TEXT_BYTES];
    size_t length = rp_printable(text, strlen(text), printable, sizeof printable);

    return PyUnicode_DecodeUTF8(printable, (Py_ssize_t)length, NULL);
}

PyObject *core_reason(const char *text)
{
    PyObject *plain = core_text(text), *module = NULL, *more = NULL;

    if (plain == NULL) return NULL;
    module = PyImport_ImportModule("reprise.local_servers");
    if (module != NULL) more = PyObject_CallMethod(module, "explain", "O", plain);
    Py_XDECREF(module);
    if (more == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); /* the interpreter is ending */
        return plain;
    }
    Py_DECREF(plain);
    return more; /* NULL: Ctrl-C */
}

PyObject *core_raise(rp_status status, const rp_error *err)
{
    assert(status != RP_OK && !PyErr_Occurred());
    bool is_said = err != NULL && err->code == status && err->text[0] != '\0';
    bool is_trouble = status == RP_UNAVAILABLE || status == RP_DEADLINE ||
                      status == RP_CANCELLED || status == RP_UNAUTHENTICATED;
    const char *plain = is_said ? err->text : code_name(status);
    PyObject *text = is_trouble ? core_reason(plain) : core_text(plain);
    if (text == NULL) return NULL;
    PyObject *class = class_of(status);
    PyObject *exception = PyObject_CallFunctionObjArgs(class, text, NULL);
    Py_DECREF(text);
    if (exception == NULL) return NULL;
    if (class == core_StatusError) {
        PyObject *code = PyUnicode_FromString(code_name(status));
        int set = code == NULL ? -1 : PyObject_SetAttrString(exception, "code", code);
        Py_XDECREF(code);
        if (set < 0) goto out;
    }
    PyErr_SetObject(class, exception);
out:
    Py_DECREF(exception);
    return NULL;
}

/* Makes an exception class with the class attribute `code`. */
static PyObject *new_class(const char *name, const char *doc, PyObject *bases, const char *code)
{
    PyObject *class = PyErr_NewExceptionWithDoc(name, doc, bases, NULL);
    PyObject *text = class == NULL ? NULL : PyUnicode_FromString(code);
    if (text == NULL || PyObject_SetAttrString(class, "code", text) < 0) Py_CLEAR(class);
    Py_XDECREF(text);
    return class;
}

int core_init_status(PyObject *module)
{
    core_ReverbError = new_class("reprise.errors.ReverbError",
                                 "Base of the errors that Reverb has a class for.\n\n"
                                 "`code` is the name of the status, in gRPC's words.",
                                 NULL, "UNKNOWN");
    if (core_ReverbError == NULL) return -1;
    core_DeadlineExceededError =
        new_class("reprise.errors.DeadlineExceededError", "The timeout has passed.",
                  core_ReverbError, "DEADLINE_EXCEEDED");
    if (core_DeadlineExceededError == NULL) return -1;
    /* Not a ReverbError, since Reverb raises a plain RuntimeError in these cases. */
    core_StatusError = new_class("reprise.errors.StatusError",
                                 "A call failed; `code` says how (\"NOT_FOUND\", ...).",
                                 PyExc_RuntimeError, "UNKNOWN");
    if (core_StatusError == NULL) return -1;
    if (core_add(module, "ReverbError", core_ReverbError) < 0) return -1;
    if (core_add(module, "DeadlineExceededError", core_DeadlineExceededError) < 0) return -1;
    /* Reverb raises a RuntimeError if a sample finds no table, and a ValueError if an insert
     * does. */
    PyObject *bases = PyTuple_Pack(2, core_StatusError, PyExc_ValueError);
    if (bases == NULL) return -1;
    core_NotFoundError = new_class("reprise.errors.NotFoundError",
                                   "There is no such table, or no such file.\n\n"
                                   "For a table, the text lists those that exist.",
                                   bases, "NOT_FOUND");
    Py_DECREF(bases);
    if (core_NotFoundError == NULL) return -1;
    if (core_add(module, "StatusError", core_StatusError) < 0) return -1;
    return core_add(module, "NotFoundError", core_NotFoundError);
}

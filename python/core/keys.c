/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and priorities of items; see keys.h.
 *
 * Reading a number may run Python code, which may change the list or dict that has the number.
 * So lists are copied first, and a dict that has changed meanwhile is refused. */
#include "keys.h"

#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>
#endif

static int raise_key(PyObject *obj)
{
    PyErr_Format(PyExc_TypeError, "a key is an integer of 64 bits without a sign, got %R", obj);
    return -1;
}

int core_priority_from(PyObject *obj, double *priority)
{
    *priority = PyFloat_AsDouble(obj);
    if (*priority != -1.0 || !PyErr_Occurred()) return 0;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "a priority is a number, got %R", obj);
    return -1;
}

/* Reads an int of CPython before 3.12, in a quarter of the time of PyLong_AsUnsignedLongLong().
 * Returns false, with `*key` as it was, if the object is no such int or is out of range. */
static bool quick_key_from(PyObject *obj, uint64_t *key)
{
#if PY_VERSION_HEX < 0x030C0000 && PYLONG_BITS_IN_DIGIT == 30
    const digit *digits;
    uint64_t value = 0;

    if (!PyLong_CheckExact(obj) || Py_SIZE(obj) < 0 || Py_SIZE(obj) > 3) return false;
    digits = ((PyLongObject *)obj)->ob_digit;
    if (Py_SIZE(obj) == 3 && digits[2] >= 16) return false; /* 2^64 or more */
    for (Py_ssize_t i = 0; i < Py_SIZE(obj); i++) value |= (uint64_t)digits[i] << (30 * i);
    *key = value;
    return true;
#else
    (void)obj;
    (void)key;
    return false;
#endif
}

/* Reads a key, an unsigned 64-bit number, from an int or an object with __index__. A bool is
 * refused. */
static int key_from(PyObject *obj, uint64_t *key)
{
    PyObject *index;
    unsigned long long value;

    if (quick_key_from(obj, key)) return 0;
    index = PyBool_Check(obj) ? NULL : PyNumber_Index(obj);
    if (!index) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        return raise_key(obj);
    }
    value = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        PyErr_Clear();
        return raise_key(obj);
    }
    *key = value;
    return 0;
}

/* Converts `obj` to a C contiguous array of doubles, or of 64-bit integers, which are signed if
 * those of `obj` are: keys_of_array() checks the sign. */
static PyArrayObject *array_of(PyObject *obj, bool integers, const char *what)
{
    PyArrayObject *any = (PyArrayObject *)PyArray_FROM_O(obj), *array;
    int type = NPY_DOUBLE;

    if (!any) return NULL;
    if (integers ? !PyArray_ISINTEGER(any) && PyArray_SIZE(any) > 0
                 : !PyArray_ISNUMBER(any) || PyArray_ISCOMPLEX(any)) {
        PyErr_Format(PyExc_TypeError, "%s must be %s, got an array of %R", what,
                     integers ? "integers" : "numbers", PyArray_DESCR(any));
        Py_DECREF(any);
        return NULL;
    }
    if (integers) type = PyArray_ISSIGNED(any) ? NPY_INT64 : NPY_UINT64;
    array = (PyArrayObject *)PyArray_FROM_OTF((PyObject *)any, type,
                                              NPY_ARRAY_IN_ARRAY | NPY_ARRAY_FORCECAST);
    Py_DECREF(any);
    return array;
}

/* Reads the keys in an array that array_of() made. */
static int keys_of_array(PyArrayObject *array, uint64_t *keys)
{
    const int64_t *values = PyArray_DATA(array);
    size_t count = (size_t)PyArray_SIZE(array);

    assert(PyArray_ITEMSIZE(array) == sizeof *keys);
    memcpy(keys, values, count * sizeof *keys);
    for (size_t i = 0; PyArray_ISSIGNED(array) && i < count; i++) {
        if (values[i] >= 0) continue;
        PyErr_Format(PyExc_TypeError, "a key is an integer of 64 bits without a sign, got %lld",
                     (long long)values[i]);
        return -1;
    }
    return 0;
}

int core_keys_from(PyObject *obj, const char *what, uint64_t **out, size_t *count)
{
    bool plain = PyList_Check(obj) || PyTuple_Check(obj);
    PyObject *all; /* a copy: reading a key may change a list */
    Py_ssize_t n;
    uint64_t *keys;
    int failed = 0;

    *out = NULL;
    *count = 0;
    if (obj == Py_None) return 0;
    all = plain ? PySequence_Tuple(obj) : (PyObject *)array_of(obj, true, what);
    if (!all) return -1;
    n = plain ? PyTuple_GET_SIZE(all) : PyArray_SIZE((PyArrayObject *)all);
    keys = PyMem_RawMalloc(((size_t)n + 1) * sizeof *keys);
    if (!keys) {
        PyErr_NoMemory();
        failed = -1;
    } else if (plain) {
        for (Py_ssize_t i = 0; !failed && i < n; i++)
            failed = key_from(PyTuple_GET_ITEM(all, i), &keys[i]);
    } else {
        failed = keys_of_array((PyArrayObject *)all, keys);
    }
    Py_DECREF(all);
    if (failed) {
        PyMem_RawFree(keys);
        return -1;
    }
    *out = keys;
    *count = (size_t)n;
    return 0;
}

/* Reads a dict from key to priority into `updates`, which has room for `room` of them: the size
 * of the dict before it is read. */
static int updates_from_dict(PyObject *dict, rp_update *updates, Py_ssize_t room)
{
    PyObject *key, *priority;
    Py_ssize_t at = 0, i = 0;

    while (PyDict_Next(dict, &at, &key, &priority)) {
        int bad;
        if (i == room) break;
        assert(i < room);
        Py_INCREF(key);
        Py_INCREF(priority);
        bad = key_from(key, &updates[i].key) != 0 ||
              core_priority_from(priority, &updates[i].priority) != 0;
        Py_DECREF(key);
        Py_DECREF(priority);
        if (bad) return -1;
        i++;
    }
    if (i == room && PyDict_Size(dict) == room) return 0;
    PyErr_SetString(PyExc_RuntimeError, "updates changed meanwhile");
    return -1;
}

/* Reads priorities: one for each of `count` keys, or one for all of them. */
static int priorities_from(PyObject *obj, rp_update *updates, size_t count)
{
    PyArrayObject *array = array_of(obj, false, "priorities");
    const double *values;
    bool one;

    if (!array) return -1;
    one = PyArray_NDIM(array) == 0;
    if (!one && (size_t)PyArray_SIZE(array) != count) {
        PyErr_Format(PyExc_ValueError, "%zu key%s but %zd priorit%s", count,
                     count == 1 ? "" : "s", PyArray_SIZE(array),
                     PyArray_SIZE(array) == 1 ? "y" : "ies");
        Py_DECREF(array);
        return -1;
    }
    values = PyArray_DATA(array);
    for (size_t i = 0; i < count; i++) updates[i].priority = one ? values[0] : values[i];
    Py_DECREF(array);
    return 0;
}

int core_updates_from(PyObject *keys, PyObject *priorities, rp_update **out, size_t *count)
{
    bool is_dict = PyDict_Check(keys);
    uint64_t *list = NULL;
    rp_update *updates;
    size_t n = 0;
    int failed;

    *out = NULL;
    *count = 0;
    if (keys == Py_None) return 0;
    if (is_dict)
        n = (size_t)PyDict_Size(keys);
    else if (core_keys_from(keys, "keys", &list, &n) != 0)
        return -1;
    updates = PyMem_RawMalloc((n + 1) * sizeof *updates);
    if (!updates) {
        PyMem_RawFree(list);
        PyErr_NoMemory();
        return -1;
    }
    if (is_dict) {
        failed = updates_from_dict(keys, updates, (Py_ssize_t)n);
    } else {
        for (size_t i = 0; i < n; i++) updates[i].key = list[i];
        failed = priorities_from(priorities, updates, n);
    }
    PyMem_RawFree(list);
    if (failed) {
        PyMem_RawFree(updates);
        return -1;
    }
    *out = updates;
    *count = n;
    return 0;
}

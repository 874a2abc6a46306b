/* SPDX-License-Identifier: Apache-2.0 */
/* Converts arrays to tensors, and tensors to arrays. */
#include "core.h"

/* The dtypes of ml_dtypes, by name, and the NumPy types that replace them if it is not
 * installed. */
static const struct {
    rp_dtype dtype;
    const char *name;
    int raw; /* the NumPy type of the same size */
} extra_dtypes[] = {
    {RP_BFLOAT16, "bfloat16", NPY_UINT16},
    {RP_FLOAT8_E5M2, "float8_e5m2", NPY_UINT8},
    {RP_FLOAT8_E4M3FN, "float8_e4m3fn", NPY_UINT8},
    {RP_INT4, "int4", NPY_INT8},
    {RP_UINT4, "uint4", NPY_UINT8},
};

/* TensorFlow's quantized dtypes: in NumPy, structures with one field of that name. */
static const struct {
    rp_dtype dtype;
    const char *name;
    int raw;
} quantized_dtypes[] = {
    {RP_QINT8, "qint8", NPY_INT8},    {RP_QUINT8, "quint8", NPY_UINT8},
    {RP_QINT16, "qint16", NPY_INT16}, {RP_QUINT16, "quint16", NPY_UINT16},
    {RP_QINT32, "qint32", NPY_INT32},
};

enum {
    EXTRA_COUNT = sizeof(extra_dtypes) / sizeof(extra_dtypes[0]),
    MAX_DIGITS = 80, /* of an integer in an error */
    QUANTIZED_COUNT = sizeof(quantized_dtypes) / sizeof(quantized_dtypes[0]),
};

/* True if the field `name` of a structure is a number of type `raw`, in native byte order. */
static bool has_raw_field(PyArray_Descr *descr, PyObject *name, int raw)
{
    PyObject *fields = PyObject_GetAttrString((PyObject *)descr, "fields");
    PyObject *field = fields == NULL ? NULL : PyObject_GetItem(fields, name);
    bool is = false;
    if (field != NULL && PyTuple_Check(field) && PyTuple_GET_SIZE(field) >= 2 &&
        PyArray_DescrCheck(PyTuple_GET_ITEM(field, 0))) {
        const PyArray_Descr *its = (PyArray_Descr *)PyTuple_GET_ITEM(field, 0);
        is = its->type_num == raw && PyArray_ISNBO(its->byteorder);
    }
    Py_XDECREF(fields);
    Py_XDECREF(field);
    return is;
}

static bool has_size_of(PyArray_Descr *descr, rp_dtype dtype)
{
    return (size_t)PyDataType_ELSIZE(descr) == rp_dtype_size(dtype);
}

static rp_dtype quantized_from(PyArray_Descr *descr)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)descr, "names");
    rp_dtype found = RP_INVALID_DTYPE;
    if (names != NULL && PyTuple_Check(names) && PyTuple_GET_SIZE(names) == 1) {
        PyObject *name = PyTuple_GET_ITEM(names, 0);
        for (int i = 0; i < QUANTIZED_COUNT; i++)
            if (PyUnicode_CompareWithASCIIString(name, quantized_dtypes[i].name) == 0 &&
                has_size_of(descr, quantized_dtypes[i].dtype) &&
                has_raw_field(descr, name, quantized_dtypes[i].raw))
                found = quantized_dtypes[i].dtype;
    }
    Py_XDECREF(names);
    PyErr_Clear();
    return found;
}

/* The rp_dtype of a dtype that was registered with NumPy, by the name of its scalar type. */
static rp_dtype registered_from(PyArray_Descr *descr)
{
    const char *name = strrchr(descr->typeobj->tp_name, '.');
    name = name == NULL ? descr->typeobj->tp_name : name + 1;
    for (int i = 0; i < EXTRA_COUNT; i++)
        if (strcmp(name, extra_dtypes[i].name) == 0 &&
            has_size_of(descr, extra_dtypes[i].dtype))
            return extra_dtypes[i].dtype;
    return RP_INVALID_DTYPE;
}

rp_dtype core_dtype_from(PyArray_Descr *descr)
{
    switch (descr->type_num) {
    case NPY_FLOAT: return RP_FLOAT32;
    case NPY_DOUBLE: return RP_FLOAT64;
    case NPY_UINT8: return RP_UINT8;
    case NPY_INT32: return RP_INT32;
    case NPY_INT64: return RP_INT64;
    case NPY_BOOL: return RP_BOOL;
    case NPY_INT8: return RP_INT8;
    case NPY_INT16: return RP_INT16;
    case NPY_UINT16: return RP_UINT16;
    case NPY_UINT32: return RP_UINT32;
    case NPY_UINT64: return RP_UINT64;
    case NPY_HALF: return RP_FLOAT16;
    case NPY_CFLOAT: return RP_COMPLEX64;
    case NPY_CDOUBLE: return RP_COMPLEX128;
    /* NPY_INT64 above is either long or long long. If it is long, this is long long. */
    case NPY_LONGLONG: return sizeof(npy_longlong) == 8 ? RP_INT64 : RP_INVALID_DTYPE;
    case NPY_ULONGLONG: return sizeof(npy_ulonglong) == 8 ? RP_UINT64 : RP_INVALID_DTYPE;
    case NPY_STRING:
    case NPY_UNICODE:
    case NPY_OBJECT: return RP_STRING;
    case NPY_VOID: return quantized_from(descr);
    case 2056: return RP_STRING; /* NumPy 2's StringDType */
    default: break;
    }
    return descr->type_num >= NPY_USERDEF ? registered_from(descr) : RP_INVALID_DTYPE;
}

/* Returns a dtype of ml_dtypes, or the NumPy type `raw` if ml_dtypes is not installed. Tries to
 * import it once. */
static PyArray_Descr *extra_descr(const char *name, int raw)
{
    static bool is_missing;
    PyObject *module = is_missing ? NULL : PyImport_ImportModule("ml_dtypes");
    PyObject *scalar = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    PyArray_Descr *descr = NULL;
    if (scalar != NULL && PyArray_DescrConverter(scalar, &descr) != NPY_SUCCEED) descr = NULL;
    Py_XDECREF(scalar);
    Py_XDECREF(module);
    if (descr != NULL) return descr;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL; /* Ctrl-C */
    if (module == NULL) is_missing = true;
    PyErr_Clear();
    return PyArray_DescrFromType(raw);
}

static PyArray_Descr *quantized_descr(const char *name, int raw)
{
    PyArray_Descr *descr = NULL;
    PyObject *fields = Py_BuildValue("[(sN)]", name, PyArray_DescrFromType(raw));
    if (fields == NULL) return NULL;
    if (PyArray_DescrConverter(fields, &descr) != NPY_SUCCEED) descr = NULL;
    Py_DECREF(fields);
    return descr;
}

static int numpy_type(rp_dtype dtype)
{
    switch (dtype) {
    case RP_FLOAT32: return NPY_FLOAT;
    case RP_FLOAT64: return NPY_DOUBLE;
    case RP_INT32: return NPY_INT32;
    case RP_UINT8: return NPY_UINT8;
    case RP_INT16: return NPY_INT16;
    case RP_INT8: return NPY_INT8;
    case RP_STRING: return NPY_OBJECT;
    case RP_COMPLEX64: return NPY_CFLOAT;
    case RP_INT64: return NPY_INT64;
    case RP_BOOL: return NPY_BOOL;
    case RP_UINT16: return NPY_UINT16;
    case RP_COMPLEX128: return NPY_CDOUBLE;
    case RP_FLOAT16: return NPY_HALF;
    case RP_UINT32: return NPY_UINT32;
    case RP_UINT64: return NPY_UINT64;
    default: return -1;
    }
}

PyArray_Descr *core_descr(rp_dtype dtype)
{
    int type = numpy_type(dtype);
    if (type >= 0) return PyArray_DescrFromType(type);
    for (int i = 0; i < EXTRA_COUNT; i++)
        if (extra_dtypes[i].dtype == dtype)
            return extra_descr(extra_dtypes[i].name, extra_dtypes[i].raw);
    for (int i = 0; i < QUANTIZED_COUNT; i++)
        if (quantized_dtypes[i].dtype == dtype)
            return quantized_descr(quantized_dtypes[i].name, quantized_dtypes[i].raw);
    PyErr_Format(PyExc_ValueError, "type code %d is none of the dtypes of reprise", (int)dtype);
    return NULL;
}

/* Sets the exception, with the path of the leaf: "leaf 'a/b': ...". */
static int refuse(PyObject *class, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (text == NULL) return -1;
    if (path != NULL && *path != 0)
        PyErr_Format(class, "leaf '%s': %U", path, text);
    else
        PyErr_SetObject(class, text);
    Py_DECREF(text);
    return -1;
}

/* Returns true if an int fits into neither int64 nor uint64. */
static bool is_too_large(PyObject *number)
{
    int overflow = 0;

    (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow <= 0) return overflow < 0;
    (void)PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) return false;
    PyErr_Clear();
    return true;
}

/* Points `*string` at the bytes of a str or bytes object. Borrows them. */
static int string_of(PyObject *obj, const char *path, rp_string *string)
{
    Py_ssize_t size = 0;
    if (PyUnicode_Check(obj)) {
        string->data = PyUnicode_AsUTF8AndSize(obj, &size);
        if (string->data == NULL) return -1;
    } else if (PyBytes_Check(obj)) {
        string->data = PyBytes_AS_STRING(obj);
        size = PyBytes_GET_SIZE(obj);
    } else if (PyLong_Check(obj) && is_too_large(obj)) {
        PyObject *text = PyObject_Str(obj); /* ValueError if it has thousands of digits */
        bool is_short = text != NULL && PyUnicode_GET_LENGTH(text) <= MAX_DIGITS;

        PyErr_Clear();
        refuse(PyExc_TypeError, path, "an integer must fit into int64 or uint64%s%V",
               is_short ? ", got " : "", is_short ? text : NULL, "");
        Py_XDECREF(text);
        return -1;
    } else {
        return refuse(PyExc_TypeError, path,
                      "an array of objects must hold str or bytes, got %s",
                      Py_TYPE(obj)->tp_name);
    }
    string->size = (size_t)size;
    return 0;
}

/* Views the elements of a C contiguous object array as strings. `*keep` is a tuple: a bytes
 * object with the rp_strings, and the objects into which they point, since the array itself may
 * change meanwhile. */
static int strings_of(PyArrayObject *array, const char *path, const void **data,
                      PyObject **keep)
{
    static_assert(offsetof(PyBytesObject, ob_sval) % sizeof(void *) == 0, "room for pointers");
    assert(PyArray_TYPE(array) == NPY_OBJECT && PyArray_ISCARRAY_RO(array));
    npy_intp count = PyArray_SIZE(array);
    PyObject **objects = PyArray_DATA(array);
    PyObject *kept = PyTuple_New(count + 1);
    PyObject *room = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(rp_string));
    if (kept == NULL || room == NULL) {
        Py_XDECREF(kept);
        Py_XDECREF(room);
        return -1;
    }
    rp_string *strings = (rp_string *)(void *)PyBytes_AS_STRING(room);
    PyTuple_SET_ITEM(kept, 0, room);
    for (npy_intp i = 0; i < count; i++) {
        PyObject *obj = objects[i] == NULL ? Py_None : objects[i];
        Py_INCREF(obj);
        PyTuple_SET_ITEM(kept, i + 1, obj);
        if (string_of(obj, path, &strings[i]) < 0) {
            Py_DECREF(kept);
            return -1;
        }
    }
    *data = strings;
    *keep = kept;
    return 0;
}

/* Converts an array of another string dtype to an object array of str or bytes. */
static PyArrayObject *as_objects(PyArrayObject *array)
{
    PyArray_Descr *descr = PyArray_DescrFromType(NPY_OBJECT);
    return (PyArrayObject *)PyArray_FromArray(array, descr,
                                              NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
}

/* numpy.asarray(obj), with a fast path for scalars of Python. */
static PyArrayObject *as_array(PyObject *obj)
{
    if (PyArray_Check(obj)) {
        Py_INCREF(obj);
        return (PyArrayObject *)obj;
    }
    PyArrayObject *array = NULL;
    if (PyFloat_CheckExact(obj)) {
        array = (PyArrayObject *)PyArray_SimpleNew(0, NULL, NPY_DOUBLE);
        if (array != NULL) *(double *)PyArray_DATA(array) = PyFloat_AS_DOUBLE(obj);
        return array;
    }
    if (PyLong_CheckExact(obj)) {
        int overflow = 0;
        long long value = PyLong_AsLongLongAndOverflow(obj, &overflow);
        if (overflow == 0) {
            array = (PyArrayObject *)PyArray_SimpleNew(0, NULL, NPY_INT64);
            if (array != NULL) *(npy_int64 *)PyArray_DATA(array) = value;
            return array;
        }
    }
    if (PyBool_Check(obj)) {
        array = (PyArrayObject *)PyArray_SimpleNew(0, NULL, NPY_BOOL);
        if (array != NULL) *(npy_bool *)PyArray_DATA(array) = obj == Py_True;
        return array;
    }
    return (PyArrayObject *)PyArray_FROM_O(obj);
}

static int shape_of(PyArrayObject *array, const char *path, rp_shape *shape)
{
    int rank = PyArray_NDIM(array);
    if (rank > RP_MAX_RANK)
        return refuse(PyExc_ValueError, path, "an array has at most %d dimensions here, got %d",
                      RP_MAX_RANK, rank);
    shape->rank = rank;
    for (int i = 0; i < rank; i++) shape->dims[i] = PyArray_DIM(array, i);
    return 0;
}

int core_tensor_from(PyObject *obj, const char *path, rp_tensor *tensor, PyObject **keep)
{
    PyArrayObject *array = as_array(obj);
    if (array == NULL) return -1;
    tensor->dtype = core_dtype_from(PyArray_DESCR(array));
    if (tensor->dtype == RP_INVALID_DTYPE) {
        refuse(PyExc_TypeError, path, "an array of dtype %R has no place here",
               (PyObject *)PyArray_DESCR(array));
        goto fail;
    }
    if (shape_of(array, path, &tensor->shape) < 0) goto fail;
    bool objects = PyArray_TYPE(array) == NPY_OBJECT;
    if (!PyArray_ISCARRAY_RO(array) || (tensor->dtype == RP_STRING && !objects)) {
        PyArrayObject *plain =
            tensor->dtype == RP_STRING && !objects
                ? as_objects(array)
                : (PyArrayObject *)PyArray_FROM_OF((PyObject *)array,
                                                   NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED);
        if (plain == NULL) goto fail;
        Py_DECREF(array);
        array = plain;
    }
    if (tensor->dtype == RP_STRING) {
        if (strings_of(array, path, &tensor->data, keep) < 0) goto fail;
        Py_DECREF(array);
        return 0;
    }
    assert(PyArray_ISCARRAY_RO(array));
    tensor->data = PyArray_DATA(array);
    *keep = (PyObject *)array;
    return 0;
fail:
    Py_DECREF(array);
    return -1;
}

PyObject *core_shape_tuple(const rp_shape *shape, Py_ssize_t rows)
{
    int first = rows >= 0 ? 1 : 0;
    if (shape->rank < 0) Py_RETURN_NONE;
    assert(shape->rank <= RP_MAX_RANK);
    PyObject *tuple = PyTuple_New(shape->rank + first);
    for (int i = 0; tuple != NULL && i < shape->rank + first; i++) {
        int64_t size = i < first ? rows : shape->dims[i - first];
        PyObject *dim = size < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(size);
        if (dim == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, dim);
    }
    return tuple;
}

PyObject *core_array_new(rp_dtype dtype, const rp_shape *shape)
{
    npy_intp dims[RP_MAX_RANK];
    assert(shape->rank >= 0 && shape->rank <= RP_MAX_RANK);
    for (int i = 0; i < shape->rank; i++) dims[i] = (npy_intp)shape->dims[i];
    int type = numpy_type(dtype);
    if (type >= 0) return PyArray_SimpleNew(shape->rank, dims, type);
    PyArray_Descr *descr = core_descr(dtype);
    if (descr == NULL) return NULL;
    return PyArray_NewFromDescr(&PyArray_Type, descr, shape->rank, dims, NULL, NULL, 0, NULL);
}

int core_fill_strings(PyObject *array, const rp_string *strings, size_t count)
{
    PyObject **objects = PyArray_DATA((PyArrayObject *)array);
    assert(PyArray_TYPE((PyArrayObject *)array) == NPY_OBJECT);
    assert((size_t)PyArray_SIZE((PyArrayObject *)array) == count);
    for (size_t i = 0; i < count; i++) {
        PyObject *bytes =
            PyBytes_FromStringAndSize(strings[i].data, (Py_ssize_t)strings[i].size);
        if (bytes == NULL) return -1;
        PyObject *old = objects[i];
        objects[i] = bytes;
        Py_XDECREF(old);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module reprise._core: the C API as Python types, one file a type.
 *
 *   module.c              what is in the module
 *   status.c              statuses as exceptions
 *   tensor.c              arrays as tensors, and back
 *   nest.c, structure.c   nested structures: flattened, compared, packed
 *   signature.c           nests of specs as signatures, and back
 *   wait.c                calls that wait: without the GIL, and Ctrl-C ends them
 *   store.c, server.c     a store and its tables, and a server of it, in this process
 *   durable.c             a store's data directory
 *   client.c              a client: of servers, or of a store in this process
 *   trajectory_writer.c, trajectory_history.c, trajectory_items.c, column.c
 *   structured_writer.c, step_writer.c
 *   sampler.c             samples and batches
 *   replay_buffer.c       the single-process buffer
 *
 * Every function here is called with the GIL held. Those that return PyObject * return a new
 * reference or NULL with an exception set; those that return int return 0, or -1 with one. */
#ifndef REPRISE_PYTHON_CORE_H
#define REPRISE_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL reprise_array_api
#ifndef CORE_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <reprise/reprise.h>

/* Of NumPy 2, where the extension was built with the headers of NumPy 1. */
#if NPY_ABI_VERSION < 0x02000000
#define PyDataType_ELSIZE(descr) ((npy_intp)(descr)->elsize)
#define PyDataType_FLAGS(descr) ((npy_uint64)(unsigned char)(descr)->flags)
#endif

/* Of CPython 3.10, for 3.9. */
#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *obj)
{
    Py_INCREF(obj);
    return obj;
}
static inline PyObject *Py_XNewRef(PyObject *obj)
{
    Py_XINCREF(obj);
    return obj;
}
#endif

/* Status.c.
 *
 *   RP_INVALID    ValueError
 *   RP_DEADLINE   DeadlineExceededError, a ReverbError
 *   all others    StatusError, a RuntimeError, whose `code` is the name of
 *                 the status in gRPC's words ("NOT_FOUND") */

extern PyObject *core_ReverbError, *core_DeadlineExceededError, *core_StatusError;

/* A sentence, which may have words of a server in it, as a str that is safe to show. */
PyObject *core_text(const char *text);

/* Sets the exception for a status that is not RP_OK; always returns NULL. */
PyObject *core_raise(rp_status status, const rp_error *err);

/* A call that may wait. Runs without the GIL; may be called again after RP_DEADLINE. */
typedef rp_status (*core_call)(void *arg, rp_wait wait, rp_error *err);

/* Makes the call until it ends with something other than RP_DEADLINE, `timeout_ms` have passed
 * (negative: never), or a signal handler raises (Ctrl-C). Returns 0 with `*status` set, or -1
 * with the handler's exception. The first try is made without waiting and with the GIL held if
 * `quick`, for calls that mostly find what they want. */
int core_wait(core_call call, void *arg, int64_t timeout_ms, bool quick, rp_status *status,
              rp_error *err);

/* A timeout as Python gives it, an int or a float: seconds, or milliseconds. None, and whatever
 * is negative, is never (-1). Fractions of a millisecond are rounded up. */
int core_timeout_s(PyObject *obj, int64_t *timeout_ms);
int core_timeout_ms(PyObject *obj, int64_t *timeout_ms);

/* Views `obj` (an array, or whatever numpy.asarray takes) as a tensor. `*keep` is a new
 * reference to what owns the memory: hold it as long as the tensor is used. Arrays that are C
 * contiguous, aligned and in native byte order are not copied. str, bytes and object arrays of
 * them become
 * RP_STRING. TypeError or ValueError says which dtype or rank has no place here; `path` (may be
 * NULL) names the leaf. */
int core_tensor_from(PyObject *obj, const char *path, rp_tensor *tensor, PyObject **keep);

/* The dtype of ours for a NumPy dtype, RP_INVALID_DTYPE if there is none; and back: a new
 * reference. bfloat16 and float8 are those of ml_dtypes, if that is installed, else raw bytes.
 */
rp_dtype core_dtype_from(PyArray_Descr *descr);
PyArray_Descr *core_descr(rp_dtype dtype);

/* A shape as a tuple, None where a dimension may have any size; None if its rank is not known
 * either. Before them the number of rows, unless that is -1. */
PyObject *core_shape_tuple(const rp_shape *shape, Py_ssize_t rows);

/* A new array without contents, C contiguous; of RP_STRING an object array to be filled with
 * core_fill_strings(). */
PyObject *core_array_new(rp_dtype dtype, const rp_shape *shape);
/* Puts strings, as bytes objects, into an object array. */
int core_fill_strings(PyObject *array, const rp_string *strings, size_t count);

/* Nest.c.
 *
 * Nests by dm-tree's rules: dicts (any mapping) are flattened by sorted key, lists, tuples and
 * named tuples in order; everything else, None included, is a leaf. attrs classes are not
 * looked into. At most RP_MAX_NEST_DEPTH levels, else ValueError. */

/* The leaves of a nest, in order, each with a reference of its own. The two functions that fill
 * it also initialise it; core_leaves_free() drops the references, and may be called after a
 * failure as well. Small ones do not allocate. */
typedef struct core_leaves {
    PyObject **items;
    Py_ssize_t count, capacity;
    PyObject *inside[32];
} core_leaves;

int core_flatten(PyObject *nest, core_leaves *leaves);
void core_leaves_free(core_leaves *leaves);

/* The shape of a nest: types, keys and the order of its leaves, without them. Immutable;
 * compares and hashes by value; picklable. In Python: reprise._core.Structure. */
typedef struct core_structure core_structure;
extern PyTypeObject core_Structure;

PyObject *core_structure_of(PyObject *nest);
/* Flattens `nest` if it has this structure (in the sense of dm-tree's assert_same_structure:
 * any two mappings of the same keys are alike, and named tuples of the same name and
 * fields): 1. 0 if it has another (no exception), -1 on failure. The fast path of every append:
 * no allocation for up to 32 leaves. */
int core_structure_flatten(PyObject *structure, PyObject *nest, core_leaves *leaves);
Py_ssize_t core_structure_leaf_count(PyObject *structure);
/* A nest of that structure with these leaves, whose references are not taken. */
PyObject *core_structure_pack(PyObject *structure, PyObject *const *leaves, Py_ssize_t count);
/* The path of a leaf as messages show it: keys and indices joined with '/'. */
PyObject *core_structure_path(PyObject *structure, Py_ssize_t leaf);

/* A signature from a nest of specs (reprise.specs.TensorSpec; the Python side has converted
 * other kinds), or NULL without an exception for None and for an empty nest: `*out`. */
int core_signature_from(PyObject *nest, rp_signature **out);
/* The nest of specs of a signature; None for NULL. */
PyObject *core_signature_to(const rp_signature *signature);

/* The types.
 *
 * Static types, registered by module.c. */

/* store.c: reprise._core.Store. */
typedef struct core_store {
    PyObject_HEAD
    rp_store *store;
} core_store;
extern PyTypeObject core_Store;

/* server.c: reprise._core.Server. */
extern PyTypeObject core_Server;

/* client.c: reprise._core.Client. Writers and samplers hold a reference to it. */
typedef struct core_client {
    PyObject_HEAD
    rp_client *client;
    PyObject *store; /* of a local one: keeps it alive; else NULL */
} core_client;
extern PyTypeObject core_Client;

/* The information of one table, as a dict; both of a store and of a client. store.c. */
PyObject *core_table_info(const rp_table_info *info);

extern PyTypeObject core_TrajectoryWriter; /* trajectory_writer.c */
extern PyTypeObject core_ColumnHistory;    /* column.c */
extern PyTypeObject core_TrajectoryColumn; /* column.c */
extern PyTypeObject core_WeakCellRef;      /* column.c */
extern PyTypeObject core_StructuredWriter; /* structured_writer.c */
extern PyTypeObject core_BatchWriter;      /* structured_writer.c */
extern PyTypeObject core_StepWriter;       /* step_writer.c */
extern PyTypeObject core_Sampler;          /* sampler.c */
extern PyTypeObject core_Batch;            /* sampler.c */
extern PyTypeObject core_ReplayBuffer;     /* replay_buffer.c */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module reprise._core: the C API as Python types, one file for each type.
 *
 *   module.c               the contents of the module
 *   status.c               statuses as exceptions
 *   tensor.c               arrays as tensors, and tensors as arrays
 *   nest.c, structure.c    nested structures: flatten, compare, pack
 *   signature.c            nests of specs as signatures, and signatures as nests
 *   wait.c                 calls that wait: without the GIL, interrupted by Ctrl-C
 *   keys.c                 keys and priorities of items
 *   store.c, server.c      a store with its tables, and a server of it, in this process
 *   extension.c            extensions of a table, with event_queue.c
 *   durable.c              the data directory of a store
 *   client.c               a client of servers, or of a store in this process
 *   left_out.c             warnings about shards that calls have left out
 *   server_call.c          requests to a server that outlive an interrupted call
 *   step_writer.c          the writer of whole steps
 *   trajectory_writer.c    the writer of trajectories, with trajectory_append.c (its steps),
 *                          trajectory_items.c, trajectory_history.c and writer_state.c
 *   column_history.c, trajectory_column.c, cell.c
 *                          the history of a trajectory writer, and references into it
 *   structured_writer.c    the writers by patterns, with patterns.c and step.c
 *   sampler.c              samples and batches, with sample_arrays.c (samples as arrays),
 *                          sample_stack.c (samples as one array for each column),
 *                          batch_arrays.c (batches as arrays), prefetch.c (batches made ahead)
 *   sample_steps.c         samples as Reverb's ReplaySample
 *   replay_buffer.c        the single-process buffer, with replay_columns.c
 *   rollouts.c             named buffers of groups of items, with rollout_results.c and
 *                          rollout_draw.c
 *   runs.c                 reports of training runs to a server
 *
 * Unless a comment says otherwise, a function is called with the GIL held. A function that
 * returns PyObject * returns a new reference, or NULL with an exception set. A function that
 * returns int returns 0, or -1 with an exception set. */
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

#include <assert.h>

#include <reprise/reprise.h>

/* Macros of NumPy 2, for builds with the headers of NumPy 1. */
#if NPY_ABI_VERSION < 0x02000000
#define PyDataType_ELSIZE(descr) ((npy_intp)(descr)->elsize)
#define PyDataType_FLAGS(descr) ((npy_uint64)(unsigned char)(descr)->flags)
#endif

/* Functions of CPython 3.10, for builds with 3.9. */
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

/* Casts a function for an entry of a PyMethodDef. C allows a cast of any function pointer to
 * void (*)(void). */
#define CORE_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* status.c: the exceptions.
 *
 *   RP_INVALID    ValueError
 *   RP_DEADLINE   DeadlineExceededError, a ReverbError
 *   RP_NOT_FOUND  NotFoundError, a StatusError and a ValueError
 *   all others    StatusError, a RuntimeError; its `code` is gRPC's name of the status, such as
 *                 "NOT_FOUND" */

extern PyObject *core_ReverbError, *core_DeadlineExceededError, *core_StatusError,
    *core_NotFoundError;

/* Converts a text to a str. Escapes unprintable bytes, because parts of the text can come from
 * a server. */
PyObject *core_text(const char *text);
/* Like core_text(), for a text that says why a call waits or fails. If the text is about a
 * server that was a child process of this process and has ended, the str also says that the
 * server has ended. */
PyObject *core_reason(const char *text);

/* Sets the exception for a status other than RP_OK. Always returns NULL. */
PyObject *core_raise(rp_status status, const rp_error *err);

/* A function that makes a call of the C library, which can block. Runs without the GIL. If it
 * returns RP_DEADLINE, core_wait() is allowed to call it again. */
typedef rp_status (*core_call)(void *arg, rp_wait wait, rp_error *err);

/* Measures how long a call waits. After 2 seconds the logger of the package reports what the
 * call waits for, and again each time that the duration has tripled. */
typedef struct core_patience {
    int64_t since_ns, warn_ns;
} core_patience;

core_patience core_patience_begin(void);
/* Like core_patience_begin(), for a wait that continues an earlier wait of `waited_ns`. For
 * example, a writer waits for signatures and then for its first item. The first warning comes
 * when both waits together have taken 2 s. If `waited_ns` is already 2 s or more, the first
 * warning comes 2 s after this function was called. */
core_patience core_patience_after(int64_t waited_ns);
/* Returns true if the next warning is due. */
bool core_patience_is_over(const core_patience *patience);
/* Logs `text` as the reason of the wait. Returns -1 if a handler of the logger raises an
 * exception. */
int core_patience_warn(core_patience *patience, const char *text);

/* Writes to `text` what a call waits for. Called with the GIL. */
typedef void (*core_explain)(void *arg, char *text, size_t size);

/* Repeats the call until one of these is true: its status is not RP_DEADLINE, `timeout_ms` have
 * passed (negative: no timeout), or a signal handler raises an exception (Ctrl-C). Returns 0
 * with `*status` set, or -1 with the handler's exception. With `quick`, the first call does not
 * wait and keeps the GIL; this is for calls that usually succeed at once. If the wait takes
 * long, its reason is logged: the text that `explain` writes, or the text of `err` if `explain`
 * is NULL. */
int core_wait(core_call call, void *arg, int64_t timeout_ms, core_explain explain, bool quick,
              rp_status *status, rp_error *err);

/* Like core_wait() without an `explain`, for a call that continues a wait which has already
 * taken `waited_ns` (core_patience_after()). */
int core_wait_after(int64_t waited_ns, core_call call, void *arg, int64_t timeout_ms,
                    bool quick, rp_status *status, rp_error *err);

/* Returns true if no server of the client will ever accept the client, for example because the
 * servers require TLS and the client does not use it. A call must then not wait for a server.
 * Returns false if `client` is NULL. */
bool core_is_refused(rp_client *client);

/* Sleeps. `ms` must be below 1,000, and the caller must have released the GIL. */
void core_sleep_ms(long ms);

/* Writes to `text` what a call of the sampler waits for, or waited for until its timeout
 * `timeout_ms`. Releases the GIL while it asks the server. If the timeout is shorter than 0.1
 * s, does not ask the server. */
void core_sampler_why(rp_sampler *sampler, int64_t timeout_ms, char *text, size_t size);
/* A core_explain whose `arg` is a struct with the pointer to the rp_sampler as its first
 * member. */
void core_explain_sampler(void *arg, char *text, size_t size);

/* Read a timeout, an int or a float, in seconds or in milliseconds. None means no timeout,
 * which is -1. A negative number of seconds is a ValueError. A negative number of milliseconds
 * means no timeout, as in Reverb. Fractions of a millisecond are rounded up. */
int core_timeout_s(PyObject *obj, int64_t *timeout_ms);
int core_timeout_ms(PyObject *obj, int64_t *timeout_ms);

/* Convert timeouts, for calls that wait several times within one timeout. core_until_ns()
 * returns the end of a wait of `timeout_ms` that begins now, or RP_FOREVER if `timeout_ms` is
 * negative. core_left_ms() returns the milliseconds until that end, rounded up: 0 if the end
 * has passed, -1 for RP_FOREVER. */
int64_t core_until_ns(int64_t timeout_ms);
int64_t core_left_ms(int64_t until_ns);

/* Views `obj`, an array or anything that numpy.asarray takes, as a tensor. `*keep` is a new
 * reference to the owner of the memory. The caller must hold it as long as the tensor is used.
 * An array that is C contiguous, aligned and in native byte order is not copied. str, bytes,
 * and object arrays of them become RP_STRING. TypeError or ValueError if a dtype or a rank is
 * not supported; `path` (or NULL) is the name of the value in the error text. */
int core_tensor_from(PyObject *obj, const char *path, rp_tensor *tensor, PyObject **keep);

/* Convert a NumPy dtype to an rp_dtype (RP_INVALID_DTYPE if there is none), and an rp_dtype to
 * a NumPy dtype, a new reference. bfloat16 and float8 are those of ml_dtypes, or raw bytes if
 * ml_dtypes is not installed. */
rp_dtype core_dtype_from(PyArray_Descr *descr);
PyArray_Descr *core_descr(rp_dtype dtype);

/* Converts a shape to a tuple: first `rows`, unless it is -1, then the dimensions. A dimension
 * of any size becomes None. A shape of any rank becomes None instead of a tuple. */
PyObject *core_shape_tuple(const rp_shape *shape, Py_ssize_t rows);

/* Makes a C contiguous array, not initialised. For RP_STRING it is an object array, which
 * core_fill_strings() fills. */
PyObject *core_array_new(rp_dtype dtype, const rp_shape *shape);
/* Puts strings, as bytes objects, into an object array. */
int core_fill_strings(PyObject *array, const rp_string *strings, size_t count);

/* nest.c: nests (nested lists, tuples and mappings), by the rules of dm-tree.
 *
 * Mappings are flattened in the order of their sorted keys; lists, tuples and named tuples in
 * their own order. Any other object is a leaf, such as None or an object of an attrs class.
 * ValueError for more than RP_MAX_NEST_DEPTH levels. */

/* The leaves of a nest in order, with a reference to each. core_flatten() and
 * core_structure_flatten() initialise it. core_leaves_free() drops the references; calling it
 * after a failure is allowed. Up to 32 leaves need no allocation. */
typedef struct core_leaves {
    PyObject **items;
    Py_ssize_t count, capacity;
    PyObject *inside[32];
} core_leaves;

int core_flatten(PyObject *nest, core_leaves *leaves);
void core_leaves_free(core_leaves *leaves);

/* The structure of a nest: types, keys and order, without the leaves. Immutable, compared and
 * hashed by value, picklable. In Python: reprise._core.Structure. */
typedef struct core_structure core_structure;
extern PyTypeObject core_Structure;

PyObject *core_structure_of(PyObject *nest);
/* Flattens `nest` if it has this structure, in the sense of dm-tree's assert_same_structure:
 * two mappings with the same keys are equal, and so are two named tuples with the same name and
 * fields. Returns 1 if it does, 0 without an exception if the structure differs, -1 with an
 * exception on failure. Every append calls this function, so it does not allocate for up to 32
 * leaves. */
int core_structure_flatten(PyObject *structure, PyObject *nest, core_leaves *leaves);
Py_ssize_t core_structure_leaf_count(PyObject *structure);
/* Makes a nest of that structure with these leaves. Borrows the leaves. */
PyObject *core_structure_pack(PyObject *structure, PyObject *const *leaves, Py_ssize_t count);
/* Returns the path of a leaf for error texts: keys and indices joined with '/'. */
PyObject *core_structure_path(PyObject *structure, Py_ssize_t leaf);

/* Makes a signature from a nest of reprise.specs.TensorSpec. `*out` is NULL for None and for an
 * empty nest. */
int core_signature_from(PyObject *nest, rp_signature **out);
/* Converts a signature to a nest of specs, and NULL to None. */
PyObject *core_signature_to(const rp_signature *signature);

/* The types, which are static and are registered by module.c. */

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
    PyObject *store;                /* a reference to the store of a local client; else NULL */
    struct core_left_out *left_out; /* left_out.h: an entry for each shard (server); NULL: none
                                       yet */
    uint64_t left_out_seen;         /* left_out.c: if the sum of calls that left out a shard is
                                       still this, no warning is due */
} core_client;
extern PyTypeObject core_Client;

/* Returns -1 with StatusError in a forked child if the client uses a store of the parent. */
int core_client_check(PyObject *client);

/* store.c: converts information on one table to a dict. */
PyObject *core_table_info(const rp_table_info *info);

extern PyTypeObject core_TrajectoryWriter; /* trajectory_writer.c */
extern PyTypeObject core_ColumnHistory;    /* column_history.c */
extern PyTypeObject core_TrajectoryColumn; /* trajectory_column.c */
extern PyTypeObject core_WeakCellRef;      /* cell.c */
extern PyTypeObject core_StructuredWriter; /* structured_writer.c */
extern PyTypeObject core_BatchWriter;      /* structured_writer.c */
extern PyTypeObject core_StepWriter;       /* step_writer.c */
extern PyTypeObject core_Sampler;          /* sampler.c */
extern PyTypeObject core_Batch;            /* batch_arrays.c */
extern PyTypeObject core_ReplayBuffer;     /* replay_buffer.c */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#define PY_SSIZE_T_CLEAN
#include "runs.h"

#include "reprise/runs.h"
#include "server_call.h"

/* A report with its memory: the thread that sends it may outlive the call. All members are from
 * PyMem_RawMalloc(). */
typedef struct report_request {
    core_request base;
    rp_client *client;
    rp_run_report report;
    rp_run_episode episode;
    rp_scalar *scalars;
    rp_run_actor *actors;
    float *states;
    char *names; /* of all parts, one after the other */
    size_t names_used, names_room;
    size_t dropped;
} report_request;

static void clear_report(void *arg)
{
    report_request *r = arg;

    PyMem_RawFree(r->scalars);
    PyMem_RawFree(r->actors);
    PyMem_RawFree(r->states);
    PyMem_RawFree(r->names);
}

static rp_status do_report(void *arg, rp_wait wait, rp_error *err)
{
    report_request *r = arg;
    rp_runs_call call = {.action = RP_RUNS_REPORT, .report = &r->report};
    rp_status status = rp_client_runs(r->client, &call, wait, err);

    r->dropped = call.dropped;
    return status;
}

/* Adds the bytes of a name to the room for names. */
static int measure_name(report_request *r, PyObject *name)
{
    Py_ssize_t size;

    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a name must be a str, got %R", name);
        return -1;
    }
    if (!PyUnicode_AsUTF8AndSize(name, &size)) return -1;
    r->names_room += (size_t)size;
    return 0;
}

/* The names of a list of tuples are their first elements. */
static int measure_names(report_request *r, PyObject *list, Py_ssize_t fields)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *tuple = PyList_GET_ITEM(list, i);

        if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != fields) {
            PyErr_Format(PyExc_TypeError, "expected a tuple of %zd, got %R", fields, tuple);
            return -1;
        }
        if (measure_name(r, PyTuple_GET_ITEM(tuple, 0)) != 0) return -1;
    }
    return 0;
}

/* Copies a name that measure_name() has counted. */
static rp_string take_name(report_request *r, PyObject *name)
{
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    rp_string copy = {r->names + r->names_used, (size_t)size};

    assert(text != NULL && r->names_used + (size_t)size <= r->names_room);
    memcpy(r->names + r->names_used, text, (size_t)size);
    r->names_used += (size_t)size;
    return copy;
}

/* Arguments are tuples of exact numbers, which reprise.runs makes: reading them runs no code.
 */
static int take_scalars(report_request *r, PyObject *list)
{
    size_t count = (size_t)PyList_GET_SIZE(list);

    r->scalars = PyMem_RawCalloc(count + 1, sizeof *r->scalars);
    if (!r->scalars) return PyErr_NoMemory() ? 0 : -1;
    for (size_t i = 0; i < count; i++) {
        PyObject *tuple = PyList_GET_ITEM(list, (Py_ssize_t)i), *name;
        long long step;

        if (!PyArg_ParseTuple(tuple, "OLdd", &name, &step, &r->scalars[i].time_s,
                              &r->scalars[i].value))
            return -1;
        r->scalars[i].step = step;
        r->scalars[i].name = take_name(r, name);
    }
    r->report.scalars = r->scalars;
    r->report.scalar_count = count;
    return 0;
}

static int take_actors(report_request *r, PyObject *list)
{
    size_t count = (size_t)PyList_GET_SIZE(list);

    r->actors = PyMem_RawCalloc(count + 1, sizeof *r->actors);
    if (!r->actors) return PyErr_NoMemory() ? 0 : -1;
    for (size_t i = 0; i < count; i++) {
        PyObject *tuple = PyList_GET_ITEM(list, (Py_ssize_t)i), *name;
        rp_run_actor *actor = &r->actors[i];
        long long version, lag;

        if (!PyArg_ParseTuple(tuple, "OddLL", &name, &actor->epsilon, &actor->episode_return,
                              &version, &lag))
            return -1;
        actor->version = version;
        actor->version_lag = lag;
        actor->name = take_name(r, name);
    }
    r->report.actors = r->actors;
    r->report.actor_count = count;
    return 0;
}

static int take_states(report_request *r, PyObject *env, PyObject *states)
{
    PyArrayObject *array;
    size_t bytes;

    if (states == Py_None) return 0;
    array = (PyArrayObject *)PyArray_FROM_OTF(states, NPY_FLOAT32,
                                              NPY_ARRAY_IN_ARRAY | NPY_ARRAY_FORCECAST);
    if (!array) return -1;
    if (PyArray_NDIM(array) != 2) {
        PyErr_Format(PyExc_ValueError, "states must have two dimensions, got %d",
                     PyArray_NDIM(array));
        Py_DECREF(array);
        return -1;
    }
    bytes = (size_t)PyArray_NBYTES(array);
    r->states = PyMem_RawMalloc(bytes > 0 ? bytes : 1);
    if (r->states) memcpy(r->states, PyArray_DATA(array), bytes);
    r->episode = (rp_run_episode){.states = r->states,
                                  .state_count = (size_t)PyArray_DIM(array, 0),
                                  .variable_count = (size_t)PyArray_DIM(array, 1)};
    Py_DECREF(array);
    if (!r->states) return PyErr_NoMemory() ? 0 : -1;
    r->episode.env = take_name(r, env);
    r->report.episode = &r->episode;
    return 0;
}

static int fill(report_request *r, PyObject *const *args)
{
    if (measure_name(r, args[0]) != 0 || measure_names(r, args[1], 4) != 0 ||
        measure_names(r, args[2], 5) != 0 ||
        (args[4] != Py_None && measure_name(r, args[3]) != 0))
        return -1;
    r->names = PyMem_RawMalloc(r->names_room + 1);
    if (!r->names) return PyErr_NoMemory() ? 0 : -1;
    r->report.run = take_name(r, args[0]);
    if (take_scalars(r, args[1]) != 0 || take_actors(r, args[2]) != 0) return -1;
    return take_states(r, args[3], args[4]);
}

PyObject *core_client_report(core_client *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *dropped = NULL;
    int64_t timeout_ms;
    report_request *r;

    if (count != 6 || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "report(run, scalars, actors, env, states, timeout)");
        return NULL;
    }
    if (core_timeout_s(args[5], &timeout_ms) != 0 || core_client_check((PyObject *)self) != 0)
        return NULL;
    r = core_request_new(sizeof *r, clear_report);
    if (!r) return NULL;
    r->base.peer = r->client = self->client;
    if (fill(r, args) == 0 && core_call_server(do_report, &r->base, 0, timeout_ms) == 0)
        dropped = PyLong_FromSize_t(r->dropped);
    core_request_drop(&r->base);
    return dropped;
}

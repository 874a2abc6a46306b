/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._rl.Dqn: a DQN agent, with a store of its own in this process, and a policy.
 *
 * The environments are the caller's: he asks for actions, steps them, and passes what happened.
 *
 * Invariants:
 *   A1  `lock` is held, without the GIL, while a call uses the agent, so several threads may
 *       call, one after the other;
 *   A2  an agent of another process is not used: its store has threads there, not here;
 *   A3  begin() comes before the first step(), and again after a step that failed. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <reprise/rl/random.h>
#include <reprise/rl/safetensors.h>

#include "rl.h"

/* Rows that the policy takes at once. */
enum { FLOAT_ROWS = 256, BYTE_ROWS = 32, NAME_BYTES = 128 };

typedef struct dqn_object {
    PyObject_HEAD
    pid_t pid;
    bool has_lock, began;
    pthread_mutex_t lock;
    rp_dqn_settings settings;
    rp_env_spec spec;
    char name[NAME_BYTES]; /* of the environment, for texts */
    size_t row_bytes, numbers;
    rp_store *store;
    rp_client *client;
    rp_agent *agent;
    rp_net *net;
    rp_policy *policy;
} dqn_object;

/* Sets the exception for a text of our own. */
static int fail(PyObject *class, const char *text)
{
    PyErr_SetString(class, text);
    return -1;
}

static int check_process(const dqn_object *self)
{
    if (self->pid == getpid()) return 0; /* A2 */
    return fail(PyExc_RuntimeError, "the agent belongs to the process that made it");
}

/* Seeds for the parts of an agent, as the trainer of the C library makes them. */
static uint64_t seed_of(uint64_t seed, uint32_t part)
{
    const uint32_t words[] = {(uint32_t)seed, (uint32_t)(seed >> 32), part};
    uint32_t out[2];

    rp_seed_sequence(words, 3, out, 2);
    return (uint64_t)out[0] << 32 | out[1];
}

static rp_status make(dqn_object *self, uint64_t seed, rp_error *err)
{
    const rp_store_options store = {.seed = seed_of(seed, 0) | 1};
    const size_t rows = self->spec.observation_dtype == RP_UINT8 ? BYTE_ROWS : FLOAT_ROWS;
    rp_dqn_options options = {.settings = &self->settings, .spec = &self->spec};
    rp_status st = rp_store_new(&store, &self->store, err);

    if (st == RP_OK)
        st = rp_client_local(self->store, &(rp_client_options){0}, &self->client, err);
    options.store = self->store;
    options.client = self->client;
    options.seed = seed_of(seed, 1);
    if (st == RP_OK) st = rp_dqn_new(NULL, &options, &self->agent, err);
    if (st == RP_OK) st = rp_dqn_new_net(NULL, &self->settings, &self->spec, &self->net, err);
    if (st == RP_OK)
        st = rp_dqn_new_policy(NULL, self->net, &self->spec, rows, &self->policy, err);
    return st;
}

static int read_shape(PyObject *tuple, rp_env_spec *spec)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(tuple);
    size_t elements;

    if (rank > RP_MAX_RANK) return fail(PyExc_ValueError, "shape: too many dimensions");
    spec->observation_shape.rank = (int32_t)rank;
    for (Py_ssize_t i = 0; i < rank; i++) {
        long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (size == -1 && PyErr_Occurred()) return -1;
        if (size < 1 || size > INT32_MAX)
            return fail(PyExc_ValueError, "shape: every size must be from 1 to 2147483647");
        spec->observation_shape.dims[i] = size;
    }
    if (rp_shape_elements(&spec->observation_shape, &elements) == RP_OK &&
        elements <= INT32_MAX)
        return 0;
    return fail(PyExc_ValueError, "shape: an observation has too many elements");
}

static int parse(PyObject *args, PyObject *kwargs, dqn_object *self, unsigned long long *seed)
{
    static char *names[] = {"settings", "name", "shape", "pixels", "actions", "seed", NULL};
    PyObject *dict, *shape;
    const rp_env_class *known;
    const char *name;
    int pixels, actions;
    size_t elements = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!$sO!piK:Dqn", names, &PyDict_Type, &dict,
                                     &name, &PyTuple_Type, &shape, &pixels, &actions, seed))
        return -1;
    if (actions < 1) return fail(PyExc_ValueError, "actions must be >= 1");
    (void)PyOS_snprintf(self->name, sizeof self->name, "%s", name);
    self->spec = (rp_env_spec){.observation_dtype = pixels ? RP_UINT8 : RP_FLOAT32,
                               .action_kind = RP_ACTION_DISCRETE,
                               .action_count = actions,
                               .action_size = 1,
                               .solved_return = (double)NAN};
    if (read_shape(shape, &self->spec) < 0) return -1;
    known = rp_env_find(name);
    rp_dqn_settings_init(&self->settings, known != NULL ? known->name : NULL);
    if (rl_settings_from(dict, &self->settings) < 0) return -1;
    (void)!rp_shape_elements(&self->spec.observation_shape, &elements);
    self->numbers = elements;
    self->row_bytes = elements * rp_dtype_size(self->spec.observation_dtype);
    return 0;
}

static PyObject *dqn_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    dqn_object *self = (dqn_object *)type->tp_alloc(type, 0);
    unsigned long long seed = 0;
    rp_error err = {0};
    rp_status st;

    if (self == NULL) return NULL;
    self->pid = getpid();
    if (parse(args, kwargs, self, &seed) < 0) goto error;
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        (void)PyErr_NoMemory();
        goto error;
    }
    self->has_lock = true;
    Py_BEGIN_ALLOW_THREADS
    st = make(self, seed, &err);
    Py_END_ALLOW_THREADS
    if (st == RP_OK) return (PyObject *)self;
    (void)rl_raise(st, &err);
error:
    Py_DECREF(self);
    return NULL;
}

static void dqn_dealloc(PyObject *obj)
{
    dqn_object *self = (dqn_object *)obj;

    if (self->pid == getpid()) { /* A2 */
        Py_BEGIN_ALLOW_THREADS
        rp_policy_free(self->policy);
        rp_net_free(self->net);
        rp_agent_free(self->agent);
        rp_client_free(self->client);
        rp_store_free(self->store);
        Py_END_ALLOW_THREADS
        if (self->has_lock) (void)pthread_mutex_destroy(&self->lock);
    }
    Py_TYPE(obj)->tp_free(obj);
}

/* The arrays of a call. */
enum { MOST_VIEWS = 8 };

typedef struct views {
    Py_buffer view[MOST_VIEWS];
    size_t count;
} views;

static void release(views *v)
{
    while (v->count > 0) PyBuffer_Release(&v->view[--v->count]);
}

/* Takes an array of exactly `bytes`, C contiguous. */
static int take(views *v, PyObject *obj, size_t bytes, bool is_output)
{
    Py_buffer *view = &v->view[v->count];
    int flags = PyBUF_C_CONTIGUOUS | (is_output ? PyBUF_WRITABLE : 0);

    assert(v->count < MOST_VIEWS);
    if (PyObject_GetBuffer(obj, view, flags) < 0) return -1;
    v->count++;
    if (view->len == (Py_ssize_t)bytes) return 0;
    PyErr_Format(PyExc_ValueError, "expected an array of %zu bytes, got %zd", bytes, view->len);
    return -1;
}

/* Finds a number that is not finite in one row of observations. */
static rp_status check_row(const dqn_object *self, size_t copy, const void *row, rp_error *err)
{
    const float *values = row;

    if (self->spec.observation_dtype != RP_FLOAT32) return RP_OK;
    for (size_t i = 0; i < self->numbers; i++) {
        if (isfinite(values[i])) continue;
        *err = (rp_error){.code = RP_CORRUPT};
        (void)PyOS_snprintf(err->text, sizeof err->text,
                            "environment '%s', copy %zu: element %zu of the observation is %g, "
                            "not a finite number",
                            self->name, copy, i, (double)values[i]);
        return RP_CORRUPT;
    }
    return RP_OK;
}

static rp_status check_result(const dqn_object *self, const rp_env_buffers *r, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < (size_t)self->settings.copies; i++) {
        const size_t at = i * self->row_bytes;

        st = check_row(self, i, (const char *)r->observations + at, err);
        if (st == RP_OK && (r->terminated[i] || r->truncated[i]))
            st = check_row(self, i, (const char *)r->last_observations + at, err);
        if (st != RP_OK || isfinite(r->rewards[i])) continue;
        st = RP_CORRUPT;
        *err = (rp_error){.code = RP_CORRUPT};
        (void)PyOS_snprintf(err->text, sizeof err->text,
                            "environment '%s', copy %zu: the reward is %g, not a finite number",
                            self->name, i, r->rewards[i]);
    }
    return st;
}

static PyObject *dqn_begin(PyObject *obj, PyObject *observations)
{
    dqn_object *self = (dqn_object *)obj;
    size_t copies = (size_t)self->settings.copies;
    views v = {.count = 0};
    rp_error err = {0};
    rp_status st = RP_OK;

    if (check_process(self) < 0) return NULL;
    if (take(&v, observations, copies * self->row_bytes, false) < 0) goto error;
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    for (size_t i = 0; st == RP_OK && i < copies; i++)
        st = check_row(self, i, (const char *)v.view[0].buf + i * self->row_bytes, &err);
    if (st == RP_OK) st = self->agent->type->begin(self->agent, v.view[0].buf, &err);
    self->began = st == RP_OK;
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    release(&v);
    if (st != RP_OK) return rl_raise(st, &err);
    Py_RETURN_NONE;
error:
    release(&v);
    return NULL;
}

static PyObject *dqn_act(PyObject *obj, PyObject *args)
{
    dqn_object *self = (dqn_object *)obj;
    size_t copies = (size_t)self->settings.copies;
    PyObject *observations, *actions;
    views v = {.count = 0};

    if (check_process(self) < 0) return NULL;
    if (!PyArg_ParseTuple(args, "OO:act", &observations, &actions)) return NULL;
    if (take(&v, observations, copies * self->row_bytes, false) < 0 ||
        take(&v, actions, copies * sizeof(int32_t), true) < 0) {
        release(&v);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    self->agent->type->act(self->agent, v.view[0].buf, v.view[1].buf);
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    release(&v);
    Py_RETURN_NONE;
}

/* Takes the arrays of step(): observations, actions, and the five of rp_env_buffers. */
static int take_step(const dqn_object *self, PyObject *args, views *v)
{
    const size_t copies = (size_t)self->settings.copies, row = copies * self->row_bytes;
    const size_t sizes[] = {
        row, copies * sizeof(int32_t), row, row, copies * sizeof(double), copies, copies};
    PyObject *arrays[7];

    static_assert(sizeof(bool) == 1, "arrays of bool");
    if (!PyArg_ParseTuple(args, "OOOOOOO:step", &arrays[0], &arrays[1], &arrays[2], &arrays[3],
                          &arrays[4], &arrays[5], &arrays[6]))
        return -1;
    for (size_t i = 0; i < 7; i++)
        if (take(v, arrays[i], sizes[i], false) < 0) return -1;
    for (size_t i = 0; i < copies; i++) {
        int32_t action = ((const int32_t *)v->view[1].buf)[i];
        if (action < 0 || action >= self->spec.action_count)
            return fail(PyExc_ValueError, "an action is out of range");
    }
    return 0;
}

static rp_status do_step(dqn_object *self, const views *v, rp_error *err)
{
    const rp_env_buffers result = {v->view[2].buf, v->view[3].buf, v->view[4].buf,
                                   v->view[5].buf, v->view[6].buf};
    const rp_agent_step step = {v->view[0].buf, v->view[1].buf, &result};
    rp_status st;

    if (!self->began) { /* A3 */
        *err = (rp_error){RP_PRECONDITION, "begin() comes before step()"};
        return RP_PRECONDITION;
    }
    st = check_result(self, &result, err);
    if (st == RP_OK) st = self->agent->type->observe(self->agent, &step, err);
    self->began = st == RP_OK;
    if (st == RP_OK) st = self->agent->type->learn(self->agent, err);
    return st;
}

static PyObject *dqn_step(PyObject *obj, PyObject *args)
{
    dqn_object *self = (dqn_object *)obj;
    views v = {.count = 0};
    rp_error err = {0};
    rp_status st;

    if (check_process(self) < 0) return NULL;
    if (take_step(self, args, &v) < 0) {
        release(&v);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    st = do_step(self, &v, &err);
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    release(&v);
    if (st != RP_OK) return rl_raise(st, &err);
    Py_RETURN_NONE;
}

/* Without the GIL. */
static void do_predict(dqn_object *self, const char *observations, int32_t *actions,
                       size_t rows)
{
    const rp_real *params = self->agent->type->parameters(self->agent);
    size_t count;

    for (size_t i = 0; i < rows; i += count) {
        count = rows - i < self->policy->rows ? rows - i : self->policy->rows;
        self->policy->act(self->policy, params, observations + i * self->row_bytes, count,
                          actions + i);
    }
}

static PyObject *dqn_predict(PyObject *obj, PyObject *args)
{
    dqn_object *self = (dqn_object *)obj;
    PyObject *observations, *actions;
    views v = {.count = 0};
    Py_ssize_t rows;

    if (check_process(self) < 0) return NULL;
    if (!PyArg_ParseTuple(args, "OOn:predict", &observations, &actions, &rows)) return NULL;
    if (rows < 0 || (size_t)rows > SIZE_MAX / 2 / self->row_bytes) {
        (void)fail(PyExc_ValueError, "rows is out of range");
        return NULL;
    }
    if (take(&v, observations, (size_t)rows * self->row_bytes, false) < 0 ||
        take(&v, actions, (size_t)rows * sizeof(int32_t), true) < 0) {
        release(&v);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    do_predict(self, v.view[0].buf, v.view[1].buf, (size_t)rows);
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    release(&v);
    Py_RETURN_NONE;
}

static PyObject *dqn_metrics(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    dqn_object *self = (dqn_object *)obj;
    rp_agent_metrics m;

    if (check_process(self) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    self->agent->type->get_metrics(self->agent, &m);
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("{s:L,s:d,s:d,s:d,s:d,s:d,s:d,s:L,s:L,s:L}", "updates",
                         (long long)m.updates, "loss", m.loss, "value", m.value, "error",
                         m.error, "norm", m.norm, "epsilon", m.epsilon, "rate", m.rate,
                         "inserts", (long long)m.inserts, "samples", (long long)m.samples,
                         "item_size", (long long)m.item_size);
}

static PyObject *dqn_settings(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    return rl_settings_dict(&((dqn_object *)obj)->settings);
}

static PyObject *dqn_parameters(PyObject *obj, PyObject *Py_UNUSED(ignored))
{
    dqn_object *self = (dqn_object *)obj;
    PyObject *bytes;

    if (check_process(self) < 0) return NULL;
    bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(rp_net_size(self->net) * sizeof(rp_real)));
    if (bytes == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    memcpy(PyBytes_AS_STRING(bytes), self->agent->type->parameters(self->agent),
           rp_net_size(self->net) * sizeof(rp_real));
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    return bytes;
}

/* The part of the agent's state of that name. */
static rp_state_part part_of(dqn_object *self, const char *name)
{
    rp_state_part parts[RP_AGENT_MAX_PARTS];
    size_t count = self->agent->type->get_state(self->agent, parts), i = 0;

    while (i + 1 < count && strcmp(parts[i].name, name) != 0) i++;
    assert(strcmp(parts[i].name, name) == 0);
    return parts[i];
}

/* Loads a file into the parameters and those of the target network. Without the GIL. */
static rp_status load_file(dqn_object *self, const char *path, rp_error *err)
{
    rp_state_part params = part_of(self, "params"), target = part_of(self, "target");
    rp_status st = rp_net_load(rp_allocator_default(), self->net, path, params.bytes, err);

    assert(params.size == target.size);
    if (st == RP_OK) memcpy(target.bytes, params.bytes, params.size);
    return st;
}

/* Saves or loads the parameters. */
static PyObject *move_file(PyObject *obj, PyObject *given, bool is_load)
{
    dqn_object *self = (dqn_object *)obj;
    PyObject *path = NULL;
    rp_error err = {0};
    rp_status st;

    if (check_process(self) < 0) return NULL;
    if (!PyUnicode_FSConverter(given, &path)) return NULL;
    Py_BEGIN_ALLOW_THREADS(void)
    pthread_mutex_lock(&self->lock); /* A1 */
    if (is_load)
        st = load_file(self, PyBytes_AS_STRING(path), &err);
    else
        st = rp_net_save(rp_allocator_default(), self->net,
                         self->agent->type->parameters(self->agent), PyBytes_AS_STRING(path),
                         &err);
    (void)pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (st != RP_OK) return rl_raise(st, &err);
    Py_RETURN_NONE;
}

static PyObject *dqn_save(PyObject *obj, PyObject *path)
{
    return move_file(obj, path, false);
}

static PyObject *dqn_load(PyObject *obj, PyObject *path)
{
    return move_file(obj, path, true);
}

static PyMethodDef dqn_methods[] = {
    {"begin", dqn_begin, METH_O,
     "begin($self, observations, /)\n--\n\nBegins an episode in every copy."},
    {"act", dqn_act, METH_VARARGS,
     "act($self, observations, actions, /)\n--\n\n"
     "Writes an action for every copy, an int32, exploring."},
    {"step", dqn_step, METH_VARARGS,
     "step($self, observations, actions, next_observations, last_observations, rewards, "
     "terminated, truncated, /)\n--\n\n"
     "Writes one step of every copy to the replay, and makes the updates that are due."},
    {"predict", dqn_predict, METH_VARARGS,
     "predict($self, observations, actions, rows, /)\n--\n\n"
     "Writes the best action for each of the rows, an int32."},
    {"metrics", dqn_metrics, METH_NOARGS,
     "metrics($self)\n--\n\nReturns numbers; means are over the updates since the last call."},
    {"settings", dqn_settings, METH_NOARGS, "settings($self)\n--\n\nReturns all settings."},
    {"parameters", dqn_parameters, METH_NOARGS,
     "parameters($self)\n--\n\nReturns the bytes of the parameters."},
    {"save", dqn_save, METH_O,
     "save($self, path, /)\n--\n\nSaves the parameters as a safetensors file."},
    {"load", dqn_load, METH_O,
     "load($self, path, /)\n--\n\nLoads the parameters, for the target network as well."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(dqn_doc,
             "Dqn(settings, *, name, shape, pixels, actions, seed)\n--\n\n"
             "A DQN agent with a replay of its own.\n\n"
             "`name` is that of the environment, for texts and for its presets; `shape` "
             "is that of an observation, of floats or, with `pixels`, of bytes.");

PyTypeObject rl_Dqn = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "reprise._rl.Dqn",
    .tp_basicsize = sizeof(dqn_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = dqn_doc,
    .tp_new = dqn_new,
    .tp_dealloc = dqn_dealloc,
    .tp_methods = dqn_methods,
};

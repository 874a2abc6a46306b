/* SPDX-License-Identifier: Apache-2.0 */
/* The dict of results of Client.rollouts(). */
#define PY_SSIZE_T_CLEAN
#include "rollouts.h"

static PyObject *string_of(rp_string text)
{
    return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "replace");
}

static PyObject *strings_of(const rp_string *texts, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *text = string_of(texts[i]);

        if (text == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *options_of(const rp_rollout_options *o)
{
    PyObject *consumers = PyList_New(0);

    for (size_t i = 0; consumers != NULL && i < o->consumer_count; i++) {
        const rp_rollout_consumer *c = &o->consumers[i];
        PyObject *pair =
            Py_BuildValue("(NN)", string_of(c->name), strings_of(c->columns, c->column_count));

        if (pair == NULL || PyList_Append(consumers, pair) != 0) Py_CLEAR(consumers);
        Py_XDECREF(pair);
    }
    if (consumers == NULL) return NULL;
    return Py_BuildValue(
        "{sIsLsisKsLsKsKsisisN}", "group_size", (unsigned)o->group_size, "max_staleness",
        (long long)o->max_staleness, "staleness", (int)o->staleness, "groups_per_version",
        (unsigned long long)o->groups_per_version, "first_version", (long long)o->first_version,
        "max_groups", (unsigned long long)o->max_groups, "max_bytes",
        (unsigned long long)o->max_bytes, "full", (int)o->full, "order", (int)o->order,
        "consumers", consumers);
}

/* Adds a value to a dict. Takes the value, which may be NULL with an exception. */
static int put(PyObject *dict, const char *key, PyObject *value)
{
    int failed = value == NULL ? -1 : PyDict_SetItemString(dict, key, value);

    Py_XDECREF(value);
    return failed;
}

static PyObject *consumer_of(const rp_rollout_consumer_info *c)
{
    return Py_BuildValue("{sssKsKsKsKsKsK}", "name", c->name, "waiting",
                         (unsigned long long)c->waiting, "ready", (unsigned long long)c->ready,
                         "leased", (unsigned long long)c->leased, "done",
                         (unsigned long long)c->done, "drawn", (unsigned long long)c->drawn,
                         "acknowledged", (unsigned long long)c->acknowledged);
}

static PyObject *list_of_consumers(const rp_rollout_info *info)
{
    PyObject *list = PyList_New((Py_ssize_t)info->consumer_count);

    for (size_t i = 0; list != NULL && i < info->consumer_count; i++) {
        PyObject *consumer = consumer_of(&info->consumers[i]);

        if (consumer == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, consumer);
    }
    return list;
}

static PyObject *numbers_of(const uint64_t *numbers, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);

        if (number == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, number);
    }
    return list;
}

static PyObject *entry_of(const core_rollout_entry *e)
{
    const rp_rollout_info *info = &e->info;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"groups", info->groups},
                  {"reserved", info->reserved},
                  {"partial", info->partial},
                  {"complete", info->complete},
                  {"leased", info->leased},
                  {"items", info->items},
                  {"leases", info->leases},
                  {"bytes", info->bytes},
                  {"begun", info->begun},
                  {"acknowledged", info->acknowledged},
                  {"stale", info->stale},
                  {"evicted", info->evicted},
                  {"aborted", info->aborted},
                  {"expired_reservations", info->expired_reservations},
                  {"expired_leases", info->expired_leases}};
    PyObject *dict = PyDict_New();
    int failed = dict == NULL;

    failed =
        failed || put(dict, "name", string_of(e->name)) ||
        put(dict, "version", PyLong_FromLongLong(info->version)) ||
        put(dict, "options", options_of(&e->options)) ||
        put(dict, "cursors", strings_of(e->cursors, e->cursor_count)) ||
        put(dict, "staleness", numbers_of(info->staleness, RP_ROLLOUT_STALENESS_BUCKETS)) ||
        put(dict, "consumers", list_of_consumers(info)) ||
        put(dict, "may_begin",
            info->may_begin == UINT64_MAX ? Py_NewRef(Py_None)
                                          : PyLong_FromUnsignedLongLong(info->may_begin));
    for (size_t i = 0; !failed && i < sizeof counts / sizeof counts[0]; i++)
        failed = put(dict, counts[i].key, PyLong_FromUnsignedLongLong(counts[i].value)) != 0;
    if (failed) Py_CLEAR(dict);
    return dict;
}

static PyObject *entries_of(const core_rollout_entry *first)
{
    PyObject *list = PyList_New(0);

    for (const core_rollout_entry *e = first; list != NULL && e != NULL; e = e->next) {
        PyObject *dict = entry_of(e);

        if (dict == NULL || PyList_Append(list, dict) != 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

PyObject *core_rollout_results(rp_rollouts_call *call, const core_rollout_entry *first,
                               const void *data, size_t size)
{
    PyObject *dict = PyDict_New(), *draw = NULL;
    int failed = dict == NULL;

    if (call->draw != NULL) {
        draw = core_rollout_draw(call->draw);
        call->draw = NULL;
        failed = failed || draw == NULL;
    }
    if (!failed && draw != NULL) failed = PyDict_SetItemString(dict, "draw", draw);
    Py_XDECREF(draw);
    failed = failed || put(dict, "repeated", PyBool_FromLong(call->repeated)) ||
             put(dict, "gone", PyBool_FromLong(call->gone)) ||
             put(dict, "fate", PyUnicode_FromString(rp_rollout_fate_name(call->fate))) ||
             put(dict, "version", PyLong_FromLongLong(call->current_version)) ||
             put(dict, "removed", PyLong_FromUnsignedLongLong(call->removed)) ||
             put(dict, "entries", entries_of(first));
    if (!failed && data != NULL)
        failed = put(dict, "data", PyBytes_FromStringAndSize(data, (Py_ssize_t)size)) != 0;
    if (failed) Py_CLEAR(dict);
    return dict;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of DQN by the names of their fields: a name has '_' where the C library has '-'. */
#include <math.h>
#include <string.h>

#include "rl.h"

enum { NAME_BYTES = 64 };

/* Writes the name of a setting as Python has it. Returns `out`. */
static const char *name_of(const rp_setting_info *info, char out[NAME_BYTES])
{
    size_t length = strlen(info->name);

    assert(length < NAME_BYTES);
    for (size_t i = 0; i <= length; i++) out[i] = info->name[i] == '-' ? '_' : info->name[i];
    return out;
}

static int set_one(const char *given, PyObject *value, rp_dqn_settings *settings)
{
    char name[NAME_BYTES];

    for (size_t i = 0; i < RP_DQN_SETTINGS; i++) {
        const rp_setting_info *info = &rp_dqn_settings_table()->list[i];
        double number;

        if (strcmp(name_of(info, name), given) != 0) continue;
        number = PyFloat_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "dqn: %s must be a number, got %R", name, value);
            return -1;
        }
        if (!(number >= info->low && number <= info->high) ||
            (info->kind != RP_SETTING_NUMBER && number != floor(number))) {
            char range[120];
            (void)PyOS_snprintf(range, sizeof range, "%s from %g to %g",
                                info->kind == RP_SETTING_NUMBER ? "a number" : "an integer",
                                info->low, info->high);
            PyErr_Format(PyExc_ValueError, "dqn: %s must be %s, got %R", name, range, value);
            return -1;
        }
        rp_settings_set(rp_dqn_settings_table(), settings, i, number);
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "dqn: there is no setting '%s'", given);
    return -1;
}

int rl_settings_from(PyObject *dict, rp_dqn_settings *settings)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    assert(PyDict_Check(dict));
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *given = PyUnicode_AsUTF8(key);
        if (given == NULL || set_one(given, value, settings) < 0) return -1;
    }
    return 0;
}

/* A number as the type of its setting. */
static PyObject *number_as(rp_setting_kind kind, double value)
{
    switch (kind) {
    case RP_SETTING_INTEGER: return PyLong_FromDouble(value);
    case RP_SETTING_SWITCH: return PyBool_FromLong(value != 0);
    case RP_SETTING_NUMBER: break;
    }
    return PyFloat_FromDouble(value);
}

PyObject *rl_settings_dict(const rp_dqn_settings *settings)
{
    PyObject *dict = PyDict_New();
    char name[NAME_BYTES];

    for (size_t i = 0; dict != NULL && i < RP_DQN_SETTINGS; i++) {
        const rp_setting_info *info = &rp_dqn_settings_table()->list[i];
        PyObject *value =
            number_as(info->kind, rp_settings_get(rp_dqn_settings_table(), settings, i));

        if (value == NULL || PyDict_SetItemString(dict, name_of(info, name), value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

PyObject *rl_settings_list(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static const char *const kinds[] = {"int", "float", "bool"};
    PyObject *list = PyList_New(RP_DQN_SETTINGS);
    char name[NAME_BYTES];

    for (size_t i = 0; list != NULL && i < RP_DQN_SETTINGS; i++) {
        const rp_setting_info *info = &rp_dqn_settings_table()->list[i];
        PyObject *row = Py_BuildValue("(ssNdds)", name_of(info, name), kinds[info->kind],
                                      number_as(info->kind, info->initial), info->low,
                                      info->high, info->about);

        if (row == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

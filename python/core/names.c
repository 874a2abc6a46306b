/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature. The comparison
 * itself is _check.differing_names(), since it runs once for each table and structure. */
#include "names.h"

#include <math.h>
#include <string.h>

enum { ASK_MS = 500 }; /* how long to wait for a signature */

/* Time between two requests of signatures while the servers do not respond. */
static const int64_t AGAIN_NS = 5000000000;

static bool same_table(PyObject *a, PyObject *b)
{
    return a == b || (PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0);
}

/* Returns true if the pair was compared. */
static bool is_known(const core_names *names, PyObject *table, PyObject *structure)
{
    for (int i = 0; i < CORE_NAMES && names->structures[i] != NULL; i++)
        if (names->structures[i] == structure && same_table(names->tables[i], table))
            return true;
    return false;
}

/* Returns true if no more pairs are remembered. Then others are not compared: to ask for each
 * of their items would take longer than to insert it. */
static bool is_full(const core_names *names)
{
    return names->structures[CORE_NAMES - 1] != NULL;
}

static void remember(core_names *names, PyObject *table, PyObject *structure, bool prioritized)
{
    int free = 0;
    while (free < CORE_NAMES && names->structures[free] != NULL) free++;
    if (free == CORE_NAMES) return; /* other threads were faster */
    names->tables[free] = Py_NewRef(table);
    names->structures[free] = Py_NewRef(structure);
    names->prioritized[free] = prioritized;
}

/* Returns the sentence on names that differ, or None. */
static PyObject *difference(PyObject *structure, const rp_signature *signature)
{
    PyObject *module = PyImport_ImportModule("reprise._check");
    PyObject *nest = module == NULL ? NULL : core_signature_to(signature);
    PyObject *text =
        nest == NULL ? NULL
                     : PyObject_CallMethod(module, "differing_names", "OO", structure, nest);
    Py_XDECREF(nest);
    Py_XDECREF(module);
    return text;
}

static bool is_prioritized(const rp_table_info *info)
{
    return info->sampler.kind == RP_PRIORITIZED || info->remover.kind == RP_PRIORITIZED;
}

/* Compares a pair and remembers it. */
static int compare(core_names *names, const core_names_question *question,
                   const rp_table_info *info)
{
    PyObject *text = difference(question->structure, info->signature);
    if (text == NULL) return -1;
    if (text == Py_None) {
        remember(names, question->table, question->structure, is_prioritized(info));
        Py_DECREF(text);
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 question->is_step
                     ? "Unable to CreateItem in table '%s' because Append was called with a "
                       "tensor signature inconsistent with the table signature: %U"
                     : "Unable to create item in table '%s' since the provided trajectory is "
                       "inconsistent with the table signature. %U",
                 question->table_name, text);
    Py_DECREF(text);
    return -1;
}

/* Returns true if no server can be reached now: a request would wait for one. */
static bool is_away(rp_client *client)
{
    char why[RP_ERROR_TEXT_BYTES];
    for (size_t i = 0; i < rp_client_shard_count(client); i++) {
        (void)rp_client_why_away(client, i, why, sizeof why);
        if (why[0] == '\0') return false;
    }
    return true;
}

/* Requests information on the table, for at most ASK_MS and `timeout_ms`. */
static rp_status ask(rp_client *client, const char *table, int64_t timeout_ms,
                     rp_client_tables **out, rp_error *err)
{
    rp_status st;

    if (timeout_ms < 0 || timeout_ms > ASK_MS) timeout_ms = ASK_MS;
    Py_BEGIN_ALLOW_THREADS
    st = rp_client_get_table(client, table, rp_wait_ms(timeout_ms), out, err);
    Py_END_ALLOW_THREADS
    return st;
}

/* Compares a pair that was not compared before. Returns -1 with an exception, or 0 and in
 * `*found` RP_NOT_FOUND with `err` if the table does not exist, otherwise RP_OK. */
static int check(core_names *names, const core_names_question *question, int64_t timeout_ms,
                 rp_status *found, rp_error *err)
{
    rp_client *client = ((core_client *)question->client)->client;
    rp_client_tables *tables = NULL;
    int64_t begun_ns;
    rp_status st;
    int result;

    *found = RP_OK;
    if (is_known(names, question->table, question->structure)) return 0;
    if (is_full(names) || rp_now_ns() < names->ask_ns) return 0;
    if (is_away(client)) {
        names->ask_ns = rp_now_ns() + AGAIN_NS;
        return 0;
    }
    begun_ns = rp_now_ns();
    st = ask(client, question->table_name, timeout_ms, &tables, err);
    if (st != RP_OK) {
        names->ask_ns = st == RP_NOT_FOUND ? 0 : rp_now_ns() + AGAIN_NS;
        names->waited_ns += rp_now_ns() - begun_ns;
        if (st == RP_NOT_FOUND) *found = st;
        return 0;
    }
    result = compare(names, question, &tables->tables[0].info);
    rp_client_tables_free(tables);
    if (result == 0)
        result = core_say_left_out((core_client *)question->client, "create_item",
                                   question->table_name, false);
    return result;
}

int core_names_check(core_names *names, const core_names_question *question, int64_t timeout_ms)
{
    rp_status found;
    rp_error err;

    return check(names, question, timeout_ms, &found, &err);
}

/* Returns true if the table is known to have a prioritized selector. */
static bool was_prioritized(const core_names *names, PyObject *table)
{
    for (int i = 0; i < CORE_NAMES && names->structures[i] != NULL; i++)
        if (names->prioritized[i] && same_table(names->tables[i], table)) return true;
    return false;
}

/* Sets ValueError if the table still has a prioritized selector. */
static int refuse_priority(const core_names_question *question, double priority,
                           int64_t timeout_ms)
{
    rp_client_tables *tables = NULL;
    bool refuses = false;

    if (ask(((core_client *)question->client)->client, question->table_name, timeout_ms,
            &tables, NULL) != RP_OK)
        return 0;
    for (size_t i = 0; i < tables->count; i++)
        refuses = refuses || is_prioritized(&tables->tables[i].info);
    rp_client_tables_free(tables);
    if (!refuses) return 0;
    PyObject *got = PyFloat_FromDouble(priority);
    if (got != NULL)
        PyErr_Format(PyExc_ValueError,
                     "table '%s': priority must be finite and >= 0 for a prioritized selector, "
                     "got %S",
                     question->table_name, got);
    Py_XDECREF(got);
    return -1;
}

int core_names_check_all(core_names *names, const core_names_question *question,
                         double priority, int64_t timeout_ms)
{
    rp_status found;
    rp_error err;

    if (check(names, question, timeout_ms, &found, &err) != 0) return -1;
    if (found != RP_OK) {
        core_raise(found, &err);
        return -1;
    }
    if (priority >= 0 && !isinf(priority)) return 0;
    if (!was_prioritized(names, question->table)) return 0;
    return refuse_priority(question, priority, timeout_ms);
}

void core_names_clear(core_names *names)
{
    for (int i = 0; i < CORE_NAMES; i++) {
        Py_CLEAR(names->tables[i]);
        Py_CLEAR(names->structures[i]);
    }
}

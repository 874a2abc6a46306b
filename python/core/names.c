/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of an item's columns with those of the table's signature. The comparison
 * itself is _check.differing_names(), since it runs once for each table and structure. */
#include "names.h"

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

static void remember(core_names *names, PyObject *table, PyObject *structure)
{
    int free = 0;
    while (free < CORE_NAMES && names->structures[free] != NULL) free++;
    if (free == CORE_NAMES) return; /* other threads were faster */
    names->tables[free] = Py_NewRef(table);
    names->structures[free] = Py_NewRef(structure);
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

/* Compares a pair and remembers it. */
static int compare(core_names *names, const core_names_question *question,
                   const rp_signature *signature)
{
    PyObject *text = difference(question->structure, signature);
    if (text == NULL) return -1;
    if (text == Py_None) {
        remember(names, question->table, question->structure);
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

int core_names_check(core_names *names, const core_names_question *question, int64_t timeout_ms)
{
    rp_client *client = ((core_client *)question->client)->client;
    rp_client_tables *tables = NULL;
    int64_t begun_ns;
    rp_status st;
    int result;
    if (is_known(names, question->table, question->structure)) return 0;
    if (is_full(names) || rp_now_ns() < names->ask_ns) return 0;
    if (is_away(client)) {
        names->ask_ns = rp_now_ns() + AGAIN_NS;
        return 0;
    }
    if (timeout_ms < 0 || timeout_ms > ASK_MS) timeout_ms = ASK_MS;
    begun_ns = rp_now_ns();
    Py_BEGIN_ALLOW_THREADS
    st = rp_client_get_table(client, question->table_name, rp_wait_ms(timeout_ms), &tables,
                             NULL);
    Py_END_ALLOW_THREADS
    if (st != RP_OK) {
        names->ask_ns = st == RP_NOT_FOUND ? 0 : rp_now_ns() + AGAIN_NS;
        names->waited_ns += rp_now_ns() - begun_ns;
        return 0;
    }
    result = compare(names, question, tables->tables[0].info.signature);
    rp_client_tables_free(tables);
    return result;
}

void core_names_clear(core_names *names)
{
    for (int i = 0; i < CORE_NAMES; i++) {
        Py_CLEAR(names->tables[i]);
        Py_CLEAR(names->structures[i]);
    }
}

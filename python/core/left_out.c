/* SPDX-License-Identifier: Apache-2.0 */
#include "left_out.h"

static const int64_t first_pause_ns = 10000 * 1000000LL;

static int say(uint64_t calls, const char *call, const char *table, const char *why)
{
    PyObject *module = PyImport_ImportModule("reprise._log"), *result = NULL;
    PyObject *text = core_text(why);

    if (module != NULL && text != NULL)
        result = PyObject_CallMethod(module, "say_left_out", "KOsz", (unsigned long long)calls,
                                     text, call, table);
    Py_XDECREF(text);
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

int core_say_left_out(core_client *self, const char *call, const char *table, bool rare)
{
    size_t shards = self->store == NULL ? rp_client_shard_count(self->client) : 0;
    bool is_settled = true;
    char why[RP_ERROR_TEXT_BYTES];
    uint64_t sum;

    if (shards < 2) return 0;
    sum = rp_client_why_away(self->client, SIZE_MAX, why, sizeof why);
    if (sum == self->left_out_seen) return 0;
    if (self->left_out == NULL) self->left_out = PyMem_Calloc(shards, sizeof *self->left_out);
    if (self->left_out == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < shards; i++) {
        core_left_out *l = &self->left_out[i];
        uint64_t count = rp_client_why_away(self->client, i, why, sizeof why);
        uint64_t calls = count - l->count;
        int64_t now_ns = rp_now_ns();

        if (why[0] == '\0')
            *l = (core_left_out){.count = count};
        else
            is_settled = false; /* it is looked at again: it may get a connection */
        if (why[0] == '\0' || calls == 0 || (!rare && now_ns < l->next_ns)) continue;
        l->count = count;
        l->pause_ns = l->pause_ns == 0 ? first_pause_ns : 3 * l->pause_ns;
        l->next_ns = now_ns + l->pause_ns;
        if (say(calls, call, table, why) != 0) return -1;
    }
    /* A call that is counted from here on makes another sum. */
    if (is_settled) self->left_out_seen = sum;
    return 0;
}

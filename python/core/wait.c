/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait. A wait is cut into slices of SLICE_MS; Python's signal handlers run between
 * them, so that Ctrl-C ends any wait soon. */
#include "core.h"

#include <math.h>
#include <time.h>

enum { SLICE_MS = 50, ASKED_MS = 100 };

static const int64_t first_warning_ns = 2000 * 1000000LL;

core_patience core_patience_begin(void)
{
    int64_t now_ns = rp_now_ns();
    return (core_patience){.since_ns = now_ns, .warn_ns = now_ns + first_warning_ns};
}

core_patience core_patience_after(int64_t waited_ns)
{
    core_patience p = core_patience_begin();

    if (waited_ns < 0) waited_ns = 0; /* Python code may set it to any number */
    if (waited_ns > INT64_MAX / 8) waited_ns = INT64_MAX / 8;
    p.since_ns -= waited_ns;
    if (waited_ns < first_warning_ns) p.warn_ns -= waited_ns; /* else it was said before */
    return p;
}

bool core_patience_is_over(const core_patience *p)
{
    return rp_now_ns() >= p->warn_ns;
}

int core_patience_warn(core_patience *p, const char *text)
{
    int64_t waited_ns = rp_now_ns() - p->since_ns;
    PyObject *module = PyImport_ImportModule("reprise._log"), *result = NULL;

    p->warn_ns = p->since_ns + 3 * waited_ns; /* after 2, 6, 18, 54 s, ... */
    if (module != NULL)
        result = PyObject_CallMethod(module, "say_waiting", "ds", (double)waited_ns / 1e9,
                                     text[0] != '\0' ? text : "no response yet");
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

bool core_is_refused(rp_client *client)
{
    char why[8] = "";

    if (client != NULL) (void)rp_client_why_away(client, SIZE_MAX, why, sizeof why);
    return why[0] != '\0';
}

void core_sleep_ms(long ms)
{
    assert(ms >= 0 && ms < 1000);
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Returns the end of a slice, or of the wait if that is earlier. */
static int64_t slice_end(int64_t until_ns)
{
    int64_t end_ns = rp_now_ns() + (int64_t)SLICE_MS * 1000000;
    return end_ns < until_ns ? end_ns : until_ns;
}

/* Warns about a wait that takes long: with the reason of `explain`, or that of the last slice.
 */
static int warn(core_patience *p, core_explain explain, void *arg, const rp_error *err)
{
    char why[RP_ERROR_TEXT_BYTES] = "";

    if (explain != NULL)
        explain(arg, why, sizeof why);
    else
        (void)snprintf(why, sizeof why, "%s", err->text);
    return core_patience_warn(p, why);
}

/* The loop of a wait whose `patience` has begun. */
static int wait_on(core_patience patience, core_call call, void *arg, int64_t until_ns,
                   core_explain explain, rp_status *status, rp_error *err)
{
    for (;;) {
        rp_wait wait = {until_ns == RP_NOW ? RP_NOW : slice_end(until_ns), NULL};
        Py_BEGIN_ALLOW_THREADS
        *status = call(arg, wait, err);
        Py_END_ALLOW_THREADS
        if (*status != RP_DEADLINE) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if (wait.until_ns == until_ns) return 0;
        if (core_patience_is_over(&patience) && warn(&patience, explain, arg, err) < 0)
            return -1;
    }
}

int core_wait(core_call call, void *arg, int64_t timeout_ms, core_explain explain, bool quick,
              rp_status *status, rp_error *err)
{
    assert(call != NULL && status != NULL);
    if (quick) {
        *status = call(arg, rp_wait_none(), err);
        if (*status != RP_DEADLINE || timeout_ms == 0) return 0;
    }
    return wait_on(core_patience_begin(), call, arg, core_until_ns(timeout_ms), explain, status,
                   err);
}

int core_wait_after(int64_t waited_ns, core_call call, void *arg, int64_t timeout_ms,
                    bool quick, rp_status *status, rp_error *err)
{
    assert(call != NULL && status != NULL);
    if (quick) {
        *status = call(arg, rp_wait_none(), err);
        if (*status != RP_DEADLINE || timeout_ms == 0) return 0;
    }
    return wait_on(core_patience_after(waited_ns), call, arg, core_until_ns(timeout_ms), NULL,
                   status, err);
}

void core_sampler_why(rp_sampler *sampler, int64_t timeout_ms, char *text, size_t size)
{
    (void)snprintf(text, size, "none is ready; a timeout of %d ms or more gives the reason",
                   ASKED_MS);
    if (timeout_ms >= 0 && timeout_ms < ASKED_MS) return;
    (void)snprintf(text, size, "none is ready");
    Py_BEGIN_ALLOW_THREADS
    rp_sampler_why(sampler, text, size);
    Py_END_ALLOW_THREADS
}

void core_explain_sampler(void *arg, char *text, size_t size)
{
    core_sampler_why(*(rp_sampler **)arg, -1, text, size);
}

/* Reads a number that is not NaN. */
static int number_from(PyObject *obj, const char *name, double *value)
{
    *value = PyFloat_AsDouble(obj);
    if (*value == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be a number or None, got %R", name, obj);
        return -1;
    }
    if (isnan(*value)) {
        PyErr_Format(PyExc_ValueError, "%s must be a number or None, got nan", name);
        return -1;
    }
    return 0;
}

/* Rounds up, so that a short timeout does not become 0. A negative or a huge one becomes -1. */
static int64_t rounded(double ms)
{
    ms = ceil(ms);
    return ms >= 0 && ms < 9e15 ? (int64_t)ms : -1;
}

int core_timeout_s(PyObject *obj, int64_t *timeout_ms)
{
    double value;

    *timeout_ms = -1;
    if (obj == NULL || obj == Py_None) return 0;
    if (number_from(obj, "timeout", &value) < 0) return -1;
    if (value < 0) {
        PyErr_Format(PyExc_ValueError, "timeout must be None or >= 0 seconds, got %R", obj);
        return -1;
    }
    *timeout_ms = rounded(value * 1e3);
    return 0;
}

int core_timeout_ms(PyObject *obj, int64_t *timeout_ms)
{
    double value;

    *timeout_ms = -1;
    if (obj == NULL || obj == Py_None) return 0;
    if (number_from(obj, "timeout_ms", &value) < 0) return -1;
    *timeout_ms = rounded(value);
    return 0;
}

int64_t core_until_ns(int64_t timeout_ms)
{
    return timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
}

int64_t core_left_ms(int64_t until_ns)
{
    if (until_ns == RP_FOREVER) return -1;
    int64_t left_ns = until_ns - rp_now_ns();
    return left_ns > 0 ? (left_ns + 999999) / 1000000 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait. A wait is cut into slices of SLICE_MS; Python's signal handlers run between
 * them, so that Ctrl-C ends any wait soon. */
#include "core.h"

#include <math.h>
#include <time.h>

enum { SLICE_MS = 50 };

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

int core_wait(core_call call, void *arg, int64_t timeout_ms, bool quick, rp_status *status,
              rp_error *err)
{
    assert(call != NULL && status != NULL);
    if (quick) {
        *status = call(arg, rp_wait_none(), err);
        if (*status != RP_DEADLINE || timeout_ms == 0) return 0;
    }
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    for (;;) {
        rp_wait wait = {until_ns == RP_NOW ? RP_NOW : slice_end(until_ns), NULL};
        Py_BEGIN_ALLOW_THREADS
        *status = call(arg, wait, err);
        Py_END_ALLOW_THREADS
        if (*status != RP_DEADLINE) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
        if (wait.until_ns == until_ns) return 0;
    }
}

void core_sampler_why(rp_sampler *sampler, int64_t timeout_ms, char *text, size_t size)
{
    (void)snprintf(text, size, "none is ready");
    if (timeout_ms == 0) return;
    Py_BEGIN_ALLOW_THREADS
    rp_sampler_why(sampler, text, size);
    Py_END_ALLOW_THREADS
}

/* Rounds up to milliseconds, so that a short timeout does not become 0. */
static int timeout_from(PyObject *obj, double unit_ms, const char *name, int64_t *timeout_ms)
{
    *timeout_ms = -1;
    if (obj == NULL || obj == Py_None) return 0;
    double value = PyFloat_AsDouble(obj);
    if (value == -1.0 && PyErr_Occurred()) return -1;
    if (isnan(value)) {
        PyErr_Format(PyExc_ValueError, "%s must be a number or None, got nan", name);
        return -1;
    }
    double ms = ceil(value * unit_ms);
    if (ms >= 0 && ms < 9e15) *timeout_ms = (int64_t)ms;
    return 0;
}

int core_timeout_s(PyObject *obj, int64_t *timeout_ms)
{
    return timeout_from(obj, 1e3, "timeout", timeout_ms);
}

int core_timeout_ms(PyObject *obj, int64_t *timeout_ms)
{
    return timeout_from(obj, 1.0, "timeout_ms", timeout_ms);
}

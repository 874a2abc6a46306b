/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to servers, which Ctrl-C ends. */
#ifndef REPRISE_PYTHON_SERVER_CALL_H
#define REPRISE_PYTHON_SERVER_CALL_H

#include "core.h"

enum {
    CORE_CALL_AGAIN = 1,   /* it may be made twice */
    CORE_CALL_PATIENT = 2, /* a server that is not there is waited for, as Reverb does */
};

/* Makes a call without the GIL. 0, or -1 with an exception, by a signal or by its status. */
int core_call_server(core_call call, void *arg, int flags, int64_t timeout_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reprise/printable.h"

const char *rp_status_name(rp_status status)
{
    switch (status) {
    case RP_OK: return "RP_OK";
    case RP_CANCELLED: return "RP_CANCELLED";
    case RP_INVALID: return "RP_INVALID";
    case RP_DEADLINE: return "RP_DEADLINE";
    case RP_NOT_FOUND: return "RP_NOT_FOUND";
    case RP_EXISTS: return "RP_EXISTS";
    case RP_DENIED: return "RP_DENIED";
    case RP_NO_RESOURCE: return "RP_NO_RESOURCE";
    case RP_PRECONDITION: return "RP_PRECONDITION";
    case RP_UNIMPLEMENTED: return "RP_UNIMPLEMENTED";
    case RP_INTERNAL: return "RP_INTERNAL";
    case RP_UNAVAILABLE: return "RP_UNAVAILABLE";
    case RP_CORRUPT: return "RP_CORRUPT";
    case RP_UNAUTHENTICATED: return "RP_UNAUTHENTICATED";
    }
    return "RP_UNKNOWN";
}

rp_status rp_fail(rp_error *err, rp_status code, const char *format, ...)
{
    if (err != NULL) {
        char text[2 * RP_ERROR_TEXT_BYTES]; /* longer: rp_printable() cuts between characters */
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        (void)rp_printable(text, strlen(text), err->text, sizeof err->text);
    }
    return code;
}

static const char out_of_memory[] = "out of memory: ";

rp_status rp_fail_memory(rp_error *err, size_t bytes)
{
    return rp_fail(err, RP_NO_RESOURCE, "%s%zu bytes could not be allocated", out_of_memory,
                   bytes);
}

bool rp_error_is_memory(const rp_error *err)
{
    return err->code == RP_NO_RESOURCE &&
           strncmp(err->text, out_of_memory, sizeof out_of_memory - 1) == 0;
}

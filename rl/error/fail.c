/* SPDX-License-Identifier: Apache-2.0 */
#include "error/fail.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reprise/printable.h"

rp_status rp_rl_fail(rp_error *err, rp_status code, const char *format, ...)
{
    assert(code != RP_OK);
    if (err != NULL) {
        char text[2 * RP_ERROR_TEXT_BYTES]; /* longer: rp_printable() cuts between characters */
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        err->code = code;
        (void)rp_printable(text, strlen(text), err->text, sizeof err->text);
    }
    return code;
}

rp_status rp_rl_fail_memory(rp_error *err, size_t bytes)
{
    return rp_rl_fail(err, RP_NO_RESOURCE, "out of memory: %zu bytes could not be allocated",
                      bytes);
}

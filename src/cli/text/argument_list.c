/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/argument_list.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rp_argument_list_add(rp_argument_list *a, const char *format, ...)
{
    char **list = realloc((void *)a->list, (a->count + 2) * sizeof *list), *text = NULL;
    va_list values;

    va_start(values, format);
    if (list != NULL) a->list = list;
    if (list == NULL || vasprintf(&text, format, values) < 0)
        a->failed = true;
    else
        a->list[a->count++] = text;
    va_end(values);
    if (a->list != NULL) a->list[a->count] = NULL;
    assert(a->failed || a->count > 0);
}

void rp_argument_list_deinit(rp_argument_list *a)
{
    for (size_t i = 0; i < a->count; i++) free(a->list[i]);
    free((void *)a->list);
    *a = (rp_argument_list){0};
}

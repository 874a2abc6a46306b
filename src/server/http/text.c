/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes the digits before `end` and returns the first. */
static char *digits_of(uint64_t number, char *end)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

void rp_put_whole(rp_buf *out, uint64_t number)
{
    char text[20], *digits = digits_of(number, text + sizeof text);

    rp_buf_append(out, digits, (size_t)(text + sizeof text - digits));
}

/* A fast path: most numbers on the pages are whole. */
static void whole_text(double number, char text[RP_NUMBER_TEXT_BYTES])
{
    char *end = text + RP_NUMBER_TEXT_BYTES - 1, *start;

    assert(number == floor(number) && fabs(number) < 1e15); /* 15 digits and a sign fit */
    *end = '\0';
    start = digits_of((uint64_t)fabs(number), end);
    if (number < 0) *--start = '-';
    memmove(text, start, (size_t)(end - start) + 1);
}

char *rp_number_text(double number, char text[RP_NUMBER_TEXT_BYTES])
{
    char *comma;

    assert(isfinite(number));
    if (number == floor(number) && fabs(number) < 1e15) {
        whole_text(number, text);
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, RP_NUMBER_TEXT_BYTES, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    comma = strchr(text, ',');
    if (comma != NULL) *comma = '.';
    return text;
}

static void append_part(void *out, const char *part, size_t size)
{
    rp_buf_append(out, part, size);
}

void rp_put_spelt(rp_buf *out, const char *text, rp_spelling how)
{
    rp_spell_text(text, strlen(text), how, append_part, out);
}

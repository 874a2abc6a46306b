/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/json_out.h"

#include <math.h>

#include "server/http/text.h"

void rp_out_string(rp_buf *out, const char *text)
{
    if (text == NULL) {
        rp_buf_text(out, "null");
        return;
    }
    rp_buf_text(out, "\"");
    rp_put_spelt(out, text, RP_SPELL_JSON);
    rp_buf_text(out, "\"");
}

void rp_out_double(rp_buf *out, double number)
{
    char text[RP_NUMBER_TEXT_BYTES];

    rp_buf_text(out, isfinite(number) ? rp_number_text(number, text) : "null");
}

/* Writes a key and its colon, with a comma before them unless the key is the first of its
 * object. */
void rp_out_key(rp_buf *out, const char *name)
{
    assert(name != NULL && strpbrk(name, "\"\\") == NULL); /* needs no escape */
    uint8_t last = out->size > 0 ? out->data[out->size - 1] : '{';

    rp_buf_text(out, last == '{' ? "\"" : ",\"");
    rp_buf_text(out, name);
    rp_buf_text(out, "\":");
}

void rp_out_text(rp_buf *out, const char *name, const char *text)
{
    rp_out_key(out, name);
    rp_out_string(out, text);
}

void rp_out_number(rp_buf *out, const char *name, double number)
{
    rp_out_key(out, name);
    rp_out_double(out, number);
}

void rp_out_whole(rp_buf *out, const char *name, int64_t number)
{
    rp_out_key(out, name);
    if (number < 0) rp_buf_text(out, "-");
    rp_put_whole(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void rp_out_count(rp_buf *out, const char *name, uint64_t number)
{
    rp_out_key(out, name);
    rp_put_whole(out, number);
}

void rp_out_bool(rp_buf *out, const char *name, bool yes)
{
    rp_out_key(out, name);
    rp_buf_text(out, yes ? "true" : "false");
}

void rp_out_seconds(rp_buf *out, const char *name, int64_t ns)
{
    rp_out_number(out, name, (double)ns / 1e9);
}

void rp_out_open(rp_buf *out, const char *name)
{
    rp_out_key(out, name);
    rp_buf_text(out, "{");
}

void rp_out_close(rp_buf *out)
{
    rp_buf_text(out, "}");
}

void rp_out_null(rp_buf *out, const char *name)
{
    rp_out_key(out, name);
    rp_buf_text(out, "null");
}

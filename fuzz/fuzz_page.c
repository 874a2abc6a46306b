/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an HTTP request: the first byte of the input selects the method, the path ends at the
 * first newline, and the rest is the body. Names of the path must be the same after they were
 * escaped and read again. The body is read as JSON of any shape, and as the body of each
 * change. */
#include <math.h>

#include "fuzz.h"
#include "server/http/action.h"
#include "server/http/body_json.h"

static void check_name(const rp_ask_name *name)
{
    char escaped[3 * RP_ASK_NAME_BYTES];
    rp_ask_name again;

    fuzz_check(name->size > 0 && name->size <= RP_ASK_NAME_BYTES);
    fuzz_check(strlen(name->text) == name->size);
    for (size_t i = 0; i < name->size; i++) {
        static const char digits[] = "0123456789abcdef";

        escaped[3 * i] = '%';
        escaped[3 * i + 1] = digits[(uint8_t)name->text[i] >> 4];
        escaped[3 * i + 2] = digits[name->text[i] & 15];
    }
    fuzz_check(rp_route_decode((rp_string){escaped, 3 * name->size}, &again));
    fuzz_check(again.size == name->size && memcmp(again.text, name->text, name->size) == 0);
}

static void check_path(const char *method, rp_string path)
{
    rp_page_ask ask, again;
    const char *allow = NULL;
    size_t count;
    const rp_route *routes = rp_routes(&count);
    rp_route_found found = rp_route_find(routes, count, method, path, &ask, &allow);

    if (found == RP_ROUTE_NO_METHOD) fuzz_check(allow != NULL);
    if (found != RP_ROUTE_FOUND) return;
    fuzz_check(ask.route >= routes && ask.route < routes + count);
    for (size_t i = 0; i < RP_ASK_NAMES; i++)
        if (ask.names[i].size > 0) check_name(&ask.names[i]);
    fuzz_check(rp_route_find(routes, count, method, path, &again, &allow) == RP_ROUTE_FOUND);
    fuzz_check(rp_route_is_same(&ask, &again));
}

/* Reads a value of any kind, in the way that its first byte suggests. */
static void read_value(rp_body *in)
{
    rp_ask_name text;
    double number;
    int64_t whole;
    bool yes;
    rp_body before = *in;

    if (in->at == in->end) return;
    switch (*in->at) {
    case '{':
        (void)rp_body_open(in, '{');
        while (rp_body_next_key(in, &text)) read_value(in);
        break;
    case '[':
        (void)rp_body_open(in, '[');
        while (rp_body_next(in)) read_value(in);
        break;
    case '"':
        if (rp_body_text(in, &text)) check_name(&text);
        break;
    case 't':
    case 'f': (void)rp_body_bool(in, &yes); break;
    case 'n':
        if (!rp_body_null(in)) (void)rp_body_skip(in);
        break;
    default:
        if (rp_body_whole(in, &whole)) {
            fuzz_check(rp_body_number(&before, &number));
            fuzz_check(fabs(number - (double)whole) <= fabs(number) * 1e-15);
        } else {
            *in = before;
            if (rp_body_number(in, &number)) fuzz_check(isfinite(number));
        }
    }
}

static void check_body(const uint8_t *data, size_t size)
{
    rp_action action = {.kind = RP_ACTION_ALTER};
    rp_body read, skipped;
    rp_status st;

    rp_body_init(&read, data, size);
    rp_body_init(&skipped, data, size);
    read_value(&read);
    fuzz_check(read.at >= read.start && read.at <= read.end && read.depth <= RP_BODY_DEPTH);
    (void)rp_body_skip(&skipped);
    /* What can be read can be skipped; long texts and large numbers are only skipped. */
    if (size > 0 && rp_body_end(&read)) fuzz_check(rp_body_end(&skipped));
    fuzz_check(skipped.what == NULL || skipped.byte <= size);
    st = rp_action_read_sides(data, size, &action, NULL);
    fuzz_check(st == RP_OK || st == RP_INVALID);
    if (st == RP_OK) fuzz_check(action.sides >= 1 && action.sides <= 3);
    st = rp_action_read_alter(data, size, &action, NULL);
    fuzz_check(st == RP_OK || st == RP_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT"};
    fuzz_input in = {data, data + size};
    const char *method = methods[fuzz_byte(&in) % 4];
    size_t left = fuzz_left(&in);
    const uint8_t *end = left > 0 ? memchr(in.at, '\n', left) : NULL;
    size_t path = end != NULL ? (size_t)(end - in.at) : left;

    check_path(method, (rp_string){(const char *)in.at, path});
    if (end != NULL) check_body(end + 1, left - path - 1);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/h2/grpc.h"

#include <assert.h>
#include <stdio.h>

#include "util/printable.h"

enum { MOST_TIME = 99999999 }; /* eight digits */

static int64_t unit_ns(uint8_t unit)
{
    switch (unit) {
    case 'H': return 3600 * INT64_C(1000000000);
    case 'M': return 60 * INT64_C(1000000000);
    case 'S': return INT64_C(1000000000);
    case 'm': return 1000000;
    case 'u': return 1000;
    case 'n': return 1;
    default: return 0;
    }
}

bool rp_grpc_parse_timeout(const uint8_t *text, size_t size, int64_t *timeout_ns)
{
    int64_t value = 0, unit;

    if (size < 2 || size > 9) return false;
    for (size_t i = 0; i + 1 < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = 10 * value + (text[i] - '0');
    }
    unit = unit_ns(text[size - 1]);
    if (unit == 0) return false;
    *timeout_ns = value > INT64_MAX / unit ? INT64_MAX : value * unit;
    return true;
}

void rp_grpc_format_timeout(int64_t timeout_ns, char out[RP_GRPC_TIMEOUT_BYTES])
{
    static const char units[] = "numSMH";
    int64_t value = timeout_ns > 0 ? timeout_ns : 1;
    size_t i = 0;

    while (value > MOST_TIME && units[i + 1] != '\0') {
        int64_t unit = unit_ns((uint8_t)units[++i]);
        value = timeout_ns / unit + (timeout_ns % unit != 0);
    }
    assert(value >= 1);
    (void)snprintf(out, RP_GRPC_TIMEOUT_BYTES, "%d%c", (int)value, units[i]);
}

size_t rp_grpc_encode_message(const char *text, char *out, size_t capacity)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;

    for (; *text != '\0'; text++) {
        uint8_t c = (uint8_t)*text;
        bool plain = c >= 0x20 && c <= 0x7e && c != '%';
        if (length + (plain ? 1 : 3) >= capacity) break;
        if (plain) {
            out[length++] = (char)c;
        } else {
            out[length++] = '%';
            out[length++] = digits[c >> 4];
            out[length++] = digits[c & 15];
        }
    }
    assert(length < capacity);
    out[length] = '\0';
    return length;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

size_t rp_grpc_decode_message(const uint8_t *value, size_t size, char *out, size_t capacity)
{
    size_t length = 0, i = 0;

    while (i < size && length + 1 < capacity) {
        int high = -1, low = -1;
        if (value[i] == '%' && size - i > 2) {
            high = hex_digit(value[i + 1]);
            low = hex_digit(value[i + 2]);
        }
        if (high >= 0 && low >= 0 && high + low > 0) {
            out[length++] = (char)(high << 4 | low);
            i += 3;
        } else {
            out[length++] = (char)value[i++];
        }
    }
    if (i < size) length = rp_utf8_whole(out, length);
    assert(length < capacity);
    out[length] = '\0';
    return length;
}

rp_status rp_grpc_parse_status(const uint8_t *value, size_t size)
{
    int code = 0;

    if (size < 1 || size > 2) return RP_INTERNAL;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9') return RP_INTERNAL;
        code = 10 * code + (value[i] - '0');
    }
    switch (code) {
    case RP_OK:
    case RP_CANCELLED:
    case RP_INVALID:
    case RP_DEADLINE:
    case RP_NOT_FOUND:
    case RP_EXISTS:
    case RP_DENIED:
    case RP_NO_RESOURCE:
    case RP_PRECONDITION:
    case RP_UNIMPLEMENTED:
    case RP_INTERNAL:
    case RP_UNAVAILABLE:
    case RP_CORRUPT:
    case RP_UNAUTHENTICATED: return (rp_status)code;
    case 10: return RP_PRECONDITION; /* ABORTED */
    case 11: return RP_INVALID;      /* OUT_OF_RANGE */
    default: return RP_INTERNAL;
    }
}

rp_status rp_grpc_status_of_http(int http_status)
{
    switch (http_status) {
    case 401: return RP_UNAUTHENTICATED;
    case 403: return RP_DENIED;
    case 404: return RP_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return RP_UNAVAILABLE;
    default: return RP_INTERNAL;
    }
}

rp_status rp_grpc_status_of_reset(uint32_t code)
{
    switch (code) {                  /* RFC 9113, 7 */
    case 0x7: return RP_UNAVAILABLE; /* REFUSED_STREAM */
    case 0x8: return RP_CANCELLED;   /* CANCEL */
    case 0xb: return RP_NO_RESOURCE; /* ENHANCE_YOUR_CALM */
    case 0xc: return RP_DENIED;      /* INADEQUATE_SECURITY */
    default: return RP_INTERNAL;
    }
}

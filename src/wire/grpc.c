/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc.h"

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
    out[length] = '\0';
    return length;
}

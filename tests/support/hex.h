/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that tests write as hex. Spaces are ignored. */
#ifndef RP_TEST_HEX_H
#define RP_TEST_HEX_H

#include <ctype.h>

#include "support/unit.h"
#include "util/buf.h"

static inline uint8_t rp_test_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Converts hex to bytes, at most `capacity`. Returns their number. */
static inline size_t rp_test_hex(const char *text, uint8_t *out, size_t capacity)
{
    size_t digits = 0;

    for (; *text != '\0'; text++) {
        if (isspace((unsigned char)*text)) continue;
        assert_true(isxdigit((unsigned char)*text) && digits / 2 < capacity);
        if (digits % 2 == 0) out[digits / 2] = 0;
        out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | rp_test_digit(*text));
        digits++;
    }
    assert_int_equal(digits % 2, 0);
    return digits / 2;
}

/* Bytes of a literal, valid in the function that declares it. */
typedef struct rp_test_bytes {
    uint8_t data[4096];
    size_t size;
} rp_test_bytes;

static inline rp_test_bytes rp_test_bytes_of(const char *hex)
{
    rp_test_bytes bytes;
    bytes.size = rp_test_hex(hex, bytes.data, sizeof bytes.data);
    return bytes;
}

/* Checks that the buffer has exactly these bytes, and clears it. */
static inline void rp_test_wrote(rp_buf *buf, const char *hex, const char *file, int line)
{
    rp_test_bytes expected = rp_test_bytes_of(hex);

    if (!buf->bad && buf->size == expected.size &&
        (buf->size == 0 || memcmp(buf->data, expected.data, buf->size) == 0)) {
        rp_buf_clear(buf);
        return;
    }
    print_error("wrote ");
    for (size_t i = 0; i < buf->size; i++) print_error("%02x", buf->data[i]);
    print_error("\n");
    _fail(file, line);
}
#define assert_wrote(buf, hex) rp_test_wrote((buf), (hex), __FILE__, __LINE__)

#endif

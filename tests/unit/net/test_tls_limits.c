/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of handshake messages, without OpenSSL. */
#include "net/tls_limits.h"

#include <string.h>

#include "support/unit.h"

enum { MOST = 40 << 10 };

typedef struct bytes {
    size_t size;
    uint8_t at[MOST];
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
    assert_true(b->size + size <= MOST);
    memcpy(b->at + b->size, data, size);
    b->size += size;
}

static void put_number(bytes *b, size_t number, int count)
{
    while (count-- > 0) put(b, &(uint8_t){(uint8_t)(number >> 8 * count)}, 1);
}

/* Puts everything after `from` into an element. */
static void wrap(bytes *b, size_t from, int tag)
{
    size_t size = b->size - from;
    uint8_t head[4] = {(uint8_t)tag, (uint8_t)size};
    size_t n = 2;

    if (size > 0xff) {
        head[1] = 0x82;
        head[2] = (uint8_t)(size >> 8);
        head[3] = (uint8_t)size;
        n = 4;
    } else if (size > 0x7f) {
        head[1] = 0x81;
        head[2] = (uint8_t)size;
        n = 3;
    }
    assert_true(b->size + n <= MOST);
    memmove(b->at + from + n, b->at + from, size);
    memcpy(b->at + from, head, n);
    b->size += n;
}

static void put_element(bytes *b, int tag, const void *data, size_t size)
{
    size_t from = b->size;

    put(b, data, size);
    wrap(b, from, tag);
}

/* A public key: its algorithm, the parameters of that and the key itself, each in DER. */
typedef struct key {
    const char *kind;
    size_t kind_bytes;
    const char *parameters;
    size_t parameter_bytes;
    size_t modulus_bytes, exponent_bytes; /* an RSA key's; 0: another kind of key */
} key;

#define KEY(kind, parameters)                                                                  \
    {                                                                                          \
        kind, sizeof(kind) - 1, parameters, sizeof(parameters) - 1, 0, 0                       \
    }
#define RSA "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"
#define RSA_KEY(modulus, exponent)                                                             \
    {                                                                                          \
        RSA, sizeof RSA - 1, "\x05\x00", 2, modulus, exponent                                  \
    }
#define EC "\x2a\x86\x48\xce\x3d\x02\x01"
#define P256 "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"

static const key p256 = KEY(EC, P256);

static void put_key(bytes *b, const key *k)
{
    static const uint8_t number[2000] = {[0] = 0x55};
    size_t from = b->size, inner;

    put_element(b, 0x06, k->kind, k->kind_bytes);
    put(b, k->parameters, k->parameter_bytes);
    wrap(b, from, 0x30);
    inner = b->size;
    put(b, "", 1); /* no unused bits */
    if (k->modulus_bytes > 0) {
        size_t sequence = b->size;
        put_element(b, 0x02, number, k->modulus_bytes);
        put_element(b, 0x02, number, k->exponent_bytes);
        wrap(b, sequence, 0x30);
    } else {
        put(b, number, 33);
    }
    wrap(b, inner, 0x03);
    wrap(b, from, 0x30);
}

/* A certificate of version 3, or of version 1, which has no field for it. */
static void put_certificate(bytes *b, const key *k, bool is_v3, size_t subject_bytes)
{
    static const uint8_t zeros[MOST];
    size_t from = b->size;

    if (is_v3) put(b, "\xa0\x03\x02\x01\x02", 5);
    put_element(b, 0x02, "\x11", 1);
    put_element(b, 0x30, "", 0);
    put_element(b, 0x30, "", 0);
    put_element(b, 0x30, "", 0);
    put_element(b, 0x30, zeros, subject_bytes);
    put_key(b, k);
    wrap(b, from, 0x30);
    put_element(b, 0x30, "", 0);
    put_element(b, 0x03, "", 1);
    wrap(b, from, 0x30);
}

/* A Certificate message with `count` certificates. */
static void make_chain(bytes *b, const key *k, int count, size_t subject_bytes, bool is_tls13)
{
    static bytes one;
    size_t entry;

    one.size = b->size = 0;
    put_certificate(&one, k, count % 2 == 1, subject_bytes);
    entry = 3 + one.size + (is_tls13 ? 2 : 0);
    if (is_tls13) put_number(b, 0, 1);
    put_number(b, entry * (size_t)count, 3);
    for (int i = 0; i < count; i++) {
        put_number(b, one.size, 3);
        put(b, one.at, one.size);
        if (is_tls13) put_number(b, 0, 2);
    }
}

static void check(const bytes *b, bool is_tls13, const char *refusal)
{
    const char *why = rp_tls_check_chain(b->at, b->size, is_tls13);

    if (refusal == NULL) {
        assert_null(why);
    } else {
        assert_non_null(why);
        assert_non_null(strstr(why, refusal));
    }
}

static void keys_of_costly_or_unknown_kinds_are_refused(void **state)
{
    static const struct {
        key key;
        const char *refusal; /* a part of it; NULL: accepted */
    } cases[] = {
        {RSA_KEY(256, 3), NULL},
        {RSA_KEY(1024, 8), NULL},
        {RSA_KEY(1025, 3), "8192"},
        {RSA_KEY(256, 9), "exponent"},
        {KEY("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", ""), "malformed"}, /* PSS, without a key */
        {KEY("\x2b\x65\x70", ""), NULL},                                /* Ed25519 */
        {KEY("\x2b\x65\x71", ""), NULL},                                /* Ed448 */
        {KEY(EC, P256), NULL},
        {KEY(EC, "\x06\x05\x2b\x81\x04\x00\x22"), NULL},           /* P-384 */
        {KEY(EC, "\x06\x05\x2b\x81\x04\x00\x23"), NULL},           /* P-521 */
        {KEY(EC, "\x06\x05\x2b\x81\x04\x00\x0a"), "kind"},         /* secp256k1 */
        {KEY(EC, "\x06\x05\x2b\x81\x04\x00\x27"), "kind"},         /* sect571r1 */
        {KEY(EC, "\x30\x03\x02\x01\x01"), "not named"},            /* explicit parameters */
        {KEY(EC, "\x05\x00"), "not named"},                        /* those of the issuer */
        {KEY(EC, ""), "not named"},                                /* none at all */
        {KEY("\x2a\x86\x48\xce\x38\x04\x01", "\x05\x00"), "kind"}, /* DSA */
        {KEY("\x2a\x86\x48\x86\xf7\x0d\x01\x03\x01", ""), "kind"}, /* Diffie-Hellman */
        {KEY("\x2b\x65\x6e", ""), "kind"},                         /* X25519, signs nothing */
        {KEY("", ""), "kind"},
    };
    static bytes b;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases) * 2; i++) {
        make_chain(&b, &cases[i / 2].key, 1, 10, i % 2 != 0);
        check(&b, i % 2 != 0, cases[i / 2].refusal);
    }
}

static void long_chains_are_refused(void **state)
{
    static const struct {
        int count;
        size_t subject_bytes;
        const char *refusal;
    } cases[] = {
        {0, 0, NULL},    {1, 0, NULL},     {10, 0, NULL},        {11, 0, "10 cert"},
        {4, 3500, NULL}, {1, 16000, NULL}, {1, 16400, "16 KiB"}, {5, 3500, "16 KiB"},
    };
    static bytes b;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases) * 2; i++) {
        make_chain(&b, &p256, cases[i / 2].count, cases[i / 2].subject_bytes, i % 2 != 0);
        check(&b, i % 2 != 0, cases[i / 2].refusal);
    }
}

/* Also under the address sanitizer: reads no byte after the end. */
static void cut_chains_are_refused(void **state)
{
    static bytes b;

    (void)state;
    make_chain(&b, &(key)RSA_KEY(256, 3), 2, 200, true);
    check(&b, true, NULL);
    check(&b, false, "malformed");
    for (size_t n = 0; n < b.size; n++) {
        uint8_t *cut = malloc(n + 1);

        assert_non_null(cut);
        memcpy(cut + 1, b.at, n);
        assert_non_null(rp_tls_check_chain(cut + 1, n, true));
        free(cut);
    }
}

static void other_forms_of_lengths_and_tags_are_refused(void **state)
{
    static const char *const starts[] = {
        "\x30\x80",                 /* no length */
        "\x30\x81\x05",             /* not the shortest form */
        "\x30\x82\x00\x90",         /* the same */
        "\x30\x84\x01\x01\x01\x01", /* 16 MiB */
        "\x30\xff",
        "\x31\x10",
        "\x1f\x30\x10",
        "\x24\x10",
    };
    static bytes b;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        b.size = 0;
        put_number(&b, 3 + 600, 3);
        put_number(&b, 600, 3);
        put(&b, starts[i], strlen(starts[i]));
        memset(b.at + b.size, 0, 606 - b.size);
        b.size = 606;
        check(&b, false, "malformed");
    }
}

/* Feeds the bytes in pieces of `step`. Returns the number of bytes until the refusal, or 0. */
static size_t scan_in_steps(const bytes *b, size_t step, rp_tls_hello_scan *scan)
{
    *scan = (rp_tls_hello_scan){0};
    for (size_t i = 0; i < b->size; i += step) {
        size_t n = b->size - i < step ? b->size - i : step;
        if (!rp_tls_scan_hello(scan, b->at + i, n)) return i + n;
    }
    return 0;
}

/* A ClientHello with this length, in records of `record` bytes each. */
static void put_hello(bytes *b, size_t length, size_t record)
{
    uint8_t message[64] = {1, (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length};
    size_t size = 4 + (length < 60 ? length : 60); /* not all of a long one */

    for (size_t i = 0; i < size; i += record) {
        size_t n = size - i < record ? size - i : record;
        put(b, "\x16\x03\x01", 3);
        put_number(b, n, 2);
        put(b, message + i, n);
    }
}

static void long_client_hello_is_refused_with_its_header(void **state)
{
    static const size_t records[] = {1, 2, 3, 4, 5, 64}, steps[] = {1, 2, 7, 1000};
    static bytes b;
    rp_tls_hello_scan scan;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(records) * COUNT_OF(steps); i++) {
        size_t record = records[i / COUNT_OF(steps)], step = steps[i % COUNT_OF(steps)];

        b.size = 0;
        put_hello(&b, RP_TLS_HELLO_BYTES, record);
        assert_int_equal(scan_in_steps(&b, step, &scan), 0);
        assert_false(scan.is_over);
        b.size = 0;
        put_hello(&b, RP_TLS_HELLO_BYTES + 1, record);
        assert_true(scan_in_steps(&b, step, &scan) > 0);
        if (step == 1 && record >= 4) assert_int_equal(scan_in_steps(&b, 1, &scan), 9);
    }
}

static void second_client_hello_is_checked_and_later_messages_are_not(void **state)
{
    static const char change_cipher[] = "\x14\x03\x03\x00\x01\x01";
    static bytes b;
    rp_tls_hello_scan scan;

    (void)state;
    for (size_t step = 1; step < 100; step++) {
        b.size = 0;
        put_hello(&b, 30, 64);
        put(&b, change_cipher, 6);
        put_hello(&b, 0xffffff, 64);
        assert_true(scan_in_steps(&b, step, &scan) > 0);

        b.size = 0; /* ClientKeyExchange: what follows is encrypted later on */
        put_hello(&b, 30, 64);
        put(&b, "\x16\x03\x03\x00\x05\x10\x00\x00\x01\x00", 10);
        put_hello(&b, 0xffffff, 64);
        assert_int_equal(scan_in_steps(&b, step, &scan), 0);
        assert_true(scan.is_over);

        b.size = 0; /* an encrypted record of TLS 1.3 */
        put_hello(&b, 30, 64);
        put(&b, "\x17\x03\x03\x00\x02\x01\x00", 7);
        put_hello(&b, 0xffffff, 64);
        assert_int_equal(scan_in_steps(&b, step, &scan), 0);
        assert_true(scan.is_over);
    }
}

RP_TESTS(tls_limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_costly_or_unknown_kinds_are_refused),
        cmocka_unit_test(long_chains_are_refused),
        cmocka_unit_test(cut_chains_are_refused),
        cmocka_unit_test(other_forms_of_lengths_and_tags_are_refused),
        cmocka_unit_test(long_client_hello_is_refused_with_its_header),
        cmocka_unit_test(second_client_hello_is_checked_and_later_messages_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of certificates goes only as far as the public key. It is stricter than OpenSSL's:
 * each element must have the expected tag, and a definite length in its shortest form. So both
 * find the public key in the same place. */
#include "net/tls_limits.h"

#include <assert.h>
#include <string.h>

enum {
    RECORD_CHANGE_CIPHER = 20,
    RECORD_HANDSHAKE = 22,
    MESSAGE_CLIENT_HELLO = 1,
    DER_INTEGER = 0x02,
    DER_BITS = 0x03,
    DER_OID = 0x06,
    DER_SEQUENCE = 0x30,
    DER_VERSION = 0xa0, /* the optional first field of a certificate */
};

static const char malformed[] = "a certificate is malformed";
static const char bad_key[] = "a certificate's key is of a kind that is not supported";

static size_t big_endian(const uint8_t *at, size_t bytes)
{
    size_t number = 0;

    while (bytes-- > 0) number = number << 8 | *at++;
    return number;
}

bool rp_tls_scan_hello(rp_tls_hello_scan *scan, const uint8_t *data, size_t size)
{
    for (size_t i = 0, n; i < size && !scan->is_over; i += n) {
        n = 1;
        if (scan->record_left == 0) {
            scan->record[scan->record_have++] = data[i];
            if (scan->record_have < sizeof scan->record) continue;
            scan->record_have = 0;
            scan->record_left = big_endian(scan->record + 3, 2);
            scan->is_over =
                scan->record[0] < RECORD_CHANGE_CIPHER || scan->record[0] > RECORD_HANDSHAKE;
            continue;
        }
        if (scan->record[0] == RECORD_HANDSHAKE && scan->message_left == 0) {
            scan->message[scan->message_have++] = data[i];
            if (scan->message_have == sizeof scan->message) {
                scan->message_have = 0;
                scan->message_left = big_endian(scan->message + 1, 3);
                scan->is_over = scan->message[0] != MESSAGE_CLIENT_HELLO;
                if (!scan->is_over && scan->message_left > RP_TLS_HELLO_BYTES) return false;
            }
        } else {
            n = size - i < scan->record_left ? size - i : scan->record_left;
            if (scan->record[0] == RECORD_HANDSHAKE) {
                if (n > scan->message_left) n = scan->message_left;
                scan->message_left -= n;
            }
        }
        assert(n > 0 && n <= scan->record_left);
        scan->record_left -= n;
    }
    return true;
}

/* Bytes that are not parsed yet. */
typedef struct span {
    const uint8_t *at;
    size_t left;
} span;

static bool take(span *from, size_t bytes, span *out)
{
    if (bytes > from->left) return false;
    *out = (span){from->at, bytes};
    from->at += bytes;
    from->left -= bytes;
    return true;
}

/* Takes bytes whose number is in front of them, in `length_bytes`. */
static bool take_prefixed(span *from, size_t length_bytes, span *out)
{
    span length;

    return take(from, length_bytes, &length) &&
           take(from, big_endian(length.at, length_bytes), out);
}

/* Takes an element of DER with this tag, and returns its contents. */
static bool take_element(span *from, uint8_t tag, span *contents)
{
    span head, length;
    size_t bytes, number;

    if (!take(from, 2, &head) || head.at[0] != tag) return false;
    if (head.at[1] < 0x80) return take(from, head.at[1], contents);
    bytes = head.at[1] & 0x7f;
    if (bytes < 1 || bytes > 3 || !take(from, bytes, &length)) return false;
    number = big_endian(length.at, bytes);
    if (number < 0x80 || length.at[0] == 0) return false; /* not the shortest form */
    return take(from, number, contents);
}

static bool equals(span s, const char *text, size_t bytes)
{
    return s.left == bytes && memcmp(s.at, text, bytes) == 0;
}

#define EQUALS(s, text) equals(s, text, sizeof(text) - 1)

/* Number of bits of a number that is not negative. */
static size_t bits_of(span number)
{
    while (number.left > 0 && number.at[0] == 0) {
        number.at++;
        number.left--;
    }
    return number.left * 8;
}

static const char *check_rsa(span key)
{
    span sequence, modulus, exponent;

    if (key.left < 1) return malformed;
    key.at++; /* the number of unused bits */
    key.left--;
    if (!take_element(&key, DER_SEQUENCE, &sequence) ||
        !take_element(&sequence, DER_INTEGER, &modulus) ||
        !take_element(&sequence, DER_INTEGER, &exponent))
        return malformed;
    if (bits_of(modulus) > RP_TLS_RSA_BITS)
        return "a certificate's RSA key is larger than 8192 bits";
    if (bits_of(exponent) > RP_TLS_RSA_EXPONENT_BYTES * 8)
        return "a certificate's RSA exponent is larger than 64 bits";
    return NULL;
}

static const char *check_key(span info)
{
    span algorithm, kind, curve, key;

    if (!take_element(&info, DER_SEQUENCE, &algorithm) ||
        !take_element(&algorithm, DER_OID, &kind) || !take_element(&info, DER_BITS, &key))
        return malformed;
    if (EQUALS(kind, "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01") || /* rsaEncryption */
        EQUALS(kind, "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a"))   /* rsassaPss */
        return check_rsa(key);
    if (EQUALS(kind, "\x2b\x65\x70") || EQUALS(kind, "\x2b\x65\x71")) /* Ed25519, Ed448 */
        return NULL;
    if (!EQUALS(kind, "\x2a\x86\x48\xce\x3d\x02\x01")) return bad_key; /* ecPublicKey */
    if (!take_element(&algorithm, DER_OID, &curve))
        return "a certificate's elliptic curve is not named";
    if (EQUALS(curve, "\x2a\x86\x48\xce\x3d\x03\x01\x07") || /* P-256 */
        EQUALS(curve, "\x2b\x81\x04\x00\x22") ||             /* P-384 */
        EQUALS(curve, "\x2b\x81\x04\x00\x23"))               /* P-521 */
        return NULL;
    return bad_key;
}

static const char *check_certificate(span certificate)
{
    span all, fields, field;

    if (!take_element(&certificate, DER_SEQUENCE, &all) ||
        !take_element(&all, DER_SEQUENCE, &fields))
        return malformed;
    if (fields.left > 0 && fields.at[0] == DER_VERSION &&
        !take_element(&fields, DER_VERSION, &field))
        return malformed;
    /* serial number; algorithm, issuer, validity, subject */
    if (!take_element(&fields, DER_INTEGER, &field)) return malformed;
    for (int i = 0; i < 4; i++)
        if (!take_element(&fields, DER_SEQUENCE, &field)) return malformed;
    if (!take_element(&fields, DER_SEQUENCE, &field)) return malformed;
    return check_key(field);
}

const char *rp_tls_check_chain(const uint8_t *body, size_t size, bool is_tls13)
{
    span message = {body, size}, list, certificate, ignored;

    if (size > RP_TLS_CHAIN_BYTES) return "the certificates have more than 16 KiB";
    if (is_tls13 && !take_prefixed(&message, 1, &ignored)) return malformed;
    if (!take_prefixed(&message, 3, &list) || message.left > 0) return malformed;
    for (int i = 0; list.left > 0; i++) {
        const char *why;

        if (i == RP_TLS_CHAIN_CERTIFICATES) return "there are more than 10 certificates";
        if (!take_prefixed(&list, 3, &certificate)) return malformed;
        if (is_tls13 && !take_prefixed(&list, 2, &ignored)) return malformed;
        why = check_certificate(certificate);
        if (why != NULL) return why;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the handshake messages of a TLS peer. They are checked before OpenSSL parses the
 * message, since OpenSSL works and allocates for a message before it knows who has sent it.
 *
 * A ClientHello may have 128 KiB. OpenSSL allocates its declared length when the first bytes
 * have arrived. A Certificate message may have many certificates. OpenSSL decodes the key of
 * each one before it verifies any signature, and for an elliptic curve with explicit parameters
 * that takes up to half a second.
 *
 * Pure functions over bytes. */
#ifndef RP_NET_TLS_LIMITS_H
#define RP_NET_TLS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_TLS_HELLO_BYTES = 16 << 10, /* size of a ClientHello */
    RP_TLS_CHAIN_BYTES = 16 << 10, /* size of a certificate chain */
    RP_TLS_CHAIN_CERTIFICATES = 10,
    RP_TLS_RSA_BITS = 8192,
    RP_TLS_RSA_EXPONENT_BYTES = 8,
};

/* The position in the bytes that a client sends. Zero-initialise it. */
typedef struct rp_tls_hello_scan {
    uint8_t record[5];   /* the header of the record */
    uint8_t message[4];  /* the header of the message */
    size_t record_have;  /* bytes of the record's header that have arrived */
    size_t message_have; /* the same of the message's header */
    size_t record_left;  /* bytes of the record that have not arrived */
    size_t message_left; /* the same of the message */
    bool is_over; /* the client has sent something other than a ClientHello; nothing more is
                   * checked */
} rp_tls_hello_scan;

/* Takes the next bytes from the client. False if a ClientHello is longer than
 * RP_TLS_HELLO_BYTES; the answer is known with the last byte of the message's header. */
bool rp_tls_scan_hello(rp_tls_hello_scan *scan, const uint8_t *data, size_t size);

/* Checks the body of a Certificate message. `is_tls13`: its format is that of TLS 1.3. Returns
 * NULL, or the reason for which the message is refused: too many bytes or certificates, a key
 * of another kind than RSA, Ed25519, Ed448 and the curves P-256, P-384 and P-521, an RSA key
 * that is too large, or bytes that are not a list of certificates in DER. */
const char *rp_tls_check_chain(const uint8_t *body, size_t size, bool is_tls13);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the handshake messages of a TLS peer. They are checked before OpenSSL parses a
 * message, since OpenSSL does work and allocates memory for a message before it has
 * authenticated the sender.
 *
 * OpenSSL accepts a ClientHello of up to 128 KiB, and allocates its declared length when the
 * first bytes have arrived. OpenSSL also accepts a Certificate message with many certificates.
 * OpenSSL decodes the key of each certificate before it verifies any signature; for an elliptic
 * curve with explicit parameters this takes up to half a second.
 *
 * The results of the functions depend only on their arguments. */
#ifndef RP_NET_TLS_LIMITS_H
#define RP_NET_TLS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_TLS_HELLO_BYTES = 16 << 10, /* the most bytes of a ClientHello */
    RP_TLS_CHAIN_BYTES = 16 << 10, /* the most bytes of a certificate chain */
    RP_TLS_CHAIN_CERTIFICATES = 10,
    RP_TLS_RSA_BITS = 8192,
    RP_TLS_RSA_EXPONENT_BYTES = 8,
};

/* The state of a scan of the bytes that a client sends. TLS records carry the handshake
 * messages. Zero-initialise it. */
typedef struct rp_tls_hello_scan {
    uint8_t record[5];   /* the header of the record */
    uint8_t message[4];  /* the header of the message */
    size_t record_have;  /* bytes of the record's header that have arrived */
    size_t message_have; /* bytes of the message's header that have arrived */
    size_t record_left;  /* bytes of the record that have not arrived */
    size_t message_left; /* bytes of the message that have not arrived */
    bool is_over; /* the client has sent something other than a ClientHello, so further bytes
                     are not checked */
} rp_tls_hello_scan;

/* Scans the next bytes from the client. Returns false if a ClientHello is longer than
 * RP_TLS_HELLO_BYTES, as soon as the last byte of the message's header has arrived. */
bool rp_tls_scan_hello(rp_tls_hello_scan *scan, const uint8_t *data, size_t size);

/* Checks the body of a Certificate message. `is_tls13` says that its format is that of TLS 1.3.
 * Returns NULL if it is accepted, otherwise the reason for the refusal: too many bytes or
 * certificates; a key that is not RSA, Ed25519, Ed448, or on one of the curves P-256, P-384 and
 * P-521; an RSA key that is too large; or bytes that are not a list of certificates in DER. */
const char *rp_tls_check_chain(const uint8_t *body, size_t size, bool is_tls13);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the handshake messages of a TLS peer. The first byte of the input selects the check.
 *
 * A Certificate message: if it is accepted, OpenSSL parses its certificates. Each key that
 * OpenSSL finds must be of an accepted kind and size. So both parsers find the same key.
 *
 * The first bytes of a client: the result must not depend on the pieces in which the bytes
 * arrive. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "fuzz.h"
#include "net/tls_limits.h"

static void check_key(EVP_PKEY *key)
{
    char curve[64] = "";

    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448: return;
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS: fuzz_check(EVP_PKEY_get_bits(key) <= RP_TLS_RSA_BITS); return;
    case EVP_PKEY_EC:
        fuzz_check(EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) == 1);
        fuzz_check(strcmp(curve, "prime256v1") == 0 || strcmp(curve, "secp384r1") == 0 ||
                   strcmp(curve, "secp521r1") == 0);
        return;
    default: abort();
    }
}

/* Parses the lengths again, which are known to be valid. */
static void check_keys(const uint8_t *at, const uint8_t *end, bool is_tls13)
{
    int count = 0;

    if (is_tls13) at += 1 + at[0];
    for (at += 3; at < end; count++) {
        size_t size = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        const uint8_t *body = at + 3;
        X509 *certificate = d2i_X509(NULL, &body, (long)size);
        EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;

        if (key != NULL) check_key(key);
        X509_free(certificate);
        ERR_clear_error();
        at += 3 + size;
        if (is_tls13) at += 2 + ((size_t)at[0] << 8 | at[1]);
    }
    fuzz_check(at == end && count <= RP_TLS_CHAIN_CERTIFICATES);
}

static void check_hello(const uint8_t *data, size_t size, size_t step)
{
    rp_tls_hello_scan whole = {0}, pieces = {0};
    bool taken = rp_tls_scan_hello(&whole, data, size), taken_pieces = true;

    for (size_t i = 0; i < size && taken_pieces; i += step)
        taken_pieces = rp_tls_scan_hello(&pieces, data + i, size - i < step ? size - i : step);
    fuzz_check(taken == taken_pieces);
    if (!taken) return;
    fuzz_check(whole.is_over == pieces.is_over);
    fuzz_check(whole.record_left == pieces.record_left);
    fuzz_check(whole.is_over || whole.message_left <= RP_TLS_HELLO_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};
    uint8_t how = fuzz_byte(&in);
    size_t left = fuzz_left(&in);

    if (left > FUZZ_MAX_BYTES) return 0;
    if (how < 2) {
        if (rp_tls_check_chain(in.at, left, how == 1) == NULL)
            check_keys(in.at, in.end, how == 1);
    } else {
        check_hello(in.at, left, how - 1);
    }
    return 0;
}

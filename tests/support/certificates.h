/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests: an authority and the certificates that it signs, as PEM files in a
 * new folder. Keys are on the curve P-256 and made each time. Every failure fails the test. */
#ifndef RP_TEST_CERTIFICATES_H
#define RP_TEST_CERTIFICATES_H

#include <stddef.h>

enum { RP_TEST_PATH_BYTES = 160 };

typedef struct rp_test_certificates {
    char folder[64];
    char ca[RP_TEST_PATH_BYTES];
    struct x509_st *ca_certificate;
    struct evp_pkey_st *ca_key;
    long next_serial;
} rp_test_certificates;

/* The paths of a certificate and its key. */
typedef struct rp_test_identity {
    char certificate[RP_TEST_PATH_BYTES], key[RP_TEST_PATH_BYTES];
} rp_test_identity;

/* Makes the folder and the authority. */
void rp_test_certificates_init(rp_test_certificates *c);
void rp_test_certificates_deinit(rp_test_certificates *c); /* removes the folder */

/* Signs a certificate with the common name `name` (any bytes; NULL: none), valid for
 * "localhost" and 127.0.0.1. It is written to <folder>/<file>.pem and .key. */
rp_test_identity rp_test_issue(rp_test_certificates *c, const char *file, const char *name,
                               size_t name_bytes);

#endif

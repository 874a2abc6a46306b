/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts, which are read from files. Their use: test_link_tls.c. */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "support/certificates.h"
#include "support/unit.h"

typedef struct setting {
    rp_test_certificates certificates;
    rp_test_identity server, other;
    char nonsense[RP_TEST_PATH_BYTES], missing[RP_TEST_PATH_BYTES], locked[RP_TEST_PATH_BYTES];
    char rsa[RP_TEST_PATH_BYTES]; /* a key of another type than that of the certificates */
} setting;

/* The server's key, behind a passphrase. */
static void write_locked_key(const setting *s)
{
    FILE *in = fopen(s->server.key, "r"), *out = fopen(s->locked, "w");
    EVP_PKEY *key;

    assert_non_null(in);
    assert_non_null(out);
    key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
    assert_non_null(key);
    assert_int_equal(
        PEM_write_PKCS8PrivateKey(out, key, EVP_aes_128_cbc(), "word", 4, NULL, NULL), 1);
    EVP_PKEY_free(key);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static void write_rsa_key(const setting *s)
{
    FILE *out = fopen(s->rsa, "w");
    EVP_PKEY *key = EVP_RSA_gen(2048);

    assert_true(out != NULL && key != NULL);
    assert_int_equal(PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL), 1);
    EVP_PKEY_free(key);
    assert_int_equal(fclose(out), 0);
}

static int set_up(void **state)
{
    setting *s = calloc(1, sizeof *s);

    assert_non_null(s);
    rp_test_certificates_init(&s->certificates);
    s->server = rp_test_issue(&s->certificates, "server", "localhost", 9);
    s->other = rp_test_issue(&s->certificates, "other", "other", 5);
    (void)snprintf(s->nonsense, sizeof s->nonsense, "%s/nonsense", s->certificates.folder);
    (void)snprintf(s->missing, sizeof s->missing, "%s/missing", s->certificates.folder);
    (void)snprintf(s->locked, sizeof s->locked, "%s/locked.key", s->certificates.folder);
    FILE *file = fopen(s->nonsense, "w");
    assert_non_null(file);
    assert_true(fputs("neither a certificate nor a key\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(s->rsa, sizeof s->rsa, "%s/rsa.key", s->certificates.folder);
    write_locked_key(s);
    write_rsa_key(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    setting *s = *state;

    rp_test_certificates_deinit(&s->certificates);
    free(s);
    return 0;
}

static rp_tls_files files_of(const setting *s)
{
    return (rp_tls_files){.certificate = s->server.certificate, .key = s->server.key};
}

static void valid_files_are_accepted(void **state)
{
    const setting *s = *state;
    rp_tls_files files = files_of(s);
    rp_tls *tls = NULL;
    rp_error err;

    assert_ok_err(rp_tls_new(rp_allocator_default(), &files, &tls, &err), &err);
    assert_ptr_equal(rp_tls_ref(tls), tls);
    rp_tls_unref(tls);
    rp_tls_unref(tls);
    files.client_ca = s->certificates.ca;
    assert_ok_err(rp_tls_new(rp_allocator_default(), &files, &tls, &err), &err);
    rp_tls_unref(tls);
    files.require_client_certificate = true;
    assert_ok_err(rp_tls_new(rp_allocator_default(), &files, &tls, &err), &err);
    rp_tls_unref(tls);
    rp_tls_unref(NULL);
}

static void invalid_files_are_named(void **state)
{
    const setting *s = *state;
    const char *good = s->server.certificate, *key = s->server.key;
    const struct {
        rp_tls_files files;
        rp_status status;
        const char *part;
    } cases[] = {
        {{.certificate = s->missing, .key = key}, RP_NOT_FOUND, s->missing},
        {{.certificate = good, .key = s->missing}, RP_NOT_FOUND, s->missing},
        {{good, key, s->missing, false}, RP_NOT_FOUND, s->missing},
        {{.certificate = s->nonsense, .key = key}, RP_INVALID, s->nonsense},
        {{.certificate = good, .key = s->nonsense},
         RP_INVALID,
         "no private key in PEM was found in the file"},
        {{good, key, s->nonsense, false}, RP_INVALID, s->nonsense},
        {{.certificate = s->certificates.folder, .key = key}, RP_INVALID, "certificate"},
        {{.certificate = good, .key = s->other.key},
         RP_INVALID,
         "it is the key of another certificate"},
        {{.certificate = s->other.key, .key = good},
         RP_INVALID,
         "are the files of the certificate and of the key swapped?"},
        {{.certificate = good, .key = s->rsa}, RP_INVALID, "of different types"},
        {{.certificate = good, .key = s->locked}, RP_INVALID, s->locked}, /* and asks nobody */
        {{.certificate = key, .key = key}, RP_INVALID, key},
        {{.certificate = good}, RP_INVALID, "both a certificate and a key"},
        {{.key = key}, RP_INVALID, "both a certificate and a key"},
        {{good, key, NULL, true}, RP_INVALID, "no client CA"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
        rp_allocator alloc = rp_test_oom_allocator(&oom);
        rp_tls *tls = NULL;
        rp_error err;

        assert_fails(rp_tls_new(&alloc, &cases[i].files, &tls, &err), cases[i].status, &err,
                     cases[i].part);
        assert_null(tls);
        assert_int_equal(oom.live, 0);
        assert_int_equal(ERR_peek_error(), 0); /* nothing is left for others to stumble over */
    }
}

static void context_without_memory_fails(void **state)
{
    const setting *s = *state;
    rp_test_oom oom = RP_TEST_OOM_INIT(0);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_tls_files files = files_of(s);
    rp_tls *tls = NULL;
    rp_error err;

    assert_fails(rp_tls_new(&alloc, &files, &tls, &err), RP_NO_RESOURCE, &err, "memory");
    assert_int_equal(oom.failed, 1);
}

RP_TESTS(tls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_files_are_accepted),
        cmocka_unit_test(invalid_files_are_named),
        cmocka_unit_test(context_without_memory_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

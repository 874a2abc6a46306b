/* SPDX-License-Identifier: Apache-2.0 */
#include "support/certificates.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "support/unit.h"

enum { DAY_S = 86400 };

static void write_certificate(const char *path, X509 *certificate)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
}

static void write_key(const char *path, EVP_PKEY *key)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
}

static void extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Makes a certificate that is not signed yet, valid from yesterday to tomorrow. */
static X509 *new_certificate(rp_test_certificates *c, EVP_PKEY *key, const char *name,
                             size_t name_bytes)
{
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_NAME_new();

    assert_non_null(certificate);
    assert_non_null(subject);
    assert_int_equal(X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_ASC,
                                                (const unsigned char *)"reprise tests", -1, -1,
                                                0),
                     1);
    if (name != NULL)
        assert_int_equal(X509_NAME_add_entry_by_NID(subject, NID_commonName, V_ASN1_UTF8STRING,
                                                    (const unsigned char *)name,
                                                    (int)name_bytes, -1, 0),
                         1);
    assert_int_equal(X509_set_version(certificate, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++c->next_serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY_S));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), DAY_S));
    assert_int_equal(X509_set_subject_name(certificate, subject), 1);
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    X509_NAME_free(subject);
    return certificate;
}

static void sign(X509 *certificate, X509 *issuer, EVP_PKEY *key)
{
    assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)), 1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
}

void rp_test_certificates_init(rp_test_certificates *c)
{
    *c = (rp_test_certificates){.folder = "/tmp/reprise-test-XXXXXX"};
    assert_non_null(mkdtemp(c->folder));
    (void)snprintf(c->ca, sizeof c->ca, "%s/ca.pem", c->folder);
    c->ca_key = EVP_EC_gen("P-256");
    assert_non_null(c->ca_key);
    c->ca_certificate = new_certificate(c, c->ca_key, "authority", strlen("authority"));
    extend(c->ca_certificate, c->ca_certificate, NID_basic_constraints, "critical,CA:TRUE");
    extend(c->ca_certificate, c->ca_certificate, NID_key_usage, "critical,keyCertSign");
    sign(c->ca_certificate, c->ca_certificate, c->ca_key);
    write_certificate(c->ca, c->ca_certificate);
}

void rp_test_certificates_deinit(rp_test_certificates *c)
{
    DIR *folder = opendir(c->folder);

    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[sizeof c->folder + sizeof entry->d_name + 1];
        (void)snprintf(path, sizeof path, "%s/%s", c->folder, entry->d_name);
        (void)unlink(path); /* not "." and ".." */
    }
    (void)closedir(folder);
    assert_int_equal(rmdir(c->folder), 0);
    X509_free(c->ca_certificate);
    EVP_PKEY_free(c->ca_key);
}

rp_test_identity rp_test_issue(rp_test_certificates *c, const char *file, const char *name,
                               size_t name_bytes)
{
    rp_test_identity id;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate;

    assert_non_null(key);
    certificate = new_certificate(c, key, name, name_bytes);
    extend(certificate, c->ca_certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    sign(certificate, c->ca_certificate, c->ca_key);
    (void)snprintf(id.certificate, sizeof id.certificate, "%s/%s.pem", c->folder, file);
    (void)snprintf(id.key, sizeof id.key, "%s/%s.key", c->folder, file);
    write_certificate(id.certificate, certificate);
    write_key(id.key, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return id;
}

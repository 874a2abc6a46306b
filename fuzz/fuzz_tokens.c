/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a tokens file. The first byte of the input says whether client certificates are
 * enabled. The rest is the file; it is also used as an authorization header and as the name of
 * a certificate. If the file is refused, the error must name a line of the file and must not
 * contain unprintable bytes or tokens. If it is accepted, every certificate that it names must
 * have the role of its line. */
#include <stdio.h>

#include "fuzz.h"
#include "server/auth/auth.h"

static void check_refusal(const char *text, size_t size, const rp_error *err)
{
    size_t line = 0, column = 0, lines = 1;

    fuzz_check(err->code == RP_INVALID && err->text[0] != '\0');
    for (const char *c = err->text; *c != '\0'; c++) fuzz_check(*c >= 0x20 && *c < 0x7f);
    if (sscanf(err->text, "tokens: line %zu, column %zu:", &line, &column) != 2) return;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    fuzz_check(line >= 1 && line <= lines && column >= 1 && column <= 1 + size);
}

/* Parses a line independently of the tested code. Returns false if it does not name a
 * certificate. */
static bool read_line(const char *at, const char *end, char *name, size_t *size, rp_role *role)
{
    const char *mark;

    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if (at == end || *at == '#') return false;
    *role = *at == 'r' ? RP_ROLE_READ : *at == 'w' ? RP_ROLE_WRITE : RP_ROLE_ADMIN;
    mark = memmem(at, (size_t)(end - at), "cert:", 5);
    if (mark == NULL) return false;
    for (mark += 5; mark < end && (*mark == ' ' || *mark == '\t');) mark++;
    while (end > mark && (end[-1] == ' ' || end[-1] == '\t')) end--;
    *size = (size_t)(end - mark);
    fuzz_check(*size >= 1 && *size <= RP_AUTH_MAX_NAME_BYTES);
    memcpy(name, mark, *size);
    name[*size] = '\0';
    return true;
}

static void check_certificates(const rp_auth *auth, const char *text, size_t size)
{
    const char *end = text + size;

    for (const char *at = text; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline != NULL ? newline : end;
        char name[RP_AUTH_MAX_NAME_BYTES + 1];
        rp_credentials shown = {.certificate = name};
        rp_principal who;
        size_t length;
        rp_role role;

        if (read_line(at, line_end, name, &length, &role) && strcmp(name, "*") != 0) {
            fuzz_check(rp_auth_check(auth, &shown, &who, NULL) == RP_OK);
            fuzz_check(who.role == role && who.name[0] != '\0');
        }
        at = line_end + 1;
    }
}

/* Uses the text of the file as a token, which must be refused: the file has only hashes of
 * tokens. */
static void check_tokens(const rp_auth *auth, const char *text, size_t size)
{
    static char shown_text[FUZZ_MAX_BYTES + 16];
    rp_credentials shown = {.authorization = shown_text};
    rp_principal who;
    rp_status st;

    (void)snprintf(shown_text, sizeof shown_text, "Bearer %.*s", (int)size, text);
    fuzz_check(rp_auth_check(auth, &shown, &who, NULL) == RP_UNAUTHENTICATED);
    fuzz_check(who.role == RP_ROLE_NONE);
    memmove(shown_text, shown_text + 7, strlen(shown_text) - 6);
    st = rp_auth_check(auth, &shown, &who, NULL);
    fuzz_check(st == RP_UNAUTHENTICATED || (st == RP_OK && shown_text[0] == '\0'));
    shown = (rp_credentials){.certificate = shown_text};
    fuzz_check(rp_auth_check(auth, &shown, &who, NULL) == RP_OK);
    (void)rp_method_of(shown_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};
    bool certificates = (fuzz_byte(&in) & 1) != 0;
    const char *text = (const char *)in.at;
    size_t left = fuzz_left(&in);
    rp_auth_source source = {text != NULL ? text : "", left, certificates};
    rp_auth *auth = NULL;
    rp_error err = {.code = RP_OK};

    if (left > FUZZ_MAX_BYTES) return 0;
    if (rp_auth_new(rp_allocator_default(), &source, &auth, &err) != RP_OK) {
        check_refusal(text, left, &err);
        return 0;
    }
    fuzz_check(!rp_auth_is_open(auth));
    if (certificates) check_certificates(auth, text, left);
    check_tokens(auth, text, left);
    rp_auth_unref(auth);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens file, and the check of credentials.
 *
 * An entry is a digest: the SHA-256 of a token, as in the file, or of a certificate's common
 * name. A check computes the digest of the credentials and compares it with every entry in
 * constant time, also after one has matched. So its time does not reveal which entry matched,
 * or how many bytes.
 *
 * Invariants:
 *   A1  no two entries of a kind have the same digest;
 *   A2  count <= capacity and count <= RP_AUTH_MAX_ENTRIES;
 *   A3  each entry has a role above none. */
#include "server/auth/auth.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "util/buf.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/refcount.h"

enum { DIGEST_BYTES = 32, READ_BYTES = 16384 };

typedef struct entry {
    uint8_t digest[DIGEST_BYTES];
    rp_role role;
    bool is_certificate;
    size_t line;
    char name[RP_AUTH_MAX_NAME_BYTES + 1];
} entry;

struct rp_auth {
    rp_refcount refs;
    rp_allocator alloc;
    EVP_MD *sha256;
    bool has_tokens;   /* there is a tokens file */
    bool certificates; /* client certificates are requested */
    bool lists_certificates;
    rp_role others; /* role of a certificate that no line names */
    char others_name[RP_AUTH_MAX_NAME_BYTES + 1];
    size_t others_line;
    entry *entries;
    size_t count, capacity;
};

typedef struct reader {
    const char *at, *end; /* the rest of the line */
    const char *start;    /* of the line */
    size_t line;
    rp_error *err;
} reader;

static rp_status fail_at(const reader *r, const char *at, const char *what)
{
    return rp_fail(r->err, RP_INVALID, "tokens: line %zu, column %zu: %s", r->line,
                   (size_t)(at - r->start) + 1, what);
}

/* The token or certificate of this line is in an earlier line, too. */
static rp_status fail_repeated(const reader *r, size_t line)
{
    char what[80];

    (void)snprintf(what, sizeof what, "line %zu has the same token or certificate", line);
    return fail_at(r, r->start, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '.' || c == '@';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(*r->at)) r->at++;
}

/* Takes the next word, and skips the blanks behind it. */
static size_t take_word(reader *r, const char **word)
{
    size_t length;

    *word = r->at;
    while (r->at < r->end && !is_blank(*r->at)) r->at++;
    length = (size_t)(r->at - *word);
    skip_blanks(r);
    return length;
}

static bool is_word(const char *word, size_t length, const char *expected)
{
    return length == strlen(expected) && memcmp(word, expected, length) == 0;
}

static rp_status take_role(reader *r, rp_role *role)
{
    const char *word;
    size_t length = take_word(r, &word);
    char what[80];

    for (rp_role known = RP_ROLE_READ; known <= RP_ROLE_ADMIN; known++)
        if (is_word(word, length, rp_role_name(known))) {
            *role = known;
            return RP_OK;
        }
    (void)snprintf(what, sizeof what, "a role belongs here: read, write or admin, got '%.*s'",
                   length < 24 ? (int)length : 24, word);
    return fail_at(r, word, what);
}

static rp_status take_name(reader *r, char *name)
{
    const char *word;
    size_t length = take_word(r, &word);

    if (length == 0) return fail_at(r, word, "a name belongs here");
    if (length > RP_AUTH_MAX_NAME_BYTES)
        return fail_at(r, word, "the name has more than 64 characters");
    for (size_t i = 0; i < length; i++)
        if (!is_name_byte(word[i]))
            return fail_at(r, word + i, "a name has letters, digits and _ - . @ only");
    memcpy(name, word, length);
    name[length] = '\0';
    return RP_OK;
}

static rp_status take_hash(reader *r, uint8_t *digest)
{
    const char *word;
    size_t length = take_word(r, &word);

    for (size_t i = 0; i < length; i++)
        if (hex_digit(word[i]) < 0) return fail_at(r, word + i, "this is no hexadecimal digit");
    if (length != (size_t)2 * DIGEST_BYTES)
        return fail_at(r, word, "a SHA-256 has 64 hexadecimal digits");
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        digest[i] = (uint8_t)(hex_digit(word[2 * i]) << 4 | hex_digit(word[2 * i + 1]));
    if (r->at < r->end) return fail_at(r, r->at, "nothing may follow the hash");
    return RP_OK;
}

static bool digest_of(const rp_auth *auth, const void *data, size_t size, uint8_t *digest)
{
    return EVP_Digest(data, size, digest, NULL, auth->sha256, NULL) == 1;
}

/* Takes a common name, which is the rest of the line. `*others` is set if the name is '*',
 * which means any certificate. */
static rp_status take_certificate(reader *r, const rp_auth *auth, uint8_t *digest, bool *others)
{
    const char *name, *end = r->end;
    size_t length;

    skip_blanks(r);
    name = r->at;
    while (end > name && is_blank(end[-1])) end--;
    length = (size_t)(end - name);
    if (length == 0) return fail_at(r, name, "a common name belongs here");
    if (length > RP_AUTH_MAX_NAME_BYTES)
        return fail_at(r, name, "the common name has more than 64 bytes");
    r->at = r->end;
    *others = length == 1 && *name == '*';
    return digest_of(auth, name, length, digest)
               ? RP_OK
               : rp_fail(r->err, RP_NO_RESOURCE, "tokens: SHA-256 is not to be had");
}

/* Adds an entry, unless there is one with the same digest (A1). */
static rp_status add_entry(reader *r, rp_auth *auth, const entry *e)
{
    for (size_t i = 0; i < auth->count; i++)
        if (auth->entries[i].is_certificate == e->is_certificate &&
            memcmp(auth->entries[i].digest, e->digest, DIGEST_BYTES) == 0)
            return fail_repeated(r, auth->entries[i].line);
    if (auth->count == RP_AUTH_MAX_ENTRIES)
        return fail_at(r, r->start, "there are more than 1024 entries");
    if (auth->count == auth->capacity) {
        size_t capacity = auth->capacity > 0 ? 2 * auth->capacity : 8;

        if (!rp_resize_array(&auth->alloc, &auth->entries, auth->capacity, capacity,
                             sizeof *auth->entries))
            return rp_fail_memory(r->err, capacity * sizeof *auth->entries);
        auth->capacity = capacity;
    }
    assert(e->role > RP_ROLE_NONE && auth->count < auth->capacity); /* A2, A3 */
    auth->entries[auth->count++] = *e;
    return RP_OK;
}

static rp_status add_others(reader *r, rp_auth *auth, const entry *e)
{
    if (auth->others_name[0] != '\0') return fail_repeated(r, auth->others_line);
    auth->others = e->role;
    auth->others_line = e->line;
    memcpy(auth->others_name, e->name, sizeof auth->others_name);
    return RP_OK;
}

/* role name sha256:hash, or role name cert:common name */
static rp_status read_entry(reader *r, rp_auth *auth)
{
    static const char hash[] = "sha256:", certificate[] = "cert:";
    entry e = {.line = r->line};
    bool others = false;
    rp_status st = take_role(r, &e.role);

    if (st == RP_OK) st = take_name(r, e.name);
    if (st != RP_OK) return st;
    if ((size_t)(r->end - r->at) >= sizeof hash - 1 &&
        memcmp(r->at, hash, sizeof hash - 1) == 0) {
        r->at += sizeof hash - 1;
        st = take_hash(r, e.digest);
    } else if ((size_t)(r->end - r->at) >= sizeof certificate - 1 &&
               memcmp(r->at, certificate, sizeof certificate - 1) == 0) {
        r->at += sizeof certificate - 1;
        e.is_certificate = auth->lists_certificates = true;
        st = take_certificate(r, auth, e.digest, &others);
    } else {
        return fail_at(r, r->at, "sha256:<64 digits> or cert:<common name> belongs here");
    }
    if (st != RP_OK) return st;
    return others ? add_others(r, auth, &e) : add_entry(r, auth, &e);
}

static rp_status read_line(reader *r, rp_auth *auth)
{
    if ((size_t)(r->end - r->start) > RP_AUTH_MAX_LINE_BYTES)
        return fail_at(r, r->start + RP_AUTH_MAX_LINE_BYTES,
                       "the line has more than 512 bytes");
    for (const char *c = r->start; c < r->end; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
            return fail_at(r, c, "there is a control character (lines end in a newline alone)");
    skip_blanks(r);
    if (r->at == r->end || *r->at == '#') return RP_OK;
    return read_entry(r, auth);
}

static rp_status read_tokens(rp_auth *auth, const char *text, size_t size, rp_error *err)
{
    const char *at = text, *end = text + size;
    reader r = {.err = err};

    if (size > RP_AUTH_MAX_FILE_BYTES)
        return rp_fail(err, RP_INVALID, "tokens: the file has more than %d bytes",
                       RP_AUTH_MAX_FILE_BYTES);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        rp_status st;

        r.at = r.start = at;
        r.end = newline != NULL ? newline : end;
        r.line++;
        st = read_line(&r, auth);
        if (st != RP_OK) return st;
        at = newline != NULL ? newline + 1 : end;
    }
    if (auth->count == 0 && auth->others_name[0] == '\0')
        return rp_fail(err, RP_INVALID,
                       "tokens: the file has no entry, so nobody could do "
                       "anything");
    return RP_OK;
}

rp_status rp_auth_new(const rp_allocator *alloc, const rp_auth_source *source, rp_auth **out,
                      rp_error *err)
{
    rp_auth *auth = rp_alloc_zero(alloc, sizeof *auth);
    rp_status st = RP_OK;

    if (auth == NULL) return rp_fail_memory(err, sizeof *auth);
    rp_refcount_init(&auth->refs);
    auth->alloc = *alloc;
    auth->has_tokens = source->tokens != NULL;
    auth->certificates = source->certificates;
    auth->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (auth->sha256 == NULL)
        st = rp_fail(err, RP_NO_RESOURCE, "tokens: SHA-256 is not to be had");
    else if (auth->has_tokens)
        st = read_tokens(auth, source->tokens, source->token_bytes, err);
    if (st != RP_OK) {
        rp_auth_unref(auth);
        return st;
    }
    if (!auth->lists_certificates) auth->others = RP_ROLE_WRITE;
    *out = auth;
    return RP_OK;
}

static rp_status open_file(const char *path, FILE **out, rp_error *err)
{
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        if (errno == ENOENT || errno == ENOTDIR)
            return rp_fail(err, RP_NOT_FOUND, "tokens: there is no file '%s'", path);
        if (errno == EACCES || errno == EPERM)
            return rp_fail(err, RP_DENIED, "tokens: '%s' may not be read", path);
        return rp_fail(err, RP_UNAVAILABLE, "tokens: '%s' cannot be opened: %s", path,
                       strerror(errno));
    }
    *out = file;
    return RP_OK;
}

/* Reads up to READ_BYTES more than the limit, so that rp_auth_new() sees a file that is too
 * large. */
static rp_status read_file(const char *path, rp_buf *text, rp_error *err)
{
    FILE *file = NULL;
    rp_status st = open_file(path, &file, err);

    if (st != RP_OK) return st;
    while (text->size <= RP_AUTH_MAX_FILE_BYTES) {
        uint8_t *room = rp_buf_reserve(text, READ_BYTES);
        size_t n;

        if (room == NULL) {
            st = rp_fail_memory(err, text->size + READ_BYTES);
            break;
        }
        n = fread(room, 1, READ_BYTES, file);
        text->size += n;
        if (n == READ_BYTES) continue;
        if (ferror(file) != 0)
            st = rp_fail(err, RP_UNAVAILABLE, "tokens: '%s' cannot be read: %s", path,
                         strerror(errno));
        break;
    }
    (void)fclose(file);
    return st;
}

/* Adds the path to an error of the text of the file. Returns `st`. */
static rp_status name_file(const char *path, rp_status st, rp_error *err)
{
    static const char begin[] = "tokens: ";
    rp_error why;

    if (st != RP_INVALID || path == NULL || err == NULL) return st;
    why = *err;
    if (strncmp(why.text, begin, sizeof begin - 1) != 0) return st;
    return rp_fail(err, st, "tokens: '%.120s': %.120s", path, why.text + sizeof begin - 1);
}

rp_status rp_auth_load(const rp_allocator *alloc, const char *path, bool certificates,
                       rp_auth **out, rp_error *err)
{
    rp_auth_source source = {.certificates = certificates};
    rp_status st = RP_OK;
    rp_buf text;

    rp_buf_init(&text, alloc);
    if (path != NULL) {
        st = read_file(path, &text, err);
        source.tokens = (const char *)text.data;
        source.token_bytes = text.size;
    }
    if (st == RP_OK) st = name_file(path, rp_auth_new(alloc, &source, out, err), err);
    rp_buf_deinit(&text);
    return st;
}

rp_auth *rp_auth_ref(rp_auth *auth)
{
    rp_refcount_inc(&auth->refs);
    return auth;
}

void rp_auth_unref(rp_auth *auth)
{
    rp_allocator alloc;

    if (auth == NULL || !rp_refcount_dec(&auth->refs)) return;
    alloc = auth->alloc;
    EVP_MD_free(auth->sha256);
    rp_release(&alloc, auth->entries, auth->capacity * sizeof *auth->entries);
    rp_release(&alloc, auth, sizeof *auth);
}

bool rp_auth_is_open(const rp_auth *auth)
{
    return !auth->has_tokens && !auth->certificates;
}

/* Finds the entry with that digest, or NULL. Compares all entries. */
static const entry *find(const rp_auth *auth, const uint8_t *digest, bool is_certificate)
{
    size_t found = 0; /* its index, plus 1 */

    for (size_t i = 0; i < auth->count; i++) {
        const entry *e = &auth->entries[i];
        bool same = CRYPTO_memcmp(e->digest, digest, DIGEST_BYTES) == 0;

        found |= (i + 1) & (0 - (size_t)(same & (e->is_certificate == is_certificate)));
    }
    assert(found <= auth->count); /* A1: at most one has matched */
    return found > 0 ? &auth->entries[found - 1] : NULL;
}

static void become(rp_principal *who, rp_role role, const char *name)
{
    assert(role <= RP_ROLE_ADMIN);
    if (role <= who->role) return;
    who->role = role;
    memcpy(who->name, name, sizeof who->name);
}

/* Finds the token in "Bearer <token>". NULL if the header has another form. */
static const char *token_in(const char *header, size_t *size)
{
    static const char scheme[] = "bearer";

    for (size_t i = 0; i < sizeof scheme - 1; i++)
        if ((header[i] | 0x20) != scheme[i]) return NULL; /* ends at the header's zero */
    header += sizeof scheme - 1;
    if (*header != ' ') return NULL;
    while (*header == ' ') header++;
    *size = strnlen(header, RP_AUTH_MAX_TOKEN_BYTES + 1);
    return *size > 0 && *size <= RP_AUTH_MAX_TOKEN_BYTES ? header : NULL;
}

static rp_status check_token(const rp_auth *auth, const char *header, rp_principal *who,
                             rp_error *err)
{
    uint8_t digest[DIGEST_BYTES];
    const entry *e;
    size_t size;
    const char *token = token_in(header, &size);

    if (token == NULL)
        return rp_fail(err, RP_UNAUTHENTICATED,
                       "the authorization header is not 'Bearer <token>'");
    if (!digest_of(auth, token, size, digest)) return rp_fail_memory(err, DIGEST_BYTES);
    e = find(auth, digest, false);
    if (e == NULL) return rp_fail(err, RP_UNAUTHENTICATED, "the token is not known");
    become(who, e->role, e->name);
    return RP_OK;
}

static rp_status check_certificate(const rp_auth *auth, const char *name, rp_principal *who,
                                   rp_error *err)
{
    size_t size = strnlen(name, RP_AUTH_MAX_NAME_BYTES + 1);
    uint8_t digest[DIGEST_BYTES];
    const entry *e = NULL;

    if (size <= RP_AUTH_MAX_NAME_BYTES) {
        if (!digest_of(auth, name, size, digest)) return rp_fail_memory(err, DIGEST_BYTES);
        e = find(auth, digest, true);
    }
    if (e != NULL)
        become(who, e->role, e->name);
    else
        become(who, auth->others, auth->others_name);
    return RP_OK;
}

static bool is_shown(const char *text)
{
    return text != NULL && text[0] != '\0';
}

rp_status rp_auth_check(const rp_auth *auth, const rp_credentials *shown, rp_principal *out,
                        rp_error *err)
{
    rp_principal who = {.role = RP_ROLE_NONE};
    rp_status st = RP_OK;

    assert(auth->count <= RP_AUTH_MAX_ENTRIES); /* A2 */
    *out = who;
    if (rp_auth_is_open(auth)) {
        out->role = RP_ROLE_ADMIN;
        return RP_OK;
    }
    if (auth->certificates && is_shown(shown->certificate))
        st = check_certificate(auth, shown->certificate, &who, err);
    if (st == RP_OK && is_shown(shown->authorization))
        st = check_token(auth, shown->authorization, &who, err);
    if (st == RP_OK) *out = who;
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth/auth.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/unit.h"

/* SHA-256 of "reader", "writer" and "boss" */
#define READER "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
#define WRITER "sha256:b93006774cbdd4b299389a03ac3d88c3a76b460d538795bc12718011a909fba5"
#define BOSS "sha256:A5E7C002443743C5836758C7D1CD8DDEFD9FCF2061DAA0EFAAC683FB99966057"

static const char three[] = "# who may do what\n"
                            "read  ape   " READER "\n"
                            "\n"
                            "\twrite actor-7 " WRITER "  \n"
                            "admin a.b@c_d " BOSS; /* the last line needs no newline */

static rp_auth *make(const char *text, bool certificates)
{
    rp_auth_source source = {text, text != NULL ? strlen(text) : 0, certificates};
    rp_auth *auth = NULL;
    rp_error err;

    assert_ok_err(rp_auth_new(rp_allocator_default(), &source, &auth, &err), &err);
    return auth;
}

static void expect_refused(const char *text, size_t size, const char *part)
{
    rp_auth_source source = {text, size, false};
    rp_auth *auth = NULL;
    rp_error err = {.code = RP_OK};

    assert_fails(rp_auth_new(rp_allocator_default(), &source, &auth, &err), RP_INVALID, &err,
                 part);
    assert_null(auth);
}

static void expect_role(const rp_auth *auth, const char *header, const char *certificate,
                        rp_role role, const char *name)
{
    rp_credentials shown = {.authorization = header, .certificate = certificate};
    rp_principal who;
    rp_error err;

    assert_ok_err(rp_auth_check(auth, &shown, &who, &err), &err);
    assert_int_equal(who.role, role);
    assert_string_equal(who.name, name);
}

static void expect_wrong(const rp_auth *auth, const char *header, const char *certificate,
                         const char *part)
{
    rp_credentials shown = {.authorization = header, .certificate = certificate};
    rp_principal who = {.role = RP_ROLE_ADMIN};
    rp_error err;

    assert_fails(rp_auth_check(auth, &shown, &who, &err), RP_UNAUTHENTICATED, &err, part);
    assert_int_equal(who.role, RP_ROLE_NONE);
    assert_string_equal(who.name, "");
}

static void without_credentials_every_peer_is_an_administrator(void **state)
{
    (void)state;
    rp_auth *auth = make(NULL, false);

    assert_true(rp_auth_is_open(auth));
    expect_role(auth, NULL, NULL, RP_ROLE_ADMIN, "");
    expect_role(auth, "Bearer nonsense", "somebody", RP_ROLE_ADMIN, "");
    rp_auth_unref(auth);
}

static void a_token_gives_the_role_of_its_line(void **state)
{
    (void)state;
    rp_auth *auth = make(three, false);

    assert_false(rp_auth_is_open(auth));
    expect_role(auth, "Bearer reader", NULL, RP_ROLE_READ, "ape");
    expect_role(auth, "Bearer writer", NULL, RP_ROLE_WRITE, "actor-7");
    expect_role(auth, "Bearer boss", NULL, RP_ROLE_ADMIN, "a.b@c_d");
    expect_role(auth, "bEARER   boss", "", RP_ROLE_ADMIN, "a.b@c_d");
    expect_role(auth, NULL, NULL, RP_ROLE_NONE, "");
    expect_role(auth, "", "", RP_ROLE_NONE, "");
    rp_auth_unref(auth);
}

static void a_wrong_token_is_refused(void **state)
{
    (void)state;
    rp_auth *auth = make(three, false);
    char longest[16 + RP_AUTH_MAX_TOKEN_BYTES + 2] = "Bearer ";

    expect_wrong(auth, "Bearer Reader", NULL, "not known");
    expect_wrong(auth, "Bearer reader ", NULL, "not known");
    expect_wrong(auth, "Bearer reade", NULL, "not known");
    expect_wrong(auth, "Bearer " READER, NULL, "not known"); /* the hash is no token */
    expect_wrong(auth, " ", NULL, "not 'Bearer");
    expect_wrong(auth, "Bear", NULL, "not 'Bearer");
    expect_wrong(auth, "Bearer", NULL, "not 'Bearer");
    expect_wrong(auth, "Bearer ", NULL, "not 'Bearer");
    expect_wrong(auth, "Bearerreader", NULL, "not 'Bearer");
    expect_wrong(auth, "Basic cmVhZGVy", NULL, "not 'Bearer");
    memset(longest + 7, 'x', RP_AUTH_MAX_TOKEN_BYTES);
    expect_wrong(auth, longest, NULL, "not known");
    longest[7 + RP_AUTH_MAX_TOKEN_BYTES] = 'x';
    expect_wrong(auth, longest, NULL, "not 'Bearer");
    rp_auth_unref(auth);
}

static void a_certificate_gives_the_role_of_its_line(void **state)
{
    (void)state;
    rp_auth *auth = make("admin ops cert:Ops Console  \nread dash cert:dash\n", true);

    expect_role(auth, NULL, "Ops Console", RP_ROLE_ADMIN, "ops");
    expect_role(auth, NULL, "dash", RP_ROLE_READ, "dash");
    expect_role(auth, NULL, "Dash", RP_ROLE_NONE, ""); /* the list is on: only who is in it */
    expect_role(auth, NULL, "*", RP_ROLE_NONE, "");
    expect_role(auth, NULL, "", RP_ROLE_NONE, "");
    expect_role(auth, NULL, NULL, RP_ROLE_NONE, "");
    rp_auth_unref(auth);
}

static void without_a_list_every_certificate_may_write(void **state)
{
    (void)state;
    rp_auth *no_file = make(NULL, true), *no_list = make(three, true);

    assert_false(rp_auth_is_open(no_file));
    expect_role(no_file, NULL, "actor", RP_ROLE_WRITE, "");
    expect_role(no_file, NULL, NULL, RP_ROLE_NONE, "");
    expect_role(no_list, NULL, "actor", RP_ROLE_WRITE, "");
    rp_auth_unref(no_file);
    rp_auth_unref(no_list);
}

static void a_star_stands_for_every_other_certificate(void **state)
{
    (void)state;
    rp_auth *auth = make("read all cert:*\nadmin ops cert:ops\n", true);

    expect_role(auth, NULL, "ops", RP_ROLE_ADMIN, "ops");
    expect_role(auth, NULL, "anybody", RP_ROLE_READ, "all");
    rp_auth_unref(auth);
    expect_refused("read a cert:*\nadmin b cert:*\n", 30, "line 2, column 1: line 1 has");
}

static void certificates_count_only_where_requested(void **state)
{
    (void)state;
    rp_auth *auth = make("admin ops cert:ops\n", false);

    expect_role(auth, NULL, "ops", RP_ROLE_NONE, "");
    rp_auth_unref(auth);
}

static void the_higher_of_two_roles_counts_and_a_wrong_token_is_refused(void **state)
{
    (void)state;
    rp_auth *auth = make("write actor cert:actor\nread r " READER "\nadmin b " BOSS, true);

    expect_role(auth, "Bearer reader", "actor", RP_ROLE_WRITE, "actor");
    expect_role(auth, "Bearer boss", "actor", RP_ROLE_ADMIN, "b");
    expect_wrong(auth, "Bearer wrong", "actor", "not known");
    rp_auth_unref(auth);
}

/* A token's digest must not pass as a certificate's, nor the other way round. */
static void tokens_and_certificates_are_distinguished(void **state)
{
    (void)state;
    rp_auth *auth = make("admin t " BOSS "\nread c cert:dash\n", true);

    expect_role(auth, NULL, "boss", RP_ROLE_NONE, "");
    expect_wrong(auth, "Bearer dash", NULL, "not known");
    rp_auth_unref(auth);
}

static void a_long_common_name_matches_no_line(void **state)
{
    (void)state;
    char file[128], name[RP_AUTH_MAX_NAME_BYTES + 2] = "";
    rp_auth *auth;

    memset(name, 'n', RP_AUTH_MAX_NAME_BYTES);
    (void)snprintf(file, sizeof file, "admin x cert:%s\n", name);
    auth = make(file, true);
    expect_role(auth, NULL, name, RP_ROLE_ADMIN, "x");
    name[RP_AUTH_MAX_NAME_BYTES] = 'n';
    expect_role(auth, NULL, name, RP_ROLE_NONE, "");
    rp_auth_unref(auth);
    (void)snprintf(file, sizeof file, "admin x cert:%s\n", name);
    expect_refused(file, strlen(file), "line 1, column 14: the common name has more than 64");
}

static void mistakes_are_named_with_line_and_column(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "no entry"},
        {"# nothing\n\n  \t\n", "no entry"},
        {"reed x " READER,
         "line 1, column 1: a role belongs here: read, write or admin, got 'reed'"},
        {"none x " READER, "line 1, column 1: a role belongs here"},
        {"Read x " READER, "line 1, column 1: a role belongs here"},
        {"\n  rea", "line 2, column 3: a role belongs here"},
        {"read", "line 1, column 5: a name belongs here"},
        {"read   ", "line 1, column 8: a name belongs here"},
        {"read a/b " READER, "line 1, column 7: a name has letters"},
        {"read x", "line 1, column 7: sha256:"},
        {"read x y", "line 1, column 8: sha256:"},
        {"read x sha256", "line 1, column 8: sha256:"},
        {"read x SHA256:00", "line 1, column 8: sha256:"},
        {"read x sha256:", "line 1, column 15: a SHA-256 has 64"},
        {"read x sha256: ab", "line 1, column 15: a SHA-256 has 64"},
        {"read x sha256:12g4", "line 1, column 17: this is no hexadecimal"},
        {"read x " READER "0", "line 1, column 15: a SHA-256 has 64"},
        {"read x " READER " # hm", "line 1, column 80: nothing may follow"},
        {"read x cert:", "line 1, column 13: a common name belongs here"},
        {"read x cert:   ", "line 1, column 16: a common name belongs here"},
        {"read x " READER "\r\n", "line 1, column 79: there is a control character"},
        {"read\vx " READER, "line 1, column 5: there is a control character"},
        {"# \x7f", "line 1, column 3: there is a control character"},
        {"\xef\xbb\xbfread x " READER, "line 1, column 1: a role belongs here"},
        {"read x " READER "\nadmin y " READER, "line 2, column 1: line 1 has the same"},
        {"#\nread x cert:a\nadmin y cert:a", "line 3, column 1: line 2 has the same"},
        {"read x cert:*\nadmin y cert:*", "line 2, column 1: line 1 has the same"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_refused(cases[i].text, strlen(cases[i].text), cases[i].part);
    expect_refused("read\0x", 6, "line 1, column 5: there is a control character");
}

static void names_have_64_characters_at_most(void **state)
{
    (void)state;
    char text[256], name[RP_AUTH_MAX_NAME_BYTES + 2] = "";
    rp_auth *auth;

    memset(name, 'n', RP_AUTH_MAX_NAME_BYTES);
    (void)snprintf(text, sizeof text, "read %s " READER, name);
    auth = make(text, false);
    expect_role(auth, "Bearer reader", NULL, RP_ROLE_READ, name);
    rp_auth_unref(auth);
    name[RP_AUTH_MAX_NAME_BYTES] = 'n';
    (void)snprintf(text, sizeof text, "read %s " READER, name);
    expect_refused(text, strlen(text), "line 1, column 6: the name has more than 64");
}

static void lines_have_512_bytes_at_most(void **state)
{
    (void)state;
    char text[1024] = "read x " READER "\n#";
    size_t at = strlen(text);
    rp_auth *auth;

    memset(text + at, '-', RP_AUTH_MAX_LINE_BYTES - 1);
    auth = make(text, false);
    rp_auth_unref(auth);
    text[at + RP_AUTH_MAX_LINE_BYTES - 1] = '-';
    expect_refused(text, strlen(text), "line 2, column 513: the line has more than 512");
}

static void files_have_1024_entries_at_most(void **state)
{
    (void)state;
    enum { LINE_BYTES = 24 };
    char *text = calloc(RP_AUTH_MAX_ENTRIES + 1, LINE_BYTES), last[LINE_BYTES];
    size_t size = 0;
    rp_auth *auth;

    assert_non_null(text);
    for (int i = 0; i < RP_AUTH_MAX_ENTRIES; i++)
        size += (size_t)snprintf(text + size, LINE_BYTES, "read x cert:%d\n", i);
    auth = make(text, true);
    (void)snprintf(last, sizeof last, "%d", RP_AUTH_MAX_ENTRIES - 1);
    expect_role(auth, NULL, "0", RP_ROLE_READ, "x");
    expect_role(auth, NULL, last, RP_ROLE_READ, "x");
    rp_auth_unref(auth);
    size += (size_t)snprintf(text + size, LINE_BYTES, "read x cert:z\n");
    expect_refused(text, size, "line 1025, column 1: there are more than 1024");
    free(text);
}

static void files_have_a_mebibyte_at_most(void **state)
{
    (void)state;
    char *text = malloc(RP_AUTH_MAX_FILE_BYTES + 1);
    rp_auth_source source = {text, RP_AUTH_MAX_FILE_BYTES, false};
    rp_auth *auth = NULL;

    assert_non_null(text);
    memset(text, '\n', RP_AUTH_MAX_FILE_BYTES + 1);
    memcpy(text, "read x " READER, strlen("read x " READER));
    assert_ok(rp_auth_new(rp_allocator_default(), &source, &auth, NULL));
    rp_auth_unref(auth);
    expect_refused(text, RP_AUTH_MAX_FILE_BYTES + 1, "more than 1048576 bytes");
    free(text);
}

/* Every prefix of a file is a file or a mistake, and reading stays within it. */
static void a_file_may_end_anywhere(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof three; size++) {
        char *exact = malloc(size + 1); /* so that a sanitizer sees the end */
        rp_auth_source source = {exact, size, false};
        rp_auth *auth = NULL;
        rp_status st;

        assert_non_null(exact);
        memcpy(exact, three, size);
        exact = realloc(exact, size > 0 ? size : 1);
        assert_non_null(exact);
        source.tokens = exact;
        st = rp_auth_new(rp_allocator_default(), &source, &auth, NULL);
        assert_true(st == RP_OK || st == RP_INVALID);
        rp_auth_unref(auth);
        free(exact);
    }
}

static rp_status make_and_check(const rp_allocator *alloc)
{
    rp_auth_source source = {three, strlen(three), true};
    rp_credentials shown = {.authorization = "Bearer boss", .certificate = "x"};
    rp_principal who;
    rp_auth *auth = NULL;
    rp_status st = rp_auth_new(alloc, &source, &auth, NULL);

    if (st == RP_OK) st = rp_auth_check(auth, &shown, &who, NULL);
    rp_auth_unref(auth);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(make_and_check);
}

static char path[] = "/tmp/reprise_auth_XXXXXX";

static rp_status load(const rp_allocator *alloc)
{
    rp_auth *auth = NULL;
    rp_status st = rp_auth_load(alloc, path, false, &auth, NULL);

    if (st == RP_OK) expect_role(auth, "Bearer boss", NULL, RP_ROLE_ADMIN, "a.b@c_d");
    rp_auth_unref(auth);
    return st;
}

static void a_file_is_read_as_its_text(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    assert_non_null(file);
    assert_true(fputs(three, file) >= 0);
    assert_int_equal(fclose(file), 0);
    rp_test_survives_oom(load);
    assert_int_equal(unlink(path), 0);
}

static void an_unreadable_file_is_named(void **state)
{
    (void)state;
    const rp_allocator *alloc = rp_allocator_default();
    rp_auth *auth = NULL;
    rp_error err;

    assert_fails(rp_auth_load(alloc, "/nonexistent/tokens", false, &auth, &err), RP_NOT_FOUND,
                 &err, "no file '/nonexistent/tokens'");
    assert_fails(rp_auth_load(alloc, "/tmp", false, &auth, &err), RP_UNAVAILABLE, &err,
                 "tokens: '/tmp' cannot be read: Is a directory");
    assert_fails(rp_auth_load(alloc, "/dev/null", false, &auth, &err), RP_INVALID, &err,
                 "tokens: '/dev/null': the file has no entry");
    assert_fails(rp_auth_load(alloc, "/dev/zero", false, &auth, &err), RP_INVALID, &err,
                 "more than 1048576 bytes"); /* and not without end */
    assert_ok(rp_auth_load(alloc, NULL, false, &auth, NULL));
    assert_true(rp_auth_is_open(auth));
    rp_auth_unref(auth);
    rp_auth_unref(NULL);
}

static void a_reference_keeps_the_roles_alive(void **state)
{
    (void)state;
    rp_auth *auth = make(three, false);

    assert_ptr_equal(rp_auth_ref(auth), auth);
    rp_auth_unref(auth);
    expect_role(auth, "Bearer reader", NULL, RP_ROLE_READ, "ape");
    rp_auth_unref(auth);
}

RP_TESTS(auth)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_credentials_every_peer_is_an_administrator),
        cmocka_unit_test(a_token_gives_the_role_of_its_line),
        cmocka_unit_test(a_wrong_token_is_refused),
        cmocka_unit_test(a_certificate_gives_the_role_of_its_line),
        cmocka_unit_test(without_a_list_every_certificate_may_write),
        cmocka_unit_test(a_star_stands_for_every_other_certificate),
        cmocka_unit_test(certificates_count_only_where_requested),
        cmocka_unit_test(the_higher_of_two_roles_counts_and_a_wrong_token_is_refused),
        cmocka_unit_test(tokens_and_certificates_are_distinguished),
        cmocka_unit_test(a_long_common_name_matches_no_line),
        cmocka_unit_test(mistakes_are_named_with_line_and_column),
        cmocka_unit_test(names_have_64_characters_at_most),
        cmocka_unit_test(lines_have_512_bytes_at_most),
        cmocka_unit_test(files_have_1024_entries_at_most),
        cmocka_unit_test(files_have_a_mebibyte_at_most),
        cmocka_unit_test(a_file_may_end_anywhere),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_file_is_read_as_its_text),
        cmocka_unit_test(an_unreadable_file_is_named),
        cmocka_unit_test(a_reference_keeps_the_roles_alive),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}

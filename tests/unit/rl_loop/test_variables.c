/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/variables.h"

#include <string.h>

#include "support/unit.h"

enum { COUNT = 1000 };

static void a_client_skips_what_it_has(void **state)
{
    (void)state;
    rp_store *store = NULL;
    rp_client *client = NULL;
    rp_variable_source *source = NULL;
    rp_variable_client *reader = NULL, *other = NULL;
    rp_real sent[COUNT], got[COUNT] = {0};
    int64_t version = 0;
    rp_variables v;
    rp_error err;

    assert_ok(rp_store_new(NULL, &store, &err));
    assert_ok(rp_client_local(store, NULL, &client, &err));
    const rp_variable_options options = {
        .client = client, .table = "variables", .count = COUNT};
    assert_ok(rp_variable_client_new(NULL, &options, &reader, &err));
    assert_ok(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err));
    assert_true(v.version == 0 && !v.changed); /* no table yet */

    assert_ok_err(rp_variable_source_new(NULL, &options, &source, &err), &err);
    assert_ok(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err));
    assert_true(v.version == 0 && !v.changed);
    for (int round = 1; round <= 3; round++) {
        for (size_t i = 0; i < COUNT; i++) sent[i] = (rp_real)(round * 10000 + (int)i);
        assert_ok_err(rp_variable_source_publish(source, sent, round * 7, &version, &err),
                      &err);
        assert_int_equal(version, round);
        assert_ok_err(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err),
                      &err);
        assert_true(v.changed && v.version == round && v.note == round * 7);
        assert_memory_equal(sent, got, sizeof got);
        memset(got, 0, sizeof got);
        assert_ok(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err));
        assert_true(!v.changed && v.version == round && got[5] == 0);
    }

    /* a source that begins anew continues the versions */
    rp_variable_source_free(source);
    source = NULL;
    assert_ok(rp_variable_source_new(NULL, &options, &source, &err));
    assert_ok(rp_variable_source_publish(source, sent, 0, &version, &err));
    assert_int_equal(version, 4);

    /* a store that lost the table counts anew, and clients follow */
    assert_ok(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err));
    rp_variable_source_free(source);
    source = NULL;
    assert_ok(rp_store_drop_table(store, (rp_string){"variables", 9}, &err));
    assert_ok(rp_variable_source_new(NULL, &options, &source, &err));
    assert_ok(rp_variable_source_publish(source, sent, 5, &version, &err));
    assert_int_equal(version, 1);
    assert_ok(rp_variable_client_update(reader, got, rp_wait_forever(), &v, &err));
    assert_true(v.changed && v.version == 1 && v.note == 5);

    /* a client with another network gets an error */
    const rp_variable_options wrong = {
        .client = client, .table = "variables", .count = COUNT - 1};
    assert_ok(rp_variable_client_new(NULL, &wrong, &other, &err));
    assert_int_equal(rp_variable_client_update(other, got, rp_wait_forever(), &v, &err),
                     RP_CORRUPT);
    assert_string_equal(
        err.text, "table 'variables' has no item of 999 numbers: they are of a network with "
                  "other settings");
    rp_variable_client_free(other);
    rp_variable_client_free(reader);
    rp_variable_source_free(source);
    rp_client_free(client);
    rp_store_free(store);
}

RP_TESTS(variables)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_client_skips_what_it_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

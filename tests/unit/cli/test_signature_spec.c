/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/signature_spec.h"

#include <string.h>

#include "support/unit.h"

/* What a leaf is read as, written back; or why it is none. */
static const char *read_back(const char *text)
{
    static char out[256];
    rp_spec spec;

    if (rp_spec_parse(text, &spec, out, sizeof out) != RP_OK) return out;
    return rp_spec_text(&spec, out, sizeof out);
}

static void leaves_are_a_dtype_and_a_shape(void **state)
{
    rp_spec spec;
    char why[64];

    (void)state;
    assert_string_equal(read_back("float32 [?, 84]"), "float32 [?,84]");
    assert_string_equal(read_back("float[?,84]"), "float32 [?,84]");
    assert_string_equal(read_back("uint8 [ 1 , 2 , 3 ]"), "uint8 [1,2,3]");
    assert_string_equal(read_back("int64 []"), "int64 []");
    assert_string_equal(read_back("bool"), "bool");
    assert_string_equal(read_back("half [0]"), "float16 [0]");
    assert_string_equal(read_back("string [1,2,3,4,5,6,7,?]"), "string [1,2,3,4,5,6,7,?]");
    assert_ok(rp_spec_parse("float64", &spec, why, sizeof why));
    assert_int_equal(spec.dtype, RP_FLOAT64);
    assert_int_equal(spec.shape.rank, -1);
    assert_ok(rp_spec_parse("float64 [?]", &spec, why, sizeof why));
    assert_int_equal(spec.shape.dims[0], -1);
}

static void every_dtype_is_read_by_the_name_it_is_printed_with(void **state)
{
    size_t known = 0;

    (void)state;
    for (int i = 1; i <= RP_UINT4; i++) {
        if (rp_dtype_name((rp_dtype)i) == NULL) continue;
        assert_int_equal(rp_dtype_parse(rp_dtype_text((rp_dtype)i)), i);
        assert_int_equal(rp_dtype_parse(rp_dtype_name((rp_dtype)i)), i);
        known++;
    }
    assert_int_equal(known, 25);
}

static void invalid_leaves_are_refused_with_a_reason(void **state)
{
    (void)state;
    assert_string_equal(read_back("float23"),
                        "unknown dtype 'float23', did you mean 'float32'?");
    assert_string_equal(read_back("zzz [1]"), "unknown dtype 'zzz'");
    assert_string_equal(read_back(""), "unknown dtype ''");
    assert_non_null(
        strstr(read_back("a_name_that_is_longer_than_any_dtype_there_is"), "unknown dtype"));
    assert_non_null(strstr(read_back("int32 84"), "the shape '84' is not like"));
    assert_non_null(strstr(read_back("int32 ["), "shape"));
    assert_non_null(strstr(read_back("int32 [1"), "shape"));
    assert_non_null(strstr(read_back("int32 [1,]"), "shape"));
    assert_non_null(strstr(read_back("int32 [,1]"), "shape"));
    assert_non_null(strstr(read_back("int32 [-1]"), "shape"));
    assert_non_null(strstr(read_back("int32 [1 2]"), "shape"));
    assert_non_null(strstr(read_back("int32 [1] x"), "shape"));
    assert_non_null(strstr(read_back("int32 [99999999999999999999]"), "shape"));
    assert_non_null(strstr(read_back("int32 [1,1,1,1,1,1,1,1,1]"), "at most 8"));
}

/* Parses a signature and returns its columns, or the problem. */
static const char *columns_of(const char *yaml)
{
    static char out[1024];
    rp_signature *signature = NULL;
    rp_problem problem = {""};
    rp_yaml *root = NULL;
    rp_arena arena;
    char text[256];

    rp_arena_init(&arena, NULL);
    out[0] = '\0';
    assert_ok(rp_yaml_parse(&arena, "f", yaml, strlen(yaml), &root, &problem));
    if (rp_signature_from_yaml(&arena, "signature", root, &signature, &problem) != RP_OK) {
        (void)strcpy(out, problem.text);
    } else {
        for (size_t i = 0; i < rp_signature_column_count(signature); i++) {
            const rp_spec *spec = rp_signature_column(signature, i);

            (void)strcat(out, i > 0 ? "; " : "");
            (void)strcat(out, spec->name);
            (void)strcat(out, " ");
            (void)strcat(out, rp_spec_text(spec, text, sizeof text));
        }
    }
    rp_signature_unref(signature);
    rp_arena_deinit(&arena);
    return out;
}

static void maps_lists_and_tuples_nest(void **state)
{
    (void)state;
    assert_string_equal(columns_of("float32 [?]"), " float32 [?]");
    assert_string_equal(columns_of("b: int32 [?]\na: float32 [?, 3]\n"),
                        "a float32 [?,3]; b int32 [?]");
    assert_string_equal(
        columns_of("obs:\n  - uint8 [?]\n  - pos: float32 [?]\n    vel: float32\n"),
        "obs/0 uint8 [?]; obs/1/pos float32 [?]; obs/1/vel float32");
    assert_string_equal(columns_of("!tuple [bool, int32]"), "0 bool; 1 int32");
}

static void errors_in_a_signature_have_line_and_column(void **state)
{
    (void)state;
    assert_string_equal(columns_of("a: int32 [?]\nb: flaot32 [?]\n"),
                        "f:2:4: signature.b: unknown dtype 'flaot32', did you mean "
                        "'float32'?");
    assert_string_equal(columns_of("a: {}\n"), "f:1:4: signature: an empty map");
    assert_string_equal(columns_of("a: []\n"), "f:1:4: signature: an empty list");
}

static rp_status read_nested(const rp_allocator *alloc)
{
    static const char yaml[] = "a: [int32, {b: bool, c: !tuple [int8, int8]}]\n";
    rp_signature *signature = NULL;
    rp_yaml *root = NULL;
    rp_problem problem;
    rp_arena arena;
    rp_status st;

    rp_arena_init(&arena, alloc);
    st = rp_yaml_parse(&arena, "f", yaml, strlen(yaml), &root, &problem);
    if (st == RP_OK) st = rp_signature_from_yaml(&arena, "s", root, &signature, &problem);
    rp_signature_unref(signature);
    rp_arena_deinit(&arena);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(read_nested);
}

RP_TESTS(signature_spec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_are_a_dtype_and_a_shape),
        cmocka_unit_test(every_dtype_is_read_by_the_name_it_is_printed_with),
        cmocka_unit_test(invalid_leaves_are_refused_with_a_reason),
        cmocka_unit_test(maps_lists_and_tuples_nest),
        cmocka_unit_test(errors_in_a_signature_have_line_and_column),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/item_text.h"

#include <string.h>

#include "support/unit.h"

static rp_arena arena, lasting;
static rp_line_columns columns;
static rp_problem problem;
static rp_item_line item;

static int begin(void **state)
{
    (void)state;
    rp_arena_init(&arena, NULL);
    rp_arena_init(&lasting, NULL);
    columns.count = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    rp_arena_deinit(&arena);
    rp_arena_deinit(&lasting);
    return 0;
}

static rp_status parse(const char *text)
{
    const rp_place place = {"items.jsonl", 7, 1};

    columns.arena = &lasting;
    return rp_item_line_parse(&arena, text, strlen(text), &columns, &place, &item, &problem);
}

static void assert_refused(const char *text, const char *part)
{
    assert_int_equal(parse(text), RP_INVALID);
    if (strstr(problem.text, part) == NULL) fail_msg("%s: %s", text, problem.text);
}

static rp_item_view example(void)
{
    static const float obs[] = {0.5f, -1};
    static const int32_t action = 3;
    static const rp_tensor tensors[] = {{RP_FLOAT32, {1, {2}}, obs},
                                        {RP_INT32, {0, {0}}, &action}};
    static const char *const names[] = {"observation", "action"};
    static const rp_sample sample = {
        .key = 42, .priority = 1.5, .probability = 0.25, .table_size = 4, .times_sampled = 1};

    return (rp_item_view){"replay", &sample, names, tensors, 2};
}

static void items_are_printed_as_text(void **state)
{
    rp_item_view view = example();
    rp_text_buffer buffer = {0};

    (void)state;
    rp_item_print(&buffer, &view, 1, 24);
    assert_string_equal(rp_text_buffer_text(&buffer),
                        "item 1  key 42  priority 1.5  probability 0.25  of 4 items  sampled 1 "
                        "time\n"
                        "  observation  float32 [2]  [0.5 -1]\n"
                        "  action       int32 []     3\n");
    rp_text_buffer_deinit(&buffer);
}

static void printed_json_is_read_back(void **state)
{
    rp_item_view view = example();
    rp_text_buffer buffer = {0};

    (void)state;
    rp_item_json(&buffer, &view);
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "{\"table\":\"replay\",\"key\":42,\"priority\":1.5,\"probability\":0.25,"
        "\"table_size\":4,\"times_sampled\":1,\"data\":{\"observation\":{\"dtype\":"
        "\"float32\",\"shape\":[2],\"data\":[0.5,-1]},\"action\":{\"dtype\":"
        "\"int32\",\"shape\":[],\"data\":3}}}\n");
    assert_ok(parse(rp_text_buffer_text(&buffer)));
    assert_true(item.has_priority && item.priority == 1.5);
    assert_int_equal(columns.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(columns.names[i], view.names[i]);
        assert_int_equal(item.tensors[i].dtype, view.tensors[i].dtype);
        assert_true(rp_shape_equal(&item.tensors[i].shape, &view.tensors[i].shape));
    }
    assert_memory_equal(item.tensors[0].data, view.tensors[0].data, 8);
    rp_text_buffer_deinit(&buffer);
}

static void the_first_line_defines_the_columns(void **state)
{
    (void)state;
    assert_ok(parse("{\"data\": {\"a\": 1.5, \"b\": [true]}}"));
    assert_false(item.has_priority);
    assert_true(item.priority == 1);
    assert_int_equal(columns.dtypes[0], RP_FLOAT64);
    assert_int_equal(columns.dtypes[1], RP_BOOL);
    assert_ok(parse("{\"data\": {\"b\": [false], \"a\": 2}}")); /* in any order */
    assert_int_equal(item.tensors[0].dtype, RP_FLOAT64);
    assert_ok(parse("{\"data\": [3, [true]]}"));

    assert_refused("{\"data\": {\"a\": 1}}",
                   "items.jsonl:7:10: data: expected 2 columns, got 1; column 'b' is missing");
    assert_refused("{\"data\": {\"a\": 1, \"c\": 2}}",
                   "column 'b' is missing, 'c' is not a column");
    assert_refused("{\"data\": {\"a\": \"x\", \"b\": [true]}}",
                   "items.jsonl:7:16: a: expected float64, got a string");
    assert_refused("{\"data\": {\"a\": {\"dtype\": \"int8\", \"data\": 1}, \"b\": [true]}}",
                   "a: expected float64, got int8");
}

static void a_signature_settles_the_types(void **state)
{
    (void)state;
    columns.count = 1;
    columns.names[0] = "obs";
    columns.dtypes[0] = RP_FLOAT32;
    assert_ok(parse("{\"data\": {\"obs\": [1, 2]}}"));
    assert_int_equal(item.tensors[0].dtype, RP_FLOAT32);
}

static void empty_tensors_can_be_written_with_their_shape(void **state)
{
    (void)state;
    assert_ok(parse("{\"data\": [{\"dtype\": \"float32\", \"shape\": [0, 5], \"data\": []}]}"));
    assert_int_equal(item.tensors[0].shape.rank, 2);
    assert_refused("{\"data\": [{\"dtype\": \"float32\", \"shape\": [3], \"data\": [1]}]}",
                   "another shape, [1], than the shape that is given, [3]");
    assert_refused("{\"data\": [{\"shape\": 3, \"data\": [1]}]}",
                   "expected a shape such as [2, 3], got a whole number");
    assert_refused("{\"data\": [{\"dtype\": \"float33\", \"data\": [1]}]}",
                   "unknown dtype 'float33'");
}

static void mistakes_are_named_with_their_place(void **state)
{
    (void)state;
    assert_refused("", "items.jsonl:7:1: expected a value");
    assert_refused("{\"data\": [1, 2}", "items.jsonl:7:15: expected ',' or ']'");
    assert_refused("[1]", "this is not an object: expected {");
    assert_refused("{\"priority\": 1}", "the key \"data\" is missing");
    assert_refused("{\"data\": 1}", "\"data\" is not an object or array");
    assert_refused("{\"data\": [1], \"prioriti\": 1}", "did you mean 'priority'?");
    assert_refused("{\"data\": [1], \"colour\": 1}", "unknown key 'colour'");
    assert_refused("{\"data\": [1], \"priority\": \"x\"}", "priority: expected a number");
    assert_refused("{\"data\": []}", "an item needs a column");
    assert_refused("{\"data\": [null]}", "the type is not known");
}

RP_TESTS(item_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(items_are_printed_as_text, begin, end),
        cmocka_unit_test_setup_teardown(printed_json_is_read_back, begin, end),
        cmocka_unit_test_setup_teardown(the_first_line_defines_the_columns, begin, end),
        cmocka_unit_test_setup_teardown(a_signature_settles_the_types, begin, end),
        cmocka_unit_test_setup_teardown(empty_tensors_can_be_written_with_their_shape, begin,
                                        end),
        cmocka_unit_test_setup_teardown(mistakes_are_named_with_their_place, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

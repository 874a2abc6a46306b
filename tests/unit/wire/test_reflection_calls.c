/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/reflection_messages.h"

#include "support/hex.h"
#include "wire/descriptors.h"
#include "wire/fields.h"

/* What an answer holds: the number of its kind, and the bytes of it. */
typedef struct answer {
    rp_buf bytes;
    rp_pb_field host, request, body;
} answer;

static answer ask(const char *hex)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_wire_reflection_request request;
    rp_error err = {0};
    rp_pb_reader reader;
    rp_pb_field f;
    answer a = {0};

    rp_buf_init(&a.bytes, rp_allocator_default());
    assert_ok_err(rp_wire_read_reflection_request(b.data, b.size, &request, &err), &err);
    rp_wire_write_reflection_response(&a.bytes, &request);
    assert_false(a.bytes.bad);
    reader = rp_pb_open(a.bytes.data, a.bytes.size);
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (f.number == 1) a.host = f;
        if (f.number == 2) a.request = f;
        if (f.number > 2) a.body = f;
    }
    assert_ptr_equal(reader.at, reader.end);
    /* The request comes back as it was. */
    assert_int_equal(a.request.size, b.size);
    if (b.size > 0) assert_memory_equal(a.request.data, b.data, b.size);
    return a;
}

static void expect_error(const char *hex, uint64_t code, const char *text)
{
    answer a = ask(hex);
    rp_pb_reader reader = rp_pb_open(a.body.data, a.body.size);
    rp_pb_field f;

    assert_int_equal(a.body.number, 7);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(f.number == 1 && f.value == code);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(f.number == 2 && f.size == strlen(text));
    assert_memory_equal(f.data, text, f.size);
    rp_buf_deinit(&a.bytes);
}

/* The answer must hold this file, and behind it all that it needs. */
static void expect_file(const char *hex, const char *name)
{
    answer a = ask(hex);
    const rp_wire_file *file = rp_wire_find_file((rp_string){name, strlen(name)});
    rp_pb_reader reader = rp_pb_open(a.body.data, a.body.size);
    rp_pb_field f;

    assert_non_null(file);
    assert_int_equal(a.body.number, 4);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_int_equal(f.size, file->size);
    assert_memory_equal(f.data, file->data, f.size);
    for (size_t i = 0; i < file->need_count; i++) {
        assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
        assert_int_equal(f.size, rp_wire_files[file->needs[i]].size);
    }
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_END);
    rp_buf_deinit(&a.bytes);
}

static void services_are_listed(void **state)
{
    static const char *const services[] = {"deepmind.reverb.ReverbService",
                                           "grpc.health.v1.Health",
                                           "grpc.reflection.v1.ServerReflection",
                                           "grpc.reflection.v1alpha.ServerReflection",
                                           "reprise.v1.Replay",
                                           "reprise.v1.Rollouts",
                                           "reprise.v1.Runs"};
    answer a = ask("0a0168 3a012a"); /* host "h", list_services "*" */
    rp_pb_reader reader = rp_pb_open(a.body.data, a.body.size);
    rp_pb_field f;

    (void)state;
    assert_int_equal(a.host.size, 1);
    assert_int_equal(a.body.number, 6);
    for (size_t i = 0; i < COUNT_OF(services); i++) {
        assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
        assert_int_equal(f.size, 2 + strlen(services[i]));
        assert_memory_equal(f.data + 2, services[i], f.size - 2);
    }
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_END);
    rp_buf_deinit(&a.bytes);
}

static void files_come_with_what_they_import(void **state)
{
    (void)state;
    /* tensorflow/types.proto */
    expect_file("1a16 74656e736f72666c6f772f74797065732e70726f746f", "tensorflow/types.proto");
    /* deepmind.reverb.ChunkData */
    expect_file("2219 646565706d696e642e7265766572622e4368756e6b44617461",
                "reverb/schema.proto");
}

static void unknown_names_are_errors_within_the_response(void **state)
{
    (void)state;
    expect_error("1a0161", RP_NOT_FOUND, "no such file: a");
    expect_error("220161", RP_NOT_FOUND, "no such symbol: a");
    expect_error("2200", RP_NOT_FOUND, "no such symbol: ");
    expect_error("2a05 0a0161 1007", RP_NOT_FOUND, "no extensions of this type: a");
    expect_error("320161", RP_NOT_FOUND, "no extensions of this type: a");
    expect_error("", RP_UNIMPLEMENTED, "the request asks for nothing that is known");
}

static void the_last_of_several_requests_counts(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("2a05 0a0161 1007 2a02 1008 220162 2a02 1009");
    rp_wire_reflection_request request;
    rp_error err = {0};

    (void)state;
    assert_ok(rp_wire_read_reflection_request(b.data, b.size, &request, &err));
    assert_int_equal(request.kind, RP_WIRE_REFLECT_EXTENSION);
    assert_int_equal(request.text.size, 0); /* forgotten with the first */
    assert_int_equal(request.extension_number, 9);
    assert_ok(rp_wire_read_reflection_request(b.data, 11, &request, &err));
    assert_int_equal(request.text.size, 1); /* merged */
    assert_int_equal(request.extension_number, 8);
}

static void bytes_that_are_no_request_are_refused(void **state)
{
    static const char *const wrong[] = {"0a", "1a01ff", "2a02 0a05", "0a01ff", "2a03 0a01ff"};
    rp_wire_reflection_request request;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rp_test_bytes b = rp_test_bytes_of(wrong[i]);
        assert_int_equal(rp_wire_read_reflection_request(b.data, b.size, &request, NULL),
                         RP_INVALID);
    }
}

RP_TESTS(reflection_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_are_listed),
        cmocka_unit_test(files_come_with_what_they_import),
        cmocka_unit_test(unknown_names_are_errors_within_the_response),
        cmocka_unit_test(the_last_of_several_requests_counts),
        cmocka_unit_test(bytes_that_are_no_request_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

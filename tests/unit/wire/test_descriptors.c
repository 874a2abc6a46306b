/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/descriptors.h"

#include "chunk/protobuf.h"
#include "support/unit.h"

static rp_string text(const char *text)
{
    return (rp_string){text, strlen(text)};
}

static void files_are_found_by_name_only(void **state)
{
    (void)state;
    assert_non_null(rp_wire_find_file(text("reverb/reverb_service.proto")));
    assert_non_null(rp_wire_find_file(text("google/protobuf/timestamp.proto")));
    assert_null(rp_wire_find_file(text("reverb/reverb_service.prot")));
    assert_null(rp_wire_find_file(text("reverb/reverb_service.proto2")));
    assert_null(rp_wire_find_file(text("")));
    assert_null(rp_wire_find_file((rp_string){NULL, 0}));
}

static void symbols_lead_to_the_file_that_declares_them(void **state)
{
    static const char *const symbols[][2] = {
        {"deepmind.reverb.ReverbService", "reverb/reverb_service.proto"},
        {"deepmind.reverb.ReverbService.InsertStream", "reverb/reverb_service.proto"},
        {"deepmind.reverb.SampleStreamResponse.SampleEntry", "reverb/reverb_service.proto"},
        {"deepmind.reverb.ChunkData", "reverb/schema.proto"},
        {"deepmind.reverb.ChunkData.Data.tensors", "reverb/schema.proto"},
        {"deepmind.reverb.ChunkData.Codec", "reverb/schema.proto"},
        {"deepmind.reverb.ChunkData.CODEC_ZSTD", "reverb/schema.proto"},
        {"deepmind.reverb.KeyDistributionOptions.distribution", "reverb/schema.proto"},
        {"tensorflow.DT_FLOAT", "tensorflow/types.proto"},
        {"tensorflow.DictValue.FieldsEntry", "tensorflow/struct.proto"},
        {"google.protobuf.Timestamp", "google/protobuf/timestamp.proto"},
        {"reprise.v1.Replay.Sample", "reprise/v1/reprise.proto"},
        {"reprise.v1.SIDE_BOTH", "reprise/v1/reprise.proto"},
        {"grpc.health.v1.Health", "grpc/health/v1/health.proto"},
        {"grpc.reflection.v1.ServerReflection", "grpc/reflection/v1/reflection.proto"},
        {"grpc.reflection.v1alpha.ServerReflection",
         "grpc/reflection/v1alpha/reflection.proto"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        const rp_wire_file *file = rp_wire_find_symbol(text(symbols[i][0]));
        assert_non_null(file);
        assert_string_equal(file->name, symbols[i][1]);
    }
    assert_null(rp_wire_find_symbol(text("")));
    assert_null(rp_wire_find_symbol(text("deepmind.reverb")));
    assert_null(rp_wire_find_symbol(text("deepmind.reverb.ChunkDat")));
    assert_null(rp_wire_find_symbol(text("deepmind.reverb.ChunkDataX")));
    assert_null(rp_wire_find_symbol(text("\x01")));
    assert_null(rp_wire_find_symbol(text("~")));
}

static void every_symbol_is_found(void **state)
{
    (void)state;
    assert_true(rp_wire_symbol_count > 300);
    for (size_t i = 0; i < rp_wire_symbol_count; i++)
        assert_ptr_equal(rp_wire_find_symbol(text(rp_wire_symbols[i].name)),
                         &rp_wire_files[rp_wire_symbols[i].file]);
}

/* True if `file`, or one that it needs, has the name. */
static bool is_needed(const rp_wire_file *file, rp_string name)
{
    for (size_t i = 0; i < file->need_count; i++)
        if (rp_wire_find_file(name) == &rp_wire_files[file->needs[i]]) return true;
    return false;
}

static void descriptors_name_themselves_and_need_what_they_import(void **state)
{
    (void)state;
    for (size_t i = 0; i < rp_wire_file_count; i++) {
        const rp_wire_file *file = &rp_wire_files[i];
        rp_pb_reader reader = rp_pb_open(file->data, file->size);
        rp_pb_step step;
        rp_pb_field f;
        bool named = false;
        while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
            rp_string value = {(const char *)f.data, f.size};
            if (f.number == 1) named = rp_wire_find_file(value) == file;
            if (f.number == 3) assert_true(is_needed(file, value));
        }
        assert_int_equal(step, RP_PB_END);
        assert_true(named);
        for (size_t k = 0; k < file->need_count; k++) /* and what those need */
            for (size_t n = 0; n < rp_wire_files[file->needs[k]].need_count; n++)
                assert_true(is_needed(
                    file, text(rp_wire_files[rp_wire_files[file->needs[k]].needs[n]].name)));
    }
}

RP_TESTS(descriptors)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_found_by_name_only),
        cmocka_unit_test(symbols_lead_to_the_file_that_declares_them),
        cmocka_unit_test(every_symbol_is_found),
        cmocka_unit_test(descriptors_name_themselves_and_need_what_they_import),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

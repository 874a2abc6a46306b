/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "reprise/rl/init.h"
#include "reprise/rl/safetensors.h"
#include "support/unit.h"

enum { ROOM = 8 };

/* Makes a file of a header and `data_size` bytes. Returns its size. */
static size_t file_of(const char *header, size_t data_size, uint8_t *file)
{
    size_t length = strlen(header);

    memset(file, 0, 8);
    file[0] = (uint8_t)length;
    file[1] = (uint8_t)(length >> 8);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data_size; i++) file[8 + length + i] = (uint8_t)i;
    return 8 + length + data_size;
}

static void a_file_of_another_writer_is_read(void **state)
{
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"}, \"b\": {\"dtype\":\"F16\",\"shape\":[],"
        "\"data_offsets\":[8,10]},\"a.weight\":{\"shape\":[1,2],\"data_offsets\":[0,8],"
        "\"dtype\":\"F32\"},\"empty\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[8,8]"
        "}}  ";
    uint8_t file[1024];
    size_t size = file_of(header, 10, file), count = 0;
    rp_safetensor tensors[ROOM];
    const rp_safetensor *t;
    rp_error err;

    (void)state;
    assert_ok_err(rp_safetensors_parse(file, size, tensors, ROOM, &count, &err), &err);
    assert_int_equal(count, 3);
    t = rp_safetensors_find(tensors, count, "a.weight");
    assert_non_null(t);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[1], 2);
    assert_string_equal(t->dtype, "F32");
    assert_int_equal(t->size_bytes, 8);
    assert_int_equal(t->data[7], 7);
    assert_null(rp_safetensors_find(tensors, count, "a"));
}

#define T(offsets) "{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" offsets "}"

static void a_wrong_header_is_named(void **state)
{
    static const struct {
        const char *header, *text;
        rp_status status;
    } cases[] = {
        {"", "byte 0: expected '{'", RP_CORRUPT},
        {"[]", "expected '{'", RP_CORRUPT},
        {"{} x", "bytes after the end", RP_CORRUPT},
        {"{\"a\"}", "expected ':'", RP_CORRUPT},
        {"{\"a", "a string without an end", RP_CORRUPT},
        {"{\"\xff\":1}", "not UTF-8", RP_CORRUPT},
        {"{\"a\\n\":1}", "escapes are not read", RP_UNIMPLEMENTED},
        {"{\"a\nb\":1}", "a control character", RP_CORRUPT},
        {"{\"\":" T("[0,2]") "}", "without a name", RP_CORRUPT},
        {"{\"a\":{\"dtype\":\"U8\"}}", "without dtype, shape or data_offsets", RP_CORRUPT},
        {"{\"a\":{\"type\":\"U8\"}}", "not dtype, shape or data_offsets", RP_CORRUPT},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "there twice", RP_CORRUPT},
        {"{\"a\":{\"dtype\":\"Q4\"}}", "tensor 'a': unknown dtype 'Q4'", RP_UNIMPLEMENTED},
        {"{\"a\":{\"shape\":[-1]}}", "expected an integer", RP_CORRUPT},
        {"{\"a\":{\"shape\":[01]}}", "leading zero", RP_CORRUPT},
        {"{\"a\":{\"shape\":[99999999999999999999]}}", "over 2^64", RP_CORRUPT},
        {"{\"a\":{\"shape\":[1,1,1,1,1,1,1,1,1]}}", "too many numbers", RP_CORRUPT},
        {"{\"a\":{\"data_offsets\":[1]}}", "must be two numbers", RP_CORRUPT},
        {"{\"a\":" T("[0,3]") "}", "tensor 'a': data_offsets 0 to 3 do not fit", RP_CORRUPT},
        {"{\"a\":" T("[4,2]") "}", "do not fit", RP_CORRUPT},
        {"{\"a\":" T("[3,5]") "}", "do not fit", RP_CORRUPT},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
         "do not fit", RP_CORRUPT},
        {"{\"a\":" T("[1,3]") "}", "tensor 'a': gap or overlap", RP_CORRUPT},
        {"{\"a\":" T("[0,2]") "}", "have 2 bytes, but the file has 4", RP_CORRUPT},
        {"{\"a\":" T("[0,2]") ",\"b\":" T("[0,2]") "}", "gap or overlap", RP_CORRUPT},
        {"{\"a\":" T("[0,2]") ",\"b\":" T("[1,3]") "}", "gap or overlap", RP_CORRUPT},
        {"{\"a\":" T("[0,2]") ",\"a\":" T("[2,4]") "}", "tensor 'a' is there twice",
         RP_CORRUPT},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", "there twice", RP_CORRUPT},
        {"{\"__metadata__\":{\"a\":1}}", "expected '\"'", RP_CORRUPT},
    };
    uint8_t file[1024];
    rp_safetensor tensors[ROOM];
    rp_error err;
    size_t count = 99;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t size = file_of(cases[i].header, 4, file);

        assert_fails(rp_safetensors_parse(file, size, tensors, ROOM, &count, &err),
                     cases[i].status, &err, cases[i].text);
    }
    assert_int_equal(count, 99);
}

static void a_file_that_ends_early_is_refused(void **state)
{
    uint8_t file[256];
    size_t size = file_of("{\"a\":" T("[0,2]") "}", 2, file), count = 0;
    rp_safetensor tensors[ROOM];
    rp_error err;

    (void)state;
    assert_ok(rp_safetensors_parse(file, size, tensors, ROOM, &count, &err));
    for (size_t n = 0; n < size; n++) {
        uint8_t *exact = malloc(n + 1); /* the sanitizer finds what is read beyond */

        memcpy(exact + 1, file, n);
        assert_int_equal(rp_safetensors_parse(exact + 1, n, tensors, ROOM, &count, &err),
                         RP_CORRUPT);
        free(exact);
    }
}

static void limits_hold(void **state)
{
    uint8_t file[1024];
    char header[512] = "{\"";
    size_t size = file_of("{\"a\":" T("[0,2]") ",\"b\":" T("[2,4]") "}", 4, file), count = 0;
    rp_safetensor tensors[ROOM];
    rp_error err;

    (void)state;
    assert_fails(rp_safetensors_parse(file, size, tensors, 1, &count, &err), RP_NO_RESOURCE,
                 &err, "more than 1 tensors");
    memset(header + 2, 'n', 257);
    memcpy(header + 259, "\":{}}", 6);
    size = file_of(header, 0, file);
    assert_fails(rp_safetensors_parse(file, size, tensors, ROOM, &count, &err), RP_NO_RESOURCE,
                 &err, "a name has 257 bytes");
}

static const rp_net_layer layers[] = {
    {.kind = RP_NET_CONV, .out = 3, .kernel = 2, .activation = RP_RELU},
    {.kind = RP_NET_DENSE, .out = 5},
    {.kind = RP_NET_DUELING, .out = 2, .shared = true},
};

static rp_net *make_net(float **params)
{
    rp_net *net = NULL;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 1);
    assert_ok(rp_net_new(rp_allocator_default(), (rp_net_shape){4, 3, 2}, layers,
                         COUNT_OF(layers), &net, NULL));
    *params = malloc(rp_net_size(net) * sizeof **params);
    assert_ok(rp_net_init(rp_allocator_default(), net, RP_INIT_TORCH, &rng, *params));
    return net;
}

static const char *temporary(void)
{
    static char path[256];
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, sizeof path, "%s/rp_net_XXXXXX", folder != NULL ? folder : "/tmp");
    assert_true(mkstemp(path) >= 0);
    return path;
}

static void saved_network_has_the_layout_of_pytorch_and_loads(void **state)
{
    float *params, *again;
    rp_net *net = make_net(&params);
    const char *path = temporary();
    const rp_allocator *heap = rp_allocator_default();
    uint8_t file[4096];
    rp_safetensor tensors[16];
    const rp_safetensor *t;
    size_t size, count = 0, offset = rp_net_parameter_at(net, 2)->offset;
    FILE *in;
    rp_error err;
    float number;

    (void)state;
    again = calloc(rp_net_size(net), sizeof *again);
    assert_ok_err(rp_net_save(heap, net, params, path, &err), &err);
    assert_ok_err(rp_net_load(heap, net, path, again, &err), &err);
    assert_memory_equal(params, again, rp_net_size(net) * sizeof *params);

    in = fopen(path, "rb");
    size = fread(file, 1, sizeof file, in);
    (void)fclose(in);
    assert_ok_err(rp_safetensors_parse(file, size, tensors, 16, &count, &err), &err);
    assert_int_equal(count, 8);
    t = rp_safetensors_find(tensors, count, "0.weight"); /* out, channels, height, width */
    assert_int_equal(t->rank, 4);
    assert_int_equal(t->shape[0], 3);
    assert_int_equal(t->shape[1], 2);
    t = rp_safetensors_find(tensors, count, "1.weight"); /* out, channels x height x width */
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[0], 5);
    assert_int_equal(t->shape[1], 3 * 3 * 2);
    /* Images are 3 x 2 x 3: unit 4, channel 2, row 1, column 0. */
    memcpy(&number, t->data + (4 * 18 + 2 * 6 + 1 * 2 + 0) * sizeof number, sizeof number);
    assert_true(number == params[offset + ((1 * 2 + 0) * 3 + 2) * 5 + 4]);
    (void)remove(path);
    free(params);
    free(again);
    rp_net_free(net);
}

static void loading_names_what_is_wrong_and_changes_nothing(void **state)
{
    static const rp_net_layer other[] = {{.kind = RP_NET_DENSE, .out = 5}};
    float *params, few[200] = {0};
    rp_net *net = make_net(&params), *wrong = NULL;
    const rp_allocator *heap = rp_allocator_default();
    const char *path = temporary();
    rp_error err;
    FILE *out;

    (void)state;
    assert_fails(rp_net_load(heap, net, "/nonexistent/x", few, &err), RP_NOT_FOUND, &err,
                 "'/nonexistent/x' cannot be read: No such file");
    assert_fails(rp_net_save(heap, net, params, "/nonexistent/x", &err), RP_UNAVAILABLE, &err,
                 "'/nonexistent/x.new' cannot be written: No such file");
    assert_fails(rp_net_load(heap, net, path, few, &err), RP_CORRUPT, &err, "is empty");
    assert_ok(rp_net_new(heap, (rp_net_shape){1, 1, 4}, other, 1, &wrong, NULL));
    assert_ok(rp_net_save(heap, wrong, params, path, &err));
    assert_fails(rp_net_load(heap, net, path, few, &err), RP_INVALID, &err,
                 "tensor '0.weight' is F32 5 x 4, the network needs F32 3 x 2 x 2 x 2");
    assert_ok(rp_net_save(heap, net, params, path, &err));
    rp_net_free(wrong);
    assert_ok(rp_net_new(heap, (rp_net_shape){4, 3, 2},
                         (rp_net_layer[]){layers[0], layers[1], layers[2], other[0]}, 4, &wrong,
                         NULL));
    assert_fails(rp_net_load(heap, wrong, path, few, &err), RP_NOT_FOUND, &err,
                 "has no tensor '3.weight'");
    out = fopen(path, "wb");
    assert_int_equal(fseek(out, 1L << 30, SEEK_SET), 0); /* it takes no room on the disk */
    (void)fputc(0, out);
    (void)fclose(out);
    assert_fails(rp_net_load(heap, net, path, few, &err), RP_CORRUPT, &err,
                 "has 1073741825 bytes, and a file of this network has at most ");
    out = fopen(path, "wb");
    (void)fputs("this is a text", out);
    (void)fclose(out);
    assert_fails(rp_net_load(heap, net, path, few, &err), RP_CORRUPT, &err,
                 "safetensors: the file is damaged or cut off");
    for (size_t i = 0; i < COUNT_OF(few); i++) assert_true(few[i] == 0.0F);
    (void)remove(path);
    free(params);
    rp_net_free(net);
    rp_net_free(wrong);
}

static rp_status save_and_load(const rp_allocator *alloc)
{
    float *params;
    rp_net *net = make_net(&params);
    const char *path = temporary();
    rp_status st = rp_net_save(alloc, net, params, path, NULL);

    if (st == RP_OK) st = rp_net_load(alloc, net, path, params, NULL);
    (void)remove(path);
    free(params);
    rp_net_free(net);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(save_and_load);
}

RP_TESTS(safetensors)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_another_writer_is_read),
        cmocka_unit_test(a_wrong_header_is_named),
        cmocka_unit_test(a_file_that_ends_early_is_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(saved_network_has_the_layout_of_pytorch_and_loads),
        cmocka_unit_test(loading_names_what_is_wrong_and_changes_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}

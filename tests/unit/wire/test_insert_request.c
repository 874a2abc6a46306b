/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/insert_request.h"

#include "support/hex.h"
#include "util/rng.h"

static const rp_insert_limits wide = {1000, 10, 10, 10, 10};

static rp_status read_hex(const char *hex, const rp_insert_limits *limits,
                          rp_insert_request *request, rp_error *err)
{
    static rp_test_bytes b; /* the request borrows it */

    b = rp_test_bytes_of(hex);
    *err = (rp_error){0};
    return rp_insert_request_read(b.data, b.size, limits, request, err);
}

static void parts_are_counted_and_found_in_any_order(void **state)
{
    rp_insert_request request;
    rp_pb_reader parts;
    const uint8_t *data;
    size_t size;
    uint64_t keep[4];
    rp_error err;

    (void)state;
    /* keep 5, item, chunk, keep [6, 300], unknown, chunk, keep 7 */
    assert_ok_err(read_hex("1805 1202 0801 0a02 0803 1a03 06ac02 7a0161 0a00 1807", &wide,
                           &request, &err),
                  &err);
    assert_int_equal(request.chunk_count, 2);
    assert_int_equal(request.item_count, 1);
    assert_int_equal(request.keep_count, 4);
    rp_insert_request_keep(&request, keep);
    assert_true(keep[0] == 5 && keep[1] == 6 && keep[2] == 300 && keep[3] == 7);

    parts = rp_insert_request_parts(&request);
    assert_true(rp_insert_request_next_chunk(&parts, &data, &size));
    assert_true(size == 2 && data[1] == 3);
    assert_true(rp_insert_request_next_chunk(&parts, &data, &size));
    assert_int_equal(size, 0);
    assert_false(rp_insert_request_next_chunk(&parts, &data, &size));
    parts = rp_insert_request_parts(&request);
    assert_true(rp_insert_request_next_item(&parts, &data, &size));
    assert_int_equal(size, 2);
    assert_false(rp_insert_request_next_item(&parts, &data, &size));
}

static void each_limit_holds_at_its_edge(void **state)
{
    static const struct {
        const char *fits, *over, *part;
    } edges[] = {
        {"0a02 0801", "0a03 0801 00", "chunk of 3 bytes"},
        {"1200 1200", "1200 1200 1200", "at most 2 items"},
        {"1a02 0102", "1a02 0102 1803", "at most 2 keys to keep"},
        {"1801 1802", "1a03 010203", "at most 2 keys to keep"},
    };
    const rp_insert_limits limits = {.chunk_bytes = 2, .items = 2, .keys = 2};
    rp_insert_request request;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        assert_ok_err(read_hex(edges[i].fits, &limits, &request, &err), &err);
        assert_fails(read_hex(edges[i].over, &limits, &request, &err), RP_NO_RESOURCE, &err,
                     edges[i].part);
    }
}

static void bytes_that_are_no_request_are_refused(void **state)
{
    static const char *const wrong[] = {"0a",     "0a05",      "12",
                                        "1a0180", "1a02 0180", "1a0b ffffffffffffffffffff01",
                                        "0b",     "00",        "1f"};
    rp_insert_request request;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_fails(read_hex(wrong[i], &wide, &request, &err), RP_INVALID, &err, "malformed");
}

static void a_key_to_keep_over_64_bits_is_zero(void **state)
{
    rp_insert_request request;
    uint64_t keep[2] = {1, 1};
    rp_error err;

    (void)state;
    assert_ok_err(read_hex("1a0b ffffffffffffffffff02 07", &wide, &request, &err), &err);
    assert_int_equal(request.keep_count, 2);
    rp_insert_request_keep(&request, keep);
    assert_true(keep[0] == 0 && keep[1] == 7);
}

typedef struct item {
    rp_wire_column columns[3];
    rp_wire_slice slices[4];
    rp_wire_item item;
    rp_error err;
} item;

static rp_status read_item(const char *hex, item *out)
{
    static rp_test_bytes b;

    b = rp_test_bytes_of(hex);
    *out = (item){.err = {0}};
    return rp_wire_item_read(b.data, b.size,
                             &(rp_wire_item_arrays){out->columns, COUNT_OF(out->columns),
                                                    out->slices, COUNT_OF(out->slices)},
                             &out->item, &out->err);
}

static void an_item_has_columns_of_slices(void **state)
{
    item i;

    (void)state;
    assert_ok_err(read_item("4214 0a0e 0a08 0809 1002 1803 2001 0a02 080a 0a02 0a00 3005"
                            "29000000000000f03f 120174 0807 4206 0a04 0a00 1001",
                            &i),
                  &i.err);
    assert_true(i.item.key == 7 && i.item.priority == 1.0 && i.item.times_sampled == 5);
    assert_true(i.item.table.size == 1 && i.item.table.data[0] == 't');
    assert_int_equal(i.item.column_count, 3); /* two trajectories are one */
    assert_int_equal(i.item.slice_count, 4);
    assert_true(i.columns[0].slice_count == 2 && !i.columns[0].squeeze);
    assert_true(i.columns[1].slice_count == 1 && !i.columns[1].squeeze);
    assert_true(i.columns[2].slice_count == 1 && i.columns[2].squeeze);
    assert_true(i.slices[0].chunk_key == 9 && i.slices[0].offset == 2 &&
                i.slices[0].length == 3 && i.slices[0].index == 1);
    assert_true(i.slices[1].chunk_key == 10 && i.slices[1].offset == 0 &&
                i.slices[1].length == 0 && i.slices[1].index == 0);
}

static void invalid_items_are_refused(void **state)
{
    static const struct {
        const char *hex;
        rp_status status;
        const char *part;
    } wrong[] = {
        {"0807", RP_INVALID, "item 7: its trajectory has no columns"},
        {"4200", RP_INVALID, "no columns"},
        {"4202 0a00", RP_INVALID, "column 0 has no slices"},
        {"4206 0a02 0a00 0a00", RP_INVALID, "column 1 has no slices"},
        {"4204 0a02 1001", RP_INVALID, "column 0 has no slices"},
        {"420f 0a0d 0a0b 10ffffffffffffffffff01", RP_INVALID, "ChunkSlice"}, /* offset -1 */
        {"420f 0a0d 0a0b 18ffffffffffffffffff01", RP_INVALID, "ChunkSlice"},
        {"420f 0a0d 0a0b 20ffffffffffffffffff01", RP_INVALID, "ChunkSlice"},
        {"420a 0a08 0a06 108080808008", RP_INVALID, "ChunkSlice"}, /* 2^31 */
        {"4205 0a03 0a01 08", RP_INVALID, "ChunkSlice"},
        {"4203 0a01 0a", RP_INVALID, "Column"},
        {"4201 0a", RP_INVALID, "FlatTrajectory"},
        {"08", RP_INVALID, "PrioritizedItem"},
        {"4210 0a02 0a00 0a02 0a00 0a02 0a00 0a02 0a00", RP_NO_RESOURCE, "3 columns"},
        {"420c 0a0a 0a00 0a00 0a00 0a00 0a00", RP_NO_RESOURCE, "4 slices"},
    };
    item i;

    (void)state;
    for (size_t k = 0; k < COUNT_OF(wrong); k++)
        assert_fails(read_item(wrong[k].hex, &i), wrong[k].status, &i.err, wrong[k].part);
}

static void the_name_of_a_table_has_a_limit(void **state)
{
    uint8_t bytes[300] = {0x12, 0xff, 0x01};
    uint8_t tail[] = {0x42, 0x04, 0x0a, 0x02, 0x0a, 0x00};
    item i = {.err = {0}};

    (void)state;
    memset(bytes + 3, 'x', 256);
    memcpy(bytes + 3 + 255, tail, sizeof tail);
    assert_ok(rp_wire_item_read(bytes, 3 + 255 + sizeof tail,
                                &(rp_wire_item_arrays){i.columns, 3, i.slices, 4}, &i.item,
                                &i.err));
    assert_int_equal(i.item.table.size, 255);
    bytes[1] = 0x80;
    bytes[2] = 0x02;
    bytes[3 + 255] = 'x';
    memcpy(bytes + 3 + 256, tail, sizeof tail);
    assert_fails(rp_wire_item_read(bytes, 3 + 256 + sizeof tail,
                                   &(rp_wire_item_arrays){i.columns, 3, i.slices, 4}, &i.item,
                                   &i.err),
                 RP_INVALID, &i.err, "at most 255 bytes, got 256");
}

static rp_status read_bytes(const uint8_t *data, size_t size, item *out)
{
    *out = (item){.err = {0}};
    return rp_wire_item_read(data, size,
                             &(rp_wire_item_arrays){out->columns, COUNT_OF(out->columns),
                                                    out->slices, COUNT_OF(out->slices)},
                             &out->item, &out->err);
}

/* Compares columns and slices field by field, since their padding may differ. */
static void expect_same_parts(const item *a, const item *b)
{
    assert_true(a->item.column_count <= COUNT_OF(a->columns));
    assert_true(a->item.slice_count <= COUNT_OF(a->slices));
    for (size_t k = 0; k < a->item.column_count; k++)
        assert_true(a->columns[k].slice_count == b->columns[k].slice_count &&
                    a->columns[k].squeeze == b->columns[k].squeeze);
    for (size_t k = 0; k < a->item.slice_count; k++)
        assert_true(a->slices[k].chunk_key == b->slices[k].chunk_key &&
                    a->slices[k].offset == b->slices[k].offset &&
                    a->slices[k].length == b->slices[k].length &&
                    a->slices[k].index == b->slices[k].index);
}

/* Fields in the order of their numbers are read in another way than others: an unknown field at
 * the end, which changes nothing, makes the difference. */
static void an_item_reads_the_same_with_fields_in_any_order(void **state)
{
    const rp_test_bytes whole = rp_test_bytes_of(
        "08 ffeeddccbbaa99888701 120174 29000000000000f03f 3005 3a08 08 8094ebdc03 1007"
        "421f 0a15 0a0b 08 8182838485868708 1002 0a04 080a 2001 1001 0a06 0a04 0801 1803");
    const size_t tries = rp_test_length(300000, 30000);
    size_t good = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 7);
    for (size_t i = 0; i < tries; i++) {
        uint8_t bytes[128];
        item one, other;

        memcpy(bytes, whole.data, whole.size);
        for (uint64_t n = rp_rng_below(&rng, 3); n > 0; n--)
            bytes[rp_rng_below(&rng, whole.size)] = (uint8_t)rp_rng_next(&rng);
        if (read_bytes(bytes, whole.size, &one) != RP_OK) continue;
        good++;
        memcpy(bytes + whole.size, "\x7a", 2); /* field 15, no bytes */
        assert_ok(read_bytes(bytes, whole.size + 2, &other));
        assert_true(one.item.key == other.item.key &&
                    one.item.inserted_at_ns == other.item.inserted_at_ns &&
                    one.item.times_sampled == other.item.times_sampled &&
                    one.item.column_count == other.item.column_count &&
                    one.item.slice_count == other.item.slice_count);
        assert_memory_equal(&one.item.priority, &other.item.priority, sizeof(double));
        assert_true(one.item.table.size == other.item.table.size &&
                    (one.item.table.size == 0 || one.item.table.data == other.item.table.data));
        expect_same_parts(&one, &other);
    }
    assert_true(good > tries / 4);
}

RP_TESTS(insert_request)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_counted_and_found_in_any_order),
        cmocka_unit_test(each_limit_holds_at_its_edge),
        cmocka_unit_test(bytes_that_are_no_request_are_refused),
        cmocka_unit_test(a_key_to_keep_over_64_bits_is_zero),
        cmocka_unit_test(an_item_has_columns_of_slices),
        cmocka_unit_test(invalid_items_are_refused),
        cmocka_unit_test(the_name_of_a_table_has_a_limit),
        cmocka_unit_test(an_item_reads_the_same_with_fields_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

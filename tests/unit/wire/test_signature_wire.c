/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/signature_wire.h"

#include "support/chunks.h"
#include "support/echo.h"
#include "support/hex.h"
#include "wire/fields.h"

/* Step(obs={img: uint8 [?,84,84], pos: [double scalar, string of any shape]}, act=(int32 [5],
 * ())) as protobuf writes it. */
#define STEP                                                                                   \
    "b2037d 0a0453746570"                                                                      \
    "1254 0a036f6273 124d aa034a"                                                              \
    "0a28 0a03696d67 1221 8a021e 0a03696d67 1215 120b08ffffffffffffffffff01 12020854 12020854" \
    "1804"                                                                                     \
    "0a1e 0a03706f73 1217 9a0314 0a07 8a0204 1200 1802 0a09 8a0206 12021801 1807"              \
    "121f 0a03616374 1218 a20315 0a0e 8a020b 0a0178 1204 12020805 1803 0a03 a20300"

#define LEAF "8a0204 1200 1801" /* float32 scalar */

static rp_status read_hex(const char *hex, rp_signature **out, rp_error *err)
{
    rp_test_bytes b = rp_test_bytes_of(hex);

    *err = (rp_error){0};
    return rp_wire_read_signature(rp_allocator_default(), b.data, b.size, out, err);
}

static void expect_echo(const char *hex)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_error err = {0};
    rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    assert_ok_err(rp_test_echo("StructuredValue", b.data, b.size, &out, &err), &err);
    assert_wrote(&out, hex);
    rp_buf_deinit(&out);
}

static void nested_signatures_are_read_and_written_alike(void **state)
{
    (void)state;
    expect_echo(STEP);
    expect_echo(LEAF);
    expect_echo("9a0309 0a07" LEAF);
    expect_echo("aa030d 0a0b 0a00 1207" LEAF); /* a key that is empty */
}

static void columns_have_the_paths_of_their_leaves(void **state)
{
    rp_signature *signature;
    rp_error err;
    const rp_spec *img, *last;

    (void)state;
    assert_ok_err(read_hex(STEP, &signature, &err), &err);
    assert_int_equal(rp_signature_column_count(signature), 4);
    img = rp_signature_column(signature, 0);
    assert_string_equal(img->name, "obs/img");
    assert_int_equal(img->dtype, RP_UINT8);
    assert_true(rp_shape_equal(&img->shape, &SHAPE(-1, 84, 84)));
    assert_string_equal(rp_signature_column(signature, 1)->name, "obs/pos/0");
    assert_int_equal(rp_signature_column(signature, 2)->shape.rank, -1);
    last = rp_signature_column(signature, 3);
    assert_string_equal(last->name, "act/0");
    assert_true(rp_shape_equal(&last->shape, &SHAPE(5)));
    rp_signature_unref(signature);
}

static void keys_and_names_may_follow_their_values(void **state)
{
    rp_signature *signature;
    rp_error err;
    const rp_nest_node *nodes;
    size_t count;

    (void)state;
    /* NamedTuple{pair{value, key "k"}, name "N"}; a field 9 that nobody knows in each */
    assert_ok_err(read_hex("b20315 120e 1207" LEAF "0a016b 4800 0a014e 4800", &signature, &err),
                  &err);
    nodes = rp_signature_nodes(signature, &count);
    assert_int_equal(count, 2);
    assert_int_equal(nodes[0].kind, RP_NEST_NAMEDTUPLE);
    assert_string_equal(nodes[0].type_name, "N");
    assert_string_equal(nodes[1].key, "k");
    rp_signature_unref(signature);
}

static void bounded_specs_are_read_without_their_bounds(void **state)
{
    rp_signature *signature;
    rp_error err;
    const rp_nest_node *nodes;
    size_t count;

    (void)state;
    assert_ok_err(
        read_hex("9a0215 0a016e 1204 12020803 1801 2202 0801 2a04 0801 1200", &signature, &err),
        &err);
    nodes = rp_signature_nodes(signature, &count);
    assert_int_equal(count, 1);
    assert_string_equal(nodes[0].spec.name, "n");
    assert_int_equal(nodes[0].spec.dtype, RP_FLOAT32);
    assert_true(rp_shape_equal(&nodes[0].spec.shape, &SHAPE(3)));
    rp_signature_unref(signature);
}

static void other_values_are_refused_by_their_kind(void **state)
{
    static const struct {
        const char *hex, *part;
    } wrong[] = {
        {"", "no value"},
        {"0a00", "kind 1;"},
        {"59 0000000000000000", "kind 11;"},
        {"6002", "kind 12;"},
        {"6a0161", "kind 13;"},
        {"7001", "kind 14;"},
        {"fa0100", "kind 31;"},
        {"800201", "kind 32;"},
        {"920200", "kind 34;"},
        {"880201", "kind 33;"}, /* the wrong type */
        {LEAF LEAF, "more than one kind"},
        {"9a0300", "no leaf"},
        {"9a0302 0a00", "node 1: no value"},
        {"aa0307 0a05 0a0161 1200", "node 1: no value"},
        {"aa0305 0a03 0a0161", "node 1: no value"},
        {"aa0314 0a12 1207" LEAF "1207" LEAF, "more than one kind"},
        {"8a0203 1200 18", "StructuredValue"},
        {"8a0204 1200 1814", "dtype"}, /* a resource */
        {"8a0206 1200 18ffff03", "dtype"},
        {"8a0207 1200 18ffff03", "StructuredValue"},
        {"8a0214 1210 1200 1200 1200 1200 1200 1200 1200 1200 1801" /* rank 8 */, ""},
        {"8a0216 1212 1200 1200 1200 1200 1200 1200 1200 1200 1200 1801", "more than 8"},
        {"8a0211 120d 120b 08feffffffffffffffff01 1801", "dimension 0 must be >= -1"},
        {"8a0205 0a01ff 1801", "UTF-8"},
        {"aa0318 0a0a 0a0161 1205 8a0202 1801"
         "0a0a 0a0161 1205 8a0202 1801",
         "is repeated"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rp_signature *signature = NULL;
        rp_error err;
        rp_status st = read_hex(wrong[i].hex, &signature, &err);
        if (wrong[i].part[0] == '\0') {
            assert_ok_err(st, &err);
            rp_signature_unref(signature);
            continue;
        }
        assert_fails(st, RP_INVALID, &err, wrong[i].part);
        assert_null(signature);
    }
}

/* A leaf within `depth` tuples, one in the other, as `out`. */
static void nest(rp_buf *out, size_t depth)
{
    rp_test_bytes leaf = rp_test_bytes_of(LEAF);
    size_t marks[2 * 80];

    for (size_t i = 0; i < depth; i++) {
        marks[2 * i] = rp_wire_begin(out, 52);
        marks[2 * i + 1] = rp_wire_begin(out, 1);
    }
    rp_buf_append(out, leaf.data, leaf.size);
    for (size_t i = 2 * depth; i-- > 0;) rp_wire_end(out, marks[i]);
}

static void nesting_has_a_limit(void **state)
{
    rp_signature *signature;
    rp_error err = {0};
    rp_buf bytes, again;

    (void)state;
    rp_buf_init(&bytes, rp_allocator_default());
    rp_buf_init(&again, rp_allocator_default());
    nest(&bytes, RP_MAX_NEST_DEPTH);
    assert_ok_err(rp_test_echo("StructuredValue", bytes.data, bytes.size, &again, &err), &err);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);

    rp_buf_clear(&bytes);
    nest(&bytes, RP_MAX_NEST_DEPTH + 1);
    assert_fails(rp_wire_read_signature(rp_allocator_default(), bytes.data, bytes.size,
                                        &signature, &err),
                 RP_INVALID, &err, "nested deeper than 64");
    rp_buf_deinit(&bytes);
    rp_buf_deinit(&again);
}

/* A list of `count` empty lists, and a leaf, so that it has count + 2 nodes. */
static void many_nodes(rp_buf *out, size_t count)
{
    rp_test_bytes leaf = rp_test_bytes_of("0a07" LEAF), empty = rp_test_bytes_of("0a03 9a0300");
    size_t mark = rp_wire_begin(out, 51);

    rp_buf_append(out, leaf.data, leaf.size);
    for (size_t i = 0; i < count; i++) rp_buf_append(out, empty.data, empty.size);
    rp_wire_end(out, mark);
}

static void the_number_of_nodes_has_a_limit(void **state)
{
    rp_signature *signature;
    rp_error err = {0};
    rp_buf bytes;

    (void)state;
    rp_buf_init(&bytes, rp_allocator_default());
    many_nodes(&bytes, RP_WIRE_MAX_SIGNATURE_NODES - 2);
    assert_ok_err(rp_wire_read_signature(rp_allocator_default(), bytes.data, bytes.size,
                                         &signature, &err),
                  &err);
    rp_signature_unref(signature);
    rp_buf_clear(&bytes);
    many_nodes(&bytes, RP_WIRE_MAX_SIGNATURE_NODES - 1);
    assert_fails(rp_wire_read_signature(rp_allocator_default(), bytes.data, bytes.size,
                                        &signature, &err),
                 RP_NO_RESOURCE, &err, "more than 16384 nodes");
    rp_buf_deinit(&bytes);
}

static void a_signature_of_more_than_a_mebibyte_is_refused_unparsed(void **state)
{
    rp_signature *signature;
    rp_error err = {0};
    uint8_t byte = 0;

    (void)state;
    assert_fails(rp_wire_read_signature(rp_allocator_default(), &byte,
                                        RP_WIRE_MAX_SIGNATURE_BYTES + 1, &signature, &err),
                 RP_NO_RESOURCE, &err, "1048577 bytes");
}

static void names_have_a_limit(void **state)
{
    char name[RP_WIRE_MAX_COLUMN_NAME_BYTES + 2];
    rp_signature *signature;
    rp_error err = {0};
    rp_buf bytes;

    (void)state;
    memset(name, 'x', sizeof name);
    rp_buf_init(&bytes, rp_allocator_default());
    for (size_t size = RP_WIRE_MAX_COLUMN_NAME_BYTES; size <= RP_WIRE_MAX_COLUMN_NAME_BYTES + 1;
         size++) {
        size_t mark;
        rp_status st;
        rp_buf_clear(&bytes);
        mark = rp_wire_begin(&bytes, 33);
        rp_wire_put_bytes(&bytes, 1, name, size);
        rp_wire_put_number(&bytes, 3, RP_FLOAT32);
        rp_wire_end(&bytes, mark);
        st = rp_wire_read_signature(rp_allocator_default(), bytes.data, bytes.size, &signature,
                                    &err);
        if (size == RP_WIRE_MAX_COLUMN_NAME_BYTES) {
            assert_ok_err(st, &err);
            assert_int_equal(strlen(rp_signature_column(signature, 0)->name), size);
            rp_signature_unref(signature);
        } else {
            assert_fails(st, RP_INVALID, &err, "1025 bytes, the limit is 1024");
        }
    }
    rp_buf_deinit(&bytes);
}

static rp_status read_step(const rp_allocator *alloc)
{
    rp_test_bytes b = rp_test_bytes_of(STEP);
    rp_signature *signature;
    rp_status st = rp_wire_read_signature(alloc, b.data, b.size, &signature, NULL);

    if (st == RP_OK) rp_signature_unref(signature);
    return st;
}

static void reading_without_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    rp_test_survives_oom(read_step);
}

RP_TESTS(signature_wire)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_signatures_are_read_and_written_alike),
        cmocka_unit_test(columns_have_the_paths_of_their_leaves),
        cmocka_unit_test(keys_and_names_may_follow_their_values),
        cmocka_unit_test(bounded_specs_are_read_without_their_bounds),
        cmocka_unit_test(other_values_are_refused_by_their_kind),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(the_number_of_nodes_has_a_limit),
        cmocka_unit_test(a_signature_of_more_than_a_mebibyte_is_refused_unparsed),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(reading_without_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/npy.h"

#include <stdio.h>
#include <string.h>

#include "support/unit.h"

static uint8_t file[1024];
static rp_problem problem;
static rp_tensor tensor;

/* A file of version `major` with this header and `data_bytes` zeros behind it. Its size. */
static size_t make(int major, const char *header, size_t data_bytes)
{
    size_t length = strlen(header), begin = major == 1 ? 10 : 12;

    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)major;
    file[8] = (uint8_t)length;
    file[9] = (uint8_t)(length >> 8);
    memcpy(file + begin, header, length);
    return begin + length + data_bytes;
}

static void assert_refused(size_t size, const char *part)
{
    assert_int_equal(rp_npy_parse(file, size, &tensor, &problem), RP_INVALID);
    if (strstr(problem.text, part) == NULL) fail_msg("%s: %s", part, problem.text);
}

static void files_written_by_numpy_are_read(void **state)
{
    size_t size =
        make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n", 48);

    (void)state;
    assert_ok(rp_npy_parse(file, size, &tensor, &problem));
    assert_int_equal(tensor.dtype, RP_FLOAT32);
    assert_int_equal(tensor.shape.rank, 2);
    assert_int_equal(tensor.shape.dims[0], 3);
    assert_int_equal(tensor.shape.dims[1], 4);
    assert_ptr_equal((const uint8_t *)tensor.data, file + size - 48);

    size = make(3, "{\"shape\": (), 'fortran_order': True, 'descr': '|u1'}", 1);
    assert_ok(rp_npy_parse(file, size, &tensor, &problem));
    assert_int_equal(tensor.dtype, RP_UINT8);
    assert_int_equal(tensor.shape.rank, 0);
    size = make(2, "{'descr': '<i1', 'fortran_order': True, 'shape': (5L,)}", 5);
    assert_ok(rp_npy_parse(file, size, &tensor, &problem));
    assert_int_equal(tensor.dtype, RP_INT8);
    size = make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7)}", 0);
    assert_ok(rp_npy_parse(file, size, &tensor, &problem));
}

static void unsupported_files_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *header, *part;
    } bad[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", ".astype('<f4')"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects"},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", "JSON lines"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}",
         "unsupported type: '<f16'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "ascontiguousarray"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
         "4 bytes of elements, but the shape needs 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "a smaller dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 9999999999999)}",
         "does not fit"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False}", "descr, fortran_order and shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "nothing more"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "True or False"},
        {"{'descr: 1", "the end of a string"},
        {"{'colour': 1}", "descr, fortran_order or shape"},
        {"(1,)", "'{'"},
        {"", "'{'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_refused(make(1, bad[i].header, 4), bad[i].part);
    memset(file, 0, sizeof file);
    assert_refused(100, "wrong first bytes");
    assert_refused(0, "wrong first bytes");
    assert_refused(make(4, "{}", 0), "version 4");
    (void)make(1, "{'descr': '<f4'}", 0);
    assert_refused(20, "a header of 16 bytes in a file of 20");
    (void)make(2, "", 0);
    assert_refused(11, "ends in its header");
    file[11] = 0xff;
    assert_refused(12, "a header of");
}

static void every_truncation_is_refused(void **state)
{
    size_t size = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48);

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(rp_npy_parse(file, cut, &tensor, &problem), RP_INVALID);
}

static void written_files_are_read_back(void **state)
{
    static const rp_dtype dtypes[] = {
        RP_FLOAT32, RP_FLOAT64, RP_FLOAT16, RP_INT8,   RP_INT16, RP_INT32,     RP_INT64,
        RP_UINT8,   RP_UINT16,  RP_UINT32,  RP_UINT64, RP_BOOL,  RP_COMPLEX64, RP_COMPLEX128};
    const rp_shape shapes[] = {{0, {0}}, {1, {3}}, {2, {2, 3}}, {8, {1, 1, 1, 1, 1, 1, 1, 2}}};
    char header[RP_NPY_HEADER_BYTES];

    (void)state;
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (size_t s = 0; s < COUNT_OF(shapes); s++) {
            size_t size = rp_npy_header(dtypes[d], &shapes[s], header), elements;

            assert_int_equal(size % 64, 0);
            assert_ok(rp_shape_elements(&shapes[s], &elements));
            memset(file, 0, sizeof file);
            memcpy(file, header, size);
            assert_ok(rp_npy_parse(file, size + elements * rp_dtype_size(dtypes[d]), &tensor,
                                   &problem));
            assert_int_equal(tensor.dtype, dtypes[d]);
            assert_true(rp_shape_equal(&tensor.shape, &shapes[s]));
        }
    assert_int_equal(rp_npy_header(RP_STRING, &shapes[0], header), 0);
    assert_int_equal(rp_npy_header(RP_INT8, &(rp_shape){1, {-1}}, header), 0);
    assert_true(rp_npy_header(RP_INT64,
                              &(rp_shape){8, {INT32_MAX, INT32_MAX, 1, 1, 1, 1, 1, 1}},
                              header) > 0);
    assert_true(rp_npy_header(RP_BFLOAT16, &shapes[1], header) > 0);
}

RP_TESTS(npy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_written_by_numpy_are_read),
        cmocka_unit_test(unsupported_files_are_refused_with_a_reason),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(written_files_are_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

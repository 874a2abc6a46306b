/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy files. A file is a short header, which contains a Python
 * dictionary, and then the elements:
 *
 *   93 'N' 'U' 'M' 'P' 'Y'  major minor  header length (2 bytes; from version 2 on 4)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  spaces, line feed
 *   elements, row-major, little-endian
 *
 * Pure functions. */
#ifndef RP_CLI_TEXT_NPY_H
#define RP_CLI_TEXT_NPY_H

#include "cli/text/problem.h"
#include "reprise/tensor.h"

/* Sizes of headers: the largest that rp_npy_header() writes, and the largest that
 * rp_npy_parse() accepts. */
enum { RP_NPY_HEADER_BYTES = 384, RP_NPY_MAX_HEADER = 65536 };

/* Parses a whole file of version 1, 2 or 3. The tensor borrows `bytes`, and its elements can be
 * unaligned. Returns RP_INVALID for any other file, for an element type that rp_dtype does not
 * have, for more than RP_MAX_RANK dimensions, and for a number of bytes that does not match the
 * shape. Also returns RP_INVALID for big-endian elements of more than one byte, and for Fortran
 * order if the array has more than one dimension and more than one element. */
RP_NODISCARD rp_status rp_npy_parse(const uint8_t *bytes, size_t size, rp_tensor *out,
                                    rp_problem *problem);

/* Writes the header of a file with elements of `dtype`, and returns the size of the header, a
 * multiple of 64. Returns 0 for strings, which are not supported, and for a shape with unknown
 * dimensions. In the header, a type that NumPy does not have, such as bfloat16, becomes raw
 * bytes. */
size_t rp_npy_header(rp_dtype dtype, const rp_shape *shape, char header[RP_NPY_HEADER_BYTES]);

/* Checks an array of priorities: it must have one dimension, and all its elements must be
 * finite. Returns RP_INVALID, with an error text that names the file `path` and the wrong
 * row. */
rp_status rp_npy_check_priorities(const rp_tensor *array, const char *path,
                                  rp_problem *problem);

/* If `text` is an error about the wrong dtype of a column, appends advice on converting the
 * array with NumPy. `size` is the size of the buffer `text`. */
void rp_npy_advise(char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: a short header, which is a Python dictionary, then the elements.
 *
 *   93 'N' 'U' 'M' 'P' 'Y'  major minor  header length (2 bytes; from version 2 on 4)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  spaces, line feed
 *   elements, row-major, little-endian
 *
 * Pure. */
#ifndef RP_CLI_TEXT_NPY_H
#define RP_CLI_TEXT_NPY_H

#include "cli/text/problem.h"
#include "reprise/tensor.h"

/* Room for any header that rp_npy_header() writes. */
enum { RP_NPY_HEADER_BYTES = 384, RP_NPY_MAX_HEADER = 65536 };

/* Reads a whole file of version 1 to 3. The tensor borrows `bytes`; its elements may be
 * unaligned. RP_INVALID: this is not such a file, there is no dtype for the element type, the
 * elements are big-endian or in column order (where that makes a difference), there are more
 * dimensions than RP_MAX_RANK, or the number of bytes does not match the shape. */
RP_NODISCARD rp_status rp_npy_parse(const uint8_t *bytes, size_t size, rp_tensor *out,
                                    rp_problem *problem);

/* Writes the header of a file with elements of `dtype` and returns its size, a multiple of 64.
 * Returns 0 for strings, which have no .npy form here, and if the shape is not concrete. Types
 * that NumPy does not know (bfloat16, ...) are declared as raw bytes. */
size_t rp_npy_header(rp_dtype dtype, const rp_shape *shape, char header[RP_NPY_HEADER_BYTES]);

/* Returns RP_OK if an array has one finite number for each item; else an error that names the
 * row, and the file `path`. */
rp_status rp_npy_check_priorities(const rp_tensor *array, const char *path,
                                  rp_problem *problem);

/* Adds, to an error about the dtype of a column, how NumPy converts an array to it. */
void rp_npy_advise(char *text, size_t size);

#endif

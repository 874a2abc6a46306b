/* SPDX-License-Identifier: Apache-2.0 */
/* Reads .npy files. The data of an accepted file must be within the file, and a header that we
 * write for its type and shape must be read as the same type and shape. */
#include <stdio.h>

#include "cli/text/npy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[RP_NPY_HEADER_BYTES + FUZZ_MAX_BYTES];
    char header[RP_NPY_HEADER_BYTES];
    rp_problem problem;
    rp_tensor tensor, second;
    size_t elements, bytes, head;

    if (size > FUZZ_MAX_BYTES) return 0;
    if (rp_npy_parse(data, size, &tensor, &problem) != RP_OK) {
        fuzz_check(problem.text[0] != '\0');
        for (const char *c = problem.text; *c != '\0'; c++)
            fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f);
        return 0;
    }
    fuzz_check(rp_shape_elements(&tensor.shape, &elements) == RP_OK);
    bytes = elements * rp_dtype_size(tensor.dtype);
    fuzz_check((const uint8_t *)tensor.data >= data && bytes <= size &&
               (const uint8_t *)tensor.data + bytes == data + size);
    head = rp_npy_header(tensor.dtype, &tensor.shape, header);
    fuzz_check(head > 0 && head <= sizeof header && head % 64 == 0);
    memcpy(again, header, head);
    memcpy(again + head, tensor.data, bytes);
    fuzz_check(rp_npy_parse(again, head + bytes, &second, &problem) == RP_OK);
    fuzz_check(second.dtype == tensor.dtype && rp_shape_equal(&second.shape, &tensor.shape));
    return 0;
}

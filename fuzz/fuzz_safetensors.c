/* SPDX-License-Identifier: Apache-2.0 */
/* Reads safetensors files. The data of an accepted file must be within the file and fill it,
 * and the file that we write of its tensors must be read as the same tensors. */
#include "fuzz.h"
#include "reprise/rl/safetensors.h"

enum { ROOM = 64, AGAIN_BYTES = 4 * FUZZ_MAX_BYTES };

static void check_tensor(const rp_safetensor *t, const uint8_t *data, size_t size)
{
    fuzz_check(t->name_size >= 1 && t->name_size <= RP_SAFETENSORS_MAX_NAME);
    fuzz_check((const uint8_t *)t->name >= data &&
               (const uint8_t *)t->name + t->name_size <= data + size);
    fuzz_check(t->data >= data && t->data <= data + size &&
               t->size_bytes <= (size_t)(data + size - t->data));
    fuzz_check(t->rank <= RP_SAFETENSORS_MAX_RANK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[AGAIN_BYTES];
    rp_safetensor tensors[ROOM], second[ROOM];
    rp_error err = {RP_OK, ""};
    size_t count = 0, second_count = 0, bytes = 0, written;

    if (size > FUZZ_MAX_BYTES) return 0;
    if (rp_safetensors_parse(data, size, tensors, ROOM, &count, &err) != RP_OK) {
        fuzz_check(err.code != RP_OK && err.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        check_tensor(&tensors[i], data, size);
        bytes += tensors[i].size_bytes;
    }
    fuzz_check(bytes <= size);
    written = rp_safetensors_write(tensors, count, again, sizeof again);
    fuzz_check(written == rp_safetensors_write(tensors, count, NULL, 0));
    if (written > sizeof again) return 0;
    fuzz_check(rp_safetensors_parse(again, written, second, ROOM, &second_count, &err) ==
               RP_OK);
    fuzz_check(second_count == count);
    for (size_t i = 0; i < count; i++) {
        fuzz_check(second[i].name_size == tensors[i].name_size &&
                   memcmp(second[i].name, tensors[i].name, tensors[i].name_size) == 0);
        fuzz_check(second[i].size_bytes == tensors[i].size_bytes &&
                   memcmp(second[i].data, tensors[i].data, tensors[i].size_bytes) == 0);
    }
    return 0;
}

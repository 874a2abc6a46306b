/* SPDX-License-Identifier: Apache-2.0 */
/* Compares our snappy decoder with libsnappy. For the same bytes both must give the same result
 * and the same data, and every prefix must be the beginning of the data. The last byte of the
 * input chooses the prefix.
 *
 * One difference is intended: libsnappy computes the length of a literal in 32 bits, so that a
 * literal of 4 GiB has no bytes. Ours refuses it. */
#include <snappy-c.h>

#include "chunk/snappy_decode.h"
#include "fuzz.h"

/* True if such a literal may be among the elements. */
static int may_wrap(const uint8_t *data, size_t size)
{
    return memmem(data, size, "\xfc\xff\xff\xff\xff", 5) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t ours[FUZZ_MAX_BYTES + 1], theirs[FUZZ_MAX_BYTES], prefix[FUZZ_MAX_BYTES + 1];
    size_t raw, head, want, their_raw = sizeof theirs;
    const uint8_t *literal;
    rp_status st;
    int their_ok;

    if (!rp_snappy_head(data, size, &raw, &head)) {
        fuzz_check(snappy_uncompressed_length((const char *)data, size, &their_raw) !=
                   SNAPPY_OK);
        return 0;
    }
    if (raw > FUZZ_MAX_BYTES) return 0;
    ours[raw] = 0x5a;
    st = rp_snappy_decode(data, size, raw, ours, raw);
    fuzz_check(ours[raw] == 0x5a); /* no byte after the end was written */
    their_ok =
        snappy_uncompress((const char *)data, size, (char *)theirs, &their_raw) == SNAPPY_OK;
    if (st != RP_OK && their_ok && may_wrap(data, size)) return 0;
    fuzz_check((st == RP_OK) == their_ok);
    if (st == RP_OK) fuzz_check(memcmp(ours, theirs, raw) == 0);

    literal = rp_snappy_literal(data, size, raw);
    if (literal != NULL) fuzz_check(st == RP_OK && memcmp(literal, ours, raw) == 0);

    want = raw * data[size - 1] / 256;
    prefix[want] = 0xa5;
    st = rp_snappy_decode(data, size, raw, prefix, want);
    fuzz_check(prefix[want] == 0xa5);
    if (their_ok) fuzz_check(st == RP_OK && memcmp(prefix, theirs, want) == 0);
    return 0;
}

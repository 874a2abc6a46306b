/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/hash.h"

#include <string.h>

#include "support/unit.h"

/* Of nothing, as xxHash's own tests have it. */
static void the_hash_of_no_bytes_is_that_of_xxhash(void **state)
{
    static const uint8_t expected[RP_HASH_BYTES] = "\x99\xaa\x06\xd3\x01\x47\x98\xd8"
                                                   "\x60\x01\xc3\x24\x46\x8d\x49\x7f";
    rp_hash *hash = rp_hash_new(rp_allocator_default());
    uint8_t got[RP_HASH_BYTES];

    (void)state;
    assert_non_null(hash);
    rp_hash_digest(hash, got);
    assert_memory_equal(got, expected, sizeof got);
    rp_hash_free(hash);
}

static void hashing_in_parts_gives_the_same_hash(void **state)
{
    static uint8_t data[5000];
    uint8_t whole[RP_HASH_BYTES], parts[RP_HASH_BYTES];
    rp_hash *hash = rp_hash_new(rp_allocator_default());

    (void)state;
    assert_non_null(hash);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * i);
    rp_hash_update(hash, data, sizeof data);
    rp_hash_digest(hash, whole);
    for (size_t cut = 0; cut <= sizeof data; cut += 97) {
        rp_hash_reset(hash);
        rp_hash_update(hash, data, cut);
        rp_hash_update(hash, NULL, 0);
        rp_hash_digest(hash, parts); /* looking changes nothing */
        rp_hash_update(hash, data + cut, sizeof data - cut);
        rp_hash_digest(hash, parts);
        assert_memory_equal(parts, whole, sizeof whole);
    }
    rp_hash_free(hash);
}

static rp_status make(const rp_allocator *alloc)
{
    rp_hash *hash = rp_hash_new(alloc);

    rp_hash_free(hash);
    return hash != NULL ? RP_OK : RP_NO_RESOURCE;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    rp_test_survives_oom(make);
}

RP_TESTS(hash)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_of_no_bytes_is_that_of_xxhash),
        cmocka_unit_test(hashing_in_parts_gives_the_same_hash),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

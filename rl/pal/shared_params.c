/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parameters: two slots that are written in turn, each with a sequence counter.
 *
 * Invariants:
 *   V1  `version` counts publications; version v is in slot v % 2;
 *   V2  the sequence of a slot is 2 v - 1 while version v is written to it, then 2 v;
 *   V3  a copy whose sequence was even, and the same before and after, is of one publication.
 *
 * Memory order, for V3. The writer stores the odd sequence, then each word with release: a
 * reader that loads such a word with acquire sees the odd sequence, or a later one, when it
 * loads the sequence again. The even sequence is stored with release and loaded with acquire,
 * so a reader that begins with it sees at least the words of that publication. Fences would
 * permit plain words, but ThreadSanitizer does not know them; on x86-64 these loads and stores
 * are plain ones.
 *
 * A reader repeats its copy only if the slot was written meanwhile: two publications later. */
#include "reprise/rl/shared_params.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "error/fail.h"

typedef struct slot {
    atomic_uint_fast64_t sequence; /* V2 */
    atomic_uint_fast64_t *words;
} slot;

struct rp_shared_params {
    rp_allocator alloc;
    size_t count, words, bytes;   /* numbers; words of a slot; allocated */
    atomic_uint_fast64_t version; /* V1 */
    slot slots[2];
    atomic_uint_fast64_t memory[];
};

static_assert(sizeof(atomic_uint_fast64_t) == sizeof(uint64_t), "words are copied as they are");

rp_status rp_shared_params_new(const rp_allocator *alloc, size_t count, rp_shared_params **out,
                               rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    size_t words = (count * sizeof(rp_real) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    size_t bytes = sizeof(rp_shared_params) + 2 * words * sizeof(uint64_t);
    rp_shared_params *s;

    assert(count >= 1);
    if (count > SIZE_MAX / sizeof(rp_real) / 4) return rp_rl_fail_memory(err, SIZE_MAX);
    s = a.resize(a.ctx, NULL, 0, bytes);
    if (s == NULL) return rp_rl_fail_memory(err, bytes);
    s->alloc = a;
    s->count = count;
    s->words = words;
    s->bytes = bytes;
    atomic_init(&s->version, 0);
    for (size_t i = 0; i < 2; i++) {
        atomic_init(&s->slots[i].sequence, 0);
        s->slots[i].words = s->memory + i * words;
    }
    for (size_t i = 0; i < 2 * words; i++) atomic_init(&s->memory[i], 0);
    *out = s;
    return RP_OK;
}

void rp_shared_params_free(rp_shared_params *s)
{
    if (s == NULL) return;
    rp_allocator alloc = s->alloc;
    (void)alloc.resize(alloc.ctx, s, s->bytes, 0);
}

uint64_t rp_shared_params_publish(rp_shared_params *s, const rp_real *numbers)
{
    uint64_t version = atomic_load_explicit(&s->version, memory_order_relaxed) + 1;
    slot *at = &s->slots[version % 2];
    const char *from = (const char *)numbers;
    size_t left = s->count * sizeof *numbers;

    assert(atomic_load_explicit(&at->sequence, memory_order_relaxed) % 2 == 0); /* one writer */
    atomic_store_explicit(&at->sequence, 2 * version - 1, memory_order_relaxed); /* V2 */
    for (size_t i = 0; i < s->words; i++) {
        size_t size = left < sizeof(uint64_t) ? left : sizeof(uint64_t);
        uint64_t word = 0;

        memcpy(&word, from, size);
        atomic_store_explicit(&at->words[i], word, memory_order_release); /* V3 */
        from += size;
        left -= size;
    }
    atomic_store_explicit(&at->sequence, 2 * version, memory_order_release);
    atomic_store_explicit(&s->version, version, memory_order_release);
    return version;
}

uint64_t rp_shared_params_version(const rp_shared_params *s)
{
    return atomic_load_explicit(&s->version, memory_order_acquire);
}

/* Copies a slot. Returns the version of the copy; 0 if the slot was written meanwhile (V3). */
static uint64_t copy(const rp_shared_params *s, const slot *from, rp_real *numbers)
{
    uint64_t sequence = atomic_load_explicit(&from->sequence, memory_order_acquire);
    size_t left = s->count * sizeof *numbers;
    char *to = (char *)numbers;

    if (sequence % 2 != 0) return 0;
    for (size_t i = 0; i < s->words; i++) {
        uint64_t word = atomic_load_explicit(&from->words[i], memory_order_acquire);
        size_t size = left < sizeof word ? left : sizeof word;

        memcpy(to, &word, size);
        to += size;
        left -= size;
    }
    if (atomic_load_explicit(&from->sequence, memory_order_relaxed) != sequence) return 0;
    return sequence / 2; /* V2 */
}

uint64_t rp_shared_params_read(const rp_shared_params *s, uint64_t have, rp_real *numbers)
{
    for (;;) {
        uint64_t version = rp_shared_params_version(s);

        if (version <= have) return have; /* a copy may be later than `version` */
        version = copy(s, &s->slots[version % 2], numbers);
        if (version != 0) return version;
    }
}

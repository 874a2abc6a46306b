/* SPDX-License-Identifier: Apache-2.0 */
/* Reads responses of SampleShared from a hostile server, with the shared memory to which they
 * refer. The first two bytes are the length of the response; the bytes after the response are
 * the memory. Samples that are accepted are decoded. Every hold that was acquired must be
 * released at the end. */
#include "chunk/trajectory.h"
#include "fuzz_memory.h"
#include "util/mem.h"
#include "wire/sample_response_read.h"

enum { CAPACITY = 4 };

typedef struct shared {
    rp_allocator alloc;
    const uint8_t *memory;
    size_t size;
    size_t holds;
} shared;

typedef struct hold {
    shared *of;
    size_t refs;
} hold;

static const uint8_t *find(void *ctx, uint64_t offset, uint64_t size)
{
    const shared *s = ctx;

    return offset <= s->size && size <= s->size - offset ? s->memory + offset : NULL;
}

static void *take(void *ctx, uint64_t id)
{
    shared *s = ctx;
    hold *h = rp_alloc(&s->alloc, sizeof *h);

    (void)id;
    if (h == NULL) return NULL;
    *h = (hold){s, 1};
    s->holds++;
    return h;
}

static void ref(void *ctx)
{
    hold *h = ctx;

    h->refs++;
}

static void unref(void *ctx)
{
    hold *h = ctx;
    shared *s = h->of;

    if (--h->refs > 0) return;
    s->holds--;
    rp_release(&s->alloc, h, sizeof *h);
}

/* Decodes each column of numbers that is not too large. */
static void decode(rp_decoder *decoder, const rp_trajectory *t)
{
    static uint8_t whole[FUZZ_MAX_BYTES];

    for (size_t i = 0; i < rp_trajectory_column_count(t); i++) {
        rp_trajectory_column column = rp_trajectory_get_column(t, i);
        if (column.dtype == RP_STRING || column.bytes > sizeof whole) continue;
        (void)!rp_decoder_stack(decoder, &t, 1, i, whole, column.bytes, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const rp_sample_limits limits = {.chunk = {FUZZ_MAX_BYTES, FUZZ_MAX_BYTES, 64},
                                     .chunks = 64,
                                     .columns = 64,
                                     .slices = 256,
                                     .bytes = 4 * (size_t)FUZZ_MAX_BYTES,
                                     .batch_chunks = 64,
                                     .item_bytes = 16 * (size_t)FUZZ_MAX_BYTES};
    fuzz_memory memory = {.fails = size > 2 && data[1] >= 128, .until = size > 2 ? data[2] : 0};
    shared s = {.alloc = {fuzz_memory_resize, &memory}};
    const rp_shared_source source = {find, take, ref, unref, &s};
    rp_sample_reader *reader = NULL;
    rp_sample samples[CAPACITY];
    rp_decoder *decoder = NULL;
    size_t answer, count = 0;

    if (size < 2) return 0;
    answer = data[0] | (size_t)(data[1] & 127) << 8;
    if (answer > size - 2) answer = size - 2;
    s.memory = data + 2 + answer;
    s.size = size - 2 - answer;
    if (rp_sample_reader_new(&s.alloc, &limits, &reader, NULL) == RP_OK &&
        rp_decoder_new(&s.alloc, 0, &decoder) == RP_OK) {
        rp_sample_reader_share(reader, &source);
        rp_sample_reader_open(reader, data + 2, answer, NULL);
        do {
            if (rp_sample_reader_next(reader, samples, CAPACITY, &count, NULL) != RP_OK) break;
            for (size_t i = 0; i < count; i++) decode(decoder, samples[i].trajectory);
            rp_decoder_clear(decoder);
            for (size_t i = 0; i < count; i++) rp_trajectory_unref(samples[i].trajectory);
        } while (count > 0);
    }
    rp_decoder_free(decoder);
    rp_sample_reader_free(reader);
    fuzz_check(s.holds == 0);
    fuzz_check(memory.live == 0 && memory.live_bytes == 0);
    return 0;
}

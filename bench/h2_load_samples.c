/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_load_samples.h"

#include <string.h>

#include "bench.h"

enum {
    TAG_ENTRY = 1 << 3 | 2,
    TAG_INFO = 1 << 3 | 2,
    TAG_CHUNK = 2 << 3 | 2,
    TAG_END = 3 << 3,
};

void h2_samples_init(h2_samples *samples, const h2_shape *shape, uint32_t check_every)
{
    *samples = (h2_samples){.shape = shape, .check_every = check_every, .until_check = 1};
}

void h2_samples_deinit(h2_samples *samples)
{
    h2_bytes_deinit(&samples->entry);
}

static void collect(h2_samples *s, const uint8_t *data, size_t size)
{
    if (!s->checking || size == 0) return;
    if (s->entry.size + size > s->entry.capacity) {
        s->entry.capacity = 2 * (s->entry.size + size);
        s->entry.data = bench_memory(realloc(s->entry.data, s->entry.capacity));
    }
    memcpy(s->entry.data + s->entry.size, data, size);
    s->entry.size += size;
}

static const uint8_t *read_prefix(h2_samples *s, const uint8_t *at, const uint8_t *end)
{
    if (end - at < H2_PREFIX_BYTES) return NULL;
    if (at[0] != 0) s->wrong = true;
    s->message_left = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    return at + H2_PREFIX_BYTES;
}

static void begin_entry(h2_samples *s, unsigned tag, size_t head, size_t size)
{
    if (tag != TAG_ENTRY || size == 0 || head + size > s->message_left) s->wrong = true;
    s->message_left -= head + size;
    s->entry_left = size;
    s->checking = s->check_every != 0 && --s->until_check == 0;
    if (s->checking) s->until_check = s->check_every;
    s->entry.size = 0;
}

static void begin_field(h2_samples *s, unsigned tag, size_t head, uint64_t value)
{
    s->skip = tag == TAG_INFO || tag == TAG_CHUNK ? value : 0;
    if (head + s->skip > s->entry_left) s->wrong = true;
    s->entry_left -= head + s->skip;
    switch (tag) {
    case TAG_INFO: break;
    case TAG_CHUNK: s->wrong |= value < s->shape->payload_bytes; break;
    case TAG_END: s->count += value; break;
    default: s->wrong = true;
    }
}

/* Reads one prefix or tag. Returns the address after it, or NULL if it is incomplete. */
static const uint8_t *step(h2_samples *s, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *after;
    uint64_t value;

    if (s->entry_left == 0 && s->message_left == 0) return read_prefix(s, at, end);
    after = h2_read_varint(at + 1, end, &value);
    if (after == NULL) return NULL;
    size_t head = (size_t)(after - at);
    if (s->entry_left == 0) {
        begin_entry(s, *at, head, value);
    } else {
        collect(s, at, head);
        begin_field(s, *at, head, value);
    }
    return after;
}

/* Counts an entry that is complete, and checks it if it was collected. */
static void end_entry(h2_samples *s)
{
    if (!s->checking) return;
    s->checking = false;
    s->checked++;
    if (!h2_sample_entry_ok(s->entry.data, s->entry.size, s->shape)) s->wrong = true;
}

static const uint8_t *skip_some(h2_samples *s, const uint8_t *at, const uint8_t *end)
{
    size_t n = (size_t)(end - at) < s->skip ? (size_t)(end - at) : s->skip;

    collect(s, at, n);
    s->skip -= n;
    return at + n;
}

/* Reads a prefix or tag whose first bytes are in `carry`. */
static const uint8_t *step_carried(h2_samples *s, const uint8_t *at, const uint8_t *end)
{
    while (at != end && s->carry_size < sizeof s->carry) {
        s->carry[s->carry_size++] = *at++;
        if (step(s, s->carry, s->carry + s->carry_size) != NULL) {
            s->carry_size = 0;
            return at;
        }
    }
    if (at != end) s->wrong = true;
    return at;
}

bool h2_samples_read(h2_samples *s, const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size, *next;

    while (at != end && !s->wrong) {
        if (s->skip > 0) {
            at = skip_some(s, at, end);
        } else if (s->carry_size > 0) {
            at = step_carried(s, at, end);
            if (s->carry_size > 0) break;
        } else if ((next = step(s, at, end)) != NULL) {
            at = next;
        } else {
            s->carry_size = (size_t)(end - at);
            if (s->carry_size > sizeof s->carry)
                s->wrong = true;
            else
                memcpy(s->carry, at, s->carry_size);
            break;
        }
        if (s->skip == 0 && s->entry_left == 0 && s->checking && s->entry.size > 0)
            end_entry(s);
    }
    return !s->wrong;
}

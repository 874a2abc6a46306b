/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of the state of a table. Doubles are stored as IEEE bits, so they are read back
 * exactly. */
#include <assert.h>

#include "durable/format/image.h"
#include "durable/format/pack.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/signature_wire.h"

enum {
    TABLE_VERSION = 1,
    SIGNATURE_FIELD = 1,
    NUMBERS_BYTES = 400, /* at most: the record of a table without name and signature */
    BLOCK_BYTES = 2048,  /* at most: a block without items, and its entry in the manifest */
};

static void write_limiter_options(rp_buf *out, const rp_limiter_options *o)
{
    rp_pack_double(out, o->samples_per_insert);
    rp_pack_word(out, (uint64_t)o->min_size);
    rp_pack_double(out, o->min_diff);
    rp_pack_double(out, o->max_diff);
}

static void write_selector(rp_buf *out, const rp_selector_options *o)
{
    rp_pack_number(out, (uint64_t)o->kind);
    rp_pack_double(out, o->exponent);
}

static void write_options(rp_buf *out, const rp_table_options *o)
{
    size_t name_size = strlen(o->name);

    assert(name_size >= 1 && name_size <= RP_MAX_TABLE_NAME_BYTES);
    rp_pack_number(out, name_size);
    rp_buf_append(out, o->name, name_size);
    write_selector(out, &o->sampler);
    write_selector(out, &o->remover);
    write_limiter_options(out, &o->limiter);
    rp_pack_word(out, (uint64_t)o->max_size);
    rp_pack_word(out, o->max_bytes);
    rp_pack_number(out, (uint32_t)o->max_times_sampled);
    rp_pack_number(out, o->soft_limit);
}

static void write_limiter(rp_buf *out, const rp_rate_limiter *rl)
{
    write_limiter_options(out, &rl->options);
    rp_pack_word(out, (uint64_t)rl->inserts);
    rp_pack_word(out, (uint64_t)rl->samples);
    rp_pack_word(out, (uint64_t)rl->deletes);
    rp_pack_double(out, rl->carried);
    rp_pack_double(out, rl->min_diff);
    rp_pack_double(out, rl->max_diff);
}

void rp_image_write_table(rp_buf *out, const rp_table_state *state)
{
    assert(state->live <= state->slots_used && state->slots_used <= state->slot_capacity);
    assert(state->set_counts[0] <= state->live && state->set_counts[1] <= state->live);
    rp_pack_number(out, TABLE_VERSION);
    write_options(out, &state->options);
    write_limiter(out, &state->limiter);
    for (int i = 0; i < 4; i++) rp_pack_word(out, state->rng.s[i]);
    rp_pack_double(out, state->max_priority);
    rp_pack_word(out, (uint64_t)state->updates);
    rp_pack_word(out, (uint64_t)state->evictions);
    rp_pack_word(out, (uint64_t)state->unique_samples);
    rp_pack_word(out, (uint64_t)state->deleted_episodes);
    rp_pack_word(out, state->next_sequence);
    rp_pack_word(out, state->next_turn);
    rp_pack_number(out, state->paused);
    rp_pack_number(out, state->times_altered);
    rp_pack_word(out, state->slot_capacity);
    rp_pack_word(out, state->slots_used);
    rp_pack_word(out, state->live);
    rp_pack_number(out, state->first_free);
    for (int i = 0; i < 2; i++) rp_pack_word(out, state->set_counts[i]);
    if (state->options.signature != NULL)
        rp_wire_put_signature(out, SIGNATURE_FIELD, state->options.signature);
}

rp_status rp_image_table_bytes(const rp_allocator *alloc, const rp_signature *signature,
                               uint64_t *bytes)
{
    rp_buf encoded;
    bool bad;

    rp_buf_init(&encoded, alloc);
    if (signature != NULL) rp_wire_put_signature(&encoded, SIGNATURE_FIELD, signature);
    *bytes = NUMBERS_BYTES + BLOCK_BYTES + RP_MAX_TABLE_NAME_BYTES + encoded.size;
    bad = encoded.bad;
    rp_buf_deinit(&encoded);
    return bad ? RP_NO_RESOURCE : RP_OK;
}

static void read_limiter_options(rp_unpack *in, rp_limiter_options *o)
{
    o->samples_per_insert = rp_unpack_double(in);
    o->min_size = (int64_t)rp_unpack_word(in);
    o->min_diff = rp_unpack_double(in);
    o->max_diff = rp_unpack_double(in);
}

static void read_selector(rp_unpack *in, rp_selector_options *o)
{
    o->kind = (rp_selector_kind)rp_unpack_bounded(in, RP_MAX_HEAP);
    o->exponent = rp_unpack_double(in);
}

static void read_limiter(rp_unpack *in, rp_rate_limiter *rl)
{
    read_limiter_options(in, &rl->options);
    rl->inserts = (int64_t)rp_unpack_word(in);
    rl->samples = (int64_t)rp_unpack_word(in);
    rl->deletes = (int64_t)rp_unpack_word(in);
    rl->carried = rp_unpack_double(in);
    rl->min_diff = rp_unpack_double(in);
    rl->max_diff = rp_unpack_double(in);
}

/* Reads everything between the name and the signature. */
static void read_numbers(rp_unpack *in, rp_table_state *s)
{
    read_selector(in, &s->options.sampler);
    read_selector(in, &s->options.remover);
    read_limiter_options(in, &s->options.limiter);
    s->options.max_size = (int64_t)rp_unpack_word(in);
    s->options.max_bytes = rp_unpack_word(in);
    s->options.max_times_sampled = (int32_t)rp_unpack_bounded(in, INT32_MAX);
    s->options.soft_limit = rp_unpack_bounded(in, 1) != 0;
    read_limiter(in, &s->limiter);
    for (int i = 0; i < 4; i++) s->rng.s[i] = rp_unpack_word(in);
    s->max_priority = rp_unpack_double(in);
    s->updates = (int64_t)rp_unpack_word(in);
    s->evictions = (int64_t)rp_unpack_word(in);
    s->unique_samples = (int64_t)rp_unpack_word(in);
    s->deleted_episodes = (int64_t)rp_unpack_word(in);
    s->next_sequence = rp_unpack_word(in);
    s->next_turn = rp_unpack_word(in);
    s->paused = (uint32_t)rp_unpack_bounded(in, RP_SIDE_INSERTS | RP_SIDE_SAMPLES);
    s->times_altered = rp_unpack_bounded(in, 1) != 0;
    s->slot_capacity = rp_unpack_word(in);
    s->slots_used = rp_unpack_word(in);
    s->live = rp_unpack_word(in);
    s->first_free = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    for (int i = 0; i < 2; i++) s->set_counts[i] = rp_unpack_word(in);
    if (s->slot_capacity > UINT32_MAX || s->slots_used > s->slot_capacity ||
        s->live > s->slots_used || s->set_counts[0] > s->live || s->set_counts[1] > s->live)
        in->bad = true;
}

static rp_status read_signature(const rp_allocator *alloc, rp_unpack *in, rp_signature **out,
                                rp_error *err)
{
    rp_pb_reader reader = {in->at, in->end};
    rp_pb_field field;
    rp_status st;

    if (rp_unpack_left(in) == 0) return RP_OK;
    if (rp_pb_next(&reader, &field) != RP_PB_FIELD ||
        !rp_pb_is(&field, SIGNATURE_FIELD, RP_PB_BYTES) || reader.at != reader.end)
        return rp_fail(err, RP_CORRUPT, "table: malformed signature");
    st = rp_wire_read_signature(alloc, field.data, field.size, out, err);
    if (st == RP_INVALID) st = RP_CORRUPT;
    if (st != RP_OK && err != NULL) err->code = st;
    return st;
}

rp_status rp_image_read_table(const rp_allocator *alloc, const uint8_t *data, size_t size,
                              rp_table_state *out, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    rp_table_state state = {0};
    const uint8_t *name;
    size_t name_size;
    char *copy;
    rp_status st;

    if (rp_unpack_number(&in) != TABLE_VERSION) in.bad = true;
    name_size = (size_t)rp_unpack_bounded(&in, RP_MAX_TABLE_NAME_BYTES);
    name = rp_unpack_bytes(&in, name_size);
    if (name == NULL || name_size == 0 || memchr(name, 0, name_size) != NULL) in.bad = true;
    read_numbers(&in, &state);
    if (in.bad || name == NULL)
        return rp_fail(err, RP_CORRUPT, "table: malformed at byte %zu of %zu",
                       (size_t)(in.at - data), size);
    copy = rp_alloc(alloc, name_size + 1);
    if (copy == NULL) return rp_fail_memory(err, name_size + 1);
    memcpy(copy, name, name_size);
    copy[name_size] = '\0';
    state.options.name = copy;
    st = read_signature(alloc, &in, &state.options.signature, err);
    if (st != RP_OK) {
        rp_release(alloc, copy, name_size + 1);
        return st;
    }
    *out = state;
    return RP_OK;
}

void rp_image_release_table(const rp_allocator *alloc, rp_table_state *state)
{
    char *name = (char *)(uintptr_t)state->options.name;

    if (name != NULL) rp_release(alloc, name, strlen(name) + 1);
    rp_signature_unref(state->options.signature);
    state->options.name = NULL;
    state->options.signature = NULL;
}

rp_status rp_image_same_signature(const rp_allocator *alloc, const rp_signature *a,
                                  const rp_signature *b, bool *same)
{
    rp_buf bytes[2];
    bool bad;

    *same = a == b;
    if (*same || a == NULL || b == NULL) return RP_OK;
    rp_buf_init(&bytes[0], alloc);
    rp_buf_init(&bytes[1], alloc);
    rp_wire_put_signature(&bytes[0], SIGNATURE_FIELD, a);
    rp_wire_put_signature(&bytes[1], SIGNATURE_FIELD, b);
    bad = bytes[0].bad || bytes[1].bad;
    *same = !bad && bytes[0].size == bytes[1].size &&
            memcmp(bytes[0].data, bytes[1].data, bytes[0].size) == 0;
    rp_buf_deinit(&bytes[0]);
    rp_buf_deinit(&bytes[1]);
    return bad ? RP_NO_RESOURCE : RP_OK;
}

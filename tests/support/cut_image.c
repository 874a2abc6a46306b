/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cut_image.h"

void rp_test_image_init(rp_test_image *image, const rp_cut *cut, size_t table)
{
    size_t blocks = rp_cut_block_count(cut, table);

    *image = (rp_test_image){.state = *rp_cut_state(cut, table), .block_count = blocks};
    image->slots = calloc(blocks * RP_SLOTS_PER_BLOCK + 1, sizeof *image->slots);
    image->changed = calloc(blocks + 1, sizeof *image->changed);
    image->read = calloc(blocks + 1, sizeof *image->read);
    assert_true(image->slots != NULL && image->changed != NULL && image->read != NULL);
    for (size_t i = 0; i < blocks; i++) image->changed[i] = rp_cut_block_changed(cut, table, i);
    for (int i = 0; i < 2; i++) {
        image->set_room[i] = image->state.set_counts[i];
        image->sets[i] = calloc(image->state.set_counts[i] + 1, sizeof *image->sets[i]);
        assert_non_null(image->sets[i]);
    }
    image->blocks_left = blocks;
}

void rp_test_image_deinit(rp_test_image *image)
{
    for (size_t i = 0; i < image->block_count * RP_SLOTS_PER_BLOCK; i++)
        rp_trajectory_unref(image->slots[i].trajectory);
    free(image->slots);
    free(image->changed);
    free(image->read);
    free(image->sets[0]);
    free(image->sets[1]);
    *image = (rp_test_image){0};
}

static void read_block(rp_test_image *image, rp_cut *cut, size_t table, size_t block)
{
    rp_slot *out = image->slots + block * RP_SLOTS_PER_BLOCK;

    rp_cut_read_block(cut, table, block, out);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++)
        if (out[i].trajectory != NULL) (void)rp_trajectory_ref(out[i].trajectory);
    image->read[block] = true;
    image->blocks_left--;
}

void rp_test_image_read_some(rp_test_image *image, rp_cut *cut, size_t table, rp_rng *rng,
                             size_t count)
{
    for (; count > 0 && image->blocks_left > 0; count--) {
        size_t block = rp_rng_below(rng, image->block_count);

        while (image->read[block]) block = (block + 1) % image->block_count;
        read_block(image, cut, table, block);
    }
}

void rp_test_image_read(rp_test_image *image, rp_cut *cut, size_t table, rp_rng *rng)
{
    rp_test_image_read_some(image, cut, table, rng, SIZE_MAX);
    for (int which = 0; which < 2; which++)
        for (size_t at = 0, n; at < image->state.set_counts[which]; at += n) {
            size_t left = image->state.set_counts[which] - at;
            n = 1 + rp_rng_below(rng, left);
            rp_cut_read_set(cut, table, which, at, n, image->sets[which] + at);
        }
}

static bool same_slot(const rp_slot *a, const rp_slot *b)
{
    if (a->state != b->state || a->trajectory != b->trajectory) return false;
    if (a->state == RP_SLOT_FREE) return a->next == b->next;
    return a->key == b->key && memcmp(&a->priority, &b->priority, sizeof a->priority) == 0 &&
           a->inserted_at_ns == b->inserted_at_ns && a->turn == b->turn &&
           a->sequence == b->sequence && a->times_sampled == b->times_sampled;
}

bool rp_test_image_same_block(const rp_test_image *a, const rp_test_image *b, size_t block)
{
    size_t first = block * RP_SLOTS_PER_BLOCK;

    for (size_t i = first; i < first + RP_SLOTS_PER_BLOCK; i++)
        if (!same_slot(&a->slots[i], &b->slots[i])) return false;
    return true;
}

static bool check_set(const rp_test_image *image, int which, bool *seen)
{
    const rp_table_state *s = &image->state;

    memset(seen, 0, s->slots_used);
    for (size_t i = 0; i < s->set_counts[which]; i++) {
        uint32_t slot = image->sets[which][i];

        if (slot >= s->slots_used || seen[slot]) return false;
        if (image->slots[slot].state != RP_SLOT_LIVE) return false;
        seen[slot] = true;
    }
    return true;
}

bool rp_test_image_check(const rp_test_image *image)
{
    const rp_table_state *s = &image->state;
    bool *seen = calloc(s->slots_used + 1, 1), ok = seen != NULL;
    size_t live = 0, free_slots = 0;
    uint32_t slot = s->first_free;

    for (size_t i = 0; ok && i < s->slots_used; i++) {
        const rp_slot *at = &image->slots[i];

        ok = at->state == RP_SLOT_LIVE || (at->state == RP_SLOT_FREE && at->trajectory == NULL);
        if (at->state != RP_SLOT_LIVE) continue;
        live++;
        ok = ok && at->trajectory != NULL && at->sequence < s->next_sequence &&
             at->turn < s->next_turn && rp_trajectory_column_count(at->trajectory) > 0;
    }
    for (; ok && slot != RP_SLOT_NONE && free_slots <= s->slots_used; free_slots++) {
        ok = slot < s->slots_used && image->slots[slot].state == RP_SLOT_FREE;
        if (ok) slot = image->slots[slot].next;
    }
    ok = ok && live == s->live && live + free_slots == s->slots_used &&
         s->limiter.inserts - s->limiter.deletes == (int64_t)live;
    for (int i = 0; ok && i < 2; i++) ok = check_set(image, i, seen);
    free(seen);
    return ok;
}

static rp_status give_block(void *ctx, size_t block, rp_slot *out, rp_error *err)
{
    const rp_test_image *image = ctx;

    if (image->refuse_blocks || block >= image->block_count) {
        *err = (rp_error){.code = RP_UNAVAILABLE};
        return RP_UNAVAILABLE;
    }
    memcpy(out, image->slots + block * RP_SLOTS_PER_BLOCK, RP_SLOTS_PER_BLOCK * sizeof *out);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        if (out[i].trajectory != NULL) (void)rp_trajectory_ref(out[i].trajectory);
        out[i].references = 0xdddddddd; /* the table's business, as is the tag */
        out[i].tag = 0xdddddddd;
    }
    return RP_OK;
}

static rp_status give_set(void *ctx, int which, uint32_t *out, size_t count, rp_error *err)
{
    const rp_test_image *image = ctx;

    if (image->refuse_sets || count > image->set_room[which]) {
        *err = (rp_error){.code = RP_UNAVAILABLE};
        return RP_UNAVAILABLE;
    }
    memcpy(out, image->sets[which], count * sizeof *out);
    return RP_OK;
}

rp_restore_source rp_test_image_source(rp_test_image *image)
{
    return (rp_restore_source){.block = give_block, .set = give_set, .ctx = image};
}

void rp_test_image_of(rp_test_image *image, rp_test_bed *bed, rp_table *table, bool kept)
{
    rp_cut *cut = NULL;
    rp_rng rng;

    rp_rng_init(&rng, 5);
    assert_ok_err(rp_cut_new(&bed->alloc, &table, 1, &cut, &bed->err), &bed->err);
    assert_ok_err(rp_cut_take(cut, NULL, NULL, NULL, &bed->err), &bed->err);
    rp_test_image_init(image, cut, 0);
    rp_test_image_read(image, cut, 0, &rng);
    rp_cut_free(cut, kept);
}

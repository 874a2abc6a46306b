/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of all state that the later behaviour of a table depends on. For a trajectory: its
 * slices, with the keys and sizes of the chunks, not their bytes. */
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "table/snapshot/cut.h"

typedef struct hash {
    uint64_t value;
} hash;

/* Mixes a word into the hash: a step of splitmix64 from the hash and the word. */
static void add(hash *h, uint64_t word)
{
    uint64_t state = h->value ^ word;

    h->value = rp_splitmix64(&state) + word * UINT64_C(0xff51afd7ed558ccd);
}

static void add_double(hash *h, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    add(h, bits);
}

static void add_selector(hash *h, const rp_selector_options *o)
{
    add(h, (uint64_t)o->kind);
    if (o->kind == RP_PRIORITIZED) add_double(h, o->exponent);
}

static void add_limiter(hash *h, const rp_rate_limiter *l)
{
    add_double(h, l->options.samples_per_insert);
    add(h, (uint64_t)l->options.min_size);
    add_double(h, l->options.min_diff);
    add_double(h, l->options.max_diff);
    add(h, (uint64_t)l->inserts);
    add(h, (uint64_t)l->samples);
    add(h, (uint64_t)l->deletes);
    add_double(h, l->carried);
    add_double(h, l->min_diff);
    add_double(h, l->max_diff);
}

static void add_numbers_locked(hash *h, const rp_table *t) RP_REQUIRES(t->mu)
{
    const rp_table_options *o = &t->options;

    add_selector(h, &o->sampler);
    add_selector(h, &o->remover);
    add(h, (uint64_t)o->max_size);
    add(h, o->max_bytes);
    add(h, (uint64_t)o->max_times_sampled);
    add(h, o->soft_limit);
    add_limiter(h, &t->limiter);
    for (int i = 0; i < 4; i++) add(h, t->rng.s[i]);
    add_double(h, t->max.priority);
    add(h, (uint64_t)t->updates);
    add(h, (uint64_t)t->evictions);
    add(h, (uint64_t)t->unique_samples);
    add(h, (uint64_t)t->account.deleted_episodes);
    add(h, t->account.chunk_bytes);
    add(h, rp_count_map_size(&t->account.episodes));
    add(h, t->slots.next_sequence);
    add(h, t->next_turn);
    add(h, t->paused);
    add(h, t->times_altered);
}

static void add_trajectory(hash *h, const rp_trajectory *trajectory)
{
    add(h, trajectory->column_count);
    for (uint32_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);

        add(h, column.slice_count << 1 | column.squeeze);
        for (size_t j = 0; j < column.slice_count; j++) {
            const rp_chunk_slice *slice = &column.slices[j];

            add(h, slice->chunk->origin.key);
            add(h, slice->chunk->origin.episode);
            add(h, slice->chunk->wire_bytes);
            add(h, slice->column);
            add(h, (uint64_t)slice->offset << 32 | slice->length);
        }
    }
}

/* Omits the capacity, which does not affect behaviour. */
static void add_slots_locked(hash *h, const rp_table *t) RP_REQUIRES(t->mu)
{
    const rp_slots *s = &t->slots;

    add(h, s->used);
    add(h, s->live);
    add(h, s->first_free);
    for (uint32_t i = 0; i < s->used; i++) {
        const rp_slot *slot = rp_slots_at(s, i);

        add(h, slot->state);
        if (slot->state != RP_SLOT_LIVE) {
            add(h, slot->next);
            continue;
        }
        add(h, slot->key);
        add_double(h, slot->priority);
        add(h, (uint64_t)slot->inserted_at_ns);
        add(h, slot->turn);
        add(h, slot->sequence);
        add(h, (uint64_t)slot->times_sampled);
        add_trajectory(h, slot->trajectory);
    }
}

static void add_set_locked(hash *h, rp_selector *s)
{
    const rp_dense_set *set = s->ops->dense != NULL ? s->ops->dense(s) : NULL;

    if (set == NULL) return;
    add(h, set->count);
    for (size_t i = 0; i < set->count; i++) add(h, set->slots[i]);
}

uint64_t rp_table_digest(rp_table *t)
{
    hash h = {UINT64_C(0x7265707269736531)};

    rp_mutex_lock(&t->mu);
    while (t->slots.retired > 0) { /* they do not matter once they are reclaimed */
        rp_table_unlock(t);
        rp_mutex_lock(&t->mu);
    }
    add_numbers_locked(&h, t);
    add_slots_locked(&h, t);
    add_set_locked(&h, t->sampler);
    add_set_locked(&h, t->remover);
    rp_mutex_unlock(&t->mu);
    return h.value;
}

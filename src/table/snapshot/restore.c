/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring a table from a state. The state is untrusted: every number is checked against the
 * others, and memory is allocated for data that has been read, not for announced sizes.
 *
 *   blocks    read into private slots and a private map; check each slot     no lock
 *   lists     check the free list and the sets: each slot once               no lock
 *   commit    account, selectors; then move slots and map to the table       the table's lock
 *
 * Slots are inserted into the selectors in the order that their picks depend on (selector.h):
 * by sequence for fifo and lifo, by turn for heaps, in the stored order for dense sets. So only
 * that order of a selector is stored. */
#include "table/snapshot/cut.h"

#include <assert.h>
#include <math.h>

#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    SETS = 2,
    FIRST_BLOCKS = 64, /* blocks of slots in the first allocation; each later one doubles */
};

/* The state of a restore. */
typedef struct restore {
    rp_table *t;
    const rp_table_state *state;
    const rp_restore_source *source;
    rp_error *err;
    rp_slots slots;
    rp_map keys;
    rp_weighed max;
    size_t chunks;        /* sum over live slots of their numbers of chunks */
    size_t zeros[SETS];   /* live slots of weight 0 for the sampler, the remover */
    uint32_t *sets[SETS]; /* the order of their dense sets */
    size_t set_counts[SETS];
} restore;

static const rp_selector *selector_of(const rp_table *t, int which) RP_NO_THREAD_SAFETY_ANALYSIS
{
    return which == 0 ? t->sampler : t->remover; /* constant */
}

static rp_status bad(const restore *r, const char *what)
{
    return rp_fail(r->err, RP_CORRUPT, "table '%.60s': %s", r->t->options.name, what);
}

static rp_status bad_slot(const restore *r, size_t slot, const char *what)
{
    return rp_fail(r->err, RP_CORRUPT, "table '%.60s': slot %zu: %s", r->t->options.name, slot,
                   what);
}

static bool same_limiter(const rp_limiter_options *a, const rp_limiter_options *b)
{
    return a->samples_per_insert == b->samples_per_insert && a->min_size == b->min_size &&
           a->min_diff == b->min_diff && a->max_diff == b->max_diff;
}

/* The options of the table after the restore. */
static rp_table_options options_after(const restore *r)
{
    rp_table_options now = r->t->options, o = r->state->options;

    o.name = now.name;
    o.signature = now.signature;
    o.extensions = now.extensions;
    o.extension_count = now.extension_count;
    o.seed = now.seed;
    return o;
}

static rp_status check_options(const restore *r)
{
    const rp_table_options *now = &r->t->options;
    rp_table_options o = options_after(r);
    rp_error why;

    if (!rp_selector_options_equal(&o.sampler, &now->sampler) ||
        !rp_selector_options_equal(&o.remover, &now->remover))
        return rp_fail(r->err, RP_PRECONDITION,
                       "table '%.60s': the state's sampler and remover are others", now->name);
    if (rp_table_check_options(&o, &why) != RP_OK) return bad(r, why.text);
    return RP_OK;
}

/* Counters grow by one, so from such a value they never overflow, and float64 is exact. */
static bool is_count(int64_t n)
{
    return n >= 0 && n <= (int64_t)RP_MAX_DIFF;
}

static rp_status check_limiter(const restore *r)
{
    const rp_table_state *s = r->state;
    const rp_rate_limiter *l = &s->limiter;
    rp_rate_limiter again = *l;

    if (!same_limiter(&l->options, &s->options.limiter))
        return bad(r, "the limiter's options are not the table's");
    if (!is_count(l->inserts) || !is_count(l->deletes) || !is_count(l->samples))
        return bad(r, "a count of the limiter is below 0 or over 2^53");
    if ((uint64_t)(l->inserts - l->deletes) != s->live)
        return bad(r, "inserts - deletes is not the number of items");
    if (!(fabs(l->carried) < RP_MAX_DIFF) || l->carried != floor(l->carried))
        return bad(r, "what the limiter carries is not a whole number below 2^53");
    rp_rate_limiter_alter(&again, &l->options); /* recomputes the bounds */
    if (again.min_diff != l->min_diff || again.max_diff != l->max_diff)
        return bad(r, "the limiter's bounds are not those of its options");
    return RP_OK;
}

static rp_status check_counters(restore *r)
{
    const rp_table_state *s = r->state;
    const uint64_t *random = s->rng.s;

    if (!is_count(s->updates) || !is_count(s->evictions) || !is_count(s->unique_samples) ||
        !is_count(s->deleted_episodes))
        return bad(r, "a counter is below 0 or over 2^53");
    if (s->evictions > s->limiter.deletes) return bad(r, "more evictions than deletes");
    if (s->unique_samples > s->limiter.samples)
        return bad(r, "more items sampled than samples");
    if ((random[0] | random[1] | random[2] | random[3]) == 0)
        return bad(r, "the random generator's state is 0");
    if (!(s->max_priority >= r->t->one.priority) || isinf(s->max_priority) ||
        rp_table_weigh(r->t, s->max_priority, &r->max, NULL) != RP_OK)
        return bad(r, "the largest priority cannot be one");
    if ((s->paused & ~(uint32_t)(RP_SIDE_INSERTS | RP_SIDE_SAMPLES)) != 0)
        return bad(r, "the sides that are paused are not known");
    if (s->next_sequence > RP_MAX_SEQUENCE / 2 || s->next_turn > UINT64_MAX / 2)
        return bad(r, "a sequence or turn is absurd");
    return RP_OK;
}

/* A full table at most doubles, or makes room for one block of items. Larger capacities are
 * refused, so that a small input cannot cause a large allocation. */
static rp_status check_sizes(const restore *r)
{
    const rp_table_state *s = r->state;

    if (s->slots_used > (uint64_t)1 << 31 || s->slot_capacity < s->slots_used ||
        s->slot_capacity % RP_SLOTS_PER_BLOCK != 0 ||
        s->slot_capacity > 2 * (s->slots_used + RP_BLOCK) + RP_SLOTS_PER_BLOCK)
        return bad(r, "the number of slots cannot be");
    if (s->live > s->slots_used) return bad(r, "more items than slots");
    if (!s->options.soft_limit && s->live > (uint64_t)s->options.max_size)
        return bad(r, "more items than max_size");
    if (s->next_sequence < s->live || s->next_turn < s->live)
        return bad(r, "the next sequence or turn is below the number of items");
    for (int i = 0; i < SETS; i++) {
        rp_selector_kind kind = selector_of(r->t, i)->options.kind;
        uint64_t count = s->set_counts[i];

        if (kind == RP_UNIFORM ? count != s->live
                               : count > (kind == RP_PRIORITIZED ? s->live : 0))
            return bad(r, "a set has more or fewer slots than it can");
    }
    return RP_OK;
}

static rp_status check_state(restore *r)
{
    rp_status st = check_options(r);

    if (st == RP_OK) st = check_limiter(r);
    if (st == RP_OK) st = check_counters(r);
    return st == RP_OK ? check_sizes(r) : st;
}

/* Allocates more slots, up to the final capacity. The number of slabs stays far below its
 * bound, since each allocation but the last doubles the capacity. */
static rp_status grow(restore *r, size_t blocks)
{
    size_t most = r->state->slot_capacity / RP_SLOTS_PER_BLOCK;
    size_t have = r->slots.capacity / RP_SLOTS_PER_BLOCK, want;

    if (blocks <= have) return RP_OK;
    want = have == 0 ? FIRST_BLOCKS : 2 * have;
    if (want > most) want = most;
    return rp_slots_add_blocks(&r->slots, want - have);
}

static rp_status check_slot(restore *r, uint32_t number, rp_slot *slot)
{
    const rp_table_state *s = r->state;
    const rp_signature *signature = r->t->options.signature;
    rp_weighed w;
    rp_error why;

    if (slot->trajectory == NULL) return bad_slot(r, number, "it has no trajectory");
    if (slot->sequence >= s->next_sequence)
        return bad_slot(r, number, "its sequence is to come");
    if (slot->turn >= s->next_turn) return bad_slot(r, number, "its turn is to come");
    if (slot->times_sampled < 0) return bad_slot(r, number, "times_sampled is below 0");
    if (rp_table_weigh(r->t, slot->priority, &w, &why) != RP_OK)
        return bad_slot(r, number, why.text);
    if (slot->priority > s->max_priority && !isinf(slot->priority))
        return bad_slot(r, number, "its priority is over the largest");
    r->zeros[0] += w.sampler_value == 0;
    r->zeros[1] += w.remover_value == 0;
    if (signature != NULL && rp_trajectory_check(slot->trajectory, signature, &why) != RP_OK)
        return bad_slot(r, number, why.text);
    r->chunks += slot->trajectory->chunk_count;
    return RP_OK;
}

/* Adds the key of an item to the map. Fails if it is there already. */
static rp_status enter_key(restore *r, uint32_t number, rp_slot *slot)
{
    rp_map_cursor at;
    uint32_t other;

    slot->tag = rp_map_tag(&r->keys, slot->key);
    at = rp_map_start(&r->keys, slot->tag);
    while ((other = rp_map_next(slot->tag, &at)) != RP_MAP_NONE)
        if (rp_slots_at(&r->slots, other)->key == slot->key)
            return bad_slot(r, number, "its key is in another slot too");
    rp_map_insert(&r->keys, slot->tag, number);
    return RP_OK;
}

/* Checks the slots of a block and copies them. Takes ownership of every trajectory in the
 * block, valid or not. */
static rp_status take_block(restore *r, size_t block, const rp_slot *from)
{
    uint32_t first = (uint32_t)(block * RP_SLOTS_PER_BLOCK);
    size_t left = r->state->slots_used - first;
    size_t count = left < RP_SLOTS_PER_BLOCK ? left : RP_SLOTS_PER_BLOCK;
    rp_status st = RP_OK;

    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        bool is_live = from[i].state == RP_SLOT_LIVE;
        rp_slot *slot = rp_slots_change(&r->slots, first + (uint32_t)i);
        uint32_t number = first + (uint32_t)i;

        if (st == RP_OK && i >= count && (is_live || from[i].trajectory != NULL))
            st = bad_slot(r, number, "it is beyond those in use");
        if (st == RP_OK && !is_live && from[i].state != RP_SLOT_FREE)
            st = bad_slot(r, number, "it is neither live nor free");
        if (st == RP_OK && !is_live && from[i].trajectory != NULL)
            st = bad_slot(r, number, "it is free and has a trajectory");
        if (st == RP_OK && is_live) {
            *slot = from[i];
            slot->references = 1;
            slot->next = 0;
            r->slots.live++;
            st = check_slot(r, number, slot);
            if (st == RP_OK) st = enter_key(r, number, slot);
        } else if (st == RP_OK && i < count) {
            slot->next = from[i].next;
        } else {
            rp_trajectory_unref(from[i].trajectory);
        }
    }
    r->slots.used = first + count;
    return st;
}

static rp_status read_blocks(restore *r)
{
    size_t used = r->state->slots_used;
    rp_slot *block = rp_alloc_array(&r->t->alloc, RP_SLOTS_PER_BLOCK, sizeof *block);
    rp_status st = block != NULL ? RP_OK : RP_NO_RESOURCE;

    for (size_t i = 0; st == RP_OK && i * RP_SLOTS_PER_BLOCK < used; i++) {
        st = grow(r, i + 1);
        if (st == RP_OK) st = rp_map_reserve(&r->keys, RP_SLOTS_PER_BLOCK);
        if (st != RP_OK) break;
        memset(block, 0, RP_SLOTS_PER_BLOCK * sizeof *block);
        st = r->source->block(r->source->ctx, i, block, r->err);
        if (st != RP_OK) goto out;
        st = take_block(r, i, block);
        if (st != RP_OK) goto out;
    }
    while (st == RP_OK && r->slots.capacity < r->state->slot_capacity)
        st = grow(r, r->slots.capacity / RP_SLOTS_PER_BLOCK + 1);
    if (st != RP_OK) st = rp_fail_memory(r->err, used * sizeof *block);
out:
    rp_release(&r->t->alloc, block, RP_SLOTS_PER_BLOCK * sizeof *block);
    return st;
}

/* A list that ends after as many steps as there are free slots contains each of them once: a
 * list with a cycle would not end. */
static rp_status check_free_list(restore *r)
{
    uint32_t slot = r->state->first_free;
    size_t left = r->slots.used - r->slots.live;

    if (r->slots.live != r->state->live) return bad(r, "there are more or fewer live slots");
    for (; left > 0 && slot != RP_SLOT_NONE; left--) {
        if (slot >= r->slots.used) return bad_slot(r, slot, "free, but beyond those in use");
        if (rp_slots_at(&r->slots, slot)->state != RP_SLOT_FREE)
            return bad_slot(r, slot, "in the free list, but live");
        slot = rp_slots_at(&r->slots, slot)->next;
    }
    if (left > 0 || slot != RP_SLOT_NONE)
        return bad(r, "the free list does not have each free slot once");
    r->slots.first_free = r->state->first_free;
    return RP_OK;
}

/* The value of a slot's priority, which has been checked, in a selector. */
static double value_of(const rp_selector *s, const rp_slot *slot)
{
    double value = 0;
    bool ok = rp_selector_values(s, &slot->priority, &value, 1);

    assert(ok);
    (void)ok;
    return value;
}

/* True if a live slot belongs to the dense set of a selector. */
static bool belongs(const restore *r, int which, uint32_t number)
{
    const rp_selector *s = selector_of(r->t, which);

    return s->options.kind == RP_UNIFORM || value_of(s, rp_slots_at(&r->slots, number)) == 0;
}

static rp_status check_set(const restore *r, const uint32_t *set, size_t count, int which,
                           uint8_t *seen)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t slot = set[i];
        uint8_t bit = (uint8_t)(1 << slot % 8);

        if (slot >= r->slots.used || rp_slots_at(&r->slots, slot)->state != RP_SLOT_LIVE)
            return bad_slot(r, slot, "in a set, but not live");
        if (!belongs(r, which, slot))
            return bad_slot(r, slot, "in the set of those of weight 0, but has another");
        if (seen[slot / 8] & bit) return bad_slot(r, slot, "twice in a set");
        seen[slot / 8] |= bit;
    }
    return RP_OK;
}

static rp_status read_set(restore *r, int which)
{
    rp_selector_kind kind = selector_of(r->t, which)->options.kind;
    size_t count = r->state->set_counts[which], bytes = r->slots.used / 8 + 1;
    uint32_t *set;
    uint8_t *seen;
    rp_status st;

    if (kind == RP_PRIORITIZED && count != r->zeros[which])
        return bad(r, "the set of slots of weight 0 has more or fewer than there are");
    if (count == 0) return RP_OK;
    set = rp_alloc_array(&r->t->alloc, count, sizeof *set);
    if (set == NULL) return rp_fail_memory(r->err, count * sizeof *set);
    r->sets[which] = set;
    r->set_counts[which] = count;
    seen = rp_alloc_zero(&r->t->alloc, bytes);
    if (seen == NULL) return rp_fail_memory(r->err, bytes);
    st = r->source->set(r->source->ctx, which, set, count, r->err);
    if (st == RP_OK) st = check_set(r, set, count, which, seen);
    rp_release(&r->t->alloc, seen, bytes);
    return st;
}

typedef struct ranked {
    uint64_t rank;
    uint32_t slot;
} ranked;

/* Radix sort by rank, a byte at a time from the lowest. Skips bytes that are equal in all. The
 * result is in `a`. */
static void sort(ranked *a, ranked *b, size_t count)
{
    ranked *from = a, *to = b, *swap;
    uint64_t differ = 0;

    for (size_t i = 1; i < count; i++) differ |= a[i].rank ^ a[0].rank;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t at[256] = {0}, sum = 0;

        if ((differ >> shift & 0xff) == 0) continue;
        for (size_t i = 0; i < count; i++) at[from[i].rank >> shift & 0xff]++;
        for (int i = 0; i < 256; i++) {
            size_t n = at[i];
            at[i] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++) to[at[from[i].rank >> shift & 0xff]++] = from[i];
        swap = from, from = to, to = swap;
    }
    if (from != a) memcpy(a, from, count * sizeof *a);
}

static size_t list_live(const restore *r, bool by_turn, ranked *out)
{
    size_t n = 0;

    for (uint32_t i = 0; i < r->slots.used; i++) {
        const rp_slot *slot = rp_slots_at(&r->slots, i);
        if (slot->state != RP_SLOT_LIVE) continue;
        out[n++] = (ranked){by_turn ? slot->turn : slot->sequence, i};
    }
    return n;
}

/* The live slots in the order of their turns or sequences. */
static rp_status put_in_order(restore *r, int which, bool by_turn)
{
    size_t count = r->slots.live, bytes, listed;
    ranked *a = NULL, *b = NULL;
    rp_status st = RP_OK;

    if (count == 0) return RP_OK;
    r->sets[which] = rp_alloc_array(&r->t->alloc, count, sizeof **r->sets);
    if (r->sets[which] == NULL) return rp_fail_memory(r->err, count * sizeof **r->sets);
    r->set_counts[which] = count;
    bytes = count * sizeof *a;
    a = rp_alloc(&r->t->alloc, bytes);
    b = rp_alloc(&r->t->alloc, bytes);
    if (a == NULL || b == NULL) {
        st = rp_fail_memory(r->err, bytes);
        goto out;
    }
    listed = list_live(r, by_turn, a);
    assert(listed == count);
    (void)listed;
    sort(a, b, count);
    for (size_t i = 0; i < count; i++) {
        r->sets[which][i] = a[i].slot;
        if (i > 0 && a[i].rank == a[i - 1].rank) {
            st = bad_slot(r, a[i].slot,
                          by_turn ? "its turn is another's too"
                                  : "its sequence is another's too");
            break;
        }
    }
out:
    rp_release(&r->t->alloc, a, bytes);
    rp_release(&r->t->alloc, b, bytes);
    return st;
}

static rp_status order_for(restore *r, int which)
{
    switch (selector_of(r->t, which)->options.kind) {
    case RP_FIFO:
    case RP_LIFO: return put_in_order(r, which, false);
    case RP_MIN_HEAP:
    case RP_MAX_HEAP: return put_in_order(r, which, true);
    case RP_UNIFORM:
    case RP_PRIORITIZED: break;
    }
    return read_set(r, which);
}

static bool is_new_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    return t->slots.used == 0 && t->slots.next_sequence == 0 && t->next_turn == 0 &&
           !t->being_cut && !t->closed;
}

/* Inserts the live slots into a selector, in its order; for a prioritized one, slots of weight
 * > 0 first. */
static void fill_selector_locked(restore *r, int which) RP_REQUIRES(r->t->mu)
{
    rp_selector *s = which == 0 ? r->t->sampler : r->t->remover;
    bool weighty_first = s->options.kind == RP_PRIORITIZED;

    for (uint32_t i = 0; weighty_first && i < r->slots.used; i++) {
        const rp_slot *slot = rp_slots_at(&r->slots, i);
        double value;

        if (slot->state != RP_SLOT_LIVE) continue;
        value = value_of(s, slot);
        if (value != 0) s->ops->insert(s, &i, &value, 1);
    }
    for (size_t i = 0; i < r->set_counts[which]; i++) {
        uint32_t number = r->sets[which][i];
        double value = value_of(s, rp_slots_at(&r->slots, number));

        s->ops->insert(s, &number, &value, 1);
    }
}

/* Removes the items of the first `count` slots from the account again. */
static void count_out_locked(restore *r, uint32_t count) RP_REQUIRES(r->t->mu)
{
    rp_account *a = &r->t->account;

    for (uint32_t i = 0; i < count; i++)
        if (rp_slots_at(&r->slots, i)->state == RP_SLOT_LIVE)
            rp_account_remove(a, rp_slots_at(&r->slots, i)->trajectory);
    rp_account_settle(a, 0);
    rp_account_reset(a);
}

/* Items are restored even beyond the byte limits of the table or the store: an earlier version
 * or configuration accepted them. The next insert evicts or waits as usual. */
static rp_status count_in_locked(restore *r) RP_REQUIRES(r->t->mu)
{
    rp_account *a = &r->t->account;
    uint32_t i = 0;
    rp_status st = RP_OK;

    if (rp_account_reserve(a, r->chunks) != RP_OK)
        return rp_fail_memory(r->err, r->chunks * sizeof(rp_count));
    for (; i < r->slots.used && st == RP_OK; i++) {
        const rp_slot *slot = rp_slots_at(&r->slots, i);

        if (slot->state != RP_SLOT_LIVE) continue;
        st = rp_budget_claim(a->budget, slot->trajectory, r->err);
        if (st != RP_OK) break;
        rp_account_add(a, slot->trajectory);
    }
    rp_account_settle(a, 0);
    rp_account_publish(a, rp_slots_spare(&r->slots));
    if (st != RP_OK) count_out_locked(r, i);
    return st;
}

/* Moves the restored state into the table: first the steps that can fail, then the others. */
static rp_status commit_locked(restore *r) RP_REQUIRES(r->t->mu)
{
    rp_table *t = r->t;
    const rp_table_state *s = r->state;
    rp_slots empty = t->slots;
    rp_status st;

    if (r->slots.capacity > 0 &&
        (t->sampler->ops->reserve(t->sampler, r->slots.capacity) != RP_OK ||
         t->remover->ops->reserve(t->remover, r->slots.capacity) != RP_OK))
        return rp_fail_memory(r->err, r->slots.capacity);
    st = count_in_locked(r);
    if (st != RP_OK) return st;
    fill_selector_locked(r, 0);
    fill_selector_locked(r, 1);
    r->slots.next_sequence = s->next_sequence;
    t->slots = r->slots;
    r->slots = empty;
    rp_map_take(&t->keys, &r->keys);
    t->options = options_after(r);
    t->limiter = s->limiter;
    t->rng = s->rng;
    t->max = r->max;
    t->updates = s->updates;
    t->evictions = s->evictions;
    t->unique_samples = s->unique_samples;
    t->account.deleted_episodes = s->deleted_episodes;
    t->next_turn = s->next_turn;
    t->paused = s->paused;
    t->times_altered = s->times_altered;
    t->keeps_numbers = true;
    return RP_OK;
}

static rp_status commit(restore *r)
{
    rp_status st;

    rp_mutex_lock(&r->t->mu);
    if (is_new_locked(r->t))
        st = commit_locked(r);
    else
        st = rp_fail(r->err, RP_PRECONDITION, "table '%.60s' is not new", r->t->options.name);
    rp_table_unlock(r->t); /* resumes parked operations */
    return st;
}

static bool is_new(rp_table *t)
{
    bool yes;

    rp_mutex_lock(&t->mu);
    yes = is_new_locked(t);
    rp_mutex_unlock(&t->mu);
    return yes;
}

rp_status rp_table_restore(rp_table *t, const rp_table_state *state,
                           const rp_restore_source *source,
                           rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    restore r = {.t = t, .state = state, .source = source, .err = err};
    rp_status st;

    if (!is_new(t))
        return rp_fail(err, RP_PRECONDITION, "table '%.60s' is not new", t->options.name);
    rp_slots_init(&r.slots, &t->alloc);
    rp_map_init_like(&r.keys, &t->keys);
    st = check_state(&r);
    if (st == RP_OK) st = read_blocks(&r);
    if (st == RP_OK) st = check_free_list(&r);
    for (int i = 0; i < SETS && st == RP_OK; i++) st = order_for(&r, i);
    if (st == RP_OK) st = commit(&r);
    rp_slots_deinit(&r.slots);
    rp_map_deinit(&r.keys);
    for (int i = 0; i < SETS; i++)
        rp_release(&t->alloc, r.sets[i], r.set_counts[i] * sizeof **r.sets);
    return st;
}

void rp_table_set_unchanged(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    if (t->slots.cut == NULL && t->slots.marks != NULL)
        memset(t->slots.marks, 0, t->slots.mark_room);
    rp_mutex_unlock(&t->mu);
}

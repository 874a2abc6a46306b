/* SPDX-License-Identifier: Apache-2.0 */
#include "table/account.h"

#include <assert.h>
#include <stdio.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

rp_budget *rp_budget_new(const rp_allocator *alloc, uint64_t limit, rp_budget_policy policy)
{
    rp_budget *b = rp_alloc_zero(alloc, sizeof *b);

    if (b == NULL) return NULL;
    rp_refcount_init(&b->refs);
    b->alloc = *alloc;
    rp_mutex_init(&b->entry, RP_RANK_ENTRY);
    rp_mutex_init(&b->mu, RP_RANK_BUDGET);
    b->limit = limit;
    b->policy = policy;
    atomic_init(&b->used, 0);
    atomic_init(&b->idle, 0);
    atomic_init(&b->lost, 0);
    atomic_init(&b->kept, 0);
    atomic_init(&b->image, 0);
    atomic_init(&b->freed, 0);
    atomic_init(&b->wants_relief, false);
    atomic_init(&b->cuts, 0);
    atomic_init(&b->waiting, 0);
    return b;
}

rp_budget *rp_budget_ref(rp_budget *b)
{
    rp_refcount_inc(&b->refs);
    return b;
}

void rp_budget_unref(rp_budget *b)
{
    rp_allocator alloc;

    if (b == NULL || !rp_refcount_dec(&b->refs)) return;
    assert(b->first_waiter == NULL && b->last_waiter == NULL);
    assert(atomic_load(&b->waiting) == 0 && atomic_load(&b->cuts) == 0);
    alloc = b->alloc;
    rp_mutex_deinit(&b->entry);
    rp_mutex_deinit(&b->mu);
    rp_release(&alloc, b, sizeof *b);
}

void rp_account_init(rp_account *a, rp_budget *budget, uint16_t id, const rp_allocator *alloc,
                     uint64_t seed)
{
    assert(id >= 1); /* 0 marks a free entry of a chunk */
    *a = (rp_account){.budget = rp_budget_ref(budget), .id = id};
    rp_count_map_init(&a->episodes, alloc, seed);
    rp_count_map_init(&a->spilled, alloc, seed + 1);
}

void rp_account_deinit(rp_account *a)
{
    rp_count_map_deinit(&a->episodes);
    rp_count_map_deinit(&a->spilled);
    rp_budget_unref(a->budget);
}

rp_status rp_account_reserve(rp_account *a, size_t chunk_count)
{
    if (rp_count_map_reserve(&a->episodes, chunk_count) != RP_OK) return RP_NO_RESOURCE;
    return rp_count_map_reserve(&a->spilled, chunk_count);
}

/* The fields of rp_holders.state. */
static uint16_t id_at(uint64_t state, int entry)
{
    return (uint16_t)(state >> (32 + 16 * entry));
}
static uint64_t with_id(uint64_t state, int entry, uint16_t id)
{
    uint64_t mask = (uint64_t)0xffff << (32 + 16 * entry);
    return (state & ~mask) | (uint64_t)id << (32 + 16 * entry);
}

/* The entry of `id`, or -1. */
static int entry_of(uint64_t state, uint16_t id)
{
    for (int i = 0; i < RP_INLINE_HOLDERS; i++)
        if (id_at(state, i) == id) return i;
    return -1;
}

static void flush_moves(rp_account *a)
{
    rp_spill *spill = a->budget->spill;

    if (a->moved_small != 0) {
        (void)atomic_fetch_add(&spill->resident, (uint_fast64_t)a->moved_small);
        (void)atomic_fetch_add(&spill->small, (uint_fast64_t)a->moved_small);
    }
    if (a->moved_count > 0 || atomic_load(&spill->resident) > spill->limit / 4 * 3)
        spill->moved(spill, a->moved, a->moved_count);
    a->moved_count = 0;
    a->moved_bytes = 0;
    a->moved_small = 0;
}

/* The bytes of a chunk that never go to disk: its header, or all of a small chunk. */
static uint64_t chunk_small(const rp_chunk *chunk)
{
    return rp_chunk_can_spill(chunk) ? rp_chunk_memory(chunk) - chunk->wire_bytes
                                     : rp_chunk_memory(chunk);
}

/* Records that a chunk got its first holder (+1) or lost its last one (-1). */
static void record_move(rp_account *a, rp_chunk *chunk, int come)
{
    a->moved_small += come * (int64_t)chunk_small(chunk);
    if (!rp_chunk_can_spill(chunk)) return;
    assert(a->moved_count < RP_MAX_MOVED);
    a->moved[a->moved_count++] = chunk;
    if (come > 0) a->moved_bytes += chunk->wire_bytes;
    if (a->moved_count == RP_MAX_MOVED || a->moved_bytes >= RP_MAX_MOVED_BYTES) flush_moves(a);
}

/* Only this account writes its id, so a relaxed load is enough to find it. */
static uint64_t state_of(const rp_chunk *chunk)
{
    return atomic_load_explicit(&chunk->holders.state, memory_order_relaxed);
}

static uint64_t spill_key(const rp_chunk *chunk)
{
    return (uint64_t)(uintptr_t)chunk; /* alive as long as we count it */
}

static bool is_spilled(const rp_account *a, const rp_chunk *chunk)
{
    return rp_count_map_size(&a->spilled) > 0 &&
           rp_count_map_get(&a->spilled, spill_key(chunk)) > 0;
}

static bool is_held(const rp_account *a, const rp_chunk *chunk)
{
    return entry_of(state_of(chunk), a->id) >= 0 || is_spilled(a, chunk);
}

/* Adds this account to the holders of a chunk. Returns the state before. */
static uint64_t become_holder(rp_account *a, rp_chunk *chunk)
{
    uint_least64_t old = state_of(chunk), changed;
    int entry;

    do { /* acquires the count from its last owner */
        entry = entry_of(old, 0);
        changed = entry < 0 ? old + 1 : with_id(old + 1, entry, a->id);
    } while (!atomic_compare_exchange_weak_explicit(
        &chunk->holders.state, &old, changed, memory_order_acquire, memory_order_relaxed));
    if (entry >= 0)
        chunk->holders.counts[entry] = 1;
    else
        (void)rp_count_map_add(&a->spilled, spill_key(chunk));
    return old;
}

/* Removes this account from the holders of a chunk. Returns the state after. */
static uint64_t quit_holder(rp_chunk *chunk, int entry)
{
    uint_least64_t old = state_of(chunk), changed;

    assert(rp_holders_in(old) > 0);
    do { /* releases the count to its next owner */
        changed = entry < 0 ? old - 1 : with_id(old - 1, entry, 0);
    } while (!atomic_compare_exchange_weak_explicit(
        &chunk->holders.state, &old, changed, memory_order_release, memory_order_relaxed));
    return changed;
}

/* Moves a kept chunk of `bytes` bytes from budget.kept to budget.used for its first holder
 * (+1), or back after its last one (-1); `state` is the state without that holder. N1 of
 * chunk/keep.h. */
static void move_kept(rp_account *a, size_t bytes, uint64_t state, int come)
{
    if (state & RP_HOLDERS_KEPT) a->kept -= come * (int64_t)bytes;
}

/* Counts one more table that holds a chunk besides another (+1), or one less (-1). */
static void count_holder(rp_account *a, int come)
{
    a->unsettled += come * RP_HOLDER_BYTES;
    if (a->budget->spill != NULL) a->moved_small += come * RP_HOLDER_BYTES;
}

static void hold_slow(rp_account *a, rp_chunk *chunk)
{
    int entry = entry_of(state_of(chunk), a->id);
    bool has_tier = a->budget->spill != NULL;
    size_t bytes;
    uint64_t before;

    if (entry >= 0) {
        chunk->holders.counts[entry]++;
    } else if (is_spilled(a, chunk)) {
        (void)rp_count_map_add(&a->spilled, spill_key(chunk));
    } else {
        bytes = rp_chunk_memory(chunk);
        a->bytes += bytes;
        a->chunk_bytes += chunk->wire_bytes;
        if (has_tier) a->small_bytes += chunk_small(chunk);
        (void)rp_count_map_add(&a->episodes, chunk->origin.episode);
        before = become_holder(a, chunk);
        if (rp_holders_in(before) > 0) {
            count_holder(a, 1);
            return;
        }
        move_kept(a, bytes, before, 1);
        a->unsettled += (int64_t)bytes;
        if (has_tier) record_move(a, chunk, 1);
    }
}

static void release_slow(rp_account *a, rp_chunk *chunk)
{
    int entry = entry_of(state_of(chunk), a->id);
    bool has_tier = a->budget->spill != NULL;
    size_t bytes;
    uint64_t after;

    if (entry >= 0 ? --chunk->holders.counts[entry] > 0
                   : rp_count_map_sub(&a->spilled, spill_key(chunk)) > 0)
        return;
    bytes = rp_chunk_memory(chunk);
    assert(a->bytes >= bytes && a->chunk_bytes >= chunk->wire_bytes);
    a->bytes -= bytes;
    a->chunk_bytes -= chunk->wire_bytes;
    if (has_tier) a->small_bytes -= chunk_small(chunk);
    if (rp_count_map_sub(&a->episodes, chunk->origin.episode) == 0) a->deleted_episodes++;
    after = quit_holder(chunk, entry);
    if (rp_holders_in(after) > 0) {
        count_holder(a, -1);
        a->freed += RP_HOLDER_BYTES;
        return;
    }
    move_kept(a, bytes, after, -1);
    a->unsettled -= (int64_t)bytes;
    a->freed += bytes;
    if (has_tier) record_move(a, chunk, -1);
}

/* Add or remove one reference to a chunk. In most cases the first entry belongs to this
 * account. */
static inline void hold(rp_account *a, rp_chunk *chunk)
{
    if (id_at(state_of(chunk), 0) == a->id)
        chunk->holders.counts[0]++;
    else
        hold_slow(a, chunk);
}

static inline void release_reference(rp_account *a, rp_chunk *chunk)
{
    if (id_at(state_of(chunk), 0) == a->id && chunk->holders.counts[0] > 1)
        chunk->holders.counts[0]--;
    else
        release_slow(a, chunk);
}

uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory)
{
    uint64_t bytes = trajectory->item_cost;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        if (!is_held(a, trajectory->chunks[i])) bytes += rp_chunk_memory(trajectory->chunks[i]);
    return bytes;
}

/* Without a limit, two tables may settle the addition and the removal of a shared chunk in
 * reverse order, so `used` may be briefly below 0. */
uint64_t rp_budget_used(const rp_budget *b)
{
    uint64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    return used > INT64_MAX ? 0 : used;
}

void rp_budget_add_kept(rp_budget *b, uint64_t change)
{
    if (change != 0)
        (void)atomic_fetch_add_explicit(&b->kept, (uint_fast64_t)change, memory_order_relaxed);
}

/* May be briefly below 0 if two threads apply their changes in reverse order. */
uint64_t rp_budget_kept(const rp_budget *b)
{
    uint64_t kept = atomic_load_explicit(&b->kept, memory_order_relaxed);
    return kept > INT64_MAX ? 0 : kept;
}

rp_budget_memory rp_budget_memory_now(const rp_budget *b)
{
    rp_budget_memory now = {b->limit, rp_budget_used(b)};
    uint64_t lost;

    if (b->spill == NULL) return now;
    lost = atomic_load(&b->lost);
    now.limit = b->spill->limit;
    now.used = atomic_load(&b->spill->resident);
    now.used = now.used > lost ? now.used - lost : 0; /* A4 */
    return now;
}

char *rp_budget_lost_text(const rp_budget *b, char text[RP_LOST_TEXT_BYTES])
{
    uint64_t lost = atomic_load(&b->lost);

    text[0] = '\0';
    if (lost > 0)
        (void)snprintf(text, RP_LOST_TEXT_BYTES, ", %llu are lost in memory between items",
                       (unsigned long long)lost);
    return text;
}

/* Relaxed: the field changes once, from 0, and orders no other data. */
rp_status rp_budget_claim(rp_budget *b, const rp_trajectory *trajectory, rp_error *err)
{
    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];
        uintptr_t owner = atomic_load_explicit(&chunk->holders.budget, memory_order_relaxed);

        if (owner == (uintptr_t)b) continue;
        if (owner == 0 && atomic_compare_exchange_strong_explicit(
                              &chunk->holders.budget, &owner, (uintptr_t)b,
                              memory_order_relaxed, memory_order_relaxed))
            continue;
        if (owner != (uintptr_t)b)
            return rp_fail(err, RP_INVALID, "chunk %llu is in use by another store",
                           (unsigned long long)chunk->origin.key);
    }
    return RP_OK;
}

uint64_t rp_account_new_bytes(const rp_trajectory *trajectory)
{
    uint64_t bytes = trajectory->item_cost;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        if (rp_holders_in(state_of(trajectory->chunks[i])) == 0)
            bytes += rp_chunk_memory(trajectory->chunks[i]);
    return bytes;
}

bool rp_account_has_room(const rp_account *a, const rp_trajectory *trajectory)
{
    const rp_spill *spill = a->budget->spill;
    uint64_t wanted;

    if (spill == NULL) return true;
    wanted = atomic_load(&spill->resident) + a->moved_bytes + rp_account_new_bytes(trajectory);
    if (a->moved_small > 0) wanted += (uint64_t)a->moved_small;
    return wanted <= spill->limit;
}

uint64_t rp_account_small(const rp_account *a)
{
    /* Changes that have not been reported to the tier may be negative. */
    uint64_t bytes =
        atomic_load(&a->budget->spill->small) + (uint64_t)a->moved_small; /* modulo 2^64 */

    return bytes > INT64_MAX ? 0 : bytes;
}

uint64_t rp_account_small_gain(const rp_account *a, const rp_trajectory *leaving)
{
    uint64_t bytes = leaving->item_cost;

    for (uint32_t i = 0; i < leaving->chunk_count; i++) {
        const rp_chunk *chunk = leaving->chunks[i];
        uint64_t state = state_of(chunk);
        int entry = entry_of(state, a->id);

        if (rp_holders_in(state) == 1 && entry >= 0 && chunk->holders.counts[entry] == 1)
            bytes += chunk_small(chunk);
    }
    return bytes;
}

uint64_t rp_account_small_shortage(const rp_account *a, const rp_trajectory *trajectory)
{
    const rp_spill *spill = a->budget->spill;
    uint64_t wanted;

    if (spill == NULL) return 0;
    wanted = rp_account_small(a) + rp_account_new_bytes(trajectory);
    return wanted > spill->limit ? wanted - spill->limit : 0;
}

/* Adds the cost of an item without its chunks; negative to remove it. */
static void count_item(rp_account *a, int64_t cost)
{
    assert(cost >= 0 || a->bytes >= (uint64_t)-cost);
    a->bytes += (uint64_t)cost;
    a->unsettled += cost;
    if (a->budget->spill == NULL) return;
    a->small_bytes += (uint64_t)cost;
    a->moved_small += cost;
}

/* The bucket of a number: 2^bucket <= n < 2^(bucket + 1). */
static int bucket_of(size_t n)
{
    return 63 - __builtin_clzll((unsigned long long)n | 1);
}

static void add_size(rp_sizes *sizes, size_t n)
{
    int bucket = bucket_of(n);

    sizes->counts[bucket]++;
    sizes->used |= (uint64_t)1 << bucket;
}

static void remove_size(rp_sizes *sizes, size_t n)
{
    int bucket = bucket_of(n);

    assert(sizes->counts[bucket] > 0); /* A5 */
    if (--sizes->counts[bucket] == 0) sizes->used &= ~((uint64_t)1 << bucket);
}

static size_t largest(const rp_sizes *sizes)
{
    return sizes->used == 0 ? 0 : ((size_t)2 << bucket_of(sizes->used)) - 1;
}

size_t rp_account_most_chunks(const rp_account *a)
{
    return largest(&a->chunk_counts);
}

void rp_account_add(rp_account *a, const rp_trajectory *trajectory)
{
    add_size(&a->chunk_counts, trajectory->chunk_count);
    count_item(a, trajectory->item_cost);
    a->image += rp_trajectory_image(trajectory);
    for (uint32_t i = 0; i < trajectory->chunk_count; i++) hold(a, trajectory->chunks[i]);
}

void rp_account_remove(rp_account *a, const rp_trajectory *trajectory)
{
    remove_size(&a->chunk_counts, trajectory->chunk_count);
    count_item(a, -(int64_t)trajectory->item_cost);
    assert(a->image >= rp_trajectory_image(trajectory));
    a->image -= rp_trajectory_image(trajectory);
    a->freed += trajectory->item_cost;
    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        release_reference(a, trajectory->chunks[i]);
}

void rp_account_enter(rp_account *a, const rp_trajectory *trajectory, rp_entry *entry)
{
    uint64_t bytes = a->bytes;
    int64_t unsettled = a->unsettled;
    size_t episodes = rp_count_map_size(&a->episodes);

    rp_account_add(a, trajectory);
    *entry = (rp_entry){.bytes = a->bytes - bytes,
                        .unsettled = a->unsettled - unsettled,
                        .episodes = rp_count_map_size(&a->episodes) - episodes};
}

/* Bytes that are removed with the item but were not added with it belonged to items that were
 * removed meanwhile. */
void rp_account_take_back(rp_account *a, const rp_trajectory *trajectory, const rp_entry *entry)
{
    uint64_t freed = a->freed;
    int64_t unsettled = a->unsettled, left;

    rp_account_remove(a, trajectory);
    left = unsettled - a->unsettled - entry->unsettled;
    /* Without a limit, another table may hold one of the chunks by now: then less is freed. */
    a->freed = freed + (left > 0 ? (uint64_t)left : 0);
    a->deleted_episodes -= (int64_t)entry->episodes;
    assert(a->deleted_episodes >= 0);
}

/* Idle index memory that the budget counts. */
static uint64_t idle_bytes(size_t spare)
{
    uint64_t bytes = (uint64_t)spare * RP_ITEM_INDEX_BYTES;

    return bytes > RP_FREE_INDEX_BYTES ? bytes - RP_FREE_INDEX_BYTES : 0;
}

/* The change of the budget if the account is settled, modulo 2^64. */
static uint64_t change_of(const rp_account *a, size_t spare)
{
    return (uint64_t)a->unsettled + idle_bytes(spare) - a->idle;
}

/* Lost bytes that count against the limit. Sequentially consistent, like `used`. */
static uint64_t lost_to(const rp_budget *b)
{
    return b->spill == NULL ? atomic_load(&b->lost) : 0; /* A4 */
}

uint64_t rp_account_shortage(const rp_account *a, size_t spare)
{
    uint64_t used = atomic_load(&a->budget->used) + change_of(a, spare) + lost_to(a->budget);

    return a->budget->limit > 0 && used > a->budget->limit ? used - a->budget->limit : 0;
}

uint64_t rp_account_gain(const rp_account *a, const rp_trajectory *leaving, size_t spare)
{
    uint64_t bytes = leaving->item_cost, kept = idle_bytes(spare + 1);

    for (uint32_t i = 0; i < leaving->chunk_count; i++) {
        const rp_chunk *chunk = leaving->chunks[i];
        uint64_t state = state_of(chunk);
        int entry = entry_of(state, a->id);
        uint32_t held = entry >= 0 ? chunk->holders.counts[entry]
                                   : rp_count_map_get(&a->spilled, spill_key(chunk));

        if (held == 1)
            bytes += rp_holders_in(state) == 1 ? rp_chunk_memory(chunk) : RP_HOLDER_BYTES;
    }
    return bytes - (kept - idle_bytes(spare));
}

uint64_t rp_account_most_gain(uint64_t bytes, size_t count, size_t spare)
{
    return bytes - (idle_bytes(spare + count) - idle_bytes(spare));
}

bool rp_account_has_much_idle(const rp_account *a)
{
    const rp_budget *b = a->budget;
    uint64_t idle = atomic_load_explicit(&b->idle, memory_order_relaxed);

    if (a->idle == 0) return false;
    return atomic_load_explicit(&b->waiting, memory_order_relaxed) > 0 ||
           (b->limit > 0 && idle > b->limit / 16) ||
           (b->spill != NULL && idle > b->spill->limit / 16);
}

/* Marks the account as settled. Idle index memory never goes to disk, so the tier counts it. */
static void set_settled(rp_account *a, size_t spare)
{
    uint64_t idle = idle_bytes(spare);

    if (idle != a->idle) (void)atomic_fetch_add(&a->budget->idle, idle - a->idle);
    if (a->budget->spill != NULL) a->moved_small += (int64_t)(idle - a->idle);
    if (a->kept != 0) rp_budget_add_kept(a->budget, (uint64_t)a->kept);
    a->kept = 0;
    a->unsettled = 0;
    a->idle = idle;
}

bool rp_account_settle_within(rp_account *a, size_t spare)
{
    rp_budget *b = a->budget;
    uint64_t change = change_of(a, spare);
    uint_fast64_t used = atomic_load(&b->used);

    assert(b->limit == 0 || rp_mutex_is_held(&b->entry));
    do
        if (b->limit > 0 && used + change + lost_to(b) > b->limit) return false;
    while (!atomic_compare_exchange_weak(&b->used, &used, used + change));
    set_settled(a, spare);
    return true;
}

void rp_account_publish(rp_account *a, size_t spare)
{
    uint64_t image = a->image + (uint64_t)spare * RP_IMAGE_SLOT_BYTES;

    if (image == a->published) return;
    (void)atomic_fetch_add_explicit(&a->budget->image, image - a->published,
                                    memory_order_relaxed);
    a->published = image;
}

uint64_t rp_budget_image(const rp_budget *b)
{
    return atomic_load_explicit(&b->image, memory_order_relaxed);
}

/* Sequentially consistent, like `waiting`: either a table that begins to wait sees the bytes
 * that this frees, or the caller sees that the table waits. */
void rp_account_settle(rp_account *a, size_t spare)
{
    rp_budget *b = a->budget;
    uint64_t change = change_of(a, spare);

    if (change != 0) (void)atomic_fetch_add(&b->used, (uint_fast64_t)change);
    set_settled(a, spare);
    rp_account_publish(a, spare);
    if (b->spill != NULL && (a->moved_count > 0 || a->moved_small != 0)) flush_moves(a);
}

void rp_account_trim(rp_account *a)
{
    rp_count_map_trim(&a->episodes);
    rp_count_map_trim(&a->spilled);
}

void rp_account_reset(rp_account *a)
{
    assert(a->bytes == 0 && a->chunk_bytes == 0 && a->chunk_counts.used == 0);
    assert(rp_count_map_size(&a->episodes) == 0 && rp_count_map_size(&a->spilled) == 0);
    a->deleted_episodes = 0;
}

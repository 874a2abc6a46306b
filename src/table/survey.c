/* SPDX-License-Identifier: Apache-2.0 */
#include "table/survey.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "table/table.h"
#include "util/rng.h"

enum {
    PIECE = 64,                          /* slots in one acquisition of the lock */
    MOST_TRIES = 4 * RP_SURVEY_ITEMS,    /* slots that are looked at */
    SCANNED_SLOTS = 4 * RP_SURVEY_ITEMS, /* of a table that is read from end to end */
};

typedef struct state {
    rp_rng rng;
    size_t seen; /* live slots of a table that is read from end to end */
    size_t at;   /* the next slot of it */
    double total;
} state;

static rp_surveyed describe(const rp_slot *slot)
{
    return (rp_surveyed){
        .key = slot->key,
        .priority = slot->priority,
        .inserted_at_ns = slot->inserted_at_ns,
        .sequence = slot->sequence,
        .times_sampled = slot->times_sampled,
    };
}

/* Adds an item of a table that is read from end to end. Each has the same chance to stay
 * (reservoir sampling: Vitter 1985, algorithm R). */
static void add(rp_survey *out, state *s, const rp_slot *slot)
{
    uint64_t place = s->seen++;

    if (place >= RP_SURVEY_ITEMS) place = rp_rng_below(&s->rng, place + 1);
    if (place < RP_SURVEY_ITEMS) out->items[place] = describe(slot);
    if (out->count < RP_SURVEY_ITEMS) out->count++;
}

/* Reads the next slots of a small table. False at its end. */
static bool scan_locked(rp_table *t, rp_survey *out, state *s) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < PIECE && s->at < t->slots.used; i++, s->at++) {
        const rp_slot *slot = rp_slots_at(&t->slots, (uint32_t)s->at);

        if (slot->state == RP_SLOT_LIVE) add(out, s, slot);
    }
    return s->at < t->slots.used && s->at < SCANNED_SLOTS;
}

/* Looks at random slots of a large table. False when there are enough items. */
static bool draw_locked(rp_table *t, rp_survey *out, state *s) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < PIECE && out->count < RP_SURVEY_ITEMS && t->slots.used > 0; i++) {
        uint32_t at = (uint32_t)rp_rng_below(&s->rng, t->slots.used);
        const rp_slot *slot = rp_slots_at(&t->slots, at);

        if (slot->state == RP_SLOT_LIVE) out->items[out->count++] = describe(slot);
    }
    s->at += PIECE;
    return out->count < RP_SURVEY_ITEMS && s->at < MOST_TRIES && t->slots.used > 0;
}

/* Finds the newest items that the table remembers. `refs` receives references to their
 * trajectories. */
static void find_recent_locked(rp_table *t, rp_survey *out, rp_trajectory **refs)
    RP_REQUIRES(t->mu)
{
    for (uint64_t i = 1; i <= RP_RECENT_SLOTS && i <= t->slots.next_sequence; i++) {
        uint64_t sequence = t->slots.next_sequence - i;
        uint32_t at = t->slots.recent[sequence % RP_RECENT_SLOTS];
        const rp_slot *slot = at < t->slots.used ? rp_slots_at(&t->slots, at) : NULL;

        if (slot == NULL || slot->state != RP_SLOT_LIVE || slot->sequence != sequence) continue;
        refs[out->recent_count] = rp_trajectory_ref(slot->trajectory);
        out->recent[out->recent_count++] = describe(slot);
    }
}

static int64_t length_of(const rp_trajectory *trajectory)
{
    int64_t longest = 1;

    for (size_t i = 0; i < rp_trajectory_column_count(trajectory); i++) {
        rp_trajectory_column column = rp_trajectory_get_column(trajectory, i);

        if (!column.squeeze && column.shape.rank > 0 && column.shape.dims[0] > longest)
            longest = column.shape.dims[0];
    }
    return longest;
}

static bool is_recent(const rp_survey *out, uint64_t sequence)
{
    for (size_t i = 0; i < out->recent_count; i++)
        if (out->recent[i].sequence == sequence) return true;
    return false;
}

/* Without recent inserts: takes the newest of the sampled items. */
static void fill_recent(rp_survey *out)
{
    for (size_t i = 0; i < out->count; i++) {
        const rp_surveyed *item = &out->items[i];
        size_t n = out->recent_count;

        if (is_recent(out, item->sequence)) continue;
        if (n == RP_SURVEY_RECENT) {
            if (out->recent[n - 1].sequence > item->sequence) continue;
            n--;
        }
        for (; n > 0 && out->recent[n - 1].sequence < item->sequence; n--)
            out->recent[n] = out->recent[n - 1];
        out->recent[n] = *item;
        if (out->recent_count < RP_SURVEY_RECENT) out->recent_count++;
    }
}

/* Fills in the probabilities of a draw. */
static void weigh(const rp_table *t, const rp_survey *out, double total, rp_surveyed *items,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double weight = 1;

        items[i].probability = NAN;
        if (t->options.sampler.kind == RP_UNIFORM)
            items[i].probability = 1 / (double)out->table_size;
        if (t->options.sampler.kind == RP_PRIORITIZED &&
            rp_selector_values(t->sampler, &items[i].priority, &weight, 1))
            items[i].probability = total > 0 ? weight / total : 1 / (double)out->table_size;
        if (items[i].probability > 1) items[i].probability = 1; /* it changed in between */
    }
}

void rp_table_survey(rp_table *t, uint64_t seed, rp_survey *out)
{
    rp_trajectory *refs[RP_SURVEY_RECENT] = {NULL};
    state s = {.total = 0};
    bool is_small, more = true;

    out->count = out->recent_count = 0;
    rp_rng_init(&s.rng, seed);
    rp_mutex_lock(&t->mu);
    is_small = t->slots.used <= SCANNED_SLOTS;
    out->wall_ns = t->wall_ns(t->wall_ctx);
    find_recent_locked(t, out, refs);
    rp_mutex_unlock(&t->mu);
    for (size_t i = 0; i < out->recent_count; i++) {
        out->recent[i].length = length_of(refs[i]);
        rp_trajectory_unref(refs[i]);
    }
    while (more) {
        rp_mutex_lock(&t->mu);
        more = is_small ? scan_locked(t, out, &s) : draw_locked(t, out, &s);
        out->table_size = (int64_t)t->slots.live;
        if (!more && t->sampler->ops->total != NULL && t->slots.live > 0)
            s.total = t->sampler->ops->total(t->sampler);
        rp_mutex_unlock(&t->mu);
    }
    if (out->recent_count < RP_SURVEY_RECENT) fill_recent(out);
    weigh(t, out, s.total, out->items, out->count);
    weigh(t, out, s.total, out->recent, out->recent_count);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t rp_table_median_age_ns(rp_table *t, uint64_t seed)
{
    int64_t times[PIECE], now;
    size_t count = 0, used;
    rp_rng rng;

    rp_rng_init(&rng, seed);
    rp_mutex_lock(&t->mu);
    now = t->wall_ns(t->wall_ctx);
    used = t->slots.used;
    for (size_t i = 0; i < PIECE && (i < used || used > PIECE); i++) {
        uint32_t at = (uint32_t)(used > PIECE ? rp_rng_below(&rng, used) : i);
        const rp_slot *slot = rp_slots_at(&t->slots, at);

        if (slot->state == RP_SLOT_LIVE) times[count++] = slot->inserted_at_ns;
    }
    rp_mutex_unlock(&t->mu);
    assert(count <= PIECE);
    if (count == 0) return -1;
    qsort(times, count, sizeof times[0], compare_times);
    return now > times[count / 2] ? now - times[count / 2] : 0;
}

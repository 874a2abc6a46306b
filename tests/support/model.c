/* SPDX-License-Identifier: Apache-2.0 */
#include "support/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* Aborts: the model itself has a bug. */
static void give_up(const char *what)
{
    (void)fprintf(stderr, "model: %s\n", what);
    abort();
}

static void append(uint32_t *array, size_t *count, uint32_t slot)
{
    array[(*count)++] = slot;
}

static size_t place_of(const uint32_t *array, size_t count, uint32_t slot)
{
    for (size_t i = 0; i < count; i++)
        if (array[i] == slot) return i;
    give_up("no such slot");
    return 0;
}

/* Removes a slot; the last slot takes its place. */
static void take_out(uint32_t *array, size_t *count, uint32_t slot)
{
    size_t at = place_of(array, *count, slot);
    array[at] = array[--*count];
}

/* Removes a slot; the later slots move up. */
static void close_gap(uint32_t *array, size_t *count, uint32_t slot)
{
    size_t at = place_of(array, *count, slot);
    memmove(array + at, array + at + 1, (--*count - at) * sizeof *array);
}

static double value_of(const rp_model_selector *s, double priority)
{
    if (s->options.kind != RP_PRIORITIZED) return priority;
    return priority == 0 ? 0 : pow(priority, s->options.exponent);
}

static void selector_insert(rp_model_selector *s, uint32_t slot, double priority)
{
    s->values[slot] = value_of(s, priority);
    s->turns[slot] = s->next_turn++;
    if (slot >= s->used) s->used = slot + 1;
    if (s->options.kind != RP_PRIORITIZED)
        append(s->order, &s->count, slot);
    else if (s->values[slot] == 0)
        append(s->zeros, &s->zero_count, slot);
}

static void selector_update(rp_model_selector *s, uint32_t slot, double priority)
{
    double old = s->values[slot], new = value_of(s, priority);

    s->values[slot] = new;
    s->turns[slot] = s->next_turn++;
    if (s->options.kind != RP_PRIORITIZED) return;
    if (old == 0 && new != 0) take_out(s->zeros, &s->zero_count, slot);
    if (old != 0 && new == 0) append(s->zeros, &s->zero_count, slot);
}

static void selector_remove(rp_model_selector *s, uint32_t slot)
{
    if (s->options.kind == RP_PRIORITIZED) {
        if (s->values[slot] == 0) take_out(s->zeros, &s->zero_count, slot);
    } else if (s->options.kind == RP_FIFO || s->options.kind == RP_LIFO) {
        close_gap(s->order, &s->count, slot);
    } else {
        take_out(s->order, &s->count, slot);
    }
    s->values[slot] = 0;
}

static void selector_clear(rp_model_selector *s)
{
    s->count = s->zero_count = s->used = 0;
    memset(s->values, 0, sizeof s->values);
}

static size_t pick_uniform(uint32_t *array, size_t size, rp_rng *rng, size_t count,
                           bool distinct, uint32_t *slots, double *probabilities)
{
    if (distinct && count > size) count = size;
    for (size_t i = 0; i < count; i++) {
        size_t left = distinct ? size - i : size, at = (size_t)rp_rng_below(rng, left);

        slots[i] = array[at];
        probabilities[i] = 1.0 / (double)left;
        if (distinct) {
            array[at] = array[left - 1];
            array[left - 1] = slots[i];
        }
    }
    return count;
}

/* Returns the best slot that is not taken yet. */
static uint32_t first_of_heap(const rp_model_selector *s, const bool *taken)
{
    uint32_t best = NOBODY;

    for (size_t i = 0; i < s->count; i++) {
        uint32_t slot = s->order[i];
        double value = s->values[slot], least = best == NOBODY ? 0 : s->values[best];

        if (taken[slot]) continue;
        if (s->options.kind == RP_MAX_HEAP) value = -value, least = -least;
        if (best == NOBODY || value < least ||
            (value == least && s->turns[slot] < s->turns[best]))
            best = slot;
    }
    return best;
}

static size_t pick_heap(const rp_model_selector *s, size_t count, bool distinct,
                        uint32_t *slots)
{
    bool taken[RP_MODEL_SLOTS] = {false};

    if (distinct && count > s->count) count = s->count;
    for (size_t i = 0; i < count; i++) {
        slots[i] = first_of_heap(s, taken);
        taken[slots[i]] = distinct;
    }
    return count;
}

static size_t pick_order(const rp_model_selector *s, size_t count, bool distinct,
                         uint32_t *slots)
{
    bool fifo = s->options.kind == RP_FIFO;

    if (distinct && count > s->count) count = s->count;
    for (size_t i = 0; i < count; i++) {
        size_t nth = distinct ? i : 0;
        slots[i] = s->order[fifo ? nth : s->count - 1 - nth];
    }
    return count;
}

static double sum_of(const double *weights, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += weights[i];
    return sum;
}

static uint32_t find_position(const double *weights, size_t count, double position)
{
    double end = 0;

    for (size_t i = 0; i < count; i++) {
        end += weights[i];
        if (position < end) return (uint32_t)i;
    }
    give_up("a position beyond the total");
    return NOBODY;
}

static size_t draw_rounds(rp_model_selector *s, rp_rng *rng, size_t count, uint32_t *slots,
                          double *probabilities)
{
    double weights[RP_MODEL_SLOTS], total, left;
    uint32_t drawn[256];
    size_t n = 0;

    memcpy(weights, s->values, s->used * sizeof *weights);
    while (n < count && (total = sum_of(weights, s->used)) > 0) {
        size_t round = count - n < 256 ? count - n : 256;

        for (size_t i = 0; i < round; i++)
            drawn[i] = find_position(weights, s->used, rp_rng_unit(rng) * total);
        for (size_t i = 0; i < round; i++) {
            if (weights[drawn[i]] == 0) continue;
            slots[n++] = drawn[i];
            weights[drawn[i]] = 0;
        }
    }
    left = sum_of(weights, s->used);
    for (size_t i = n; i-- > 0;) {
        left += s->values[slots[i]];
        probabilities[i] = s->values[slots[i]] / left;
    }
    return n;
}

static size_t pick_prioritized(rp_model_selector *s, rp_rng *rng, size_t count, bool distinct,
                               uint32_t *slots, double *probabilities)
{
    double total = sum_of(s->values, s->used);
    size_t n = 0;

    if (total > 0 && !distinct) {
        for (; n < count; n++) {
            slots[n] = find_position(s->values, s->used, rp_rng_unit(rng) * total);
            probabilities[n] = s->values[slots[n]] / total;
        }
        return n;
    }
    if (total > 0) n = draw_rounds(s, rng, count, slots, probabilities);
    return n + pick_uniform(s->zeros, s->zero_count, rng, count - n, distinct, slots + n,
                            probabilities + n);
}

static size_t selector_pick(rp_model_selector *s, rp_rng *rng, size_t count, bool distinct,
                            uint32_t *slots, double *probabilities)
{
    switch (s->options.kind) {
    case RP_UNIFORM:
        return pick_uniform(s->order, s->count, rng, count, distinct, slots, probabilities);
    case RP_PRIORITIZED: return pick_prioritized(s, rng, count, distinct, slots, probabilities);
    case RP_FIFO:
    case RP_LIFO: count = pick_order(s, count, distinct, slots); break;
    case RP_MIN_HEAP:
    case RP_MAX_HEAP: count = pick_heap(s, count, distinct, slots); break;
    }
    for (size_t i = 0; i < count; i++) probabilities[i] = 1;
    return count;
}

void rp_model_init(rp_model *m, const rp_table_options *options, const rp_model_data *data)
{
    memset(m, 0, sizeof *m);
    m->options = *options;
    m->data = data;
    m->sampler.options = options->sampler;
    m->remover.options = options->remover;
    m->max_priority = 1;
    rp_rng_init(&m->rng, options->seed);
}

bool rp_model_can_insert(const rp_model *m, int64_t n)
{
    const rp_limiter_options *l = &m->options.limiter;

    return m->inserts + n - m->deletes <= l->min_size ||
           (double)(m->inserts + n) * l->samples_per_insert - (double)m->samples <= l->max_diff;
}

bool rp_model_can_sample(const rp_model *m, int64_t n)
{
    const rp_limiter_options *l = &m->options.limiter;

    return m->inserts - m->deletes >= l->min_size &&
           (double)m->inserts * l->samples_per_insert - (double)m->samples - (double)n >=
               l->min_diff;
}

static uint32_t find(const rp_model *m, uint64_t key)
{
    for (uint32_t i = 0; i < m->used; i++)
        if (m->items[i].live && m->items[i].key == key) return i;
    return NOBODY;
}

static uint32_t take_slot(rp_model *m)
{
    if (m->free_count > 0) return m->free[--m->free_count];
    if (m->used == RP_MODEL_SLOTS) give_up("too many slots");
    return (uint32_t)m->used++;
}

static bool has_episode(const rp_model *m, uint64_t episode)
{
    for (size_t c = 0; c < RP_MODEL_CHUNKS; c++)
        if (m->chunk_refs[c] > 0 && m->data->chunk_episodes[c] == episode) return true;
    return false;
}

static void hold_chunks(rp_model *m, uint32_t trajectory)
{
    for (size_t i = 0; i < m->data->chunk_counts[trajectory]; i++)
        m->chunk_refs[m->data->chunks[trajectory][i]]++;
}

static void drop_chunks(rp_model *m, uint32_t trajectory)
{
    for (size_t i = 0; i < m->data->chunk_counts[trajectory]; i++) {
        uint32_t c = m->data->chunks[trajectory][i];
        if (--m->chunk_refs[c] == 0 && !has_episode(m, m->data->chunk_episodes[c]))
            m->deleted_episodes++;
    }
}

/* Frees the slots that a call has removed, at its end. */
static void bury(rp_model *m)
{
    for (size_t i = 0; i < m->dead_count; i++) m->free[m->free_count++] = m->dead[i];
    m->dead_count = 0;
}

static void set_priority(rp_model *m, uint32_t slot, double priority)
{
    m->items[slot].priority = priority;
    selector_update(&m->sampler, slot, priority);
    selector_update(&m->remover, slot, priority);
    if (priority > m->max_priority && isfinite(priority)) m->max_priority = priority;
}

static void take_away(rp_model *m, uint32_t slot)
{
    m->items[slot].live = false;
    selector_remove(&m->sampler, slot);
    selector_remove(&m->remover, slot);
    drop_chunks(m, m->items[slot].trajectory);
    m->dead[m->dead_count++] = slot;
    m->size--;
    m->deletes++;
}

static void evict(rp_model *m)
{
    uint32_t slot = 0;
    double probability;

    (void)selector_pick(&m->remover, &m->rng, 1, false, &slot, &probability);
    take_away(m, slot);
    m->evictions++;
}

static void insert_new(rp_model *m, const rp_model_insert *item, double priority,
                       int64_t wall_ns)
{
    uint32_t slot = take_slot(m);

    m->items[slot] = (rp_model_item){.live = true,
                                     .key = item->key,
                                     .priority = priority,
                                     .times_sampled = item->times_sampled,
                                     .inserted_at_ns = wall_ns,
                                     .trajectory = item->trajectory};
    selector_insert(&m->sampler, slot, priority);
    selector_insert(&m->remover, slot, priority);
    hold_chunks(m, item->trajectory);
    if (priority > m->max_priority && isfinite(priority)) m->max_priority = priority;
    m->size++;
    if (!m->options.soft_limit && m->size > m->options.max_size) evict(m);
    m->inserts++;
}

rp_status rp_model_try_insert(rp_model *m, const rp_model_insert *items, size_t count,
                              int64_t wall_ns, size_t *inserted)
{
    *inserted = 0;
    for (size_t i = 0; i < count && rp_model_can_insert(m, 1); i++) {
        uint32_t slot = find(m, items[i].key);
        double priority = items[i].max_priority ? m->max_priority : items[i].priority;

        if (slot == NOBODY)
            insert_new(m, &items[i], priority, wall_ns);
        else
            set_priority(m, slot, priority);
        ++*inserted;
        if (*inserted % 256 == 0) bury(m);
    }
    bury(m);
    return *inserted == count ? RP_OK : RP_DEADLINE;
}

static void hand_out(rp_model *m, uint32_t slot, double probability, rp_sample *out)
{
    rp_model_item *item = &m->items[slot];

    item->times_sampled++;
    m->unique_samples += item->times_sampled == 1;
    m->samples++;
    *out = (rp_sample){.key = item->key,
                       .priority = item->priority,
                       .probability = probability,
                       .weight = 1,
                       .trajectory = m->data->trajectories[item->trajectory],
                       .table_size = m->size,
                       .inserted_at_ns = item->inserted_at_ns,
                       .times_sampled = item->times_sampled};
    if (item->times_sampled == m->options.max_times_sampled) take_away(m, slot);
}

static size_t sample_distinct(rp_model *m, const rp_sample_options *o, rp_sample *out)
{
    uint32_t slots[RP_MODEL_SLOTS];
    double probabilities[RP_MODEL_SLOTS];
    size_t most = o->count < (size_t)m->size ? o->count : (size_t)m->size;
    size_t need = o->at_least > 0 ? o->at_least : o->count, allowed = 0;

    if (need > most) need = most;
    while (allowed < most && rp_model_can_sample(m, (int64_t)allowed + 1)) allowed++;
    if (allowed < need) return 0;
    (void)selector_pick(&m->sampler, &m->rng, allowed, true, slots, probabilities);
    for (size_t i = 0; i < allowed; i++) hand_out(m, slots[i], probabilities[i], &out[i]);
    return allowed;
}

/* Sets the weights: (size * probability)^-beta, divided by the largest of the batch. */
static void weigh(rp_sample *samples, size_t count, double beta)
{
    double largest = 0;

    for (size_t i = 0; i < count; i++) {
        samples[i].weight = pow((double)samples[i].table_size * samples[i].probability, -beta);
        if (samples[i].weight > largest) largest = samples[i].weight;
    }
    for (size_t i = 0; i < count; i++) samples[i].weight /= largest;
}

rp_status rp_model_try_sample(rp_model *m, const rp_sample_options *o, rp_sample *out,
                              size_t *drawn)
{
    size_t n = 0;

    if (o->distinct && rp_model_can_sample(m, 1)) n = sample_distinct(m, o, out);
    while (!o->distinct && n < o->count && rp_model_can_sample(m, 1)) {
        uint32_t slot = 0;
        double probability;

        (void)selector_pick(&m->sampler, &m->rng, 1, false, &slot, &probability);
        hand_out(m, slot, probability, &out[n++]);
    }
    if (o->beta > 0) weigh(out, n, o->beta);
    bury(m);
    *drawn = n;
    return n > 0 ? RP_OK : RP_DEADLINE;
}

size_t rp_model_update(rp_model *m, const rp_update *updates, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t slot = find(m, updates[i].key);
        if (slot == NOBODY) continue;
        set_priority(m, slot, updates[i].priority);
        m->updates++;
        found++;
    }
    return found;
}

size_t rp_model_delete(rp_model *m, const uint64_t *keys, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t slot = find(m, keys[i]);
        if (slot == NOBODY) continue;
        take_away(m, slot);
        found++;
    }
    bury(m);
    return found;
}

size_t rp_model_peek(const rp_model *m, const uint64_t *keys, size_t count, rp_sample *out)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t slot = find(m, keys[i]);
        const rp_model_item *item = &m->items[slot == NOBODY ? 0 : slot];

        out[i] = (rp_sample){.key = keys[i]};
        if (slot == NOBODY) continue;
        out[i].priority = item->priority;
        out[i].trajectory = m->data->trajectories[item->trajectory];
        out[i].table_size = m->size;
        out[i].inserted_at_ns = item->inserted_at_ns;
        out[i].times_sampled = item->times_sampled;
        found++;
    }
    return found;
}

size_t rp_model_trim(rp_model *m)
{
    size_t removed = 0;

    for (; m->size > m->options.max_size; removed++) evict(m);
    bury(m);
    return removed;
}

void rp_model_reset(rp_model *m)
{
    for (uint32_t i = 0; i < m->used; i++) {
        if (!m->items[i].live) continue;
        m->items[i].live = false;
        m->dead[m->dead_count++] = i;
    }
    selector_clear(&m->sampler);
    selector_clear(&m->remover);
    memset(m->chunk_refs, 0, sizeof m->chunk_refs);
    bury(m);
    m->size = m->inserts = m->samples = m->deletes = m->updates = m->evictions = 0;
    m->unique_samples = m->deleted_episodes = 0;
    m->max_priority = 1;
}

void rp_model_info(const rp_model *m, rp_table_info *out)
{
    *out = (rp_table_info){.size = m->size,
                           .inserts = m->inserts,
                           .samples = m->samples,
                           .deletes = m->deletes,
                           .updates = m->updates,
                           .evictions = m->evictions,
                           .deleted_episodes = m->deleted_episodes,
                           .unique_samples = m->unique_samples,
                           .max_priority = m->max_priority};
    for (size_t c = 0; c < RP_MODEL_CHUNKS; c++) {
        bool first = true;

        if (m->chunk_refs[c] == 0) continue;
        out->bytes += 224 + 128 + m->data->chunk_bytes[c];
        for (size_t d = 0; d < c; d++)
            first &= m->chunk_refs[d] == 0 ||
                     m->data->chunk_episodes[d] != m->data->chunk_episodes[c];
        out->episodes += first;
    }
    for (size_t i = 0; i < RP_MODEL_SLOTS; i++) /* each chunk is a column of one slice */
        if (m->items[i].live)
            out->bytes += 248 + 40 * m->data->chunk_counts[m->items[i].trajectory];
}

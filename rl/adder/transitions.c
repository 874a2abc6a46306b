/* SPDX-License-Identifier: Apache-2.0 */
/* n-step: writes the transitions that n_step.c lists.
 *
 * All copies share the columns of the writer. Every call appends one row for each copy to the
 * main columns: the action, its return and discount, the extras, and the observation after it.
 * A chunk holds a divisor of `copies` rows, so when a call creates its items, all main rows of
 * the call are in complete chunks: a writer of uncompressed rows then sends the items at once,
 * without its background job. Rows that only some calls have are in three odd columns, with
 * chunks of one row: last observations, first observations of a part of the copies, and returns
 * and discounts of the end rule. */
#include <assert.h>
#include <string.h>

#include "adder/adder_inside.h"
#include "error/fail.h"

enum {
    PLAIN_BYTES = 8 << 10, /* of a chunk without compression */
    MOST_CHUNK = 128,      /* rows of a chunk */
};

/* The main column of the writer for a column of the layout is `at`, except that the next
 * observation is in the column of the observation. */
enum { ODD_OBSERVATION, ODD_RETURN, ODD_DISCOUNT };

static rp_ref *obs_ring(const rp_adder_transitions *t, size_t copies, uint64_t call)
{
    return t->obs + (size_t)(call % (t->core.n + 1)) * copies;
}

static uint64_t *cell_ring(const rp_adder_transitions *t, size_t copies, uint64_t call)
{
    return t->cells + (size_t)(call % t->core.n) * copies;
}

/* Returns the number of other columns whose rows are kept: the action and the extras. */
static size_t other_count(const rp_adder *a)
{
    return 1 + a->layout.column_count - RP_AT_EXTRAS;
}

/* Returns the column of the layout of the i-th of them. */
static size_t other_at(size_t i)
{
    return i == 0 ? RP_AT_ACTION : RP_AT_EXTRAS + i - 1;
}

static rp_status take_core(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    rp_n_step *s = &a->transitions.core;
    const rp_adder_layout *layout = &a->layout;
    size_t most = a->copies * (size_t)o->n;
    uint32_t *reward_of = rp_adder_take(a, layout->return_size, sizeof *reward_of);
    uint32_t *discount_of = rp_adder_take(a, layout->return_size, sizeof *discount_of);

    *s = (rp_n_step){.copies = a->copies,
                     .n = (size_t)o->n,
                     .discount = o->discount,
                     .reward_size = layout->reward_size,
                     .discount_size = layout->discount_size,
                     .return_size = layout->return_size};
    s->lengths = rp_adder_take(a, a->copies, sizeof *s->lengths);
    s->rewards = rp_adder_take(a, most, layout->reward_size * sizeof *s->rewards);
    s->discounts = rp_adder_take(a, most, layout->discount_size * sizeof *s->discounts);
    s->items = rp_adder_take(a, most, sizeof *s->items);
    s->returns = rp_adder_take(a, most, layout->return_size * sizeof *s->returns);
    s->totals = rp_adder_take(a, most, layout->discount_size * sizeof *s->totals);
    if (reward_of == NULL || discount_of == NULL || s->lengths == NULL || s->rewards == NULL ||
        s->discounts == NULL || s->items == NULL || s->returns == NULL || s->totals == NULL)
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for %zu transitions", most);
    rp_n_step_broadcast(&o->reward_shape, &layout->return_shape, reward_of);
    rp_n_step_broadcast(&o->discount_shape, &layout->return_shape, discount_of);
    s->reward_of = reward_of;
    s->discount_of = discount_of;
    return RP_OK;
}

/* Allocates what prioritize() needs: copies of the rows in the rings, and the items. */
static rp_status take_gathered(rp_adder *a, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    size_t n = t->core.n, others = other_count(a);
    bool ok;

    t->obs_rows = rp_adder_take(a, (n + 1) * a->copies, a->layout.columns[0].bytes);
    t->other_rows = rp_adder_take(a, others, sizeof *t->other_rows);
    t->gathered = rp_adder_take(a, a->layout.column_count, sizeof *t->gathered);
    t->item_copies = rp_adder_take(a, a->item_room, sizeof *t->item_copies);
    ok = t->obs_rows != NULL && t->other_rows != NULL && t->gathered != NULL &&
         t->item_copies != NULL;
    for (size_t i = 0; ok && i < others; i++) {
        t->other_rows[i] =
            rp_adder_take(a, n * a->copies, a->layout.columns[other_at(i)].bytes);
        ok = t->other_rows[i] != NULL;
    }
    for (size_t i = 0; ok && i < a->layout.column_count; i++) {
        if (i == RP_AT_REWARD)
            t->gathered[i] = t->core.returns;
        else if (i == RP_AT_DISCOUNT)
            t->gathered[i] = t->core.totals;
        else
            t->gathered[i] = rp_adder_take(a, a->item_room, a->layout.columns[i].bytes);
        ok = t->gathered[i] != NULL;
    }
    return ok ? RP_OK
              : rp_rl_fail(err, RP_NO_RESOURCE, "no memory for the rows of %zu transitions",
                           a->item_room);
}

rp_status rp_transitions_new(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    rp_status st = take_core(a, o, err);

    if (st != RP_OK) return st;
    a->item_room = a->copies * t->core.n;
    t->odd = (uint32_t)a->layout.column_count;
    t->obs = rp_adder_take(a, (t->core.n + 1) * a->copies, sizeof *t->obs);
    t->cells = rp_adder_take(a, t->core.n * a->copies, sizeof *t->cells);
    t->last = rp_adder_take(a, a->copies, sizeof *t->last);
    t->end_cell = rp_adder_take(a, a->copies, sizeof *t->end_cell);
    a->refs = rp_adder_take(a, a->layout.column_count, sizeof *a->refs);
    if (t->obs == NULL || t->cells == NULL || t->last == NULL || t->end_cell == NULL ||
        a->refs == NULL)
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for an adder of %zu copies",
                          a->copies);
    return a->prioritizes ? take_gathered(a, err) : RP_OK;
}

/* Returns the largest divisor of `copies` that is at most `most`. */
static size_t largest_divisor(size_t copies, size_t most)
{
    size_t d = most < copies ? most : copies;

    assert(d >= 1);
    while (copies % d != 0) d--;
    return d;
}

static rp_status configure(rp_adder *a, const rp_adder_options *o, size_t column, size_t at,
                           size_t history, bool is_odd, rp_error *err)
{
    const rp_adder_column *c = &a->layout.columns[at];
    size_t most = PLAIN_BYTES / c->bytes;
    rp_column_options options = {.history = (int32_t)history};

    if (most > MOST_CHUNK) most = MOST_CHUNK;
    if (most >= 1) options.chunk.codec = RP_CODEC_NONE;
    if (most < 1 || is_odd) most = 1;
    options.chunk_length = (int32_t)largest_divisor(a->copies, most);
    if (o->chunk_length > 0 && !is_odd)
        options.chunk_length =
            o->chunk_length < options.history ? o->chunk_length : options.history;
    if (o->chunk != NULL) options.chunk = *o->chunk;
    assert(options.chunk_length <= options.history);
    return rp_trajectory_writer_configure(a->writer, (uint32_t)column, c->spec.name, &options,
                                          err);
}

rp_status rp_transitions_configure(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    const rp_adder_transitions *t = &a->transitions;
    size_t n = t->core.n, copies = a->copies, odd = t->odd;
    rp_status st = RP_OK;

    for (size_t at = 0; st == RP_OK && at < a->layout.column_count; at++) {
        size_t history = at == RP_AT_OBSERVATION ? (n + 1) * copies : n * copies;
        if (at != RP_AT_NEXT) st = configure(a, o, at, at, history, false, err);
    }
    /* A call appends at most 2 odd observations for each copy; the first of an episode is
     * needed for n calls more. */
    if (st == RP_OK)
        st = configure(a, o, odd + ODD_OBSERVATION, RP_AT_OBSERVATION, 2 * copies * (n + 2),
                       true, err);
    if (st == RP_OK)
        st = configure(a, o, odd + ODD_RETURN, RP_AT_REWARD, n * copies, true, err);
    if (st == RP_OK)
        st = configure(a, o, odd + ODD_DISCOUNT, RP_AT_DISCOUNT, n * copies, true, err);
    return st;
}

static const unsigned char *row_of(const rp_adder *a, const void *rows, size_t at, size_t copy)
{
    return (const unsigned char *)rows + copy * a->layout.columns[at].bytes;
}

/* Keeps copies of the observations after the latest call. */
static void keep_observations(rp_adder *a, const void *observations, const bool *which)
{
    rp_adder_transitions *t = &a->transitions;
    size_t bytes = a->layout.columns[RP_AT_OBSERVATION].bytes;
    unsigned char *ring =
        t->obs_rows + (size_t)(t->core.calls % (t->core.n + 1)) * a->copies * bytes;

    if (which == NULL) memcpy(ring, observations, a->copies * bytes);
    for (size_t k = 0; which != NULL && k < a->copies; k++)
        if (which[k])
            memcpy(ring + k * bytes, row_of(a, observations, RP_AT_OBSERVATION, k), bytes);
}

rp_status rp_transitions_first(rp_adder *a, const void *observations, const bool *which,
                               rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    rp_ref *obs = obs_ring(t, a->copies, t->core.calls);
    uint32_t column = which == NULL ? RP_AT_OBSERVATION : t->odd + ODD_OBSERVATION;
    rp_status st = RP_OK;

    for (size_t k = 0; st == RP_OK && k < a->copies; k++) {
        if (which != NULL && !which[k]) continue;
        assert(t->core.lengths[k] == 0);
        rp_adder_set_value(a, 0, column, RP_AT_OBSERVATION,
                           row_of(a, observations, RP_AT_OBSERVATION, k));
        st = rp_trajectory_writer_append(a->writer, a->values, 1, 0, &obs[k], err);
    }
    if (a->prioritizes) keep_observations(a, observations, which);
    return st;
}

/* Appends the row of each copy to the main columns. */
static rp_status append_main(rp_adder *a, const rp_adder_step *step, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    const rp_n_step *s = &t->core;
    rp_ref *obs = obs_ring(t, a->copies, s->calls);
    uint64_t *cells = cell_ring(t, a->copies, s->calls - 1);
    size_t item = 0, count = a->layout.column_count - 1;
    rp_status st = RP_OK;

    for (size_t k = 0; st == RP_OK && k < a->copies; k++, item++) {
        while (s->items[item].is_end) item++;
        assert(item < s->item_count && s->items[item].copy == k);
        rp_adder_set_value(a, 0, RP_AT_OBSERVATION, RP_AT_OBSERVATION,
                           row_of(a, step->observations, RP_AT_OBSERVATION, k));
        rp_adder_set_value(a, 1, RP_AT_ACTION, RP_AT_ACTION,
                           row_of(a, step->actions, RP_AT_ACTION, k));
        rp_adder_set_value(a, 2, RP_AT_REWARD, RP_AT_REWARD,
                           s->returns + item * s->return_size);
        rp_adder_set_value(a, 3, RP_AT_DISCOUNT, RP_AT_DISCOUNT,
                           s->totals + item * s->discount_size);
        for (size_t i = RP_AT_EXTRAS; i < a->layout.column_count; i++)
            rp_adder_set_value(a, i - 1, i, i, row_of(a, step->extras[i - RP_AT_EXTRAS], i, k));
        st = rp_trajectory_writer_append(a->writer, a->values, count, 0, a->refs, err);
        if (st != RP_OK) return st;
        obs[k] = a->refs[0];
        cells[k] = a->refs[1].cell;
        assert(a->refs[2].cell == cells[k] && a->refs[3].cell == cells[k]);
    }
    return st;
}

/* Appends what only ended copies have: the last observation, and the returns of the end rule.
 */
static rp_status append_odd(rp_adder *a, const rp_adder_step *step, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    const rp_n_step *s = &t->core;
    rp_status st = RP_OK;

    for (size_t k = 0; st == RP_OK && k < a->copies; k++) {
        if (!a->ended[k]) continue;
        if (step->last_observations == NULL) { /* it is among the observations */
            t->last[k] = obs_ring(t, a->copies, s->calls)[k];
            continue;
        }
        rp_adder_set_value(a, 0, t->odd + ODD_OBSERVATION, RP_AT_OBSERVATION,
                           row_of(a, step->last_observations, RP_AT_OBSERVATION, k));
        st = rp_trajectory_writer_append(a->writer, a->values, 1, 0, &t->last[k], err);
    }
    for (size_t i = 0; st == RP_OK && i < s->item_count; i++) {
        if (!s->items[i].is_end) continue;
        rp_adder_set_value(a, 0, t->odd + ODD_RETURN, RP_AT_REWARD,
                           s->returns + i * s->return_size);
        rp_adder_set_value(a, 1, t->odd + ODD_DISCOUNT, RP_AT_DISCOUNT,
                           s->totals + i * s->discount_size);
        st = rp_trajectory_writer_append(a->writer, a->values, 2, 0, a->refs, err);
        if (!s->items[i - 1].is_end) t->end_cell[s->items[i].copy] = a->refs[0].cell;
    }
    return st;
}

/* Fills a->refs with the rows of an item, whose order is that of the layout. */
static void refer(rp_adder *a, const rp_n_step_item *item)
{
    const rp_adder_transitions *t = &a->transitions;
    uint64_t calls = t->core.calls;
    size_t k = item->copy;
    uint64_t first = cell_ring(t, a->copies, calls - item->steps)[k];
    rp_ref *refs = a->refs;

    refs[RP_AT_OBSERVATION] = obs_ring(t, a->copies, calls - item->steps)[k];
    refs[RP_AT_ACTION] = (rp_ref){RP_AT_ACTION, first};
    if (item->is_end) {
        refs[RP_AT_REWARD] = (rp_ref){t->odd + ODD_RETURN, t->end_cell[k]};
        refs[RP_AT_DISCOUNT] = (rp_ref){t->odd + ODD_DISCOUNT, t->end_cell[k]};
    } else {
        uint64_t cell = cell_ring(t, a->copies, calls - 1)[k];
        refs[RP_AT_REWARD] = (rp_ref){RP_AT_REWARD, cell};
        refs[RP_AT_DISCOUNT] = (rp_ref){RP_AT_DISCOUNT, cell};
    }
    refs[RP_AT_NEXT] = a->ended[k] ? t->last[k] : obs_ring(t, a->copies, calls)[k];
    for (size_t i = RP_AT_EXTRAS; i < a->layout.column_count; i++)
        refs[i] = (rp_ref){(uint32_t)i, first};
}

static rp_status create_items(rp_adder *a, rp_wait wait, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    rp_status st = RP_OK;

    for (size_t i = 0; i < a->layout.column_count; i++)
        a->item[i] = (rp_item_column){&a->refs[i], 1, true, a->layout.columns[i].spec.name};
    for (size_t i = 0; st == RP_OK && i < t->core.item_count; i++) {
        refer(a, &t->core.items[i]);
        if (t->core.items[i].is_end) t->end_cell[t->core.items[i].copy]++;
        st = rp_adder_create(a, i, wait, err);
    }
    return st;
}

/* Keeps copies of the rows of this call. Observations that end an episode are not kept: they
 * are needed in this call only. */
static void keep_rows(rp_adder *a, const rp_adder_step *step)
{
    rp_adder_transitions *t = &a->transitions;
    size_t slot = (size_t)((t->core.calls - 1) % t->core.n);

    keep_observations(a, step->observations, NULL);
    for (size_t i = 0; i < other_count(a); i++) {
        size_t bytes = a->copies * a->layout.columns[other_at(i)].bytes;
        memcpy(t->other_rows[i] + slot * bytes, i == 0 ? step->actions : step->extras[i - 1],
               bytes);
    }
}

static void gather_row(rp_adder *a, size_t at, size_t item, const void *row)
{
    size_t bytes = a->layout.columns[at].bytes;

    memcpy((unsigned char *)a->transitions.gathered[at] + item * bytes, row, bytes);
}

/* Lays the items of the call side by side and asks each table for their priorities. */
static rp_status prioritize(rp_adder *a, const rp_adder_step *step, rp_error *err)
{
    rp_adder_transitions *t = &a->transitions;
    const rp_n_step *s = &t->core;
    rp_adder_items items = {s->item_count, 1, t->item_copies, (const void *const *)t->gathered,
                            a->layout.column_count};

    for (size_t i = 0; i < s->item_count; i++) {
        size_t k = s->items[i].copy;
        uint64_t first = s->calls - s->items[i].steps;
        const void *next = a->ended[k] && step->last_observations != NULL
                               ? step->last_observations
                               : step->observations;
        size_t row = (size_t)(first % (s->n + 1)) * a->copies + k;
        t->item_copies[i] = (uint32_t)k;
        gather_row(a, RP_AT_OBSERVATION, i, row_of(a, t->obs_rows, RP_AT_OBSERVATION, row));
        gather_row(a, RP_AT_NEXT, i, row_of(a, next, RP_AT_NEXT, k));
        row = (size_t)(first % s->n) * a->copies + k;
        for (size_t o = 0; o < other_count(a); o++)
            gather_row(a, other_at(o), i, row_of(a, t->other_rows[o], other_at(o), row));
    }
    return rp_adder_prioritize(a, &items, err);
}

rp_status rp_transitions_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                             rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;

    rp_n_step_add(&a->transitions.core, step->rewards, discounts, a->ended);
    if (a->prioritizes) {
        keep_rows(a, step);
        st = prioritize(a, step, err);
    }
    if (st == RP_OK) st = append_main(a, step, err);
    if (st == RP_OK) st = append_odd(a, step, err);
    if (st == RP_OK) st = create_items(a, wait, err);
    return st;
}

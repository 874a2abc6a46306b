/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and episodes: writes the rows that plan.c names.
 *
 * Every copy has columns of its own in the writer, so the rows of an item lie side by side. A
 * call appends, for each copy, the rest of the open row (action, reward, discount, extras) and
 * the observation and start_of_episode of the next. So in each column, rows follow each other
 * without gaps, and the cell of a row is that of row 0 plus its number. Observations are one
 * row ahead of the other columns; if an open row is dropped, the two kinds of columns differ by
 * one more, which is why each kind has its own cell of row 0.
 *
 * The chunks of an item may be incomplete when it is created. At the end of an episode they are
 * completed without waiting; otherwise, when later rows fill them or when rp_adder_add() finds
 * too many unconfirmed items.
 *
 * Invariants, of each copy, between calls:
 *   Q1  a copy that has begun has `closed` complete rows and one open row;
 *   Q2  row r is at cell obs_base + r in the columns of observation and start_of_episode, at
 *       cell base + r in the others;
 *   Q3  an item has 1 to most_rows rows, none of them older than `window` rows. */
#include <assert.h>
#include <string.h>

#include "adder/adder_inside.h"
#include "error/fail.h"

enum {
    MOST_CHUNK = 64,       /* rows of a chunk */
    LEAST_CHUNK = 16,      /* rows of a chunk that is a part of a period */
    PLAIN_BYTES = 8 << 10, /* of a chunk without compression */
};

static const unsigned char *row_of(const rp_adder *a, const void *rows, size_t at, size_t copy)
{
    return (const unsigned char *)rows + copy * a->layout.columns[at].bytes;
}

/* Allocates what prioritize() needs: copies of the latest rows, and the columns of an item. */
static rp_status take_kept(rp_adder *a, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    size_t columns = a->layout.column_count;
    bool ok;

    s->kept = rp_adder_take(a, columns, sizeof *s->kept);
    s->gathered = rp_adder_take(a, columns, sizeof *s->gathered);
    ok = s->kept != NULL && s->gathered != NULL;
    for (size_t i = 0; ok && i < columns; i++) {
        size_t bytes = a->layout.columns[i].bytes;
        s->kept[i] = rp_adder_take(a, a->copies * (size_t)s->window, bytes);
        s->gathered[i] = rp_adder_take(a, (size_t)s->most_rows, bytes);
        ok = s->kept[i] != NULL && s->gathered[i] != NULL;
    }
    return ok ? RP_OK
              : rp_rl_fail(err, RP_NO_RESOURCE, "no memory for %lld rows of %zu copies",
                           (long long)s->window, a->copies);
}

static rp_status take_padding(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    size_t columns = a->layout.column_count;

    s->zero_rows = rp_adder_take(a, columns, sizeof *s->zero_rows);
    s->padding_rows = rp_adder_take(a, columns, sizeof *s->padding_rows);
    if (s->zero_rows == NULL || s->padding_rows == NULL)
        return rp_rl_fail_memory(err, columns * sizeof *s->zero_rows);
    for (size_t i = 0; i < columns; i++) {
        const rp_adder_column *c = &a->layout.columns[i];
        s->zero_rows[i] = rp_adder_take(a, 1, c->bytes);
        s->padding_rows[i] = rp_adder_take(a, 1, c->bytes);
        if (s->zero_rows[i] == NULL || s->padding_rows[i] == NULL)
            return rp_rl_fail_memory(err, c->bytes);
        if (a->kind == RP_ADDER_EPISODE && o->padding != NULL && i != RP_AT_START)
            o->padding(o->padding_ctx, &c->spec, s->padding_rows[i]);
    }
    return RP_OK;
}

rp_status rp_sequences_new(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    size_t columns = a->layout.column_count;
    rp_status st;

    if (a->copies > RP_MAX_COLUMNS / columns)
        return rp_rl_fail(err, RP_INVALID,
                          "adder: with %zu columns, a sequence or episode adder has at most "
                          "%zu copies, got %zu",
                          columns, RP_MAX_COLUMNS / columns, a->copies);
    a->item_room = 1;
    s->plan = (rp_plan){o->kind, o->length, o->period, o->end, o->pad};
    s->most_rows = o->length;
    s->window = s->most_rows + 1; /* the open row */
    s->closed = rp_adder_take(a, a->copies, sizeof *s->closed);
    s->obs_base = rp_adder_take(a, a->copies, sizeof *s->obs_base);
    s->base = rp_adder_take(a, a->copies, sizeof *s->base);
    s->reward = rp_adder_take(a, a->layout.reward_size, sizeof *s->reward);
    a->refs = rp_adder_take(a, columns, (size_t)s->most_rows * sizeof *a->refs);
    if (s->closed == NULL || s->obs_base == NULL || s->base == NULL || s->reward == NULL ||
        a->refs == NULL)
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for items of %lld rows",
                          (long long)s->most_rows);
    st = take_padding(a, o, err);
    if (st == RP_OK && a->prioritizes) st = take_kept(a, err);
    return st;
}

/* Chooses the rows of a chunk: a period, so that sequences begin with a chunk, or the largest
 * part of it that is neither long nor short. */
static int64_t choose_length(const rp_adder *a, const rp_adder_options *o)
{
    int64_t period = a->kind == RP_ADDER_SEQUENCE ? o->period : o->length;
    int64_t length = period < MOST_CHUNK ? period : MOST_CHUNK;

    if (o->chunk_length > 0) return o->chunk_length;
    for (int64_t part = length; part >= LEAST_CHUNK; part--)
        if (period % part == 0) return part;
    return length;
}

static rp_column_options choose_chunks(const rp_adder *a, const rp_adder_options *o, size_t at)
{
    int64_t length = choose_length(a, o);
    rp_column_options options = {.history = (int32_t)a->sequences.window};

    if (length > options.history) length = options.history;
    options.chunk_length = (int32_t)length;
    if (o->chunk != NULL)
        options.chunk = *o->chunk;
    else if ((size_t)length * a->layout.columns[at].bytes <= PLAIN_BYTES)
        options.chunk.codec = RP_CODEC_NONE;
    return options;
}

rp_status rp_sequences_configure(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < a->copies * a->layout.column_count; i++) {
        size_t at = i % a->layout.column_count;
        rp_column_options options = choose_chunks(a, o, at);
        st = rp_trajectory_writer_configure(a->writer, (uint32_t)i,
                                            a->layout.columns[at].spec.name, &options, err);
    }
    return st;
}

/* Sets value `index` of the next append: column `at` of row `row` of a copy. Keeps a copy of it
 * if prioritize() needs one. */
static void set(rp_adder *a, size_t index, size_t copy, size_t at, int64_t row,
                const void *data)
{
    const rp_adder_sequences *s = &a->sequences;
    size_t bytes = a->layout.columns[at].bytes;

    rp_adder_set_value(a, index, copy * a->layout.column_count + at, at, data);
    if (s->kept != NULL)
        memcpy(s->kept[at] + (copy * (size_t)s->window + (size_t)(row % s->window)) * bytes,
               data, bytes);
}

static rp_status append(rp_adder *a, size_t count, rp_error *err)
{
    return rp_trajectory_writer_append(a->writer, a->values, count, 0, a->refs, err);
}

/* Opens the first row of an episode of a copy. */
static rp_status open_episode(rp_adder *a, size_t copy, const void *observation, rp_error *err)
{
    static const bool yes = true;
    rp_adder_sequences *s = &a->sequences;
    int64_t row = s->closed[copy];
    rp_status st;

    set(a, 0, copy, RP_AT_OBSERVATION, row, observation);
    set(a, 1, copy, RP_AT_START, row, &yes);
    st = append(a, 2, err);
    if (st != RP_OK) return st;
    if (row == 0) s->obs_base[copy] = a->refs[0].cell;
    assert(a->refs[0].cell == s->obs_base[copy] + (uint64_t)row); /* Q2 */
    assert(a->refs[1].cell == a->refs[0].cell);
    return RP_OK;
}

rp_status rp_sequences_first(rp_adder *a, const void *observations, const bool *which,
                             rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t k = 0; st == RP_OK && k < a->copies; k++)
        if (which == NULL || which[k])
            st = open_episode(a, k, row_of(a, observations, RP_AT_OBSERVATION, k), err);
    return st;
}

/* Completes the open row of a copy and opens the next. */
static rp_status append_step(rp_adder *a, const rp_adder_step *step, const float *discounts,
                             size_t copy, rp_error *err)
{
    static const bool no = false;
    rp_adder_sequences *s = &a->sequences;
    const rp_adder_layout *layout = &a->layout;
    bool is_last = a->ended[copy] && step->last_observations != NULL;
    const void *next = is_last ? step->last_observations : step->observations;
    int64_t row = s->closed[copy];
    size_t count = 0;
    rp_status st;

    for (size_t i = 0; i < layout->reward_size; i++)
        s->reward[i] = (float)step->rewards[copy * layout->reward_size + i];
    set(a, count++, copy, RP_AT_ACTION, row, row_of(a, step->actions, RP_AT_ACTION, copy));
    set(a, count++, copy, RP_AT_OBSERVATION, row + 1, row_of(a, next, RP_AT_OBSERVATION, copy));
    set(a, count++, copy, RP_AT_START, row + 1, &no);
    set(a, count++, copy, RP_AT_REWARD, row, s->reward);
    set(a, count++, copy, RP_AT_DISCOUNT, row, row_of(a, discounts, RP_AT_DISCOUNT, copy));
    for (size_t i = RP_AT_EXTRAS; i < layout->column_count; i++)
        set(a, count++, copy, i, row, row_of(a, step->extras[i - RP_AT_EXTRAS], i, copy));
    st = append(a, count, err);
    if (st != RP_OK) return st;
    if (row == 0) s->base[copy] = a->refs[0].cell;
    s->closed[copy]++;
    assert(a->refs[0].cell == s->base[copy] + (uint64_t)row); /* Q2 */
    assert(a->refs[1].cell == s->obs_base[copy] + (uint64_t)row + 1);
    return RP_OK;
}

/* Completes row T with zeros. */
static rp_status append_last(rp_adder *a, size_t copy, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    size_t count = 0;
    rp_status st;

    for (size_t i = 0; i < a->layout.column_count; i++)
        if (i != RP_AT_OBSERVATION && i != RP_AT_START)
            set(a, count++, copy, i, s->closed[copy], s->zero_rows[i]);
    st = append(a, count, err);
    if (st == RP_OK) s->closed[copy]++;
    return st;
}

/* Appends rows of padding after the complete rows. */
static rp_status append_padding(rp_adder *a, size_t copy, int64_t count, rp_error *err)
{
    const rp_adder_sequences *s = &a->sequences;
    rp_status st = RP_OK;

    for (int64_t n = 0; st == RP_OK && n < count; n++) {
        for (size_t i = 0; i < a->layout.column_count; i++)
            set(a, i, copy, i, s->closed[copy] + n, s->padding_rows[i]);
        st = append(a, a->layout.column_count, err);
    }
    return st;
}

/* Asks each table for the priority of an item. */
static rp_status prioritize(rp_adder *a, size_t copy, int64_t first, int64_t rows,
                            rp_error *err)
{
    const rp_adder_sequences *s = &a->sequences;
    uint32_t number = (uint32_t)copy;
    rp_adder_items items = {1, (size_t)rows, &number, (const void *const *)s->gathered,
                            a->layout.column_count};

    assert(rows <= s->most_rows);
    for (size_t i = 0; i < a->layout.column_count; i++) {
        size_t bytes = a->layout.columns[i].bytes;
        for (int64_t n = 0; n < rows; n++) {
            size_t place = copy * (size_t)s->window + (size_t)((first + n) % s->window);
            memcpy((unsigned char *)s->gathered[i] + (size_t)n * bytes,
                   s->kept[i] + place * bytes, bytes);
        }
    }
    return rp_adder_prioritize(a, &items, err);
}

static rp_status create_item(rp_adder *a, size_t copy, rp_plan_rows rows, rp_wait wait,
                             rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    size_t count = (size_t)(rows.rows + rows.padding);
    rp_status st = RP_OK;

    assert(count >= 1 && (int64_t)count <= s->most_rows && rows.first >= 0); /* Q3 */
    if (a->prioritizes) st = prioritize(a, copy, rows.first, (int64_t)count, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < a->layout.column_count; i++) {
        bool is_obs = i == RP_AT_OBSERVATION || i == RP_AT_START;
        uint32_t column = (uint32_t)(copy * a->layout.column_count + i);
        uint64_t cell = (is_obs ? s->obs_base[copy] : s->base[copy]) + (uint64_t)rows.first;
        rp_ref *refs = a->refs + i * (size_t)s->most_rows;
        for (size_t n = 0; n < count; n++) refs[n] = (rp_ref){column, cell + n};
        a->item[i] = (rp_item_column){refs, count, false, a->layout.columns[i].spec.name};
    }
    return rp_adder_create(a, 0, wait, err);
}

/* Ends the episode of a copy. */
static rp_status end_episode(rp_adder *a, size_t copy, rp_wait wait, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    rp_plan_rows rows;
    rp_status st = append_last(a, copy, err);

    if (st != RP_OK) return st;
    if (rp_plan_last(&s->plan, s->closed[copy], &rows)) {
        st = append_padding(a, copy, rows.padding, err);
        if (st == RP_OK) st = create_item(a, copy, rows, wait, err);
    }
    if (s->plan.kind == RP_ADDER_EPISODE || s->plan.end != RP_ADDER_CONTINUE)
        s->closed[copy] = 0;
    return st;
}

rp_status rp_sequences_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                           rp_wait wait, rp_error *err)
{
    rp_adder_sequences *s = &a->sequences;
    bool any = false;
    rp_status st = RP_OK;

    for (size_t k = 0; st == RP_OK && k < a->copies; k++) {
        rp_plan_rows rows;
        st = append_step(a, step, discounts, k, err);
        if (st == RP_OK && rp_plan_regular(&s->plan, s->closed[k], &rows))
            st = create_item(a, k, rows, wait, err);
        if (st == RP_OK && a->ended[k]) st = end_episode(a, k, wait, err);
        any = any || a->ended[k];
    }
    if (st != RP_OK || !any) return st;
    rp_adder_complete(a); /* before the next episode adds rows to the same chunks */
    for (size_t k = 0; st == RP_OK && k < a->copies; k++)
        if (a->ended[k] && step->last_observations != NULL)
            st = open_episode(a, k, row_of(a, step->observations, RP_AT_OBSERVATION, k), err);
    return st;
}

void rp_sequences_forget(rp_adder *a, size_t copy)
{
    a->sequences.closed[copy] = 0;
}

rp_status rp_sequences_check(const rp_adder *a, rp_error *err)
{
    const rp_adder_sequences *s = &a->sequences;

    for (size_t k = 0; k < a->copies; k++)
        if (s->closed[k] >= s->plan.length - 1)
            return rp_rl_fail(err, RP_PRECONDITION,
                              "adder: the episode of copy %zu has %lld rows: with another step "
                              "it would exceed length = %lld",
                              k, (long long)s->closed[k] + 1, (long long)s->plan.length);
    return RP_OK;
}

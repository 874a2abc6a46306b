/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/tune_print.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text/curve_plot.h"

enum { BAR = 24, NUMBER_BYTES = 48 };

size_t rp_tune_rows(const rp_split_options *o, rp_tune_row *out, size_t capacity)
{
    size_t count = 0;

    for (int64_t a = 1; a <= o->acting->count; a++)
        for (int64_t l = 1; l <= o->learning->count; l++)
            if (rp_split_fits(o, a, l) && count < capacity)
                out[count++] = (rp_tune_row){a, l, rp_split_rate(o, a, l), (double)NAN};
    return count;
}

/* The larger rate first; among equals, fewer threads, then fewer learners. */
static int compare(const void *one, const void *other)
{
    const rp_tune_row *a = one, *b = other;
    bool is_measured = isfinite(a->measured);
    double rate_a = is_measured ? a->measured : a->model;
    double rate_b = isfinite(b->measured) ? b->measured : b->model;
    int64_t more = a->actors + a->learners - b->actors - b->learners;

    if (is_measured != isfinite(b->measured)) return is_measured ? -1 : 1;
    if (rate_a != rate_b) return rate_a > rate_b ? -1 : 1;
    if (more != 0) return more < 0 ? -1 : 1;
    return a->learners < b->learners ? -1 : a->learners > b->learners;
}

void rp_tune_sort(rp_tune_row *rows, size_t count)
{
    if (count > 1) qsort(rows, count, sizeof *rows, compare);
}

static bool is_pick(const rp_tune_report *r, const rp_tune_row *row)
{
    return row->actors == r->pick.actors && row->learners == r->pick.learners;
}

const rp_tune_row *rp_tune_best(const rp_tune_report *r, double *share)
{
    const rp_tune_row *best = NULL, *pick = NULL;

    for (size_t i = 0; i < r->row_count; i++) {
        const rp_tune_row *row = &r->rows[i];

        if (!isfinite(row->measured)) continue;
        if (best == NULL || row->measured > best->measured) best = row;
        if (is_pick(r, row)) pick = row;
    }
    if (pick == NULL) return NULL;
    assert(best != NULL && best->measured >= pick->measured);
    *share = pick->measured / best->measured;
    return best;
}

/* Writes a rate with three digits at least and commas between thousands. Returns `text`. */
static const char *rate_text(double rate, char text[NUMBER_BYTES])
{
    char digits[NUMBER_BYTES];
    size_t length, at = 0;

    if (!isfinite(rate)) return "";
    if (rate < 100) {
        (void)snprintf(text, NUMBER_BYTES, "%.3g", rate);
        return text;
    }
    (void)snprintf(digits, sizeof digits, "%.0f", rate);
    length = strlen(digits);
    for (size_t i = 0; i < length && at + 2 < NUMBER_BYTES; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

/* Writes a bar as long as the share of `value` in `largest`. Returns `text`. */
static const char *bar_text(double value, double largest, char text[BAR + 1])
{
    size_t length = (size_t)(fmin(value / largest, 1) * BAR + 0.5);

    assert(value >= 0 && largest > 0 && length <= BAR);
    memset(text, '#', length);
    text[length] = '\0';
    return text;
}

static bool is_point(const rp_profile_curves *c, rp_profile_what what, int64_t threads)
{
    for (size_t i = 0; i < c->point_count[what]; i++)
        if (c->points[what][i].threads == threads) return true;
    return false;
}

static double largest_rate(const rp_tune_report *r)
{
    const rp_split_options *o = &r->problem;
    double largest = 0;

    for (int64_t x = 0; x < o->acting->count; x++) largest = fmax(largest, o->acting->rates[x]);
    for (int64_t x = 0; x < o->learning->count; x++)
        largest = fmax(largest, o->learning->rates[x] * o->interval);
    return largest;
}

static int64_t most_threads(const rp_tune_report *r)
{
    int64_t a = r->problem.acting->count, l = r->problem.learning->count;

    return a > l ? a : l;
}

/* The two cells of a rate and its bar, or empty ones. */
static void put_rate(rp_grid *grid, const rp_tune_report *r, rp_profile_what what, int64_t x,
                     double largest)
{
    const rp_split_options *o = &r->problem;
    const rp_rate_curve *curve = what == RP_PROFILE_ACTING ? o->acting : o->learning;
    double unit = what == RP_PROFILE_ACTING ? 1 : o->interval, rate;
    char number[NUMBER_BYTES], bar[BAR + 1];

    if (x > curve->count) {
        rp_grid_cell(grid, "%s", "");
        rp_grid_cell(grid, "%s", "");
        return;
    }
    rate = curve->rates[x - 1];
    rp_grid_cell(grid, "%s%s", is_point(r->curves, what, x) ? "" : "~",
                 rate_text(rate, number));
    rp_grid_cell(grid, "%s", bar_text(rate * unit, largest, bar));
}

static void put_curves(rp_text_buffer *out, const rp_tune_report *r, size_t most)
{
    double largest = largest_rate(r);
    bool is_filled = false;
    rp_grid grid;

    rp_grid_init(&grid, 5, 1U | 2U | 8U);
    rp_grid_cell(&grid, "threads");
    rp_grid_cell(&grid, "steps/s");
    rp_grid_cell(&grid, "that act");
    rp_grid_cell(&grid, "updates/s");
    rp_grid_cell(&grid, "that learn");
    for (int64_t x = 1; x <= most_threads(r); x++) {
        bool is_measured = is_point(r->curves, RP_PROFILE_ACTING, x) ||
                           is_point(r->curves, RP_PROFILE_LEARNING, x);

        if ((size_t)x > most && !is_measured) continue; /* a large machine: points only */
        is_filled = is_filled || !is_measured;
        rp_grid_cell(&grid, "%lld", (long long)x);
        put_rate(&grid, r, RP_PROFILE_ACTING, x, largest);
        put_rate(&grid, r, RP_PROFILE_LEARNING, x, largest);
    }
    rp_grid_write(&grid, out);
    rp_grid_deinit(&grid);
    if (is_filled) rp_text_buffer_put(out, "~ is between measured points, by Amdahl's law.\n");
}

static void put_splits(rp_text_buffer *out, const rp_tune_report *r, size_t most)
{
    double largest = r->row_count > 0 ? r->rows[0].model : 1, share;
    char number[NUMBER_BYTES], bar[BAR + 1];
    bool has_measured = rp_tune_best(r, &share) != NULL;
    rp_grid grid;

    for (size_t i = 0; i < r->row_count; i++) largest = fmax(largest, r->rows[i].model);
    rp_grid_init(&grid, has_measured ? 6 : 5, 1U | 2U | 4U | (has_measured ? 8U : 0));
    rp_grid_cell(&grid, "actors");
    rp_grid_cell(&grid, "learners");
    rp_grid_cell(&grid, "steps/s");
    if (has_measured) rp_grid_cell(&grid, "measured");
    rp_grid_cell(&grid, "%s", "");
    rp_grid_cell(&grid, "%s", "");
    for (size_t i = 0; i < r->row_count; i++) {
        const rp_tune_row *row = &r->rows[i];

        if (i >= most && !is_pick(r, row)) continue;
        rp_grid_cell(&grid, "%lld", (long long)row->actors);
        rp_grid_cell(&grid, "%lld", (long long)row->learners);
        rp_grid_cell(&grid, "%s", rate_text(row->model, number));
        if (has_measured) rp_grid_cell(&grid, "%s", rate_text(row->measured, number));
        rp_grid_cell(&grid, "%s", bar_text(row->model, largest, bar));
        rp_grid_cell(&grid, "%s", is_pick(r, row) ? "<- pick" : "");
    }
    rp_grid_write(&grid, out);
    rp_grid_deinit(&grid);
    if (r->row_count > most)
        rp_text_buffer_format(out, "The best of %zu splits; --json has all.\n", r->row_count);
}

void rp_tune_text(rp_text_buffer *out, const rp_tune_report *r, size_t most)
{
    const rp_tune_row *best;
    double share;

    rp_text_buffer_format(
        out, "%s in %s on %lld core%s, %.4g step%s for each update%s\n\n", r->agent, r->env,
        (long long)r->problem.cores, r->problem.cores == 1 ? "" : "s", r->problem.interval,
        r->problem.interval == 1 ? "" : "s", r->problem.in_turn ? ", in turn" : "");
    put_curves(out, r, most);
    rp_text_buffer_put(out, "\n");
    put_splits(out, r, most);
    best = rp_tune_best(r, &share);
    if (r->row_count == 1)
        rp_text_buffer_put(out, "There is no other split of these cores.\n");
    else if (best != NULL)
        rp_text_buffer_format(
            out,
            "The pick made %.1f %% of the steps of the best split, %lld actor%s and %lld "
            "learner%s.\n",
            100 * share, (long long)best->actors, best->actors == 1 ? "" : "s",
            (long long)best->learners, best->learners == 1 ? "" : "s");
    rp_text_buffer_format(out, "\n%s\n", r->command);
}

static void json_curve(rp_text_buffer *out, const rp_tune_report *r, rp_profile_what what)
{
    const rp_rate_curve *c =
        what == RP_PROFILE_ACTING ? r->problem.acting : r->problem.learning;

    rp_json_key(out, what == RP_PROFILE_ACTING ? "acting" : "learning");
    rp_json_open(out, '{');
    rp_json_key(out, "serial_share");
    rp_json_put_number(out, c->serial);
    rp_json_key(out, "rates");
    rp_json_open(out, '[');
    for (int64_t x = 1; x <= c->count; x++) {
        rp_json_open(out, '{');
        rp_json_key(out, "threads");
        rp_json_put_integer(out, x);
        rp_json_key(out, "per_second");
        rp_json_put_number(out, c->rates[x - 1]);
        rp_json_key(out, "measured");
        rp_json_put_boolean(out, is_point(r->curves, what, x));
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_json_close(out, '}');
}

static void json_split(rp_text_buffer *out, const rp_tune_row *row)
{
    rp_json_open(out, '{');
    rp_json_key(out, "actors");
    rp_json_put_integer(out, row->actors);
    rp_json_key(out, "learners");
    rp_json_put_integer(out, row->learners);
    rp_json_key(out, "steps_per_second");
    rp_json_put_number(out, row->model);
    if (isfinite(row->measured)) {
        rp_json_key(out, "measured_steps_per_second");
        rp_json_put_number(out, row->measured);
    }
    rp_json_close(out, '}');
}

void rp_tune_json(rp_text_buffer *out, const rp_tune_report *r)
{
    const rp_tune_row *best;
    double share;

    rp_json_open(out, '{');
    rp_json_key(out, "agent");
    rp_json_put_text(out, r->agent);
    rp_json_key(out, "env");
    rp_json_put_text(out, r->env);
    rp_json_key(out, "cores");
    rp_json_put_integer(out, r->problem.cores);
    rp_json_key(out, "steps_per_update");
    rp_json_put_number(out, r->problem.interval);
    rp_json_key(out, "in_turn");
    rp_json_put_boolean(out, r->problem.in_turn);
    json_curve(out, r, RP_PROFILE_ACTING);
    json_curve(out, r, RP_PROFILE_LEARNING);
    rp_json_key(out, "splits");
    rp_json_open(out, '[');
    for (size_t i = 0; i < r->row_count; i++) json_split(out, &r->rows[i]);
    rp_json_close(out, ']');
    for (size_t i = 0; i < r->row_count; i++) {
        if (!is_pick(r, &r->rows[i])) continue;
        rp_json_key(out, "pick");
        json_split(out, &r->rows[i]);
    }
    best = rp_tune_best(r, &share);
    if (best != NULL) {
        rp_json_key(out, "best");
        json_split(out, best);
        rp_json_key(out, "share_of_best");
        rp_json_put_number(out, share);
    }
    rp_json_key(out, "command");
    rp_json_put_text(out, r->command);
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}

void rp_tune_svg(rp_text_buffer *out, const rp_tune_report *r)
{
    static rp_curve_point points[RP_SPLIT_MAX_CORES]; /* too large for a stack */
    const rp_split_options *o = &r->problem;
    size_t count = (size_t)most_threads(r);
    char title[160];
    const rp_curve_labels labels = {title, "threads", "learners", "actors"};

    assert(count <= RP_SPLIT_MAX_CORES);
    (void)snprintf(title, sizeof title, "%s in %s: steps/s; the pick has %lld + %lld threads",
                   r->agent, r->env, (long long)r->pick.actors, (long long)r->pick.learners);
    for (size_t i = 0; i < count; i++)
        points[i] = (rp_curve_point){
            .x = (double)(i + 1),
            .thin = i < (size_t)o->learning->count ? o->learning->rates[i] * o->interval
                                                   : (double)NAN,
            .thick = i < (size_t)o->acting->count ? o->acting->rates[i] : (double)NAN};
    rp_curve_svg(out, &labels, points, count, r->pick.steps_per_second);
}

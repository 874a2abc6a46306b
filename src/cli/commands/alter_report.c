/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of a limiter is at rp_limiter_options. A server reports its difference
 *
 *     diff = inserts * samples_per_insert - samples + an offset of --recenter,
 *
 * from which the difference under other options follows. Its numbers may be any, so they are
 * computed with as doubles. */
#include "cli/commands/alter_report.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/info_print.h"
#include "cli/text/units.h"

enum { VALUE_BYTES = 40, FIELDS = 7 };

#define MOST_COUNTED 1e15 /* counts from here on are not worth printing */

static double items_of(const rp_table_info *t)
{
    return fmax(0, (double)t->inserts - (double)t->deletes);
}

static double diff_under(const rp_table_info *t, const rp_limiter_options *l)
{
    return t->limiter_diff +
           (double)t->inserts * (l->samples_per_insert - t->limiter.samples_per_insert);
}

static bool may_sample(const rp_table_info *t, const rp_limiter_options *l)
{
    return items_of(t) >= (double)l->min_size && diff_under(t, l) - 1 >= l->min_diff;
}

static bool may_insert(const rp_table_info *t, const rp_limiter_options *l)
{
    return items_of(t) < (double)l->min_size ||
           diff_under(t, l) + l->samples_per_insert <= l->max_diff;
}

/* One of the values that alter can change, as text. */
static const char *value_text(const rp_table_info *t, int field, char text[VALUE_BYTES])
{
    const rp_limiter_options *l = &t->limiter;

    assert(field >= 0 && field < FIELDS);
    switch (field) {
    case 0: (void)snprintf(text, VALUE_BYTES, "%" PRId64, t->max_size); break;
    case 1:
        if (t->max_bytes == 0) return "no limit";
        return rp_size_text(t->max_bytes, text, VALUE_BYTES);
    case 2:
        if (t->max_times_sampled == 0) return "no limit";
        (void)snprintf(text, VALUE_BYTES, "%" PRId32, t->max_times_sampled);
        break;
    case 3: return rp_decimal_text(l->samples_per_insert, text, VALUE_BYTES);
    case 4: (void)snprintf(text, VALUE_BYTES, "%" PRId64, l->min_size); break;
    case 5:
        if (rp_limiter_unbounded(l->min_diff)) return "no bound";
        return rp_decimal_text(l->min_diff, text, VALUE_BYTES);
    default:
        if (rp_limiter_unbounded(l->max_diff)) return "no bound";
        return rp_decimal_text(l->max_diff, text, VALUE_BYTES);
    }
    return text;
}

static const char *const field_names[FIELDS] = {
    "max_size", "max_bytes", "max_times_sampled", "samples_per_insert",
    "min_size", "min_diff",  "max_diff",
};

/* The options that set each field. */
static const uint32_t field_options[FIELDS] = {
    RP_ALTERED_MAX_SIZE,
    RP_ALTERED_MAX_BYTES,
    RP_ALTERED_MAX_TIMES_SAMPLED,
    RP_ALTERED_SAMPLES_PER_INSERT,
    RP_ALTERED_MIN_SIZE,
    RP_ALTERED_MIN_DIFF | RP_ALTERED_ERROR_BUFFER,
    RP_ALTERED_MAX_DIFF | RP_ALTERED_ERROR_BUFFER,
};

/* Writes both values of a field. Returns true if they differ. */
static bool values_of(const rp_alter_report *r, int field, const char *values[2],
                      char room[2][VALUE_BYTES])
{
    values[0] = value_text(r->before, field, room[0]);
    values[1] = value_text(r->after, field, room[1]);
    return strcmp(values[0], values[1]) != 0;
}

static uint64_t evicted(const rp_alter_report *r)
{
    return r->after->evictions > r->before->evictions
               ? (uint64_t)r->after->evictions - (uint64_t)r->before->evictions
               : 0;
}

/* Writes how many operations may still proceed, unless that is not bounded. */
static void put_room(rp_text_buffer *out, double count, const char *side, const char *other)
{
    if (!(count < MOST_COUNTED)) return;
    if (count < 1) count = 1;
    rp_text_buffer_format(out, ": %.0f more until %s wait for %s", floor(count), side, other);
}

/* Returns how many inserts change the difference by `diff`. A hostile server may report a ratio
 * of 0: then no number of inserts does. */
static double inserts_for(double diff, const rp_limiter_options *l)
{
    return l->samples_per_insert > 0 ? diff / l->samples_per_insert : MOST_COUNTED;
}

/* Returns how many inserts min_size and min_diff wait for; the latter may be negative. */
static double missing_items(const rp_table_info *t, const rp_limiter_options *l)
{
    return fmax(0, (double)l->min_size - items_of(t));
}

static double missing_inserts(const rp_table_info *t, const rp_limiter_options *l)
{
    return ceil(inserts_for(l->min_diff - diff_under(t, l) + 1, l));
}

/* Writes how many operations of the other side would release those that wait, and ends the
 * line. A number beyond MOST_COUNTED is not written. */
static void put_needed(rp_text_buffer *out, double count, const char *what)
{
    if (count < 1) count = 1;
    if (count < MOST_COUNTED)
        rp_text_buffer_format(out, "; %.0f more %s%s would release them", ceil(count), what,
                              ceil(count) == 1 ? "" : "s");
    rp_text_buffer_put(out, "\n");
}

/* Writes the line of inserts. Returns whether they may proceed. */
static bool insert_state(rp_text_buffer *out, const rp_table_info *t)
{
    const rp_limiter_options *l = &t->limiter;
    double short_by = t->limiter_diff + l->samples_per_insert - l->max_diff, room, fill;
    char diff[VALUE_BYTES], bound[VALUE_BYTES];

    if ((t->paused & RP_SIDE_INSERTS) != 0) {
        rp_text_buffer_put(out, "  inserts wait: they are paused; reprise tables resume ");
        rp_text_buffer_put_word(out, t->name);
        rp_text_buffer_put(out, " lets them continue\n");
        return false;
    }
    if (!may_insert(t, l)) {
        rp_text_buffer_format(
            out,
            "  inserts wait for samples: with one more, inserts * samples_per_insert - samples "
            "is %s, over max_diff %s",
            rp_decimal_text(t->limiter_diff + l->samples_per_insert, diff, sizeof diff),
            rp_decimal_text(l->max_diff, bound, sizeof bound));
        put_needed(out, short_by, "sample");
        return false;
    }
    rp_text_buffer_put(out, "  inserts may proceed");
    fill = (double)l->min_size - items_of(t);
    room = rp_limiter_unbounded(l->max_diff) ? MOST_COUNTED : inserts_for(-short_by, l) + 1;
    put_room(out, fmax(room, fill), "they", "samples");
    rp_text_buffer_put(out, "\n");
    return true;
}

/* Returns true if the table can never have as many items as samples need. */
static bool is_for_ever(const rp_table_info *t)
{
    return !t->soft_limit && t->max_size < t->limiter.min_size;
}

static void put_for_ever(rp_text_buffer *out, const rp_table_info *t)
{
    rp_text_buffer_format(out,
                          "max_size %" PRId64 " is below min_size %" PRId64
                          "; raise --max-size or lower --min-size\n",
                          t->max_size, t->limiter.min_size);
}

static bool sample_state(rp_text_buffer *out, const rp_table_info *t)
{
    const rp_limiter_options *l = &t->limiter;
    double items = items_of(t);
    char diff[VALUE_BYTES], bound[VALUE_BYTES];

    if ((t->paused & RP_SIDE_SAMPLES) != 0) {
        rp_text_buffer_put(out, "  samples wait: they are paused; reprise tables resume ");
        rp_text_buffer_put_word(out, t->name);
        rp_text_buffer_put(out, " lets them continue\n");
        return false;
    }
    if (is_for_ever(t)) {
        rp_text_buffer_put(out, "  samples wait for ever: ");
        put_for_ever(out, t);
        return false;
    }
    if (items < (double)l->min_size) {
        rp_text_buffer_format(out,
                              "  samples wait for inserts: %.0f item%s, min_size is %" PRId64,
                              items, items == 1 ? "" : "s", l->min_size);
        if (missing_inserts(t, l) > missing_items(t, l))
            rp_text_buffer_format(out, ", min_diff %s",
                                  rp_decimal_text(l->min_diff, bound, sizeof bound));
        put_needed(out, fmax(missing_items(t, l), missing_inserts(t, l)), "insert");
        return false;
    }
    if (!may_sample(t, l)) {
        rp_text_buffer_format(
            out,
            "  samples wait for inserts: with one more, inserts * samples_per_insert - samples "
            "is %s, under min_diff %s",
            rp_decimal_text(t->limiter_diff - 1, diff, sizeof diff),
            rp_decimal_text(l->min_diff, bound, sizeof bound));
        put_needed(out, inserts_for(l->min_diff - t->limiter_diff + 1, l), "insert");
        return false;
    }
    rp_text_buffer_put(out, "  samples may proceed");
    if (!rp_limiter_unbounded(l->min_diff))
        put_room(out, t->limiter_diff - l->min_diff, "they", "inserts");
    rp_text_buffer_put(out, "\n");
    return true;
}

void rp_limiter_waits(rp_text_buffer *out, const rp_table_info *info)
{
    rp_text_buffer line = {0};

    if (!insert_state(&line, info)) rp_text_buffer_put(out, rp_text_buffer_text(&line));
    rp_text_buffer_clear(&line);
    if (!sample_state(&line, info)) rp_text_buffer_put(out, rp_text_buffer_text(&line));
    if (line.failed) out->failed = true;
    rp_text_buffer_deinit(&line);
}

static bool concerns_limiter(const rp_alter_report *r)
{
    return (r->given & ~(uint32_t)(RP_ALTERED_MAX_SIZE | RP_ALTERED_MAX_BYTES |
                                   RP_ALTERED_MAX_TIMES_SAMPLED)) != 0;
}

void rp_alter_changes(rp_text_buffer *out, const rp_alter_report *r)
{
    char room[2][VALUE_BYTES];
    const char *values[2];

    for (int i = 0; i < FIELDS; i++) {
        if (!values_of(r, i, values, room)) continue;
        rp_text_buffer_format(out, "  %s %s -> %s\n", field_names[i], values[0], values[1]);
    }
    if (evicted(r) > 0)
        rp_text_buffer_format(out, "  %" PRIu64 " item%s evicted\n", evicted(r),
                              evicted(r) == 1 ? " was" : "s were");
    if (r->after->max_times_sampled > 0 &&
        r->after->max_times_sampled != r->before->max_times_sampled)
        rp_text_buffer_format(out,
                              "  items that were sampled %" PRId32
                              " time%s or more leave after their next sample\n",
                              r->after->max_times_sampled,
                              r->after->max_times_sampled == 1 ? "" : "s");
    if (!concerns_limiter(r)) return;
    (void)insert_state(out, r->after);
    if (is_for_ever(r->after))
        rp_text_buffer_put(out, "  samples wait for ever\n"); /* a warning says why */
    else
        (void)sample_state(out, r->after);
}

void rp_alter_changes_json(rp_text_buffer *out, const rp_alter_report *r)
{
    char room[2][VALUE_BYTES];
    const char *values[2];

    rp_json_key(out, "changes");
    rp_json_open(out, '[');
    for (int i = 0; i < FIELDS; i++) {
        if (!values_of(r, i, values, room)) continue;
        rp_json_open(out, '{');
        rp_json_key(out, "option");
        rp_json_put_text(out, field_names[i]);
        rp_json_key(out, "before");
        rp_json_put_text(out, values[0]);
        rp_json_key(out, "after");
        rp_json_put_text(out, values[1]);
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_json_key(out, "evicted");
    rp_json_put_unsigned(out, evicted(r));
}

bool rp_alter_is_same(const rp_alter_report *r)
{
    char room[2][VALUE_BYTES];
    const char *values[2];
    const rp_limiter_options *l = &r->after->limiter;
    bool has_middle = !rp_limiter_unbounded(l->min_diff) && !rp_limiter_unbounded(l->max_diff);
    bool is_same = (r->given & RP_ALTERED_RECENTER) == 0 || !has_middle;

    for (int i = 0; i < FIELDS && is_same; i++) is_same = !values_of(r, i, values, room);
    return is_same;
}

/* Warns if the command has changed nothing, since all values were as given before. */
static void warn_same(rp_text_buffer *out, const rp_alter_report *r)
{
    const char *values[2], *comma = "nothing has changed: ";
    char room[2][VALUE_BYTES];

    /* warn_free() says that --recenter alone had no effect. */
    if (!rp_alter_is_same(r) || r->given == RP_ALTERED_RECENTER) return;
    for (int i = 0; i < FIELDS; i++) {
        if ((r->given & field_options[i]) == 0) continue;
        (void)values_of(r, i, values, room);
        rp_text_buffer_format(out, "%s%s was %s already", comma, field_names[i], values[1]);
        comma = ", ";
    }
    rp_text_buffer_put(out, "\n");
}

/* The buffer that reprise serve gives a limiter without one. */
static double usual_buffer(const rp_limiter_options *l)
{
    return fmax(2 * fmax(1, l->samples_per_insert),
                0.1 * l->samples_per_insert * (double)l->min_size);
}

/* Writes the command that makes a limiter with bounds around its target, and `recenter`. */
static void offer(rp_text_buffer *out, const rp_table_info *t, double buffer, bool recenter)
{
    char ratio[VALUE_BYTES], bound[VALUE_BYTES];

    rp_text_buffer_put(out, "reprise tables alter ");
    rp_text_buffer_put_word(out, t->name);
    rp_text_buffer_format(out,
                          " --samples-per-insert %s --min-size %" PRId64 " --error-buffer %s%s",
                          rp_decimal_text(t->limiter.samples_per_insert, ratio, sizeof ratio),
                          t->limiter.min_size, rp_decimal_text(buffer, bound, sizeof bound),
                          recenter ? " --recenter" : "");
}

static void warn_free(rp_text_buffer *out, const rp_alter_report *r)
{
    const rp_limiter_options *l = &r->after->limiter;
    char ratio[VALUE_BYTES];

    if (!rp_limiter_unbounded(l->min_diff) || !rp_limiter_unbounded(l->max_diff)) {
        if ((r->given & RP_ALTERED_RECENTER) != 0 &&
            (rp_limiter_unbounded(l->min_diff) || rp_limiter_unbounded(l->max_diff)))
            rp_text_buffer_put(out, "--recenter has no effect: the limiter needs min_diff and "
                                    "max_diff for a middle\n");
        return;
    }
    if ((r->given & (RP_ALTERED_SAMPLES_PER_INSERT | RP_ALTERED_RECENTER)) == 0) return;
    rp_text_buffer_format(
        out, "%s has no effect: the limiter has no bounds; to keep %s sample%s an insert: ",
        (r->given & RP_ALTERED_SAMPLES_PER_INSERT) != 0 ? "--samples-per-insert" : "--recenter",
        rp_decimal_text(l->samples_per_insert, ratio, sizeof ratio),
        l->samples_per_insert == 1 ? "" : "s");
    offer(out, r->after, usual_buffer(l), true);
    rp_text_buffer_put(out, "\n");
}

/* Warns if a side waits as before because of a bound that the command did not give, and offers
 * bounds around the target, with which it may proceed. */
static void warn_still(rp_text_buffer *out, const rp_alter_report *r)
{
    const rp_table_info *t = r->after;
    const rp_limiter_options *l = &t->limiter;
    bool samples = missing_inserts(t, l) > missing_items(t, l) &&
                   !may_sample(r->before, &r->before->limiter);
    bool inserts = !may_insert(t, l) && !may_insert(r->before, &r->before->limiter);
    bool bounded = !rp_limiter_unbounded(l->min_diff) && !rp_limiter_unbounded(l->max_diff);
    double buffer = bounded ? (l->max_diff - l->min_diff) / 2 : usual_buffer(l);
    rp_limiter_options centred;

    if ((r->given & (RP_ALTERED_SAMPLES_PER_INSERT | RP_ALTERED_MIN_SIZE)) == 0) return;
    if (!samples && !inserts) return;
    if ((r->given & (RP_ALTERED_ERROR_BUFFER |
                     (samples ? RP_ALTERED_MIN_DIFF : RP_ALTERED_MAX_DIFF))) != 0)
        return;
    if (buffer < l->samples_per_insert + 1) buffer = usual_buffer(l);
    centred = rp_limiter_ratio(l->samples_per_insert, l->min_size, buffer);
    rp_text_buffer_format(
        out, "%s wait as before, because of %s, which this command has not changed; ",
        samples ? "samples" : "inserts", samples ? "min_diff" : "max_diff");
    offer(out, t, buffer,
          samples ? missing_inserts(t, &centred) > missing_items(t, &centred)
                  : !may_insert(t, &centred));
    rp_text_buffer_put(out, " would let them proceed");
    if (samples && missing_items(t, l) > 0)
        rp_text_buffer_format(out, " after %.0f more insert%s", missing_items(t, l),
                              missing_items(t, l) == 1 ? "" : "s");
    rp_text_buffer_put(out, "\n");
}

/* Warns if a larger max_size has no effect on inserts, because max_diff makes them wait before
 * the table has that many items. */
static void warn_full(rp_text_buffer *out, const rp_alter_report *r)
{
    const rp_table_info *t = r->after;
    const rp_limiter_options *l = &t->limiter;
    bool is_queue = l->samples_per_insert == 1 && l->min_diff == 0 && t->max_times_sampled == 1;
    bool waits = !may_insert(t, l), larger = t->max_size > r->before->max_size;
    char bound[VALUE_BYTES];

    if ((r->given & RP_ALTERED_MAX_SIZE) == 0 || (double)t->max_size <= l->max_diff) return;
    if ((r->given & (RP_ALTERED_MAX_DIFF | RP_ALTERED_ERROR_BUFFER)) != 0) return;
    if (!is_queue && (!waits || !larger || may_insert(r->before, &r->before->limiter))) return;
    rp_text_buffer_format(out, "inserts %s as before, because of max_diff %s; ",
                          waits ? "wait" : "will wait",
                          rp_decimal_text(l->max_diff, bound, sizeof bound));
    rp_text_buffer_put(out, "reprise tables alter ");
    rp_text_buffer_put_word(out, t->name);
    rp_text_buffer_format(out, " --max-diff %.0f would let %s\n",
                          is_queue ? (double)t->max_size
                                   : ceil(t->limiter_diff + l->samples_per_insert),
                          is_queue ? "them fill the table" : "one proceed");
}

void rp_alter_warnings(rp_text_buffer *out, const rp_alter_report *r)
{
    const rp_table_info *t = r->after;

    warn_same(out, r);
    warn_free(out, r);
    warn_still(out, r);
    warn_full(out, r);
    if (t->max_bytes > 0 && r->before->size > 0 &&
        r->before->bytes / (uint64_t)r->before->size > t->max_bytes) {
        char item[VALUE_BYTES], bound[VALUE_BYTES];

        rp_text_buffer_format(
            out, "max_bytes %s is less than an item takes, %s: the table keeps none\n",
            rp_size_text(t->max_bytes, bound, sizeof bound),
            rp_size_text(r->before->bytes / (uint64_t)r->before->size, item, sizeof item));
    }
    if (!is_for_ever(t)) return;
    rp_text_buffer_put(out, "samples will wait for ever: ");
    put_for_ever(out, t);
}

void rp_alter_warnings_print(const rp_text_buffer *warnings, const char *command)
{
    const char *at = rp_text_buffer_text(warnings);

    (void)fflush(stdout);
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        (void)fprintf(stderr, "reprise %s: warning: %.*s\n", command, (int)length, at);
        at += length + (at[length] == '\n');
    }
}

void rp_alter_warnings_json(rp_text_buffer *out, const rp_text_buffer *warnings)
{
    const char *at = rp_text_buffer_text(warnings);

    rp_json_key(out, "warnings");
    rp_json_open(out, '[');
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        rp_json_put_string(out, at, length);
        at += length + (at[length] == '\n');
    }
    rp_json_close(out, ']');
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CSV, JSON and SVG of the rows of a benchmark.
 *
 * Invariants of a panel that scale() has accepted:
 *   D1  0 <= low < high, and low > 0 on a logarithmic scale (step 0);
 *   D2  most >= 1, and no row of its figure has more clients. */
#include "cli/commands/bench_plot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 440, /* of a panel, with its margins */
    HEIGHT = 300,
    LEFT = 62,
    TOP = 34,
    RIGHT = 92,
    BOTTOM = 44,
    CURVES = 8,    /* of a panel: each has its own colour */
    MAX_LINES = 6, /* grid lines above the lowest */
};

static const char *const colours[CURVES] = {"#1b6ca8", "#d1495b", "#3a7d44", "#b07d12",
                                            "#6a4c93", "#00798c", "#8d5a3b", "#5b5b5b"};

static const struct panel_kind {
    const char *title;
    int figure;
    bool bytes;  /* bytes per second; otherwise items */
    bool tables; /* a curve for each number of tables; otherwise for each payload */
} kinds[] = {
    {"5a  inserts", 5, false, false}, {"5b  inserts", 5, true, false},
    {"6a  samples", 6, false, false}, {"6b  samples", 6, true, false},
    {"7  inserts", 7, false, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static double bytes_per_s(const rp_bench_row *r)
{
    return r->items_per_s * (double)r->payload;
}

static const char *kind_of(const rp_bench_row *r)
{
    assert(r->figure >= 5 && r->figure <= 7);
    return r->figure == 6 ? "sample" : "insert";
}

void rp_bench_csv_head(rp_text_buffer *out)
{
    rp_text_buffer_put(out,
                       "figure,kind,payload_bytes,tables,clients,items_per_s,bytes_per_s\n");
}

void rp_bench_csv(rp_text_buffer *out, const rp_bench_row *r)
{
    rp_text_buffer_format(out, "%d,%s,%zu,%zu,%zu,%.0f,%.0f\n", r->figure, kind_of(r),
                          r->payload, r->tables, r->clients, r->items_per_s, bytes_per_s(r));
}

void rp_bench_json(rp_text_buffer *out, const rp_bench_row *r)
{
    rp_json_open(out, '{');
    rp_json_key(out, "figure");
    rp_json_put_integer(out, r->figure);
    rp_json_key(out, "kind");
    rp_json_put_text(out, kind_of(r));
    rp_json_key(out, "payload_bytes");
    rp_json_put_unsigned(out, r->payload);
    rp_json_key(out, "tables");
    rp_json_put_unsigned(out, r->tables);
    rp_json_key(out, "clients");
    rp_json_put_unsigned(out, r->clients);
    rp_json_key(out, "items_per_s");
    rp_json_put_number(out, floor(r->items_per_s + 0.5));
    rp_json_key(out, "bytes_per_s");
    rp_json_put_number(out, floor(bytes_per_s(r) + 0.5));
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}

typedef struct panel {
    const struct panel_kind *kind;
    const rp_bench_row *rows;
    size_t count;
    double x0, y0, width, height;
    double low, high, step; /* of the vertical axis; step 0: logarithmic, powers of ten */
    size_t most;            /* clients, at the end of the horizontal axis */
} panel;

/* Returns true if the row is drawn: it is of the figure of the panel, and a rate was measured.
 */
static bool is_shown(const panel *p, const rp_bench_row *r)
{
    return r->figure == p->kind->figure && r->items_per_s > 0;
}

/* Returns the value of a row that a panel shows, at least 1: its logarithm must exist. */
static double value_of(const panel *p, const rp_bench_row *r)
{
    double value = p->kind->bytes ? bytes_per_s(r) : r->items_per_s;

    return value >= 1 ? value : 1;
}

static size_t curve_key(const panel *p, const rp_bench_row *r)
{
    return p->kind->tables ? r->tables : r->payload;
}

/* Writes a number in few letters: "400", "40k", "1.5M". */
static void put_short(rp_text_buffer *out, double value)
{
    static const struct {
        double size;
        const char *letter;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

    assert(value >= 0);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (value < units[i].size && units[i].size > 1) continue;
        rp_text_buffer_format(out, "%.4g%s", value / units[i].size, units[i].letter);
        return;
    }
}

/* Returns the distance of grid lines on a linear axis from 0 to `largest`: 1, 2 or 5 times a
 * power of ten, so that there are at most seven. */
static double line_step(double largest)
{
    double power = pow(10, floor(log10(largest)) - 1);
    static const double steps[] = {1, 2, 5, 10, 20, 50};
    size_t i = 0;

    while (i + 1 < sizeof steps / sizeof steps[0] && largest / (steps[i] * power) > 6) i++;
    return steps[i] * power;
}

/* Chooses the scale: logarithmic, or linear from 0 if all values lie within one power of ten.
 * Returns false if the panel has no rows. */
static bool scale(panel *p)
{
    double least = 0, largest = 0;

    p->most = 0;
    for (size_t i = 0; i < p->count; i++) {
        double value;

        if (!is_shown(p, &p->rows[i])) continue;
        value = value_of(p, &p->rows[i]);
        if (p->most == 0 || value < least) least = value;
        if (value > largest) largest = value;
        if (p->rows[i].clients > p->most) p->most = p->rows[i].clients;
    }
    if (p->most == 0) return false;
    p->low = pow(10, floor(log10(least)));
    p->high = pow(10, ceil(log10(largest)));
    p->step = 0;
    if (largest < 10 * least || p->high <= p->low * 10) {
        p->low = 0;
        p->step = line_step(largest);
        p->high = ceil(largest / p->step) * p->step;
    }
    assert(p->low >= 0 && p->low < p->high && (p->step > 0 || p->low > 0)); /* D1 */
    return true;
}

static double x_of(const panel *p, double clients)
{
    assert(clients >= 0 && clients <= (double)p->most); /* D2 */
    return p->x0 + p->width * clients / (double)p->most;
}

static double y_of(const panel *p, double value)
{
    double share = p->step > 0 ? value / p->high : log(value / p->low) / log(p->high / p->low);

    return p->y0 + p->height * (1 - share);
}

/* Draws the title, the grid lines and the labels of both axes. */
static void axes(rp_text_buffer *out, const panel *p)
{
    static const size_t steps[] = {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000};
    double bottom = p->y0 + p->height, value = p->low, factor = 10;
    size_t s = 0;

    rp_text_buffer_format(out,
                          "<text x=\"%.0f\" y=\"%.0f\" class=\"title\">%s, %s/s%s</text>\n",
                          p->x0, p->y0 - 12, p->kind->title, p->kind->bytes ? "bytes" : "items",
                          p->step > 0 ? "" : ", logarithmic axis");
    while (p->step == 0 && log(p->high / p->low) > (MAX_LINES + 0.5) * log(factor))
        factor *= 10;
    while (value <= p->high * 1.01) {
        double y = y_of(p, value);

        rp_text_buffer_format(
            out,
            "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
            "<text x=\"%.0f\" y=\"%.1f\" class=\"up\">",
            p->x0, p->x0 + p->width, y, y, p->x0 - 6, y + 4);
        put_short(out, value);
        rp_text_buffer_put(out, "</text>\n");
        value = p->step > 0 ? value + p->step : value * factor;
    }
    while (s + 1 < sizeof steps / sizeof steps[0] && p->most / steps[s] > 5) s++;
    for (size_t clients = steps[s]; clients <= p->most; clients += steps[s]) /* none has 0 */
        rp_text_buffer_format(out, "<text x=\"%.1f\" y=\"%.0f\" class=\"along\">%zu</text>\n",
                              x_of(p, (double)clients), bottom + 16, clients);
    rp_text_buffer_format(out, "<text x=\"%.0f\" y=\"%.0f\" class=\"along\">clients</text>\n",
                          p->x0 + p->width / 2, bottom + 32);
}

static void curve_name(rp_text_buffer *out, const panel *p, const rp_bench_row *r)
{
    if (p->kind->tables) {
        rp_text_buffer_format(out, "%zu table%s", r->tables, r->tables == 1 ? "" : "s");
    } else {
        put_short(out, (double)r->payload);
        rp_text_buffer_put(out, "B");
    }
}

/* Draws one curve. `first` is its first row; `*last` becomes its last one. */
static void curve(rp_text_buffer *out, const panel *p, size_t first, const char *colour,
                  size_t *last)
{
    size_t key = curve_key(p, &p->rows[first]);

    assert(first < p->count && is_shown(p, &p->rows[first]));
    rp_text_buffer_put(out, "<polyline points=\"");
    for (size_t i = first; i < p->count; i++) {
        const rp_bench_row *r = &p->rows[i];

        if (!is_shown(p, r) || curve_key(p, r) != key) continue;
        rp_text_buffer_format(out, "%s%.1f,%.1f", i > first ? " " : "",
                              x_of(p, (double)r->clients), y_of(p, value_of(p, r)));
        *last = i;
    }
    rp_text_buffer_format(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n",
                          colour);
    assert(*last >= first && *last < p->count);
    for (size_t i = first; i <= *last; i++) {
        const rp_bench_row *r = &p->rows[i];

        if (!is_shown(p, r) || curve_key(p, r) != key) continue;
        rp_text_buffer_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\" fill=\"%s\"/>\n",
                              x_of(p, (double)r->clients), y_of(p, value_of(p, r)), colour);
    }
}

/* Writes the names of curves at their ends, from the top down, without overlaps. */
static void names(rp_text_buffer *out, const panel *p, const size_t *lasts, size_t count)
{
    bool done[CURVES] = {false};
    double lowest = p->y0 - 100;

    assert(count <= CURVES);
    for (size_t n = 0; n < count; n++) {
        size_t best = count;
        double y;

        for (size_t i = 0; i < count; i++)
            if (!done[i] && (best == count || value_of(p, &p->rows[lasts[i]]) >
                                                  value_of(p, &p->rows[lasts[best]])))
                best = i;
        assert(best < count);
        done[best] = true;
        y = y_of(p, value_of(p, &p->rows[lasts[best]])) + 4;
        lowest = lowest + 13 > y ? lowest + 13 : y;
        rp_text_buffer_format(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">",
                              x_of(p, (double)p->most) + 7, lowest, colours[best]);
        curve_name(out, p, &p->rows[lasts[best]]);
        rp_text_buffer_put(out, "</text>\n");
    }
}

static void draw_panel(rp_text_buffer *out, const panel *p)
{
    size_t lasts[CURVES] = {0}, count = 0;

    axes(out, p);
    for (size_t i = 0; i < p->count && count < CURVES; i++) {
        bool seen = false;

        if (!is_shown(p, &p->rows[i])) continue;
        for (size_t k = 0; k < count && !seen; k++)
            seen = curve_key(p, &p->rows[lasts[k]]) == curve_key(p, &p->rows[i]);
        if (seen) continue;
        lasts[count] = i;
        curve(out, p, i, colours[count], &lasts[count]);
        count++;
    }
    names(out, p, lasts, count);
}

void rp_bench_svg(rp_text_buffer *out, const rp_bench_row *rows, size_t count)
{
    panel panels[KINDS];
    size_t shown = 0;

    for (size_t i = 0; i < KINDS; i++) {
        panel p = {.kind = &kinds[i], .rows = rows, .count = count};
        size_t line = shown / 2;

        if (!scale(&p)) continue;
        p.x0 = (double)(shown % 2 * WIDTH + LEFT);
        p.y0 = (double)(line * HEIGHT + TOP);
        p.width = WIDTH - LEFT - RIGHT;
        p.height = HEIGHT - TOP - BOTTOM;
        assert(shown < KINDS);
        panels[shown++] = p;
    }
    rp_text_buffer_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\">\n"
        "<style>text{font:12px sans-serif}.title{font-weight:bold}"
        ".up{text-anchor:end}.along{text-anchor:middle}.grid{stroke:#ddd}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        (size_t)WIDTH * (shown > 1 ? 2 : 1), HEIGHT * ((shown + 1) / 2));
    for (size_t i = 0; i < shown; i++) draw_panel(out, &panels[i]);
    rp_text_buffer_put(out, "</svg>\n");
}

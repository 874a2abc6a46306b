/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant:
 *   P1  low < high and most > 0: every point has a place. */
#include "cli/text/curve_plot.h"

#include <assert.h>
#include <math.h>

enum { WIDTH = 640, HEIGHT = 360, LEFT = 64, TOP = 36, RIGHT = 90, BOTTOM = 46, TICKS = 5 };

static const char *const THICK = "#1b6ca8";
static const char *const THIN = "#d1a05b";

typedef struct curve_frame {
    double low, high, step; /* of the vertical axis */
    double most;            /* steps, at the end of the horizontal axis */
} curve_frame;

static void widen(curve_frame *f, double value)
{
    if (!isfinite(value)) return;
    f->low = fmin(f->low, value);
    f->high = fmax(f->high, value);
}

/* A round number near `range` / TICKS: 1, 2 or 5 times a power of ten. */
static double tick(double range)
{
    double unit = pow(10, floor(log10(range / TICKS))), times = range / TICKS / unit;

    return unit * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static curve_frame fit(const rp_curve_point *points, size_t count, double line)
{
    curve_frame f = {.low = INFINITY, .high = -INFINITY, .most = 1};

    for (size_t i = 0; i < count; i++) {
        widen(&f, points[i].thin);
        widen(&f, points[i].thick);
        f.most = fmax(f.most, points[i].x);
    }
    widen(&f, line);
    if (!(f.low <= f.high)) f.low = f.high = 0; /* no number at all */
    if (f.low == f.high) f.high = f.low + 1;
    f.step = tick(f.high - f.low);
    f.low = floor(f.low / f.step) * f.step;
    f.high = ceil(f.high / f.step) * f.step;
    assert(f.low < f.high && f.most > 0); /* P1 */
    return f;
}

static double x_of(const curve_frame *f, double steps)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * steps / f->most;
}

static double y_of(const curve_frame *f, double value)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (f->high - value) / (f->high - f->low);
}

/* A number of an axis: from `thousand` on, in thousands or millions. */
static void put_short(rp_text_buffer *out, double v, double thousand)
{
    double unit = fabs(v) >= 1e6 ? 1e6 : fabs(v) >= thousand ? 1e3 : 1;

    assert(thousand >= 1e3);
    rp_text_buffer_format(out, "%.4g%s", v / unit, unit == 1e6 ? "M" : unit == 1e3 ? "k" : "");
}

static void axes(rp_text_buffer *out, const curve_frame *f, const char *name)
{
    double along = fmax(1, tick(f->most)); /* steps and threads are whole */

    for (double v = f->low; v <= f->high + f->step / 2; v += f->step) {
        rp_text_buffer_format(out,
                              "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
                              "class=\"grid\"/><text x=\"%d\" y=\"%.1f\" class=\"up\">",
                              LEFT, WIDTH - RIGHT, y_of(f, v), y_of(f, v), LEFT - 6,
                              y_of(f, v) + 4);
        put_short(out, fabs(v) < f->step / 2 ? 0 : v, 1e4);
        rp_text_buffer_put(out, "</text>\n");
    }
    for (double v = 0; v <= f->most; v += along) {
        rp_text_buffer_format(out, "<text x=\"%.1f\" y=\"%d\" class=\"along\">", x_of(f, v),
                              HEIGHT - BOTTOM + 16);
        put_short(out, v, 1e3);
        rp_text_buffer_put(out, "</text>\n");
    }
    rp_text_buffer_format(out, "<text x=\"%d\" y=\"%d\" class=\"along\">%s</text>\n",
                          (LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, name);
}

/* Draws one of the curves, and its name at the end. */
static void curve(rp_text_buffer *out, const curve_frame *f, const rp_curve_labels *labels,
                  const rp_curve_point *points, size_t count, bool is_thick)
{
    const char *colour = is_thick ? THICK : THIN;
    double last = (double)NAN;

    rp_text_buffer_put(out, "<polyline points=\"");
    for (size_t i = 0; i < count; i++) {
        double value = is_thick ? points[i].thick : points[i].thin;

        if (!isfinite(value)) continue;
        rp_text_buffer_format(out, "%.1f,%.1f ", x_of(f, points[i].x), y_of(f, value));
        last = value;
    }
    rp_text_buffer_format(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>\n", colour,
                          is_thick ? "1.8" : "1.2");
    if (isfinite(last))
        rp_text_buffer_format(out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
                              WIDTH - RIGHT + 6, y_of(f, last) + (is_thick ? -2 : 12), colour,
                              is_thick ? labels->thick : labels->thin);
}

void rp_curve_svg(rp_text_buffer *out, const rp_curve_labels *labels,
                  const rp_curve_point *points, size_t count, double line)
{
    curve_frame f = fit(points, count, line);

    rp_text_buffer_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n"
        "<style>text{font:12px sans-serif}.title{font-weight:bold}"
        ".up{text-anchor:end}.along{text-anchor:middle}.grid{stroke:#ddd}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
        "<text x=\"%d\" y=\"22\" class=\"title\">%s</text>\n",
        WIDTH, HEIGHT, LEFT, labels->title);
    axes(out, &f, labels->x);
    if (isfinite(line))
        rp_text_buffer_format(out,
                              "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
                              "stroke=\"#3a7d44\" stroke-dasharray=\"6 4\"/>\n",
                              LEFT, WIDTH - RIGHT, y_of(&f, line), y_of(&f, line));
    curve(out, &f, labels, points, count, false);
    curve(out, &f, labels, points, count, true);
    rp_text_buffer_put(out, "</svg>\n");
}

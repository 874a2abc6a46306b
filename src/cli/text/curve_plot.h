/* SPDX-License-Identifier: Apache-2.0 */
/* The curve of a training run as an SVG: return over steps. Pure. */
#ifndef RP_CLI_TEXT_CURVE_PLOT_H
#define RP_CLI_TEXT_CURVE_PLOT_H

#include "cli/text/text_buffer.h"

/* A point of the curve. Returns that are not known are NaN. */
typedef struct rp_curve_point {
    double steps;
    double training; /* mean of the last episodes, which explore */
    double greedy;   /* mean of an evaluation */
} rp_curve_point;

/* Draws `count` points in order of their steps; `threshold` is a dashed line, or NaN. */
void rp_curve_svg(rp_text_buffer *out, const char *title, const rp_curve_point *points,
                  size_t count, double threshold);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Two curves over a common axis as an SVG: the returns of a run over its steps, the rates of
 * threads over their number. Pure. */
#ifndef RP_CLI_TEXT_CURVE_PLOT_H
#define RP_CLI_TEXT_CURVE_PLOT_H

#include "cli/text/text_buffer.h"

/* A point of both curves. Values that are not known are NaN. */
typedef struct rp_curve_point {
    double x; /* >= 0 */
    double thin, thick;
} rp_curve_point;

/* Terminated; without characters that SVG would have to escape. */
typedef struct rp_curve_labels {
    const char *title;
    const char *x;            /* the name of the axis */
    const char *thin, *thick; /* the names of the curves */
} rp_curve_labels;

/* Draws `count` points in order of x; `line` is a dashed horizontal line, or NaN. */
void rp_curve_svg(rp_text_buffer *out, const rp_curve_labels *labels,
                  const rp_curve_point *points, size_t count, double line);

#endif

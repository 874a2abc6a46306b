/* SPDX-License-Identifier: Apache-2.0 */
/* Draws two curves over a common horizontal axis as an SVG image: for example, the returns of a
 * run over its steps, or speed over the number of threads. Pure functions. */
#ifndef RP_CLI_TEXT_CURVE_PLOT_H
#define RP_CLI_TEXT_CURVE_PLOT_H

#include "cli/text/text_buffer.h"

/* The points of both curves at one x. A value that is not known is NaN. */
typedef struct rp_curve_point {
    double x;           /* >= 0 */
    double thin, thick; /* values of the two curves, named for their line widths */
} rp_curve_point;

/* Zero-terminated texts. The caller must not use characters that SVG has to escape. */
typedef struct rp_curve_labels {
    const char *title;
    const char *x;            /* name of the horizontal axis */
    const char *thin, *thick; /* names of the curves */
} rp_curve_labels;

/* Appends the image to `out`. The `count` points must be in order of x. Unless `line` is NaN,
 * also draws a dashed horizontal line at the value `line`. */
void rp_curve_svg(rp_text_buffer *out, const rp_curve_labels *labels,
                  const rp_curve_point *points, size_t count, double line);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Figures 5, 6 and 7 of the Reverb paper (Cassirer et al. 2021): rows of a CSV, and a drawing
 * of them. Pure. */
#ifndef RP_CLI_COMMANDS_BENCH_PLOT_H
#define RP_CLI_COMMANDS_BENCH_PLOT_H

#include "cli/text/text_buffer.h"

typedef struct rp_bench_row {
    int figure;     /* 5: inserts, 6: samples, 7: inserts into several tables */
    size_t payload; /* bytes of an item */
    size_t tables, clients;
    double items_per_s;
} rp_bench_row;

/* Write the line of headings of a CSV, a row of it, and a row as a line of JSON. */
void rp_bench_csv_head(rp_text_buffer *out);
void rp_bench_csv(rp_text_buffer *out, const rp_bench_row *row);
void rp_bench_json(rp_text_buffer *out, const rp_bench_row *row);

/* Writes an SVG: items and bytes per second by number of clients, with a panel for each figure
 * that has rows and a curve for each payload or number of tables. The rows of a curve must
 * follow each other, in order of their number of clients. */
void rp_bench_svg(rp_text_buffer *out, const rp_bench_row *rows, size_t count);

#endif

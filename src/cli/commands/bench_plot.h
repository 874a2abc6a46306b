/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of benchmarks as CSV, JSON and SVG. The benchmarks are those of figures 5,
 * 6 and 7 in the Reverb paper (Cassirer et al. 2021). Pure functions. */
#ifndef RP_CLI_COMMANDS_BENCH_PLOT_H
#define RP_CLI_COMMANDS_BENCH_PLOT_H

#include "cli/text/text_buffer.h"

/* A measurement. */
typedef struct rp_bench_row {
    int figure;     /* 5: inserts, 6: samples, 7: inserts into several tables */
    size_t payload; /* size of an item in bytes */
    size_t tables, clients;
    double items_per_s;
} rp_bench_row;

/* Write the headings of the CSV, a row of the CSV, and a row as a line of JSON. */
void rp_bench_csv_head(rp_text_buffer *out);
void rp_bench_csv(rp_text_buffer *out, const rp_bench_row *row);
void rp_bench_json(rp_text_buffer *out, const rp_bench_row *row);

/* Writes an SVG with the items and bytes per second over the number of clients. Figures 5 and 6
 * get two panels each, for items and for bytes per second, with a curve for each payload.
 * Figure 7 gets one panel, for items per second, with a curve for each number of tables. In
 * `rows`, the rows of a curve must be adjacent and in order of the number of clients. */
void rp_bench_svg(rp_text_buffer *out, const rp_bench_row *rows, size_t count);

#endif

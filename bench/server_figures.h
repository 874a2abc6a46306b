/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats the measurements of figures 5, 6 and 7 of the Reverb paper (Cassirer et al. 2021). */
#ifndef BENCH_SERVER_FIGURES_H
#define BENCH_SERVER_FIGURES_H

#include <stdbool.h>

/* Measures and prints a line "figure,kind,payload_bytes,tables,clients,items_per_s,bytes_per_s,
 * server_cpu_us" for each point of the figures. Returns the exit status for main(). */
int server_figures(bool quick);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Prints one screen of `reprise top` from two snapshots of the tables. Pure. */
#ifndef RP_CLI_COMMANDS_TOP_PRINT_H
#define RP_CLI_COMMANDS_TOP_PRINT_H

#include "cli/commands/waiting_groups.h"
#include "cli/text/info_print.h"

/* A snapshot. Borrows everything. */
typedef struct rp_top_look {
    int64_t at_ns; /* monotonic */
    rp_tables_view view;
    const rp_client_waiting *waiting;
    size_t waiting_count; /* of `waiting`, <= RP_MOST_WAITING */
    size_t waiting_total; /* calls that wait in all */
} rp_top_look;

typedef struct rp_top_screen {
    size_t width, height; /* columns and lines; height 0: as many as it takes */
    const char *title;    /* printed after "reprise top": addresses, time, interval */
    const char *trouble;  /* error of the last snapshot; NULL: none */
    size_t scroll;        /* tables skipped at the top */
    bool help;            /* print the keys and columns instead of the tables */
} rp_top_screen;

/* Writes a screen of exactly `height` lines of at most `width` columns; if height is 0, as many
 * lines as needed, not cut. Rates are computed from the difference to the snapshot `before`; if
 * `before` is NULL, they are 0. */
void rp_top_print(rp_text_buffer *out, const rp_top_screen *screen, const rp_top_look *now,
                  const rp_top_look *before);

/* Writes only the calls that wait, grouped by their reasons: as text, and as a line of JSON. */
void rp_top_waiting(rp_text_buffer *out, const rp_top_look *now);
void rp_top_waiting_json(rp_text_buffer *out, const rp_top_look *now);

/* Writes one line of JSON. */
void rp_top_json(rp_text_buffer *out, const rp_top_look *now, const rp_top_look *before);

/* Returns the rate per second of a counter, which may have been reset. */
double rp_rate(int64_t now, int64_t before, int64_t elapsed_ns);

#endif

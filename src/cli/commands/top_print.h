/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the screen of `reprise top` from two snapshots of the tables. Pure functions. */
#ifndef RP_CLI_COMMANDS_TOP_PRINT_H
#define RP_CLI_COMMANDS_TOP_PRINT_H

#include "cli/commands/waiting_groups.h"
#include "cli/text/info_print.h"

/* A snapshot of all tables and waiting calls. Borrows the data to which it points. */
typedef struct rp_top_look {
    int64_t at_ns; /* time of the snapshot, on the monotonic clock */
    rp_tables_view view;
    const rp_client_waiting *waiting; /* some of the calls that wait */
    size_t waiting_count;             /* entries of `waiting`, <= RP_MOST_WAITING */
    size_t waiting_total;             /* number of all calls that wait */
} rp_top_look;

typedef struct rp_top_screen {
    size_t width, height; /* columns and lines; height 0: as many lines as needed */
    const char *title;    /* text after "reprise top": addresses, time, interval */
    const char *trouble;  /* why the last snapshot failed; NULL: it did not */
    size_t scroll;        /* number of tables above the screen */
    bool help;            /* print the keys and columns instead of the tables */
} rp_top_screen;

/* Writes a screen of exactly `height` lines with at most `width` columns. If height is 0,
 * writes as many lines as needed and does not cut them. Rates are computed from the difference
 * between the snapshots `before` and `now`. If `before` is NULL, rates are 0. */
void rp_top_print(rp_text_buffer *out, const rp_top_screen *screen, const rp_top_look *now,
                  const rp_top_look *before);

/* Write only the calls that wait, grouped by their reasons, as text or as a line of JSON. */
void rp_top_waiting(rp_text_buffer *out, const rp_top_look *now);
void rp_top_waiting_json(rp_text_buffer *out, const rp_top_look *now);

/* Writes the snapshot `now` and its rates as one line of JSON. */
void rp_top_json(rp_text_buffer *out, const rp_top_look *now, const rp_top_look *before);

/* Returns the rate per second at which a counter has grown from `before` to `now`. Returns 0 if
 * `now` is smaller, because the counter was reset in between. */
double rp_rate(int64_t now, int64_t before, int64_t elapsed_ns);

#endif

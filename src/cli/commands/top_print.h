/* SPDX-License-Identifier: Apache-2.0 */
/* One screen of `reprise top`, and the rates on it. Pure: two looks at the tables in, lines
 * out. */
#ifndef RP_CLI_COMMANDS_TOP_PRINT_H
#define RP_CLI_COMMANDS_TOP_PRINT_H

#include "cli/text/info_print.h"

/* A look at everything. Borrows what it points to. */
typedef struct rp_top_look {
    int64_t at_ns; /* monotonic */
    rp_tables_view view;
    const rp_client_waiting *waiting;
    size_t waiting_count, waiting_total;
} rp_top_look;

typedef struct rp_top_screen {
    size_t width, height; /* columns and lines; height 0: as many as it takes */
    const char *title;    /* what follows "reprise top": addresses, time, interval */
    const char *trouble;  /* why the last look failed; NULL: it did not */
    size_t scroll;        /* tables left out at the top */
} rp_top_screen;

/* Writes a screen: exactly `height` lines of at most `width` columns, or, with no height, as
 * many as it takes, and none of them cut. `before` NULL: there are no rates yet. */
void rp_top_print(rp_text_buffer *out, const rp_top_screen *screen, const rp_top_look *now,
                  const rp_top_look *before);

/* The same as one line of JSON. */
void rp_top_json(rp_text_buffer *out, const rp_top_look *now, const rp_top_look *before);

/* What a second brought, of a counter that may have begun anew. */
double rp_rate(int64_t now, int64_t before, int64_t elapsed_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the routes of plain HTTP requests (route.h, routes.c), and functions that
 * they share. */
#ifndef RP_SERVER_HTTP_PAGES_H
#define RP_SERVER_HTTP_PAGES_H

#include "server/http/page.h"

/* Returns a snapshot of the server. */
rp_server_view rp_page_view(const rp_page_host *host);

/* Finds the table that the first name in the request's path names. Returns a reference. If no
 * table has this name, or the server is loading, makes a response in `answer`, stores its HTTP
 * status in `*status` and returns NULL. */
rp_table *rp_page_table_of(const rp_page_host *host, const rp_page_ask *ask,
                           rp_page_response *answer, int *status);
/* Makes the response which says that no table has the name `name` and lists the tables that
 * exist. Returns its HTTP status, 404. */
int rp_page_no_table(rp_store *store, const char *name, rp_page_response *answer);

/* page_overview.c */
rp_page_handler rp_page_index;   /* a list of the pages, as text */
rp_page_handler rp_page_health;  /* 200 serving, degraded; 503 loading, draining */
rp_page_handler rp_page_metrics; /* metrics_text.h */
rp_page_handler rp_page_info;    /* info_json.h */

rp_page_handler rp_page_table;   /* page_table.c */
rp_page_handler rp_page_item;    /* page_item.c */
rp_page_handler rp_page_clients; /* page_clients.c */

/* page_action.c */
rp_page_handler rp_page_pause, rp_page_resume, rp_page_reset, rp_page_alter;
rp_page_handler rp_page_checkpoint;
/* page_runs.c */
rp_page_handler rp_page_runs;       /* the list of runs */
rp_page_handler rp_page_run;        /* the points of a run after a number */
rp_page_handler rp_page_run_csv;    /* all points of a run, as CSV */
rp_page_handler rp_page_run_events; /* all points of a run, as an event file of TensorBoard */
rp_page_handler rp_page_report;     /* adds to a run: run_body.h */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics as Prometheus reads them: text exposition format 0.0.4. docs/operations.md has
 * the list. */
#ifndef RP_SERVER_HTTP_METRICS_TEXT_H
#define RP_SERVER_HTTP_METRICS_TEXT_H

#include "server/http/server_view.h"
#include "util/buf.h"

/* Appends all metrics of the server, of its store and of the tables given, to a buffer that is
 * empty; at most rp_page_most_bytes() of them: the last tables are left out if their names are
 * too long. The buffer is bad afterwards if there was no memory. */
void rp_metrics_text(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                     const rp_table_view *tables, size_t table_count);

#endif

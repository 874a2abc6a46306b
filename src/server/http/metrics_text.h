/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics for Prometheus, in the text exposition format 0.0.4. docs/operations.md
 * lists the metrics. */
#ifndef RP_SERVER_HTTP_METRICS_TEXT_H
#define RP_SERVER_HTTP_METRICS_TEXT_H

#include "server/http/server_view.h"
#include "util/buf.h"

/* Appends all metrics of the server, its store and `tables` to `out`, which must be empty. The
 * text has at most rp_page_most_bytes(): if it would be longer, the last tables are left out.
 * If there is no memory, `out->bad` is set. */
void rp_metrics_text(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                     const rp_table_view *tables, size_t table_count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the server and its tables as JSON, for /v1/info. docs/operations.md lists the fields.
 * The JSON is always valid: bytes of names that are not UTF-8 become U+FFFD, and numbers that
 * are not finite become null. */
#ifndef RP_SERVER_HTTP_INFO_JSON_H
#define RP_SERVER_HTTP_INFO_JSON_H

#include "server/http/server_view.h"
#include "util/buf.h"

/* Appends one JSON object and a newline to `out`, which must be empty. The text has at most
 * rp_page_most_bytes(): if it would be longer, the last tables are left out. If there is no
 * memory, `out->bad` is set. */
void rp_info_json_write(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                        const rp_table_view *tables, size_t table_count);

/* Calls that wait for a table, and the ids of the clients that made them (0: this process). */
typedef struct rp_waiting_calls {
    const rp_waiting *calls;
    const uint64_t *clients;
    size_t count;
} rp_waiting_calls;

/* Appends the fields of one table to the JSON object that `out` ends with, which must be open.
 * `calls` are the calls waiting for the table that the object describes. */
void rp_info_json_table(rp_buf *out, const rp_server_view *server, const rp_table_view *view,
                        const rp_waiting_calls *calls);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the server and its tables as JSON, for /v1/info. docs/operations.md lists the fields.
 * The JSON is always valid: bytes of names that are not UTF-8 become U+FFFD, and numbers that
 * are not finite become null. */
#ifndef RP_SERVER_HTTP_INFO_JSON_H
#define RP_SERVER_HTTP_INFO_JSON_H

#include "server/http/server_view.h"
#include "util/buf.h"

/* Appends one object and a newline to `out`, which must be empty: at most rp_page_most_bytes().
 * The last tables are left out if the text would be longer. If there is no memory, the buffer
 * is bad afterwards. */
void rp_info_json_write(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                        const rp_table_view *tables, size_t table_count);

/* Appends `text` as a JSON string, quotes included; NULL becomes null. */
void rp_info_json_string(rp_buf *out, const char *text);
/* Appends the shortest text that reads back as the same number; null if it is not finite. */
void rp_info_json_number(rp_buf *out, double number);

#endif

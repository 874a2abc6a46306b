/* SPDX-License-Identifier: Apache-2.0 */
/* The server and its tables as JSON, for /v1/info. Always valid JSON: names that are
 * no UTF-8 are mended, numbers that are not finite are null. docs/operations.md says what is in
 * it. */
#ifndef RP_SERVER_HTTP_INFO_JSON_H
#define RP_SERVER_HTTP_INFO_JSON_H

#include "server/http/server_view.h"
#include "util/buf.h"

/* Appends one object and a newline. The buffer is bad afterwards if there was no memory. */
void rp_info_json_write(rp_buf *out, const rp_server_view *server, const rp_store_info *store,
                        const rp_table_view *tables, size_t table_count);

/* Appends `text` as a JSON string, quotes included; NULL becomes null. */
void rp_info_json_string(rp_buf *out, const char *text);
/* Appends the shortest number that reads back as the same; null if it is not finite. */
void rp_info_json_number(rp_buf *out, double number);

#endif

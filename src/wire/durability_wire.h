/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a StatusRequest. Reads and writes one field of a StatusResponse, the durability: the
 * state of the server's checkpoints, journal and disk (rp_durable_info). */
#ifndef RP_WIRE_DURABILITY_WIRE_H
#define RP_WIRE_DURABILITY_WIRE_H

#include "reprise/durable.h"
#include "util/buf.h"

/* Reads a StatusRequest. `*table` is the name of a table, or "" for all tables.
 * `*without_tables` is true if the client wants a response without tables. The errors are those
 * of the readers in admin_messages.h. */
RP_NODISCARD rp_status rp_wire_read_status_request(const uint8_t *data, size_t size,
                                                   rp_string *table, bool *without_tables,
                                                   rp_error *err);

/* Appends the durability to a StatusResponse. */
void rp_wire_write_durability(rp_buf *out, const rp_durable_info *info);

/* Reads the durability from a StatusResponse. `*is_there` is false if the response has none,
 * because the server has no data directory. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_durability(const uint8_t *data, size_t size, bool *is_there,
                                               rp_durable_info *out, rp_error *err);

#endif

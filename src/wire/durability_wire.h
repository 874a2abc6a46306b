/* SPDX-License-Identifier: Apache-2.0 */
/* The durability of a server's store in a StatusResponse: reads and writes it. */
#ifndef RP_WIRE_DURABILITY_WIRE_H
#define RP_WIRE_DURABILITY_WIRE_H

#include "reprise/durable.h"
#include "util/buf.h"

/* StatusRequest: the name of a table, "" for all, and whether tables are left out. Errors as in
 * admin_messages.h. */
RP_NODISCARD rp_status rp_wire_read_status_request(const uint8_t *data, size_t size,
                                                   rp_string *table, bool *without_tables,
                                                   rp_error *err);

/* Appends it to a StatusResponse. */
void rp_wire_write_durability(rp_buf *out, const rp_durable_info *info);

/* Reads it from a StatusResponse; `*is_there` false: the server has no durable. RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_durability(const uint8_t *data, size_t size, bool *is_there,
                                               rp_durable_info *out, rp_error *err);

#endif

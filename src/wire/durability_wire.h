/* SPDX-License-Identifier: Apache-2.0 */
/* How durable a server's store is, as StatusResponse tells it: both directions. */
#ifndef RP_WIRE_DURABILITY_WIRE_H
#define RP_WIRE_DURABILITY_WIRE_H

#include "reprise/durable.h"
#include "util/buf.h"

/* StatusRequest: a table's name, "" for all, and whether none is wanted at all. As in
 * replay_calls.h. */
RP_NODISCARD rp_status rp_wire_read_status_request(const uint8_t *data, size_t size,
                                                   rp_string *table, bool *without_tables,
                                                   rp_error *err);

/* Adds it to a StatusResponse. */
void rp_wire_write_durability(rp_buf *out, const rp_durable_info *info);

/* Reads it from one; `*is_there` false: the server has none. RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_durability(const uint8_t *data, size_t size, bool *is_there,
                                               rp_durable_info *out, rp_error *err);

#endif

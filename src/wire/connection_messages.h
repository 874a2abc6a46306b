/* SPDX-License-Identifier: Apache-2.0 */
/* ClientsResponse of reprise.v1: the connections of a server. Pure functions; strings are
 * borrowed from the bytes read. */
#ifndef RP_WIRE_CONNECTION_MESSAGES_H
#define RP_WIRE_CONNECTION_MESSAGES_H

#include "reprise/tensor.h"
#include "util/buf.h"

typedef struct rp_wire_connection {
    uint64_t id;
    rp_string address, role, protocol;
    int64_t open_ms; /* read: from 0 to INT64_MAX / 1000000 */
    uint64_t calls, bytes_in, bytes_out;
    bool is_caller;
} rp_wire_connection;

/* Write a response: any number of connections, then the total. */
void rp_wire_write_connection(rp_buf *out, const rp_wire_connection *connection);
void rp_wire_write_connection_total(rp_buf *out, size_t total);

/* A list of connections. The caller sets `list` and `capacity`. */
typedef struct rp_wire_connections {
    rp_wire_connection *list;
    size_t capacity;
    size_t count; /* number of connections read, at most `capacity` */
    size_t total; /* number of connections of the server, at least `count` */
} rp_wire_connections;

/* Reads a response: the first connections, as many as fit. On failure `out` is unchanged, but
 * for the content of `list`. RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_connections(const uint8_t *data, size_t size,
                                                rp_wire_connections *out, rp_error *err);

#endif

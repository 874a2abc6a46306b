/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the ClientsResponse of reprise.v1: the list of the connections of a server.
 * Strings are borrowed from the bytes read. */
#ifndef RP_WIRE_CONNECTION_MESSAGES_H
#define RP_WIRE_CONNECTION_MESSAGES_H

#include "reprise/tensor.h"
#include "util/buf.h"

typedef struct rp_wire_connection {
    uint64_t id;
    rp_string address, role, protocol;
    int64_t open_ms; /* age of the connection. The reader below returns a value from 0 to
                        INT64_MAX / 1000000, so that it fits into an int64_t of nanoseconds */
    uint64_t calls, bytes_in, bytes_out;
    bool is_caller; /* the client has requested the list on this connection */
} rp_wire_connection;

/* Both functions append to a response. The caller appends any number of connections, then the
 * total. */
void rp_wire_write_connection(rp_buf *out, const rp_wire_connection *connection);
void rp_wire_write_connection_total(rp_buf *out, size_t total);

/* A list of connections. The caller sets `list` and `capacity`. */
typedef struct rp_wire_connections {
    rp_wire_connection *list;
    size_t capacity;
    size_t count; /* number of connections read, at most `capacity` */
    size_t total; /* number of connections of the server, at least `count` */
} rp_wire_connections;

/* Reads as many connections of a response as fit into `list`, from the first on. On failure the
 * content of `list` is undefined, and the other members of `out` are unchanged. Errors:
 * RP_CORRUPT. */
RP_NODISCARD rp_status rp_wire_read_connections(const uint8_t *data, size_t size,
                                                rp_wire_connections *out, rp_error *err);

#endif

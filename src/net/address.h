/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of servers: parses their texts and resolves them to socket addresses. */
#ifndef RP_NET_ADDRESS_H
#define RP_NET_ADDRESS_H

#include <sys/socket.h>

#include "reprise/alloc.h"

enum {
    RP_ADDRESS_HOST_BYTES = 254,
    RP_ADDRESS_ENDPOINTS = 16, /* of a name, only the first 16 addresses are used */
    RP_ADDRESS_LIST_MAX = 1024 /* a client has at most this many shards (servers) */
};

/* The address of one server. */
typedef struct rp_address {
    bool is_unix;
    char host[RP_ADDRESS_HOST_BYTES]; /* a host name, a numeric address without brackets, or the
                                         path of a Unix socket */
    uint16_t port;
} rp_address;

/* Parses "host:port", "[v6]:port" or "unix:/path". Errors: RP_INVALID; the error text contains
 * `text` and the reason. */
RP_NODISCARD rp_status rp_address_parse(const char *text, rp_address *out, rp_error *err);

/* A socket address. */
typedef struct rp_endpoint {
    struct sockaddr_storage address;
    socklen_t bytes;
} rp_endpoint;

typedef struct rp_endpoints {
    rp_endpoint list[RP_ADDRESS_ENDPOINTS];
    size_t count; /* at least one after a success */
} rp_endpoints;

/* Resolves an address that needs no name lookup: a path, a numeric address, or "localhost".
 * Returns false if the host is any other name. */
bool rp_address_resolve_now(const rp_address *address, rp_endpoints *out);
/* Looks up the host name, which can take long. Errors: RP_NOT_FOUND, RP_UNAVAILABLE (no name
 * server responds), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_address_resolve(const rp_address *address, rp_endpoints *out,
                                          rp_error *err);

typedef struct rp_shard_address {
    char *text; /* as in the list; for an address that a lookup of a "dns:" name has found:
                   "address:port" */
    rp_address address;
    char name[RP_ADDRESS_HOST_BYTES]; /* name that the server's certificate must have */
} rp_shard_address;

typedef struct rp_address_list {
    rp_allocator alloc;
    rp_shard_address *shards;
    size_t count, capacity;
} rp_address_list;

/* Parses addresses separated by commas; blanks around them are ignored. "dns:name:port" is
 * looked up in this call and replaced by all addresses of the name. Errors: RP_INVALID,
 * RP_NOT_FOUND and RP_UNAVAILABLE (from a lookup), RP_NO_RESOURCE. After an error the caller
 * has nothing to free. */
RP_NODISCARD rp_status rp_address_list_parse(const rp_allocator *alloc, const char *text,
                                             rp_address_list *out, rp_error *err);
void rp_address_list_deinit(rp_address_list *list);

#endif

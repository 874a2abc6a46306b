/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a client, for its writers, samplers and calls.
 *
 * A client has two parts. Addresses, credentials and options never change. The live part, which
 * is the runtime and a channel for each shard, belongs to one process: the child of a fork does
 * not use the live part of its parent and creates its own. */
#ifndef RP_CLIENT_CLIENT_H
#define RP_CLIENT_CLIENT_H

#include <stdatomic.h>

#include "client/channel/channel.h"
#include "client/sampler/source.h"
#include "client/sink/sink.h"
#include "reprise/client.h"
#include "util/mutex.h"

#define RP_CLIENT_REVERB "/deepmind.reverb.ReverbService/"
#define RP_CLIENT_REPLAY "/reprise.v1.Replay/"

/* The cached signature of a table. */
typedef struct rp_known_signature {
    char *table;
    rp_signature *signature; /* a reference; NULL: the table has none */
} rp_known_signature;

typedef struct rp_client_live {
    uint64_t generation; /* of the process that owns it: rp_runtime_generation() */
    uint64_t seed; /* the client's seed; in the child of a fork a new one, so that children of
                      one parent draw different keys */
    rp_runtime *runtime;
    rp_tls *tls; /* NULL: plain */
    rp_channel **channels;
    size_t channel_count;   /* 0 for a store */
    rp_mutex mu;            /* rank 78; guards the fields below */
    int64_t quiet_until_ns; /* until then rp_client_signature_soon() asks no server */
    rp_known_signature *signatures;
    size_t signature_count, signature_capacity;
} rp_client_live;

struct rp_client {
    rp_allocator alloc;
    rp_store *store; /* NULL: servers */
    rp_address_list addresses;
    rp_client_options options; /* strings are copies; `token` is the value of the header */
    char *strings;
    size_t strings_bytes;
    uint64_t seed; /* never 0 */
    _Atomic(rp_client_live *) live;
};

/* Gets the live part of this process; creates it in the child of a fork. Valid as long as the
 * client. RP_NO_RESOURCE; in a child also RP_NOT_FOUND and RP_INVALID (the files of TLS). */
RP_NODISCARD rp_status rp_client_get_live(rp_client *client, rp_client_live **out,
                                          rp_error *err);

/* Opens a sink over all shards. `events` is copied. Close the sink before the client is freed.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_open_sink(rp_client *client, const rp_sink_events *events,
                                           rp_sink **out, rp_error *err);
/* Opens a source of one shard. Both structs are copied. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_open_source(rp_client *client, size_t shard,
                                             const rp_source_options *options,
                                             const rp_source_events *events, rp_source **out,
                                             rp_error *err);

/* Gets a reference to the signature of a table, or NULL if it has none. Signatures are cached;
 * the server is queried only for a table that is not in the cache. RP_NOT_FOUND, statuses of
 * rp_client_get_tables(). */
RP_NODISCARD rp_status rp_client_signature(rp_client *client, const char *table, rp_wait wait,
                                           rp_signature **out, rp_error *err);
/* As rp_client_signature(), but does not wait for servers that are away (rp_channel_is_away()).
 * If all are away, returns RP_UNAVAILABLE at once. If the servers give no response, later calls
 * ask no server until quiet_until_ns and return RP_DEADLINE. So a program that makes many such
 * calls spends only a small part of its time waiting. */
RP_NODISCARD rp_status rp_client_signature_soon(rp_client *client, const char *table,
                                                rp_wait wait, rp_signature **out,
                                                rp_error *err);
/* Gets the tables of the servers that are not away (rp_channel_is_away()). RP_UNAVAILABLE at
 * once if all are away. */
RP_NODISCARD rp_status rp_client_get_tables_there(rp_client *client, rp_wait wait,
                                                  rp_client_tables **out, rp_error *err);
/* Returns true if TLS failed with every server (rp_channel_is_refused()): one side refused the
 * other, and no connection has ever succeeded. In that case writes the reason to `text`. */
bool rp_client_is_refused(rp_client *client, char *text, size_t size);
/* Removes a signature from the cache, after a server has rejected an item because of it. */
void rp_client_forget_signature(rp_client *client, const char *table);

#define RP_ANY_SHARD SIZE_MAX

typedef struct rp_why_question {
    const char *table;
    size_t shard; /* or RP_ANY_SHARD */
    bool is_insert;
} rp_why_question;

/* Asks the servers, for at most half a second, why inserts or samples of a table wait. Writes
 * the reason that one of them gives, or why no server was reached, or "" if neither is known.
 */
void rp_client_ask_why(rp_client *client, const rp_why_question *question, char *text,
                       size_t size);

/* Writes the error of a table that does not exist, with the names of `tables`. Returns
 * RP_NOT_FOUND. */
rp_status rp_client_no_table(const rp_client_tables *tables, const char *name, rp_error *err);
/* Returns `st`. If it is RP_NOT_FOUND, asks the servers for their tables, for at most half a
 * second, and writes the error of rp_client_no_table(). */
rp_status rp_client_name_tables(rp_client *client, const char *name, rp_status st,
                                rp_error *err);

/* The calls of reprise/client.h on a store of this process. */
RP_NODISCARD rp_status rp_local_tables(rp_client *client, rp_client_tables **out,
                                       rp_error *err);
RP_NODISCARD rp_status rp_local_mutate(rp_client *client, const char *table,
                                       const rp_mutation *mutation, rp_error *err);
RP_NODISCARD rp_status rp_local_reset(rp_client *client, const char *table, rp_error *err);
RP_NODISCARD rp_status rp_local_drop(rp_client *client, const char *table, rp_error *err);
RP_NODISCARD rp_status rp_local_alter(rp_client *client, const char *table,
                                      const rp_table_alteration *change, rp_error *err);
RP_NODISCARD rp_status rp_local_pause(rp_client *client, const char *table, uint32_t sides,
                                      bool resume, rp_error *err);
RP_NODISCARD rp_status rp_local_why_blocked(rp_client *client, const char *table,
                                            rp_client_blocked *out, rp_error *err);

/* Creates an empty list with room for `capacity` tables. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_tables_new(const rp_allocator *alloc, size_t capacity,
                                            rp_client_tables **out, rp_error *err);
/* Adds a copy of a table, with its name, and takes a reference to its signature. */
RP_NODISCARD rp_status rp_client_tables_add(rp_client_tables *tables, size_t shard,
                                            const rp_table_info *info, rp_error *err);

#endif

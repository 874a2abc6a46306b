/* SPDX-License-Identifier: Apache-2.0 */
/* A client: tables on one server, on several, or in a store of this process, behind one API.
 *
 * Making one does no I/O; connections are made when they are needed, and again when they break,
 * with a pause that grows and is jittered. All clients of a process share one background thread
 * for the network and a few for compressing and decoding. Every call is safe from any thread.
 *
 *   trajectory_writer.h   write steps, make items of them
 *   structured_writer.h   the same by patterns
 *   step_writer.h         the same as Reverb's first writer did
 *   sampler.h             read items, one by one or in stacked batches
 *
 * Several servers are shards of the same tables. Items are spread over them; samples are drawn
 * from each in proportion to the weight of its table, so that an item is as likely as it would
 * be in one table; priorities and deletes go to all of them; a shard that is gone is left out
 * until it is back.
 *
 * After fork() the child may go on using its clients: they connect anew. Writers, samplers
 * and batches stay with the parent: in the child their calls answer RP_PRECONDITION, and free
 * works. */
#ifndef REPRISE_CLIENT_H
#define REPRISE_CLIENT_H

#include "reprise/durable.h"
#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_client rp_client;

/* Which shard an item goes to. */
typedef enum rp_spread {
    RP_SPREAD_TURNS = 0, /* one after the other */
    RP_SPREAD_KEYS = 1,  /* by a hash of its key */
} rp_spread;

/* Zero-initialise it; everything has a default. Strings are copied. */
typedef struct rp_client_options {
    const rp_allocator *alloc;    /* NULL: the default. The struct is copied */
    bool tls;                     /* set by any of the files below as well */
    const char *ca_file;          /* PEM: whom to believe; NULL: what the system believes */
    const char *certificate_file; /* PEM: who we are */
    const char *key_file;
    const char *server_name;    /* in the server's certificate; NULL: the host connected to */
    const char *token;          /* a bearer token */
    int64_t connect_timeout_ms; /* for one attempt; 0: 10,000 */
    int64_t retry_min_ms;       /* between attempts, doubling, jittered; 0: 10 */
    int64_t retry_max_ms;       /* 0: 2,000 */
    size_t message_bytes;       /* largest answer taken; 0: 512 MiB */
    size_t item_bytes;          /* largest item taken from a server, decoded; 0: 1 GiB */
    size_t batch_bytes;         /* largest batch, decoded; 0: half of the machine's memory */
    rp_spread spread;
    bool shared_memory_off; /* on a Unix socket: do not read chunks in the server's memory */
    uint64_t seed;          /* of keys and of the choice of shards; 0: from the system */
    rp_durable *durable;    /* of the store of rp_client_local(): what its checkpoints are made
                               with. Borrowed; it must outlive the client. NULL: there is none */
} rp_client_options;

/* A client of the servers at `addresses`, separated by commas: "host:port" (a name that stands
 * for several addresses is one server: they are tried in turn), "[::1]:port", "unix:/path".
 * "dns:name:port" makes every address of the name a shard. RP_INVALID (the text, and what is
 * wrong with it), RP_NOT_FOUND (a file, or a dns: name without addresses), RP_NO_RESOURCE.
 * Returns owned. */
RP_API RP_NODISCARD rp_status rp_client_new(const char *addresses,
                                            const rp_client_options *options, rp_client **out,
                                            rp_error *err);

/* A client of a store in this process, which must outlive it. Data is not copied. */
RP_API RP_NODISCARD rp_status rp_client_local(rp_store *store, const rp_client_options *options,
                                              rp_client **out, rp_error *err);

/* Frees it. Its writers, samplers and calls in progress must be over. NULL is fine. */
RP_API void rp_client_free(rp_client *client);
/* Gives up on its servers, which will not come back: what calls, samplers and writers of this
 * client wait for ends with RP_CANCELLED, now and later, instead of being tried again. Nothing
 * for a client of a store in this process. Safe from any thread. */
RP_API void rp_client_give_up(rp_client *client);

RP_API size_t rp_client_shard_count(const rp_client *client);
/* The address of a shard as it was given; "local" of a store. Valid as long as the client. */
RP_API const char *rp_client_shard_address(const rp_client *client, size_t shard);

/* Calls.
 *
 * Each may end with RP_DEADLINE or RP_CANCELLED by its wait, RP_UNAVAILABLE (no connection
 * could be made; the sentence names address and reason), RP_DENIED, RP_UNAUTHENTICATED, and
 * what is said below. A call to all shards is made on all that can be reached and fails with
 * the first status that is not RP_UNAVAILABLE, or with that if none could be. */

/* One table of one shard. Of a Reverb server some numbers are not known, and 0: bytes, who
 * waits and, of a prioritized table, the weight of its items. */
typedef struct rp_client_table {
    size_t shard;
    double total_weight; /* of its items, as its sampler weighs them */
    rp_table_info info;  /* its strings and signature live as long as the list */
} rp_client_table;

typedef struct rp_client_tables {
    rp_client_table *tables;
    size_t count;
} rp_client_tables;

/* The tables of all shards that can be reached, by shard. Returns owned. */
RP_API RP_NODISCARD rp_status rp_client_get_tables(rp_client *client, rp_wait wait,
                                                   rp_client_tables **out, rp_error *err);
RP_API void rp_client_tables_free(rp_client_tables *tables); /* NULL is fine */

/* Sets priorities and deletes items, on all shards; unknown keys are ignored. RP_NOT_FOUND (no
 * such table), RP_INVALID (a priority). */
RP_API RP_NODISCARD rp_status rp_client_mutate(rp_client *client, const char *table,
                                               const rp_update *updates, size_t update_count,
                                               const uint64_t *deletes, size_t delete_count,
                                               rp_wait wait, rp_error *err);

/* Empties a table on all shards. RP_NOT_FOUND. */
RP_API RP_NODISCARD rp_status rp_client_reset(rp_client *client, const char *table,
                                              rp_wait wait, rp_error *err);

/* Has every shard write a checkpoint. `*path` (may be NULL): where that of the first is, as the
 * server sees it; free it with rp_client_text_free(). */
RP_API RP_NODISCARD rp_status rp_client_checkpoint(rp_client *client, rp_wait wait, char **path,
                                                   rp_error *err);
RP_API void rp_client_text_free(rp_client *client, char *text); /* NULL is fine */

/* How durable the data of a shard is. */
typedef struct rp_client_durability {
    size_t shard;
    bool is_durable; /* false: it is in memory only, or this is a Reverb server */
    rp_durable_info info;
} rp_client_durability;

/* That of the shards that can be reached, up to `capacity` of them. */
RP_API RP_NODISCARD rp_status rp_client_get_durability(rp_client *client,
                                                       rp_client_durability *out,
                                                       size_t capacity, size_t *count,
                                                       rp_wait wait, rp_error *err);

/* Tables made and changed while servers run: reprise servers only.
 *
 * RP_UNIMPLEMENTED from a Reverb server. On all shards. */

RP_API RP_NODISCARD rp_status rp_client_create_table(rp_client *client,
                                                     const rp_table_options *options,
                                                     rp_wait wait, rp_error *err);
RP_API RP_NODISCARD rp_status rp_client_drop_table(rp_client *client, const char *table,
                                                   rp_wait wait, rp_error *err);
/* Of a limiter, all fields are set. */
RP_API RP_NODISCARD rp_status rp_client_alter_table(rp_client *client, const char *table,
                                                    const rp_table_change *change, rp_wait wait,
                                                    rp_error *err);
/* RP_SIDE_... */
RP_API RP_NODISCARD rp_status rp_client_pause_table(rp_client *client, const char *table,
                                                    uint32_t sides, rp_wait wait,
                                                    rp_error *err);
RP_API RP_NODISCARD rp_status rp_client_resume_table(rp_client *client, const char *table,
                                                     uint32_t sides, rp_wait wait,
                                                     rp_error *err);

/* A call that waits at a table. */
typedef struct rp_client_waiting {
    size_t shard;
    char table[128]; /* cut to fit */
    rp_waiting waiting;
} rp_client_waiting;

/* Describes up to `capacity` calls that wait at a table (NULL: at any); `*count` is how many
 * are described and `*total` (may be NULL) how many there are. */
RP_API RP_NODISCARD rp_status rp_client_why_blocked(rp_client *client, const char *table,
                                                    rp_client_waiting *out, size_t capacity,
                                                    size_t *count, size_t *total, rp_wait wait,
                                                    rp_error *err);

RP_END_DECLS

#endif

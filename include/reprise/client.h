/* SPDX-License-Identifier: Apache-2.0 */
/* A client gives a program one API for tables on one server, on several servers, or in a store
 * of this process.
 *
 * Creating a client does no I/O. The client connects when a call needs a connection, and
 * reconnects with exponential, jittered backoff. All clients of a process share one network
 * thread and a few threads that compress and decode. Every call is safe from any thread.
 *
 *   trajectory_writer.h   append steps, create items of any recent steps
 *   structured_writer.h   create items by patterns
 *   step_writer.h         create items of the latest steps, like Reverb's older writer
 *   sampler.h             read items, one by one or in stacked batches
 *
 * If a client has several servers, each server is a shard: it holds a part of the items of
 * every table. Writers spread items over the shards. Samplers draw from each shard in
 * proportion to the total weight of its table, so the probability of an item is the same as if
 * one table had all items. Priority updates and deletes go to all shards. The client skips a
 * shard that cannot be reached until the shard is back. If no shard can be reached, a call of
 * this header waits for the next attempt to connect and fails if this attempt fails. Writers
 * and samplers keep trying.
 *
 * After fork() the child is allowed to use the clients that the parent made: in the child they
 * open new connections. Writers, samplers and batches that were made before fork() belong to
 * the parent. The child can only free them. All other calls on them return RP_PRECONDITION in
 * the child. */
#ifndef REPRISE_CLIENT_H
#define REPRISE_CLIENT_H

#include "reprise/durable.h"
#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_client rp_client;

/* How the shard of an item is chosen. */
typedef enum rp_spread {
    RP_SPREAD_TURNS = 0, /* round robin */
    RP_SPREAD_KEYS = 1,  /* by a hash of the item's key */
} rp_spread;

/* Zero-initialise it; everything has a default. Strings are copied. */
typedef struct rp_client_options {
    const rp_allocator *alloc;    /* NULL: the default. The struct is copied */
    bool tls;                     /* use TLS; implied if one of the three files below is set */
    const char *ca_file;          /* PEM, trusted authorities; NULL: the system's authorities */
    const char *certificate_file; /* PEM, the client's certificate */
    const char *key_file;
    const char *server_name; /* name that the server's certificate must have; NULL: the host in
                                the address */
    const char *token; /* a bearer token, 1 to 1,024 characters from '!' to '~'; NULL: none
                          is sent */
    int64_t connect_timeout_ms; /* timeout of one attempt; 0: 10,000 */
    int64_t retry_min_ms;       /* first backoff; doubles at each retry, with jitter; 0: 10 */
    int64_t retry_max_ms;       /* longest backoff; 0: 2,000 */
    int64_t ping_ms; /* if gRPC calls are open and the server sends nothing for this long, the
                        client sends a ping; 0: 30,000 */
    int64_t ping_timeout_ms; /* if the response to a ping takes longer, the client closes the
                                connection and reconnects; 0: 20,000 */
    size_t message_bytes;    /* largest response accepted; 0: 512 MiB */
    size_t item_bytes;       /* largest item accepted from a server, decoded; 0: 1 GiB */
    size_t batch_bytes;      /* largest batch, decoded; 0: half of the machine's memory */
    rp_spread spread;
    bool shared_memory_off; /* on a Unix socket: do not map the server's shared memory */
    uint64_t seed;          /* seed of random keys and choices of shards; 0: from the system */
    rp_durable *durable; /* for rp_client_local(): the rp_durable that writes checkpoints of the
                            store. Borrowed; must outlive the client. NULL: no checkpoints */
} rp_client_options;

/* Creates a client of the servers at `addresses`, separated by commas: "host:port",
 * "[::1]:port", "unix:/path". A host name with several addresses is one server: its addresses
 * are tried in turn. "dns:name:port" makes every address of the name a shard. Returns owned.
 * Errors: RP_INVALID (a wrong address or option; the text has the reason), RP_NOT_FOUND (a file
 * does not exist, or a dns: name has no addresses), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_client_new(const char *addresses,
                                            const rp_client_options *options, rp_client **out,
                                            rp_error *err);

/* Creates a client of a store in this process. The store must outlive the client. Its writers
 * and samplers pass chunks to and from the store without copying them. Returns owned. */
RP_API RP_NODISCARD rp_status rp_client_local(rp_store *store, const rp_client_options *options,
                                              rp_client **out, rp_error *err);

/* Frees a client. The caller must first free the client's writers and samplers, and wait until
 * no call on the client is in progress. NULL is fine. */
RP_API void rp_client_free(rp_client *client);

/* Stops all reconnecting. Every call, sampler and writer of this client that waits for a
 * server, now or later, ends with RP_CANCELLED. Does nothing to a client of a store in this
 * process. */
RP_API void rp_client_give_up(rp_client *client);

/* The library prints nothing while a call waits. A program that wants to report a long wait
 * makes the call with a deadline, such as rp_wait_ms(2000). After RP_DEADLINE the program
 * prints the text of this function, of rp_sampler_why() or of rp_trajectory_writer_why(), and
 * repeats the call.
 *
 * Writes why calls cannot reach a shard now: the shard's address and the reason, cut to fit
 * `size` bytes (at least 1). Writes "" if the client has a connection to the shard. This
 * function does no I/O, so before the client's first call it reports a shard as not connected.
 * Returns how many calls have skipped this shard so far.
 *
 * If `shard` is SIZE_MAX, returns the sum of these numbers over all shards. The sum is cheap
 * enough to be read after each request. In this case the text is normally "". The exception is
 * a client whose TLS handshake has failed with every shard and has never succeeded. The text is
 * then the reason why the handshake with the first shard failed. Waiting does not help this
 * client: certificates or options must be changed. */
RP_API uint64_t rp_client_why_away(rp_client *client, size_t shard, char *text, size_t size);

RP_API size_t rp_client_shard_count(const rp_client *client);
/* Returns the address of a shard as it was given, or "local" for a store of this process. The
 * text is valid as long as the client. */
RP_API const char *rp_client_shard_address(const rp_client *client, size_t shard);

/* Errors of all calls below: RP_DEADLINE and RP_CANCELLED (the wait ended), RP_UNAVAILABLE (no
 * connection; the text names the address and the reason. If the reason is a self-signed
 * certificate, set `ca_file`), RP_DENIED (the caller's role does not allow the call),
 * RP_UNAUTHENTICATED (`token` is missing or wrong), and the errors in the comment on the call.
 *
 * Each call goes to every shard and returns the first error other than RP_UNAVAILABLE. The call
 * skips shards that cannot be reached, and rp_client_why_away() counts the skips. If no shard
 * can be reached, the call returns RP_UNAVAILABLE, or RP_DEADLINE if `wait` ends during the
 * attempt to connect. The text has the reasons of all shards that fit. */

/* One table of one shard. A Reverb server (DeepMind's dm-reverb) does not report bytes, waiting
 * calls or the weight of a prioritized table: these fields are 0. */
typedef struct rp_client_table {
    size_t shard;
    double total_weight; /* sum of the weights that the table's sampler gives to its items */
    rp_table_info info;  /* strings and signature are valid as long as the list */
} rp_client_table;

typedef struct rp_client_tables {
    rp_client_table *tables;
    size_t count;
} rp_client_tables;

/* Lists the tables of all shards that can be reached, in order of shards. Returns owned:
 * rp_client_tables_free(). */
RP_API RP_NODISCARD rp_status rp_client_get_tables(rp_client *client, rp_wait wait,
                                                   rp_client_tables **out, rp_error *err);
/* Gets one table: an entry for each shard that has it, at least one. Returns owned:
 * rp_client_tables_free(). Errors: RP_NOT_FOUND (no shard that can be reached has the table).
 * As with every call of this header, the text of RP_NOT_FOUND lists the tables that exist. */
RP_API RP_NODISCARD rp_status rp_client_get_table(rp_client *client, const char *table,
                                                  rp_wait wait, rp_client_tables **out,
                                                  rp_error *err);
RP_API void rp_client_tables_free(rp_client_tables *tables); /* NULL is fine */

/* Changes to the items of a table. An array may be NULL if its count is 0. */
typedef struct rp_mutation {
    const rp_update *updates; /* priorities to set */
    size_t update_count;
    const uint64_t *deletes; /* keys of items to delete */
    size_t delete_count;
} rp_mutation;

/* Sets priorities, then deletes items. Unknown keys are ignored. Errors: RP_NOT_FOUND (no such
 * table), RP_INVALID (a priority that the selectors of the table refuse). */
RP_API RP_NODISCARD rp_status rp_client_mutate(rp_client *client, const char *table,
                                               const rp_mutation *mutation, rp_wait wait,
                                               rp_error *err);

/* Removes all items of a table and resets its counters (rp_table_reset()). Errors: RP_NOT_FOUND
 * (no such table). */
RP_API RP_NODISCARD rp_status rp_client_reset(rp_client *client, const char *table,
                                              rp_wait wait, rp_error *err);

/* Makes every shard write a checkpoint (durable.h) and waits for all of them. `path` may be
 * NULL. `*path` gets the path of the first shard's checkpoint in the file system of its server;
 * the caller frees it with rp_client_text_free(). */
RP_API RP_NODISCARD rp_status rp_client_checkpoint(rp_client *client, rp_wait wait, char **path,
                                                   rp_error *err);
RP_API void rp_client_text_free(rp_client *client, char *text); /* NULL is fine */

/* The durability of one shard. */
typedef struct rp_client_durability {
    size_t shard;
    bool is_durable; /* false: the data is in memory only, or the shard is a Reverb server */
    rp_durable_info info;
} rp_client_durability;

/* Writes the durability of each shard that can be reached to `out`, at most `capacity` entries,
 * and the number of entries written to `*count`. */
RP_API RP_NODISCARD rp_status rp_client_get_durability(rp_client *client,
                                                       rp_client_durability *out,
                                                       size_t capacity, size_t *count,
                                                       rp_wait wait, rp_error *err);

/* The calls from here on need a reprise server or a store of this process. With a Reverb server
 * they return RP_UNIMPLEMENTED. */

/* Creates a table. Errors: RP_EXISTS (the name is taken), RP_INVALID (a wrong option). */
RP_API RP_NODISCARD rp_status rp_client_create_table(rp_client *client,
                                                     const rp_table_options *options,
                                                     rp_wait wait, rp_error *err);
/* Drops a table (rp_store_drop_table()). Errors: RP_NOT_FOUND (no such table). */
RP_API RP_NODISCARD rp_status rp_client_drop_table(rp_client *client, const char *table,
                                                   rp_wait wait, rp_error *err);
/* Changes options of a table (rp_table_alter()). RP_ALTER_LIMITER replaces all fields of the
 * limiter. Errors: RP_NOT_FOUND (no such table), RP_INVALID (a wrong value; or `which` is 0 or
 * has unknown bits). */
RP_API RP_NODISCARD rp_status rp_client_alter_table(rp_client *client, const char *table,
                                                    const rp_table_alteration *change,
                                                    rp_wait wait, rp_error *err);
/* Pauses or resumes inserts, samples or both (rp_table_pause()). `sides` is RP_SIDE_INSERTS,
 * RP_SIDE_SAMPLES or both. Errors: RP_NOT_FOUND (no such table), RP_INVALID (`sides`). */
RP_API RP_NODISCARD rp_status rp_client_pause_table(rp_client *client, const char *table,
                                                    uint32_t sides, rp_wait wait,
                                                    rp_error *err);
RP_API RP_NODISCARD rp_status rp_client_resume_table(rp_client *client, const char *table,
                                                     uint32_t sides, rp_wait wait,
                                                     rp_error *err);

/* A call that is blocked: an insert into a table or a sample of a table. `table` can also be
 * the name of rollouts (rollouts.h). In that case a draw is described as a sample, and an
 * operation that puts or reserves a group is described as an insert. */
typedef struct rp_client_waiting {
    size_t shard;
    char table[128];    /* cut to fit */
    char client[64];    /* address of the caller, or "this process" if a thread of the server's
                           process made the call; cut to fit; empty: not known */
    uint64_t client_id; /* id of the caller's connection, as in rp_client_connection; 0: a
                           thread of the server's process, or not known */
    rp_waiting waiting;
} rp_client_waiting;

/* A list of blocked calls. The caller sets `calls` and `capacity`. */
typedef struct rp_client_blocked {
    rp_client_waiting *calls; /* memory of the caller; may be NULL if `capacity` is 0 */
    size_t capacity;
    size_t count; /* number of calls described, at most `capacity` */
    size_t total; /* number of all blocked calls, described or not */
} rp_client_blocked;

/* Describes the blocked calls of a table. If no table has this name, describes the blocked
 * calls of the rollouts with this name. If `table` is NULL, describes the blocked calls of all
 * tables and rollouts. `out->count` and `out->total` are written on RP_OK only. Errors:
 * RP_NOT_FOUND (neither a table nor rollouts have this name). */
RP_API RP_NODISCARD rp_status rp_client_why_blocked(rp_client *client, const char *table,
                                                    rp_client_blocked *out, rp_wait wait,
                                                    rp_error *err);

/* A connection of a server. */
typedef struct rp_client_connection {
    size_t shard;
    uint64_t id;       /* no other connection of this server gets this id */
    char address[64];  /* address of the peer. This text and the next two are cut to fit */
    char role[16];     /* of its last call: "none", "read", "write" or "admin" */
    char protocol[16]; /* "HTTP/2", "HTTP/1.1", "shared memory", or "new": not known yet */
    int64_t open_ms;   /* time that the connection has been open */
    uint64_t calls, bytes_in, bytes_out;
    bool is_caller; /* the call that made this list uses the connection */
} rp_client_connection;

/* A list of connections. The caller sets `list` and `capacity`. */
typedef struct rp_client_connections {
    rp_client_connection *list; /* memory of the caller; may be NULL if `capacity` is 0 */
    size_t capacity;
    size_t count; /* number of connections described, at most `capacity` */
    size_t total; /* number of all connections, described or not */
} rp_client_connections;

/* Lists the connections, shard by shard, the newest of a shard first. A server describes at
 * most 1,000. For a client of a store in this process the list is empty. `out->count` and
 * `out->total` are written on RP_OK only. */
RP_API RP_NODISCARD rp_status rp_client_get_connections(rp_client *client,
                                                        rp_client_connections *out,
                                                        rp_wait wait, rp_error *err);

RP_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a client (reprise/client.h), for the source files of its writers, samplers and
 * calls.
 *
 * A client has two parts. The first part never changes: it has the addresses, the credentials
 * and the options.
 * The second part, the live part, consists of the runtime (channel/runtime.h) and a channel
 * (channel/channel.h) to each shard, that is, to each server of the client. The live part
 * belongs to one process: the child of a fork creates its own. */
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

/* An entry in the cache of signatures. A signature lists the columns of a table's items
 * (reprise/tensor.h). */
typedef struct rp_known_signature {
    char *table;
    rp_signature *signature; /* a reference; NULL: the table has none */
} rp_known_signature;

typedef struct rp_client_live {
    uint64_t generation; /* rp_runtime_generation() of the process that owns this */
    uint64_t seed; /* the client's seed. In the child of a fork it is a new seed, so that the
                      keys of the child's items differ from those of the parent's */
    rp_runtime *runtime;
    rp_tls *tls; /* NULL: no TLS */
    rp_channel **channels;
    size_t channel_count;          /* 0: the client uses a store of this process */
    atomic_bool has_given_up;      /* rp_client_give_up() was called */
    atomic_uint_fast64_t left_out; /* sum of rp_channel_left_out() over all channels; used only
                                      for warnings, so relaxed order is enough */
    rp_mutex mu;                   /* lock rank 78 (util/mutex.h); guards the fields below */
    int64_t quiet_until_ns; /* before this time, rp_client_signature_soon() asks no server */
    rp_known_signature *signatures;
    size_t signature_count, signature_capacity;
} rp_client_live;

struct rp_client {
    rp_allocator alloc;
    rp_store *store; /* NULL: the client uses servers */
    rp_address_list addresses;
    rp_client_options options; /* copied strings; `token` is the value of the HTTP header */
    char *strings;
    size_t strings_bytes;
    uint64_t seed; /* never 0 */
    _Atomic(rp_client_live *) live;
};

/* Sets `*out` to the live part of this process, valid as long as the client. If this process
 * has no live part yet, as in the child of a fork, creates it and reads the TLS files. Errors:
 * RP_NOT_FOUND or RP_INVALID for the TLS files, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_get_live(rp_client *client, rp_client_live **out,
                                          rp_error *err);

/* Opens a sink over all shards (sink/sink.h). Copies `events`. The caller must close the sink
 * before the client is freed. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_open_sink(rp_client *client, const rp_sink_events *events,
                                           rp_sink **out, rp_error *err);
/* Opens a source of one shard (sampler/source.h). Copies both structs. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_open_source(rp_client *client, size_t shard,
                                             const rp_source_options *options,
                                             const rp_source_events *events, rp_source **out,
                                             rp_error *err);

/* Sets `*out` to a reference to the signature of a table, or to NULL if the table has none.
 * Signatures are cached, and servers are queried only for a table that is not in the cache.
 * Errors: RP_NOT_FOUND, statuses of rp_client_get_tables(). */
RP_NODISCARD rp_status rp_client_signature(rp_client *client, const char *table, rp_wait wait,
                                           rp_signature **out, rp_error *err);
/* Like rp_client_signature(), but asks the servers that are not away (rp_channel_is_away())
 * even if the table is in the cache, because another process could have dropped the table and
 * created a new one with this name. If no server responds in time, returns the signature in the
 * cache. */
RP_NODISCARD rp_status rp_client_signature_again(rp_client *client, const char *table,
                                                 rp_wait wait, rp_signature **out,
                                                 rp_error *err);
/* Like rp_client_signature(), but does not wait for servers that are away
 * (rp_channel_is_away()). If all servers are away, returns RP_UNAVAILABLE at once. A call to
 * which servers do not respond sets quiet_until_ns. Until that time, later calls return
 * RP_DEADLINE without asking the servers. A program that often calls this function therefore
 * waits only for a small part of its time. */
RP_NODISCARD rp_status rp_client_signature_soon(rp_client *client, const char *table,
                                                rp_wait wait, rp_signature **out,
                                                rp_error *err);
/* Fetches the tables of the servers that are not away (rp_channel_is_away()). If all are away,
 * returns RP_UNAVAILABLE at once. */
RP_NODISCARD rp_status rp_client_get_tables_there(rp_client *client, rp_wait wait,
                                                  rp_client_tables **out, rp_error *err);
/* Returns true if rp_client_give_up() was called. Any thread. */
bool rp_client_has_given_up(const rp_client *client);
/* Returns true if the TLS handshake failed with all servers and no connection has ever
 * succeeded (rp_channel_is_refused()). Then writes the reason to `text`. */
bool rp_client_is_refused(rp_client *client, char *text, size_t size);
/* Removes a table's signature from the cache. Called when an item does not fit the signature,
 * because another process could have dropped the table and created a new one with this name. */
void rp_client_forget_signature(rp_client *client, const char *table);

#define RP_ANY_SHARD SIZE_MAX

/* A question why calls wait. */
typedef struct rp_why_question {
    const char *table;
    size_t shard;      /* index of the shard to ask; RP_ANY_SHARD: all shards */
    bool is_insert;    /* ask about inserts; otherwise about samples */
    int64_t waited_ns; /* for how long the call has waited; RP_FOREVER: use the longest time
                          limit of rp_client_ask_ms() */
} rp_why_question;

/* Returns the time limit, in milliseconds, for asking servers why a call waits: a tenth of the
 * time that the call has waited, but at least 50 ms and at most 500 ms. */
int64_t rp_client_ask_ms(int64_t waited_ns);

/* Asks the servers why inserts or samples of a table wait. Asking takes at most
 * rp_client_ask_ms(). Writes the reason that one of them reports, or why no server was reached.
 * Writes "" if neither is known. */
void rp_client_ask_why(rp_client *client, const rp_why_question *question, char *text,
                       size_t size);

/* Asks one server whether it responds, for at most half a second, and not longer than `wait`.
 * Returns false, and writes why, if the server has sent nothing since since_ns. If `wait` is
 * cancelled, returns true. The client must not be one of a store. */
bool rp_client_responds(rp_client *client, const char *table, size_t shard, int64_t since_ns,
                        rp_wait wait, char *text, size_t size);

/* Writes an error about the table `name`, which does not exist, with the names of `tables`.
 * Returns RP_NOT_FOUND. */
rp_status rp_client_no_table(const rp_client_tables *tables, const char *name, rp_error *err);
/* Like rp_client_no_table(), but names only the tables of the shard with index `shard`. */
void rp_client_name_shard_tables(const rp_client_tables *tables, size_t shard, const char *name,
                                 rp_error *err);
/* Fetches the tables for the text of an error. Takes at most half a second, and ends at the
 * latest when `wait`, the wait of the call that failed, ends. Fails like
 * rp_client_get_tables(). */
RP_NODISCARD rp_status rp_client_tables_soon(rp_client *client, rp_wait wait,
                                             rp_client_tables **out);
/* Returns `st`. If that is RP_NOT_FOUND, first fetches the tables like rp_client_tables_soon()
 * and writes the error of rp_client_no_table() to `err`. */
rp_status rp_client_name_tables(rp_client *client, const char *name, rp_wait wait, rp_status st,
                                rp_error *err);

/* The calls of reprise/client.h for a client of a store in this process. */
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

/* Creates an empty list with room for `capacity` tables. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_client_tables_new(const rp_allocator *alloc, size_t capacity,
                                            rp_client_tables **out, rp_error *err);
/* Adds a copy of `info` with its name, and takes a reference to the signature. */
RP_NODISCARD rp_status rp_client_tables_add(rp_client_tables *tables, size_t shard,
                                            const rp_table_info *info, rp_error *err);

#endif

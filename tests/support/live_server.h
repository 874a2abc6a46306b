/* SPDX-License-Identifier: Apache-2.0 */
/* A real server on a free port of loopback and on a Unix socket, with tables, and functions
 * that make requests.
 *
 *   rp_test_live live;
 *   rp_test_live_start(&live, NULL);
 *   rp_test_client *c = rp_test_live_connect(&live);
 *   ...
 *   rp_test_client_free(c);
 *   rp_test_live_stop(&live);       // fails if memory was not freed
 *
 * Tables: in 'replay' no call waits; 'queue' holds 4 items and gives each once; 'slow' needs
 * two samples for each insert, with an error buffer of four; 'strict' has a signature and
 * samples by priority. */
#ifndef RP_TEST_LIVE_SERVER_H
#define RP_TEST_LIVE_SERVER_H

#include "reprise/server.h"
#include "support/h2_client.h"
#include "support/unit.h"

#define RP_TEST_REVERB "/deepmind.reverb.ReverbService/"
#define RP_TEST_REPLAY "/reprise.v1.Replay/"

typedef struct rp_test_live {
    rp_test_oom oom; /* counts what the store and the server allocate */
    rp_allocator alloc;
    rp_store *store;
    rp_server *server;
    int port;
    int holder; /* a socket that keeps the port after the server ended; 0: none */
    char folder[64], path[96]; /* of the socket */
    rp_error err;
} rp_test_live;

/* Starts a server. `options` may be NULL. If allocator, addresses or the number of loops (2)
 * are not set, they are filled in. */
void rp_test_live_start(rp_test_live *live, const rp_server_options *options);
/* The same with a store that has these options. */
void rp_test_live_start_with(rp_test_live *live, const rp_server_options *options,
                             const rp_store_options *store);
/* Makes the store only, and its tables. */
void rp_test_live_init(rp_test_live *live, const rp_store_options *store);
/* Starts a server of that store, which may fail if allocations fail. */
rp_status rp_test_live_try(rp_test_live *live, const rp_server_options *options);
/* Frees server and store. Fails if a table is inconsistent or memory was not freed. */
void rp_test_live_stop(rp_test_live *live);
/* Frees the server only. Connections to its port are refused from then on: no other program
 * gets the port before the server is started again, or stopped. */
void rp_test_live_end(rp_test_live *live);

/* Return connected clients; NULL if the connection is refused. */
rp_test_client *rp_test_live_connect(const rp_test_live *live);
rp_test_client *rp_test_live_connect_with(const rp_test_live *live,
                                          const rp_test_client_options *options);
rp_test_client *rp_test_live_connect_unix(const rp_test_live *live);

rp_table_info rp_test_live_info(const rp_test_live *live, const char *table);
/* Waits until this many inserts or samples wait at the table; false after ten seconds. */
bool rp_test_live_await(const rp_test_live *live, const char *table, int64_t inserts,
                        int64_t samples);
/* Samples one item directly from the store; false if that would wait. */
bool rp_test_live_take(const rp_test_live *live, const char *table);

/* Appends a chunk: one row of `bytes` bytes, all of them the low byte of its key. */
void rp_test_put_chunk(rp_buf *out, uint64_t key, size_t bytes);
/* Appends an item of one column: rows [offset, offset + length) of a chunk. */
void rp_test_put_item(rp_buf *out, const char *table, uint64_t key, double priority,
                      uint64_t chunk, uint32_t offset, uint32_t length);
void rp_test_put_keep(rp_buf *out, const uint64_t *keys, size_t count);
/* Appends a whole InsertStreamRequest of one item, whose chunk has the item's key. */
void rp_test_put_insert(rp_buf *out, const char *table, uint64_t key, size_t bytes);
/* Appends a SampleStreamRequest; `timeout_ms` -2: without this field. */
void rp_test_put_sample(rp_buf *out, const char *table, int64_t count, int64_t timeout_ms);
void rp_test_put_update(rp_buf *out, const char *table, uint64_t key, double priority);

/* Sends the message and clears the buffer. */
void rp_test_stream_put(rp_test_stream *stream, rp_buf *message);

/* Return the number of keys that an InsertStream has confirmed, and of samples that are
 * complete in a SampleStream. */
size_t rp_test_confirmed(const rp_test_stream *stream);
size_t rp_test_sampled(const rp_test_stream *stream);
/* Wait until there are `count` of them. */
bool rp_test_await_confirmed(rp_test_stream *stream, size_t count);
bool rp_test_await_sampled(rp_test_stream *stream, size_t count);

/* Inserts items with keys from `first` on, over a new stream. */
void rp_test_insert_items(rp_test_client *client, const char *table, uint64_t first,
                          size_t count, size_t bytes);

#endif

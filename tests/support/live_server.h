/* SPDX-License-Identifier: Apache-2.0 */
/* A server of flesh and blood on a free port of loopback and on a Unix socket, with tables to
 * use and requests to send it.
 *
 *   rp_test_live live;
 *   rp_test_live_start(&live, NULL);
 *   rp_test_client *c = rp_test_live_connect(&live);
 *   ...
 *   rp_test_client_free(c);
 *   rp_test_live_stop(&live);       // nothing may be left alive
 *
 * Tables: 'replay' takes and gives everything; 'queue' has room for 4 and gives each item once;
 * 'slow' wants two samples for each insert, give or take four; 'strict' has a signature and
 * weighs by priority. */
#ifndef RP_TEST_LIVE_SERVER_H
#define RP_TEST_LIVE_SERVER_H

#include "reprise/server.h"
#include "support/h2_client.h"
#include "support/unit.h"

#define RP_TEST_REVERB "/deepmind.reverb.ReverbService/"
#define RP_TEST_REPLAY "/reprise.v1.Replay/"

typedef struct rp_test_live {
    rp_test_oom oom; /* what the store and the server have allocated */
    rp_allocator alloc;
    rp_store *store;
    rp_server *server;
    int port;
    char folder[64], path[96]; /* of the socket */
    rp_error err;
} rp_test_live;

/* `options` may be NULL; its allocator, addresses and number of loops (2) are filled in where
 * they are missing. */
void rp_test_live_start(rp_test_live *live, const rp_server_options *options);
/* The same with a store that has these options. */
void rp_test_live_start_with(rp_test_live *live, const rp_server_options *options,
                             const rp_store_options *store);
/* Makes the store only, and its tables. */
void rp_test_live_init(rp_test_live *live, const rp_store_options *store);
/* Starts a server of it in whatever memory there is. */
rp_status rp_test_live_try(rp_test_live *live, const rp_server_options *options);
/* Frees server and store. Tables must be sound, and nothing left alive. */
void rp_test_live_stop(rp_test_live *live);
/* Frees the server only. */
void rp_test_live_end(rp_test_live *live);

/* Connected clients; NULL if nobody listens. */
rp_test_client *rp_test_live_connect(const rp_test_live *live);
rp_test_client *rp_test_live_connect_with(const rp_test_live *live,
                                          const rp_test_client_options *options);
rp_test_client *rp_test_live_connect_unix(const rp_test_live *live);

rp_table_info rp_test_live_info(const rp_test_live *live, const char *table);
/* Waits until so many inserts or samples wait in the table; false after ten seconds. */
bool rp_test_live_await(const rp_test_live *live, const char *table, int64_t inserts,
                        int64_t samples);
/* One item out of a table, by somebody else; false if it has none to give. */
bool rp_test_live_take(const rp_test_live *live, const char *table);

/* The chunk of a test: one row of `bytes` bytes, all of them the low byte of its key. */
void rp_test_put_chunk(rp_buf *out, uint64_t key, size_t bytes);
/* An item of one column: rows [offset, offset + length) of a chunk. */
void rp_test_put_item(rp_buf *out, const char *table, uint64_t key, double priority,
                      uint64_t chunk, uint32_t offset, uint32_t length);
void rp_test_put_keep(rp_buf *out, const uint64_t *keys, size_t count);
/* All of them: a whole InsertStreamRequest of one item, whose chunk has its key. */
void rp_test_put_insert(rp_buf *out, const char *table, uint64_t key, size_t bytes);
/* A SampleStreamRequest; `timeout_ms` -2: nothing is said of it. */
void rp_test_put_sample(rp_buf *out, const char *table, int64_t count, int64_t timeout_ms);
void rp_test_put_update(rp_buf *out, const char *table, uint64_t key, double priority);

/* Sends the message and clears the buffer. */
void rp_test_stream_put(rp_test_stream *stream, rp_buf *message);

/* Keys confirmed by the messages of an InsertStream; samples that are whole in those of a
 * SampleStream. */
size_t rp_test_confirmed(const rp_test_stream *stream);
size_t rp_test_sampled(const rp_test_stream *stream);
/* Waits for so many. */
bool rp_test_await_confirmed(rp_test_stream *stream, size_t count);
bool rp_test_await_sampled(rp_test_stream *stream, size_t count);

/* Inserts items with keys from `first` on, over a stream of its own. */
void rp_test_insert_items(rp_test_client *client, const char *table, uint64_t first,
                          size_t count, size_t bytes);

#endif

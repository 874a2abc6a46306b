/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sinks and sources need: a channel to a live server, items to send, and somebody
 * who listens to what becomes of them. Waits are bounded: ten seconds, a minute under load. */
#ifndef RP_TEST_STREAMS_H
#define RP_TEST_STREAMS_H

#include <pthread.h>

#include "client/channel/channel.h"
#include "client/sampler/source.h"
#include "client/sink/sink.h"
#include "support/live_server.h"

/* A channel, with memory that is counted. */
typedef struct rp_test_line {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_runtime *runtime;
    rp_channel *channel;
} rp_test_line;

/* `address` as a client is given it. */
void rp_test_line_open(rp_test_line *line, const char *address);
void rp_test_line_open_tcp(rp_test_line *line, const rp_test_live *live);
void rp_test_line_open_unix(rp_test_line *line, const rp_test_live *live);
/* Nothing may be left alive. */
void rp_test_line_close(rp_test_line *line);

/* Starts the server again, where it was. */
void rp_test_live_restart(rp_test_live *live);
/* A table more, that takes and gives everything. */
void rp_test_live_add(rp_test_live *live, const char *name, size_t max_size);

/* An item of one chunk of its own, that has `bytes` bytes; its chunk has the item's key. */
rp_sink_item rp_test_sink_item(const char *table, uint64_t key, size_t bytes);
/* An item of the rows of these chunks. They are borrowed. */
rp_sink_item rp_test_sink_item_of(const char *table, uint64_t key, rp_chunk *const *chunks,
                                  size_t count);
/* Chunks of one row of `bytes` bytes. Returns owned. */
rp_chunk *rp_test_byte_chunk(uint64_t key, size_t bytes);

/* True if the item is in the table; how many of keys first, first + 1, ... are. */
size_t rp_test_live_find(const rp_test_live *live, const char *table, uint64_t first,
                         size_t count);

enum { RP_TEST_KEYS = 1 << 17 }; /* keys are below */

typedef struct rp_test_settled {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    uint8_t times[RP_TEST_KEYS]; /* each was told of */
    uint8_t statuses[RP_TEST_KEYS];
    size_t count, refused, calls;
    char text[RP_ERROR_TEXT_BYTES]; /* of the last refusal */
} rp_test_settled;

void rp_test_settled_init(rp_test_settled *settled);
void rp_test_settled_deinit(rp_test_settled *settled);
rp_sink_events rp_test_settled_events(rp_test_settled *settled);
/* Waits for so many in all; false if they do not come. */
bool rp_test_settled_await(rp_test_settled *settled, size_t count);
size_t rp_test_settled_count(rp_test_settled *settled);
/* Keys [first, first + count) were told of once each, with this status. */
void rp_test_settled_expect(rp_test_settled *settled, uint64_t first, size_t count,
                            rp_status status);

typedef struct rp_test_drawn {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    uint64_t *keys; /* in the order in which they came */
    size_t count, capacity;
    size_t bytes; /* of their trajectories */
    size_t ends, lost, found;
    rp_status status; /* of the last end */
    char text[RP_ERROR_TEXT_BYTES];
} rp_test_drawn;

void rp_test_drawn_init(rp_test_drawn *drawn);
void rp_test_drawn_deinit(rp_test_drawn *drawn);
rp_source_events rp_test_drawn_events(rp_test_drawn *drawn);
bool rp_test_drawn_await(rp_test_drawn *drawn, size_t count);
bool rp_test_drawn_await_end(rp_test_drawn *drawn, size_t ends);
/* Waits until it was told so often that the server is lost, and found. */
bool rp_test_drawn_await_reach(rp_test_drawn *drawn, size_t lost, size_t found);
size_t rp_test_drawn_count(rp_test_drawn *drawn);

#endif

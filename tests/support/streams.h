/* SPDX-License-Identifier: Apache-2.0 */
/* Fixtures for tests of sinks and sources: a channel to a live server, items to send, and
 * objects that record their results. Waits are bounded: ten seconds, a minute under load. */
#ifndef RP_TEST_STREAMS_H
#define RP_TEST_STREAMS_H

#include <pthread.h>

#include "client/channel/channel.h"
#include "client/sampler/source.h"
#include "client/sink/sink.h"
#include "support/live_server.h"

/* A channel whose allocations are counted. */
typedef struct rp_test_line {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_runtime *runtime;
    rp_channel *channel;
} rp_test_line;

/* Opens a channel. `address` is as for a client. */
void rp_test_line_open(rp_test_line *line, const char *address);
void rp_test_line_open_tcp(rp_test_line *line, const rp_test_live *live);
void rp_test_line_open_unix(rp_test_line *line, const rp_test_live *live);
/* Closes the channel. Fails if memory was not freed. */
void rp_test_line_close(rp_test_line *line);

/* Starts the server again, at the same addresses. */
void rp_test_live_restart(rp_test_live *live);
/* Adds a table whose inserts and samples never wait. */
void rp_test_live_add(rp_test_live *live, const char *name, size_t max_size);

/* Makes an item with its own chunk of `bytes` bytes, which has the item's key. */
rp_sink_item rp_test_sink_item(const char *table, uint64_t key, size_t bytes);
/* Makes an item of the rows of these chunks, which are borrowed. */
rp_sink_item rp_test_sink_item_of(const char *table, uint64_t key, rp_chunk *const *chunks,
                                  size_t count);
/* Makes a chunk of one row of `bytes` bytes. Returns owned. */
rp_chunk *rp_test_byte_chunk(uint64_t key, size_t bytes);

/* Returns how many of the keys first, first + 1, ... are in the table. */
size_t rp_test_live_find(const rp_test_live *live, const char *table, uint64_t first,
                         size_t count);

enum { RP_TEST_KEYS = 1 << 17 }; /* all keys are below this */

typedef struct rp_test_settled {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    uint8_t times[RP_TEST_KEYS]; /* how often each key was reported */
    uint8_t statuses[RP_TEST_KEYS];
    size_t count, refused, calls;
    char text[RP_ERROR_TEXT_BYTES]; /* of the last refusal */
} rp_test_settled;

void rp_test_settled_init(rp_test_settled *settled);
void rp_test_settled_deinit(rp_test_settled *settled);
rp_sink_events rp_test_settled_events(rp_test_settled *settled);
/* Waits until `count` keys were reported in all; false after a timeout. */
bool rp_test_settled_await(rp_test_settled *settled, size_t count);
size_t rp_test_settled_count(rp_test_settled *settled);
/* Checks that the keys [first, first + count) were reported once each, with this status. */
void rp_test_settled_expect(rp_test_settled *settled, uint64_t first, size_t count,
                            rp_status status);

typedef struct rp_test_drawn {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    uint64_t *keys; /* in the order of arrival */
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
/* Waits until the loss of the server was reported `lost` times, and its return `found` times.
 */
bool rp_test_drawn_await_reach(rp_test_drawn *drawn, size_t lost, size_t found);
size_t rp_test_drawn_count(rp_test_drawn *drawn);

#endif

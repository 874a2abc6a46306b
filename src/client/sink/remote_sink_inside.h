/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a remote sink, shared by remote_sink_stream.c, which states the invariants, and
 * remote_sink_messages.c, which builds messages. */
#ifndef RP_CLIENT_SINK_REMOTE_SINK_INSIDE_H
#define RP_CLIENT_SINK_REMOTE_SINK_INSIDE_H

#include <stdatomic.h>

#include "client/sink/inbox.h"
#include "client/sink/item_list.h"
#include "client/sink/remote_sink.h"
#include "client/sink/sent_chunks.h"
#include "util/mutex.h"
#include "wire/insert_request_write.h"

enum {
    RP_REMOTE_ITEMS = 256, /* in one message, at most */
    RP_REMOTE_AHEAD = 4,   /* distance, in items, of each of the two stages of prefetching */
};
#define RP_LINGER_NS ((int64_t)1000000) /* longest time that an item waits for others */

typedef enum rp_remote_state {
    STREAM_NONE,
    STREAM_BEGINNING, /* waits for a connection */
    STREAM_OPEN,
} rp_remote_state;

typedef struct rp_remote_sink {
    rp_sink base;
    rp_runtime *runtime;
    rp_loop *loop;
    rp_channel *channel;
    rp_allocator alloc;
    rp_sink_events events;
    uint64_t generation;
    rp_post post;
    atomic_int_fast64_t away_since; /* written by the loop's thread */

    /* used by the loop thread only */
    rp_channel_call call;
    rp_timer timer;
    int64_t resume_ns;          /* no stream is opened before this time */
    int64_t pause_ns, began_ns; /* backoff after the next failure; when the stream was opened */
    int64_t linger_ns; /* RP_LINGER_NS after the last message or confirmation: until then
                          the loop will run soon ("is near", inbox.h) */
    rp_sent_chunks chunks;
    rp_item_list items;
    atomic_size_t gone_count; /* items that left the list; why() reads it, too */
    uint64_t message;         /* number of the last message */
    uint64_t *keys;           /* of the items that one response confirms */
    size_t key_capacity;
    rp_wire_insert wire_items[RP_REMOTE_ITEMS]; /* of the message that is being built */
    size_t probe_size, probe_out; /* while searching for a bad item (is_probing): items of the
                                     next message, and unconfirmed items of the last one */
    int64_t probe_due_ns, probe_wait_ns; /* items of the last message count as passed if the
                                            stream has not ended by probe_due_ns, which is
                                            probe_wait_ns after the message */
    rp_remote_state state;
    uint32_t cursor; /* the slot of the item that is sent next */
    uint32_t unsent; /* the slot of the first item that was never in a message; nor was any item
                        after it. RP_MAP_NONE: there is none */
    bool is_refused; /* the last attempt to open a stream found no server */
    bool has_progressed; /* the stream has confirmed something */
    bool is_probing, is_closed;

    /* Called when `is_refused` and there are items from `unsent` on, to move these items to
     * another sink. NULL: they stay here. */
    void (*on_refused)(void *user);
    void *refused_user;

    rp_inbox inbox;
    atomic_size_t put_count; /* items that were ever put */
    rp_mutex mu;             /* rank 84 */
    char why[RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu);
} rp_remote_sink;

/* A message that is being built. */
typedef struct rp_insert_draft {
    rp_message *reply;
    size_t count; /* of wire_items */
} rp_insert_draft;

static inline rp_listed_item *rp_remote_item_at(rp_remote_sink *s, uint32_t slot)
{
    return &s->items.slots[slot];
}

/* Prefetches the first `bytes` bytes of a trajectory's first chunk. */
void rp_remote_fetch_chunk(const rp_trajectory *trajectory, size_t bytes);
/* Builds and sends one message of at most `limit` items. Returns false if there is no
 * memory. */
bool rp_remote_build(rp_remote_sink *s, rp_insert_draft *d, size_t limit);

#endif

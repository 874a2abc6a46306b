/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a remote sink (remote_sink.h), for two files: remote_sink_stream.c, which
 * states the invariants, and remote_sink_messages.c, which builds messages. The stream is the
 * call of InsertStream. */
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
    RP_REMOTE_ITEMS = 256, /* the most items in one message */
    RP_REMOTE_AHEAD = 4,   /* building a message prefetches memory in two stages; each stage is
                              this number of items ahead of the next one */
};
#define RP_LINGER_NS ((int64_t)1000000) /* longest time for which an item waits for others */

typedef enum rp_remote_state {
    STREAM_NONE,
    STREAM_BEGINNING, /* the stream waits for a connection */
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
    atomic_int_fast64_t away_since; /* set by the loop thread only */

    /* Only the loop thread uses these: */
    rp_channel_call call;
    rp_timer timer;
    int64_t resume_ns;          /* no stream is opened before this time */
    int64_t pause_ns, began_ns; /* pause_ns: backoff after the next failure; began_ns: when the
                                   stream was opened */
    int64_t linger_ns; /* until this time the loop "is near" (inbox.h): RP_LINGER_NS after the
                          last message or confirmation */
    rp_sent_chunks chunks;
    rp_item_list items;
    atomic_size_t gone_count; /* number of items that have left `items`; why() reads it on any
                                 thread */
    uint64_t message;         /* number of the last message */
    uint64_t *keys;           /* scratch buffer: keys of the items that a response confirms */
    size_t key_capacity;
    rp_wire_insert wire_items[RP_REMOTE_ITEMS]; /* items of the message that is being built */
    /* While is_probing (remote_sink.h describes probing): probe_size is the number of items of
     * the next message, probe_out the number of unconfirmed items of the last message. */
    size_t probe_size, probe_out;
    /* If the stream has not ended at probe_due_ns, the unconfirmed items of the last message
     * become RP_TRUST_PASSED. probe_due_ns is probe_wait_ns after this message was sent. */
    int64_t probe_due_ns, probe_wait_ns;
    rp_remote_state state;
    uint32_t cursor; /* slot of the item to send next */
    uint32_t unsent; /* slot of the first item that was never sent on any stream; nor were the
                        items after it. RP_MAP_NONE: all items were sent */
    bool is_refused; /* the last attempt to open a stream found no server */
    bool has_progressed; /* the server has confirmed items on this stream */
    bool is_probing, is_closed;

    /* Called when is_refused is set and there are unsent items, to move these items to another
     * sink. NULL: the items stay in this sink. */
    void (*on_refused)(void *user);
    void *refused_user;

    rp_inbox inbox;
    atomic_size_t put_count;                         /* items put since the sink was created */
    rp_mutex mu;                                     /* lock rank 84 (util/mutex.h) */
    char why[RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu); /* why items wait */
} rp_remote_sink;

/* A message that is being built. */
typedef struct rp_insert_draft {
    rp_message *reply;
    size_t count; /* used entries of wire_items */
} rp_insert_draft;

/* Returns the item in a slot. */
static inline rp_listed_item *rp_remote_item_at(rp_remote_sink *s, uint32_t slot)
{
    return &s->items.slots[slot];
}

/* Prefetches the first `bytes` bytes of a trajectory's first chunk into the CPU's cache. */
void rp_remote_fetch_chunk(const rp_trajectory *trajectory, size_t bytes);
/* Builds and sends a message of at most `limit` items. Returns false if memory runs out. */
bool rp_remote_build(rp_remote_sink *s, rp_insert_draft *d, size_t limit);
/* `status` and `text` are those with which a stream ended. Returns true if the items are not
 * the reason, so that the sink sends the same items on a new stream. Otherwise the server has
 * rejected an item. */
bool rp_remote_is_retried(rp_status status, const char *text);

#endif

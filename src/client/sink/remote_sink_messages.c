/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a remote sink: items and the chunks that the server does not have; and the
 * ends of its streams. */
#include <string.h>

#include "chunk/chunk.h"
#include "client/sink/remote_sink_inside.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MESSAGE_BYTES = 1 << 20, /* of one message, about, unless one item has more */
    /* An item with so many bytes of chunks begins a message: a server keeps a chunk in the
     * memory of its message if it has most of the bytes, and copies it otherwise. */
    LARGE_BYTES = 128 << 10,
    WHOLE_BYTES = 60 << 20,      /* of chunks in one message; servers accept 64 MiB */
    CHUNK_ONLY_BYTES = 32 << 20, /* of a message that is sent ahead of a larger item */
    SENT_BYTES = 512,            /* of a small chunk that are read to send it */
};

/* Returns the bytes of the chunks of `trajectory` that the server does not have. */
static size_t missing_bytes(const rp_remote_sink *s, const rp_trajectory *trajectory)
{
    size_t bytes = 0;

    for (size_t i = 0; i < trajectory->chunk_count; i++)
        if (!rp_sent_chunks_has(&s->chunks, trajectory->chunks[i]))
            bytes += trajectory->chunks[i]->wire_bytes;
    return bytes;
}

static bool hold(rp_insert_draft *d, rp_trajectory *trajectory)
{
    rp_trajectory *held = rp_trajectory_ref(trajectory);

    if (rp_message_hold(d->reply, held)) return true;
    rp_trajectory_unref(held);
    return false;
}

static bool begin_draft(rp_remote_sink *s, rp_insert_draft *d)
{
    d->reply = rp_channel_new_message(s->channel);
    return d->reply != NULL;
}

static bool send_draft(rp_remote_sink *s, rp_insert_draft *d)
{
    rp_message *reply = d->reply;

    if (!rp_message_close(reply)) return false;
    d->reply = NULL;
    rp_channel_send(&s->call, reply);
    return true;
}

/* Adds the chunks of an item that the server does not have. If the item is too large for one
 * message, its first chunks are sent ahead in messages without items; the server keeps them for
 * the next message. */
static bool add_chunks(rp_remote_sink *s, rp_insert_draft *d, rp_listed_item *item,
                       size_t missing)
{
    rp_trajectory *trajectory = item->item.trajectory;
    bool is_alone = rp_refcount_is_one(&trajectory->refs), is_held = false;

    if (!rp_sent_chunks_reserve(&s->chunks, trajectory->chunk_count)) return false;
    for (size_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];
        size_t known = s->chunks.count;

        if (rp_sent_chunks_use(&s->chunks, chunk, is_alone)) {
            item->shares_chunks = true;
            continue;
        }
        if (s->chunks.count > known) item->shares_chunks = true;
        if (missing > WHOLE_BYTES && rp_insert_request_bytes(d->reply) > 0 &&
            rp_insert_request_bytes(d->reply) + chunk->wire_bytes > CHUNK_ONLY_BYTES) {
            missing -= rp_insert_request_bytes(d->reply);
            if (!send_draft(s, d) || !begin_draft(s, d)) return false;
            is_held = false;
        }
        if (!is_held && chunk->wire_bytes >= RP_MESSAGE_COPY_BYTES) {
            is_held = true;
            if (!hold(d, trajectory)) return false;
        }
        if (!rp_insert_request_add_chunks(d->reply, &chunk, 1)) return false;
    }
    return true;
}

/* Returns true if the item at the cursor goes into the same message as the items before it. */
static bool fits(rp_remote_sink *s, const rp_insert_draft *d, size_t limit, rp_trust trust,
                 size_t *missing)
{
    const rp_listed_item *item = rp_remote_item_at(s, s->cursor);
    size_t bytes = rp_insert_request_bytes(d->reply);

    *missing = 0;
    if (d->count > 0 && (d->count == limit || bytes >= MESSAGE_BYTES ||
                         (s->is_probing && item->trust != trust)))
        return false;
    if (item->item.trajectory->bytes < LARGE_BYTES) return true;
    *missing = missing_bytes(s, item->item.trajectory);
    return d->count == 0 || *missing < LARGE_BYTES;
}

/* Many items were created between two messages, and their memory may be in no cache. It is
 * prefetched some items ahead: first a trajectory, then its first chunk. */
typedef struct scout {
    uint32_t far, near; /* slots of the list, from the cursor on */
} scout;

void rp_remote_fetch_chunk(const rp_trajectory *trajectory, size_t bytes)
{
    const char *chunk = (const char *)trajectory->chunks[0];

    for (size_t at = 0; at < bytes; at += RP_CACHE_LINE) __builtin_prefetch(chunk + at);
}

static void scout_far(rp_remote_sink *s, scout *it)
{
    if (it->far == RP_MAP_NONE) return;
    __builtin_prefetch(rp_remote_item_at(s, it->far)->item.trajectory);
    it->far = rp_remote_item_at(s, it->far)->next;
}

static void scout_on(rp_remote_sink *s, scout *it)
{
    scout_far(s, it);
    if (it->near == RP_MAP_NONE) return;
    rp_remote_fetch_chunk(rp_remote_item_at(s, it->near)->item.trajectory, SENT_BYTES);
    it->near = rp_remote_item_at(s, it->near)->next;
}

static scout scout_from(rp_remote_sink *s, uint32_t slot)
{
    scout it = {slot, slot};

    for (int i = 0; i < RP_REMOTE_AHEAD; i++) scout_far(s, &it);
    for (int i = 0; i < RP_REMOTE_AHEAD; i++) scout_on(s, &it);
    return it;
}

bool rp_remote_build(rp_remote_sink *s, rp_insert_draft *d, size_t limit)
{
    rp_trust trust = rp_remote_item_at(s, s->cursor)->trust;
    const uint64_t *keys;
    size_t missing, kept;
    scout ahead;

    if (!begin_draft(s, d)) return false;
    s->message++;
    s->linger_ns = rp_loop_now(s->loop) + RP_LINGER_NS;
    ahead = scout_from(s, s->cursor);
    while (s->cursor != RP_MAP_NONE && fits(s, d, limit, trust, &missing)) {
        rp_listed_item *item = rp_remote_item_at(s, s->cursor);

        item->message = s->message;
        if (s->unsent == s->cursor) s->unsent = item->next;
        s->cursor = item->next;
        scout_on(s, &ahead);
        if (!add_chunks(s, d, item, missing)) return false;
        s->wire_items[d->count++] = (rp_wire_insert){
            .key = item->item.key,
            .table = item->item.table,
            .table_size = strlen(item->item.table),
            .priority = item->item.priority,
            .trajectory = item->item.trajectory,
        };
    }
    kept = rp_sent_chunks_keep(&s->chunks, &keys);
    return rp_insert_request_add_items(d->reply, s->wire_items, d->count) &&
           (kept == 0 || rp_insert_request_add_keep(d->reply, keys, kept)) && send_draft(s, d);
}

bool rp_remote_is_retried(rp_status status, const char *text)
{
    /* The server's texts begin so if the table is closed: it takes no item any more. */
    if (status == RP_CANCELLED && strncmp(text, "table '", 7) == 0 &&
        (strstr(text, "' is closed") != NULL || strstr(text, "' was closed") != NULL))
        return false;
    /* "Stream removed" is the text of gRPC's C core for a stream that broke. */
    return status == RP_UNAVAILABLE || status == RP_CANCELLED || status == RP_OK ||
           ((int)status == 2 && strcmp(text, "Stream removed") == 0);
}

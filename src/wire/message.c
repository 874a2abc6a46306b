/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message.h"

#include <assert.h>

#include "util/mem.h"

enum {
    MAX_IDLE = 4096,               /* most messages that a pool keeps */
    MAX_IDLE_BYTES = 16 << 20,     /* most memory of all these messages */
    MAX_IDLE_ONE_BYTES = 512 << 10 /* of one: enough for the bytes that the server copies */
};

static size_t memory_of(const rp_message *reply)
{
    return sizeof *reply + reply->bytes.capacity +
           reply->piece_capacity * sizeof *reply->pieces +
           reply->hold_capacity * sizeof *reply->holds;
}

void rp_message_pool_init(rp_message_pool *pool, const rp_allocator *alloc)
{
    *pool = (rp_message_pool){.alloc = alloc};
}

static void release_kept(rp_message *reply)
{
    if (reply->kept != NULL) reply->give_back(reply->kept);
    reply->kept = NULL;
}

static void destroy(rp_message_pool *pool, rp_message *reply)
{
    rp_buf_deinit(&reply->bytes);
    rp_release(pool->alloc, reply->pieces, reply->piece_capacity * sizeof *reply->pieces);
    rp_release(pool->alloc, reply->holds, reply->hold_capacity * sizeof(rp_trajectory *));
    rp_release(pool->alloc, reply, sizeof *reply);
}

void rp_message_pool_deinit(rp_message_pool *pool)
{
    while (pool->idle != NULL) {
        rp_message *reply = pool->idle;
        pool->idle = reply->next;
        destroy(pool, reply);
    }
    pool->idle_count = pool->idle_bytes = 0;
}

rp_message *rp_message_new(rp_message_pool *pool)
{
    rp_message *reply = pool->idle;

    if (reply != NULL) {
        pool->idle = reply->next;
        assert(pool->idle_count > 0 && pool->idle_bytes >= memory_of(reply)); /* R3 */
        pool->idle_count--;
        pool->idle_bytes -= memory_of(reply);
    } else {
        reply = rp_alloc_zero(pool->alloc, sizeof *reply);
        if (reply == NULL) return NULL;
        rp_buf_init(&reply->bytes, pool->alloc);
    }
    if (rp_buf_reserve(&reply->bytes, RP_GRPC_PREFIX) == NULL) {
        destroy(pool, reply);
        return NULL;
    }
    reply->next = NULL;
    reply->bytes.size = RP_GRPC_PREFIX;
    return reply;
}

void rp_message_release(rp_message_pool *pool, rp_message *reply)
{
    size_t bytes;

    if (reply == NULL) return;
    assert(reply->left <= reply->given); /* R2 */
    for (size_t i = 0; i < reply->hold_count; i++) rp_trajectory_unref(reply->holds[i]);
    release_kept(reply);
    bytes = memory_of(reply);
    if (pool->idle_count >= MAX_IDLE || bytes > MAX_IDLE_ONE_BYTES ||
        pool->idle_bytes + bytes > MAX_IDLE_BYTES) {
        destroy(pool, reply);
        return;
    }
    rp_buf_clear(&reply->bytes);
    reply->piece_count = reply->hold_count = reply->borrowed = reply->size = 0;
    reply->own_given = reply->piece_given = reply->piece_part = reply->given = reply->left = 0;
    reply->next = pool->idle;
    pool->idle = reply;
    pool->idle_count++;
    pool->idle_bytes += bytes;
}

bool rp_message_add(rp_message *reply, const uint8_t *data, size_t size)
{
    if (size < RP_MESSAGE_COPY_BYTES) {
        rp_buf_append(&reply->bytes, data, size);
        return !reply->bytes.bad;
    }
    if (reply->piece_count == reply->piece_capacity) {
        size_t capacity = reply->piece_capacity > 0 ? 2 * reply->piece_capacity : 8;
        if (!rp_resize_array(reply->bytes.alloc, &reply->pieces, reply->piece_capacity,
                             capacity, sizeof *reply->pieces)) {
            reply->bytes.bad = true;
            return false;
        }
        reply->piece_capacity = capacity;
    }
    reply->pieces[reply->piece_count++] = (rp_message_piece){reply->bytes.size, data, size};
    reply->borrowed += size;
    assert(reply->size == 0); /* not closed */
    return true;
}

bool rp_message_hold(rp_message *reply, rp_trajectory *trajectory)
{
    if (reply->hold_count == reply->hold_capacity) {
        size_t capacity = reply->hold_capacity > 0 ? 2 * reply->hold_capacity : 8;
        if (!rp_resize_array(reply->bytes.alloc, &reply->holds, reply->hold_capacity, capacity,
                             sizeof(rp_trajectory *))) {
            reply->bytes.bad = true;
            return false;
        }
        reply->hold_capacity = capacity;
    }
    reply->holds[reply->hold_count++] = trajectory;
    return true;
}

void rp_reply_keep(rp_message *reply, void *kept, void (*give_back)(void *kept))
{
    assert(reply->kept == NULL);
    reply->kept = kept;
    reply->give_back = give_back;
}

bool rp_message_close(rp_message *reply)
{
    size_t body = reply->bytes.size - RP_GRPC_PREFIX + reply->borrowed;
    uint8_t *prefix = reply->bytes.data;

    assert(reply->bytes.size >= RP_GRPC_PREFIX && reply->size == 0);
    if (reply->bytes.bad || body > UINT32_MAX) return false;
    prefix[0] = 0;
    for (unsigned i = 0; i < 4; i++) prefix[1 + i] = (uint8_t)(body >> (24 - 8 * i));
    reply->size = body + RP_GRPC_PREFIX;
    return true;
}

size_t rp_message_take(rp_message *reply, size_t limit, const uint8_t **data)
{
    bool has_piece = reply->piece_given < reply->piece_count;
    const rp_message_piece *piece = has_piece ? &reply->pieces[reply->piece_given] : NULL;
    size_t own_end = has_piece ? piece->at : reply->bytes.size;
    size_t size;

    assert(reply->size > 0 && reply->given <= reply->size); /* R2 */
    if (reply->own_given < own_end) {
        size = own_end - reply->own_given;
        if (size > limit) size = limit;
        *data = reply->bytes.data + reply->own_given;
        reply->own_given += size;
    } else if (has_piece) {
        size = piece->size - reply->piece_part;
        if (size > limit) size = limit;
        *data = piece->data + reply->piece_part;
        reply->piece_part += size;
        if (reply->piece_part == piece->size) {
            reply->piece_given++;
            reply->piece_part = 0;
        }
    } else {
        return 0;
    }
    reply->given += size;
    return size;
}

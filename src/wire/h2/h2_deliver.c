/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers complete messages to the handler, and keeps those of paused calls. */
#include <assert.h>

#include "util/mem.h"
#include "wire/h2/h2_inside.h"

/* Memory of a waiting message besides its bytes. It is counted too, as a peer may send any
 * number of empty messages. */
enum { WAITING_BYTES = sizeof(rp_block) + sizeof(rp_waiting_message) };

bool rp_h2_may_deliver(rp_call *call, size_t size)
{
    const rp_h2 *h2 = call->h2;

    if (h2->handler->may_deliver == NULL || h2->handler->may_deliver(h2->user, call, size))
        return true;
    rp_call_pause(call);
    return false;
}

void rp_h2_deliver(rp_call *call, const uint8_t *data, size_t size, rp_block *block)
{
    assert(!call->paused && !call->closed); /* H6 */
    if (!call->is_again) {
        call->h2->messages++;
        rp_h2_earn(&call->h2->earned_fragments, RP_H2_MESSAGE_FRAGMENTS, RP_H2_EARNED_MOST);
    }
    call->h2->handler->on_message(call->h2->user, call, data, size, block);
    assert(!call->again || block != NULL);
    call->is_again = call->again && !call->finishing && !call->closed;
    call->again = false;
}

void rp_call_deliver_again(rp_call *call)
{
    call->again = true;
    rp_call_pause(call);
}

bool rp_call_is_again(const rp_call *call)
{
    return call->is_again;
}

/* Keeps a message until the call is resumed. Takes ownership of the block. */
static void keep_waiting(rp_call *call, rp_block *block)
{
    rp_waiting_message *waiting = rp_alloc(&call->h2->alloc, sizeof *waiting);

    assert(call->paused && *call->last_waiting == NULL);
    if (waiting == NULL) {
        call->h2->held -= block->size;
        rp_block_unref(block);
        rp_h2_fault(call, RP_FAULT_MEMORY, RP_NO_RESOURCE, "out of memory for a message");
        return;
    }
    call->h2->held += WAITING_BYTES;
    *waiting = (rp_waiting_message){block, NULL};
    *call->last_waiting = waiting;
    call->last_waiting = &waiting->next;
}

void rp_h2_deliver_block(rp_call *call, rp_block *block)
{
    if (call->paused || !rp_h2_may_deliver(call, block->size)) {
        keep_waiting(call, block);
        return;
    }
    call->h2->held -= block->size;
    rp_h2_deliver(call, block->data, block->size, block);
    if (call->is_again) {
        call->h2->held += block->size;
        keep_waiting(call, block);
    } else {
        rp_block_unref(block);
    }
}

void rp_h2_drop_waiting(rp_call *call)
{
    rp_h2 *h2 = call->h2;

    while (call->first_waiting != NULL) {
        rp_waiting_message *waiting = call->first_waiting;
        call->first_waiting = waiting->next;
        h2->held -= waiting->block->size + WAITING_BYTES;
        rp_block_unref(waiting->block);
        rp_release(&h2->alloc, waiting, sizeof *waiting);
    }
    call->last_waiting = &call->first_waiting;
}

void rp_call_pause(rp_call *call)
{
    call->paused = true;
    rp_h2_count_assembling(call);
}

bool rp_call_is_paused(const rp_call *call)
{
    return call->paused;
}

static void take_first(rp_call *call, const rp_waiting_message *waiting)
{
    assert(call->first_waiting == waiting);
    assert(call->h2->held >= waiting->block->size + WAITING_BYTES); /* H3 */
    call->first_waiting = waiting->next;
    if (call->first_waiting == NULL) call->last_waiting = &call->first_waiting;
    call->h2->held -= waiting->block->size + WAITING_BYTES;
}

/* Makes a message that is to be delivered again the first one that waits. */
static void put_back(rp_call *call, rp_waiting_message *waiting)
{
    assert(call->paused);
    waiting->next = call->first_waiting;
    if (waiting->next == NULL) call->last_waiting = &waiting->next;
    call->first_waiting = waiting;
    call->h2->held += waiting->block->size + WAITING_BYTES;
}

void rp_call_resume(rp_call *call)
{
    rp_h2 *h2 = call->h2;

    if (!call->paused) return;
    call->paused = false;
    while (call->first_waiting != NULL && !call->paused && !call->finishing) {
        rp_waiting_message *waiting = call->first_waiting;
        rp_block *block = waiting->block;
        if (!rp_h2_may_deliver(call, block->size)) break;
        take_first(call, waiting);
        rp_h2_deliver(call, block->data, block->size, block);
        if (call->is_again) {
            put_back(call, waiting);
            break;
        }
        rp_release(&h2->alloc, waiting, sizeof *waiting);
        rp_block_unref(block);
    }
    if (call->paused || call->finishing) return;
    rp_h2_count_assembling(call);
    rp_h2_need(h2, nghttp2_session_consume_stream(h2->session, call->id, call->withheld));
    call->withheld = 0;
    if (call->half_closed) rp_h2_tell_half_close(call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A call on several shards, one part for each: started on the loop thread; completed there or
 * by the waiting caller.
 *
 * The caller sleeps until the last part has ended; channels enforce the deadlines. A cancel
 * token wakes the caller, which then cancels the parts on the loop; parts that have ended keep
 * their result. A shard that is away holds up no call that another shard can respond to:
 * otherwise each call would take as long as an attempt to connect to a host that is gone. Once
 * a shard has responded, those without a connection get a share of the time that is left: a
 * shard that accepts connections and says nothing leaves the rest to the calls that follow.
 *
 * Handing a call to another thread and back takes longer than the call itself. So if the loop
 * sleeps, the caller sends the request as a guest of the loop, watches the connection for a
 * while and reads the response.
 *
 * Invariants, on the loop thread:
 *   U1  `left` is the number of parts that are not over;
 *   U2  a part that is over has no call on its channel. */
#include "client/unary.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net/link.h"
#include "util/cancel.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    WATCH_NS = 500000, /* how long a caller watches the connection before the loop does */
    POLL_NS = 50000,   /* how long it polls the connection before it sleeps */
    CONNECT_SHARE = 4, /* a shard gets 1 / CONNECT_SHARE of the time left to be connected to */
};

typedef struct part {
    rp_channel_call call; /* first */
    rp_unary *unary;
    rp_channel *channel;
    rp_unary_response response;
    rp_buf copy;     /* of a small response */
    rp_block *block; /* a reference to a large one, or NULL */
    bool over, has_response, repeated;
} part;

struct rp_unary {
    rp_post post; /* first */
    rp_allocator alloc;
    rp_unary_request request;
    atomic_uint_fast64_t *left_out; /* of the client */
    int64_t until_ns;
    size_t left;     /* parts that are not over; used on the loop thread */
    bool is_hurried; /* hurry() has run; used on the loop thread */
    bool is_guest;   /* the caller's thread has entered the loop to begin the call */
    size_t count;
    rp_cancel_link cancel;
    rp_mutex mu; /* rank 60 */
    rp_cond cv;
    bool over RP_GUARDED_BY(mu);
    bool cancelled RP_GUARDED_BY(mu);
    part parts[];
};

/* Leaves shards that have no connection a share of the time, now that another has responded. */
static void hurry(rp_unary *u)
{
    int64_t now_ns = rp_now_ns();

    if (u->is_hurried || u->until_ns == RP_FOREVER || u->until_ns <= now_ns) return;
    u->is_hurried = true;
    for (size_t i = 0; i < u->count; i++)
        if (!u->parts[i].over)
            rp_channel_connect_by(&u->parts[i].call,
                                  now_ns + (u->until_ns - now_ns) / CONNECT_SHARE);
}

static void end_part(part *p, rp_status status, const char *text)
{
    rp_unary *u = p->unary;

    assert(!p->over && u->left > 0); /* U1 */
    assert(p->call.channel == NULL); /* U2 */
    p->over = true;
    p->response.status = status;
    if (text[0] != '\0') (void)snprintf(p->response.text, sizeof p->response.text, "%s", text);
    if (--u->left > 0) {
        if (status == RP_OK) hurry(u);
        return;
    }
    rp_mutex_lock(&u->mu);
    u->over = true;
    rp_cond_signal(&u->cv);
    rp_mutex_unlock(&u->mu);
}

static void drop_response(part *p)
{
    rp_block_unref(p->block);
    p->block = NULL;
    rp_buf_clear(&p->copy);
    p->has_response = false;
}

static void on_begin(rp_channel_call *call)
{
    part *p = (part *)call;
    const rp_buf *message = p->unary->request.message;
    rp_message *out = rp_channel_new_message(p->channel);

    p->response.is_reached = true;
    assert(!p->over && !p->has_response);
    /* Before the request is sent: otherwise the response may wake the loop. */
    if (p->unary->is_guest) (void)rp_channel_borrow(call);
    /* Copied, because a message that was sent in part outlives the call. */
    if (out != NULL && message != NULL)
        rp_buf_append(&out->bytes, message->data, message->size);
    if (out == NULL || !rp_message_close(out)) {
        rp_channel_drop_message(p->channel, out);
        rp_channel_cancel(call);
        end_part(p, RP_NO_RESOURCE, "out of memory for a request");
        return;
    }
    rp_channel_send(call, out);
    rp_channel_half_close(call);
}

static void on_message(rp_channel_call *call, const uint8_t *data, size_t size, rp_block *block)
{
    part *p = (part *)call;

    assert(!p->over);
    if (p->has_response) {
        rp_channel_cancel(call);
        end_part(p, RP_CORRUPT, "the server sent two responses");
        return;
    }
    p->has_response = true;
    if (block != NULL) {
        p->block = rp_block_ref(block);
        p->response.data = data;
    } else {
        rp_buf_append(&p->copy, data, size);
        p->response.data = p->copy.data;
    }
    p->response.size = size;
}

static void on_end(rp_channel_call *call, rp_status status, const char *text)
{
    part *p = (part *)call;

    if (status == RP_UNAVAILABLE && p->response.is_reached && p->unary->request.repeatable &&
        !p->repeated) {
        p->repeated = true;
        drop_response(p);
        rp_channel_begin(p->channel, call);
        return;
    }
    if (status == RP_OK && !p->has_response)
        end_part(p, RP_CORRUPT, "the server ended the call without a response");
    else if (status == RP_OK && p->copy.bad)
        end_part(p, RP_NO_RESOURCE, "out of memory for a response");
    else
        end_part(p, status, text);
}

static const rp_channel_call_class unary_class = {
    .on_begin = on_begin, .on_message = on_message, .on_end = on_end};

static void begin_all(rp_post *post)
{
    rp_unary *u = (rp_unary *)post;
    bool has_other = false; /* a shard that is not known to be away */

    for (size_t i = 0; i < u->count; i++)
        has_other = has_other || !rp_channel_is_away(u->parts[i].channel);
    for (size_t i = 0; i < u->count; i++) {
        part *p = &u->parts[i];

        p->call = (rp_channel_call){.class = &unary_class,
                                    .path = u->request.path,
                                    .deadline_ns = u->until_ns,
                                    .connect_by_ns = u->request.connect_by_ns,
                                    .fails_fast = true,
                                    .skips_away =
                                        u->request.skips_away || (has_other && u->count > 1)};
        rp_channel_begin(p->channel, &p->call);
    }
}

static void cancel_all(void *arg)
{
    rp_unary *u = arg;

    for (size_t i = 0; i < u->count; i++) {
        part *p = &u->parts[i];

        if (p->over) continue;
        rp_channel_cancel(&p->call);
        end_part(p, RP_CANCELLED, "cancelled");
    }
}

static void on_fire(rp_cancel_link *link)
{
    rp_unary *u = (rp_unary *)((char *)link - offsetof(rp_unary, cancel));

    rp_mutex_lock(&u->mu);
    u->cancelled = true;
    rp_cond_signal(&u->cv);
    rp_mutex_unlock(&u->mu);
}

/* Ends all parts, before any has begun, if the token has fired. */
static bool is_fired(rp_unary *u)
{
    bool fired;

    rp_mutex_lock(&u->mu);
    fired = u->cancelled;
    rp_mutex_unlock(&u->mu);
    for (size_t i = 0; fired && i < u->count; i++)
        end_part(&u->parts[i], RP_CANCELLED, "cancelled");
    return fired;
}

/* Waits. Returns true if all parts are over, false if the call was cancelled before. */
static bool sleep_until_over(rp_unary *u)
{
    bool over;

    rp_mutex_lock(&u->mu);
    while (!u->over && !u->cancelled) (void)rp_cond_wait(&u->cv, &u->mu, RP_FOREVER);
    over = u->over;
    rp_mutex_unlock(&u->mu);
    return over;
}

/* Polls the connection for POLL_NS: a thread that sleeps gets the processor later than the
 * response. Returns true if there is something to read. */
static bool poll_for(rp_channel *channel, int fd)
{
    const int64_t until_ns = rp_now_ns() + POLL_NS;
    bool has_bytes = false;

    if (!rp_polling_may(rp_channel_polling(channel))) return false;
    do {
        has_bytes = rp_link_is_readable(fd);
    } while (!has_bytes && rp_now_ns() < until_ns);
    rp_polling_count(rp_channel_polling(channel), has_bytes);
    return has_bytes;
}

/* Watches the connection for the response, for WATCH_NS. */
static void watch_for(rp_unary *u, rp_loop *loop, int fd)
{
    const int64_t until_ns = rp_now_ns() + WATCH_NS;
    rp_channel_call *call = &u->parts[0].call;
    bool is_ready = poll_for(u->parts[0].channel, fd), goes_on;

    do {
        is_ready = is_ready || rp_link_await(fd, until_ns - rp_now_ns());
        rp_loop_enter(loop);
        if (is_ready) rp_channel_read(call);
        goes_on = is_ready && rp_channel_borrows(call); /* false once the call has ended */
        if (!goes_on) rp_channel_give_back(call);
        rp_loop_leave(loop);
        is_ready = false;
    } while (goes_on);
}

/* Makes the call on this thread. Returns false if the loop is busy. */
static bool call_here(rp_unary *u, rp_loop *loop)
{
    int fd;

    /* A call whose deadline has passed must not be sent: the loop checks deadlines first. */
    if (u->count != 1 || u->until_ns <= rp_now_ns() || !rp_loop_try_enter(loop)) return false;
    u->is_guest = true;
    begin_all(&u->post);
    rp_loop_end_turn(loop); /* sends the request, if there is a connection */
    u->is_guest = false;
    fd = rp_channel_borrow(&u->parts[0].call);
    rp_loop_leave(loop);
    if (fd >= 0) watch_for(u, loop, fd);
    return true;
}

static size_t bytes_of(size_t count)
{
    return sizeof(rp_unary) + count * sizeof(part);
}

rp_status rp_unary_call(rp_client *client, const rp_unary_request *request, size_t first,
                        size_t count, rp_wait wait, rp_unary **out, rp_error *err)
{
    rp_client_live *live;
    rp_status st = rp_client_get_live(client, &live, err);
    rp_unary *u;

    if (st != RP_OK) return st;
    assert(count >= 1 && first + count <= live->channel_count);
    u = rp_alloc_zero(&client->alloc, bytes_of(count));
    if (u == NULL) return rp_fail_memory(err, bytes_of(count));
    u->post.run = begin_all;
    u->alloc = client->alloc;
    u->request = *request;
    u->left_out = &live->left_out;
    u->until_ns = wait.until_ns;
    u->left = u->count = count;
    u->cancel.on_fire = on_fire;
    rp_mutex_init(&u->mu, RP_RANK_WAITER);
    rp_cond_init(&u->cv);
    for (size_t i = 0; i < count; i++) {
        u->parts[i].unary = u;
        u->parts[i].channel = live->channels[first + i];
        rp_buf_init(&u->parts[i].copy, &u->alloc);
    }
    rp_cancel_join(wait.cancel, &u->cancel);
    if (!is_fired(u)) {
        rp_loop *loop = rp_runtime_loop(live->runtime);
        if (!call_here(u, loop)) rp_loop_post(loop, &u->post);
        if (!sleep_until_over(u)) rp_runtime_run_on_loop(live->runtime, cancel_all, u);
    }
    rp_cancel_part(wait.cancel, &u->cancel);
    *out = u;
    return RP_OK;
}

const rp_unary_response *rp_unary_response_of(const rp_unary *u, size_t i)
{
    assert(i < u->count && u->parts[i].over);
    return &u->parts[i].response;
}

size_t rp_unary_count(const rp_unary *u)
{
    return u->count;
}

/* Returns true if the shard could not be reached, or not in time. */
static bool is_away(const rp_unary_response *a)
{
    return a->status == RP_UNAVAILABLE || (a->status == RP_DEADLINE && !a->is_reached);
}

/* Reports that no shard could be reached: each shard's text, as far as there is room. */
static rp_status fail_all(const rp_unary *u, rp_status status, rp_error *err)
{
    enum { REST = 16 }; /* bytes for "; and 65535 more" */
    char text[RP_ERROR_TEXT_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", u->parts[0].response.text), i = 1;

    for (; i < u->count; i++) {
        const char *other = u->parts[i].response.text;
        size_t more = strlen(other) + 2;

        if (used + more + REST >= sizeof text) break;
        (void)snprintf(text + used, sizeof text - used, "; %s", other);
        used += more;
    }
    if (i < u->count && used + REST < sizeof text)
        (void)snprintf(text + used, sizeof text - used, "; and %zu more", u->count - i);
    return rp_fail(err, status, "%s", text);
}

rp_status rp_unary_result(const rp_unary *u, rp_error *err)
{
    const rp_unary_response *bad = NULL;
    bool has_result = false;

    assert(u->left == 0); /* U1: all parts are over */
    for (size_t i = 0; i < u->count; i++) {
        const rp_unary_response *a = &u->parts[i].response;

        if (a->status == RP_OK) {
            has_result = true;
        } else if (!is_away(a)) {
            bad = a;
            break;
        } else if (bad == NULL) {
            bad = a;
        }
    }
    if (bad != NULL && !has_result && is_away(bad)) return fail_all(u, bad->status, err);
    if (bad != NULL && !is_away(bad)) return rp_fail(err, bad->status, "%s", bad->text);
    for (size_t i = 0; i < u->count; i++) {
        if (!is_away(&u->parts[i].response)) continue;
        rp_channel_count_left_out(u->parts[i].channel);
        (void)atomic_fetch_add_explicit(u->left_out, 1, memory_order_relaxed);
    }
    return RP_OK;
}

void rp_unary_free(rp_unary *u)
{
    if (u == NULL) return;
    assert(u->left == 0); /* U1 */
    for (size_t i = 0; i < u->count; i++) {
        rp_block_unref(u->parts[i].block);
        rp_buf_deinit(&u->parts[i].copy);
    }
    rp_cond_deinit(&u->cv);
    rp_mutex_deinit(&u->mu);
    rp_allocator alloc = u->alloc;
    rp_release(&alloc, u, bytes_of(u->count));
}

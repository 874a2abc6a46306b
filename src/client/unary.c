/* SPDX-License-Identifier: Apache-2.0 */
/* A call on several shards: begun by a post as the loop's thread, ended by whoever that is, and
 * waited for here.
 *
 * Whoever waits sleeps until the last part is over; deadlines are kept by the channels. A token
 * that is fired wakes it too: then it has the loop take the parts back, and what had ended by
 * then stays as it is.
 *
 * Two threads that hand a call over and back take longer than the call itself. So if the loop
 * sleeps, the one who calls sends it, watches the connection for a while and reads the answer.
 */
#include "client/unary.h"

#include <stdio.h>

#include "net/link.h"
#include "util/cancel.h"
#include "util/error.h"
#include "util/mem.h"

enum { WATCH_NS = 500000 }; /* for how long; then the loop does it */

typedef struct part {
    rp_channel_call call; /* first */
    rp_unary *unary;
    rp_channel *channel;
    rp_unary_answer answer;
    rp_buf copy;     /* of a small answer; */
    rp_block *block; /* a large one stays where it is */
    bool over, has_answer, repeated;
} part;

struct rp_unary {
    rp_post post; /* first */
    rp_allocator alloc;
    rp_unary_request request;
    int64_t until_ns;
    size_t left; /* parts that are not over; the loop's thread's */
    size_t count;
    rp_cancel_link cancel;
    rp_mutex mu; /* rank 60 */
    rp_cond cv;
    bool over RP_GUARDED_BY(mu);
    bool cancelled RP_GUARDED_BY(mu);
    part parts[];
};

static void end_part(part *p, rp_status status, const char *text)
{
    rp_unary *u = p->unary;

    p->over = true;
    p->answer.status = status;
    (void)snprintf(p->answer.text, sizeof p->answer.text, "%s", text);
    if (--u->left > 0) return;
    rp_mutex_lock(&u->mu);
    u->over = true;
    rp_cond_signal(&u->cv);
    rp_mutex_unlock(&u->mu);
}

static void forget_answer(part *p)
{
    rp_block_unref(p->block);
    p->block = NULL;
    rp_buf_clear(&p->copy);
    p->has_answer = false;
}

static void on_begin(rp_channel_call *call)
{
    part *p = (part *)call;
    const rp_buf *message = p->unary->request.message;
    rp_reply *out = rp_channel_new_message(p->channel);

    p->answer.is_reached = true;
    /* Copied: what has half gone out when the call ends is still to go out then. */
    if (out != NULL && message != NULL)
        rp_buf_append(&out->bytes, message->data, message->size);
    if (out == NULL || !rp_reply_close(out)) {
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

    if (p->has_answer) {
        rp_channel_cancel(call);
        end_part(p, RP_CORRUPT, "the server answered twice");
        return;
    }
    p->has_answer = true;
    if (block != NULL) {
        p->block = rp_block_ref(block);
        p->answer.data = data;
    } else {
        rp_buf_append(&p->copy, data, size);
        p->answer.data = p->copy.data;
    }
    p->answer.size = size;
}

static void on_end(rp_channel_call *call, rp_status status, const char *text)
{
    part *p = (part *)call;

    if (status == RP_UNAVAILABLE && p->answer.is_reached && p->unary->request.repeatable &&
        !p->repeated) {
        p->repeated = true;
        forget_answer(p);
        rp_channel_begin(p->channel, call);
        return;
    }
    if (status == RP_OK && !p->has_answer)
        end_part(p, RP_CORRUPT, "the server ended the call without an answer");
    else if (status == RP_OK && p->copy.bad)
        end_part(p, RP_NO_RESOURCE, "out of memory for an answer");
    else
        end_part(p, status, text);
}

static const rp_channel_call_class unary_class = {
    .on_begin = on_begin, .on_message = on_message, .on_end = on_end};

static void begin_all(rp_post *post)
{
    rp_unary *u = (rp_unary *)post;

    for (size_t i = 0; i < u->count; i++) {
        part *p = &u->parts[i];

        p->call = (rp_channel_call){.class = &unary_class,
                                    .path = u->request.path,
                                    .deadline_ns = u->until_ns,
                                    .fails_fast = true};
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

/* With a token that has been fired already nothing is begun: all parts end here. */
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

/* True once it is over, false if it is cancelled before. */
static bool sleep_until_over(rp_unary *u)
{
    bool over;

    rp_mutex_lock(&u->mu);
    while (!u->over && !u->cancelled) (void)rp_cond_wait(&u->cv, &u->mu, RP_FOREVER);
    over = u->over;
    rp_mutex_unlock(&u->mu);
    return over;
}

/* Waits for the answer where it comes in, for a moment. */
static void watch_for(rp_unary *u, rp_loop *loop, int fd)
{
    const int64_t until_ns = rp_now_ns() + WATCH_NS;
    rp_channel_call *call = &u->parts[0].call;
    bool goes_on;

    do {
        goes_on = rp_link_await(fd, until_ns - rp_now_ns());
        rp_loop_enter(loop);
        if (goes_on) rp_channel_read(call);
        goes_on = goes_on && rp_channel_borrows(call); /* or it is over, or its connection is */
        if (!goes_on) rp_channel_give_back(call);
        rp_loop_leave(loop);
    } while (goes_on);
}

/* Does the call on this thread, as far as it is quick. False if the loop has other things to
 * do. */
static bool call_here(rp_unary *u, rp_loop *loop)
{
    int fd;

    /* One that has no time is not to be sent: the loop looks at times first. */
    if (u->count != 1 || u->until_ns <= rp_now_ns() || !rp_loop_try_enter(loop)) return false;
    begin_all(&u->post);
    rp_loop_end_turn(loop); /* it is sent, if there is a connection */
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
    u = rp_alloc_zero(&client->alloc, bytes_of(count));
    if (u == NULL) return rp_fail_memory(err, bytes_of(count));
    u->post.run = begin_all;
    u->alloc = client->alloc;
    u->request = *request;
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

const rp_unary_answer *rp_unary_answer_of(const rp_unary *u, size_t i)
{
    return &u->parts[i].answer;
}

size_t rp_unary_count(const rp_unary *u)
{
    return u->count;
}

/* Whether a shard is merely not there. One that could not be reached in time is not either. */
static bool is_away(const rp_unary_answer *a)
{
    return a->status == RP_UNAVAILABLE || (a->status == RP_DEADLINE && !a->is_reached);
}

rp_status rp_unary_result(const rp_unary *u, rp_error *err)
{
    const rp_unary_answer *bad = NULL;
    bool is_answered = false;

    for (size_t i = 0; i < u->count; i++) {
        const rp_unary_answer *a = &u->parts[i].answer;

        if (a->status == RP_OK) {
            is_answered = true;
        } else if (!is_away(a)) {
            bad = a;
            break;
        } else if (bad == NULL) {
            bad = a;
        }
    }
    if (bad == NULL || (is_answered && is_away(bad))) return RP_OK;
    return rp_fail(err, bad->status, "%s", bad->text);
}

void rp_unary_free(rp_unary *u)
{
    if (u == NULL) return;
    for (size_t i = 0; i < u->count; i++) {
        rp_block_unref(u->parts[i].block);
        rp_buf_deinit(&u->parts[i].copy);
    }
    rp_cond_deinit(&u->cv);
    rp_mutex_deinit(&u->mu);
    rp_allocator alloc = u->alloc;
    rp_release(&alloc, u, bytes_of(u->count));
}

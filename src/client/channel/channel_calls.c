/* SPDX-License-Identifier: Apache-2.0 */
/* A channel: which calls wait, whether there is a connection, and when to connect.
 *
 *   idle -> connecting -> greeting -> up
 *    ^          |            |         |
 *    |          v            v         |  it broke, or the server closed it
 *    +------ resting <-------+---------+
 *
 * Backoff: the first pause is retry_min. It doubles with each failed attempt, up to retry_max.
 * Jitter shortens each pause by up to half, so that clients of one server do not reconnect all
 * at once. The response to a call resets the backoff; a greeting does not, because a server may
 * greet and then close.
 *
 * Calls begin at the end of a turn, never from within rp_channel_begin().
 *
 * The invariants are in channel_inside.h. */
#include <assert.h>
#include <stdio.h>

#include "client/channel/channel_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"
#include "util/verify.h"

static const int64_t MS = 1000000;

static void connect_if_wanted(rp_channel *c);

static void set_why(rp_channel *c, const char *why)
{
    rp_mutex_lock(&c->mu);
    if (why[0] == '\0')
        c->why[0] = '\0';
    else
        (void)snprintf(c->why, sizeof c->why, "%.80s: %s", c->options.text, why);
    rp_mutex_unlock(&c->mu);
}

const char *rp_channel_address(const rp_channel *channel)
{
    return channel->options.text;
}

void rp_channel_why(const rp_channel *channel, char *text, size_t size)
{
    rp_channel *c = (rp_channel *)channel; /* for its lock */

    rp_mutex_lock(&c->mu);
    (void)snprintf(text, size, "%s", c->why);
    rp_mutex_unlock(&c->mu);
}

bool rp_channel_is_connected(const rp_channel *c)
{
    return atomic_load_explicit(&c->is_connected, memory_order_relaxed);
}

int64_t rp_channel_heard_ns(const rp_channel *c)
{
    return (int64_t)atomic_load_explicit(&c->heard_ns, memory_order_relaxed);
}

void rp_channel_count_left_out(rp_channel *c)
{
    (void)atomic_fetch_add_explicit(&c->left_out, 1, memory_order_relaxed);
}

uint64_t rp_channel_left_out(const rp_channel *c)
{
    return atomic_load_explicit(&c->left_out, memory_order_relaxed);
}

bool rp_channel_is_refused(const rp_channel *c)
{
    return atomic_load_explicit(&c->is_refused, memory_order_relaxed);
}

bool rp_channel_is_unix(const rp_channel *c)
{
    return c->address.is_unix;
}

bool rp_channel_is_away(const rp_channel *c)
{
    return c->has_failed && c->state != RP_CHANNEL_UP;
}

int rp_channel_fd(const rp_channel *c)
{
    return c->state == RP_CHANNEL_UP ? c->current->link.fd : -1;
}

rp_share *rp_channel_share(rp_channel *c)
{
    if (!c->address.is_unix || c->options.tls != NULL || c->options.shared_memory_off)
        return NULL;
    return &c->share;
}

#ifndef NDEBUG
static bool is_linked(const rp_channel_call *first, const rp_channel *c, const rp_peer *peer)
{
    const rp_channel_call *prev = NULL;

    for (const rp_channel_call *call = first; call != NULL; prev = call, call = call->next)
        if (call->prev != prev || call->channel != c || call->peer != peer) return false;
    return true;
}

bool rp_channel_is_valid(const rp_channel *c)
{
    const rp_channel_call *last = c->waiting;
    const rp_peer *p = c->current;

    while (last != NULL && last->next != NULL) last = last->next;
    if (!is_linked(c->waiting, c, NULL) || c->last_waiting != last) return false; /* C3 */
    if ((p != NULL) != (c->state == RP_CHANNEL_GREETING || c->state == RP_CHANNEL_UP))
        return false; /* C1 */
    if (p != NULL && !is_linked(p->calls, c, p)) return false;
    for (const rp_peer *q = c->leaving; q != NULL; q = q->next)
        if (q == p || !is_linked(q->calls, c, q)) return false;
    return c->borrower == NULL || c->borrower->peer != NULL; /* C4 */
}
#endif

static void add_waiting(rp_channel *c, rp_channel_call *call)
{
    assert(call->channel == c && call->peer == NULL);
    call->next = NULL;
    call->prev = c->last_waiting;
    *(call->prev == NULL ? &c->waiting : &call->prev->next) = call;
    c->last_waiting = call;
}

static void remove_waiting(rp_channel *c, rp_channel_call *call)
{
    *(call->prev == NULL ? &c->waiting : &call->prev->next) = call->next;
    *(call->next == NULL ? &c->last_waiting : &call->next->prev) = call->prev;
}

void rp_channel_detach(rp_channel_call *call)
{
    rp_channel *c = call->channel;
    rp_peer *p = call->peer;

    assert(c != NULL);                       /* the call has begun and not ended */
    assert(p == NULL || call->call != NULL); /* C2 */
    rp_loop_disarm(c->loop, &call->timer);
    if (c->borrower == call) c->borrower = NULL;
    if (p == NULL) {
        remove_waiting(c, call);
    } else {
        *(call->prev == NULL ? &p->calls : &call->prev->next) = call->next;
        if (call->next != NULL) call->next->prev = call->prev;
        /* A waiting call may begin now, or this was the last call of the connection. */
        if (!p->is_closing) rp_peer_touch(p);
    }
    call->channel = NULL;
    call->peer = NULL;
    call->call = NULL;
}

/* Ends a call on behalf of the client. */
static void end_call(rp_channel_call *call, rp_status status, const char *text)
{
    rp_call *inner = call->call;

    rp_channel_detach(call);
    if (inner != NULL) rp_call_cancel(inner);
    call->class->on_end(call, status, text);
}

static void on_deadline(rp_timer *timer)
{
    rp_channel_call *call =
        (rp_channel_call *)((char *)timer - offsetof(rp_channel_call, timer));
    char why[RP_CHANNEL_TEXT_BYTES + 96], text[RP_CHANNEL_TEXT_BYTES + 160];

    rp_channel_why(call->channel, why, sizeof why);
    if (call->call != NULL)
        (void)snprintf(text, sizeof text, "%.80s: no response in time",
                       call->channel->options.text);
    else if (why[0] == '\0' && call->channel->state == RP_CHANNEL_UP)
        (void)snprintf(text, sizeof text,
                       "%.80s: no response in time: the deadline had passed before the request "
                       "was sent",
                       call->channel->options.text);
    else if (why[0] == '\0' && call->channel->state == RP_CHANNEL_GREETING)
        (void)snprintf(text, sizeof text,
                       "%.80s accepts connections and does not respond: is it stopped or "
                       "overloaded, or no server of gRPC?",
                       call->channel->options.text);
    else if (why[0] == '\0')
        (void)snprintf(text, sizeof text, "%.80s: no connection in time",
                       call->channel->options.text);
    else
        (void)snprintf(text, sizeof text, "no connection in time: %s", why);
    if (call->is_hurried) { /* the calls that follow do not wait for it */
        call->channel->has_failed = true;
        if (why[0] == '\0')
            set_why(call->channel, "accepts connections and does not respond, or not at all");
    }
    end_call(call, RP_DEADLINE, text);
}

static const char given_up[] =
    "the client gave up: this program stopped the server, or called rp_client_give_up()";

static void end_list(rp_channel_call **list, const char *text)
{
    while (*list != NULL) end_call(*list, RP_CANCELLED, text);
}

void rp_channel_touch(rp_channel *c)
{
    rp_runtime_at_turn_end(c->runtime, &c->turn);
}

void rp_channel_begin(rp_channel *c, rp_channel_call *call)
{
    int64_t due_ns = call->deadline_ns;

    assert(call->channel == NULL); /* not begun twice */
    assert(call->class != NULL && call->path != NULL);
    call->channel = c;
    call->peer = NULL;
    call->call = NULL;
    call->attempt = c->attempt;
    call->timer = (rp_timer){.on_due = on_deadline};
    call->is_hurried = false;
    if (call->connect_by_ns != 0 && call->connect_by_ns < due_ns) due_ns = call->connect_by_ns;
    call->starved = due_ns != RP_FOREVER && rp_loop_arm(c->loop, &call->timer, due_ns) != RP_OK;
    add_waiting(c, call);
    rp_channel_touch(c);
}

void rp_channel_connect_by(rp_channel_call *call, int64_t until_ns)
{
    if (call->channel == NULL || call->peer != NULL || call->starved) return;
    if (call->deadline_ns == RP_FOREVER || until_ns >= call->deadline_ns) return;
    /* The timer is armed: this succeeds. */
    call->is_hurried = rp_loop_arm(call->channel->loop, &call->timer, until_ns) == RP_OK;
}

void rp_channel_cancel(rp_channel_call *call)
{
    rp_call *inner = call->call;

    if (call->channel == NULL) return;
    rp_channel_detach(call);
    if (inner != NULL) rp_call_cancel(inner);
}

rp_message *rp_channel_new_message(rp_channel *c)
{
    return rp_message_new(&c->pool);
}

void rp_channel_drop_message(rp_channel *c, rp_message *message)
{
    rp_message_release(&c->pool, message);
}

void rp_channel_send(rp_channel_call *call, rp_message *message)
{
    assert(call->call != NULL && call->peer != NULL);
    rp_call_send(call->call, message);
    rp_peer_touch(call->peer);
}

void rp_channel_half_close(rp_channel_call *call)
{
    assert(call->call != NULL && call->peer != NULL);
    rp_call_half_close(call->call);
    rp_peer_touch(call->peer);
}

size_t rp_channel_queued_bytes(const rp_channel_call *call)
{
    return call->call != NULL ? rp_call_queued_bytes(call->call) : 0;
}

void rp_channel_pause(rp_channel_call *call)
{
    if (call->call != NULL) rp_call_pause(call->call);
}

void rp_channel_resume(rp_channel_call *call)
{
    if (call->call == NULL) return;
    rp_peer_touch(call->peer); /* first: a delivered message may end the call */
    rp_call_resume(call->call);
}

int rp_channel_borrow(rp_channel_call *call)
{
    rp_channel *c = call->channel;

    /* Bytes that TLS has buffered do not make a descriptor readable. */
    if (c == NULL || call->peer == NULL || c->options.tls != NULL) return -1;
    if (c->borrower == NULL) {
        c->borrower = call;
        rp_peer_touch(call->peer);
    }
    return c->borrower == call ? call->peer->link.fd : -1;
}

rp_polling *rp_channel_polling(rp_channel *c)
{
    return &c->polling;
}

bool rp_channel_borrows(const rp_channel_call *call)
{
    return call->channel != NULL && call->channel->borrower == call;
}

void rp_channel_read(rp_channel_call *call)
{
    if (rp_channel_borrows(call) && call->peer->state == RP_PEER_UP) rp_peer_read(call->peer);
}

void rp_channel_give_back(rp_channel_call *call)
{
    if (!rp_channel_borrows(call)) return;
    call->channel->borrower = NULL;
    rp_peer_touch(call->peer);
}

/* Ends the calls with fails_fast that waited for this attempt. */
static void end_hasty(rp_channel *c, uint64_t attempt)
{
    char why[RP_CHANNEL_TEXT_BYTES + 96];
    rp_channel_call *call;

    /* This attempt may have begun before the client gave up, and the call after it. */
    if (c->is_given_up) end_list(&c->waiting, given_up);
    rp_channel_why(c, why, sizeof why);
    do { /* from the start each time: on_end may begin and cancel other calls */
        call = c->waiting;
        while (call != NULL && !(call->fails_fast && call->attempt <= attempt))
            call = call->next;
        if (call != NULL) end_call(call, RP_UNAVAILABLE, why);
    } while (call != NULL);
}

static void rest(rp_channel *c)
{
    const rp_channel_options *o = &c->options;
    int64_t half_ns;

    assert(c->state == RP_CHANNEL_IDLE || c->state == RP_CHANNEL_CONNECTING);
    assert(c->current == NULL);
    c->pause_ns = c->pause_ns == 0 ? o->retry_min_ns : 2 * c->pause_ns;
    if (c->pause_ns > o->retry_max_ns) c->pause_ns = o->retry_max_ns;
    half_ns = c->pause_ns / 2;
    half_ns += (int64_t)rp_rng_below(&c->rng, (uint64_t)half_ns + 1);
    c->state = RP_CHANNEL_RESTING;
    assert(half_ns <= c->pause_ns && c->pause_ns <= o->retry_max_ns);
    /* Without memory for a timer the next call connects at once. */
    if (rp_loop_arm(c->loop, &c->timer, rp_loop_now(c->loop) + half_ns) != RP_OK)
        c->state = RP_CHANNEL_IDLE;
}

static void fail_attempt(rp_channel *c, const char *why, bool is_refused)
{
    uint64_t attempt = c->attempt++;

    c->has_failed = true;
    atomic_store_explicit(&c->is_refused, is_refused, memory_order_relaxed);
    set_why(c, why);
    rest(c);
    end_hasty(c, attempt);
}

static void on_rested(rp_timer *timer)
{
    rp_channel *c = (rp_channel *)((char *)timer - offsetof(rp_channel, timer));

    assert(c->state == RP_CHANNEL_RESTING);
    c->state = RP_CHANNEL_IDLE;
    connect_if_wanted(c);
}

static void on_connected(rp_connector *connector, int fd, const char *why)
{
    rp_channel *c = (rp_channel *)((char *)connector - offsetof(rp_channel, connector));

    assert(c->state == RP_CHANNEL_CONNECTING && c->current == NULL);
    if (fd >= 0) {
        c->current = rp_peer_new(c, fd, c->until_ns);
        why = "out of memory";
    }
    if (c->current == NULL)
        fail_attempt(c, why, false);
    else
        c->state = RP_CHANNEL_GREETING;
}

static void connect_if_wanted(rp_channel *c)
{
    if (c->state != RP_CHANNEL_IDLE || (c->waiting == NULL && !c->is_wanted)) return;
    c->is_wanted = false;
    c->until_ns = rp_loop_now(c->loop) + c->options.connect_timeout_ns;
    if (rp_connector_start(&c->connector, c->until_ns) != RP_OK) {
        fail_attempt(c, "out of memory", false);
        return;
    }
    c->state = RP_CHANNEL_CONNECTING;
}

void rp_channel_on_up(rp_channel *c)
{
    assert(c->state == RP_CHANNEL_GREETING && c->current != NULL);
    c->state = RP_CHANNEL_UP;
    c->has_failed = false;
    c->has_been_up = true;
    atomic_store_explicit(&c->is_refused, false, memory_order_relaxed);
    c->attempt++;
    atomic_store_explicit(&c->is_connected, true, memory_order_relaxed);
    set_why(c, "");
    rp_share_renew(&c->share);
    rp_channel_touch(c);
}

void rp_channel_did_well(rp_channel *c)
{
    c->pause_ns = 0;
}

/* Stops using the current connection for new calls. */
static void leave_current(rp_channel *c)
{
    assert(c->current != NULL);
    c->current = NULL;
    c->state = RP_CHANNEL_IDLE;
    atomic_store_explicit(&c->is_connected, false, memory_order_relaxed);
}

void rp_channel_on_over(rp_channel *c, rp_peer *p)
{
    bool was_current = p == c->current, was_up = c->state == RP_CHANNEL_UP;
    bool is_refused = p->is_refused && !c->has_been_up;
    char why[RP_CHANNEL_TEXT_BYTES];

    assert(p->channel == c && p->state == RP_PEER_OVER);
    (void)snprintf(why, sizeof why, "%s", p->why);
    if (was_current) {
        leave_current(c);
        if (was_up) set_why(c, why);
    } else {
        *(p->prev == NULL ? &c->leaving : &p->prev->next) = p->next;
        if (p->next != NULL) p->next->prev = p->prev;
    }
    rp_peer_free(p, true); /* its calls end here */
    if (!was_current || c->state != RP_CHANNEL_IDLE) return;
    if (!was_up)
        fail_attempt(c, why, is_refused);
    else if (c->pause_ns != 0)
        rest(c);
    rp_channel_touch(c);
}

static void begin_call(rp_channel *c, rp_channel_call *call)
{
    const rp_channel_options *o = &c->options;
    rp_call_head head = {.path = call->path,
                         .authority = c->authority,
                         .authorization = o->authorization,
                         .secure = o->tls != NULL,
                         .timeout_ns = -1};

    assert(c->state == RP_CHANNEL_UP && call->peer == NULL);
    if (call->deadline_ns != RP_FOREVER) {
        head.timeout_ns = call->deadline_ns - rp_loop_now(c->loop);
        if (head.timeout_ns < 1) head.timeout_ns = 1; /* its timer is due */
    }
    call->call = rp_h2_begin(c->current->h2, &head, call);
    if (call->call == NULL) {
        end_call(call, RP_NO_RESOURCE, "out of memory for a call");
        return;
    }
    if (call->deadline_ns == RP_FOREVER)
        rp_loop_disarm(c->loop, &call->timer);
    else if (call->is_hurried || call->connect_by_ns != 0)
        (void)!rp_loop_arm(c->loop, &call->timer, call->deadline_ns);
    call->is_hurried = false;
    remove_waiting(c, call);
    rp_peer_began(c->current, call);
    call->class->on_begin(call);
}

static void end_starved(rp_channel *c)
{
    rp_channel_call *call;

    do {
        call = c->waiting;
        while (call != NULL && !call->starved) call = call->next;
        if (call != NULL) end_call(call, RP_NO_RESOURCE, "out of memory for a deadline");
    } while (call != NULL);
}

/* Ends the calls that do not wait for a server that is away. */
static void end_skipping(rp_channel *c)
{
    char why[RP_CHANNEL_TEXT_BYTES + 96];
    rp_channel_call *call;

    rp_channel_why(c, why, sizeof why);
    do {
        call = c->waiting;
        while (call != NULL && !call->skips_away) call = call->next;
        if (call != NULL) end_call(call, RP_UNAVAILABLE, why);
        c->is_wanted = c->is_wanted || call != NULL;
    } while (call != NULL);
}

static void on_turn_end(rp_at_turn_end *turn)
{
    rp_channel *c = (rp_channel *)((char *)turn - offsetof(rp_channel, turn));

    end_starved(c);
    if (c->is_given_up) end_list(&c->waiting, given_up);
    if (rp_channel_is_away(c)) end_skipping(c);
    while (c->state == RP_CHANNEL_UP && c->waiting != NULL && rp_h2_can_begin(c->current->h2))
        begin_call(c, c->waiting);
    if (c->state == RP_CHANNEL_UP && c->waiting != NULL && rp_peer_is_leaving(c->current)) {
        rp_peer *p = c->current;

        leave_current(c);
        p->prev = NULL;
        p->next = c->leaving;
        if (p->next != NULL) p->next->prev = p;
        c->leaving = p;
        rp_peer_touch(p); /* it may have no calls left */
        if (c->pause_ns != 0) rest(c);
    }
    connect_if_wanted(c);
    RP_VERIFY(64, rp_channel_is_valid(c));
}

static char *put_string(char **at, const char *text)
{
    char *here = *at;
    size_t bytes = strlen(text) + 1;

    memcpy(here, text, bytes);
    *at += bytes;
    return here;
}

/* Copies the strings of the options. Returns false if there is no memory. */
static bool take_strings(rp_channel *c, const rp_channel_options *o)
{
    const char *name = o->server_name != NULL ? o->server_name : o->address->host;
    const char *authority = o->address->is_unix ? "localhost" : o->text;
    const char *token = o->authorization != NULL ? o->authorization : "";
    char *at;

    c->strings_bytes = strlen(o->text) + strlen(name) + strlen(authority) + strlen(token) + 4;
    c->strings = at = rp_alloc(&c->alloc, c->strings_bytes);
    if (at == NULL) return false;
    c->options.text = put_string(&at, o->text);
    c->options.server_name = put_string(&at, name);
    c->authority = put_string(&at, authority);
    token = put_string(&at, token);
    c->options.authorization = o->authorization != NULL ? token : NULL;
    return true;
}

static void fill_in(rp_channel_options *o)
{
    if (o->connect_timeout_ns <= 0) o->connect_timeout_ns = 10000 * MS;
    if (o->retry_min_ns <= 0) o->retry_min_ns = 10 * MS;
    if (o->retry_max_ns <= 0) o->retry_max_ns = 2000 * MS;
    if (o->retry_max_ns < o->retry_min_ns) o->retry_max_ns = o->retry_min_ns;
    if (o->ping_ns <= 0) o->ping_ns = 30000 * MS;
    if (o->ping_timeout_ns <= 0) o->ping_timeout_ns = 20000 * MS;
    if (o->message_bytes == 0) o->message_bytes = (size_t)512 << 20;
}

rp_status rp_channel_new(rp_runtime *runtime, const rp_channel_options *options,
                         rp_channel **out, rp_error *err)
{
    const rp_allocator *alloc =
        options->alloc != NULL ? options->alloc : rp_allocator_default();
    rp_channel *c = rp_alloc_zero(alloc, sizeof *c);

    if (c == NULL) return rp_fail_memory(err, sizeof *c);
    c->alloc = *alloc;
    c->options = *options;
    c->address = *options->address;
    c->blocks = rp_block_pool_new(alloc);
    if (c->blocks == NULL || !take_strings(c, options)) {
        rp_status st = rp_fail_memory(err, sizeof *c + c->strings_bytes);
        rp_block_pool_unref(c->blocks);
        rp_release(alloc, c, sizeof *c);
        return st;
    }
    c->options.alloc = &c->alloc;
    c->options.address = &c->address;
    if (c->options.tls != NULL) (void)rp_tls_ref(c->options.tls);
    fill_in(&c->options);
    c->runtime = runtime;
    c->loop = rp_runtime_loop(runtime);
    c->connector =
        (rp_connector){.loop = c->loop, .address = &c->address, .on_done = on_connected};
    c->share = (rp_share){.alloc = &c->alloc,
                          .loop = c->loop,
                          .address = &c->address,
                          .authorization = c->options.authorization};
    c->timer.on_due = on_rested;
    c->turn.run = on_turn_end;
    c->attempt = 1;
    rp_rng_init(&c->rng, options->seed);
    rp_message_pool_init(&c->pool, &c->alloc);
    rp_mutex_init(&c->mu, RP_RANK_RUNTIME);
    atomic_init(&c->is_connected, false);
    atomic_init(&c->heard_ns, 0);
    atomic_init(&c->left_out, 0);
    rp_polling_init(&c->polling);
    atomic_init(&c->is_refused, false);
    *out = c;
    return RP_OK;
}

static void end_all(rp_channel *c, const char *text)
{
    end_list(&c->waiting, text);
    if (c->current != NULL) end_list(&c->current->calls, text);
    for (rp_peer *p = c->leaving; p != NULL; p = p->next) end_list(&p->calls, text);
}

void rp_channel_give_up(rp_channel *c)
{
    c->is_given_up = true;
    end_all(c, given_up);
}

bool rp_channel_is_given_up(const rp_channel *c)
{
    return c->is_given_up;
}

void rp_channel_free(rp_channel *c)
{
    if (c == NULL) return;
    end_all(c, "the client is being freed");
    rp_connector_stop(&c->connector);
    rp_share_deinit(&c->share);
    rp_loop_disarm(c->loop, &c->timer);
    if (c->current != NULL) rp_peer_free(c->current, true);
    while (c->leaving != NULL) {
        rp_peer *p = c->leaving;
        c->leaving = p->next;
        rp_peer_free(p, true);
    }
    rp_runtime_forget_turn_end(c->runtime, &c->turn);
    rp_message_pool_deinit(&c->pool);
    rp_block_pool_unref(c->blocks);
    rp_tls_unref(c->options.tls);
    rp_mutex_deinit(&c->mu);
    rp_release(&c->alloc, c->strings, c->strings_bytes);
    rp_allocator alloc = c->alloc;
    rp_release(&alloc, c, sizeof *c);
}

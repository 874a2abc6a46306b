/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_maker.h"

#include <assert.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/thread.h"

enum { REST_TIMES = 3 }; /* the pause is this many times the processor time of the page */

/* Requests that wait for the same page, oldest first. In a lane that shares no pages, all of
 * its requests. */
struct rp_page_queue {
    rp_page_wait *first, *last; /* NULL: the queue is free */
    size_t count, body_bytes;
    uint64_t turn;        /* queues of a connection are served in the order of these numbers */
    rp_page_share *owner; /* the connection for which the page counts; NULL: none */
    bool is_live;         /* the requests wait for the next live page (M5) */
    bool is_taken;        /* the page is being made: no request joins or is cancelled (M7) */
};

typedef struct lane {
    rp_page_maker *maker;
    rp_route_lane id;
    pthread_t thread;
    bool has_thread;
    rp_page_queue queues[RP_PAGE_QUEUES]; /* this field and the next two: under maker->lock */
    size_t wait_count, body_bytes;        /* M6 */
    rp_page_shares shares;                /* of requests that wait: M9 */
    uint64_t turns;
    rp_cond changed; /* signalled with the lock held */
} lane;

/* Requests that a thread has taken out of its lane. */
typedef struct taken {
    rp_page_wait *first;
    rp_page_queue *queues[2]; /* that stay taken until all requests have their response */
} taken;

struct rp_page_maker {
    rp_allocator alloc;
    rp_page_host host;
    rp_mutex lock; /* rank RP_RANK_PAGES; guards the next three */
    lane lanes[RP_ROUTE_LANES] RP_GUARDED_BY(lock);
    uint64_t made_count RP_GUARDED_BY(lock);
    bool is_stopped RP_GUARDED_BY(lock);
};

rp_made_page *rp_made_page_ref(rp_made_page *made)
{
    rp_refcount_inc(&made->refs);
    return made;
}

void rp_made_page_unref(rp_made_page *made)
{
    rp_allocator alloc;

    if (made == NULL || !rp_refcount_dec(&made->refs)) return;
    alloc = made->alloc;
    rp_buf_deinit(&made->answer.body);
    rp_release(&alloc, made, sizeof *made);
}

static rp_made_page *make(rp_page_maker *maker, rp_page_ask *ask, uint64_t number)
{
    rp_made_page *made = rp_alloc_zero(&maker->alloc, sizeof *made);

    if (made == NULL) return NULL;
    rp_refcount_init(&made->refs);
    made->alloc = maker->alloc;
    made->number = ask->number = number;
    rp_buf_init(&made->answer.body, &made->alloc);
    rp_page_make(&maker->host, ask, &made->answer);
    return made;
}

static rp_page_wait *wait_of(rp_page_entry *entry)
{
    return (rp_page_wait *)(void *)((char *)entry - offsetof(rp_page_wait, entry));
}

/* Whether requests for the same page share it (M1). */
static bool shares(const lane *l)
{
    return l->id == RP_ROUTE_OVERVIEW || l->id == RP_ROUTE_PAGE || l->id == RP_ROUTE_RUN;
}

static bool is_live(const rp_page_ask *ask)
{
    return ask->route->is_live && ask->has_after;
}

/* The queue for a request. NULL if its page would be one too many (M6). */
static rp_page_queue *queue_for(lane *l, const rp_page_ask *ask)
{
    rp_page_queue *free_one = NULL;

    if (!shares(l)) return &l->queues[0];
    for (size_t i = 0; i < RP_PAGE_QUEUES; i++) {
        rp_page_queue *q = &l->queues[i];

        if (q->first == NULL)
            free_one = q;
        else if (!q->is_taken && q->is_live == is_live(ask) &&
                 rp_route_is_same(&q->first->ask, ask))
            return q;
    }
    return free_one;
}

/* Has the page of a queue count for another connection. NULL: for none. */
static void set_owner(lane *l, rp_page_queue *q, rp_page_share *owner)
{
    if (owner != NULL) rp_page_share_add_page(owner);
    if (q->owner != NULL) rp_page_shares_drop_page(&l->shares, q->owner);
    q->owner = owner;
}

/* Adds a request to a queue. A page that several connections request counts for the one with
 * the fewest. False if there is no memory. */
static bool add(lane *l, rp_page_queue *q, rp_page_wait *wait)
{
    const rp_page_ask *asked = &wait->ask;

    if (!rp_page_shares_enter(&l->shares, &wait->entry, asked->peer, asked->connection,
                              asked->body.size))
        return false;
    if (q->first == NULL) {
        q->turn = l->turns++;
        q->is_live = is_live(&wait->ask);
        q->first = wait;
    } else {
        q->last->next = wait;
    }
    if (shares(l) && (q->owner == NULL ||
                      rp_page_share_has_less(wait->entry.share, q->owner, RP_SHARE_PAGES)))
        set_owner(l, q, wait->entry.share);
    wait->next = NULL;
    wait->prev = q->last;
    q->last = wait;
    q->count++;
    q->body_bytes += wait->ask.body.size;
    l->wait_count++;
    l->body_bytes += wait->ask.body.size;
    /* Relaxed, here and elsewhere: the lock, or the hand-over of the wait, orders it. */
    atomic_store_explicit(&wait->queue, q, memory_order_relaxed);
    return true;
}

/* Counts requests of a lane that wait no longer (M6). */
static void uncount(lane *l, size_t count, size_t body_bytes)
{
    assert(l->wait_count >= count && l->body_bytes >= body_bytes);
    l->wait_count -= count;
    l->body_bytes -= body_bytes;
}

/* Removes a request from its queue. */
static void leave(lane *l, rp_page_queue *q, rp_page_wait *wait)
{
    *(wait->prev != NULL ? &wait->prev->next : &q->first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &q->last) = wait->prev;
    wait->prev = wait->next = NULL;
    if (q->owner != NULL && q->owner == wait->entry.share)
        set_owner(l, q, q->first != NULL ? q->first->entry.share : NULL);
    rp_page_shares_leave(&l->shares, &wait->entry);
    assert(q->count > 0 && q->body_bytes >= wait->ask.body.size);
    q->count--;
    q->body_bytes -= wait->ask.body.size;
    uncount(l, 1, wait->ask.body.size);
    atomic_store_explicit(&wait->queue, NULL, memory_order_relaxed);
}

/* Calls back all requests of a list. Takes the reference to `made`. */
static void deliver(rp_page_wait *wait, rp_made_page *made)
{
    while (wait != NULL) {
        rp_page_wait *next = wait->next; /* on_made may free it */

        atomic_store_explicit(&wait->queue, NULL, memory_order_relaxed);
        wait->on_made(wait, made != NULL ? rp_made_page_ref(made) : NULL);
        wait = next;
    }
    rp_made_page_unref(made);
}

/* The queue that is served next, among the live ones or the others; NULL if there is none. */
static rp_page_queue *next_queue(lane *l, bool live)
{
    rp_page_queue *next = NULL;

    for (size_t i = 0; i < RP_PAGE_QUEUES; i++) {
        rp_page_queue *q = &l->queues[i];

        if (q->first == NULL || q->is_taken || q->is_live != live) continue;
        if (next == NULL ||
            (q->owner == next->owner ? q->turn < next->turn
                                     : rp_page_share_is_before(q->owner, next->owner)))
            next = q;
    }
    return next;
}

/* Takes all requests of a queue and adds them to the end of `out`. */
static void take_queue(lane *l, rp_page_queue *q, taken *out)
{
    q->is_taken = true;
    set_owner(l, q, NULL);
    for (rp_page_wait *wait = q->first; wait != NULL; wait = wait->next)
        rp_page_shares_leave(&l->shares, &wait->entry);
    uncount(l, q->count, q->body_bytes);
    if (out->first == NULL)
        out->first = q->first;
    else
        out->queues[0]->last->next = q->first;
    out->queues[out->queues[0] != NULL] = q;
}

/* Takes the requests that are to be handled next. `q` is their queue. */
static taken take(lane *l, rp_page_queue *q)
{
    taken out = {.first = NULL};

    rp_page_share *served = shares(l) ? q->owner : rp_page_shares_next(&l->shares);

    assert(served != NULL && served->oldest != NULL);
    rp_page_shares_serve(&l->shares, served);
    if (!shares(l)) {
        out.first = wait_of(served->oldest);
        leave(l, q, out.first);
        return out;
    }
    take_queue(l, q, &out);
    for (size_t i = 0; q->is_live && i < RP_PAGE_QUEUES; i++) { /* M5 */
        rp_page_queue *other = &l->queues[i];

        if (other->first == NULL || other->is_taken ||
            !rp_route_is_same(&other->first->ask, &q->first->ask))
            continue;
        take_queue(l, other, &out);
        break; /* there is only one */
    }
    return out;
}

static void give_back_queues(taken *t)
{
    for (size_t i = 0; i < 2; i++)
        if (t->queues[i] != NULL) *t->queues[i] = (rp_page_queue){.first = NULL};
}

/* Handles the requests of a queue (M1). Returns the time when that was finished; `*took_ns`
 * receives how much processor time it took. */
static int64_t handle(rp_page_maker *maker, lane *l, rp_page_queue *q, int64_t *took_ns)
    RP_REQUIRES(maker->lock)
{
    uint64_t number = ++maker->made_count;
    int64_t start_ns = rp_thread_cpu_ns(), end_ns;
    taken now = take(l, q);
    rp_made_page *made;

    rp_mutex_unlock(&maker->lock);
    made = make(maker, &now.first->ask, number);
    end_ns = rp_now_ns();
    *took_ns = rp_thread_cpu_ns() - start_ns;
    deliver(now.first, made);
    rp_mutex_lock(&maker->lock);
    give_back_queues(&now);
    return end_ns;
}

static void *run(void *arg)
{
    lane *l = arg;
    rp_page_maker *maker = l->maker;
    int64_t rest_until_ns = 0, live_ns = 0, took_ns;

    rp_mutex_lock(&maker->lock);
    while (!maker->is_stopped) {
        int64_t now_ns = rp_now_ns(), due_ns = INT64_MAX;
        rp_page_queue *live = next_queue(l, true), *other = next_queue(l, false);

        if (live != NULL) due_ns = live_ns;
        if (other != NULL) due_ns = 0;
        if (due_ns < rest_until_ns) due_ns = rest_until_ns;
        if (now_ns < due_ns) {
            (void)rp_cond_wait(&l->changed, &maker->lock, due_ns);
            continue;
        }
        if (live != NULL && now_ns >= live_ns)
            live_ns = now_ns + RP_LIVE_NS; /* M5 */
        else
            live = NULL;
        rest_until_ns = handle(maker, l, live != NULL ? live : other, &took_ns);
        if (shares(l)) rest_until_ns += REST_TIMES * took_ns; /* M2 */
    }
    rp_mutex_unlock(&maker->lock);
    return NULL;
}

rp_status rp_page_maker_new(const rp_allocator *alloc, const rp_page_host *host,
                            rp_page_maker **out, rp_error *err)
{
    rp_page_maker *maker = rp_alloc_zero(alloc, sizeof *maker);

    if (maker == NULL) return rp_fail_memory(err, sizeof *maker);
    maker->alloc = *alloc;
    maker->host = *host;
    rp_mutex_init(&maker->lock, RP_RANK_PAGES);
    for (size_t i = 0; i < RP_ROUTE_LANES; i++) {
        lane *l = &maker->lanes[i];

        l->maker = maker;
        l->id = (rp_route_lane)i;
        l->shares.alloc = &maker->alloc;
        rp_cond_init(&l->changed);
    }
    *out = maker;
    return RP_OK;
}

/* Calls back all requests that wait in a lane. */
static void empty_lane(lane *l)
{
    for (size_t i = 0; i < RP_PAGE_QUEUES; i++) {
        rp_page_queue *q = &l->queues[i];
        taken out = {.first = NULL};

        rp_mutex_lock(&l->maker->lock);
        if (q->first != NULL && !q->is_taken) take_queue(l, q, &out);
        rp_mutex_unlock(&l->maker->lock);
        deliver(out.first, NULL);
        rp_mutex_lock(&l->maker->lock);
        give_back_queues(&out);
        rp_mutex_unlock(&l->maker->lock);
    }
}

void rp_page_maker_stop(rp_page_maker *maker)
{
    rp_mutex_lock(&maker->lock);
    maker->is_stopped = true;
    for (size_t i = 0; i < RP_ROUTE_LANES; i++) rp_cond_signal(&maker->lanes[i].changed);
    rp_mutex_unlock(&maker->lock);
    for (size_t i = 0; i < RP_ROUTE_LANES; i++) empty_lane(&maker->lanes[i]);
    for (size_t i = 0; i < RP_ROUTE_LANES; i++) {
        if (maker->lanes[i].has_thread) (void)pthread_join(maker->lanes[i].thread, NULL);
        maker->lanes[i].has_thread = false;
    }
}

void rp_page_maker_free(rp_page_maker *maker)
{
    rp_allocator alloc;

    if (maker == NULL) return;
    rp_page_maker_stop(maker);
    for (size_t i = 0; i < RP_ROUTE_LANES; i++) rp_cond_deinit(&maker->lanes[i].changed);
    rp_mutex_deinit(&maker->lock);
    alloc = maker->alloc;
    rp_release(&alloc, maker, sizeof *maker);
}

/* Starts the thread of a lane if it has none. */
static bool has_thread(rp_page_maker *maker, lane *l) RP_REQUIRES(maker->lock)
{
    static const char *const names[RP_ROUTE_LANES] = {
        [RP_ROUTE_OVERVIEW] = "rp-overview", [RP_ROUTE_PAGE] = "rp-pages",
        [RP_ROUTE_RUN] = "rp-runs",          [RP_ROUTE_CHANGE] = "rp-changes",
        [RP_ROUTE_ACT] = "rp-actions",
    };

    if (maker->is_stopped) return false;
    if (!l->has_thread) l->has_thread = rp_thread_start(&l->thread, names[l->id], run, l);
    return l->has_thread;
}

/* Removes a request and adds it to the list `out`, of those that are refused. */
static void refuse(lane *l, rp_page_wait *wait, rp_page_wait **out)
{
    leave(l, atomic_load_explicit(&wait->queue, memory_order_relaxed), wait);
    wait->next = *out;
    *out = wait;
}

/* Makes room for one more request (M9). False if there is none. */
static bool make_room(lane *l, const rp_page_ask *ask, rp_page_wait **refused)
{
    size_t bytes = ask->body.size;

    if (bytes > RP_PAGE_WAIT_BODIES) return false;
    while (l->wait_count >= RP_PAGE_WAITS || bytes > RP_PAGE_WAIT_BODIES - l->body_bytes) {
        rp_page_share *from =
            rp_page_shares_richest(&l->shares, ask->peer, ask->connection, RP_SHARE_WEIGHT,
                                   RP_SHARE_REQUEST_BYTES + bytes);

        if (from == NULL) return false;
        refuse(l, wait_of(from->newest), refused);
    }
    return true;
}

/* Makes room for one more page (M9): refuses all requests for the newest page of a connection.
 * False if there is none. */
static bool make_page_room(lane *l, const rp_page_ask *ask, rp_page_wait **refused)
{
    const rp_page_share *from =
        rp_page_shares_richest(&l->shares, ask->peer, ask->connection, RP_SHARE_PAGES, 1);
    rp_page_queue *newest = NULL;

    for (size_t i = 0; from != NULL && i < RP_PAGE_QUEUES; i++) {
        rp_page_queue *q = &l->queues[i];

        if (q->first != NULL && q->owner == from && (newest == NULL || q->turn > newest->turn))
            newest = q;
    }
    while (newest != NULL && newest->first != NULL) refuse(l, newest->first, refused);
    return newest != NULL;
}

bool rp_page_maker_ask(rp_page_maker *maker, rp_page_wait *wait)
{
    lane *l = &maker->lanes[wait->ask.route->lane];
    rp_page_wait *refused = NULL;
    rp_page_queue *q = NULL;
    bool is_added = false;

    assert(l->id != RP_ROUTE_NOW);
    rp_mutex_lock(&maker->lock);
    if (has_thread(maker, l) && make_room(l, &wait->ask, &refused)) {
        q = queue_for(l, &wait->ask);
        if (q == NULL && make_page_room(l, &wait->ask, &refused)) q = queue_for(l, &wait->ask);
    }
    if (q != NULL) is_added = add(l, q, wait);
    if (is_added) rp_cond_signal(&l->changed);
    rp_mutex_unlock(&maker->lock);
    deliver(refused, NULL);
    return is_added;
}

bool rp_page_maker_cancel(rp_page_maker *maker, rp_page_wait *wait)
{
    rp_page_queue *q;
    bool waits;

    rp_mutex_lock(&maker->lock);
    /* A queue is not given back before `queue` of all its requests is NULL. */
    q = atomic_load_explicit(&wait->queue, memory_order_relaxed);
    waits = q != NULL && !q->is_taken;
    if (waits) leave(&maker->lanes[wait->ask.route->lane], q, wait);
    rp_mutex_unlock(&maker->lock);
    if (waits) wait->on_made(wait, NULL);
    return waits;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_maker.h"

#include <assert.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/thread.h"

enum { REST_TIMES = 3 }; /* the pause is this many times as long as making the page took */

/* Requests that wait for the same page, oldest first. In a lane that shares no pages, all of
 * its requests. */
struct rp_page_queue {
    rp_page_wait *first, *last; /* NULL: the queue is free */
    size_t count, body_bytes;
    uint64_t turn; /* queues are served in the order of these numbers */
    bool is_live;  /* the requests wait for the next live page (M5) */
    bool is_taken; /* the page is being made: nobody joins, nobody is cancelled (M7) */
};

typedef struct lane {
    rp_page_maker *maker;
    rp_route_lane id;
    pthread_t thread;
    bool has_thread;
    rp_page_queue queues[RP_PAGE_QUEUES]; /* this field and the next two: under maker->lock */
    size_t wait_count, body_bytes;        /* M6 */
    uint64_t turns;
    rp_cond changed; /* signalled with the lock held */
} lane;

/* Requests that a thread has taken out of its lane. */
typedef struct taken {
    rp_page_wait *first;
    size_t count, body_bytes;
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

/* Whether requests for the same page share it (M1). */
static bool shares(const lane *l)
{
    return l->id == RP_ROUTE_OVERVIEW || l->id == RP_ROUTE_PAGE;
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

static void add(lane *l, rp_page_queue *q, rp_page_wait *wait)
{
    if (q->first == NULL) {
        q->turn = l->turns++;
        q->is_live = is_live(&wait->ask);
        q->first = wait;
    } else {
        q->last->next = wait;
    }
    wait->next = NULL;
    wait->prev = q->last;
    q->last = wait;
    q->count++;
    q->body_bytes += wait->ask.body.size;
    l->wait_count++;
    l->body_bytes += wait->ask.body.size;
    /* Relaxed, here and elsewhere: the lock, or the hand-over of the wait, orders it. */
    atomic_store_explicit(&wait->queue, q, memory_order_relaxed);
}

/* Counts requests of a lane that wait no longer (M6). */
static void uncount(lane *l, size_t count, size_t body_bytes)
{
    assert(l->wait_count >= count && l->body_bytes >= body_bytes);
    l->wait_count -= count;
    l->body_bytes -= body_bytes;
}

/* Removes a request from its queue. */
static void leave(rp_page_queue *q, rp_page_wait *wait)
{
    *(wait->prev != NULL ? &wait->prev->next : &q->first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &q->last) = wait->prev;
    wait->prev = wait->next = NULL;
    assert(q->count > 0 && q->body_bytes >= wait->ask.body.size);
    q->count--;
    q->body_bytes -= wait->ask.body.size;
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

        if (q->first != NULL && !q->is_taken && q->is_live == live &&
            (next == NULL || q->turn < next->turn))
            next = q;
    }
    return next;
}

/* Takes all requests of a queue and adds them to the end of `out`. */
static void take_queue(rp_page_queue *q, taken *out)
{
    q->is_taken = true;
    if (out->first == NULL)
        out->first = q->first;
    else
        out->queues[0]->last->next = q->first;
    out->queues[out->queues[0] != NULL] = q;
    out->count += q->count;
    out->body_bytes += q->body_bytes;
}

/* Takes the requests that are to be handled next. `q` is their queue. */
static taken take(lane *l, rp_page_queue *q)
{
    taken out = {.first = NULL};

    if (!shares(l)) {
        out.first = q->first;
        out.count = 1;
        out.body_bytes = out.first->ask.body.size;
        leave(q, out.first);
        return out;
    }
    take_queue(q, &out);
    for (size_t i = 0; q->is_live && i < RP_PAGE_QUEUES; i++) { /* M5 */
        rp_page_queue *other = &l->queues[i];

        if (other->first == NULL || other->is_taken ||
            !rp_route_is_same(&other->first->ask, &q->first->ask))
            continue;
        take_queue(other, &out);
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
 * receives how long it took. */
static int64_t handle(rp_page_maker *maker, lane *l, rp_page_queue *q, int64_t *took_ns)
    RP_REQUIRES(maker->lock)
{
    uint64_t number = ++maker->made_count;
    int64_t start_ns = rp_now_ns(), end_ns;
    taken now = take(l, q);
    rp_made_page *made;

    rp_mutex_unlock(&maker->lock);
    made = make(maker, &now.first->ask, number);
    end_ns = rp_now_ns();
    rp_mutex_lock(&maker->lock);
    uncount(l, now.count, now.body_bytes);
    rp_mutex_unlock(&maker->lock);
    deliver(now.first, made);
    rp_mutex_lock(&maker->lock);
    give_back_queues(&now);
    *took_ns = end_ns - start_ns;
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
        if (q->first != NULL && !q->is_taken) {
            take_queue(q, &out);
            uncount(l, out.count, out.body_bytes);
        }
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

/* Whether one more request may wait in a lane. Starts the lane's thread if it has none. */
static bool has_room(rp_page_maker *maker, lane *l, size_t body_bytes) RP_REQUIRES(maker->lock)
{
    static const char *const names[RP_ROUTE_LANES] = {
        [RP_ROUTE_OVERVIEW] = "rp-overview",
        [RP_ROUTE_PAGE] = "rp-pages",
        [RP_ROUTE_CHANGE] = "rp-changes",
        [RP_ROUTE_ACT] = "rp-actions",
    };

    if (maker->is_stopped || l->wait_count >= RP_PAGE_WAITS ||
        body_bytes > RP_PAGE_WAIT_BODIES - l->body_bytes)
        return false;
    if (!l->has_thread) l->has_thread = rp_thread_start(&l->thread, names[l->id], run, l);
    return l->has_thread;
}

bool rp_page_maker_ask(rp_page_maker *maker, rp_page_wait *wait)
{
    lane *l = &maker->lanes[wait->ask.route->lane];
    rp_page_queue *q = NULL;

    assert(l->id != RP_ROUTE_NOW);
    rp_mutex_lock(&maker->lock);
    if (has_room(maker, l, wait->ask.body.size)) q = queue_for(l, &wait->ask);
    if (q != NULL) {
        add(l, q, wait);
        rp_cond_signal(&l->changed);
    }
    rp_mutex_unlock(&maker->lock);
    return q != NULL;
}

bool rp_page_maker_cancel(rp_page_maker *maker, rp_page_wait *wait)
{
    rp_page_queue *q;
    bool waits;

    rp_mutex_lock(&maker->lock);
    /* A queue is not given back before `queue` of all its requests is NULL. */
    q = atomic_load_explicit(&wait->queue, memory_order_relaxed);
    waits = q != NULL && !q->is_taken;
    if (waits) {
        leave(q, wait);
        uncount(&maker->lanes[wait->ask.route->lane], 1, wait->ask.body.size);
    }
    rp_mutex_unlock(&maker->lock);
    if (waits) wait->on_made(wait, NULL);
    return waits;
}

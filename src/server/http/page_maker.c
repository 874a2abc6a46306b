/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page_maker.h"

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/thread.h"

enum { REST_TIMES = 3 }; /* the pause is this many times as long as making the page took */

/* The requests for one kind of page. */
typedef struct wait_list {
    rp_page_wait *first, **end;
} wait_list;

struct rp_page_maker {
    rp_allocator alloc;
    rp_page_host host;
    pthread_t thread;
    bool has_thread;
    uint64_t made_count; /* used by the thread only */
    rp_mutex lock;       /* rank RP_RANK_PAGES; guards the next two */
    wait_list waits[RP_PAGE_KINDS] RP_GUARDED_BY(lock);
    bool is_stopped RP_GUARDED_BY(lock);
    rp_cond changed; /* signalled with the lock held */
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

static rp_made_page *make(rp_page_maker *maker, rp_page_kind kind)
{
    rp_made_page *made = rp_alloc_zero(&maker->alloc, sizeof *made);

    if (made == NULL) return NULL;
    rp_refcount_init(&made->refs);
    made->alloc = maker->alloc;
    made->number = ++maker->made_count;
    rp_buf_init(&made->answer.body, &made->alloc);
    rp_page_make(&maker->host, kind, &made->answer);
    return made;
}

static void clear(wait_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static rp_page_wait *take_all(wait_list *list)
{
    rp_page_wait *first = list->first;

    clear(list);
    return first;
}

/* Takes the reference to `made`. */
static void deliver(rp_page_wait *wait, rp_made_page *made)
{
    while (wait != NULL) {
        rp_page_wait *next = wait->next; /* on_made may free it */

        wait->on_made(wait, made != NULL ? rp_made_page_ref(made) : NULL);
        wait = next;
    }
    rp_made_page_unref(made);
}

/* Returns the next kind after `last` that has requests; RP_PAGE_KINDS if none has. */
static rp_page_kind next_kind(const rp_page_maker *maker, rp_page_kind last)
    RP_REQUIRES(maker->lock)
{
    for (size_t i = 1; i <= RP_PAGE_KINDS; i++) {
        rp_page_kind kind = (rp_page_kind)(((size_t)last + i) % RP_PAGE_KINDS);

        if (maker->waits[kind].first != NULL) return kind;
    }
    return RP_PAGE_KINDS;
}

/* Makes a page for all requests of its kind (M1). Returns the time when the page was finished;
 * `*took_ns` receives how long that took. */
static int64_t make_one(rp_page_maker *maker, rp_page_kind kind, int64_t *took_ns)
    RP_REQUIRES(maker->lock)
{
    rp_page_wait *waits = take_all(&maker->waits[kind]);
    int64_t start_ns = rp_now_ns(), end_ns;
    rp_made_page *made;

    rp_mutex_unlock(&maker->lock);
    made = make(maker, kind);
    end_ns = rp_now_ns();
    deliver(waits, made);
    rp_mutex_lock(&maker->lock);
    *took_ns = end_ns - start_ns;
    return end_ns;
}

static void *run(void *arg)
{
    rp_page_maker *maker = arg;
    rp_page_kind kind = RP_PAGE_METRICS;
    int64_t rest_until_ns = 0, took_ns;

    rp_mutex_lock(&maker->lock);
    while (!maker->is_stopped) {
        rp_page_kind next = next_kind(maker, kind);

        if (next == RP_PAGE_KINDS) {
            (void)rp_cond_wait(&maker->changed, &maker->lock, INT64_MAX);
        } else if (rp_now_ns() < rest_until_ns) {
            (void)rp_cond_wait(&maker->changed, &maker->lock, rest_until_ns);
        } else {
            kind = next;
            rest_until_ns = make_one(maker, kind, &took_ns);
            rest_until_ns += REST_TIMES * took_ns; /* M2 */
        }
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
    rp_cond_init(&maker->changed);
    for (size_t i = 0; i < RP_PAGE_KINDS; i++) clear(&maker->waits[i]);
    maker->has_thread = rp_thread_start(&maker->thread, "rp-pages", run, maker);
    if (!maker->has_thread) {
        rp_page_maker_free(maker);
        return rp_fail(err, RP_NO_RESOURCE, "no thread to make pages");
    }
    *out = maker;
    return RP_OK;
}

void rp_page_maker_stop(rp_page_maker *maker)
{
    rp_page_wait *waits[RP_PAGE_KINDS];

    rp_mutex_lock(&maker->lock);
    maker->is_stopped = true;
    rp_cond_signal(&maker->changed);
    for (size_t i = 0; i < RP_PAGE_KINDS; i++) waits[i] = take_all(&maker->waits[i]);
    rp_mutex_unlock(&maker->lock);
    for (size_t i = 0; i < RP_PAGE_KINDS; i++) deliver(waits[i], NULL);
    if (maker->has_thread) (void)pthread_join(maker->thread, NULL);
    maker->has_thread = false;
}

void rp_page_maker_free(rp_page_maker *maker)
{
    rp_allocator alloc;

    if (maker == NULL) return;
    rp_page_maker_stop(maker);
    rp_cond_deinit(&maker->changed);
    rp_mutex_deinit(&maker->lock);
    alloc = maker->alloc;
    rp_release(&alloc, maker, sizeof *maker);
}

bool rp_page_maker_ask(rp_page_maker *maker, rp_page_kind kind, rp_page_wait *wait)
{
    bool can;

    wait->next = NULL;
    rp_mutex_lock(&maker->lock);
    can = !maker->is_stopped;
    if (can) {
        *maker->waits[kind].end = wait;
        maker->waits[kind].end = &wait->next;
        rp_cond_signal(&maker->changed);
    }
    rp_mutex_unlock(&maker->lock);
    return can;
}

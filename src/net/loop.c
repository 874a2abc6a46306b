/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: epoll, a heap of timers, a list of posts.
 *
 * One turn, in this order:
 *
 *   sleep   until a descriptor is ready, a timer is due or a post arrives; a loop that polls
 *           looks for these without sleeping for a while
 *   posts   those that had arrived on waking, oldest first, TURN_POSTS at most
 *   ready   the descriptors that epoll reported
 *   due     the timers that were due on waking, of the bulk timers TURN_BULK at most
 *   end     the owner's on_turn_end
 *
 * Remaining posts and bulk timers are called in the next turns, and the loop does not sleep
 * before them. So thousands of them at once do not delay descriptors and other timers.
 *
 * Posts. `posts` is a stack that any thread pushes to and the loop takes whole:
 *
 *   NULL        empty, and the loop is awake: it checks the stack before it sleeps
 *   &asleep     empty, and the loop sleeps or is about to
 *   a post      the newest; the oldest one's `next` is one of the two above
 *
 * The loop stores &asleep with a compare-and-swap that succeeds only if the stack is empty, and
 * the thread that replaces &asleep writes the eventfd. So a post is either seen before the loop
 * sleeps or wakes it, and of many posts to a sleeping loop only the first makes a system call.
 * The eventfd is watched edge-triggered: every write wakes, and it is never read.
 *
 * Right after the push the loop may run the post, return and be freed. So the posting thread
 * uses the loop afterwards only if it has to wake it. In that case it counts itself in `wakers`
 * before the push, and rp_loop_free() waits until that count is zero.
 *
 * Guests. In a shared loop a thread holds the lock `turn` during a turn; the loop's thread
 * releases it to sleep. The events that epoll returned may be out of date when the loop's
 * thread has the lock again. So if there was a guest, the thread calls epoll again; descriptors
 * are level-triggered, so no event is lost.
 *
 * Timers. Each of the two kinds has a binary heap with its root at entries[1]. A timer has its
 * index in `place`; 0: it is in no heap. Each entry has a copy of the time, so that comparisons
 * do not touch the timers.
 * Bulk timers have a heap of their own, so that a backlog of them does not delay other timers.
 *
 * Invariants:
 *   L1  entries[i].timer->place == i and entries[i].due_ns == timer->due_ns, for i in 1..count;
 *   L2  entries[i / 2].due_ns <= entries[i].due_ns;
 *   L3  ready[ready_next .. ready_count - 1] have not been called; ready_count <= READY_MAX;
 *   L4  `stop` is in the list of posts, or in `left`, exactly while stop_used. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "net/loop.h"
#include "reprise/wait.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/polling.h"
#include "util/verify.h"

enum {
    READY_MAX = 128, /* most ready descriptors of one turn */
    TURN_POSTS = 512,
    TURN_BULK = 512,
};

typedef struct heap_entry {
    int64_t due_ns;
    rp_timer *timer;
} heap_entry;

typedef struct timer_heap {
    heap_entry *entries; /* entries[0] is not used */
    size_t count, capacity;
} timer_heap;

enum { PROMPT, BULK, HEAPS };

struct rp_loop {
    /* Fields that other threads use, on a cache line of their own. */
    _Alignas(RP_CACHE_LINE) _Atomic(rp_post *) posts;
    atomic_size_t wakers;
    rp_post stop;   /* posted by rp_loop_stop() */
    rp_post asleep; /* never run: only its address is used */
    int event_fd;
    atomic_bool stop_used; /* L4 */

    /* The rest belongs to the loop's thread. */
    _Alignas(RP_CACHE_LINE) rp_allocator alloc;
    int epoll_fd;
    bool stopped;
    bool no_pwait2; /* the system cannot wait in nanoseconds */
    bool in_due;    /* timers are being called */
    bool is_shared;
    rp_mutex turn;   /* if it is shared: guards all of this but `ready` and no_pwait2, which no
                        guest uses while the loop sleeps */
    uint64_t guests; /* number of guests that have entered so far */
    int64_t sleeps_until_ns; /* valid while it sleeps */
    int64_t now_ns;
    int64_t poll_ns; /* how long it polls before it sleeps; 0: it does not */
    rp_polling polling;
    void (*on_turn_end)(void *user);
    void *turn_end_user;
    timer_heap heaps[HEAPS];
    rp_post *left; /* posts that were taken and have not run, oldest first */
    size_t ready_next, ready_count;
    struct epoll_event ready[READY_MAX]; /* from ready_next on: still to be called */
};

static void on_stop(rp_post *post)
{
    rp_loop *loop = (rp_loop *)(void *)((char *)post - offsetof(rp_loop, stop));

    loop->stopped = true;
    /* Relaxed: the list that the post has left belongs to this thread. */
    atomic_store_explicit(&loop->stop_used, false, memory_order_relaxed);
}

rp_status rp_loop_new(const rp_allocator *alloc, rp_loop **out, rp_error *err)
{
    struct epoll_event wake = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    rp_loop *loop = rp_alloc_aligned(alloc, sizeof *loop);

    if (loop == NULL) return rp_fail_memory(err, sizeof *loop);
    loop->alloc = *alloc;
    loop->stop.run = on_stop;
    loop->now_ns = rp_now_ns();
    atomic_init(&loop->posts, NULL);
    atomic_init(&loop->wakers, 0);
    atomic_init(&loop->stop_used, false);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &wake) != 0) {
        rp_status st =
            rp_fail(err, RP_NO_RESOURCE, "event loop: no descriptor: %s", strerror(errno));
        rp_loop_free(loop);
        return st;
    }
    *out = loop;
    return RP_OK;
}

void rp_loop_free(rp_loop *loop)
{
    if (loop == NULL) return;
    /* Acquire: pairs with the release of the last waker. */
    while (atomic_load_explicit(&loop->wakers, memory_order_acquire) != 0) {
        struct timespec moment = {.tv_nsec = 10000};
        (void)nanosleep(&moment, NULL);
    }
    if (loop->event_fd >= 0) (void)close(loop->event_fd);
    if (loop->epoll_fd >= 0) (void)close(loop->epoll_fd);
    for (int i = 0; i < HEAPS; i++)
        rp_release(&loop->alloc, loop->heaps[i].entries,
                   loop->heaps[i].capacity * sizeof *loop->heaps[i].entries);
    if (loop->is_shared) rp_mutex_deinit(&loop->turn);
    rp_allocator alloc = loop->alloc;
    rp_release_aligned(&alloc, loop, sizeof *loop);
}

void rp_loop_abandon(rp_loop *loop)
{
    (void)close(loop->event_fd);
    (void)close(loop->epoll_fd);
}

/* The write cannot fail: the counter would have to be near 2^64. */
static void wake(const rp_loop *loop)
{
    static const uint64_t one = 1;

    while (write(loop->event_fd, &one, sizeof one) < 0 && errno == EINTR) {}
}

void rp_loop_post(rp_loop *loop, rp_post *post)
{
    rp_post *newest = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    bool wakes;

    for (;;) {
        wakes = newest == &loop->asleep;
        /* Relaxed: the push below releases it, and the thread that frees the loop has seen the
         * post. */
        if (wakes) atomic_fetch_add_explicit(&loop->wakers, 1, memory_order_relaxed);
        post->next = newest;
        /* Release: pairs with the acquire of take_posts(). */
        if (atomic_compare_exchange_weak_explicit(&loop->posts, &newest, post,
                                                  memory_order_release, memory_order_relaxed))
            break;
        if (wakes) atomic_fetch_sub_explicit(&loop->wakers, 1, memory_order_release);
    }
    if (!wakes) return; /* the loop may have been freed */
    wake(loop);
    atomic_fetch_sub_explicit(&loop->wakers, 1, memory_order_release);
}

void rp_loop_stop(rp_loop *loop)
{
    /* Relaxed: no other memory depends on it. */
    if (atomic_exchange_explicit(&loop->stop_used, true, memory_order_relaxed)) return;
    rp_loop_post(loop, &loop->stop);
}

/* Takes all posts, oldest first. The loop counts as awake from here on. */
static rp_post *take_posts(rp_loop *loop)
{
    rp_post *post = atomic_load_explicit(&loop->posts, memory_order_relaxed), *oldest = NULL;

    if (post == NULL) return NULL;
    post = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
    while (post != NULL && post != &loop->asleep) {
        rp_post *older = post->next;
        post->next = oldest;
        oldest = post;
        post = older;
    }
    return oldest;
}

/* Runs posts: those left from the turn before, or else all that have arrived. Posts that arrive
 * meanwhile wait for the next turn. A stopped loop runs all that it has taken, as there may be
 * no next turn. */
static void run_posts(rp_loop *loop)
{
    if (loop->left == NULL) loop->left = take_posts(loop);
    for (size_t n = 0; loop->left != NULL && (n < TURN_POSTS || loop->stopped); n++) {
        rp_post *post = loop->left;
        loop->left = post->next; /* before the call, which may free it or post it again */
        post->run(post);
    }
}

static uint32_t to_epoll(uint32_t events)
{
    return ((events & RP_READABLE) != 0 ? (uint32_t)EPOLLIN : 0) |
           ((events & RP_WRITABLE) != 0 ? (uint32_t)EPOLLOUT : 0) |
           ((events & RP_PEER_ENDED) != 0 ? (uint32_t)EPOLLRDHUP : 0);
}

static uint32_t from_epoll(uint32_t events)
{
    return ((events & EPOLLIN) != 0 ? (uint32_t)RP_READABLE : 0) |
           ((events & EPOLLOUT) != 0 ? (uint32_t)RP_WRITABLE : 0) |
           ((events & EPOLLRDHUP) != 0 ? (uint32_t)RP_PEER_ENDED : 0) |
           ((events & (EPOLLHUP | EPOLLERR)) != 0 ? (uint32_t)RP_HUNG_UP : 0);
}

rp_status rp_loop_watch(rp_loop *loop, rp_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = to_epoll(events), .data.ptr = watch};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0)
        return errno == ENOMEM || errno == ENOSPC ? RP_NO_RESOURCE : RP_INVALID;
    assert(watch->on_ready != NULL);
    watch->events = events;
    return RP_OK;
}

void rp_loop_change(rp_loop *loop, rp_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = to_epoll(events), .data.ptr = watch};

    if (watch->events == events) return;
    watch->events = events;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void rp_loop_forget(rp_loop *loop, rp_watch *watch)
{
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->events = 0;
    assert(loop->ready_count <= READY_MAX); /* L3 */
    for (size_t i = loop->ready_next; i < loop->ready_count; i++)
        if (loop->ready[i].data.ptr == watch) loop->ready[i].data.ptr = NULL;
}

static void call_ready(rp_loop *loop)
{
    while (loop->ready_next < loop->ready_count) {
        struct epoll_event *event = &loop->ready[loop->ready_next++];
        rp_watch *watch = event->data.ptr;
        uint32_t events;

        if (watch == NULL) continue; /* forgotten, or the eventfd */
        events = from_epoll(event->events) & (watch->events | RP_HUNG_UP);
        if (events != 0) watch->on_ready(watch, events);
    }
}

static timer_heap *heap_of(rp_loop *loop, const rp_timer *timer)
{
    return &loop->heaps[timer->is_bulk ? BULK : PROMPT];
}

static void put(timer_heap *heap, size_t place, heap_entry entry)
{
    assert(place > 0 && place <= heap->count && place < heap->capacity);
    heap->entries[place] = entry;
    entry.timer->place = place;
}

/* Puts an entry at the free index `place` or above it, by its time. */
static void sift_up(timer_heap *heap, size_t place, heap_entry entry)
{
    for (; place > 1 && heap->entries[place / 2].due_ns > entry.due_ns; place /= 2)
        put(heap, place, heap->entries[place / 2]);
    put(heap, place, entry);
}

/* Puts an entry at the free index `place` or below it, by its time. */
static void sift_down(timer_heap *heap, size_t place, heap_entry entry)
{
    for (;;) {
        size_t child = 2 * place;
        if (child < heap->count &&
            heap->entries[child + 1].due_ns < heap->entries[child].due_ns)
            child++;
        if (child > heap->count || heap->entries[child].due_ns >= entry.due_ns) break;
        put(heap, place, heap->entries[child]);
        place = child;
    }
    put(heap, place, entry);
}

static void settle(timer_heap *heap, size_t place, heap_entry entry)
{
    if (place > 1 && heap->entries[place / 2].due_ns > entry.due_ns)
        sift_up(heap, place, entry);
    else
        sift_down(heap, place, entry);
}

#ifndef NDEBUG
static bool is_valid(const timer_heap *heap)
{
    for (size_t i = 1; i <= heap->count; i++) {
        const heap_entry *e = &heap->entries[i];
        if (e->timer->place != i || e->timer->due_ns != e->due_ns) return false; /* L1 */
        if (i > 1 && heap->entries[i / 2].due_ns > e->due_ns) return false;      /* L2 */
    }
    return true;
}
#endif

rp_status rp_loop_arm(rp_loop *loop, rp_timer *timer, int64_t due_ns)
{
    timer_heap *heap = heap_of(loop, timer);
    size_t place = timer->place;

    assert(place == 0 ||
           (place <= heap->count && heap->entries[place].timer == timer)); /* L1 */
    if (place == 0 && heap->count + 1 >= heap->capacity) {
        size_t capacity = heap->capacity == 0 ? 16 : 2 * heap->capacity;
        if (capacity < heap->capacity ||
            !rp_resize_array(&loop->alloc, &heap->entries, heap->capacity, capacity,
                             sizeof *heap->entries))
            return RP_NO_RESOURCE;
        heap->capacity = capacity;
    }
    /* A timer that arms itself for now is called in the next turn, or this one might not end.
     */
    if (loop->in_due && due_ns <= loop->now_ns) due_ns = loop->now_ns + 1;
    timer->due_ns = due_ns;
    if (place == 0) place = ++heap->count;
    settle(heap, place, (heap_entry){due_ns, timer});
    RP_VERIFY(heap->count, is_valid(heap));
    return RP_OK;
}

void rp_loop_disarm(rp_loop *loop, rp_timer *timer)
{
    timer_heap *heap = heap_of(loop, timer);
    size_t place = timer->place;

    if (place == 0) return;
    assert(place <= heap->count && heap->entries[place].timer == timer); /* L1 */
    heap_entry last = heap->entries[heap->count--];
    timer->place = 0;
    if (last.timer != timer) settle(heap, place, last);
    RP_VERIFY(heap->count, is_valid(heap));
}

static void call_due(rp_loop *loop, timer_heap *heap, size_t most)
{
    assert(!loop->in_due); /* not reentrant */
    loop->in_due = true;
    for (; most > 0 && heap->count > 0 && heap->entries[1].due_ns <= loop->now_ns; most--) {
        rp_timer *timer = heap->entries[1].timer;
        rp_loop_disarm(loop, timer);
        assert(timer->place == 0 && timer->on_due != NULL);
        timer->on_due(timer);
    }
    loop->in_due = false;
}

/* The time of the next timer; INT64_MAX: there is none. */
static int64_t next_due(const rp_loop *loop)
{
    int64_t due_ns = INT64_MAX;

    for (int i = 0; i < HEAPS; i++)
        if (loop->heaps[i].count > 0 && loop->heaps[i].entries[1].due_ns < due_ns)
            due_ns = loop->heaps[i].entries[1].due_ns;
    return due_ns;
}

void rp_loop_set_poll(rp_loop *loop, int64_t poll_ns)
{
    assert(!loop->is_shared);
    rp_polling_init(&loop->polling);
    loop->poll_ns = poll_ns;
}

int64_t rp_loop_now(const rp_loop *loop)
{
    return loop->now_ns;
}

void rp_loop_set_turn_end(rp_loop *loop, void (*on_turn_end)(void *user), void *user)
{
    loop->on_turn_end = on_turn_end;
    loop->turn_end_user = user;
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

#ifndef RP_EPOLL_PWAIT2
/* For C libraries without the function: the kernel may have the call. */
static int epoll_pwait2(int fd, struct epoll_event *ready, int count,
                        const struct timespec *limit, const sigset_t *mask)
{
#if defined(__NR_epoll_pwait2) && defined(__LP64__) /* timespec is the kernel's */
    return (int)syscall(__NR_epoll_pwait2, fd, ready, count, limit, mask, 0);
#else
    (void)fd, (void)ready, (void)count, (void)limit, (void)mask;
    errno = ENOSYS;
    return -1;
#endif
}
#endif

/* Waits for at most `wait_ns`; INT64_MAX: without a limit. */
static int wait_ready(rp_loop *loop, int64_t wait_ns)
{
    enum { MS = 1000000, HOUR_MS = 3600000 };

    if (!loop->no_pwait2 && wait_ns != 0) {
        struct timespec limit = to_timespec(wait_ns);
        int n = epoll_pwait2(loop->epoll_fd, loop->ready, READY_MAX,
                             wait_ns == INT64_MAX ? NULL : &limit, NULL);
        if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return n;
        loop->no_pwait2 = true;
    }
    /* Rounded up, and at most an hour, which fits into an int: waking early is harmless. */
    int64_t wait_ms = wait_ns / MS + (wait_ns % MS != 0);
    if (wait_ms > HOUR_MS) wait_ms = wait_ns == INT64_MAX ? -1 : HOUR_MS;
    return epoll_wait(loop->epoll_fd, loop->ready, READY_MAX, (int)wait_ms);
}

static void lock_turn(rp_loop *loop) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (loop->is_shared) rp_mutex_lock(&loop->turn);
}

static void unlock_turn(rp_loop *loop) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (loop->is_shared) rp_mutex_unlock(&loop->turn);
}

/* Polls the descriptors for poll_ns, `most_ns` at most, or until a post arrives. Returns how
 * many descriptors are ready. The stack of posts is empty and not &asleep meanwhile: threads
 * that post need no system call. */
static int poll_ready(rp_loop *loop, int64_t most_ns)
{
    const int64_t poll_ns = most_ns < loop->poll_ns ? most_ns : loop->poll_ns;
    const int64_t until_ns = rp_now_ns() + poll_ns;
    bool has_posts;
    int n;

    do {
        n = epoll_wait(loop->epoll_fd, loop->ready, READY_MAX, 0);
        has_posts = atomic_load_explicit(&loop->posts, memory_order_relaxed) != NULL;
    } while (n <= 0 && !has_posts && rp_now_ns() < until_ns);
    rp_polling_count(&loop->polling, n > 0 || has_posts);
    return n;
}

/* Sleeps until there is something to do. */
static void await(rp_loop *loop)
{
    int64_t wait_ns = INT64_MAX, due_ns = next_due(loop);
    bool polls = loop->poll_ns > 0 && loop->ready_count > 0;
    uint64_t guests = loop->guests;
    rp_post *none = NULL;
    int n = 0;

    loop->sleeps_until_ns = due_ns;
    if (loop->left != NULL) {
        wait_ns = 0;
    } else if (due_ns != INT64_MAX) {
        int64_t now_ns = rp_now_ns();
        wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    }
    if (polls && wait_ns > 0 && rp_polling_may(&loop->polling)) n = poll_ready(loop, wait_ns);
    if (n > 0) wait_ns = 0;
    /* Relaxed: it publishes nothing, and take_posts() acquires. */
    if (wait_ns > 0 &&
        !atomic_compare_exchange_strong_explicit(&loop->posts, &none, &loop->asleep,
                                                 memory_order_relaxed, memory_order_relaxed))
        wait_ns = 0;
    assert(loop->ready_next >= loop->ready_count); /* L3: guests find nothing to forget there */
    unlock_turn(loop);
    if (n <= 0) n = wait_ready(loop, wait_ns);
    lock_turn(loop);
    if (loop->guests != guests && n > 0)
        n = epoll_wait(loop->epoll_fd, loop->ready, READY_MAX, 0);
    loop->ready_next = 0;
    loop->ready_count = n > 0 ? (size_t)n : 0;
    assert(loop->ready_count <= READY_MAX); /* L3 */
    loop->now_ns = rp_now_ns();
}

void rp_loop_run(rp_loop *loop)
{
    lock_turn(loop);
    while (!loop->stopped) {
        await(loop);
        run_posts(loop);
        if (!loop->stopped) {
            call_ready(loop);
            call_due(loop, &loop->heaps[PROMPT], SIZE_MAX);
            call_due(loop, &loop->heaps[BULK], TURN_BULK);
        }
        rp_loop_end_turn(loop);
    }
    loop->stopped = false; /* so that it can run again */
    loop->ready_count = 0; /* epoll reports them again */
    unlock_turn(loop);
}

void rp_loop_share(rp_loop *loop)
{
    assert(!loop->is_shared && loop->poll_ns == 0);
    rp_mutex_init(&loop->turn, RP_RANK_LOOP);
    loop->is_shared = true;
}

void rp_loop_enter(rp_loop *loop)
{
    assert(loop->is_shared);
    lock_turn(loop);
    loop->guests++;
    loop->now_ns = rp_now_ns();
}

bool rp_loop_try_enter(rp_loop *loop) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (!loop->is_shared || !rp_mutex_try_lock(&loop->turn)) return false;
    /* Relaxed: only tests whether there are posts. */
    if (atomic_load_explicit(&loop->posts, memory_order_relaxed) != &loop->asleep) {
        rp_mutex_unlock(&loop->turn);
        return false;
    }
    loop->guests++;
    loop->now_ns = rp_now_ns();
    return true;
}

void rp_loop_end_turn(rp_loop *loop)
{
    if (loop->on_turn_end != NULL) loop->on_turn_end(loop->turn_end_user);
}

void rp_loop_leave(rp_loop *loop)
{
    assert(loop->is_shared);
    rp_loop_end_turn(loop);
    if (next_due(loop) < loop->sleeps_until_ns) wake(loop);
    unlock_turn(loop);
}

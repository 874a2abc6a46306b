/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop: ready descriptors, timers, and posts from other threads.
 *
 * In each turn the loop sleeps until an event occurs, and then calls the callbacks of all
 * events that have occurred. One thread runs the loop. rp_loop_post() and rp_loop_stop() may be
 * called on any thread. All other functions may be called only by the loop's thread, by the
 * thread that sets the loop up before it runs, and by a thread that has entered the loop (a
 * guest, see rp_loop_share()). A callback must not run the loop, but may watch, forget, arm,
 * disarm and post, even the object that it was called for. */
#ifndef RP_NET_LOOP_H
#define RP_NET_LOOP_H

#include "reprise/alloc.h"

typedef struct rp_loop rp_loop;

/* Makes a loop. RP_NO_RESOURCE (memory, descriptors). Returns owned. */
RP_NODISCARD rp_status rp_loop_new(const rp_allocator *alloc, rp_loop **out, rp_error *err);
void rp_loop_free(rp_loop *loop); /* not while it runs; NULL is fine */
/* For the child of a fork, if a thread of the parent runs the loop. Closes the child's copies
 * of the loop's descriptors. Does not free the loop, as the state of its memory is unknown. */
void rp_loop_abandon(rp_loop *loop);

/* Runs until rp_loop_stop(). It can be run again afterwards. */
void rp_loop_run(rp_loop *loop);
/* Stops the loop at the end of the turn that has run all posts made before this call. Any
 * thread. If the loop does not run, the next rp_loop_run() runs these posts and returns. */
void rp_loop_stop(rp_loop *loop);

/* The monotonic time at which this turn began. Makes no system call. */
int64_t rp_loop_now(const rp_loop *loop);

/* RP_HUNG_UP means that both directions have ended, or that there is an error. It is always
 * reported, even to a watch that asks for no event, and in every turn until rp_loop_forget().
 * RP_PEER_ENDED means that the peer sends no more; bytes that it has sent may be unread. */
enum { RP_READABLE = 1, RP_WRITABLE = 2, RP_HUNG_UP = 4, RP_PEER_ENDED = 8 };

/* A descriptor that the loop watches, level-triggered. Embed it in the owner of the descriptor.
 */
typedef struct rp_watch rp_watch;
struct rp_watch {
    int fd;
    uint32_t events; /* set by the loop: the events that it reports, RP_READABLE and so on */
    void (*on_ready)(rp_watch *watch, uint32_t events);
};

/* Starts watching watch->fd for `events`. RP_NO_RESOURCE, RP_INVALID (not a descriptor that can
 * be watched, or watched already). */
RP_NODISCARD rp_status rp_loop_watch(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Changes the events to report. Makes no system call if they are the same. Cannot fail. */
void rp_loop_change(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Stops watching; call it before closing the descriptor. on_ready is not called afterwards, not
 * even for events that this turn has already received. */
void rp_loop_forget(rp_loop *loop, rp_watch *watch);

/* A timer. Embed it in another struct, zero-initialise it and set on_due. */
typedef struct rp_timer rp_timer;
struct rp_timer {
    void (*on_due)(rp_timer *timer);
    int64_t due_ns; /* on the monotonic clock */
    size_t place;   /* private: index in the heap; 0: not armed */
    /* Set it for timers of which thousands may be due at once, like the deadlines of RPCs. A
     * turn calls some hundreds of the bulk timers that are due, in the order of their times,
     * and the next turns call the others. Must not be changed while the timer is armed. */
    bool is_bulk;
};

/* Arms a timer, or changes its time. on_due is called once, at `due_ns` or a little later.
 * Timers are called in the order of their times, bulk timers and others separately. If an
 * on_due arms a timer for a time that has passed, the timer is called in the next turn.
 * RP_NO_RESOURCE; then the timer is unchanged. Changing the time of an armed timer always
 * succeeds. */
RP_NODISCARD rp_status rp_loop_arm(rp_loop *loop, rp_timer *timer, int64_t due_ns);
void rp_loop_disarm(rp_loop *loop, rp_timer *timer); /* nothing if it is not armed */

/* A function to run on the loop's thread. Embed it in another struct; its memory must stay
 * valid until it has run. */
typedef struct rp_post rp_post;
struct rp_post {
    void (*run)(rp_post *post);
    rp_post *next; /* private */
};

/* Has post->run called on the loop's thread. Posts of one thread run in the order in which they
 * were made. Any thread; takes no lock; wakes the loop only if it sleeps. A turn runs some
 * hundreds of posts, and the next turns run the others. Posts made before rp_loop_stop() are
 * run before rp_loop_run() returns. */
void rp_loop_post(rp_loop *loop, rp_post *post);

/* Lets other threads enter the loop as guests while its own thread sleeps, which is cheaper
 * than waking that thread. Call it before the loop runs. */
void rp_loop_share(rp_loop *loop);
/* Enter the loop: until rp_loop_leave() the caller counts as the loop's thread. rp_loop_enter()
 * waits for the end of the current turn. rp_loop_try_enter() does not wait: it returns false if
 * a turn is running or posts are queued. */
void rp_loop_enter(rp_loop *loop);
RP_NODISCARD bool rp_loop_try_enter(rp_loop *loop);
/* rp_loop_end_turn() calls the function of rp_loop_set_turn_end(); the guest stays in the loop.
 * rp_loop_leave() does the same and then leaves the loop. */
void rp_loop_leave(rp_loop *loop);
void rp_loop_end_turn(rp_loop *loop);

/* Sets a function that is called at the end of every turn, after all callbacks and before the
 * loop sleeps: the place to flush batched output. */
void rp_loop_set_turn_end(rp_loop *loop, void (*on_turn_end)(void *user), void *user);

#endif

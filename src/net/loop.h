/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop: calls callbacks for ready descriptors, for timers, and for posts, which are
 * functions that other threads hand over.
 *
 * In each turn the loop sleeps until an event occurs, and then calls the callbacks of all
 * events that have occurred. One thread runs the loop. rp_loop_post() and rp_loop_stop() may be
 * called on any thread. Any thread may also try to enter the loop: a thread that has entered is
 * a guest (rp_loop_share()). All other functions may be called only by the loop's thread, by
 * the thread that sets the loop up before it runs, and by a guest. A callback must not run the
 * loop. It may watch, forget, arm, disarm and post any object, even the object for which it was
 * called. */
#ifndef RP_NET_LOOP_H
#define RP_NET_LOOP_H

#include "reprise/alloc.h"

typedef struct rp_loop rp_loop;

/* Makes a loop. Errors: RP_NO_RESOURCE (memory, descriptors). The caller owns `*out`. */
RP_NODISCARD rp_status rp_loop_new(const rp_allocator *alloc, rp_loop **out, rp_error *err);
void rp_loop_free(rp_loop *loop); /* the loop must not run; NULL is fine */
/* For the child of a fork, if a thread of the parent runs the loop. Closes the child's copies
 * of the loop's descriptors. Does not free the loop, since the state of its memory is
 * unknown. */
void rp_loop_abandon(rp_loop *loop);

/* Runs the loop until rp_loop_stop() is called. The loop can be run again afterwards. */
void rp_loop_run(rp_loop *loop);
/* Stops the loop at the end of a turn, after all posts made before this call have run. Any
 * thread may call it. If the loop does not run, the next rp_loop_run() runs these posts and
 * returns. */
void rp_loop_stop(rp_loop *loop);

/* Returns the monotonic time at which this turn began. Makes no system call. */
int64_t rp_loop_now(const rp_loop *loop);

/* RP_HUNG_UP means that both directions of the connection have ended, or that the descriptor
 * has an error. The loop reports RP_HUNG_UP in every turn until rp_loop_forget(), even to a
 * watch with `events` 0. RP_PEER_ENDED means that the peer will send no more. Bytes that it has
 * sent can still be unread. */
enum { RP_READABLE = 1, RP_WRITABLE = 2, RP_HUNG_UP = 4, RP_PEER_ENDED = 8 };

/* A descriptor that the loop watches, level-triggered. The owner of the descriptor embeds the
 * struct. */
typedef struct rp_watch rp_watch;
struct rp_watch {
    int fd;
    uint32_t events; /* set by the loop: the events to report, such as RP_READABLE */
    void (*on_ready)(rp_watch *watch, uint32_t events);
};

/* Starts watching watch->fd for `events`. Errors: RP_NO_RESOURCE, RP_INVALID (the descriptor
 * cannot be watched, or is already watched). */
RP_NODISCARD rp_status rp_loop_watch(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Changes the events to report to `events`. If `events` does not differ from watch->events,
 * makes no system call. Cannot fail. */
void rp_loop_change(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Stops watching. The caller must do this before it closes the descriptor. on_ready is not
 * called afterwards, not even for events that this turn has already received. */
void rp_loop_forget(rp_loop *loop, rp_watch *watch);

/* A timer. Its owner embeds it in another struct, zero-initialises it and sets on_due. */
typedef struct rp_timer rp_timer;
struct rp_timer {
    void (*on_due)(rp_timer *timer);
    int64_t due_ns; /* on the monotonic clock */
    size_t place;   /* private: index in the heap; 0: not armed */
    /* Must be set for timers of which thousands can be due at once, such as the deadlines of
     * RPCs. One turn calls some hundreds of the bulk timers that are due, in the order of their
     * times; the next turns call the rest. Must not be changed while the timer is armed. */
    bool is_bulk;
};

/* Arms a timer, or changes its time. on_due is called once, at `due_ns` or a little later. A
 * turn first calls the due timers that are not bulk timers, and then due bulk timers, both in
 * the order of their times. If an on_due arms a timer for a time that has passed, the timer is
 * called in the next turn. Errors: RP_NO_RESOURCE; the timer is then unchanged. Changing the
 * time of an armed timer always succeeds. */
RP_NODISCARD rp_status rp_loop_arm(rp_loop *loop, rp_timer *timer, int64_t due_ns);
void rp_loop_disarm(rp_loop *loop, rp_timer *timer); /* does nothing if it is not armed */

/* A post: a function to run on the loop's thread. The caller embeds it in another struct, whose
 * memory must stay valid until the function has run. */
typedef struct rp_post rp_post;
struct rp_post {
    void (*run)(rp_post *post);
    rp_post *next; /* private */
};

/* Makes the loop's thread call post->run. Posts of one thread run in the order in which they
 * were made. Any thread may call this function. It takes no lock, and wakes the loop only if
 * the loop sleeps. One turn runs some hundreds of posts; later turns run the others. Posts made
 * before rp_loop_stop() are run before rp_loop_run() returns. */
void rp_loop_post(rp_loop *loop, rp_post *post);

/* Lets other threads enter the loop as guests while its own thread sleeps, which is cheaper
 * than waking that thread. Must be called before the loop runs. */
void rp_loop_share(rp_loop *loop);
/* Enter the loop as a guest: until rp_loop_leave() the caller counts as the loop's thread.
 * rp_loop_enter() waits for the end of the current turn. rp_loop_try_enter() does not wait: it
 * returns false if a turn is running or posts are queued. */
void rp_loop_enter(rp_loop *loop);
RP_NODISCARD bool rp_loop_try_enter(rp_loop *loop);
/* rp_loop_end_turn() calls `on_turn_end`, the function that was passed to
 * rp_loop_set_turn_end(). The guest stays in the loop. rp_loop_leave() also calls
 * `on_turn_end`, and then leaves the loop. */
void rp_loop_leave(rp_loop *loop);
void rp_loop_end_turn(rp_loop *loop);

/* After a turn in which a descriptor was ready, makes the loop poll its descriptors for up to
 * `poll_ns` before it sleeps. After some polls in a row that found nothing, the loop polls only
 * now and then, until a poll finds something (util/polling.h). rp_loop_set_poll() must be
 * called before the loop runs, and not for a loop with rp_loop_share(). */
void rp_loop_set_poll(rp_loop *loop, int64_t poll_ns);

/* Sets a function that is called at the end of every turn, after all callbacks and before the
 * loop sleeps. For example, the function can write batched output. */
void rp_loop_set_turn_end(rp_loop *loop, void (*on_turn_end)(void *user), void *user);

#endif

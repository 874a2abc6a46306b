/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop: descriptors that become ready, times that come, messages from other threads.
 *
 * One thread runs it. Everything but post and stop belongs to that thread (or to whoever set
 * the loop up before it runs, or is its guest). Nothing here is called from inside itself: a
 * callback may watch, forget, arm, disarm and post as it likes, also for the thing it was
 * called for. */
#ifndef RP_NET_LOOP_H
#define RP_NET_LOOP_H

#include "reprise/alloc.h"

typedef struct rp_loop rp_loop;

/* RP_NO_RESOURCE (memory, descriptors). Returns owned. */
RP_NODISCARD rp_status rp_loop_new(const rp_allocator *alloc, rp_loop **out, rp_error *err);
void rp_loop_free(rp_loop *loop); /* not while it runs; NULL is fine */
/* In the child of a fork, of a loop that the parent's thread runs: closes the child's copies of
 * its descriptors and touches nothing else. The memory stays: nobody knows in what state. */
void rp_loop_abandon(rp_loop *loop);

/* Runs until rp_loop_stop(). It can be run again afterwards. */
void rp_loop_run(rp_loop *loop);
/* Any thread, also before it runs. The turn goes on; the one that has run all posts made until
 * then calls on_turn_end and is the last. */
void rp_loop_stop(rp_loop *loop);

/* The monotonic time at which this turn began: no system call. */
int64_t rp_loop_now(const rp_loop *loop);

/* RP_HUNG_UP (both directions are over, or an error waits) is reported, never asked for: also
 * to a watch that asks for nothing, and again every turn until it is forgotten. RP_PEER_ENDED,
 * if asked for: the peer sends no more, though what it sent may be unread. */
enum { RP_READABLE = 1, RP_WRITABLE = 2, RP_HUNG_UP = 4, RP_PEER_ENDED = 8 };

/* Embed it in whatever owns the descriptor. Level-triggered. */
typedef struct rp_watch rp_watch;
struct rp_watch {
    int fd;
    uint32_t events; /* what is asked for now */
    void (*on_ready)(rp_watch *watch, uint32_t events);
};

/* Starts watching watch->fd for `events`. RP_NO_RESOURCE, RP_INVALID (not a descriptor that can
 * be watched, or watched already). */
RP_NODISCARD rp_status rp_loop_watch(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Changes what is asked for: no system call if nothing changes. Cannot fail. */
void rp_loop_change(rp_loop *loop, rp_watch *watch, uint32_t events);
/* Stops watching; call it before closing the descriptor. Its on_ready will not be called any
 * more, not even for what this turn had already seen. */
void rp_loop_forget(rp_loop *loop, rp_watch *watch);

/* Embed it; zero-initialise it and set on_due. */
typedef struct rp_timer rp_timer;
struct rp_timer {
    void (*on_due)(rp_timer *timer);
    int64_t due_ns; /* on the monotonic clock */
    size_t place;   /* private: 0 while not armed */
    /* Set it for timers of which thousands may be due at once, as those of calls: a turn calls
     * some hundreds of them, in the order of their times, and the next turns the others. Not to
     * be changed while armed. */
    bool is_bulk;
};

/* (Re)arms a timer: on_due is called once, at `due_ns` or a little later, in the order of the
 * times of its kind. Armed by an on_due for a time that has passed, it is called in the next
 * turn. Making room may fail: RP_NO_RESOURCE, then it is as before. A timer that is armed
 * already can always be moved. */
RP_NODISCARD rp_status rp_loop_arm(rp_loop *loop, rp_timer *timer, int64_t due_ns);
void rp_loop_disarm(rp_loop *loop, rp_timer *timer); /* not armed: nothing */

/* Embed it; its memory must stay until it has run. */
typedef struct rp_post rp_post;
struct rp_post {
    void (*run)(rp_post *post);
    rp_post *next; /* private */
};

/* Has post->run called on the loop's thread, in the order of the posts of one thread. Any
 * thread; takes no lock; wakes the loop only if it sleeps. A turn runs some hundreds of posts,
 * and the next turns the others. Posts made before rp_loop_stop() are run before rp_loop_run()
 * returns. */
void rp_loop_post(rp_loop *loop, rp_post *post);

/* Lets other threads do the loop's work for a moment, while its own sleeps: whoever has only
 * this one thing to do need not wake it for that. Before it runs. */
void rp_loop_share(rp_loop *loop);
/* Until rp_loop_leave() the caller is the loop's thread. The first waits until the turn that
 * runs is over; the second says false instead, or if there is more to do already. */
void rp_loop_enter(rp_loop *loop);
RP_NODISCARD bool rp_loop_try_enter(rp_loop *loop);
/* Ends the turn; and what that does, for a guest who goes on after it. */
void rp_loop_leave(rp_loop *loop);
void rp_loop_end_turn(rp_loop *loop);

/* Called at the end of every turn, when all that was ready has been dealt with and before the
 * loop sleeps: the place to write what has been gathered. */
void rp_loop_set_turn_end(rp_loop *loop, void (*on_turn_end)(void *user), void *user);

#endif

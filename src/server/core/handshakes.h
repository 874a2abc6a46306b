/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of TLS handshakes of a worker.
 *
 * A step of a handshake can take milliseconds of arithmetic, while a client's hello costs the
 * client nothing. So a turn of the loop makes at most RP_TURN_HANDSHAKES steps and then serves
 * open connections. The other handshakes are queued. The time that a handshake is queued does
 * not count towards the limit handshake_ms.
 *
 * There are RP_HANDSHAKE_QUEUES queues, and the number of the client's address says which one a
 * handshake enters. That number must come from a keyed hash (rp_gate_peer()), so that a client
 * cannot choose the addresses with which it shares a queue. The queues take turns, one step
 * each: an address with thousands of handshakes delays another one by one step a round, unless
 * they happen to share a queue.
 *
 * In a queue, handshakes whose first step has been made go before new ones. This holds for one
 * step of each, so that clients that send their part in many pieces do not hold up new ones.
 * Otherwise the order is that of arrival. If there are more than RP_PROMPT_HANDSHAKES in a
 * queue, the oldest become late: they are served when no other is in the queue, and their
 * connections may be closed for new ones. So a client that keeps thousands of hellos queued
 * delays a new client of its own address by RP_PROMPT_HANDSHAKES steps, and not by all of them.
 * If many queues are in use, fewer of each stay prompt, so that handshakes that wait do not
 * keep all places for connections. The owner closes a handshake that has been late for
 * RP_LATE_NS, so that its client tries again and is among the newest: otherwise it would stay
 * behind a flood for as long as that lasts.
 *
 * Nothing is allocated: the lists run through the handshakes. Each function takes constant
 * time, apart from handshakes whose peers have gone and those that become late, each once.
 *
 * Invariants:
 *   H1  a turn makes at most RP_TURN_HANDSHAKES steps;
 *   H2  is_queued is set exactly while a handshake is in a list, that of its rank in the queue
 *       of its address, and the timer is armed while there is one;
 *   H3  the ring that begins at `turn` has each queue that is not empty, once, and no other;
 *       `busy` is their number;
 *   H4  `prompt` is the number of handshakes in a queue that are not late. After a handshake
 * was
 *       added to the queue, this is 1, or at most RP_PROMPT_HANDSHAKES and places / 8 / busy.
 *       Of the queues in use, in the order of their last additions, the n-th found at least n
 *       in use. So all together have at most places / 8 * (1 + 1/2 + ... + 1/256) handshakes
 *       that are not late, less than 4/5 of the places, or one for each queue.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_HANDSHAKES_H
#define RP_SERVER_CORE_HANDSHAKES_H

#include "net/link.h"
#include "net/loop.h"

enum {
    RP_TURN_HANDSHAKES = 2, /* steps of TLS handshakes that one turn of a loop makes */
    RP_HANDSHAKE_QUEUES = 256,
    RP_PROMPT_HANDSHAKES = 256, /* the most of a queue that are not late (H4) */
};

#define RP_LATE_NS INT64_C(1000000000)

typedef enum rp_handshake_rank {
    RP_HANDSHAKE_BEGUN, /* its first step has been made */
    RP_HANDSHAKE_NEW,
    RP_HANDSHAKE_LATE,
    RP_HANDSHAKE_RANKS
} rp_handshake_rank;

/* The handshake of a connection; a part of rp_connection. */
typedef struct rp_handshake rp_handshake;
struct rp_handshake {
    rp_handshake *prev, *next;
    const rp_link *link;
    rp_watch *watch;
    uint64_t address;  /* the number of the client's address */
    int64_t queued_ns; /* when it was queued */
    unsigned steps;    /* made or begun: 0, 1, or 2 for more */
    rp_handshake_rank rank;
    bool is_queued;
};

typedef struct rp_handshake_list {
    rp_handshake *first, *last; /* the one that was added first, and last */
} rp_handshake_list;

typedef struct rp_handshake_queue rp_handshake_queue;
struct rp_handshake_queue {
    rp_handshake_list lists[RP_HANDSHAKE_RANKS];
    size_t prompt;                   /* H4 */
    rp_handshake_queue *prev, *next; /* in the ring, H3; NULL: the queue is empty */
};

typedef struct rp_handshakes_handler {
    /* Makes the next step of a handshake that has left the queue after `waited_ns`, or closes
     * its connection if the peer has gone. */
    void (*step)(rp_handshake *handshake, int64_t waited_ns);
    /* A queued handshake has become late. Must not close its connection at once, but after
     * RP_LATE_NS, if the handshake is late then. */
    void (*on_late)(rp_handshake *handshake);
} rp_handshakes_handler;

typedef struct rp_handshakes {
    rp_loop *loop;
    rp_timer timer;
    size_t steps; /* made in this turn */
    size_t places;
    size_t busy; /* H3 */
    const rp_handshakes_handler *handler;
    rp_handshake_queue *turn; /* H3: the queue whose turn is next; NULL: all are empty */
    rp_handshake_queue queues[RP_HANDSHAKE_QUEUES];
} rp_handshakes;

/* `handler` must outlive the queues. */
void rp_handshakes_init(rp_handshakes *handshakes, rp_loop *loop,
                        const rp_handshakes_handler *handler);
/* Sets how many places for connections the worker has, at any time. Before, it has enough. */
void rp_handshakes_set_places(rp_handshakes *handshakes, size_t places);
/* Whether a handshake whose descriptor has become ready may make a step now. If not, it is
 * queued, its descriptor is not watched for reading, and `step` is called in a later turn.
 * Others may become late, but not this one. */
RP_NODISCARD bool rp_handshake_may_step(rp_handshakes *handshakes, rp_handshake *handshake);
/* Whether a handshake is queued and late. */
bool rp_handshake_is_late(const rp_handshake *handshake);
/* Removes a handshake from its queue, if it is in one. */
void rp_handshake_forget(rp_handshakes *handshakes, rp_handshake *handshake);
/* Call it at the end of each turn of the loop. */
void rp_handshakes_end_turn(rp_handshakes *handshakes);

#endif

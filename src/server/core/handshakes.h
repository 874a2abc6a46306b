/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of the TLS handshakes of a worker, which bound the time that each turn (iteration)
 * of its event loop spends on handshakes.
 *
 * A step of a handshake handles the bytes that the client has sent. A step can take
 * milliseconds of arithmetic, while the hello that causes it costs the client nothing. So a
 * turn of the loop makes at most RP_TURN_HANDSHAKES steps and then serves open connections.
 * Further handshakes are queued. The time in a queue does not count towards the limit
 * handshake_ms.
 *
 * There are RP_HANDSHAKE_QUEUES queues. The hash of the client's address selects the queue of a
 * handshake. The hash must be keyed (rp_gate_peer()), so that a client cannot choose the
 * addresses with which it shares a queue. The queues are served round robin, one step each. So
 * an address with thousands of handshakes delays another address by one step a round, unless
 * both share a queue.
 *
 * In a queue, a handshake that waits for its second step goes before new ones. For later steps
 * it waits like a new one, so that a client that sends its bytes in many pieces does not delay
 * others. Apart from that, handshakes are served in the order of their arrival. If a queue has
 * more than RP_PROMPT_HANDSHAKES handshakes, the oldest become late. Late handshakes are served
 * only when no other handshake is in the queue, the youngest first. The server is allowed to
 * close their connections to make places for new ones. So a client that keeps thousands of
 * hellos queued delays a new client of its own address by at most RP_PROMPT_HANDSHAKES steps. A
 * handshake that is not late is called prompt. If many queues are in use, fewer handshakes of
 * each queue stay prompt, so that waiting handshakes do not take all places for connections
 * (newcomers.h). The server closes a handshake that has been late for RP_LATE_NS. Its client
 * can then connect again, so that its handshake is one of the newest. Otherwise the client
 * would wait until a flood of handshakes ends.
 *
 * The queues allocate no memory: the handshakes hold the links of the lists. Each function
 * takes constant time, plus some time for each handshake that becomes late or whose peer has
 * gone.
 *
 * Invariants:
 *   H1  a turn makes at most RP_TURN_HANDSHAKES steps;
 *   H2  is_queued is set exactly while the handshake is in a list: the list of its rank in the
 *       queue of its address. The timer is armed while a handshake is queued;
 *   H3  the ring that begins at `turn` contains the queues that are not empty, each once.
 *       `busy` is their number;
 *   H4  `prompt` is the number of handshakes in a queue that are not late. After a handshake
 *       was added to the queue, `prompt` is 1, or at most the lesser of RP_PROMPT_HANDSHAKES
 *       and places / 8 / busy. So all queues together have fewer prompt handshakes than 4/5 of
 *       the places, or one for each queue. Proof: number the queues in use in the order of
 *       their last additions. When a handshake was last added to the n-th queue, at least n
 *       queues were in use, so this queue has at most places / 8 / n prompt handshakes. The sum
 *       is at most places / 8 * (1 + 1/2 + ... + 1/256).
 *
 * All functions must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_HANDSHAKES_H
#define RP_SERVER_CORE_HANDSHAKES_H

#include "net/link.h"
#include "net/loop.h"

enum {
    RP_TURN_HANDSHAKES = 2, /* steps of TLS handshakes that one turn of a loop makes */
    RP_HANDSHAKE_QUEUES = 256,
    RP_PROMPT_HANDSHAKES = 256, /* the most handshakes of a queue that are not late (H4) */
};

#define RP_LATE_NS INT64_C(1000000000)

typedef enum rp_handshake_rank {
    RP_HANDSHAKE_BEGUN, /* waits for its second step */
    RP_HANDSHAKE_NEW,
    RP_HANDSHAKE_LATE,
    RP_HANDSHAKE_RANKS
} rp_handshake_rank;

/* The handshake of a connection, embedded in rp_connection. */
typedef struct rp_handshake rp_handshake;
struct rp_handshake {
    rp_handshake *prev, *next;
    const rp_link *link;
    rp_watch *watch;
    uint64_t address;  /* hash of the client's address */
    int64_t queued_ns; /* time at which it was queued */
    unsigned steps;    /* number of steps made or begun, at most 2 */
    rp_handshake_rank rank;
    bool is_queued;
};

typedef struct rp_handshake_list {
    rp_handshake *first, *last; /* the handshakes that were added first and last */
} rp_handshake_list;

typedef struct rp_handshake_queue rp_handshake_queue;
struct rp_handshake_queue {
    rp_handshake_list lists[RP_HANDSHAKE_RANKS];
    size_t prompt;                   /* invariant H4 */
    rp_handshake_queue *prev, *next; /* in the ring, H3; NULL: the queue is empty */
};

typedef struct rp_handshakes_handler {
    /* Makes the next step of a handshake that has left the queue after `waited_ns`, or closes
     * its connection if the peer has gone. */
    void (*step)(rp_handshake *handshake, int64_t waited_ns);
    /* Called when a queued handshake has become late. Must not close the connection at once. If
     * the handshake is still late after RP_LATE_NS, the owner must close the connection. */
    void (*on_late)(rp_handshake *handshake);
} rp_handshakes_handler;

typedef struct rp_handshakes {
    rp_loop *loop;
    rp_timer timer;
    size_t steps; /* number of steps made in this turn */
    size_t places;
    size_t busy; /* invariant H3 */
    const rp_handshakes_handler *handler;
    rp_handshake_queue *turn; /* the queue whose turn is next; NULL: all are empty (H3) */
    rp_handshake_queue queues[RP_HANDSHAKE_QUEUES];
} rp_handshakes;

/* `handler` must outlive the queues. */
void rp_handshakes_init(rp_handshakes *handshakes, rp_loop *loop,
                        const rp_handshakes_handler *handler);
/* Sets how many places for connections the worker has. May be called at any time. Until the
 * first call the number is not limited. */
void rp_handshakes_set_places(rp_handshakes *handshakes, size_t places);
/* Returns whether a handshake whose descriptor has become ready may make a step now. If false,
 * the handshake is queued, its descriptor is not watched for reading, and `step` is called in a
 * later turn. If there is no memory for the timer, returns false without queueing the
 * handshake: its descriptor stays ready, and the caller must ask again in the next turn. This
 * call can make other handshakes late, but not this one. */
RP_NODISCARD bool rp_handshake_may_step(rp_handshakes *handshakes, rp_handshake *handshake);
/* Returns whether a handshake is queued and late. */
bool rp_handshake_is_late(const rp_handshake *handshake);
/* Removes a handshake from its queue, if it is in one. */
void rp_handshake_forget(rp_handshakes *handshakes, rp_handshake *handshake);
/* Must be called at the end of each turn of the worker's loop. */
void rp_handshakes_end_turn(rp_handshakes *handshakes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Looking after a connection: a peer that takes too long is cut off. A timer looks at each
 * connection, more often while something takes time. */
#ifndef RP_SERVER_CORE_CONNECTION_WATCH_H
#define RP_SERVER_CORE_CONNECTION_WATCH_H

#include "server/core/inside.h"

enum {
    RP_LOOK_NS = 1000000000, /* between looks while something may take too long */
    RP_HELD_NS = 50000000,   /* and while there is no memory to read more */
};

static inline int64_t rp_ms(int64_t milliseconds)
{
    return milliseconds * 1000000;
}

/* What the timer of a connection calls: closes it if its peer is too slow, and sets the timer
 * again otherwise. */
void rp_connection_look_after(rp_timer *timer);

/* Of connection.c: */

/* Has it looked after at `due_ns`. */
void rp_connection_look_at(rp_connection *connection, int64_t due_ns);
/* Whether the peer may send us more now: not while the budget has no room for it. */
bool rp_connection_may_read(const rp_connection *connection);
/* Whether it waits for room, or has some by a turn: then it is looked after more often. */
bool rp_connection_is_held_up(const rp_connection *connection);
/* Whether something was begun that may take too long. */
bool rp_connection_takes_time(const rp_connection *connection, bool is_blocked);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Taking connections: on the first worker's loop, each handed to the worker that has fewest. */
#ifndef RP_SERVER_CORE_ACCEPTOR_H
#define RP_SERVER_CORE_ACCEPTOR_H

#include "net/listener.h"
#include "net/loop.h"
#include "reprise/server.h"

/* A listening descriptor, on the first worker's loop. */
typedef struct rp_listener_watch {
    rp_watch watch;
    rp_server *server;
} rp_listener_watch;

typedef struct rp_server_listener {
    rp_listener listener;
    rp_listener_watch watches[RP_LISTENER_MAX_FDS];
} rp_server_listener;

/* Starts and stops taking connections. Any thread. */
void rp_server_accept(rp_server *server);
void rp_server_stop_accepting(rp_server *server);

#endif

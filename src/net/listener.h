/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on, and the sockets made from them. */
#ifndef RP_NET_LISTENER_H
#define RP_NET_LISTENER_H

#include "reprise/alloc.h"

enum {
    RP_LISTENER_MAX_FDS = 8, /* a name may stand for several addresses */
    RP_PEER_BYTES = 64,      /* enough for the address of a peer as text */
};

typedef struct rp_listener {
    int fds[RP_LISTENER_MAX_FDS];
    size_t fd_count;
    int port;            /* of TCP; 0 for a Unix socket */
    bool is_local;       /* loopback or Unix: nobody from elsewhere can reach it */
    char unix_path[108]; /* "" for TCP; removed on close */
    char text[128];      /* the address as a person would write it */
} rp_listener;

/* Binds and listens: "host:port", "[v6]:port", ":port" (every address, v6 and v4 in one), a
 * name (every loopback or other address it has: "localhost:8000" gives 127.0.0.1 and ::1 where
 * the machine has them, on one port), "unix:/path" (a stale socket file is replaced, a live one
 * refused), or "fd:n" (listens already). Port 0 picks one. Sockets do not block, close on exec.
 * RP_INVALID (the text, and what is wrong with it), RP_UNAVAILABLE (in use), RP_NOT_FOUND (no
 * such name), RP_DENIED (permissions), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_listener_open(rp_listener *listener, const char *address,
                                        rp_error *err);
void rp_listener_close(rp_listener *listener);

/* Whether an address is local, without binding it: for checks of a configuration. RP_INVALID,
 * RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_address_is_local(const char *address, bool *is_local, rp_error *err);

/* The next connection: its descriptor, set up for us (does not block, closes on exec, no delay,
 * TCP_USER_TIMEOUT, SO_SNDBUF capped at 512 KiB on TCP and raised to 1 MiB on Unix sockets), or
 * -1 with errno: EAGAIN when there is none, EMFILE and so on. `peer` receives the address as
 * text. */
int rp_listener_accept(int fd, char *peer, size_t peer_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A listener: the listening sockets for one address of a server. */
#ifndef RP_NET_LISTENER_H
#define RP_NET_LISTENER_H

#include "reprise/alloc.h"

enum {
    RP_LISTENER_MAX_FDS = 8, /* a name can have several addresses */
    RP_PEER_BYTES = 64,      /* enough for the address of a peer as text */
};

typedef struct rp_listener {
    int fds[RP_LISTENER_MAX_FDS];
    size_t fd_count;
    int port;            /* TCP port; 0 for a Unix socket */
    bool is_local;       /* loopback or Unix socket: not reachable from other hosts */
    char unix_path[108]; /* "" for TCP; the socket file is removed on close */
    char text[128];      /* the address as text, for messages */
} rp_listener;

/* Binds and listens on an address:
 *
 *   "host:port"    one IPv4 address, or all addresses of a name, on one port: "localhost:8000"
 *                  is 127.0.0.1 and ::1, if the machine has both
 *   "[v6]:port"    one IPv6 address
 *   ":port"        every address, IPv6 and IPv4 on one socket
 *   "unix:/path"   a Unix socket. A socket file on which no process listens is replaced. If a
 *                  process listens on it, the result is RP_UNAVAILABLE
 *   "fd:n"         the descriptor n, which is already a listening socket
 *
 * For port 0 the system chooses a free port. The sockets are non-blocking and close on exec.
 * Errors: RP_INVALID (the error has the reason), RP_UNAVAILABLE (in use), RP_NOT_FOUND (no such
 * name or directory), RP_DENIED (permissions), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_listener_open(rp_listener *listener, const char *address,
                                        rp_error *err);
void rp_listener_close(rp_listener *listener);

/* Sets `*is_local` to whether an address is local (rp_listener.is_local), without binding it.
 * For checking a configuration. Errors: RP_INVALID, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_address_is_local(const char *address, bool *is_local, rp_error *err);

/* Accepts a connection. Returns its descriptor with all options set (non-blocking, close on
 * exec, TCP_NODELAY, TCP_USER_TIMEOUT, SO_SNDBUF capped at 512 KiB on TCP and raised to 1 MiB
 * on Unix sockets), or -1 with errno set: EAGAIN if no connection waits, or another error such
 * as EMFILE. `peer` receives the address of the peer as text. */
int rp_listener_accept(int fd, char *peer, size_t peer_bytes);

#endif

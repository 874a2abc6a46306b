/* SPDX-License-Identifier: Apache-2.0 */
/* Passes file descriptors to another process over Unix sockets. No function blocks. */
#ifndef RP_NET_FD_PASS_H
#define RP_NET_FD_PASS_H

#include "reprise/status.h"

bool rp_fd_is_unix_socket(int socket);

/* Sends `size` bytes together with the descriptor `fd`. The receiver gets a copy of the
 * descriptor. Returns false if not all bytes were sent. */
bool rp_fd_send(int socket, const void *data, size_t size, int fd);

/* Receives up to `size` bytes, and at most one descriptor. `*fd` receives the descriptor, or -1
 * if none has arrived. Returns the number of bytes received, or 0 if the peer has closed the
 * connection. Returns -1 if no bytes have arrived. If the socket has failed, returns -1 and
 * sets `*broken`. */
int64_t rp_fd_receive(int socket, void *data, size_t size, int *fd, bool *broken);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that travel over Unix sockets. Neither call waits. */
#ifndef RP_NET_FD_PASS_H
#define RP_NET_FD_PASS_H

#include "reprise/status.h"

bool rp_fd_is_unix_socket(int socket);

/* Sends a message with a descriptor, of which the receiver gets a copy. False if it did not go
 * out as a whole. */
bool rp_fd_send(int socket, const void *data, size_t size, int fd);

/* Receives up to `size` bytes, and at most one descriptor: `*fd`, or -1 if none came. Returns
 * the bytes; 0: the peer is gone; -1: nothing there yet (EAGAIN), or broken (`*broken`). */
int64_t rp_fd_receive(int socket, void *data, size_t size, int *fd, bool *broken);

#endif

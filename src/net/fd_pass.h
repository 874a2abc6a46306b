/* SPDX-License-Identifier: Apache-2.0 */
/* Passes descriptors over Unix sockets. No call blocks. */
#ifndef RP_NET_FD_PASS_H
#define RP_NET_FD_PASS_H

#include "reprise/status.h"

bool rp_fd_is_unix_socket(int socket);

/* Sends a message with a descriptor, of which the receiver gets a copy. False if it was not
 * sent as a whole. */
bool rp_fd_send(int socket, const void *data, size_t size, int fd);

/* Receives up to `size` bytes, and at most one descriptor: `*fd`, or -1. Returns the number of
 * bytes; 0: the peer has closed; -1: there is no message yet, or the socket has failed
 * (`*broken`). */
int64_t rp_fd_receive(int socket, void *data, size_t size, int *fd, bool *broken);

#endif

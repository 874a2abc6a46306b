/* SPDX-License-Identifier: Apache-2.0 */
/* Passes descriptors over Unix sockets. No call blocks. */
#ifndef RP_NET_FD_PASS_H
#define RP_NET_FD_PASS_H

#include "reprise/status.h"

bool rp_fd_is_unix_socket(int socket);

/* Sends a message with a descriptor, of which the receiver gets a copy. False if not all of the
 * message was sent. */
bool rp_fd_send(int socket, const void *data, size_t size, int fd);

/* Receives up to `size` bytes, and at most one descriptor in `*fd` (-1: none). Returns the
 * number of bytes; 0 if the peer has closed; -1 if there is no message yet, or, with `*broken`
 * set, if the socket has failed. */
int64_t rp_fd_receive(int socket, void *data, size_t size, int *fd, bool *broken);

#endif

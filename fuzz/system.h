/* SPDX-License-Identifier: Apache-2.0 */
/* A system in memory, in the place of the real one: sockets, epoll, seeds, sizes.
 *
 * The linker puts it between the server and the C library (meson.build says for which calls),
 * so that a session costs no system call and is the same each time and everywhere. A socket is
 * one end of a pair, the server's; its peer uses the functions below. Other descriptors are
 * passed on. One thread. */
#ifndef RP_FUZZ_SYSTEM_H
#define RP_FUZZ_SYSTEM_H

#include "fuzz.h"

/* Opens a socket that takes `room` bytes each way, FUZZ_SOCKET_ROOM at most; the server's
 * descriptor, which names it for the peer too. */
enum { FUZZ_SOCKET_ROOM = 1 << 16 };
int fuzz_socket_open(size_t room);

/* Sends what there is room for; how much that was. Nothing once the server has closed it. */
size_t fuzz_socket_send(int fd, const uint8_t *data, size_t size);

/* Reads `most` bytes at most of what the server has sent, and forgets them. */
void fuzz_socket_take(int fd, size_t most);

/* The peer sends nothing more; the peer is gone. */
void fuzz_socket_end(int fd);
void fuzz_socket_hang_up(int fd);

/* Descriptors that the server has not closed: sockets and its loop's. */
size_t fuzz_system_open(void);

#endif

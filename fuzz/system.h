/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated operating system for the fuzz target of the server: sockets, epoll, random seeds,
 * sizes.
 *
 * The linker replaces the C library's functions that the server calls (meson.build lists them)
 * by functions of system.c. A session with the server therefore makes no system calls, and is
 * the same each time and on every machine. A simulated socket is the server's end of a
 * connection. The fuzz target is its peer, and uses the functions below. Calls with other
 * descriptors are passed to the C library. Not thread-safe. */
#ifndef RP_FUZZ_SYSTEM_H
#define RP_FUZZ_SYSTEM_H

#include "fuzz.h"

/* Opens a socket that buffers `room` bytes in each direction; `room` is at most
 * FUZZ_SOCKET_ROOM. Returns the server's descriptor, which is the `fd` of the functions below.
 */
enum { FUZZ_SOCKET_ROOM = 1 << 16 };
int fuzz_socket_open(size_t room);

/* Sends as many of the bytes to the server as the socket can buffer, and returns their number.
 * Returns 0 after the server has closed the socket. */
size_t fuzz_socket_send(int fd, const uint8_t *data, size_t size);

/* Reads and discards at most `most` bytes that the server has sent. */
void fuzz_socket_take(int fd, size_t most);

/* fuzz_socket_end(): the peer sends no more bytes, but still receives. fuzz_socket_hang_up():
 * the peer closes the socket. */
void fuzz_socket_end(int fd);
void fuzz_socket_hang_up(int fd);

/* Returns the number of descriptors that the server has not closed: sockets, and the
 * descriptors of its event loop. */
size_t fuzz_system_open(void);

#endif

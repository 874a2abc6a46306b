/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated operating system for the fuzz target of the server: sockets, epoll, random seeds,
 * sizes.
 *
 * The linker redirects calls of the server to the C library (meson.build lists them), so that a
 * session makes no system calls and is the same each time and on every machine. A socket is the
 * server's end of a pair. The fuzz target is the peer, and uses the functions below. Calls with
 * other descriptors are passed to the C library. Not thread-safe. */
#ifndef RP_FUZZ_SYSTEM_H
#define RP_FUZZ_SYSTEM_H

#include "fuzz.h"

/* Opens a socket that buffers `room` bytes in each direction, at most FUZZ_SOCKET_ROOM. Returns
 * the server's descriptor. The functions below take the same descriptor. */
enum { FUZZ_SOCKET_ROOM = 1 << 16 };
int fuzz_socket_open(size_t room);

/* Sends as many bytes as the socket can buffer, and returns their number, which is 0 once the
 * server has closed the socket. */
size_t fuzz_socket_send(int fd, const uint8_t *data, size_t size);

/* Reads and discards at most `most` bytes that the server has sent. */
void fuzz_socket_take(int fd, size_t most);

/* fuzz_socket_end(): the peer sends no more bytes and still reads. fuzz_socket_hang_up(): the
 * peer closes the socket. */
void fuzz_socket_end(int fd);
void fuzz_socket_hang_up(int fd);

/* Returns the number of descriptors that the server has not closed: sockets, and the
 * descriptors of its event loop. */
size_t fuzz_system_open(void);

#endif

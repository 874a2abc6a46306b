/* SPDX-License-Identifier: Apache-2.0 */
/* A server that a test controls, frame by frame, with or without its own thread. */
#ifndef RP_TEST_SCRIPTED_H
#define RP_TEST_SCRIPTED_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fixture.h"

typedef struct scripted {
    int listener, port;
    pthread_t thread;
    bool has_thread;
    char address[32];
} scripted;

/* Listens on a free port of loopback; `run` (NULL: nobody accepts) gets the scripted. */
static inline void scripted_start(scripted *s, void *(*run)(void *))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;

    *s = (scripted){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &bytes), 0);
    s->port = ntohs(at.sin_port);
    (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%d", s->port);
    if (run == NULL) return;
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    s->has_thread = true;
}

static inline void scripted_stop(scripted *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    if (s->has_thread) (void)pthread_join(s->thread, NULL);
    (void)close(s->listener);
}

static inline bool scripted_read(int fd, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)data + done, size - done);

        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static inline void scripted_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream,
                                  const void *data, size_t size)
{
    uint8_t frame[256] = {0, (uint8_t)(size >> 8), (uint8_t)size, type, flags, 0, 0,
                          0, (uint8_t)stream};

    if (size > 0) memcpy(frame + 9, data, size);
    (void)!send(fd, frame, 9 + size, MSG_NOSIGNAL);
}

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6, GOAWAY = 7 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

/* The next connection, greeted; -1 once it is stopped. */
static inline int scripted_accept(scripted *s)
{
    char preface[24];
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0) return -1;
    scripted_frame(fd, SETTINGS, 0, 0, NULL, 0);
    if (scripted_read(fd, preface, sizeof preface)) return fd;
    (void)close(fd);
    return -1;
}

/* Reads up to the headers of a call, and returns its stream; 0 at the end of the connection. */
static inline uint32_t scripted_await_call(int fd)
{
    uint8_t head[9], body[4096];

    while (scripted_read(fd, head, sizeof head)) {
        size_t size = (size_t)head[1] << 8 | head[2];

        if (size > sizeof body || !scripted_read(fd, body, size)) return 0;
        if (head[3] == HEADERS) return head[8];
    }
    return 0;
}

/* ":status: 200" and "content-type: application/grpc". */
#define SCRIPTED_HEAD                                                                          \
    "\x88\x00\x0c"                                                                             \
    "content-type\x10"                                                                         \
    "application/grpc"

/* Ends a call without an answer, with a status of one digit or two. */
static inline void scripted_end(int fd, uint32_t stream, const char *status)
{
    char block[80] = SCRIPTED_HEAD "\x00\x0bgrpc-status";
    size_t size = sizeof SCRIPTED_HEAD - 1 + 13;

    block[size++] = (char)strlen(status);
    memcpy(block + size, status, strlen(status));
    scripted_frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, block, size + strlen(status));
}

#endif

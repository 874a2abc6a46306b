/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets behave like pairs of AF_UNIX sockets: bytes that were sent before the end are still
 * read, a peer that closes with unread bytes resets the connection, and a write after the peer
 * has closed fails with EPIPE. The bytes that the server sends are read once, for the
 * sanitizers, and counted. */
#include "system.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { SOCKETS = 32, FIRST_FD = 1 << 20, EPOLL_FD = FIRST_FD + SOCKETS, EVENT_FD };

typedef struct socket_pair {
    bool is_open, is_watched; /* as the server sees it */
    bool has_peer, peer_ended, server_ended, is_reset;
    struct epoll_event watch;
    size_t room;
    size_t out;         /* bytes that the peer has not read */
    size_t first, last; /* in `inbox`: bytes that the server has not read */
    uint8_t *inbox;
} socket_pair;

static socket_pair sockets[SOCKETS];
static uint8_t inboxes[SOCKETS][FUZZ_SOCKET_ROOM];
static bool epoll_is_open, event_is_open;

/* Returns the socket with this descriptor; NULL if it is not ours. */
static socket_pair *find(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + SOCKETS ? &sockets[fd - FIRST_FD] : NULL;
}

int fuzz_socket_open(size_t room)
{
    int i = 0;

    fuzz_check(room > 0 && room <= FUZZ_SOCKET_ROOM);
    while (i < SOCKETS && (sockets[i].is_open || sockets[i].has_peer)) i++;
    fuzz_check(i < SOCKETS);
    sockets[i] =
        (socket_pair){.is_open = true, .has_peer = true, .room = room, .inbox = inboxes[i]};
    return FIRST_FD + i;
}

size_t fuzz_socket_send(int fd, const uint8_t *data, size_t size)
{
    socket_pair *s = find(fd);
    size_t used = s->last - s->first;

    if (!s->is_open || s->peer_ended) return 0;
    if (size > s->room - used) size = s->room - used;
    if (size > FUZZ_SOCKET_ROOM - s->last) {
        memmove(s->inbox, s->inbox + s->first, used);
        s->first = 0;
        s->last = used;
    }
    memcpy(s->inbox + s->last, data, size);
    s->last += size;
    return size;
}

void fuzz_socket_take(int fd, size_t most)
{
    socket_pair *s = find(fd);

    s->out -= s->out < most ? s->out : most;
}

void fuzz_socket_end(int fd)
{
    find(fd)->peer_ended = true;
}

void fuzz_socket_hang_up(int fd)
{
    socket_pair *s = find(fd);

    s->has_peer = false;
    s->peer_ended = true;
    s->is_reset = s->out > 0;
}

size_t fuzz_system_open(void)
{
    size_t count = (size_t)epoll_is_open + event_is_open;

    for (int i = 0; i < SOCKETS; i++) count += sockets[i].is_open;
    return count;
}

/* The linker's option --wrap defines these names. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_shutdown(int fd, int how);
ssize_t __wrap_readv(int fd, const struct iovec *parts, int part_count);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ready, int capacity, int wait_ms);
int __wrap_sysinfo(struct sysinfo *info);
uint64_t __wrap_rp_system_seed(void);

int __wrap_close(int fd)
{
    socket_pair *s = find(fd);

    if (fd == EPOLL_FD) {
        fuzz_check(epoll_is_open);
        epoll_is_open = false;
    } else if (fd == EVENT_FD) {
        fuzz_check(event_is_open);
        event_is_open = false;
    } else if (s == NULL) {
        return __real_close(fd);
    } else {
        fuzz_check(s->is_open); /* a second close could close another descriptor */
        s->is_open = s->is_watched = false;
    }
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    socket_pair *s = find(fd);

    fuzz_check(s != NULL && s->is_open && how == SHUT_WR);
    s->server_ended = true;
    return 0;
}

static ssize_t fail(int error)
{
    errno = error;
    return -1;
}

/* Returns the result of a read if there is nothing to read. */
static ssize_t read_nothing(socket_pair *s)
{
    bool is_reset = s->is_reset;

    s->is_reset = false; /* reported once */
    if (is_reset) return fail(ECONNRESET);
    return s->peer_ended ? 0 : fail(EAGAIN);
}

ssize_t __wrap_readv(int fd, const struct iovec *parts, int part_count)
{
    socket_pair *s = find(fd);
    size_t moved = 0;

    fuzz_check(s != NULL && s->is_open);
    if (s->first == s->last) return read_nothing(s);
    for (int i = 0; i < part_count; i++) {
        size_t size = s->last - s->first;
        if (size > parts[i].iov_len) size = parts[i].iov_len;
        if (size > 0) memcpy(parts[i].iov_base, s->inbox + s->first, size);
        s->first += size;
        moved += size;
    }
    if (s->first == s->last) s->first = s->last = 0;
    return (ssize_t)moved;
}

ssize_t __wrap_recv(int fd, void *data, size_t size, int flags)
{
    socket_pair *s = find(fd);

    fuzz_check(s != NULL && s->is_open && (flags & MSG_PEEK) != 0);
    if (s->first == s->last) return read_nothing(s);
    if (size > s->last - s->first) size = s->last - s->first;
    memcpy(data, s->inbox + s->first, size);
    return (ssize_t)size;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    static uint8_t seen[FUZZ_SOCKET_ROOM];
    socket_pair *s = find(fd);
    size_t left, moved = 0;

    fuzz_check(s != NULL && s->is_open && (flags & MSG_NOSIGNAL) != 0);
    if (!s->has_peer || s->server_ended) return fail(EPIPE);
    if (s->out == s->room) return fail(EAGAIN);
    left = s->room - s->out;
    for (size_t i = 0; i < message->msg_iovlen && left > 0; i++) {
        const struct iovec *part = &message->msg_iov[i];
        size_t size = part->iov_len < left ? part->iov_len : left;
        if (size > 0) memcpy(seen, part->iov_base, size);
        left -= size;
        moved += size;
    }
    s->out += moved;
    return (ssize_t)moved;
}

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    fuzz_check(!epoll_is_open);
    epoll_is_open = true;
    return EPOLL_FD;
}

int __wrap_eventfd(unsigned value, int flags)
{
    (void)flags;
    fuzz_check(!event_is_open && value == 0);
    event_is_open = true;
    return EVENT_FD;
}

int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
    socket_pair *s = find(fd);

    fuzz_check(epoll_fd == EPOLL_FD && epoll_is_open);
    if (fd == EVENT_FD) return 0; /* no other thread could wake the loop */
    fuzz_check(s != NULL && s->is_open && s->is_watched == (what != EPOLL_CTL_ADD));
    s->is_watched = what != EPOLL_CTL_DEL;
    if (s->is_watched) s->watch = *event;
    return 0;
}

static uint32_t events_of(const socket_pair *s)
{
    uint32_t events = 0;

    if (s->first < s->last || s->peer_ended) events |= EPOLLIN;
    if (!s->has_peer || 4 * s->out <= s->room) events |= EPOLLOUT;
    if (!s->has_peer || (s->peer_ended && s->server_ended)) events |= EPOLLHUP;
    if (s->is_reset) events |= EPOLLERR;
    return events & (s->watch.events | EPOLLHUP | EPOLLERR);
}

int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ready, int capacity, int wait_ms)
{
    int count = 0;

    fuzz_check(epoll_fd == EPOLL_FD && epoll_is_open && wait_ms == 0);
    for (int i = 0; i < SOCKETS && count < capacity; i++) {
        const socket_pair *s = &sockets[i];
        uint32_t events = s->is_watched ? events_of(s) : 0;
        if (events != 0)
            ready[count++] = (struct epoll_event){.events = events, .data = s->watch.data};
    }
    return count;
}

int __wrap_sysinfo(struct sysinfo *info)
{
    *info = (struct sysinfo){.totalram = 16UL << 20, .mem_unit = 1024};
    return 0;
}

uint64_t __wrap_rp_system_seed(void)
{
    return 7;
}

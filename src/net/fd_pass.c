/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fd_pass.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Memory for one descriptor, aligned for its header. Its padding has room for a second
 * descriptor, so a receiver passes CMSG_LEN and not the size of this union. */
typedef union room {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} room;

bool rp_fd_is_unix_socket(int socket)
{
    int domain = 0;
    socklen_t size = sizeof domain;

    return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

bool rp_fd_send(int socket, const void *data, size_t size, int fd)
{
    struct iovec part = {(void *)(uintptr_t)data, size};
    room control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    assert(size > 0 && fd >= 0);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

/* Returns the descriptor of a message, or -1. There is room for one; the system drops others.
 */
static int find_fd(struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int fd = -1;

    for (; head != NULL; head = CMSG_NXTHDR(message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
            head->cmsg_len == CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

int64_t rp_fd_receive(int socket, void *data, size_t size, int *fd, bool *broken)
{
    struct iovec part = {data, size};
    room control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof *fd)};
    ssize_t moved;

    *fd = -1;
    *broken = false;
    do {
        moved = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (moved < 0 && errno == EINTR);
    if (moved < 0) {
        *broken = errno != EAGAIN && errno != EWOULDBLOCK;
        return -1;
    }
    *fd = find_fd(&message);
    return moved;
}

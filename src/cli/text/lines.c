/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: begin <= scanned <= buffer.size <= RP_LINE_BYTES. */
#include "cli/text/lines.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };

void rp_lines_init(rp_lines *l, int fd, int wake_fd)
{
    *l = (rp_lines){.fd = fd, .wake_fd = wake_fd};
}

void rp_lines_deinit(rp_lines *l)
{
    rp_text_buffer_deinit(&l->buffer);
}

/* Removes the lines that were returned from the buffer. */
static void shift(rp_lines *l)
{
    assert(l->begin <= l->scanned && l->scanned <= l->buffer.size);
    if (l->begin == 0) return;
    memmove(l->buffer.text, l->buffer.text + l->begin, l->buffer.size - l->begin);
    l->buffer.size -= l->begin;
    l->scanned -= l->begin;
    l->begin = 0;
    assert(l->scanned <= l->buffer.size);
}

static rp_lines_result read_more(rp_lines *l)
{
    struct pollfd fds[2] = {{l->fd, POLLIN, 0}, {l->wake_fd, POLLIN, 0}};
    char bytes[READ_BYTES];
    ssize_t got;

    if (poll(fds, l->wake_fd >= 0 ? 2 : 1, -1) < 0 && errno != EINTR) return RP_LINES_FAILED;
    if (l->wake_fd >= 0 && fds[1].revents != 0) return RP_LINES_WOKEN;
    assert(!l->end);
    if (fds[0].revents == 0) return RP_LINES_ONE; /* interrupted: try again */
    got = read(l->fd, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR || errno == EAGAIN ? RP_LINES_ONE : RP_LINES_FAILED;
    if (got == 0) l->end = true;
    shift(l);
    if (l->buffer.size + (size_t)got > RP_LINE_BYTES) return RP_LINES_TOO_LONG;
    rp_text_buffer_add(&l->buffer, bytes, (size_t)got);
    return l->buffer.failed ? RP_LINES_TOO_LONG : RP_LINES_ONE;
}

rp_lines_result rp_lines_next(rp_lines *l, const char **line, size_t *size)
{
    for (;;) {
        const char *text = rp_text_buffer_text(&l->buffer);
        const char *newline = memchr(text + l->scanned, '\n', l->buffer.size - l->scanned);
        rp_lines_result result;

        if (newline != NULL || (l->end && l->begin < l->buffer.size)) {
            size_t stop = newline != NULL ? (size_t)(newline - text) : l->buffer.size;

            assert(l->begin <= stop && stop <= l->buffer.size);
            *line = text + l->begin;
            *size = stop - l->begin;
            l->begin = l->scanned = newline != NULL ? stop + 1 : stop;
            return RP_LINES_ONE;
        }
        if (l->end) return RP_LINES_END;
        l->scanned = l->buffer.size;
        result = read_more(l);
        if (result != RP_LINES_ONE) return result;
    }
}

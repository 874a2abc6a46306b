/* SPDX-License-Identifier: Apache-2.0 */
/* A history starts with a line that names its format. Only such a file is cut when it grows: a
 * file of somebody else that REPRISE_HISTORY names keeps its lines. */
#include "cli/shell/line_history.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/shell/shell_words.h"

enum { READ_BYTES = 1 << 20 }; /* of the end of the file */

static const char format[] = "# history of reprise\n";

/* Returns true if the line may give a token to a command. */
static bool has_token(const char *line)
{
    static rp_shell_words w; /* too large for a stack */
    rp_problem problem;
    rp_arena arena;
    bool found = true; /* if the words cannot be known */

    rp_arena_init(&arena, NULL);
    if (rp_shell_split(&arena, line, strlen(line), &w, &problem) == RP_OK) {
        /* The words of a quote that is not closed are one word. */
        found = w.is_open && strstr(line, "--token") != NULL;
        for (size_t i = 0; i < w.count; i++)
            if (strcmp(w.words[i], "--token") == 0 || strncmp(w.words[i], "--token=", 8) == 0)
                found = true;
    }
    rp_arena_deinit(&arena);
    return found;
}

static bool is_wanted(const rp_line_history *h, const char *line)
{
    if (line[0] == '\0' || line[0] == ' ' || strchr(line, '\n') != NULL) return false;
    if (strlen(line) >= RP_HISTORY_LINE_BYTES) return false;
    if (h->count > 0 && strcmp(h->lines[h->count - 1], line) == 0) return false;
    return !has_token(line);
}

static void keep(rp_line_history *h, const char *line)
{
    char *copy = strdup(line);

    if (copy == NULL) return;
    if (h->count == RP_HISTORY_LINES) {
        free(h->lines[0]);
        memmove(&h->lines[0], &h->lines[1], (RP_HISTORY_LINES - 1) * sizeof h->lines[0]);
        h->count--;
    }
    assert(h->count < RP_HISTORY_LINES);
    h->lines[h->count++] = copy;
}

/* Opens a regular file, which only its owner can read from then on. Returns -1 for any other
 * file, without waiting for it, and if the permissions of others cannot be taken away. */
static int open_private(const char *path, int flags, struct stat *st)
{
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

    if (fd < 0) return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
        ((st->st_mode & 077) == 0 || fchmod(fd, 0600) == 0))
        return fd;
    (void)close(fd);
    return -1;
}

/* Writes all bytes, or returns false. */
static bool write_text(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, text, size);

        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        text += count;
        size -= (size_t)count;
    }
    return true;
}

/* Reads up to `size` bytes. Returns their number. */
static size_t read_text(int fd, char *text, size_t size, off_t at)
{
    size_t done = 0;

    while (done < size) {
        ssize_t count = pread(fd, text + done, size - done, at + (off_t)done);

        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += (size_t)count;
    }
    return done;
}

/* Keeps the lines of a text. Returns their number, with those that are not wanted. */
static size_t keep_lines(rp_line_history *h, char *text, size_t size)
{
    size_t count = 0;

    for (char *end = text + size; text < end; count++) {
        char *newline = memchr(text, '\n', (size_t)(end - text));

        if (newline == NULL) newline = end; /* there is room for its terminator */
        *newline = '\0';
        if (strlen(text) == (size_t)(newline - text) &&
            strncmp(text, format, sizeof format - 2) != 0 && is_wanted(h, text))
            keep(h, text);
        text = newline + 1;
    }
    return count;
}

/* Replaces the file by one with the lines in memory: a new file and a rename, so that the lines
 * are never lost. */
static void rewrite(const rp_line_history *h)
{
    char real[PATH_MAX], temporary[PATH_MAX + 8];
    bool is_written;
    int fd;

    if (realpath(h->path, real) == NULL) return;
    (void)snprintf(temporary, sizeof temporary, "%s.XXXXXX", real);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) return;
    is_written = write_text(fd, format, sizeof format - 1);
    for (size_t i = 0; i < h->count && is_written; i++)
        is_written =
            write_text(fd, h->lines[i], strlen(h->lines[i])) && write_text(fd, "\n", 1);
    if (close(fd) != 0 || !is_written || rename(temporary, real) != 0) (void)unlink(temporary);
}

void rp_line_history_load(rp_line_history *h, const char *path)
{
    char *text = malloc(READ_BYTES + 1), *start = text;
    size_t size, lines;
    struct stat st;
    bool is_ours;
    off_t at;
    int fd;

    *h = (rp_line_history){.path = path};
    fd = path != NULL && text != NULL ? open_private(path, O_RDONLY, &st) : -1;
    if (fd < 0) goto out;
    size = read_text(fd, text, sizeof format - 1, 0);
    is_ours = size == sizeof format - 1 && memcmp(text, format, size) == 0;
    at = st.st_size > READ_BYTES ? st.st_size - READ_BYTES : 0;
    size = read_text(fd, text, READ_BYTES, at);
    (void)close(fd);
    if (at > 0) { /* in the middle of a line */
        start = memchr(text, '\n', size);
        start = start != NULL ? start + 1 : text + size;
    }
    lines = keep_lines(h, start, size - (size_t)(start - text));
    if (is_ours && (at > 0 || lines > 2 * RP_HISTORY_LINES)) rewrite(h);
out:
    free(text);
}

void rp_line_history_deinit(rp_line_history *h)
{
    for (size_t i = 0; i < h->count; i++) free(h->lines[i]);
    *h = (rp_line_history){0};
}

void rp_line_history_add(rp_line_history *h, const char *line)
{
    char text[sizeof format + RP_HISTORY_LINE_BYTES + 1];
    struct stat st;
    int fd, size;

    if (!is_wanted(h, line)) return;
    keep(h, line);
    fd = h->path != NULL ? open_private(h->path, O_WRONLY | O_CREAT | O_APPEND, &st) : -1;
    if (fd < 0) return;
    size = snprintf(text, sizeof text, "%s%s\n", st.st_size == 0 ? format : "", line);
    (void)write_text(fd, text, (size_t)size);
    (void)close(fd);
}

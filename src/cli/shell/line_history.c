/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/line_history.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_wanted(const rp_line_history *h, const char *line)
{
    if (line[0] == '\0' || line[0] == ' ' || strchr(line, '\n') != NULL) return false;
    if (strstr(line, "--token") != NULL && strstr(line, "--token-file") == NULL) return false;
    return h->count == 0 || strcmp(h->lines[h->count - 1], line) != 0;
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

static FILE *open_file(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (file == NULL && fd >= 0) (void)close(fd);
    return file;
}

void rp_line_history_load(rp_line_history *h, const char *path)
{
    size_t capacity = 0, read = 0;
    char *line = NULL;
    ssize_t size;
    FILE *file;

    *h = (rp_line_history){.path = path};
    file = path != NULL ? fopen(path, "re") : NULL;
    if (file == NULL) return;
    while ((size = getline(&line, &capacity, file)) >= 0) {
        if (size > 0 && line[size - 1] == '\n') line[size - 1] = '\0';
        read++;
        if (is_wanted(h, line)) keep(h, line);
    }
    free(line);
    (void)fclose(file);
    if (read <= 2 * RP_HISTORY_LINES) return;
    file = open_file(path, O_TRUNC);
    if (file == NULL) return;
    for (size_t i = 0; i < h->count; i++) (void)fprintf(file, "%s\n", h->lines[i]);
    (void)fclose(file);
}

void rp_line_history_deinit(rp_line_history *h)
{
    for (size_t i = 0; i < h->count; i++) free(h->lines[i]);
    *h = (rp_line_history){0};
}

void rp_line_history_add(rp_line_history *h, const char *line)
{
    FILE *file;

    if (!is_wanted(h, line)) return;
    keep(h, line);
    file = h->path != NULL ? open_file(h->path, O_APPEND) : NULL;
    if (file == NULL) return;
    (void)fprintf(file, "%s\n", line);
    (void)fclose(file);
}

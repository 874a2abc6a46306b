/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/files_read_only.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/mem.h"

typedef struct read_only {
    rp_files base;
    rp_allocator alloc;
    rp_files *inner;
    rp_files_ops ops; /* those of `inner`, except for calls that change something */
} read_only;

/* Returns a file of `inner`: rp_file.files refers to `inner`, so closing works. */
static rp_status read_only_open(rp_files *files, const char *path, rp_open_how how,
                                rp_file **out, rp_error *err)
{
    rp_files *inner = ((read_only *)files)->inner;

    assert(files->ops == &((read_only *)files)->ops);
    if (how == RP_OPEN_CREATE)
        return rp_fail(err, RP_UNAVAILABLE, "%s: the directory is opened read-only", path);
    return inner->ops->open(inner, path, RP_OPEN_READ, out, err);
}

static rp_status read_only_list(rp_files *files, const char *path,
                                void (*each)(void *ctx, const char *name), void *ctx,
                                rp_error *err)
{
    rp_files *inner = ((read_only *)files)->inner;

    return inner->ops->list(inner, path, each, ctx, err);
}

static rp_status no_rename(rp_files *files, const char *from, const char *to, rp_error *err)
{
    (void)files, (void)from, (void)to, (void)err;
    return RP_OK;
}

static rp_status no_change(rp_files *files, const char *path, rp_error *err)
{
    (void)files, (void)path, (void)err;
    return RP_OK;
}

static void read_only_free(rp_files *files)
{
    read_only *r = (read_only *)files;
    rp_allocator alloc = r->alloc;

    r->inner->ops->free(r->inner);
    rp_release(&alloc, r, sizeof *r);
}

rp_status rp_files_open_read_only(const rp_allocator *alloc, const char *directory,
                                  rp_files **out, rp_error *err)
{
    struct stat about;
    read_only *r;
    rp_status st;

    /* Checked first, since opening would create it. */
    if (stat(directory, &about) != 0)
        return rp_fail(err, RP_NOT_FOUND, "%.200s: there is no such directory", directory);
    if (!S_ISDIR(about.st_mode))
        return rp_fail(err, RP_NOT_FOUND, "%.200s: this is not a directory", directory);
    r = rp_alloc_zero(alloc, sizeof *r);
    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    r->alloc = *alloc;
    st = rp_files_open_directory(alloc, directory, &r->inner, err);
    if (st != RP_OK) {
        rp_release(alloc, r, sizeof *r);
        return st;
    }
    r->ops = *r->inner->ops;
    r->ops.open = read_only_open;
    r->ops.list = read_only_list;
    r->ops.rename = no_rename;
    r->ops.remove = no_change;
    r->ops.make_directory = no_change;
    r->ops.sync_directory = no_change;
    r->ops.lock = no_change;
    r->ops.free = read_only_free;
    r->base.ops = &r->ops;
    *out = &r->base;
    return RP_OK;
}

/* Opens a file of a directory for reading. Returns -1 on failure. */
static int open_in(const char *directory, const char *path)
{
    int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

    if (at < 0) return -1;
    fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    (void)close(at);
    return fd;
}

int64_t rp_files_locked_by(const char *directory, const char *path)
{
    int fd = open_in(directory, path);
    int64_t holder = 0;

    if (fd < 0) return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        char text[32] = "";
        ssize_t got = pread(fd, text, sizeof text - 1, 0);
        long pid = got > 0 ? strtol(text, NULL, 10) : 0;

        holder = pid > 0 ? pid : -1;
    }
    (void)close(fd); /* releases the lock, if it was taken */
    return holder;
}

bool rp_files_modified(const char *directory, const char *path, int64_t *wall_ns)
{
    int fd = open_in(directory, path);
    struct stat about;
    bool known;

    if (fd < 0) return false;
    known = fstat(fd, &about) == 0;
    if (known) *wall_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
    (void)close(fd);
    return known;
}

int rp_files_occupied(const char *directory)
{
    DIR *list = opendir(directory);
    struct dirent *entry;
    int occupied = 0;

    if (list == NULL) return -1;
    /* readdir() is safe on a stream that no other thread uses. */
    while (occupied == 0 && (entry = readdir(list)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
        occupied = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(list);
    return occupied;
}

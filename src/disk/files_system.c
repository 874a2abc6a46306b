/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the operating system. Paths are resolved from the descriptor of the directory,
 * so that the directory may be renamed, and through no symbolic link. openat2() does that in
 * one call; without it, open_down() opens component by component. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "disk/files.h"
#include "util/error.h"
#include "util/fork_fds.h"
#include "util/mem.h"

/* The longest path, with its zero, and the most parts that one call writes. */
enum { PATH_BYTES = 128, MAX_PARTS = 512 };

/* After a write of this size the kernel is asked to begin writing to the disk at once, not only
 * at the sync: the disk works while the next write is prepared. */
enum { EAGER_BYTES = 256 << 10 };

typedef struct system_files {
    rp_files base;
    rp_allocator alloc;
    int directory;
    int lock; /* -1: none */
} system_files;

typedef struct system_file {
    rp_file base;
    int fd;
    char path[PATH_BYTES]; /* for messages */
} system_file;

static rp_status status_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return RP_NOT_FOUND;
    case EEXIST: return RP_EXISTS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return RP_NO_RESOURCE;
    default: return RP_UNAVAILABLE;
    }
}

static rp_status fail_errno(rp_error *err, int number, const char *path, const char *call)
{
    return rp_fail(err, status_of(number), "%s: %s: %s", path, call, strerror(number));
}

/* True for a relative path without "." and "..". "" is the directory itself. */
static bool is_fine(const char *path)
{
    if (strlen(path) >= PATH_BYTES || path[0] == '/') return false;
    for (const char *at = path; *at != '\0';) {
        size_t length = strcspn(at, "/");
        if (length == 0 || (length == 1 && at[0] == '.') || strncmp(at, "..", length) == 0)
            return false;
        at += length;
        if (*at == '/' && *++at == '\0') return false;
    }
    return true;
}

/* For a symbolic link O_DIRECTORY gives ENOTDIR, but openat2() ELOOP. Returns ELOOP for a link.
 */
static int errno_of_component(int at, const char *name, int number)
{
    struct stat about;

    if (number != ENOTDIR || fstatat(at, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return number;
    return S_ISLNK(about.st_mode) ? ELOOP : ENOTDIR;
}

/* Opens one directory after the other, then the last component: for kernels without openat2().
 */
static int open_down(int directory, const char *path, int flags, mode_t mode)
{
    int at = directory, fd;

    for (;;) {
        size_t length = strcspn(path, "/");
        char name[PATH_BYTES];
        bool last = path[length] == '\0';

        assert(length < sizeof name); /* is_fine() has checked the path */
        memcpy(name, path, length);
        name[length] = '\0';
        do {
            fd = last ? openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC, mode)
                      : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } while (fd < 0 && errno == EINTR);
        if (fd < 0) errno = errno_of_component(at, name, errno);
        if (at != directory) {
            int number = errno;
            (void)close(at);
            errno = number;
        }
        if (fd < 0 || last) return fd;
        at = fd;
        path += length + 1;
    }
}

static int open_beneath(const system_files *fs, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    const char *name = path[0] != '\0' ? path : ".";
    long fd;

    do {
        fd = syscall(__NR_openat2, fs->directory, name, &how, sizeof how);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0) return (int)fd;
    /* A system call filter may return EPERM for a call that it does not know. */
    if (errno != ENOSYS && errno != EPERM) return -1;
    return open_down(fs->directory, name, flags, mode);
}

/* Opens the directory that `path` is in; `*name` is the last component. */
static int open_parent(const system_files *fs, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_BYTES] = "";

    *name = slash != NULL ? slash + 1 : path;
    assert(slash == NULL || slash - path < PATH_BYTES); /* is_fine() has checked the path */
    if (slash != NULL) memcpy(parent, path, (size_t)(slash - path));
    return open_beneath(fs, parent, O_PATH | O_DIRECTORY, 0);
}

static rp_status fail_path(rp_error *err, const char *path)
{
    return rp_fail(err, RP_INVALID, "'%.*s' is no path below the directory", PATH_BYTES, path);
}

static rp_status system_open(rp_files *files, const char *path, rp_open_how how, rp_file **out,
                             rp_error *err)
{
    system_files *fs = (system_files *)files;
    /* O_NONBLOCK: the path may be a named pipe. */
    int flags = O_NONBLOCK | (how == RP_OPEN_READ ? O_RDONLY : O_RDWR);
    system_file *file;
    struct stat about;
    rp_status st;

    if (!is_fine(path) || path[0] == '\0') return fail_path(err, path);
    file = rp_alloc_zero(&fs->alloc, sizeof *file);
    if (file == NULL) return rp_fail_memory(err, sizeof *file);
    file->base.files = files;
    memcpy(file->path, path, strlen(path) + 1);
    if (how == RP_OPEN_CREATE) flags |= O_CREAT | O_EXCL;
    file->fd = open_beneath(fs, path, flags, how == RP_OPEN_CREATE ? 0600 : 0);
    if (file->fd < 0) {
        st = fail_errno(err, errno, path, "open");
    } else if (fstat(file->fd, &about) != 0) {
        st = fail_errno(err, errno, path, "fstat");
    } else if (!S_ISREG(about.st_mode)) {
        st = rp_fail(err, RP_UNAVAILABLE, "%s: not a regular file", path);
    } else {
        *out = &file->base;
        return RP_OK;
    }
    if (file->fd >= 0) (void)close(file->fd);
    rp_release(&fs->alloc, file, sizeof *file);
    return st;
}

static void system_close(rp_file *base)
{
    system_file *file = (system_file *)base;
    system_files *fs = (system_files *)base->files;

    assert(file->fd >= 0);
    (void)close(file->fd);
    rp_release(&fs->alloc, file, sizeof *file);
}

/* Computes the end of a range. Returns false if it does not fit into off_t. */
static bool can_reach(uint64_t offset, uint64_t size, uint64_t *end)
{
    return !__builtin_add_overflow(offset, size, end) && *end <= INT64_MAX;
}

/* Fills the vector of a write with the parts, without the first `skip` bytes of the first. */
static int fill_write_vector(struct iovec *vector, const rp_bytes *parts, size_t count,
                             size_t skip)
{
    int used = 0;

    for (size_t i = 0; i < count && used < MAX_PARTS; i++, skip = 0) {
        assert(skip <= parts[i].size);
        if (parts[i].size == skip) continue;
        vector[used++] = (struct iovec){.iov_base = (char *)parts[i].data + skip,
                                        .iov_len = parts[i].size - skip};
    }
    return used;
}

static rp_status system_write(rp_file *base, uint64_t offset, const rp_bytes *parts,
                              size_t count, rp_error *err)
{
    system_file *file = (system_file *)base;
    struct iovec vector[MAX_PARTS];
    uint64_t end = offset;
    size_t skip = 0; /* bytes of the first part that are written */

    for (size_t i = 0; i < count; i++)
        if (!can_reach(end, parts[i].size, &end))
            return fail_errno(err, EFBIG, file->path, "pwritev");
    for (;;) {
        ssize_t wrote;
        int used;

        for (; count > 0 && parts->size == skip; parts++, count--) skip = 0;
        if (count == 0) return RP_OK;
        used = fill_write_vector(vector, parts, count, skip);
        wrote = pwritev(file->fd, vector, used, (off_t)offset);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) /* 0 bytes without an error: taken as a full disk */
            return fail_errno(err, wrote < 0 ? errno : ENOSPC, file->path, "pwritev");
        if (wrote >= EAGER_BYTES) /* a hint; the sync reports errors */
            (void)sync_file_range(file->fd, (off_t)offset, wrote, SYNC_FILE_RANGE_WRITE);
        offset += (uint64_t)wrote;
        skip += (size_t)wrote;
        for (; count > 0 && skip >= parts->size; parts++, count--) skip -= parts->size;
    }
}

/* Fills the vector of a read with the parts, without the first `skip` bytes. */
static int fill_read_vector(struct iovec *vector, const rp_read_part *parts, size_t count,
                            size_t skip)
{
    int used = 0;

    for (size_t i = 0; i < count; i++) {
        size_t over = skip < parts[i].size ? skip : parts[i].size;
        skip -= over;
        if (parts[i].size > over)
            vector[used++] = (struct iovec){.iov_base = (char *)parts[i].data + over,
                                            .iov_len = parts[i].size - over};
    }
    return used;
}

static rp_status system_read_into(rp_file *base, uint64_t offset, const rp_read_part *parts,
                                  size_t count, size_t *got, rp_error *err)
{
    system_file *file = (system_file *)base;
    struct iovec vector[RP_MAX_READ_PARTS];
    uint64_t end = offset;
    size_t done = 0;

    assert(count <= RP_MAX_READ_PARTS);
    for (size_t i = 0; i < count; i++)
        if (!can_reach(end, parts[i].size, &end))
            return fail_errno(err, EINVAL, file->path, "preadv");
    for (;;) {
        int used = fill_read_vector(vector, parts, count, done);
        ssize_t n = used > 0 ? preadv(file->fd, vector, used, (off_t)(offset + done)) : 0;

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(err, errno, file->path, "preadv");
        if (n == 0) break;
        done += (size_t)n;
    }
    *got = done;
    return RP_OK;
}

static rp_status system_read(rp_file *base, uint64_t offset, void *data, size_t size,
                             size_t *got, rp_error *err)
{
    return system_read_into(base, offset, &(rp_read_part){data, size}, 1, got, err);
}

static rp_status system_sync(rp_file *base, rp_error *err)
{
    system_file *file = (system_file *)base;

    /* Never repeated after a failure, so not after EINTR either. */
    if (fdatasync(file->fd) != 0) return fail_errno(err, errno, file->path, "fdatasync");
    return RP_OK;
}

static void system_start_sync(rp_file *base, uint64_t offset, uint64_t size)
{
    const system_file *file = (const system_file *)base;

    (void)sync_file_range(file->fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

static rp_status system_size(rp_file *base, uint64_t *out, rp_error *err)
{
    system_file *file = (system_file *)base;
    struct stat about;

    if (fstat(file->fd, &about) != 0) return fail_errno(err, errno, file->path, "fstat");
    *out = (uint64_t)about.st_size;
    return RP_OK;
}

static rp_status system_truncate(rp_file *base, uint64_t size, rp_error *err)
{
    system_file *file = (system_file *)base;
    int failed;

    if (size > INT64_MAX) return fail_errno(err, EFBIG, file->path, "ftruncate");
    do {
        failed = ftruncate(file->fd, (off_t)size);
    } while (failed != 0 && errno == EINTR);
    return failed != 0 ? fail_errno(err, errno, file->path, "ftruncate") : RP_OK;
}

static rp_status system_allocate(rp_file *base, uint64_t size, rp_error *err)
{
    system_file *file = (system_file *)base;
    int number;

    if (size > INT64_MAX) return fail_errno(err, EFBIG, file->path, "posix_fallocate");
    do {
        number = posix_fallocate(file->fd, 0, (off_t)size);
    } while (number == EINTR);
    return number != 0 ? fail_errno(err, number, file->path, "posix_fallocate") : RP_OK;
}

static rp_status system_space(rp_files *files, uint64_t *total, uint64_t *available,
                              rp_error *err)
{
    struct statvfs about;

    if (fstatvfs(((system_files *)files)->directory, &about) != 0)
        return fail_errno(err, errno, "the data directory", "fstatvfs");
    /* A file system that reports no blocks, such as ramfs, has no size of its own. */
    *total = about.f_blocks > 0 ? (uint64_t)about.f_blocks * about.f_frsize : INT64_MAX;
    *available = about.f_blocks > 0 ? (uint64_t)about.f_bavail * about.f_frsize : INT64_MAX;
    return RP_OK;
}

static rp_status system_rename(rp_files *files, const char *from, const char *to, rp_error *err)
{
    system_files *fs = (system_files *)files;
    int from_parent, to_parent = -1;
    const char *from_name, *to_name;
    rp_status st = RP_OK;

    if (!is_fine(from) || from[0] == '\0') return fail_path(err, from);
    if (!is_fine(to) || to[0] == '\0') return fail_path(err, to);
    from_parent = open_parent(fs, from, &from_name);
    if (from_parent >= 0) to_parent = open_parent(fs, to, &to_name);
    if (to_parent < 0 || renameat(from_parent, from_name, to_parent, to_name) != 0)
        st = fail_errno(err, errno, from, "rename");
    if (from_parent >= 0) (void)close(from_parent);
    if (to_parent >= 0) (void)close(to_parent);
    return st;
}

static rp_status system_remove(rp_files *files, const char *path, rp_error *err)
{
    system_files *fs = (system_files *)files;
    rp_status st = RP_OK;
    const char *name;
    int parent;

    if (!is_fine(path) || path[0] == '\0') return fail_path(err, path);
    parent = open_parent(fs, path, &name);
    if (parent < 0 || unlinkat(parent, name, 0) != 0)
        st = fail_errno(err, errno, path, "unlink");
    if (parent >= 0) (void)close(parent);
    return st;
}

static rp_status system_make_directory(rp_files *files, const char *path, rp_error *err)
{
    system_files *fs = (system_files *)files;
    struct stat about;
    rp_status st = RP_OK;
    const char *name;
    int parent;

    if (!is_fine(path) || path[0] == '\0') return fail_path(err, path);
    parent = open_parent(fs, path, &name);
    if (parent < 0) return fail_errno(err, errno, path, "mkdir");
    if (mkdirat(parent, name, 0700) != 0) {
        int number = errno;
        bool there = number == EEXIST &&
                     fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                     S_ISDIR(about.st_mode);
        if (!there) st = fail_errno(err, number, path, "mkdir");
    }
    (void)close(parent);
    return st;
}

static rp_status system_sync_directory(rp_files *files, const char *path, rp_error *err)
{
    system_files *fs = (system_files *)files;
    rp_status st = RP_OK;
    int fd;

    if (!is_fine(path)) return fail_path(err, path);
    fd = open_beneath(fs, path, O_RDONLY | O_DIRECTORY, 0);
    if (path[0] == '\0') path = "."; /* in errors */
    if (fd < 0) return fail_errno(err, errno, path, "open");
    if (fsync(fd) != 0) st = fail_errno(err, errno, path, "fsync");
    (void)close(fd);
    return st;
}

static rp_status system_list(rp_files *files, const char *path,
                             void (*each)(void *ctx, const char *name), void *ctx,
                             rp_error *err)
{
    system_files *fs = (system_files *)files;
    struct dirent *entry;
    rp_status st = RP_OK;
    DIR *list;
    int fd;

    if (!is_fine(path)) return fail_path(err, path);
    fd = open_beneath(fs, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return fail_errno(err, errno, path, "open");
    list = fdopendir(fd);
    if (list == NULL) {
        st = fail_errno(err, errno, path, "opendir");
        (void)close(fd);
        return st;
    }
    for (;;) {
        errno = 0;
        /* readdir() is safe on a stream that no other thread uses. */
        entry = readdir(list); /* NOLINT(concurrency-mt-unsafe) */
        if (entry == NULL) break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(ctx, entry->d_name);
    }
    if (errno != 0) st = fail_errno(err, errno, path, "readdir");
    (void)closedir(list);
    return st;
}

/* The lock is flock()'s, so it ends with the process. The process id in the file is only for
 * people. */
static rp_status system_lock(rp_files *files, const char *path, rp_error *err)
{
    system_files *fs = (system_files *)files;
    char text[32] = "";
    rp_status st;
    int fd, length;

    if (!is_fine(path) || path[0] == '\0') return fail_path(err, path);
    if (fs->lock >= 0) return rp_fail(err, RP_INVALID, "%s: there is a lock already", path);
    fd = open_beneath(fs, path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
    if (fd < 0) return fail_errno(err, errno, path, "open");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int number = errno;
        if (number == EWOULDBLOCK) {
            ssize_t got = pread(fd, text, sizeof text - 1, 0);
            long pid = got > 0 ? strtol(text, NULL, 10) : 0;
            st = rp_fail(
                err, RP_PRECONDITION, "%s: process %ld has this directory%s", path, pid,
                pid == (long)getpid() ? ": that is this process (or one in another container)"
                                      : "");
        } else {
            st = fail_errno(err, number, path, "flock");
        }
        (void)close(fd);
        return st;
    }
    errno = ENOSPC; /* if the write is short */
    length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
        st = fail_errno(err, errno, path, "write");
        (void)close(fd);
        return st;
    }
    /* Closed in children: a child would keep the lock after this process has ended. */
    rp_fork_fds_add(fd);
    fs->lock = fd;
    return RP_OK;
}

static void system_free(rp_files *files)
{
    system_files *fs = (system_files *)files;
    rp_allocator alloc;

    if (fs == NULL) return;
    if (fs->lock >= 0) {
        rp_fork_fds_remove(fs->lock);
        (void)close(fs->lock);
    }
    if (fs->directory >= 0) (void)close(fs->directory);
    alloc = fs->alloc;
    rp_release(&alloc, fs, sizeof *fs);
}

static const rp_files_ops system_ops = {
    .open = system_open,
    .close = system_close,
    .write = system_write,
    .read = system_read,
    .read_into = system_read_into,
    .sync = system_sync,
    .start_sync = system_start_sync,
    .size = system_size,
    .truncate = system_truncate,
    .allocate = system_allocate,
    .space = system_space,
    .rename = system_rename,
    .remove = system_remove,
    .make_directory = system_make_directory,
    .sync_directory = system_sync_directory,
    .list = system_list,
    .lock = system_lock,
    .free = system_free,
};

/* Syncs the entry of a new directory. A parent that this process may not read cannot be synced.
 */
static rp_status sync_parent(const system_files *fs, const char *directory, rp_error *err)
{
    int parent = openat(fs->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rp_status st = RP_OK;

    if (parent < 0)
        return errno == EACCES ? RP_OK : fail_errno(err, errno, directory, "open ..");
    if (fsync(parent) != 0) st = fail_errno(err, errno, directory, "fsync ..");
    (void)close(parent);
    return st;
}

rp_status rp_files_open_directory(const rp_allocator *alloc, const char *directory,
                                  rp_files **out, rp_error *err)
{
    system_files *fs = rp_alloc_zero(alloc, sizeof *fs);
    rp_status st = RP_OK;
    bool made;

    if (fs == NULL) return rp_fail_memory(err, sizeof *fs);
    *fs = (system_files){.base.ops = &system_ops, .alloc = *alloc, .lock = -1};
    made = mkdir(directory, 0700) == 0;
    fs->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fs->directory < 0)
        st = fail_errno(err, errno, directory, "open");
    else if (made)
        st = sync_parent(fs, directory, err);
    if (st != RP_OK) {
        system_free(&fs->base);
        return st;
    }
    *out = &fs->base;
    return RP_OK;
}

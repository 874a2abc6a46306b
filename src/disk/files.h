/* SPDX-License-Identifier: Apache-2.0 */
/* The file layer: everything that durability does to a disk goes through these few calls, on
 * paths below one directory, so that a test can put a simulated disk in their place: one that
 * fails, fills up, loses what was not synced and damages what it keeps.
 *
 * Paths are relative, of our own making ("seg/0000000000000001"), never from a peer. Calls may
 * be made from any thread; on one rp_file reads may run beside one writer.
 *
 * Statuses: RP_NOT_FOUND, RP_EXISTS, RP_NO_RESOURCE (disk full, quota, descriptors, memory),
 * RP_UNAVAILABLE (any other error of the system's, e.g. EIO, EROFS), RP_INVALID. The sentence
 * names the path, the call and errno's text. EINTR and short transfers are dealt with inside.
 */
#ifndef RP_DISK_FILES_H
#define RP_DISK_FILES_H

#include "reprise/alloc.h"

enum { RP_MAX_ROOMS = 8 };

typedef struct rp_files rp_files;
typedef struct rp_file rp_file;

typedef struct rp_bytes {
    const void *data;
    size_t size;
} rp_bytes;

/* Where bytes that are read go. */
typedef struct rp_room {
    void *data;
    size_t size;
} rp_room;

typedef enum rp_open_how {
    RP_OPEN_READ = 0,   /* must be there */
    RP_OPEN_CREATE = 1, /* must not be there; to be written and read */
    RP_OPEN_WRITE = 2,  /* must be there; to be written and read */
} rp_open_how;

typedef struct rp_files_ops {
    rp_status (*open)(rp_files *fs, const char *path, rp_open_how how, rp_file **out,
                      rp_error *err);
    /* Drops the handle. Says nothing about the disk: sync first. */
    void (*close)(rp_file *file);
    /* Writes all of it at `offset`, or fails; then any part of it may have been written. */
    rp_status (*write)(rp_file *file, uint64_t offset, const rp_bytes *parts, size_t count,
                       rp_error *err);
    /* Reads up to `size` bytes; `*got` is less only at the end of the file. */
    rp_status (*read)(rp_file *file, uint64_t offset, void *data, size_t size, size_t *got,
                      rp_error *err);
    /* The same, into several parts one after the other, `count` <= RP_MAX_ROOMS. */
    rp_status (*read_into)(rp_file *file, uint64_t offset, const rp_room *rooms, size_t count,
                           size_t *got, rp_error *err);
    /* fdatasync. After a failure nothing of the file that was not synced before is to be
     * trusted, ever. */
    rp_status (*sync)(rp_file *file, rp_error *err);
    /* Has the system begin to write what it holds of these bytes, so that a later sync finds
     * little left to do. Promises nothing and tells of no error: sync does. May be NULL. */
    void (*start_sync)(rp_file *file, uint64_t offset, uint64_t size);
    rp_status (*size)(rp_file *file, uint64_t *out, rp_error *err);
    rp_status (*truncate)(rp_file *file, uint64_t size, rp_error *err);
    /* Makes the file `size` bytes long and takes room on the disk for all of them. After a
     * failure some of it may have been taken. May be NULL, with `space`. */
    rp_status (*allocate)(rp_file *file, uint64_t size, rp_error *err);
    /* How large the file system is, and how much of it we can still use. May be NULL. */
    rp_status (*space)(rp_files *fs, uint64_t *total, uint64_t *available, rp_error *err);

    /* Replaces `to`. Durable after sync_directory of the directory of both. */
    rp_status (*rename)(rp_files *fs, const char *from, const char *to, rp_error *err);
    rp_status (*remove)(rp_files *fs, const char *path, rp_error *err);
    rp_status (*make_directory)(rp_files *fs, const char *path,
                                rp_error *err); /* fine if there */
    /* "" is the directory itself. */
    rp_status (*sync_directory)(rp_files *fs, const char *path, rp_error *err);
    /* Calls `each` with the name of every entry, in any order. */
    rp_status (*list)(rp_files *fs, const char *path, void (*each)(void *ctx, const char *name),
                      void *ctx, rp_error *err);
    /* Takes the file `path` for this process alone until the rp_files are freed.
     * RP_PRECONDITION: another has it, and the sentence says who (its process id is in the
     * file). */
    rp_status (*lock)(rp_files *fs, const char *path, rp_error *err);
    void (*free)(rp_files *fs);
} rp_files_ops;

struct rp_files {
    const rp_files_ops *ops;
};

/* What every implementation starts with. */
struct rp_file {
    rp_files *files;
};

/* The system's files below `directory`, which is made if its parent is there. Resolves nothing
 * outside it and follows no symbolic links below it. Returns owned: files->ops->free(). */
RP_NODISCARD rp_status rp_files_open_directory(const rp_allocator *alloc, const char *directory,
                                               rp_files **out, rp_error *err);

#endif

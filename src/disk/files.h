/* SPDX-License-Identifier: Apache-2.0 */
/* The file layer: an interface for file operations below one directory, the data directory. All
 * code that stores data uses only this interface. So a test can replace the disk with a
 * simulated disk that fails, becomes full, loses data that was not synced, or damages data.
 *
 * Paths are relative to this directory. The program itself composes every path (such as
 * "seg/0000000000000001"); no path comes from a network peer. Any thread may call these
 * functions. On one rp_file, any number of reads and one write can run at the same time.
 *
 * Errors: RP_NOT_FOUND, RP_EXISTS, RP_NO_RESOURCE (disk full, quota, descriptors, memory),
 * RP_UNAVAILABLE (any other system error, e.g. EIO, EROFS), RP_INVALID. The error text names
 * the path, the call and the errno text. Implementations handle EINTR and short transfers. */
#ifndef RP_DISK_FILES_H
#define RP_DISK_FILES_H

#include "reprise/alloc.h"
#include "util/bytes.h"

enum { RP_MAX_READ_PARTS = 8 };

typedef struct rp_files rp_files;
typedef struct rp_file rp_file;

/* One destination of a scattered read. */
typedef struct rp_read_part {
    void *data;
    size_t size;
} rp_read_part;

typedef enum rp_open_how {
    RP_OPEN_READ = 0,   /* must exist */
    RP_OPEN_CREATE = 1, /* must not exist; opened for writing and reading */
    RP_OPEN_WRITE = 2,  /* must exist; opened for writing and reading */
} rp_open_how;

typedef struct rp_files_ops {
    rp_status (*open)(rp_files *fs, const char *path, rp_open_how how, rp_file **out,
                      rp_error *err);
    /* Closes the file. Does not sync it. */
    void (*close)(rp_file *file);
    /* Writes all parts, one after another, at `offset`. After a failure, any of the bytes are
     * possibly written. */
    rp_status (*write)(rp_file *file, uint64_t offset, const rp_bytes *parts, size_t count,
                       rp_error *err);
    /* Reads `size` bytes and sets `*got` to their number, which is less than `size` only at the
     * end of the file. */
    rp_status (*read)(rp_file *file, uint64_t offset, void *data, size_t size, size_t *got,
                      rp_error *err);
    /* Like `read`, but fills `count` (<= RP_MAX_READ_PARTS) parts, one after another. */
    rp_status (*read_into)(rp_file *file, uint64_t offset, const rp_read_part *parts,
                           size_t count, size_t *got, rp_error *err);
    /* Calls fdatasync(). After a failure the caller must not rely on any byte that an earlier
     * `sync` has not synced, since the kernel has possibly discarded it. */
    rp_status (*sync)(rp_file *file, rp_error *err);
    /* Asks the kernel to begin writing these bytes to the disk, so that a later `sync` has less
     * to do. Guarantees nothing and reports no error. May be NULL. */
    void (*start_sync)(rp_file *file, uint64_t offset, uint64_t size);
    rp_status (*size)(rp_file *file, uint64_t *out, rp_error *err);
    rp_status (*truncate)(rp_file *file, uint64_t size, rp_error *err);
    /* Makes the file `size` bytes long and allocates disk space for all of it. If it fails, a
     * part of the space is possibly allocated. `allocate` and `space` are either both set or
     * both NULL (not supported). */
    rp_status (*allocate)(rp_file *file, uint64_t size, rp_error *err);
    /* Sets `*total` to the size of the file system, and `*available` to the bytes that this
     * process can still use. */
    rp_status (*space)(rp_files *fs, uint64_t *total, uint64_t *available, rp_error *err);

    /* Renames `from` to `to` and replaces an existing file `to`. The rename is durable after
     * sync_directory of both directories. */
    rp_status (*rename)(rp_files *fs, const char *from, const char *to, rp_error *err);
    rp_status (*remove)(rp_files *fs, const char *path, rp_error *err);
    /* Creates a directory. Returns RP_OK if it exists already. */
    rp_status (*make_directory)(rp_files *fs, const char *path, rp_error *err);
    /* Syncs the entries of a directory; `path` "" is the directory of the rp_files itself. */
    rp_status (*sync_directory)(rp_files *fs, const char *path, rp_error *err);
    /* Calls `each` with the name of every entry, in any order. */
    rp_status (*list)(rp_files *fs, const char *path, void (*each)(void *ctx, const char *name),
                      void *ctx, rp_error *err);
    /* Locks the file `path` for this process until the rp_files are freed. If another process
     * has the lock, returns RP_PRECONDITION; the error text has the id of that process, which
     * is read from the file. */
    rp_status (*lock)(rp_files *fs, const char *path, rp_error *err);
    void (*free)(rp_files *fs);
} rp_files_ops;

struct rp_files {
    const rp_files_ops *ops;
};

/* The first member of the file object of every implementation. */
struct rp_file {
    rp_files *files;
};

/* Opens the files of the operating system below `directory`. If only the parent of `directory`
 * exists, creates `directory`. Refuses paths that lead outside of `directory`, and symbolic
 * links below it. The caller owns the result and frees it with files->ops->free(). */
RP_NODISCARD rp_status rp_files_open_directory(const rp_allocator *alloc, const char *directory,
                                               rp_files **out, rp_error *err);

#endif

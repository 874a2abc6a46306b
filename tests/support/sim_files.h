/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated disk in memory, for tests of code that uses disk/files.h. It can lose power,
 * return errors, become full and lose bits.
 *
 *   rp_sim *disk = rp_sim_new();
 *   rp_files *files = rp_sim_mount(disk);        // for one process
 *   ... work on files; files->ops->free(files) is the end of that process ...
 *   rp_sim *image = rp_sim_after(disk, RP_SIM_SUBSET, seed);  // what a power cut leaves
 *
 * Every file has its contents as written, and its contents on stable storage; sync copies the
 * first to the second. A created, renamed or removed name is pending until its directory is
 * synced. Before that, any part may or may not have reached the disk: single sectors of 512
 * bytes, sizes without data, names without files. One thing is assumed: bytes that were not
 * written do not change, even if other bytes of their sector were written.
 *
 * Contents are pages, which images share until one is written to. So a copy of a disk costs
 * only its page pointers. Every call on a mount has a number, from 1. Any thread; each disk has
 * one lock. Memory is from malloc(), which is assumed not to fail. */
#ifndef RP_TEST_SIM_FILES_H
#define RP_TEST_SIM_FILES_H

#include "disk/files.h"

enum { RP_SIM_SECTOR = 512, RP_SIM_PAGE = 4096, RP_SIM_PATH = 64 };

typedef struct rp_sim rp_sim;

/* Makes an empty disk. */
rp_sim *rp_sim_new(void);
/* Copies a disk, with pending names and data that is not synced, but without the faults, the
 * hook, the lock and the mounts. This is also what a killed process leaves, since the system's
 * cache survives it. */
rp_sim *rp_sim_copy(rp_sim *disk);
/* Mounts may outlive the disk. NULL is fine. */
void rp_sim_free(rp_sim *disk);

rp_files *rp_sim_mount(rp_sim *disk);
/* Returns the number of handles that were not closed. */
size_t rp_sim_open_handles(rp_sim *disk);

typedef enum rp_sim_variant {
    RP_SIM_NONE,        /* nothing that was not synced is on the disk */
    RP_SIM_ALL,         /* everything is */
    RP_SIM_SUBSET,      /* any of the sectors are; sizes as they were last */
    RP_SIM_TORN,        /* the sectors up to one, and a part of that one */
    RP_SIM_LOST_RENAME, /* everything except a rename */
    RP_SIM_LOST_ENTRY,  /* everything except some entries of directories */
    RP_SIM_STALE_SIZE,  /* the data but not the size, or the size but not the data */
    RP_SIM_GARBAGE,     /* from one sector to the end of the file, arbitrary bytes */
    RP_SIM_VARIANTS,
} rp_sim_variant;

/* Returns the disk after a power cut now. The seed decides where the variant allows several
 * results; with SUBSET, TORN, STALE_SIZE and GARBAGE some pending names may also be missing.
 * Everything on the new disk is synced. Returns owned. */
rp_sim *rp_sim_after(rp_sim *disk, rp_sim_variant variant, uint64_t seed);

/* From call `number` on every call fails with RP_UNAVAILABLE and does nothing. 0: never. */
void rp_sim_cut(rp_sim *disk, uint64_t number);

/* Returns the number of calls so far, of all mounts. */
uint64_t rp_sim_calls(rp_sim *disk);

/* Called before every call, under the disk's lock, on the caller's thread. It may copy the disk
 * and call rp_sim_after(), so that one run gives the images of every call. NULL: none. */
typedef void rp_sim_hook(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                         const char *path);
void rp_sim_on_call(rp_sim *disk, rp_sim_hook *hook, void *ctx);

typedef enum rp_sim_error {
    RP_SIM_EIO,    /* for any call. RP_UNAVAILABLE */
    RP_SIM_ENOSPC, /* for calls that change the disk. RP_NO_RESOURCE */
    RP_SIM_EDQUOT, /* for calls that change the disk. RP_NO_RESOURCE */
    RP_SIM_EROFS,  /* for calls that change the disk. RP_UNAVAILABLE */
    RP_SIM_EMFILE, /* for calls that open a file. RP_NO_RESOURCE */
    RP_SIM_SHORT,  /* for write and read: at least one byte is not transferred. RP_NO_RESOURCE
                      for a write, RP_UNAVAILABLE for a read */
    RP_SIM_ERRORS,
} rp_sim_error;

/* A write that fails has written a part. A sync that fails has written some pages to the disk
 * and marks the others as clean, as Linux does: they read as written, but no later sync writes
 * them, unless they are written to again. */
typedef struct rp_sim_fault {
    uint64_t call; /* number of the call that fails; 0: none */
    rp_sim_error error;
    bool for_good; /* all later calls fail, too */
    uint64_t seed;
} rp_sim_fault;

/* Sets the fault of a disk, which has at most one. */
void rp_sim_fail(rp_sim *disk, const rp_sim_fault *fault);
/* Returns the number of calls that have failed because of the fault. It is 0 if the call is of
 * a kind that cannot fail with this error. */
uint64_t rp_sim_failed(rp_sim *disk);

/* Limits the bytes of all files together, in whole pages; more is RP_NO_RESOURCE. 0: no limit.
 */
void rp_sim_set_capacity(rp_sim *disk, uint64_t bytes);
/* Limits the number of files and directories; creating more is RP_NO_RESOURCE. 0: no limit. */
void rp_sim_set_inodes(rp_sim *disk, size_t count);

/* Drops the pages that a failed sync has lost from the cache: they then read as on the disk. */
void rp_sim_drop_caches(rp_sim *disk);

/* Damage both the contents as written and those on stable storage. False if there is no such
 * file, or it is shorter. */
bool rp_sim_flip(rp_sim *disk, const char *path, uint64_t bit);
bool rp_sim_resize(rp_sim *disk, const char *path, uint64_t size);
bool rp_sim_overwrite(rp_sim *disk, const char *path, uint64_t offset, const void *data,
                      size_t size);
/* Creates or replaces a file, which is synced. Its directory must exist. */
bool rp_sim_put(rp_sim *disk, const char *path, const void *data, size_t size);
bool rp_sim_delete(rp_sim *disk, const char *path);
/* Reads up to `size` bytes as written. Returns their number, 0 if there is no such file. */
size_t rp_sim_read(rp_sim *disk, const char *path, uint64_t offset, void *data, size_t size);

/* Calls `each` with every file, sorted by path. */
void rp_sim_list(rp_sim *disk, void (*each)(void *ctx, const char *path, uint64_t size),
                 void *ctx);

#endif

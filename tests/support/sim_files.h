/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory that loses power, fails, fills up and rots, for tests of whatever uses
 * disk/files.h.
 *
 *   rp_sim *disk = rp_sim_new();
 *   rp_files *files = rp_sim_mount(disk);        // as a process sees it
 *   ... work on files; files->ops->free(files) is the end of that process ...
 *   rp_sim *image = rp_sim_after(disk, RP_SIM_SUBSET, seed);  // what a power cut leaves
 *
 * Every file has its contents as written and, beside them, as they are on stable storage; sync
 * brings the second up to the first. What was created, renamed or removed is pending until its
 * directory is synced. In between anything may or may not have reached the disk: sectors of 512
 * bytes one by one, sizes apart from data, names apart from files. One thing is assumed: bytes
 * that were not written stay as they are, even if others in their sector were.
 *
 * Contents are pages that images share until one writes to them, so a copy of a disk costs its
 * page pointers. Every call on a mount has a number, from 1. Any thread; one lock for each
 * disk. Memory is the C library's, and assumed to be there. */
#ifndef RP_TEST_SIM_FILES_H
#define RP_TEST_SIM_FILES_H

#include "disk/files.h"

enum { RP_SIM_SECTOR = 512, RP_SIM_PAGE = 4096, RP_SIM_PATH = 64 };

typedef struct rp_sim rp_sim;

/* An empty disk. */
rp_sim *rp_sim_new(void);
/* The same disk once more, with what is pending and what is not synced. Not the faults, the
 * hook, the lock or the mounts. What a killed process leaves, too: the system's cache outlives
 * it. */
rp_sim *rp_sim_copy(rp_sim *disk);
/* Mounts may outlive it. NULL is fine. */
void rp_sim_free(rp_sim *disk);

rp_files *rp_sim_mount(rp_sim *disk);
/* Handles that nobody has closed. */
size_t rp_sim_open_handles(rp_sim *disk);

typedef enum rp_sim_variant {
    RP_SIM_NONE,        /* of what was not synced, nothing is there */
    RP_SIM_ALL,         /* everything */
    RP_SIM_SUBSET,      /* any of the sectors; sizes as they were last */
    RP_SIM_TORN,        /* up to some sector, and a part of that */
    RP_SIM_LOST_RENAME, /* all but a rename */
    RP_SIM_LOST_ENTRY,  /* all but some entries of directories */
    RP_SIM_STALE_SIZE,  /* the data but not the size, or the size but not the data */
    RP_SIM_GARBAGE,     /* from some sector on, to the end of the file, bytes of somebody's */
    RP_SIM_VARIANTS,
} rp_sim_variant;

/* What is on the disk if power is cut now. The seed chooses where the variant leaves a choice;
 * with SUBSET, TORN, STALE_SIZE and GARBAGE it also lets some pending names be missing.
 * Everything on the new disk is synced. Returns owned. */
rp_sim *rp_sim_after(rp_sim *disk, rp_sim_variant variant, uint64_t seed);

/* From call `number` on every call fails with RP_UNAVAILABLE and does nothing. 0: never. */
void rp_sim_cut(rp_sim *disk, uint64_t number);

/* Calls so far, of all mounts. */
uint64_t rp_sim_calls(rp_sim *disk);

/* Is told before every call, under the disk's lock, on the caller's thread; may copy the disk
 * and take after-images, so that one run gives the images of every call. NULL: nobody. */
typedef void rp_sim_hook(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                         const char *path);
void rp_sim_on_call(rp_sim *disk, rp_sim_hook *hook, void *ctx);

typedef enum rp_sim_error {
    RP_SIM_EIO,    /* any call. RP_UNAVAILABLE */
    RP_SIM_ENOSPC, /* calls that change something. RP_NO_RESOURCE */
    RP_SIM_EDQUOT, /* the same */
    RP_SIM_EROFS,  /* the same. RP_UNAVAILABLE */
    RP_SIM_EMFILE, /* calls that open something. RP_NO_RESOURCE */
    RP_SIM_SHORT,  /* write and read: a part is done, at least a byte of it is not.
                      RP_NO_RESOURCE, RP_UNAVAILABLE */
    RP_SIM_ERRORS,
} rp_sim_error;

/* A write that fails has written some part. A sync that fails has brought some pages to the
 * disk, and the others are held for clean from now on, as Linux does: they read as written, but
 * no later sync writes them, unless they are written to again. */
typedef struct rp_sim_fault {
    uint64_t call; /* the number; 0: none */
    rp_sim_error error;
    bool for_good; /* that call and all after it */
    uint64_t seed;
} rp_sim_fault;

/* The one fault of a disk. */
void rp_sim_fail(rp_sim *disk, const rp_sim_fault *fault);
/* Calls that have failed because of it: none if the call is of a kind that does not fail so. */
uint64_t rp_sim_failed(rp_sim *disk);

/* All files together can have so many bytes, in whole pages; more is RP_NO_RESOURCE.
 * 0: no end. */
void rp_sim_set_capacity(rp_sim *disk, uint64_t bytes);
/* There can be so many files and directories; to create more is RP_NO_RESOURCE. 0: no end. */
void rp_sim_set_inodes(rp_sim *disk, size_t count);

/* Pages that a failed sync has lost are thrown out of the cache: they read as on the disk. */
void rp_sim_drop_caches(rp_sim *disk);

/* Each in the contents as written and as stored. False: no such file, or not so long. */
bool rp_sim_flip(rp_sim *disk, const char *path, uint64_t bit);
bool rp_sim_resize(rp_sim *disk, const char *path, uint64_t size);
bool rp_sim_overwrite(rp_sim *disk, const char *path, uint64_t offset, const void *data,
                      size_t size);
/* Makes a file, or replaces it; its directory must be there. Durable. */
bool rp_sim_put(rp_sim *disk, const char *path, const void *data, size_t size);
bool rp_sim_delete(rp_sim *disk, const char *path);
/* Reads up to `size` bytes as written; returns how many. 0 also if there is no such file. */
size_t rp_sim_read(rp_sim *disk, const char *path, uint64_t offset, void *data, size_t size);

/* Calls `each` with every file, sorted by path. */
void rp_sim_list(rp_sim *disk, void (*each)(void *ctx, const char *path, uint64_t size),
                 void *ctx);

#endif

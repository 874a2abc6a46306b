/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store on a simulated disk.
 *
 *   rp_test_rig rig;
 *   rp_test_rig_init(&rig, disk, NULL);      // a store
 *   rp_test_rig_table(&rig, &options);       // its tables
 *   rp_test_rig_open(&rig, NULL);            // loads what is on the disk
 *   ...
 *   rp_test_rig_deinit(&rig);                // closes; fails if memory was not freed */
#ifndef RP_TEST_DURABLE_BED_H
#define RP_TEST_DURABLE_BED_H

#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "table/snapshot/cut.h"

enum { RP_TEST_RIG_EVENTS = 16 };

typedef struct rp_test_rig {
    rp_test_bed bed;
    rp_sim *disk; /* borrowed */
    rp_files *files;
    rp_durable *durable;
    rp_durable_options options;
    atomic_size_t event_count, degraded_count;
    char event[RP_ERROR_TEXT_BYTES * 2]; /* the last */
    rp_error err;
} rp_test_rig;

static inline void rp_test_rig_on_event(void *ctx, bool degraded, const char *text)
{
    rp_test_rig *rig = ctx;

    atomic_fetch_add(&rig->event_count, 1);
    if (degraded) atomic_fetch_add(&rig->degraded_count, 1);
    (void)snprintf(rig->event, sizeof rig->event, "%s", text);
}

/* Makes the store, with checkpoints on request only and small segments. `options` may be NULL.
 */
static inline void rp_test_rig_init(rp_test_rig *rig, rp_sim *disk,
                                    const rp_store_options *options)
{
    *rig = (rp_test_rig){.disk = disk, .files = rp_sim_mount(disk)};
    rp_test_bed_init(&rig->bed, options);
    rig->options = (rp_durable_options){.directory = "sim",
                                        .period_ns = RP_FOREVER,
                                        .segment_bytes = 1 << 16,
                                        .on_event = rp_test_rig_on_event,
                                        .ctx = rig};
}

static inline rp_status rp_test_rig_try_open(rp_test_rig *rig)
{
    return rp_durable_open_on(rig->files, &rig->options, rig->bed.store, &rig->durable,
                              &rig->err);
}

static inline void rp_test_rig_open(rp_test_rig *rig)
{
    assert_ok_err(rp_test_rig_try_open(rig), &rig->err);
}

static inline rp_status rp_test_rig_try_save(rp_test_rig *rig)
{
    return rp_durable_checkpoint(rig->durable, rp_wait_forever(), NULL, 0, &rig->err);
}

static inline void rp_test_rig_save(rp_test_rig *rig)
{
    assert_ok_err(rp_test_rig_try_save(rig), &rig->err);
}

static inline rp_durable_info rp_test_rig_info(rp_test_rig *rig)
{
    rp_durable_info info;

    rp_durable_get_info(rig->durable, &info);
    return info;
}

static inline void rp_test_rig_close(rp_test_rig *rig)
{
    rp_durable *d = rig->durable;

    rig->durable = NULL;
    assert_ok_err(rp_durable_close(d, &rig->err), &rig->err);
    rig->files->ops->free(rig->files); /* and the lock with it */
    rig->files = rp_sim_mount(rig->disk);
}

/* Closes and frees the fixture, even if the disk fails. */
static inline void rp_test_rig_deinit(rp_test_rig *rig)
{
    (void)!rp_durable_close(rig->durable, NULL);
    rp_test_bed_deinit(&rig->bed);
    rig->files->ops->free(rig->files);
}

static inline rp_table *rp_test_rig_find(rp_test_rig *rig, const char *name)
{
    rp_table *t = rp_test_table(rig->bed.store, name);

    assert_non_null(t);
    return t;
}

/* Returns the digest of a table that is loaded from the disk into a store without tables. */
static inline uint64_t rp_test_digest_on(rp_sim *disk, const char *name)
{
    rp_test_rig rig;
    uint64_t digest;

    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    digest = rp_table_digest(rp_test_rig_find(&rig, name));
    assert_true(rp_table_check(rp_test_rig_find(&rig, name)));
    rp_test_rig_deinit(&rig);
    return digest;
}

/* The newest file of a directory, except for files that are not complete. */
typedef struct rp_test_newest {
    const char *directory;
    char path[RP_SIM_PATH];
    uint64_t size;
} rp_test_newest;

static inline void rp_test_note_newest(void *ctx, const char *path, uint64_t size)
{
    rp_test_newest *n = ctx;

    if (strncmp(path, n->directory, strlen(n->directory)) != 0 || strstr(path, ".tmp") != NULL)
        return;
    (void)snprintf(n->path, sizeof n->path, "%s", path);
    n->size = size;
}

static inline rp_test_newest rp_test_newest_in(rp_sim *disk, const char *directory)
{
    rp_test_newest n = {.directory = directory};

    rp_sim_list(disk, rp_test_note_newest, &n);
    assert_true(n.path[0] != '\0');
    return n;
}

/* Damages the newest checkpoint, so that it cannot be read. */
static inline void rp_test_damage_newest(rp_sim *disk)
{
    rp_test_newest n = rp_test_newest_in(disk, "manifest/");

    assert_true(rp_sim_flip(disk, n.path, 8 * 70));
}

/* Inserts `count` items with a chunk of `payload` bytes each; keys from `first` on. */
static inline void rp_test_put_items(rp_test_rig *rig, rp_table *t, uint64_t first,
                                     size_t count, size_t payload)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t key = first + i;
        rp_trajectory *trajectory =
            rp_test_blob_trajectory(&rig->bed.alloc, key, key / 10, payload);

        rp_test_put(t, key, (double)(key % 17) / 3, trajectory);
        rp_trajectory_unref(trajectory);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Salvage, import and export: fills a store from the source, which is not changed, then writes
 * the store to the destination. A chunk with a location in one directory gets a second one in
 * the other (disk/store_location.h). */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "disk/files_read_only.h"
#include "disk/files_salvage.h"
#include "durable/durable_inside.h"
#include "durable/reverb/reverb_checkpoint.h"
#include "reprise/data.h"
#include "util/error.h"
#include "util/mem.h"

enum { PATH_BYTES = 4096 };

static void report_event(void *ctx, bool degraded, const char *text)
{
    const rp_data_move_options *o = ctx;

    (void)degraded;
    if (o->on_event != NULL) o->on_event(o->ctx, text);
}

static void report_progress(void *ctx, const rp_durable_progress *progress)
{
    const rp_data_move_options *o = ctx;

    if (o->on_progress != NULL) o->on_progress(o->ctx, progress);
}

static rp_durable_options durable_options(const rp_data_move_options *o, const char *directory)
{
    return (rp_durable_options){
        .directory = directory,
        .mode = RP_DURABLE_CHECKPOINT,
        .period_ns = RP_FOREVER,
        .on_progress = report_progress,
        .on_event = report_event,
        .ctx = (void *)(uintptr_t)o,
    };
}

static bool has_rollouts(rp_store *store)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count = rp_rollout_set_list(rp_store_rollouts(store), all);

    for (size_t i = 0; i < count; i++) rp_rollouts_unref(all[i]);
    return count > 0;
}

static void ignore_name(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
}

/* Puts the directory before the reason why it cannot be read, unless it is there. Returns `st`.
 */
static rp_status name_directory(const char *path, rp_status st, rp_error *err)
{
    rp_error why = {0};

    if (st == RP_OK || err == NULL) return st;
    why = *err;
    if (strncmp(why.text, path, strlen(path)) == 0) return st;
    return rp_fail(err, st, "%.160s: %.300s", path, why.text);
}

/* Loads a data directory. Chunks may be read from `*files` until the caller frees it, after the
 * store. */
static rp_status load_directory(const rp_data_move_options *o, bool salvage, rp_store *store,
                                rp_files **files, rp_durable_info *info, rp_error *err)
{
    rp_durable_options options = durable_options(o, o->from);
    rp_status st = rp_files_open_read_only(rp_allocator_default(), o->from, files, err);

    if (st == RP_OK && salvage)
        st = rp_files_salvage(rp_allocator_default(), *files, files, err);
    if (st != RP_OK) return st;
    assert(rp_store_tables(store, NULL, 0) == 0);
    options.salvage = salvage;
    options.accept_changes = true;
    st = rp_durable_load_on(*files, &options, store, info, err);
    if (st == RP_NOT_FOUND &&
        (*files)->ops->list(*files, "manifest", ignore_name, NULL, NULL) == st)
        return rp_fail(err, st, "%.160s: there is no data of reprise in it", o->from);
    st = name_directory(o->from, st, err);
    if (st == RP_OK && rp_store_tables(store, NULL, 0) == 0 && !has_rollouts(store))
        st = rp_fail(err, RP_NOT_FOUND, "%.160s: there is no data of reprise in it", o->from);
    return st;
}

static rp_status check_options(const rp_data_move_options *o, rp_error *err)
{
    if (o != NULL && o->from != NULL && o->to != NULL) return RP_OK;
    return rp_fail(err, RP_INVALID, "no %s",
                   o == NULL         ? "options are given"
                   : o->from == NULL ? "directory is given as `from`"
                                     : "directory is given as `to`");
}

/* True if there is such a directory. If there is none, sets errno. */
static bool is_directory(const char *path)
{
    return rp_files_occupied(path) >= 0;
}

/* Checks the target before the source is read, which may take long. `may_be_full`: it may have
 * other checkpoints, but no data of reprise. */
static rp_status check_target(const rp_data_move_options *o, bool may_be_full, rp_error *err)
{
    rp_status st = check_options(o, err);
    char path[PATH_BYTES];
    size_t length;

    if (st != RP_OK) return st;
    if (!may_be_full && rp_files_occupied(o->to) == 1)
        return rp_fail(err, RP_EXISTS, "%.160s: the directory is not empty", o->to);
    (void)snprintf(path, sizeof path, "%s/manifest", o->to);
    if (may_be_full && is_directory(path))
        return rp_fail(err, RP_EXISTS, "%.160s: this directory has data of reprise", o->to);
    if (is_directory(o->to)) return RP_OK;
    if (errno == ENOTDIR)
        return rp_fail(err, RP_EXISTS, "%.160s: this is not a directory", o->to);
    (void)snprintf(path, sizeof path, "%s", o->to);
    length = strlen(path);
    while (length > 0 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    path[length] = '\0';
    if (length == 0 || is_directory(path) || errno != ENOENT) return RP_OK;
    return rp_fail(err, RP_NOT_FOUND, "%.160s: there is no directory '%.160s' to make it in",
                   o->to, path);
}

/* Opening a new directory over a store that is filled writes a checkpoint of it. */
static rp_status write_directory(const rp_data_move_options *o, rp_store *store,
                                 rp_data_moved *moved, rp_error *err)
{
    const rp_durable_options options = durable_options(o, o->to);
    rp_durable *durable = NULL;
    rp_durable_info info = {0};
    rp_status st;

    st = rp_durable_open(&options, store, &durable, err);
    if (st != RP_OK) return st;
    rp_durable_get_info(durable, &info);
    moved->bytes = info.last_checkpoint_bytes;
    (void)snprintf(moved->path, sizeof moved->path, "%s", o->to);
    return rp_durable_close(durable, err);
}

/* Counts tables and items. No other thread uses the store. RP_NO_RESOURCE. */
static rp_status count_items(rp_store *store, rp_data_moved *moved, rp_error *err)
{
    const rp_allocator *alloc = rp_allocator_default();
    size_t count = rp_store_tables(store, NULL, 0);
    rp_table **tables = rp_alloc_array(alloc, count + 1, sizeof(rp_table *));

    if (tables == NULL) return rp_fail_memory(err, count * sizeof(rp_table *));
    moved->tables = rp_store_tables(store, tables, count);
    assert(moved->tables == count);
    for (size_t i = 0; i < count; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        moved->items += (uint64_t)info.size;
    }
    rp_release(alloc, tables, (count + 1) * sizeof(rp_table *));
    return RP_OK;
}

rp_status rp_data_salvage(const rp_data_move_options *options, rp_data_moved *out,
                          rp_error *err)
{
    rp_data_moved moved = {0};
    rp_durable_info info = {0};
    rp_files *files = NULL;
    rp_store *store = NULL;
    rp_status st = check_target(options, false, err);

    if (st == RP_OK) st = rp_store_new(NULL, &store, err);
    if (st == RP_OK) st = load_directory(options, true, store, &files, &info, err);
    moved.records = info.recovered_records;
    if (st == RP_OK) st = count_items(store, &moved, err);
    if (st == RP_OK) st = write_directory(options, store, &moved, err);
    rp_store_free(store);
    if (files != NULL) files->ops->free(files);
    if (st == RP_OK && out != NULL) *out = moved;
    return st;
}

rp_status rp_data_from_reverb(const rp_data_move_options *options, rp_data_moved *out,
                              rp_error *err)
{
    rp_reverb_options reverb = {0};
    rp_data_moved moved = {0};
    rp_files *files = NULL;
    rp_store *store = NULL;
    rp_status st = check_target(options, false, err);

    if (st != RP_OK) return st;
    reverb = (rp_reverb_options){.on_progress = options->on_progress, .ctx = options->ctx};
    st = rp_store_new(NULL, &store, err);
    if (st == RP_OK)
        st = rp_files_open_read_only(rp_allocator_default(), options->from, &files, err);
    if (st == RP_OK)
        st = name_directory(options->from, rp_reverb_load(files, store, &reverb, NULL, err),
                            err);
    if (st == RP_OK) st = count_items(store, &moved, err);
    if (st == RP_OK) st = write_directory(options, store, &moved, err);
    rp_store_free(store);
    if (files != NULL) files->ops->free(files);
    if (st == RP_OK && out != NULL) *out = moved;
    return st;
}

rp_status rp_data_to_reverb(const rp_data_move_options *options, rp_data_moved *out,
                            rp_error *err)
{
    rp_reverb_options reverb = {0};
    rp_data_moved moved = {0};
    rp_reverb_report report = {0};
    rp_durable_info info = {0};
    rp_files *from = NULL, *to = NULL;
    rp_store *store = NULL;
    rp_status st = check_target(options, true, err);

    if (st != RP_OK) return st;
    reverb = (rp_reverb_options){.on_progress = options->on_progress, .ctx = options->ctx};
    st = rp_store_new(NULL, &store, err);
    if (st == RP_OK) st = load_directory(options, false, store, &from, &info, err);
    if (st == RP_OK)
        st = rp_files_open_directory(rp_allocator_default(), options->to, &to, err);
    if (st == RP_OK) st = rp_reverb_save(to, store, &reverb, &report, err);
    if (st == RP_OK) {
        moved.tables = report.tables;
        moved.items = report.items;
        moved.bytes = report.bytes;
        moved.records = info.recovered_records;
        (void)snprintf(moved.path, sizeof moved.path, "%s/%s", options->to, report.folder);
    }
    rp_store_free(store);
    if (from != NULL) from->ops->free(from);
    if (to != NULL) to->ops->free(to);
    if (st == RP_OK && out != NULL) *out = moved;
    return st;
}

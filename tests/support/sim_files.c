/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_files.h"

#include "support/sim_inside.h"
#include "util/error.h"

typedef struct mount {
    rp_files base;
    rp_sim *disk;
    bool has_lock;
} mount;

typedef struct handle {
    rp_file base;
    rp_sim_node *node;
    bool writable;
    char path[RP_SIM_PATH];
} handle;

/* What a call does. It decides with which errors the call can fail. */
enum { CHANGES = 1, OPENS = 2, MOVES_BYTES = 4 };

static const struct {
    const char *text;
    rp_status status;
    unsigned kinds; /* the kinds of calls that can fail with this error; 0: all */
} errors[RP_SIM_ERRORS] = {
    [RP_SIM_EIO] = {"Input/output error", RP_UNAVAILABLE, 0},
    [RP_SIM_ENOSPC] = {"No space left on device", RP_NO_RESOURCE, CHANGES},
    [RP_SIM_EDQUOT] = {"Disk quota exceeded", RP_NO_RESOURCE, CHANGES},
    [RP_SIM_EROFS] = {"Read-only file system", RP_UNAVAILABLE, CHANGES},
    [RP_SIM_EMFILE] = {"Too many open files", RP_NO_RESOURCE, OPENS},
    [RP_SIM_SHORT] = {"Short transfer", RP_UNAVAILABLE, MOVES_BYTES},
};

/* Begins a call: acquires the lock and keeps it, counts the call, and calls the hook. Returns
 * an error if the call has to fail. */
static rp_status begin(rp_sim *disk, const char *call, const char *path, unsigned kinds,
                       rp_error *err)
{
    const rp_sim_fault *fault = &disk->fault;
    rp_status st;

    rp_sim_lock(disk);
    disk->calls++;
    if (disk->hook != NULL) disk->hook(disk->hook_ctx, disk, disk->calls, call, path);
    if (disk->cut != 0 && disk->calls >= disk->cut)
        return rp_fail(err, RP_UNAVAILABLE, "%s: %s: the power is cut", path, call);
    if (fault->call == 0 || disk->calls < fault->call ||
        (disk->calls > fault->call && !fault->for_good) ||
        (errors[fault->error].kinds != 0 && (errors[fault->error].kinds & kinds) == 0))
        return RP_OK;
    disk->failed++;
    st = errors[fault->error].status;
    if (fault->error == RP_SIM_SHORT && (kinds & CHANGES)) st = RP_NO_RESOURCE;
    return rp_fail(err, st, "%s: %s: %s", path, call, errors[fault->error].text);
}

/* True if the call fails because of the fault, not because of a power cut. */
static bool is_fault(const rp_sim *disk)
{
    return disk->cut == 0 || disk->calls < disk->cut;
}

static rp_rng rng_of_fault(const rp_sim *disk)
{
    rp_rng rng;

    rp_rng_init(&rng, disk->fault.seed ^ disk->calls << 32);
    return rng;
}

static uint64_t used_bytes(const rp_sim *disk)
{
    uint64_t pages = 0;

    for (size_t i = 0; i < disk->now.count; i++) pages += disk->now.list[i].node->now.count;
    return pages * RP_SIM_PAGE;
}

static rp_sim *disk_of(rp_files *files)
{
    return ((mount *)files)->disk;
}

static rp_status sim_open(rp_files *files, const char *path, rp_open_how how, rp_file **out,
                          rp_error *err)
{
    rp_sim *disk = disk_of(files);
    unsigned kinds = OPENS | (how == RP_OPEN_CREATE ? CHANGES : 0);
    rp_status st = begin(disk, "open", path, kinds, err);
    rp_sim_entry *e = rp_sim_find(&disk->now, path);
    handle *file;

    if (st == RP_OK && e != NULL && e->node->directory)
        st = rp_fail(err, RP_UNAVAILABLE, "%s: open: it is a directory", path);
    if (st == RP_OK && how == RP_OPEN_CREATE && e != NULL)
        st = rp_fail(err, RP_EXISTS, "%s: open: File exists", path);
    if (st == RP_OK &&
        (how == RP_OPEN_CREATE ? !rp_sim_has_parent(&disk->now, path) : e == NULL))
        st = rp_fail(err, RP_NOT_FOUND, "%s: open: No such file or directory", path);
    if (st == RP_OK && how == RP_OPEN_CREATE && disk->inodes != 0 &&
        disk->now.count >= disk->inodes)
        st = rp_fail(err, RP_NO_RESOURCE, "%s: open: No space left on device", path);
    if (st == RP_OK) {
        file = rp_sim_need(calloc(1, sizeof *file));
        file->base.files = files;
        file->writable = how != RP_OPEN_READ;
        rp_sim_set_path(file->path, path);
        if (how == RP_OPEN_CREATE) {
            file->node = rp_sim_node_new(false);
            rp_sim_change(disk, RP_SIM_CREATED, "", path, file->node);
        } else if (e != NULL) {
            file->node = e->node;
        }
        file->node->refs++;
        disk->handles++;
        *out = &file->base;
    }
    rp_sim_unlock(disk);
    return st;
}

static void sim_close(rp_file *base)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);

    rp_sim_lock(disk);
    disk->handles--;
    rp_sim_node_unref(file->node);
    rp_sim_unlock(disk);
    free(file);
}

/* Marks the written pages as dirty again, if a failed sync had marked them clean. */
static void unlose(rp_sim_node *n, uint64_t offset, uint64_t size)
{
    for (uint64_t page = offset / RP_SIM_PAGE;
         size > 0 && page <= (offset + size - 1) / RP_SIM_PAGE && page < n->lost_count; page++)
        n->lost[page] = false;
}

static void write_parts(rp_sim_node *n, uint64_t offset, const rp_bytes *parts, size_t count,
                        uint64_t limit)
{
    for (size_t i = 0; i < count && limit > 0; i++) {
        size_t size = parts[i].size < limit ? parts[i].size : (size_t)limit;
        rp_sim_image_write(&n->now, offset, parts[i].data, size);
        unlose(n, offset, size);
        offset += size;
        limit -= size;
    }
}

static rp_status sim_write(rp_file *base, uint64_t offset, const rp_bytes *parts, size_t count,
                           rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "write", file->path, CHANGES | MOVES_BYTES, err);
    uint64_t total = 0, room;

    for (size_t i = 0; i < count; i++) total += parts[i].size;
    if (!file->writable) abort();
    if (st == RP_OK && disk->capacity != 0 && offset + total > file->node->now.size) {
        uint64_t used = used_bytes(disk), had = file->node->now.count * (uint64_t)RP_SIM_PAGE;
        room = (disk->capacity > used ? disk->capacity - used : 0) + had;
        if (offset + total > room) {
            write_parts(file->node, offset, parts, count, room > offset ? room - offset : 0);
            st = rp_fail(err, RP_NO_RESOURCE, "%s: write: No space left on device", file->path);
        }
    } else if (st != RP_OK && total > 0 && is_fault(disk)) {
        rp_rng rng = rng_of_fault(disk);
        write_parts(file->node, offset, parts, count, rp_rng_below(&rng, total));
    }
    if (st == RP_OK) write_parts(file->node, offset, parts, count, total);
    rp_sim_unlock(disk);
    return st;
}

/* Reads up to `limit` bytes. */
static size_t read_rooms(const rp_sim_node *n, uint64_t offset, const rp_read_part *rooms,
                         size_t count, uint64_t limit)
{
    size_t done = 0;

    for (size_t i = 0; i < count && limit > 0; i++) {
        size_t size = rooms[i].size < limit ? rooms[i].size : (size_t)limit;
        done += rp_sim_image_read(&n->now, offset + done, rooms[i].data, size);
        limit -= size;
    }
    return done;
}

static rp_status sim_read_into(rp_file *base, uint64_t offset, const rp_read_part *rooms,
                               size_t count, size_t *got, rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "read", file->path, MOVES_BYTES, err);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) total += rooms[i].size;
    if (st == RP_OK) {
        *got = read_rooms(file->node, offset, rooms, count, total);
    } else if (total > 0) { /* a part, and other bytes in the rest of the buffer */
        rp_rng rng = rng_of_fault(disk);
        for (size_t i = 0; i < count; i++)
            if (rooms[i].size > 0) memset(rooms[i].data, 0xee, rooms[i].size);
        (void)read_rooms(file->node, offset, rooms, count, rp_rng_below(&rng, total));
    }
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_read(rp_file *base, uint64_t offset, void *data, size_t size, size_t *got,
                          rp_error *err)
{
    return sim_read_into(base, offset, &(rp_read_part){data, size}, 1, got, err);
}

/* Writes a page to the disk, unless a failed sync has marked it clean. */
static void sync_page(rp_sim_node *n, size_t i)
{
    if (i < n->lost_count && n->lost[i]) return;
    rp_sim_image_share(&n->stored, &n->now, i);
}

static bool is_dirty(const rp_sim_node *n, size_t i)
{
    if (i < n->lost_count && n->lost[i]) return false;
    return i >= n->stored.count || n->stored.pages[i] != n->now.pages[i];
}

/* Writes some dirty pages, but at least one is not written and is marked clean. */
static void lose_pages(rp_sim *disk, rp_sim_node *n)
{
    rp_rng rng = rng_of_fault(disk);
    size_t count = n->now.count, dirty = 0, unlucky;

    rp_sim_image_resize(&n->stored, n->now.size);
    for (size_t i = 0; i < count; i++) dirty += is_dirty(n, i);
    if (dirty == 0) return;
    unlucky = rp_rng_below(&rng, dirty);
    if (n->lost_count < count) {
        n->lost = rp_sim_need(realloc(n->lost, count * sizeof *n->lost));
        memset(n->lost + n->lost_count, 0, (count - n->lost_count) * sizeof *n->lost);
        n->lost_count = count;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_dirty(n, i)) continue;
        if (unlucky == 0 || rp_rng_below(&rng, 2) == 0)
            n->lost[i] = true;
        else
            sync_page(n, i);
        unlucky--;
    }
}

static rp_status sim_sync(rp_file *base, rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "sync", file->path, CHANGES, err);
    rp_sim_node *n = file->node;

    if (st == RP_OK) {
        rp_sim_image_resize(&n->stored, n->now.size);
        for (size_t i = 0; i < n->now.count; i++) sync_page(n, i);
    } else if (is_fault(disk)) {
        lose_pages(disk, n);
    }
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_size(rp_file *base, uint64_t *out, rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "size", file->path, 0, err);

    if (st == RP_OK) *out = file->node->now.size;
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_truncate(rp_file *base, uint64_t size, rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "truncate", file->path, CHANGES, err);

    if (!file->writable) abort();
    if (st == RP_OK) {
        rp_sim_image_resize(&file->node->now, size);
        if (size % RP_SIM_PAGE != 0) unlose(file->node, size, 1);
    }
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_allocate(rp_file *base, uint64_t size, rp_error *err)
{
    handle *file = (handle *)base;
    rp_sim *disk = disk_of(base->files);
    rp_status st = begin(disk, "allocate", file->path, CHANGES, err);
    rp_sim_image *image = &file->node->now;

    if (!file->writable) abort();
    if (st == RP_OK && disk->capacity != 0) {
        uint64_t used = used_bytes(disk), had = image->count * (uint64_t)RP_SIM_PAGE;
        uint64_t room = (disk->capacity > used ? disk->capacity - used : 0) + had;

        if (size > room)
            st = rp_fail(err, RP_NO_RESOURCE, "%s: allocate: No space left on device",
                         file->path);
    }
    if (st == RP_OK && size > image->size) rp_sim_image_resize(image, size);
    rp_sim_unlock(disk);
    return st;
}

/* This call is not numbered, since it uses no file. */
static rp_status sim_space(rp_files *files, uint64_t *total, uint64_t *available, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    uint64_t used;

    (void)err;
    rp_sim_lock(disk);
    used = used_bytes(disk);
    *total = disk->capacity != 0 ? disk->capacity : UINT64_MAX;
    *available = *total > used ? *total - used : 0;
    rp_sim_unlock(disk);
    return RP_OK;
}

static rp_status sim_rename(rp_files *files, const char *from, const char *to, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    rp_status st = begin(disk, "rename", from, CHANGES | OPENS, err);
    rp_sim_entry *e = rp_sim_find(&disk->now, from);

    if (st == RP_OK && (e == NULL || !rp_sim_has_parent(&disk->now, to)))
        st = rp_fail(err, RP_NOT_FOUND, "%s: rename: No such file or directory", from);
    if (st == RP_OK && e != NULL) {
        rp_sim_node *n = e->node;
        size_t length = rp_sim_parent_length(from);
        if (length == rp_sim_parent_length(to) && strncmp(from, to, length) == 0) {
            if (strcmp(from, to) != 0) rp_sim_change(disk, RP_SIM_RENAMED, from, to, n);
        } else { /* a change in each directory */
            rp_sim_change(disk, RP_SIM_CREATED, "", to, n);
            rp_sim_change(disk, RP_SIM_REMOVED, from, "", n);
        }
    }
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_remove(rp_files *files, const char *path, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    rp_status st = begin(disk, "remove", path, CHANGES | OPENS, err);
    rp_sim_entry *e = rp_sim_find(&disk->now, path);

    if (st == RP_OK && e == NULL)
        st = rp_fail(err, RP_NOT_FOUND, "%s: unlink: No such file or directory", path);
    if (st == RP_OK && e != NULL && e->node->directory)
        st = rp_fail(err, RP_UNAVAILABLE, "%s: unlink: it is a directory", path);
    if (st == RP_OK && e != NULL) rp_sim_change(disk, RP_SIM_REMOVED, path, "", e->node);
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_make_directory(rp_files *files, const char *path, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    rp_status st = begin(disk, "mkdir", path, CHANGES | OPENS, err);
    rp_sim_entry *e = rp_sim_find(&disk->now, path);

    if (st == RP_OK && e != NULL && !e->node->directory)
        st = rp_fail(err, RP_EXISTS, "%s: mkdir: File exists", path);
    if (st == RP_OK && !rp_sim_has_parent(&disk->now, path))
        st = rp_fail(err, RP_NOT_FOUND, "%s: mkdir: No such file or directory", path);
    if (st == RP_OK && e == NULL)
        rp_sim_change(disk, RP_SIM_CREATED, "", path, rp_sim_node_new(true));
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_sync_directory(rp_files *files, const char *path, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    rp_status st = begin(disk, "sync_directory", path, CHANGES | OPENS, err);
    size_t kept = 0;

    if (st == RP_OK && !rp_sim_has_directory(&disk->now, path))
        st = rp_fail(err, RP_NOT_FOUND, "%s: open: No such file or directory", path);
    for (size_t i = 0; st == RP_OK && i < disk->change_count; i++) {
        rp_sim_change_of_name *c = &disk->changes[i];
        if (rp_sim_is_in(c->kind == RP_SIM_REMOVED ? c->from : c->to, path)) {
            rp_sim_names_apply(&disk->stored, c);
            rp_sim_node_unref(c->node);
        } else {
            disk->changes[kept++] = *c;
        }
    }
    if (st == RP_OK) disk->change_count = kept;
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_list(rp_files *files, const char *path,
                          void (*each)(void *ctx, const char *name), void *ctx, rp_error *err)
{
    rp_sim *disk = disk_of(files);
    rp_status st = begin(disk, "list", path, OPENS, err);

    if (st == RP_OK && !rp_sim_has_directory(&disk->now, path))
        st = rp_fail(err, RP_NOT_FOUND, "%s: open: No such file or directory", path);
    for (size_t i = 0; st == RP_OK && i < disk->now.count; i++) {
        const char *name = disk->now.list[i].path;
        if (rp_sim_is_in(name, path))
            each(ctx, name + (path[0] != '\0' ? strlen(path) + 1 : 0));
    }
    rp_sim_unlock(disk);
    return st;
}

static rp_status sim_lock(rp_files *files, const char *path, rp_error *err)
{
    mount *m = (mount *)files;
    rp_sim *disk = m->disk;
    rp_status st = begin(disk, "lock", path, CHANGES | OPENS, err);

    if (st == RP_OK && disk->locked)
        st = rp_fail(err, RP_PRECONDITION, "%s: process 1 has this directory", path);
    if (st == RP_OK) {
        if (rp_sim_find(&disk->now, path) == NULL)
            rp_sim_change(disk, RP_SIM_CREATED, "", path, rp_sim_node_new(false));
        disk->locked = m->has_lock = true;
    }
    rp_sim_unlock(disk);
    return st;
}

static void sim_unmount(rp_files *files)
{
    mount *m = (mount *)files;

    if (m == NULL) return;
    rp_sim_lock(m->disk);
    if (m->has_lock) m->disk->locked = false;
    rp_sim_unlock(m->disk);
    rp_sim_free(m->disk);
    free(m);
}

static const rp_files_ops sim_ops = {
    .open = sim_open,
    .close = sim_close,
    .write = sim_write,
    .read = sim_read,
    .read_into = sim_read_into,
    .sync = sim_sync,
    .size = sim_size,
    .truncate = sim_truncate,
    .allocate = sim_allocate,
    .space = sim_space,
    .rename = sim_rename,
    .remove = sim_remove,
    .make_directory = sim_make_directory,
    .sync_directory = sim_sync_directory,
    .list = sim_list,
    .lock = sim_lock,
    .free = sim_unmount,
};

rp_files *rp_sim_mount(rp_sim *disk)
{
    mount *m = rp_sim_need(calloc(1, sizeof *m));

    m->base.ops = &sim_ops;
    m->disk = disk;
    rp_sim_lock(disk);
    disk->refs++;
    rp_sim_unlock(disk);
    return &m->base;
}

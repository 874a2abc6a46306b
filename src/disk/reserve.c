/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/reserve.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 24 };

static const char *spare_path(char out[PATH_BYTES], int number)
{
    (void)snprintf(out, PATH_BYTES, RP_RESERVE_PATH ".%d", number);
    return out;
}

/* Creates an empty file, if it does not exist. */
static rp_status make_empty(const rp_reserve *r, const char *path)
{
    rp_file *file = NULL;
    rp_status st = r->files->ops->open(r->files, path, RP_OPEN_CREATE, &file, NULL);

    if (st == RP_OK) r->files->ops->close(file);
    return st == RP_EXISTS ? RP_OK : st;
}

rp_status rp_reserve_keep_files(rp_reserve *r, int count)
{
    char path[PATH_BYTES];
    rp_status st = RP_OK;
    int made = 0;

    assert(count > 0 && count <= RP_RESERVE_FILES);
    if (r->wanted == 0) return RP_OK;
    while (made < count && st == RP_OK) {
        st = make_empty(r, spare_path(path, made + 1));
        made += st == RP_OK;
    }
    for (int i = count; i < RP_RESERVE_FILES; i++)
        (void)r->files->ops->remove(r->files, spare_path(path, i + 1), NULL);
    r->files_held = made;
    return st;
}

bool rp_reserve_lacks_files(const rp_reserve *r)
{
    char path[PATH_BYTES];
    rp_status st = make_empty(r, spare_path(path, 0));

    (void)r->files->ops->remove(r->files, path, NULL);
    return st == RP_NO_RESOURCE;
}

bool rp_reserve_has_name(const char *name)
{
    char path[PATH_BYTES];

    for (int i = 0; i <= RP_RESERVE_FILES; i++)
        if (strcmp(name, spare_path(path, i)) == 0) return true;
    return strcmp(name, RP_RESERVE_PATH) == 0;
}

static rp_status open_file(const rp_reserve *r, rp_file **file)
{
    const rp_files_ops *ops = r->files->ops;
    rp_status st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_WRITE, file, NULL);

    if (st == RP_NOT_FOUND)
        st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_CREATE, file, NULL);
    return st;
}

void rp_reserve_find(rp_reserve *r)
{
    const rp_files_ops *ops = r->files->ops;
    rp_file *file = NULL;
    uint64_t size = 0;

    if (ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_READ, &file, NULL) != RP_OK) return;
    if (ops->size(file, &size, NULL) == RP_OK) atomic_store(&r->held, size);
    ops->close(file);
}

/* Grows the file from `*size` bytes to `bytes`, or as far as the free space allows. */
static rp_status grow(const rp_reserve *r, rp_file *file, uint64_t *size, uint64_t bytes)
{
    uint64_t had = *size;
    const rp_files_ops *ops = r->files->ops;
    rp_status st = RP_NO_RESOURCE;

    while (st == RP_NO_RESOURCE && bytes > had && bytes >= RP_RESERVE_LEAST) {
        st = ops->allocate(file, bytes, NULL);
        if (st == RP_OK) {
            *size = bytes;
            break;
        }
        (void)ops->truncate(file, had, NULL); /* a part of it may be allocated */
        bytes -= bytes / 8;                   /* the file system needs some space for itself */
    }
    return st;
}

rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes)
{
    const rp_files_ops *ops = r->files->ops;
    uint64_t total = 0, available = 0, most, size = 0;
    rp_file *file = NULL;
    rp_status st;

    if (bytes == 0 || ops->allocate == NULL) return RP_OK;
    assert(ops->space != NULL); /* files.h: both are NULL or none */
    st = ops->space(r->files, &total, &available, NULL);
    if (st != RP_OK) return st;
    r->wanted = bytes;
    st = open_file(r, &file);
    if (st != RP_OK) return st;
    st = ops->size(file, &size, NULL);
    if (st == RP_OK && size > r->wanted && ops->truncate(file, r->wanted, NULL) == RP_OK)
        size = r->wanted;
    /* A copy of the data directory may have a file with holes. */
    if (st == RP_OK && size > 0 && ops->allocate(file, size, NULL) != RP_OK) {
        (void)ops->truncate(file, 0, NULL);
        size = 0;
    }
    if (st == RP_OK && size < r->wanted) {
        most = r->wanted - size < available ? r->wanted : size + available;
        st = grow(r, file, &size, most);
        if (st == RP_OK && size < r->wanted) st = RP_NO_RESOURCE;
    }
    ops->close(file);
    assert(st != RP_OK || size >= r->wanted);
    if (size == 0) (void)ops->remove(r->files, RP_RESERVE_PATH, NULL);
    atomic_store(&r->held, size);
    return st;
}

void rp_reserve_release(rp_reserve *r)
{
    char path[PATH_BYTES];

    for (int i = 1; i <= RP_RESERVE_FILES; i++)
        (void)r->files->ops->remove(r->files, spare_path(path, i), NULL);
    r->files_held = 0;
    if (atomic_load(&r->held) > 0) (void)r->files->ops->remove(r->files, RP_RESERVE_PATH, NULL);
    atomic_store(&r->held, 0);
}

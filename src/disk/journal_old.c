/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a process before us left: what was read of them is built upon from now on, so
 * it is synced before the journal goes on. */
#include <inttypes.h>
#include <stdio.h>

#include "disk/journal_file.h"
#include "util/error.h"
#include "util/mem.h"

typedef struct listing {
    const rp_allocator *alloc;
    uint64_t *numbers; /* ascending */
    size_t count, capacity;
    bool bad;
} listing;

static void note_name(void *ctx, const char *name)
{
    listing *l = ctx;
    uint64_t number = 0;
    size_t i = 0;

    for (; i < 16; i++) {
        char c = name[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 16;
        if (digit == 16) return;
        number = number << 4 | digit;
    }
    if (name[16] != '\0') return;
    if (l->count == l->capacity) {
        size_t capacity = l->capacity < 16 ? 16 : 2 * l->capacity;

        if (!rp_resize_array(l->alloc, &l->numbers, l->capacity, capacity,
                             sizeof *l->numbers)) {
            l->bad = true;
            return;
        }
        l->capacity = capacity;
    }
    for (i = l->count++; i > 0 && l->numbers[i - 1] > number; i--)
        l->numbers[i] = l->numbers[i - 1];
    l->numbers[i] = number;
}

static rp_status list_numbers(listing *l, rp_files *files, const char *directory, rp_error *err)
{
    rp_status st = files->ops->list(files, directory, note_name, l, err);

    if (st == RP_OK && l->bad) st = rp_fail_memory(err, l->capacity * sizeof *l->numbers);
    return st;
}

static rp_status sync_path(rp_files *files, const char *path, rp_error *err)
{
    rp_file *file;
    rp_status st = files->ops->open(files, path, RP_OPEN_WRITE, &file, err);

    if (st != RP_OK) return st;
    st = files->ops->sync(file, err);
    files->ops->close(file);
    return st;
}

static rp_status sync_segments(const rp_journal_options *o, rp_error *err)
{
    listing l = {.alloc = o->alloc};
    char path[32];
    rp_status st = list_numbers(&l, o->files, "seg", err);

    for (size_t i = 0; st == RP_OK && i < l.count; i++)
        st = sync_path(o->files, rp_segment_path(path, l.numbers[i]), err);
    if (st == RP_OK) st = o->files->ops->sync_directory(o->files, "seg", err);
    rp_release(o->alloc, l.numbers, l.capacity * sizeof *l.numbers);
    return st == RP_NOT_FOUND && l.count == 0 ? RP_OK : st;
}

/* Files that begin at or after next_lsn have nothing that was accepted. */
static rp_status put_away(rp_files *files, uint64_t first, rp_error *err)
{
    char path[RP_JOURNAL_PATH_BYTES], to[64];
    rp_status st = files->ops->make_directory(files, "quarantine", err);

    (void)snprintf(to, sizeof to, "quarantine/wal-%016" PRIx64, first);
    if (st == RP_OK) st = files->ops->rename(files, rp_journal_path(path, first), to, err);
    return st;
}

rp_status rp_journal_take_over(const rp_journal_options *o, uint64_t **firsts, size_t *count,
                               size_t *capacity, rp_error *err)
{
    const rp_files_ops *ops = o->files->ops;
    char path[RP_JOURNAL_PATH_BYTES];
    listing l = {.alloc = o->alloc};
    size_t kept = 0;
    rp_status st = ops->make_directory(o->files, "wal", err);

    if (st == RP_OK) st = list_numbers(&l, o->files, "wal", err);
    for (size_t i = 0; st == RP_OK && i < l.count; i++) {
        bool is_old = l.numbers[i] < o->next_lsn;

        if (is_old) kept = i + 1;
        st = is_old ? sync_path(o->files, rp_journal_path(path, l.numbers[i]), err)
                    : put_away(o->files, l.numbers[i], err);
    }
    if (st == RP_OK && kept > 0) st = sync_segments(o, err);
    if (st == RP_OK) st = ops->sync_directory(o->files, "wal", err);
    if (st == RP_OK) st = ops->sync_directory(o->files, "", err);
    *firsts = l.numbers;
    *count = kept;
    *capacity = l.capacity;
    return st;
}

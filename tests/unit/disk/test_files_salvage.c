/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory with sectors that cannot be read. */
#include "disk/files_salvage.h"

#include <string.h>

#include "support/unit.h"
#include "util/error.h"
#include "util/mem.h"

enum { FILE_BYTES = 5 * RP_SALVAGE_BYTES + 100 };

typedef struct bad_disk {
    rp_files files;
    rp_file file;
    uint8_t data[FILE_BYTES];
    uint64_t bad_from, bad_to; /* reads of any of these bytes fail */
    bool is_closed, is_freed;
} bad_disk;

static rp_status bad_open(rp_files *files, const char *path, rp_open_how how, rp_file **out,
                          rp_error *err)
{
    bad_disk *d = (bad_disk *)files;

    if (strcmp(path, "fifo") == 0)
        return rp_fail(err, RP_UNAVAILABLE, "%s: not a regular file", path);
    if (strcmp(path, "file") != 0) return rp_fail(err, RP_NOT_FOUND, "%s: open", path);
    assert_int_equal(how, RP_OPEN_READ);
    d->file.files = files;
    *out = &d->file;
    return RP_OK;
}

static void bad_close(rp_file *file)
{
    ((bad_disk *)file->files)->is_closed = true;
}

static rp_status bad_read(rp_file *file, uint64_t offset, void *data, size_t size, size_t *got,
                          rp_error *err)
{
    bad_disk *d = (bad_disk *)file->files;
    uint64_t end;

    *got = 0;
    if (offset > FILE_BYTES) offset = FILE_BYTES;
    end = size < FILE_BYTES - offset ? offset + size : FILE_BYTES;
    if (offset < d->bad_to && end > d->bad_from)
        return rp_fail(err, RP_UNAVAILABLE, "file: preadv: Input/output error");
    *got = (size_t)(end - offset);
    memcpy(data, d->data + offset, *got);
    return RP_OK;
}

static rp_status bad_size(rp_file *file, uint64_t *out, rp_error *err)
{
    (void)file, (void)err;
    *out = FILE_BYTES;
    return RP_OK;
}

static void bad_free(rp_files *files)
{
    ((bad_disk *)files)->is_freed = true;
}

static const rp_files_ops bad_ops = {
    .open = bad_open, .close = bad_close, .read = bad_read, .size = bad_size, .free = bad_free};

static rp_files *begin(bad_disk *d, uint64_t bad_from, uint64_t bad_to)
{
    rp_files *files = NULL;

    *d = (bad_disk){.files = {&bad_ops}, .bad_from = bad_from, .bad_to = bad_to};
    for (size_t i = 0; i < FILE_BYTES; i++) d->data[i] = (uint8_t)(1 + i % 255);
    assert_ok(rp_files_salvage(rp_allocator_default(), &d->files, &files, NULL));
    return files;
}

static void sectors_that_cannot_be_read_are_zeros(void **state)
{
    const uint64_t bad = 2 * RP_SALVAGE_BYTES + 10; /* one byte, and so its sector */
    static uint8_t data[FILE_BYTES + 50], one[300], two[FILE_BYTES];
    const rp_read_part parts[] = {{one, sizeof one}, {two, sizeof two}};
    rp_file *file = NULL;
    rp_files *files;
    size_t got = 0;
    bad_disk d;

    (void)state;
    memset(data, 0xff, sizeof data); /* what is not written shows */
    memset(two, 0xff, sizeof two);
    files = begin(&d, bad, bad + 1);
    assert_ok(files->ops->open(files, "file", RP_OPEN_READ, &file, NULL));
    assert_ok(files->ops->read(file, 0, data, sizeof data, &got, NULL));
    assert_int_equal(got, FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++)
        assert_int_equal(data[i], i / RP_SALVAGE_BYTES == 2 ? 0 : d.data[i]);
    /* Pieces are those of the file, wherever a read begins. */
    assert_ok(files->ops->read_into(file, 100, parts, 2, &got, NULL));
    assert_int_equal(got, FILE_BYTES - 100);
    assert_memory_equal(one, data + 100, sizeof one);
    assert_memory_equal(two, data + 400, FILE_BYTES - 400);
    assert_ok(files->ops->read(file, 5 * RP_SALVAGE_BYTES, data, sizeof data, &got, NULL));
    assert_int_equal(got, 100);
    assert_ok(files->ops->read(file, FILE_BYTES, data, 10, &got, NULL));
    assert_int_equal(got, 0);
    files->ops->close(file);
    files->ops->free(files);
    assert_true(d.is_closed && d.is_freed);
}

static void what_cannot_be_read_at_all_is_damaged(void **state)
{
    static uint8_t data[FILE_BYTES];
    rp_file *file = NULL;
    rp_error err = {0};
    rp_files *files;
    size_t got = 0;
    bad_disk d;

    (void)state;
    files = begin(&d, 0, FILE_BYTES);
    assert_ok(files->ops->open(files, "file", RP_OPEN_READ, &file, NULL));
    assert_fails(files->ops->read(file, 0, data, sizeof data, &got, &err), RP_CORRUPT, &err,
                 "Input/output error");
    assert_int_equal(err.code, RP_CORRUPT);
    assert_fails(files->ops->open(files, "fifo", RP_OPEN_READ, &file, &err), RP_CORRUPT, &err,
                 "not a regular file");
    assert_fails(files->ops->open(files, "none", RP_OPEN_READ, &file, &err), RP_NOT_FOUND, &err,
                 "none");
    files->ops->free(files);
}

RP_TESTS(files_salvage)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sectors_that_cannot_be_read_are_zeros),
        cmocka_unit_test(what_cannot_be_read_at_all_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

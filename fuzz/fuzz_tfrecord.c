/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a checkpoint of dm-reverb, from the framing of its files to a store.
 *
 *   0 bytes...                                   one file as it is: zlib or plain, records
 *   1 (file, length, record)...                  three files of records with correct checksums,
 *                                                so that the messages are parsed
 *
 * A store that was read must be consistent, and must be the same after it was written and read
 * again. */
#include "durable/reverb/reverb_checkpoint.h"
#include "durable/reverb/tfrecord.h"
#include "durable/reverb/zlib_stream.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "table/snapshot/cut.h"

enum { FILES = 12, MAX_FILE = 1 << 18 };

typedef struct memory_file {
    rp_file base;
    char path[300];
    uint8_t *data;
    size_t size;
} memory_file;

typedef struct memory_files {
    rp_files base;
    memory_file files[FILES];
    size_t count;
} memory_files;

static memory_file *find(memory_files *fs, const char *path)
{
    for (size_t i = 0; i < fs->count; i++)
        if (strcmp(fs->files[i].path, path) == 0) return &fs->files[i];
    return NULL;
}

static rp_status mem_open(rp_files *files, const char *path, rp_open_how how, rp_file **out,
                          rp_error *err)
{
    memory_files *fs = (memory_files *)files;
    memory_file *file = find(fs, path);

    (void)err;
    if (file == NULL && how != RP_OPEN_CREATE) return RP_NOT_FOUND;
    if (file != NULL && how == RP_OPEN_CREATE) return RP_EXISTS;
    if (file == NULL) {
        fuzz_check(fs->count < FILES && strlen(path) < sizeof file->path);
        file = &fs->files[fs->count++];
        strcpy(file->path, path);
        file->base.files = files;
    }
    *out = &file->base;
    return RP_OK;
}

static void mem_close(rp_file *file)
{
    (void)file;
}

static rp_status mem_write(rp_file *base, uint64_t offset, const rp_bytes *parts, size_t count,
                           rp_error *err)
{
    memory_file *file = (memory_file *)base;

    (void)err;
    fuzz_check(offset == file->size && count == 1);
    if (file->size + parts->size > MAX_FILE) return RP_NO_RESOURCE;
    if (file->data == NULL) file->data = malloc(MAX_FILE);
    memcpy(file->data + offset, parts->data, parts->size);
    file->size += parts->size;
    return RP_OK;
}

static rp_status mem_read(rp_file *base, uint64_t offset, void *data, size_t size, size_t *got,
                          rp_error *err)
{
    memory_file *file = (memory_file *)base;

    (void)err;
    fuzz_check(offset <= file->size);
    *got = size < file->size - offset ? size : file->size - offset;
    if (*got > 0) memcpy(data, file->data + offset, *got);
    return RP_OK;
}

static rp_status mem_sync(rp_file *file, rp_error *err)
{
    (void)file, (void)err;
    return RP_OK;
}

static rp_status mem_size(rp_file *file, uint64_t *out, rp_error *err)
{
    (void)err;
    *out = ((memory_file *)file)->size;
    return RP_OK;
}

static rp_status mem_remove(rp_files *fs, const char *path, rp_error *err)
{
    memory_file *file = find((memory_files *)fs, path);

    (void)err;
    if (file == NULL) return RP_NOT_FOUND;
    file->path[0] = '\0';
    return RP_OK;
}

static rp_status mem_directory(rp_files *fs, const char *path, rp_error *err)
{
    (void)fs, (void)path, (void)err;
    return RP_OK;
}

/* Lists the folders: the part of each name before a slash. */
static rp_status mem_list(rp_files *files, const char *path,
                          void (*each)(void *ctx, const char *name), void *ctx, rp_error *err)
{
    memory_files *fs = (memory_files *)files;

    (void)path, (void)err;
    for (size_t i = 0; i < fs->count; i++) {
        char name[300];
        size_t length = strcspn(fs->files[i].path, "/");

        memcpy(name, fs->files[i].path, length);
        name[length] = '\0';
        if (length > 0) each(ctx, name);
    }
    return RP_OK;
}

static const rp_files_ops ops = {
    .open = mem_open,
    .close = mem_close,
    .write = mem_write,
    .read = mem_read,
    .sync = mem_sync,
    .size = mem_size,
    .remove = mem_remove,
    .make_directory = mem_directory,
    .sync_directory = mem_directory,
    .list = mem_list,
};

static void clear(memory_files *fs)
{
    for (size_t i = 0; i < fs->count; i++) free(fs->files[i].data);
    memset(fs, 0, sizeof *fs);
    fs->base.ops = &ops;
}

static void read_stream(const uint8_t *data, size_t size)
{
    rp_memory_stream stream = {data, data + size};
    const rp_inflate_options options = {
        {rp_memory_stream_read, &stream}, FUZZ_MAX_BYTES, rp_tfrecord_is_plain};
    rp_tfrecord_reader reader;
    rp_inflater *inflater = NULL;
    const uint8_t *record = NULL;
    size_t record_size, total = 0;
    rp_error err = {0};
    rp_status st;

    fuzz_check(rp_inflater_new(rp_allocator_default(), &options, &inflater, NULL) == RP_OK);
    rp_tfrecord_reader_init(&reader, rp_allocator_default(),
                            (rp_byte_source){rp_inflater_read, inflater}, FUZZ_MAX_BYTES);
    while ((st = rp_tfrecord_next(&reader, &record, &record_size, &err)) == RP_OK &&
           record != NULL)
        for (size_t i = 0; i < record_size; i += 64) total += record[i];
    fuzz_check(total < SIZE_MAX && (st == RP_OK || err.text[0] != '\0'));
    fuzz_check(rp_inflater_consumed(inflater) <= size);
    rp_tfrecord_reader_deinit(&reader);
    rp_inflater_free(inflater);
}

static uint64_t digest(rp_store *store)
{
    rp_table *tables[64];
    size_t count = rp_store_tables(store, tables, 64);
    uint64_t sum = count;

    for (size_t i = 0; i < count && i < 64; i++) {
        fuzz_check(rp_table_check(tables[i]));
        sum += rp_table_digest(tables[i]);
    }
    return sum;
}

static rp_store *new_store(const rp_allocator *alloc)
{
    const rp_store_options options = {.alloc = alloc, .seed = 1};
    rp_store *store = NULL;

    fuzz_check(rp_store_new(&options, &store, NULL) == RP_OK);
    return store;
}

/* Writes a store that was loaded, and reads it again, twice: the first time, chunks of other
 * codecs may be converted to snappy. */
static void check_again(rp_store *store, const rp_allocator *alloc)
{
    static memory_files fs;
    rp_store *stores[2] = {NULL, NULL}, *from = store;

    for (int i = 0; i < 2 && from != NULL; i++) {
        clear(&fs);
        if (rp_reverb_save(&fs.base, from, NULL, NULL, NULL) != RP_OK) break;
        stores[i] = new_store(alloc);
        fuzz_check(rp_reverb_load(&fs.base, stores[i], NULL, NULL, NULL) == RP_OK);
        from = stores[i];
    }
    if (stores[1] != NULL) fuzz_check(digest(stores[0]) == digest(stores[1]));
    rp_store_free(stores[0]);
    rp_store_free(stores[1]);
    clear(&fs);
}

/* Frames each record of the input and appends it to the file that the input names. */
static void fill(memory_files *fs, fuzz_input *in)
{
    static const char *const names[] = {"tables.tfrecord", "chunks.tfrecord", "items.tfrecord"};
    rp_file_stream streams[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    rp_file *done = NULL;

    for (size_t i = 0; i < 3; i++)
        fuzz_check(mem_open(&fs->base, names[i], RP_OPEN_CREATE, &streams[i].file, NULL) ==
                   RP_OK);
    fuzz_check(mem_open(&fs->base, "DONE", RP_OPEN_CREATE, &done, NULL) == RP_OK);
    while (fuzz_left(in) > 0) {
        rp_file_stream *stream = &streams[fuzz_byte(in) % 3];
        size_t size = fuzz_short(in);

        if (size > fuzz_left(in)) size = fuzz_left(in);
        if (rp_tfrecord_write((rp_byte_sink){rp_file_stream_write, stream}, in->at, size,
                              NULL) != RP_OK)
            return;
        in->at += size;
    }
}

static void read_checkpoint(fuzz_input *in)
{
    static memory_files fs;
    fuzz_memory memory = {0};
    rp_allocator alloc = fuzz_memory_allocator(&memory);
    rp_store *store;

    clear(&fs);
    fill(&fs, in);
    store = new_store(&alloc);
    if (rp_reverb_load(&fs.base, store, NULL, NULL, NULL) == RP_OK)
        check_again(store, &alloc);
    else
        fuzz_check(rp_store_tables(store, NULL, 0) == 0);
    rp_store_free(store);
    fuzz_check(memory.live == 0);
    clear(&fs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};

    if (fuzz_byte(&in) % 2 == 0)
        read_stream(in.at, fuzz_left(&in));
    else
        read_checkpoint(&in);
    return 0;
}

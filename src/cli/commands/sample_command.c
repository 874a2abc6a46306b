/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise sample`: prints items one by one, or keeps all of them and writes a .npy file for
 * each column.
 *
 * Invariants:
 *   K1  kept_count <= kept_capacity, and each kept sample owns a reference to its trajectory;
 *   K2  drawn <= count. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/text/item_text.h"
#include "cli/text/npy.h"
#include "cli/text/signature_spec.h"
#include "cli/text/units.h"
#include "reprise/sampler.h"

enum {
    MAX_COUNT = 1000 * 1000,
    BATCH = 64,
    IN_FLIGHT = 100,
    DEFAULT_ELEMENTS = 24,
    CACHE_BYTES = 64 << 20,
    PATH_BYTES = 4096,
};

typedef enum option { COUNT, NPY, ELEMENTS, OPTIONS } option;

static const rp_option options[OPTIONS] = {
    [COUNT] = {"count", "N", "number of items (1)", false, NULL, NULL},
    [NPY] = {"npy", "DIR", "write a .npy file for each column, items stacked", false, NULL,
             NULL},
    [ELEMENTS] = {"elements", "N", "shorten columns with more elements (24; 0: never)", false,
                  NULL, NULL},
};

static const char text[] =
    "Sampling counts as that of any other sampler: it may remove items. --npy writes\n"
    "DIR/COLUMN.npy, and DIR/_key.npy, _priority.npy and _probability.npy with a number for\n"
    "each item; reprise insert reads them back. --json prints a line for each item. Items "
    "that\n"
    "were drawn and cannot be written as .npy files are printed as --json prints them.\n";

static const char *const examples[] = {
    "reprise sample replay",
    "reprise sample replay --count 3 --json",
    "reprise sample replay --count 8 --npy batch",
    NULL,
};

typedef struct drawing {
    rp_remote r;
    const char *table;
    int64_t count, elements;
    const char *folder; /* NULL: print */
    bool made_folder;
    rp_table_list list;
    rp_sampler *sampler;
    rp_decoder *decoder;
    rp_text_buffer buffer;
    rp_sample *kept; /* in the arena; samples to be written to the folder */
    size_t kept_count, kept_capacity;
    size_t drawn;
} drawing;

static rp_status read_options(drawing *d, rp_problem *problem)
{
    rp_setting value;
    rp_status st = RP_OK;

    d->count = 1;
    d->elements = DEFAULT_ELEMENTS;
    d->folder = rp_flags_get(d->r.flags, NPY);
    if (d->folder != NULL && d->r.json)
        return rp_problem_set(problem, NULL, "--npy and --json: give only one of them");
    if (rp_remote_setting(&d->r, COUNT, &value))
        st = rp_setting_integer(&value, 1, MAX_COUNT, &d->count, problem);
    if (st == RP_OK && rp_remote_setting(&d->r, ELEMENTS, &value))
        st = rp_setting_integer(&value, 0, INT64_MAX, &d->elements, problem);
    return st;
}

/* Decodes one column into memory of the arena. */
static rp_status decode(drawing *d, rp_arena *arena, const rp_trajectory *trajectory,
                        size_t column, rp_tensor *out, rp_error *err)
{
    rp_trajectory_column c = rp_trajectory_get_column(trajectory, column);
    void *data = rp_arena_take(arena, c.bytes + 1);

    assert(column < rp_trajectory_column_count(trajectory));
    if (data == NULL) return RP_NO_RESOURCE;
    *out = (rp_tensor){c.dtype, c.shape, data};
    if (c.dtype == RP_STRING)
        return rp_decoder_stack_strings(d->decoder, &trajectory, 1, column, data,
                                        c.bytes / sizeof(rp_string), err);
    return rp_decoder_stack(d->decoder, &trajectory, 1, column, data, c.bytes, err);
}

/* Returns the name of a column: that of the signature, if it has `count` columns, or its
 * number. */
static const char *column_name(const drawing *d, rp_arena *arena, size_t column, size_t count)
{
    const rp_client_table *t = rp_table_list_find(&d->list, d->table);
    const rp_signature *signature = t != NULL ? t->info.signature : NULL;
    const char *name;

    assert(column < count);
    if (signature != NULL && rp_signature_column_count(signature) == count) {
        name = rp_signature_column(signature, column)->name;
        if (name != NULL && name[0] != '\0') return name;
    }
    name = rp_arena_format(arena, "%zu", column);
    return name != NULL ? name : "?";
}

static rp_status print_item(drawing *d, const rp_sample *sample, rp_error *err)
{
    size_t count = rp_trajectory_column_count(sample->trajectory);
    rp_arena arena;
    rp_tensor *tensors;
    const char **names;
    rp_item_view view;
    rp_status st = RP_NO_RESOURCE;

    rp_arena_init(&arena, NULL);
    tensors = rp_arena_take(&arena, count * sizeof *tensors);
    names = rp_arena_take(&arena, count * sizeof *names);
    if (tensors == NULL || names == NULL) goto out;
    st = RP_OK;
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        names[i] = column_name(d, &arena, i, count);
        st = decode(d, &arena, sample->trajectory, i, &tensors[i], err);
    }
    if (st != RP_OK) goto out;
    view = (rp_item_view){d->table, sample, names, tensors, count};
    if (d->r.json)
        rp_item_json(&d->buffer, &view);
    else
        rp_item_print(&d->buffer, &view, d->drawn, (size_t)d->elements);
    if (rp_remote_print(&d->r, &d->buffer) != 0) st = RP_NO_RESOURCE;
out:
    rp_arena_deinit(&arena);
    return st;
}

/* Moves a sample to the list of kept samples. */
static rp_status keep(drawing *d, rp_sample *sample)
{
    rp_sample *grown =
        rp_arena_grow(&d->r.arena, d->kept, d->kept_count, &d->kept_capacity, sizeof *d->kept);

    if (grown == NULL) return RP_NO_RESOURCE;
    d->kept = grown;
    assert(d->kept_count < d->kept_capacity && sample->trajectory != NULL); /* K1 */
    d->kept[d->kept_count++] = *sample;
    sample->trajectory = NULL; /* moved (K1) */
    return RP_OK;
}

/* Waits for samples, and tells the user what the sampler waits for. */
static rp_status next(drawing *d, rp_sample *samples, size_t room, size_t *count, rp_error *err)
{
    rp_wait_slices slices = rp_wait_slices_begin(&d->r);
    rp_status st;

    do
        st = rp_sampler_next(d->sampler, samples, room, count, rp_wait_slices_next(&slices),
                             err);
    while (rp_wait_slices_again(&slices, st, err));
    return st;
}

static rp_status draw(drawing *d, rp_error *err)
{
    rp_sample samples[BATCH];
    size_t want = (size_t)d->count;
    rp_status st = RP_OK;

    while (d->drawn < want && st == RP_OK && !ferror(stdout)) {
        size_t count = 0, room = want - d->drawn < BATCH ? want - d->drawn : BATCH;

        st = next(d, samples, room, &count, err);
        if (st != RP_OK) break;
        assert(count <= room);
        for (size_t i = 0; i < count && st == RP_OK; i++) {
            d->drawn++;
            st = d->folder != NULL ? keep(d, &samples[i]) : print_item(d, &samples[i], err);
        }
        rp_samples_release(samples, count);
    }
    assert(d->drawn <= want); /* K2 */
    return st;
}

/* Makes the folder, or finds that it can be written to: before the first draw, since sampling
 * may remove items. */
static rp_status make_folder(drawing *d, rp_error *err)
{
    struct stat is;
    int failed = 0;

    d->made_folder = mkdir(d->folder, 0777) == 0;
    if (!d->made_folder && errno != EEXIST)
        failed = errno;
    else if (stat(d->folder, &is) != 0)
        failed = errno;
    else if (!S_ISDIR(is.st_mode))
        failed = ENOTDIR;
    else if (access(d->folder, W_OK | X_OK) != 0)
        failed = errno;
    if (failed == 0) return RP_OK;
    (void)snprintf(err->text, sizeof err->text, "%.150s: %s; no item was drawn", d->folder,
                   strerror(failed));
    return RP_INVALID;
}

static rp_status start(drawing *d, rp_error *err)
{
    rp_sampler_options o = {
        .table = d->table,
        .max_samples = d->count,
        .max_in_flight = d->count < IN_FLIGHT ? (size_t)d->count : IN_FLIGHT,
        .rate_limiter_timeout_ms = -1, /* the wait of each call ends it */
    };
    rp_status st = rp_table_list_fetch(&d->list, d->r.client, rp_remote_wait(&d->r), err);

    if (st == RP_OK && rp_table_list_find(&d->list, d->table) == NULL)
        st = rp_table_list_missing(&d->list, d->table, err);
    if (st == RP_OK && d->folder != NULL) st = make_folder(d, err);
    if (st == RP_OK) st = rp_decoder_new(rp_allocator_default(), CACHE_BYTES, &d->decoder);
    if (st == RP_OK) st = rp_sampler_new(d->r.client, &o, &d->sampler, err);
    return st;
}

/* Returns the path of the file of a column. Slashes in the name become dots; other bytes that
 * are not letters, digits or "._-" become underscores. */
static const char *file_of(drawing *d, const char *name)
{
    char *path = rp_arena_format(&d->r.arena, "%s/%s.npy", d->folder, name);

    if (path == NULL) return NULL;
    for (char *c = path + strlen(d->folder) + 1; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("._-", *c) != NULL;

        if (*c == '/')
            *c = '.';
        else if (!plain)
            *c = '_';
    }
    return path;
}

static rp_status file_problem(const char *path, rp_problem *problem)
{
    return rp_problem_set(problem, NULL, "%.500s: %s", path, strerror(errno));
}

/* Opens the file of a column of all items and writes its header. */
static rp_status begin_file(const char *path, rp_dtype dtype, const rp_shape *item,
                            size_t items, FILE **out, rp_problem *problem)
{
    rp_shape shape = {.rank = item->rank + 1, .dims = {(int64_t)items}};
    char header[RP_NPY_HEADER_BYTES];
    size_t size;

    if (item->rank >= RP_MAX_RANK)
        return rp_problem_set(problem, NULL,
                              "%.500s: more than %d dimensions, with that of the items", path,
                              RP_MAX_RANK);
    for (int32_t i = 0; i < item->rank; i++) shape.dims[i + 1] = item->dims[i];
    size = rp_npy_header(dtype, &shape, header);
    if (size == 0)
        return rp_problem_set(problem, NULL, "%.500s: .npy files have no strings", path);
    assert(size <= RP_NPY_HEADER_BYTES);
    *out = fopen(path, "wbe");
    if (*out == NULL) return file_problem(path, problem);
    (void)fwrite(header, 1, size, *out);
    return RP_OK;
}

static rp_status end_file(FILE *file, const char *path, rp_problem *problem)
{
    bool bad = ferror(file) != 0;

    if (fclose(file) != 0 || bad) return file_problem(path, problem);
    return RP_OK;
}

/* Returns RP_OK if a column of all items has one dtype and shape: else no file can have it. */
static rp_status check_column(drawing *d, size_t column, const char *path, rp_problem *problem)
{
    rp_trajectory_column first = rp_trajectory_get_column(d->kept[0].trajectory, column);
    char a[160], b[160];

    for (size_t i = 1; i < d->kept_count; i++) {
        rp_trajectory_column c = rp_trajectory_get_column(d->kept[i].trajectory, column);
        rp_spec other = {.dtype = c.dtype, .shape = c.shape};
        rp_spec one = {.dtype = first.dtype, .shape = first.shape};

        if (c.dtype == first.dtype && rp_shape_equal(&c.shape, &first.shape)) continue;
        return rp_problem_set(problem, NULL, "%.500s: item %zu is %s, the first %s", path,
                              i + 1, rp_spec_text(&other, a, sizeof a),
                              rp_spec_text(&one, b, sizeof b));
    }
    return RP_OK;
}

static rp_status write_column(drawing *d, size_t column, const char *path, rp_problem *problem)
{
    rp_trajectory_column first = rp_trajectory_get_column(d->kept[0].trajectory, column);
    FILE *file = NULL;
    rp_error err = {0};
    rp_status st = begin_file(path, first.dtype, &first.shape, d->kept_count, &file, problem);

    for (size_t i = 0; i < d->kept_count && st == RP_OK; i++) {
        const rp_trajectory *t = d->kept[i].trajectory;
        rp_trajectory_column c = rp_trajectory_get_column(t, column);
        rp_arena arena;
        rp_tensor tensor;

        rp_arena_init(&arena, NULL);
        if (decode(d, &arena, t, column, &tensor, &err) == RP_OK)
            (void)fwrite(tensor.data, 1, c.bytes, file);
        else
            st = rp_problem_set(problem, NULL, "item %zu: %s", i + 1,
                                err.text[0] != '\0' ? err.text : "out of memory");
        rp_arena_deinit(&arena);
    }
    if (file != NULL && st == RP_OK) return end_file(file, path, problem);
    if (file != NULL) (void)fclose(file);
    return st;
}

/* Writes a field of 8 bytes of each sample. */
static rp_status write_numbers(drawing *d, const char *name, rp_dtype dtype, size_t offset,
                               rp_problem *problem)
{
    const rp_shape scalar = {0};
    const char *path = file_of(d, name);
    FILE *file = NULL;
    rp_status st;

    assert(offset + 8 <= sizeof(rp_sample) && rp_dtype_size(dtype) == 8);
    if (path == NULL) return rp_problem_memory(problem);
    st = begin_file(path, dtype, &scalar, d->kept_count, &file, problem);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < d->kept_count; i++)
        (void)fwrite((const char *)&d->kept[i] + offset, 1, 8, file);
    return end_file(file, path, problem);
}

static rp_status write_folder(drawing *d, rp_problem *problem)
{
    size_t columns = rp_trajectory_column_count(d->kept[0].trajectory);
    rp_status st = RP_OK;

    assert(d->kept_count > 0);
    static_assert(sizeof d->kept->key == 8 && sizeof d->kept->priority == 8 &&
                      sizeof d->kept->probability == 8,
                  "write_numbers() writes fields of 8 bytes");
    for (size_t i = 1; i < d->kept_count; i++)
        if (rp_trajectory_column_count(d->kept[i].trajectory) != columns)
            return rp_problem_set(problem, NULL, "item %zu has %zu column%s, the first %zu",
                                  i + 1, rp_trajectory_column_count(d->kept[i].trajectory),
                                  rp_plural(rp_trajectory_column_count(d->kept[i].trajectory)),
                                  columns);
    for (size_t i = 0; i < columns && st == RP_OK; i++) {
        const char *path = file_of(d, column_name(d, &d->r.arena, i, columns));

        st = path != NULL ? check_column(d, i, path, problem) : rp_problem_memory(problem);
    }
    for (size_t i = 0; i < columns && st == RP_OK; i++) {
        const char *path = file_of(d, column_name(d, &d->r.arena, i, columns));

        st = path != NULL ? write_column(d, i, path, problem) : rp_problem_memory(problem);
    }
    if (st == RP_OK)
        st = write_numbers(d, "_key", RP_UINT64, offsetof(rp_sample, key), problem);
    if (st == RP_OK)
        st = write_numbers(d, "_priority", RP_FLOAT64, offsetof(rp_sample, priority), problem);
    if (st == RP_OK)
        st = write_numbers(d, "_probability", RP_FLOAT64, offsetof(rp_sample, probability),
                           problem);
    if (st == RP_OK)
        (void)printf("wrote %zu item%s of %zu column%s to %s\n", d->kept_count,
                     rp_plural(d->kept_count), columns, rp_plural(columns), d->folder);
    return st;
}

/* Prints the items that could not be written, since the table may no longer have them. */
static int print_kept(drawing *d, const rp_problem *why)
{
    rp_problem problem;
    rp_error err = {0};

    (void)rp_problem_set(&problem, NULL,
                         "%.600s; the %zu item%s drawn, which the table may no longer have, "
                         "%s printed to standard output as JSON lines",
                         why->text, d->kept_count, rp_plural(d->kept_count),
                         d->kept_count == 1 ? "is" : "are");
    (void)rp_remote_problem(&d->r, &problem);
    d->r.json = true;
    for (size_t i = 0; i < d->kept_count; i++) {
        rp_status st = print_item(d, &d->kept[i], &err);

        if (st == RP_OK) continue;
        (void)rp_problem_set(&problem, NULL, "item %llu cannot be printed: %.300s",
                             (unsigned long long)d->kept[i].key,
                             err.text[0] != '\0' ? err.text : rp_status_name(st));
        (void)rp_remote_problem(&d->r, &problem);
    }
    return EXIT_FAILURE;
}

static int draw_all(drawing *d)
{
    rp_problem problem;
    int status = EXIT_SUCCESS;
    rp_error err = {0};
    char done[64];
    rp_status st = start(d, &err);

    if (st == RP_OK) st = draw(d, &err);
    if (d->kept_count > 0 && write_folder(d, &problem) != RP_OK)
        status = print_kept(d, &problem);
    if (d->made_folder) (void)rmdir(d->folder); /* unless there are files in it */
    if (st != RP_OK && d->drawn > 0 && d->drawn < (size_t)d->count) {
        (void)snprintf(done, sizeof done, "after %zu of %lld items", d->drawn,
                       (long long)d->count);
        return rp_remote_fail_after(&d->r, done, st, &err);
    }
    return st != RP_OK ? rp_remote_fail(&d->r, st, &err) : status;
}

static int run(const rp_flags *flags)
{
    drawing d = {.table = flags->words[0]};
    rp_problem problem;
    int status = rp_remote_open(&d.r, &rp_sample_command, flags);

    if (status == 0 && read_options(&d, &problem) != RP_OK)
        status = rp_remote_misuse(&d.r, &problem);
    if (status == 0) status = rp_remote_connect(&d.r);
    if (status == 0) status = draw_all(&d);
    rp_samples_release(d.kept, d.kept_count);
    rp_sampler_free(d.sampler);
    rp_decoder_free(d.decoder);
    rp_table_list_deinit(&d.list);
    rp_text_buffer_deinit(&d.buffer);
    rp_remote_close(&d.r);
    return status;
}

const rp_command rp_sample_command = {
    .name = "sample",
    .summary = "Draws items of a table and prints them, or writes them to .npy files.",
    .usage = "[OPTION...] TABLE",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 1,
    .max_words = 1,
    .first_table = 1,
    .last_table = 1,
    .run = run,
};

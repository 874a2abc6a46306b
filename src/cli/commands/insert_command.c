/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise insert`: every item has one row of each column. Readers of the item see the row
 * without the row dimension, with the shape of the input.
 *
 * A column of a writer has one shape. A column of the input may change its shape from item to
 * item, so it has a column of the writer (a variant) for each shape.
 *
 * Invariants:
 *   V1  variant_count <= RP_MAX_COLUMNS; variants differ in column or shape;
 *   V2  after find_variants(), latest[i] is a variant of column i with the shape of its value;
 *   V3  an outcome with `input` has the status RP_INVALID;
 *   V4  keys[0 .. inserted - 1] are those of the items, unless lacks_keys;
 *   V5  origins[n % ORIGINS] is that of item n, for the last ORIGINS items. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/array_files.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/text/item_text.h"
#include "cli/text/lines.h"
#include "cli/text/npy.h"
#include "cli/text/units.h"
#include "reprise/trajectory_writer.h"

enum {
    FIRST_KEYS = 64,
    MOST_KEYS = 1 << 20,
    ORIGINS = 1 << 17, /* more items than a writer holds that are not confirmed */
};

/* Where an item comes from. */
typedef struct origin {
    uint64_t key;
    rp_place place; /* file NULL: `line` is its index in the arrays */
} origin;

typedef enum option { PRIORITY, OPTIONS } option;

static const rp_option options[OPTIONS] = {
    [PRIORITY] = {"priority", "X", "of all items (that of the input, or 1)", false, NULL, NULL},
};

static const char text[] =
    "FILE... are .npy files, one for each column, with the items along the first dimension;\n"
    "_priority.npy has the priorities. Or FILE... are JSON lines, - for standard input, with\n"
    "an item on each line:\n"
    "  {\"priority\": 2, \"data\": {\"obs\": [0.1, 0.2], \"action\": {\"dtype\": \"int32\", "
    "\"data\": 3}}}\n"
    "A column is called as its file without .npy, as NAME in NAME=FILE, or as its key in "
    "data.\n"
    "If the table has a signature (reprise info TABLE shows it), the names must be its names, "
    "in\n"
    "any order, and types are its types. Only if no .npy file has NAME= or the name of a "
    "column,\n"
    "the files are its columns in their order.\n"
    "If it has none, only the order is kept: reprise sample calls the columns 0, 1, and so on. "
    "Types\n"
    "are then int64, float64, bool or string.\n"
    "--json prints the keys of the items, unless there are more than 1,048,576. Exit status "
    "0:\n"
    "the server has confirmed all of them.\n";

static const char *const examples[] = {
    "reprise insert replay obs.npy action.npy",
    "reprise insert replay obs=obs.npy action=action.npy --priority 2.5",
    "reprise insert replay items.jsonl",
    "reprise sample replay --json | reprise insert replay -",
    NULL,
};

/* A column of the writer: a column of the input in one of its shapes. */
typedef struct variant {
    size_t column; /* of the input */
    rp_shape shape;
} variant;

typedef struct insertion {
    rp_remote r;
    const char *table;
    double priority;
    bool priority_given;
    rp_table_list list;
    const rp_signature *signature; /* borrowed from the list; NULL: none */
    rp_trajectory_writer *writer;
    uint64_t inserted;
    uint64_t confirmed; /* items of the writers before this one that are in the table */
    uint64_t *keys;     /* V4 */
    size_t key_capacity;
    origin *origins; /* V5; NULL: no memory */
    rp_place place;  /* of the next item */
    bool is_named;   /* the input has names of columns */
    bool lacks_keys; /* they are not wanted, too many, or there is no memory for them */
    rp_ref refs[RP_MAX_COLUMNS];
    rp_value values[RP_MAX_COLUMNS];
    rp_item_column columns[RP_MAX_COLUMNS];
    variant variants[RP_MAX_COLUMNS]; /* by column of the writer */
    size_t variant_count;
    size_t latest[RP_MAX_COLUMNS]; /* the last variant of each column of the input */
} insertion;

/* A failure: a mistake in the input, or the status of a call. */
typedef struct outcome {
    rp_status st;
    bool input; /* the input is wrong: `problem` describes it, not `err` */
    rp_problem problem;
    rp_error err;
} outcome;

/* Marks `o->problem` as the failure. Returns false. */
static bool bad_input(outcome *o)
{
    o->input = true;
    o->st = RP_INVALID;
    return false;
}

static bool start_writer(insertion *in, outcome *o)
{
    rp_trajectory_writer_options options_ = {.column = {.history = 1, .chunk_length = 1}};

    assert(in->writer == NULL);
    in->variant_count = 0;
    o->st = rp_trajectory_writer_new(in->r.client, &options_, rp_remote_wait(&in->r),
                                     &in->writer, &o->err);
    return o->st == RP_OK;
}

/* Returns the place for the key of the next item, or NULL if it is not kept (V4). */
static uint64_t *place_key(insertion *in)
{
    size_t capacity = in->key_capacity > 0 ? 2 * in->key_capacity : FIRST_KEYS;
    uint64_t *keys;

    if (!in->r.json || in->lacks_keys) return NULL;
    assert(in->inserted <= in->key_capacity);
    if (in->inserted < in->key_capacity) return &in->keys[in->inserted];
    keys = capacity <= MOST_KEYS ? realloc(in->keys, capacity * sizeof *keys) : NULL;
    in->lacks_keys = keys == NULL;
    if (keys == NULL) return NULL;
    in->keys = keys;
    in->key_capacity = capacity;
    return &in->keys[in->inserted];
}

/* Returns the number of items that servers have confirmed. */
static uint64_t confirmed(const insertion *in)
{
    return in->confirmed +
           (in->writer != NULL ? rp_trajectory_writer_confirmed(in->writer) : 0);
}

/* Waits until the server has confirmed all items, and tells the user what they wait for. A
 * server may refuse items with RP_DEADLINE just at the end of a slice: then `*err` still has
 * its text, but the next flush succeeds. */
static rp_status flush(insertion *in, rp_error *err)
{
    rp_wait_slices slices = rp_wait_slices_begin(&in->r);
    rp_status st;

    do st = rp_trajectory_writer_flush(in->writer, 0, rp_wait_slices_next(&slices), err);
    while (rp_wait_slices_again(&slices, st, err));
    return st == RP_OK && confirmed(in) < in->inserted ? RP_DEADLINE : st;
}

/* Remembers the item that was just created (V4, V5). */
static void keep_key(insertion *in, uint64_t key)
{
    uint64_t *place = place_key(in);

    if (place != NULL) *place = key;
    if (in->origins == NULL) in->origins = calloc(ORIGINS, sizeof *in->origins);
    if (in->origins != NULL) in->origins[in->inserted % ORIGINS] = (origin){key, in->place};
    in->inserted++;
}

/* Creates an item, as soon as the writer has room for one more. */
static rp_status create(insertion *in, const rp_new_item *item, rp_error *err)
{
    rp_wait_slices slices = rp_wait_slices_begin(&in->r);
    uint64_t key = 0;
    rp_status st;

    do
        st = rp_trajectory_writer_create_item(in->writer, item, rp_wait_slices_next(&slices),
                                              &key, err);
    while (rp_wait_slices_again(&slices, st, err));
    if (st == RP_OK) keep_key(in, key);
    return st;
}

/* Replaces the writer by a new one, which has no columns yet. */
static bool change_writer(insertion *in, outcome *o)
{
    assert(in->writer != NULL);
    o->st = flush(in, &o->err);
    if (o->st != RP_OK) return false;
    in->confirmed = confirmed(in);
    rp_trajectory_writer_free(in->writer);
    in->writer = NULL;
    return start_writer(in, o);
}

/* Returns the variant of a column with this shape, or variant_count if there is none. */
static size_t find_variant(const insertion *in, size_t column, const rp_shape *shape)
{
    size_t i = in->latest[column];

    if (i < in->variant_count && in->variants[i].column == column &&
        rp_shape_equal(&in->variants[i].shape, shape))
        return i;
    for (i = 0; i < in->variant_count; i++)
        if (in->variants[i].column == column && rp_shape_equal(&in->variants[i].shape, shape))
            break;
    return i;
}

/* Finds or adds a variant for each value (V2). If the writer has no column left, starts with
 * another writer: `count` variants fit into that one. */
static bool find_variants(insertion *in, const rp_tensor *tensors, size_t count, outcome *o)
{
    assert(count <= RP_MAX_COLUMNS && in->variant_count <= RP_MAX_COLUMNS); /* V1 */
    for (size_t i = 0; i < count; i++) {
        size_t found = find_variant(in, i, &tensors[i].shape);

        if (found == in->variant_count && found == RP_MAX_COLUMNS)
            return change_writer(in, o) && find_variants(in, tensors, count, o);
        if (found == in->variant_count)
            in->variants[in->variant_count++] = (variant){i, tensors[i].shape};
        assert(found < in->variant_count && in->variants[found].column == i); /* V2 */
        in->latest[i] = found;
    }
    return true;
}

/* Inserts an item of `count` values. */
static bool insert_item(insertion *in, const char *const *names, const rp_tensor *tensors,
                        size_t count, double priority, outcome *o)
{
    if (!find_variants(in, tensors, count, o)) return false;
    for (size_t i = 0; i < count; i++) {
        in->values[i] = (rp_value){(uint32_t)in->latest[i], names[i], tensors[i]};
        in->columns[i] = (rp_item_column){&in->refs[i], 1, true, names[i]};
    }
    o->st = rp_trajectory_writer_append(in->writer, in->values, count, 0, in->refs, &o->err);
    if (o->st == RP_OK)
        o->st = create(in, &(rp_new_item){in->table, priority, in->columns, count}, &o->err);
    return o->st == RP_OK;
}

static bool ends_with(const char *text_, const char *end)
{
    size_t length = strlen(text_), more = strlen(end);

    return length >= more && strcmp(text_ + length - more, end) == 0;
}

static bool insert_arrays(insertion *in, outcome *o)
{
    static rp_array_files all; /* too large for a stack */
    const char *names[RP_MAX_WORDS];
    rp_tensor tensors[RP_MAX_WORDS];
    size_t items;
    bool good = rp_array_files_load(&all, &in->r.arena, &in->r.flags->words[1],
                                    in->r.flags->word_count - 1, in->table, in->signature,
                                    &o->problem) == RP_OK ||
                bad_input(o);

    static_assert((int)RP_MAX_WORDS <= (int)RP_MAX_COLUMNS, "every file can be a column (V1)");
    if (good && all.priorities.bytes != NULL && !in->priority_given)
        good = rp_npy_check_priorities(&all.priorities.tensor, all.priorities.path,
                                       &o->problem) == RP_OK ||
               bad_input(o);
    in->is_named = true;
    items = good ? (size_t)all.list[0].tensor.shape.dims[0] : 0;
    for (size_t c = 0; c < all.count && good; c++) /* matched, so a file's name may differ */
        names[c] = in->signature != NULL ? rp_signature_column(in->signature, c)->name
                                         : all.order[c]->name;
    for (size_t i = 0; i < items && good; i++) {
        double priority = in->priority;

        in->place = (rp_place){NULL, i, 0};
        for (size_t c = 0; c < all.count; c++) tensors[c] = rp_array_file_row(all.order[c], i);
        if (all.priorities.bytes != NULL && !in->priority_given)
            priority = rp_element_number(all.priorities.tensor.dtype,
                                         rp_array_file_row(&all.priorities, i).data);
        good = insert_item(in, names, tensors, all.count, priority, o);
        if (!good) rp_npy_advise(o->err.text, sizeof o->err.text);
    }
    rp_array_files_close(&all);
    return good;
}

static void columns_of_signature(const insertion *in, rp_line_columns *columns)
{
    size_t count = in->signature != NULL ? rp_signature_column_count(in->signature) : 0;

    assert(count <= RP_MAX_COLUMNS);
    columns->count = count;
    for (size_t i = 0; i < count; i++) {
        const rp_spec *spec = rp_signature_column(in->signature, i);

        columns->names[i] = spec->name != NULL ? spec->name : "";
        columns->dtypes[i] = spec->dtype;
    }
}

static bool insert_line(insertion *in, const char *line, size_t size, rp_line_columns *columns,
                        const rp_place *place, outcome *o)
{
    rp_item_line item;
    rp_arena arena;
    double priority;
    bool good;

    rp_arena_init(&arena, NULL);
    good =
        rp_item_line_parse(&arena, line, size, columns, place, &item, &o->problem) == RP_OK ||
        bad_input(o);
    if (good) {
        in->place = *place;
        in->is_named = in->is_named || item.is_named;
        priority = item.has_priority && !in->priority_given ? item.priority : in->priority;
        good = insert_item(in, columns->names, item.tensors, columns->count, priority, o);
        if (!good && o->st == RP_INVALID) {
            (void)rp_problem_set(&o->problem, place, "%s", o->err.text);
            (void)bad_input(o);
        }
    }
    rp_arena_deinit(&arena);
    return good;
}

static bool file_failed(const char *path, const char *why, outcome *o)
{
    (void)rp_problem_set(&o->problem, NULL, "%.500s: %s", path, why);
    return bad_input(o);
}

/* Inserts the lines of a file. Returns false on failure. A signal ends the file early. */
static bool insert_file(insertion *in, const char *path, rp_line_columns *columns, outcome *o)
{
    bool standard = strcmp(path, "-") == 0, good = true;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    rp_place place = {standard ? "standard input" : path, 0, 1};
    rp_lines_result result = RP_LINES_ONE;
    const char *line;
    rp_lines lines;
    size_t size;

    if (fd < 0) return file_failed(path, strerror(errno), o);
    rp_lines_init(&lines, fd, in->r.interrupts.wake_fd);
    while (good && (result = rp_lines_next(&lines, &line, &size)) == RP_LINES_ONE) {
        place.line++;
        if (size > 0 && line[size - 1] == '\r') size--;
        if (size == 0) continue;
        good = insert_line(in, line, size, columns, &place, o);
    }
    if (good && result == RP_LINES_FAILED) good = file_failed(path, strerror(errno), o);
    if (good && result == RP_LINES_TOO_LONG)
        good = file_failed(path, "a line of more than 256 MiB", o);
    rp_lines_deinit(&lines);
    if (!standard) (void)close(fd);
    return good;
}

static bool insert_lines(insertion *in, outcome *o)
{
    static rp_line_columns columns; /* too large for a stack */
    bool good = true;

    columns.arena = &in->r.arena;
    columns_of_signature(in, &columns);
    for (size_t i = 1;
         i < in->r.flags->word_count && good && atomic_load(&in->r.interrupts.number) == 0; i++)
        good = insert_file(in, in->r.flags->words[i], &columns, o);
    return good;
}

/* The command first asks for the tables, which needs the role read only. Names the role that
 * the insert itself needs. */
static void name_role(rp_error *err)
{
    static const char lesser[] = "needs the role read";
    char *at = err->code == RP_UNAUTHENTICATED ? strstr(err->text, lesser) : NULL;
    rp_error was = *err;

    if (at == NULL) return;
    (void)snprintf(at, sizeof err->text - (size_t)(at - err->text), "needs the role write%s",
                   was.text + (at - err->text) + sizeof lesser - 1);
}

static bool start(insertion *in, outcome *o)
{
    const rp_client_table *t;

    o->st = rp_table_list_fetch(&in->list, in->r.client, rp_remote_wait(&in->r), &o->err);
    if (o->st != RP_OK) {
        name_role(&o->err);
        return false;
    }
    t = rp_table_list_find(&in->list, in->table);
    if (t == NULL) {
        o->st = rp_table_list_missing(&in->list, in->table, &o->err);
        return false;
    }
    in->signature = t->info.signature;
    if (!start_writer(in, o)) return false;
    rp_remote_rest(&in->r); /* the input may come late */
    return true;
}

static int report(insertion *in)
{
    rp_text_buffer buffer = {0};
    int status;

    if (in->r.json) {
        rp_json_open(&buffer, '{');
        rp_json_key(&buffer, "table");
        rp_json_put_text(&buffer, in->table);
        rp_json_key(&buffer, "inserted");
        rp_json_put_unsigned(&buffer, in->inserted);
        if (!in->lacks_keys) {
            rp_json_key(&buffer, "keys");
            rp_json_open(&buffer, '[');
            for (uint64_t i = 0; i < in->inserted; i++)
                rp_json_put_unsigned(&buffer, in->keys[i]);
            rp_json_close(&buffer, ']');
        }
        rp_json_close(&buffer, '}');
        rp_text_buffer_put(&buffer, "\n");
    } else {
        rp_text_buffer_format(&buffer, "inserted %llu item%s into %s\n",
                              (unsigned long long)in->inserted, in->inserted == 1 ? "" : "s",
                              in->table);
    }
    status = rp_remote_print(&in->r, &buffer);
    rp_text_buffer_deinit(&buffer);
    return status;
}

/* Writes where the item comes from that an error of a server names by its key, and takes its
 * number, which counts within a message, out of the error. */
static void name_origin(const insertion *in, rp_error *err, char *from, size_t size)
{
    static const char words[] = ", key ";
    char *at = strstr(err->text, ": item "), *key = at != NULL ? strstr(at, words) : NULL;
    uint64_t value = key != NULL ? strtoull(key + sizeof words - 1, NULL, 10) : 0;

    from[0] = '\0';
    for (size_t i = 0; key != NULL && in->origins != NULL && i < ORIGINS; i++) {
        const origin *o = &in->origins[i];

        if (o->key != value || i >= in->inserted) continue;
        if (o->place.file != NULL)
            (void)snprintf(from, size, "%.200s:%zu: ", o->place.file, o->place.line);
        else
            (void)snprintf(from, size,
                           "row %zu of the arrays (the first is 0): ", o->place.line);
        memmove(at + 2, key + 2, strlen(key + 2) + 1);
        return;
    }
}

/* Says, once, that a table without a signature does not keep the names of the input. */
static void note_names(const insertion *in)
{
    if (in->signature != NULL || !in->is_named || in->r.json || in->inserted == 0) return;
    (void)fflush(stdout);
    (void)fprintf(
        stderr,
        "reprise insert: note: table '%.100s' has no signature, so it keeps the order of "
        "the columns, not their names; reprise tables create --column NAME=SPEC makes "
        "a table with one\n",
        in->table);
}

static int fail_input(insertion *in, rp_problem *problem)
{
    size_t used = strlen(problem->text);
    uint64_t count = confirmed(in);

    if (count > 0)
        (void)snprintf(problem->text + used, sizeof problem->text - used,
                       "; the %llu item%s before it %s inserted", (unsigned long long)count,
                       rp_plural(count), count == 1 ? "is" : "are");
    return rp_remote_problem(&in->r, problem);
}

static int insert_all(insertion *in)
{
    const rp_flags *f = in->r.flags;
    size_t arrays_given = 0;
    outcome o = {0};
    char done[320], place[256];
    bool good;

    for (size_t i = 1; i < f->word_count; i++) {
        arrays_given += ends_with(f->words[i], ".npy");
        if (!ends_with(f->words[i], ".npz")) continue;
        (void)rp_problem_set(&o.problem, NULL,
                             "%.300s: .npz files cannot be inserted; extract the .npy files in "
                             "it, as 'unzip' does, and give these",
                             f->words[i]);
        return rp_remote_misuse(&in->r, &o.problem);
    }
    if (arrays_given > 0 && arrays_given < f->word_count - 1) {
        (void)rp_problem_set(&o.problem, NULL, ".npy files and other files cannot be mixed");
        return rp_remote_misuse(&in->r, &o.problem);
    }
    good = start(in, &o);
    if (good) good = arrays_given > 0 ? insert_arrays(in, &o) : insert_lines(in, &o);
    assert(good || o.st != RP_OK);
    assert(!o.input || o.st == RP_INVALID); /* V3 */
    /* Items before a mistake in the input are inserted. */
    if (in->writer != NULL && (good || o.input)) {
        rp_status st = flush(in, &o.err);

        if (good && st != RP_OK) {
            o.st = st;
            good = false;
        }
    }
    if (good && atomic_load(&in->r.interrupts.number) == 0) {
        note_names(in);
        return report(in);
    }
    if (o.input) return fail_input(in, &o.problem);
    if (in->inserted == 0) return rp_remote_fail(&in->r, o.st, &o.err);
    name_origin(in, &o.err, place, sizeof place);
    (void)snprintf(done, sizeof done, "%s%llu item%s inserted", place,
                   (unsigned long long)confirmed(in), confirmed(in) == 1 ? " is" : "s are");
    return rp_remote_fail_after(&in->r, done, o.st, &o.err);
}

static int run(const rp_flags *flags)
{
    static insertion in; /* too large for a stack */
    rp_setting value;
    rp_problem problem;
    int status = rp_remote_open(&in.r, &rp_insert_command, flags);

    in.table = flags->words[0];
    in.priority = 1;
    in.priority_given = status == 0 && rp_remote_setting(&in.r, PRIORITY, &value);
    if (in.priority_given &&
        rp_setting_number(&value, -1e300, 1e300, &in.priority, &problem) != RP_OK)
        status = rp_remote_misuse(&in.r, &problem);
    if (status == 0) status = rp_remote_connect(&in.r);
    if (status == 0) status = insert_all(&in);
    rp_trajectory_writer_free(in.writer);
    free(in.keys);
    free(in.origins);
    rp_table_list_deinit(&in.list);
    rp_remote_close(&in.r);
    return status;
}

const rp_command rp_insert_command = {
    .name = "insert",
    .summary = "Inserts items from .npy files or JSON lines.",
    .usage = "[OPTION...] TABLE FILE...",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 2,
    .max_words = RP_MAX_WORDS,
    .first_table = 1,
    .last_table = 1,
    .run = run,
};

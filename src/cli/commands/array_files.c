/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/array_files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text/npy.h"
#include "cli/text/text_buffer.h"
#include "cli/text/units.h"

/* The table that the files are for. */
typedef struct target {
    const char *table;
    const rp_signature *signature;
} target;

/* Parses "NAME=PATH", or a path whose last part is the name, without ".npy". */
static rp_status name_file(rp_arena *arena, const char *word, rp_array_file *a,
                           rp_problem *problem)
{
    const char *equals = strchr(word, '='), *slash;

    a->path = equals != NULL ? equals + 1 : word;
    a->is_given = equals != NULL;
    slash = strrchr(a->path, '/');
    if (equals != NULL)
        a->name = rp_arena_text(arena, word, (size_t)(equals - word));
    else if (slash != NULL)
        a->name = rp_arena_text(arena, slash + 1, strlen(slash + 1) - 4);
    else
        a->name = rp_arena_text(arena, word, strlen(word) - 4);
    return a->name != NULL ? RP_OK : rp_problem_memory(problem);
}

static rp_status map_file(rp_array_file *a, rp_problem *problem)
{
    int fd = open(a->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    rp_problem why;

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)rp_problem_set(problem, NULL, "%.500s: %s", a->path, strerror(errno));
        if (fd >= 0) (void)close(fd);
        return RP_INVALID;
    }
    a->size = st.st_size > 0 ? (size_t)st.st_size : 0;
    if (a->size > 0) a->bytes = mmap(NULL, a->size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (a->size > 0 && a->bytes == MAP_FAILED) {
        a->bytes = NULL;
        (void)rp_problem_set(problem, NULL, "%.500s: %s", a->path, strerror(errno));
        return RP_INVALID;
    }
    if (rp_npy_parse(a->bytes, a->size, &a->tensor, &why) != RP_OK) {
        (void)rp_problem_set(problem, NULL, "%.500s: %s", a->path, why.text);
        return RP_INVALID;
    }
    if (a->tensor.shape.rank > 0) return RP_OK;
    (void)rp_problem_set(problem, NULL,
                         "%.500s: a single number; expected an array with a row for each item",
                         a->path);
    return RP_INVALID;
}

/* Returns true if the name of an array is that of a column. The file of a column may have dots
 * for slashes, as `sample --npy` writes it. */
static bool is_name(const rp_array_file *a, const char *column)
{
    size_t i = 0;

    if (column == NULL) return false;
    while (a->name[i] != '\0' &&
           (a->name[i] == column[i] || (!a->is_given && column[i] == '/' && a->name[i] == '.')))
        i++;
    return a->name[i] == column[i];
}

/* Returns the column of an array among the first `count` of the signature, or `count`. */
static size_t column_of(const rp_signature *signature, const rp_array_file *a, size_t count)
{
    size_t c = 0;

    while (c < count && !is_name(a, rp_signature_column(signature, c)->name)) c++;
    return c;
}

/* Fails with a text about the names or the number of files, followed by the table's columns. */
static rp_status bad_names(const target *to, const char *what, rp_problem *problem)
{
    size_t count = rp_signature_column_count(to->signature);
    rp_text_buffer line = {0};

    rp_text_buffer_format(&line, "%s; the column%s of table '%.100s' %s: ", what,
                          rp_plural(count), to->table, count == 1 ? "is" : "are");
    for (size_t c = 0; c < count; c++) {
        const char *name = rp_signature_column(to->signature, c)->name;

        rp_text_buffer_format(&line, "%s%.100s", c > 0 ? ", " : "", name != NULL ? name : "-");
    }
    (void)rp_problem_set(problem, NULL, "%s", rp_text_buffer_text(&line));
    rp_text_buffer_deinit(&line);
    return RP_INVALID;
}

/* Fails for an array that is not the only one with the name of a column. */
static rp_status bad_name(const target *to, const rp_array_file *a, bool is_repeated,
                          rp_problem *problem)
{
    char what[700];

    if (is_repeated)
        (void)snprintf(what, sizeof what, "%.300s: another file is column '%.100s' too",
                       a->path, a->name);
    else if (a->is_given)
        (void)snprintf(what, sizeof what, "%.100s=%.300s: there is no column '%.100s'", a->name,
                       a->path, a->name);
    else
        (void)snprintf(what, sizeof what,
                       "%.300s: there is no column '%.100s', but other files are given with "
                       "the names of columns; give this one as NAME=FILE",
                       a->path, a->name);
    return bad_names(to, what, problem);
}

/* Orders the arrays as the signature does, by their names. If none is given as NAME=FILE and no
 * file is called as a column, keeps the order of the command line. */
static rp_status order_files(const target *to, rp_array_files *all, rp_problem *problem)
{
    size_t wanted = to->signature != NULL ? rp_signature_column_count(to->signature) : 0;
    size_t named = 0;
    char what[100];

    for (size_t i = 0; i < all->count; i++) {
        const rp_array_file *a = &all->list[i];

        all->order[i] = a;
        if (to->signature == NULL) continue;
        named += a->is_given || column_of(to->signature, a, wanted) < wanted;
    }
    if (to->signature == NULL) return RP_OK;
    if (wanted != all->count) {
        (void)snprintf(what, sizeof what, "expected %zu file%s, got %zu", wanted,
                       rp_plural(wanted), all->count);
        return bad_names(to, what, problem);
    }
    if (named == 0) return RP_OK;
    for (size_t c = 0; c < wanted; c++) all->order[c] = NULL;
    for (size_t i = 0; i < all->count; i++) {
        size_t c = column_of(to->signature, &all->list[i], wanted);

        if (c == wanted || all->order[c] != NULL)
            return bad_name(to, &all->list[i], c < wanted, problem);
        all->order[c] = &all->list[i];
    }
    return RP_OK;
}

/* Fails if the last array has the name of an earlier one. Without a signature, the order of the
 * files counts, so two files in different folders may have the same name; NAME= may not. */
static bool is_repeated(const rp_array_files *all, rp_problem *problem)
{
    const rp_array_file *last;

    if (all->count < 2) return false;
    last = &all->list[all->count - 1];
    for (size_t i = 0; i + 1 < all->count; i++) {
        const rp_array_file *a = &all->list[i];

        if (!a->is_given || !last->is_given || strcmp(a->name, last->name) != 0) continue;
        (void)rp_problem_set(problem, NULL,
                             "%.100s=%.300s: the column '%.100s' is given twice, first as "
                             "%.300s",
                             last->name, last->path, last->name, a->path);
        return true;
    }
    return false;
}

rp_status rp_array_files_load(rp_array_files *all, rp_arena *arena, const char *const *words,
                              size_t count, const char *table, const rp_signature *signature,
                              rp_problem *problem)
{
    int64_t items = -1;

    assert(count <= RP_MAX_WORDS);
    for (size_t i = 0; i < count; i++) {
        rp_array_file *a = &all->list[all->count];

        if (name_file(arena, words[i], a, problem) != RP_OK) return RP_INVALID;
        if (strcmp(a->name, "_key") == 0 || strcmp(a->name, "_probability") == 0) continue;
        if (strcmp(a->name, "_priority") == 0) {
            all->priorities = *a;
            a = &all->priorities;
        } else {
            all->count++;
        }
        if (map_file(a, problem) != RP_OK) return RP_INVALID;
        if (is_repeated(all, problem)) return RP_INVALID;
        if (items >= 0 && a->tensor.shape.dims[0] != items)
            return rp_problem_set(
                problem, NULL, "%.300s has %lld item%s, the files before it %lld", a->path,
                (long long)a->tensor.shape.dims[0],
                rp_plural((uint64_t)a->tensor.shape.dims[0]), (long long)items);
        items = a->tensor.shape.dims[0];
    }
    if (all->count > 0) return order_files(&(target){table, signature}, all, problem);
    return rp_problem_set(problem, NULL, "no file for a column is given");
}

void rp_array_files_close(rp_array_files *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].bytes != NULL) (void)munmap(all->list[i].bytes, all->list[i].size);
    if (all->priorities.bytes != NULL)
        (void)munmap(all->priorities.bytes, all->priorities.size);
}

rp_tensor rp_array_file_row(const rp_array_file *a, size_t item)
{
    rp_tensor t = {.dtype = a->tensor.dtype, .shape = {.rank = a->tensor.shape.rank - 1}};
    size_t elements = 1;

    assert(a->tensor.shape.rank >= 1 && item < (size_t)a->tensor.shape.dims[0]);
    for (int32_t d = 0; d < t.shape.rank; d++) {
        t.shape.dims[d] = a->tensor.shape.dims[d + 1];
        elements *= (size_t)t.shape.dims[d];
    }
    t.data = (const char *)a->tensor.data + item * elements * rp_dtype_size(t.dtype);
    return t;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/names.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/mem.h"

enum { MAX_FILES = 1 << 20 };

char *rp_segment_path(char out[RP_SEGMENT_PATH_BYTES], uint64_t number)
{
    int length = snprintf(out, RP_SEGMENT_PATH_BYTES, "seg/%016" PRIx64, number);

    assert(length > 0 && length < RP_SEGMENT_PATH_BYTES);
    (void)length;
    return out;
}

char *rp_journal_path(char out[RP_JOURNAL_PATH_BYTES], uint64_t first)
{
    int length = snprintf(out, RP_JOURNAL_PATH_BYTES, "wal/%016" PRIx64, first);

    assert(length > 0 && length < RP_JOURNAL_PATH_BYTES);
    (void)length;
    return out;
}

char *rp_rollouts_path(char out[RP_ROLLOUTS_PATH_BYTES], uint64_t checkpoint)
{
    int length =
        snprintf(out, RP_ROLLOUTS_PATH_BYTES, RP_ROLLOUTS_FOLDER "/%016" PRIx64, checkpoint);

    assert(length > 0 && length < RP_ROLLOUTS_PATH_BYTES);
    (void)length;
    return out;
}

bool rp_name_parse(const char *name, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;

    for (; i < RP_NAME_DIGITS; i++) {
        char c = name[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *number = value;
    return name[i] == '\0';
}

static void add_name(void *ctx, const char *name)
{
    rp_number_list *list = ctx;
    size_t more = list->capacity < 16 ? 16 : 2 * list->capacity;
    uint64_t number;

    if (!rp_name_parse(name, &number)) {
        list->others++;
        return;
    }
    if (list->count == list->capacity) {
        if (list->bad || list->count >= MAX_FILES ||
            !rp_resize_array(&list->alloc, &list->at, list->capacity, more, sizeof *list->at)) {
            list->bad = true;
            return;
        }
        list->capacity = more;
    }
    assert(list->count < list->capacity);
    list->at[list->count++] = number;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

rp_status rp_number_list_read(rp_number_list *list, const rp_allocator *alloc, rp_files *files,
                              const char *folder, rp_error *err)
{
    rp_status st;

    *list = (rp_number_list){.alloc = *alloc};
    st = files->ops->list(files, folder, add_name, list, err);
    if (st == RP_OK && list->bad) st = rp_fail_memory(err, list->capacity * sizeof *list->at);
    if (st == RP_OK && list->count > 1)
        qsort(list->at, list->count, sizeof *list->at, compare_numbers);
    for (size_t i = 1; st == RP_OK && i < list->count; i++)
        assert(list->at[i - 1] <= list->at[i]);
    return st;
}

void rp_number_list_free(rp_number_list *list)
{
    rp_allocator alloc = list->alloc;

    rp_release(&alloc, list->at, list->capacity * sizeof *list->at);
    *list = (rp_number_list){.alloc = alloc};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_item.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

static_assert(sizeof(rp_rollout_stored) <= RP_ROLLOUT_ITEM_COST,
              "info.bytes covers the memory");
static_assert(sizeof(rp_rollout_value) + sizeof(rp_rollout_column) + sizeof(void *) <=
                  RP_ROLLOUT_COLUMN_COST,
              "info.bytes covers the memory");
static_assert(sizeof(rp_rollout_value) % 16 == 0, "the data is as aligned as the block");

rp_rollout_name *rp_rollout_name_new(const rp_allocator *alloc, rp_string text)
{
    rp_rollout_name *name = rp_alloc(alloc, sizeof *name + text.size);

    if (name == NULL) return NULL;
    rp_refcount_init(&name->refs);
    name->alloc = *alloc;
    name->size = text.size;
    if (text.size > 0) memcpy(name->text, text.data, text.size);
    return name;
}

void rp_rollout_name_unref(rp_rollout_name *name)
{
    if (name == NULL || !rp_refcount_dec(&name->refs)) return;
    rp_allocator alloc = name->alloc;
    rp_release(&alloc, name, sizeof *name + name->size);
}

rp_string rp_rollout_name_text(const rp_rollout_name *name)
{
    return (rp_string){name->text, name->size};
}

size_t rp_rollout_tensor_bytes(const rp_tensor *tensor)
{
    size_t elements = 0, bytes = 0;

    (void)!rp_shape_elements(&tensor->shape, &elements);
    (void)rp_size_mul(elements, rp_dtype_size(tensor->dtype), &bytes);
    return bytes;
}

int rp_rollout_compare(rp_string a, rp_string b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;

    if (order != 0) return order;
    return (a.size > b.size) - (a.size < b.size);
}

static int compare_columns(const void *a, const void *b)
{
    return rp_rollout_compare(((const rp_rollout_column *)a)->name,
                              ((const rp_rollout_column *)b)->name);
}

static void unref_value(rp_rollout_value *value)
{
    if (value == NULL || !rp_refcount_dec(&value->refs)) return;
    rp_allocator alloc = value->alloc;
    rp_release(&alloc, value, value->size);
}

/* Copies the data and the name of a column, and makes the column point to the copy. */
static rp_rollout_value *copy_column(const rp_allocator *alloc, rp_rollout_column *column)
{
    size_t bytes = rp_rollout_tensor_bytes(&column->tensor);
    size_t size = sizeof(rp_rollout_value) + bytes + column->name.size;
    rp_rollout_value *value = rp_alloc(alloc, size);
    uint8_t *data;

    if (value == NULL) return NULL;
    rp_refcount_init(&value->refs);
    value->alloc = *alloc;
    value->size = size;
    data = (uint8_t *)(value + 1);
    if (bytes > 0) memcpy(data, column->tensor.data, bytes);
    memcpy(data + bytes, column->name.data, column->name.size);
    column->tensor.data = data;
    column->name.data = (const char *)data + bytes;
    return value;
}

static size_t stored_size(size_t count)
{
    return sizeof(rp_rollout_stored) +
           count * (sizeof(rp_rollout_column) + sizeof(rp_rollout_value *));
}

/* An item with room for `count` columns, whose values are all NULL. */
static rp_rollout_stored *new_stored(const rp_allocator *alloc, size_t count)
{
    rp_rollout_stored *item = rp_alloc_zero(alloc, stored_size(count));

    if (item == NULL) return NULL;
    rp_refcount_init(&item->refs);
    item->alloc = *alloc;
    item->values = (rp_rollout_value **)(void *)(item->columns + count);
    item->view.columns = item->columns;
    item->view.column_count = count;
    return item;
}

static void count_bytes(rp_rollout_stored *item)
{
    item->bytes = RP_ROLLOUT_ITEM_COST;
    item->tensor_bytes = 0;
    for (size_t i = 0; i < item->view.column_count; i++) {
        size_t bytes = rp_rollout_tensor_bytes(&item->columns[i].tensor);

        item->tensor_bytes += bytes;
        item->bytes += RP_ROLLOUT_COLUMN_COST + item->columns[i].name.size + bytes;
    }
}

rp_rollout_stored *rp_rollout_stored_new(const rp_allocator *alloc,
                                         const rp_rollout_column *columns, size_t count,
                                         int64_t first_version, int64_t last_version)
{
    rp_rollout_stored *item = new_stored(alloc, count);

    if (item == NULL) return NULL;
    assert(count <= RP_ROLLOUT_COLUMNS && first_version <= last_version);
    item->view.first_version = first_version;
    item->view.last_version = last_version;
    if (count > 0) {
        memcpy(item->columns, columns, count * sizeof *columns);
        qsort(item->columns, count, sizeof *columns, compare_columns);
    }
    for (size_t i = 0; i < count; i++) {
        item->values[i] = copy_column(alloc, &item->columns[i]);
        if (item->values[i] != NULL) continue;
        rp_rollout_stored_unref(item);
        return NULL;
    }
    count_bytes(item);
    return item;
}

void rp_rollout_stored_unref(rp_rollout_stored *item)
{
    if (item == NULL || !rp_refcount_dec(&item->refs)) return;
    rp_allocator alloc = item->alloc;
    for (size_t i = 0; i < item->view.column_count; i++) unref_value(item->values[i]);
    rp_release(&alloc, item, stored_size(item->view.column_count));
}

static bool same_values(const rp_tensor *a, const rp_tensor *b)
{
    size_t bytes = rp_rollout_tensor_bytes(a);

    return a->dtype == b->dtype && rp_shape_equal(&a->shape, &b->shape) &&
           (bytes == 0 || a->data == b->data || memcmp(a->data, b->data, bytes) == 0);
}

/* Counts the columns of both items together; sets `*is_new` if `more` has other ones. */
static rp_status survey(const rp_rollout_stored *item, const rp_rollout_stored *more,
                        rp_rollout_join *join, size_t *total, bool *is_new)
{
    size_t i = 0;

    *total = item->view.column_count;
    for (size_t k = 0; k < more->view.column_count; k++) {
        const rp_rollout_column *column = &more->columns[k];

        while (i < item->view.column_count &&
               rp_rollout_compare(item->columns[i].name, column->name) < 0)
            i++;
        if (i == item->view.column_count ||
            !rp_rollout_equal(item->columns[i].name, column->name)) {
            (*total)++;
            *is_new = true;
            continue;
        }
        if (same_values(&item->columns[i].tensor, &column->tensor)) continue;
        *is_new = true;
        join->column = column->name;
        if (!join->replace) return RP_EXISTS;
    }
    return RP_OK;
}

static void take(rp_rollout_stored *to, size_t at, const rp_rollout_stored *from, size_t index)
{
    assert(at < to->view.column_count && index < from->view.column_count);
    to->columns[at] = from->columns[index];
    to->values[at] = from->values[index];
    rp_refcount_inc(&to->values[at]->refs);
}

/* Merges the columns; those of `more` count if both have one. */
static void merge(rp_rollout_stored *to, const rp_rollout_stored *item,
                  const rp_rollout_stored *more)
{
    size_t i = 0, k = 0;

    for (size_t at = 0; at < to->view.column_count; at++) {
        int order = i == item->view.column_count ? 1
                    : k == more->view.column_count
                        ? -1
                        : rp_rollout_compare(item->columns[i].name, more->columns[k].name);

        if (order < 0)
            take(to, at, item, i);
        else
            take(to, at, more, k);
        i += order <= 0;
        k += order >= 0;
    }
}

rp_status rp_rollout_stored_join(const rp_rollout_stored *item, const rp_rollout_stored *more,
                                 rp_rollout_join *join)
{
    int64_t first = item->view.first_version, last = item->view.last_version;
    rp_rollout_stored *joined;
    bool is_new = false;
    size_t total;
    rp_status st;

    join->joined = NULL;
    join->column = (rp_string){"", 0};
    if (join->versions && more->view.first_version < first) first = more->view.first_version;
    if (join->versions && more->view.last_version > last) last = more->view.last_version;
    st = survey(item, more, join, &total, &is_new);
    if (st != RP_OK) return st;
    if (!is_new && first == item->view.first_version && last == item->view.last_version)
        return RP_OK;
    if (total > RP_ROLLOUT_COLUMNS) return RP_INVALID;
    joined = new_stored(&item->alloc, total);
    if (joined == NULL) return RP_NO_RESOURCE;
    merge(joined, item, more);
    joined->view.first_version = first;
    joined->view.last_version = last;
    count_bytes(joined);
    if (joined->tensor_bytes > RP_ROLLOUT_ITEM_BYTES) {
        rp_rollout_stored_unref(joined);
        return RP_INVALID;
    }
    join->joined = joined;
    return RP_OK;
}

const rp_rollout_column *rp_rollout_item_column(const rp_rollout_item *item, rp_string name)
{
    size_t low = 0, high = item->column_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = rp_rollout_compare(item->columns[middle].name, name);

        if (order == 0) return &item->columns[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

rp_rollout_batch *rp_rollout_batch_new(const rp_allocator *alloc, size_t count,
                                       size_t group_size)
{
    rp_rollout_batch *batch = rp_alloc_zero(alloc, sizeof *batch);
    const rp_rollout_item **items;

    if (batch == NULL) return NULL;
    assert(count >= 1 && group_size >= 1);
    batch->alloc = *alloc;
    batch->capacity = count;
    batch->group_size = group_size;
    batch->groups =
        rp_alloc_array(alloc, count, sizeof *batch->groups + group_size * sizeof *items);
    if (batch->groups == NULL) {
        rp_release(alloc, batch, sizeof *batch);
        return NULL;
    }
    items = (const rp_rollout_item **)(void *)(batch->groups + count);
    for (size_t i = 0; i < count; i++) batch->groups[i].items = items + i * group_size;
    return batch;
}

void rp_rollout_batch_free(rp_rollout_batch *batch)
{
    rp_allocator alloc;

    if (batch == NULL) return;
    assert(batch->count <= batch->capacity);
    alloc = batch->alloc;
    for (size_t i = 0; i < batch->count; i++) {
        rp_rollout_name_unref(batch->groups[i].name);
        for (size_t k = 0; k < batch->group_size; k++)
            rp_rollout_stored_unref((rp_rollout_stored *)(uintptr_t)batch->groups[i].items[k]);
    }
    rp_release(&alloc, batch->groups,
               batch->capacity *
                   (sizeof *batch->groups + batch->group_size * sizeof(rp_rollout_item *)));
    rp_release(&alloc, batch, sizeof *batch);
}

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

static uint64_t column_cost(const rp_rollout_column *column)
{
    return RP_ROLLOUT_COLUMN_COST + column->name.size +
           rp_rollout_tensor_bytes(&column->tensor);
}

static void count_bytes(rp_rollout_stored *item)
{
    item->bytes = RP_ROLLOUT_ITEM_COST;
    for (size_t i = 0; i < item->view.column_count; i++)
        item->bytes += column_cost(&item->columns[i]);
}

rp_rollout_stored *rp_rollout_stored_borrow(const rp_allocator *alloc,
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
    count_bytes(item);
    return item;
}

bool rp_rollout_stored_copy(rp_rollout_stored *item)
{
    for (size_t i = 0; i < item->view.column_count; i++) {
        assert(item->values[i] == NULL);
        item->values[i] = copy_column(&item->alloc, &item->columns[i]);
        if (item->values[i] == NULL) return false;
    }
    return true;
}

rp_rollout_stored *rp_rollout_stored_new(const rp_allocator *alloc,
                                         const rp_rollout_column *columns, size_t count,
                                         int64_t first_version, int64_t last_version)
{
    rp_rollout_stored *item =
        rp_rollout_stored_borrow(alloc, columns, count, first_version, last_version);

    if (item == NULL || rp_rollout_stored_copy(item)) return item;
    rp_rollout_stored_unref(item);
    return NULL;
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

/* Compares the columns that both items have; sets join->is_new if `more` has other ones. */
static rp_status survey(const rp_rollout_stored *item, const rp_rollout_stored *more,
                        rp_rollout_join *join)
{
    size_t i = 0;

    for (size_t k = 0; k < more->view.column_count; k++) {
        const rp_rollout_column *column = &more->columns[k];

        while (i < item->view.column_count &&
               rp_rollout_compare(item->columns[i].name, column->name) < 0)
            i++;
        if (i < item->view.column_count &&
            rp_rollout_equal(item->columns[i].name, column->name)) {
            if (same_values(&item->columns[i].tensor, &column->tensor)) continue;
            join->column = column->name;
            if (!join->replace) return RP_EXISTS;
        }
        join->is_new = true;
    }
    return RP_OK;
}

/* The columns of two items in the order of their names. Those of `more` count if both have one.
 */
typedef struct merger {
    const rp_rollout_stored *item, *more;
    size_t i, k; /* the next ones */
} merger;

/* Returns the item that has the next column, and its index there. NULL: at the end. */
static const rp_rollout_stored *next_column(merger *m, size_t *index)
{
    bool has_item = m->i < m->item->view.column_count;
    bool has_more = m->k < m->more->view.column_count;
    int order;

    if (!has_item && !has_more) return NULL;
    order = !has_item ? 1
            : !has_more
                ? -1
                : rp_rollout_compare(m->item->columns[m->i].name, m->more->columns[m->k].name);
    *index = order < 0 ? m->i : m->k;
    m->i += order <= 0;
    m->k += order >= 0;
    return order < 0 ? m->item : m->more;
}

rp_status rp_rollout_stored_measure(const rp_rollout_stored *item,
                                    const rp_rollout_stored *more, rp_rollout_join *join)
{
    merger m = {.item = item, .more = more};
    const rp_rollout_stored *from;
    uint64_t tensor_bytes = 0;
    size_t index;
    rp_status st;

    join->first_version = item->view.first_version;
    join->last_version = item->view.last_version;
    if (join->versions && more->view.first_version < join->first_version)
        join->first_version = more->view.first_version;
    if (join->versions && more->view.last_version > join->last_version)
        join->last_version = more->view.last_version;
    join->is_new = join->first_version < item->view.first_version ||
                   join->last_version > item->view.last_version;
    join->column = (rp_string){"", 0};
    st = survey(item, more, join);
    if (st != RP_OK) return st;
    join->columns = 0;
    join->bytes = RP_ROLLOUT_ITEM_COST;
    while ((from = next_column(&m, &index)) != NULL) {
        join->columns++;
        join->bytes += column_cost(&from->columns[index]);
        tensor_bytes += rp_rollout_tensor_bytes(&from->columns[index].tensor);
    }
    return join->columns <= RP_ROLLOUT_COLUMNS && tensor_bytes <= RP_ROLLOUT_ITEM_BYTES
               ? RP_OK
               : RP_INVALID;
}

rp_rollout_stored *rp_rollout_stored_join(const rp_rollout_stored *item,
                                          const rp_rollout_stored *more,
                                          const rp_rollout_join *join)
{
    rp_rollout_stored *joined = new_stored(&item->alloc, join->columns);
    merger m = {.item = item, .more = more};

    assert(join->is_new && join->columns >= item->view.column_count);
    if (joined == NULL) return NULL;
    for (size_t at = 0; at < join->columns; at++) {
        size_t index = 0;
        const rp_rollout_stored *from = next_column(&m, &index);

        joined->columns[at] = from->columns[index];
        joined->values[at] = from->values[index];
        rp_refcount_inc(&joined->values[at]->refs);
    }
    joined->view.first_version = join->first_version;
    joined->view.last_version = join->last_version;
    count_bytes(joined);
    assert(joined->bytes == join->bytes);
    return joined;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/item_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/signature_spec.h"
#include "cli/text/units.h"

/* Writes a dtype and a shape: "float32 [2, 3]". Returns `text`. */
static char *type_text(const rp_tensor *t, char *text, size_t size)
{
    rp_spec spec = {.dtype = t->dtype, .shape = t->shape};

    return rp_spec_text(&spec, text, size);
}

void rp_item_print(rp_text_buffer *out, const rp_item_view *item, size_t number, size_t most)
{
    const rp_sample *s = item->sample;
    char priority[32], probability[32], type[160];
    size_t wide = 0, types = 0;

    rp_text_buffer_format(
        out,
        "item %zu  key %" PRIu64 "  priority %s  probability %s  of %" PRId64
        " item%s  sampled %" PRId32 " time%s\n",
        number, s->key, rp_decimal_text(s->priority, priority, sizeof priority),
        rp_decimal_text(s->probability, probability, sizeof probability), s->table_size,
        s->table_size == 1 ? "" : "s", s->times_sampled, s->times_sampled == 1 ? "" : "s");
    for (size_t i = 0; i < item->column_count; i++) {
        size_t length = strlen(item->names[i]);
        size_t type_length = strlen(type_text(&item->tensors[i], type, sizeof type));

        if (length > wide) wide = length;
        if (type_length > types) types = type_length;
    }
    for (size_t i = 0; i < item->column_count; i++) {
        assert(strlen(item->names[i]) <= wide);
        rp_text_buffer_put(out, "  ");
        rp_text_buffer_put_safe(out, item->names[i], strlen(item->names[i]));
        rp_text_buffer_repeat(out, ' ', wide - strlen(item->names[i]) + 2);
        (void)type_text(&item->tensors[i], type, sizeof type);
        rp_text_buffer_format(out, "%-*s  ", (int)types, type);
        rp_tensor_print(out, &item->tensors[i], most);
        rp_text_buffer_put(out, "\n");
    }
}

static void json_tensor(rp_text_buffer *out, const rp_tensor *t)
{
    rp_json_open(out, '{');
    rp_json_key(out, "dtype");
    rp_json_put_text(out, rp_dtype_text(t->dtype));
    rp_json_key(out, "shape");
    rp_json_open(out, '[');
    for (int32_t d = 0; d < t->shape.rank; d++) rp_json_put_integer(out, t->shape.dims[d]);
    rp_json_close(out, ']');
    rp_json_key(out, "data");
    rp_tensor_json(out, t);
    rp_json_close(out, '}');
}

void rp_item_json(rp_text_buffer *out, const rp_item_view *item)
{
    const rp_sample *s = item->sample;

    rp_json_open(out, '{');
    rp_json_key(out, "table");
    rp_json_put_text(out, item->table);
    rp_json_key(out, "key");
    rp_json_put_unsigned(out, s->key);
    rp_json_key(out, "priority");
    rp_json_put_number(out, s->priority);
    rp_json_key(out, "probability");
    rp_json_put_number(out, s->probability);
    rp_json_key(out, "table_size");
    rp_json_put_integer(out, s->table_size);
    rp_json_key(out, "times_sampled");
    rp_json_put_integer(out, s->times_sampled);
    rp_json_key(out, "data");
    rp_json_open(out, '{');
    for (size_t i = 0; i < item->column_count; i++) {
        rp_json_key(out, item->names[i]);
        json_tensor(out, &item->tensors[i]);
    }
    rp_json_close(out, '}');
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}

typedef struct line {
    rp_arena *arena;
    rp_line_columns *columns;
    const rp_place *place;
    rp_problem *problem;
} line;

/* Returns the place of a value. */
static rp_place at(const line *l, size_t offset)
{
    rp_place place = *l->place;

    place.column += offset;
    return place;
}

static rp_status check_keys(const line *l, const rp_json *root)
{
    static const char *const known[] = {"data",        "priority",   "table",        "key",
                                        "probability", "table_size", "times_sampled"};
    rp_nearest nearest;
    rp_place place;

    for (const rp_json *n = root->child; n != NULL; n = n->next) {
        size_t i = 0;

        while (i < sizeof known / sizeof known[0] && strcmp(n->key, known[i]) != 0) i++;
        if (i < sizeof known / sizeof known[0]) continue;
        rp_nearest_init(&nearest, n->key);
        rp_nearest_offer(&nearest, "data");
        rp_nearest_offer(&nearest, "priority");
        place = at(l, n->offset);
        if (rp_nearest_get(&nearest) != NULL)
            return rp_problem_set(l->problem, &place,
                                  "unknown key '%.100s', did you mean '%s'?", n->key,
                                  rp_nearest_get(&nearest));
        return rp_problem_set(l->problem, &place,
                              "unknown key '%.100s'; a line has data and priority", n->key);
    }
    return RP_OK;
}

static rp_status read_priority(const line *l, const rp_json *n, double *out)
{
    rp_place place;

    *out = 1;
    if (n == NULL) return RP_OK;
    if (n->kind == RP_JSON_INTEGER) {
        *out = (double)n->u.integer;
    } else if (n->kind == RP_JSON_NUMBER) {
        *out = n->u.number;
    } else {
        place = at(l, n->offset);
        return rp_problem_set(l->problem, &place, "priority: expected a number, got %s",
                              rp_json_kind_text(n->kind));
    }
    return RP_OK;
}

/* Takes the names of the columns from the first line. read_column() sets their dtypes. */
static rp_status learn_columns(const line *l, const rp_json *data)
{
    rp_line_columns *c = l->columns;
    rp_place place = at(l, data->offset);
    size_t count = 0;

    assert(c->count == 0 && c->arena != NULL);
    if (data->u.count == 0)
        return rp_problem_set(l->problem, &place, "data: an item needs a column");
    if (data->u.count > RP_MAX_COLUMNS)
        return rp_problem_set(l->problem, &place, "data: more than %d columns", RP_MAX_COLUMNS);
    for (const rp_json *n = data->child; n != NULL; n = n->next, count++) {
        c->names[count] = data->kind == RP_JSON_ARRAY
                              ? rp_arena_format(c->arena, "%zu", count)
                              : rp_arena_text(c->arena, n->key, strlen(n->key));
        c->dtypes[count] = RP_INVALID_DTYPE;
        if (c->names[count] == NULL) return rp_problem_memory(l->problem);
    }
    assert(count == data->u.count);
    c->count = count;
    c->first_line = l->place->line;
    return RP_OK;
}

/* Unwraps {"dtype": ..., "shape": ..., "data": ...}: sets the value, and the dtype and shape if
 * they are given. */
static rp_status unwrap(const line *l, const char *name, const rp_json **value, rp_dtype *dtype,
                        const rp_json **shape)
{
    const rp_json *word, *data;
    rp_place place = at(l, (*value)->offset);

    *shape = NULL;
    if ((*value)->kind != RP_JSON_OBJECT) return RP_OK;
    word = rp_json_find(*value, "dtype");
    data = rp_json_find(*value, "data");
    *shape = rp_json_find(*value, "shape");
    if (data == NULL)
        return rp_problem_set(l->problem, &place,
                              "%.100s: an object must have data, and may have dtype and shape",
                              name);
    if (word != NULL) {
        *dtype = word->kind == RP_JSON_STRING ? rp_dtype_parse(word->u.string.text)
                                              : RP_INVALID_DTYPE;
        if (*dtype == RP_INVALID_DTYPE)
            return rp_problem_set(l->problem, &place, "%.100s: unknown dtype %s%.60s%s", name,
                                  word->kind == RP_JSON_STRING ? "'" : "",
                                  word->kind == RP_JSON_STRING ? word->u.string.text
                                                               : rp_json_kind_text(word->kind),
                                  word->kind == RP_JSON_STRING ? "'" : "");
    }
    *value = data;
    return RP_OK;
}

/* Checks the given shape against that of the data. Only the given shape can describe a value
 * without elements. */
static rp_status check_shape(const line *l, const char *name, const rp_json *shape,
                             rp_tensor *t)
{
    rp_shape given = {0};
    rp_place place = at(l, shape->offset);
    size_t elements, there;
    char wanted[128], got[128];

    if (shape->kind != RP_JSON_ARRAY)
        return rp_problem_set(l->problem, &place,
                              "%.100s: expected a shape such as [2, 3], got %s", name,
                              rp_json_kind_text(shape->kind));
    for (const rp_json *n = shape->child; n != NULL; n = n->next) {
        if (given.rank == RP_MAX_RANK || n->kind != RP_JSON_INTEGER || n->u.integer < 0)
            return rp_problem_set(l->problem, &place,
                                  "%.100s: not a shape: expected at most %d whole numbers >= 0",
                                  name, RP_MAX_RANK);
        given.dims[given.rank++] = n->u.integer;
    }
    if (rp_shape_elements(&given, &elements) != RP_OK ||
        rp_shape_elements(&t->shape, &there) != RP_OK || elements != there ||
        (elements > 0 && !rp_shape_equal(&given, &t->shape)))
        return rp_problem_set(
            l->problem, &place,
            "%.100s: the data has another shape, %s, than the shape that is given, %s", name,
            rp_shape_text(&t->shape, got, sizeof got),
            rp_shape_text(&given, wanted, sizeof wanted));
    t->shape = given;
    return RP_OK;
}

/* Writes which line has set the types, for an error in a later one. */
static void learned(const line *l, char *text, size_t size)
{
    text[0] = '\0';
    if (l->columns->first_line > 0 && l->columns->first_line != l->place->line)
        (void)snprintf(text, size, "; the types are those of line %zu", l->columns->first_line);
}

static rp_status read_column(const line *l, size_t column, const rp_json *value, rp_tensor *out)
{
    const char *name = l->columns->names[column];
    rp_dtype *fixed = &l->columns->dtypes[column], dtype = *fixed;
    rp_place place = at(l, value->offset);
    const rp_json *shape;
    char from[64];
    rp_problem inner;
    rp_status st = unwrap(l, name, &value, &dtype, &shape);

    assert(column < l->columns->count);
    if (st != RP_OK) return st;
    if (dtype == RP_INVALID_DTYPE) dtype = rp_json_dtype(value);
    if (dtype == RP_INVALID_DTYPE)
        return rp_problem_set(
            l->problem, &place,
            "%.100s: the type is not known; give it as {\"dtype\": \"float32\", "
            "\"data\": ...}",
            name);
    learned(l, from, sizeof from);
    if (*fixed != RP_INVALID_DTYPE && dtype != *fixed)
        return rp_problem_set(l->problem, &place, "%.100s: expected %s, got %s%s", name,
                              rp_dtype_text(*fixed), rp_dtype_text(dtype), from);
    st = rp_tensor_from_json(l->arena, name, value, dtype, out, &inner);
    if (st == RP_INVALID) return rp_problem_set(l->problem, &place, "%s%s", inner.text, from);
    if (st != RP_OK) return st;
    *fixed = dtype;
    return shape != NULL ? check_shape(l, name, shape, out) : RP_OK;
}

static bool is_column(const rp_line_columns *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->names[i], name) == 0) return true;
    return false;
}

/* Writes the error of an item that lacks columns or has others: the first of each. */
static rp_status refuse_columns(const line *l, const rp_json *data)
{
    const rp_line_columns *c = l->columns;
    const char *unknown = NULL, *missing = NULL;
    char counts[64] = "";
    rp_place place = at(l, data->offset);

    for (const rp_json *n = data->child; data->kind == RP_JSON_OBJECT && n != NULL; n = n->next)
        if (unknown == NULL && !is_column(c, n->key)) unknown = n->key;
    for (size_t i = 0; data->kind == RP_JSON_OBJECT && i < c->count && missing == NULL; i++)
        if (rp_json_find(data, c->names[i]) == NULL) missing = c->names[i];
    if (data->u.count != c->count)
        (void)snprintf(counts, sizeof counts, "expected %zu column%s, got %zu", c->count,
                       rp_plural(c->count), data->u.count);
    return rp_problem_set(l->problem, &place, "data: %s%s%s%.100s%s%s%s%.100s%s", counts,
                          counts[0] != '\0' && (missing != NULL || unknown != NULL) ? "; " : "",
                          missing != NULL ? "column '" : "", missing != NULL ? missing : "",
                          missing != NULL ? "' is missing" : "",
                          missing != NULL && unknown != NULL ? ", " : "",
                          unknown != NULL ? "'" : "", unknown != NULL ? unknown : "",
                          unknown != NULL ? "' is not a column" : "");
}

static rp_status read_data(const line *l, const rp_json *data, rp_tensor *tensors)
{
    const rp_line_columns *c = l->columns;
    const rp_json *n = data->child;
    rp_status st = RP_OK;

    assert(c->count > 0 && c->count <= RP_MAX_COLUMNS);
    if (data->u.count != c->count) return refuse_columns(l, data);
    for (size_t i = 0; i < c->count && st == RP_OK; i++) {
        const rp_json *value =
            data->kind == RP_JSON_ARRAY ? n : rp_json_find(data, c->names[i]);

        if (value == NULL) return refuse_columns(l, data);
        st = read_column(l, i, value, &tensors[i]);
        if (n != NULL) n = n->next;
    }
    return st;
}

rp_status rp_item_line_parse(rp_arena *arena, const char *text, size_t size,
                             rp_line_columns *columns, const rp_place *place, rp_item_line *out,
                             rp_problem *problem)
{
    line l = {arena, columns, place, problem};
    const rp_json *data;
    rp_json *root;
    rp_json_error error;
    rp_place where = *place;
    rp_status st = rp_json_parse(arena, text, size, &root, &error);

    if (st != RP_OK) {
        where.column += error.offset;
        (void)rp_problem_set(
            problem, &where, "%s%s", error.what,
            error.offset == 0 && size > 0 ? ": a line is {\"data\": {\"obs\": [1, 2]}}" : "");
        return st;
    }
    data = rp_json_find(root, "data");
    if (data == NULL || (data->kind != RP_JSON_OBJECT && data->kind != RP_JSON_ARRAY))
        return rp_problem_set(problem, &where, "%s: expected {\"data\": {\"obs\": [1, 2]}}",
                              root->kind != RP_JSON_OBJECT ? "this is not an object"
                              : data == NULL               ? "the key \"data\" is missing"
                                             : "\"data\" is not an object or array");
    st = check_keys(&l, root);
    out->is_named = data->kind == RP_JSON_OBJECT;
    out->has_priority = rp_json_find(root, "priority") != NULL;
    if (st == RP_OK) st = read_priority(&l, rp_json_find(root, "priority"), &out->priority);
    if (st == RP_OK && columns->count == 0) st = learn_columns(&l, data);
    if (st != RP_OK) return st;
    out->tensors = rp_arena_take(arena, columns->count * sizeof *out->tensors);
    return out->tensors != NULL ? read_data(&l, data, out->tensors)
                                : rp_problem_memory(problem);
}

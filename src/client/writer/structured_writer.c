/* SPDX-License-Identifier: Apache-2.0 */
/* A structured writer: patterns over a trajectory writer.
 *
 * Values of columns that no pattern uses are dropped. The numbers that conditions and TD errors
 * need are stored when a value is appended, so rows are never read back.
 *
 * An append first waits for room, then appends the step, then creates items without checking
 * the bounds again. So an append that times out has appended nothing, and a writer exceeds its
 * bounds by at most one item for each pattern.
 *
 * Invariants:
 *   T1  cleared <= step; the steps (cleared, step] can be looked back to;
 *   T2  a pattern has applied <= checked <= step: it fires at most once on each step;
 *   T3  `item` and `refs` have room for the largest pattern, `values` for every column;
 *   T4  all columns that patterns, conditions and priorities use are below column_count. */
#include "client/writer/structured_writer.h"

#include <assert.h>
#include <math.h>

#include "client/writer/item_names.h"
#include "util/error.h"
#include "util/mem.h"

enum { LOOK_UP_MS = 250 }; /* the most that an append waits for signatures */

/* A pattern and its state. */
typedef struct compiled {
    rp_pattern pattern; /* owns its strings and arrays */
    int32_t age;        /* steps it looks back */
    int64_t applied;    /* the step on which it fired last; 0: never (T2) */
    int64_t checked;    /* the step on which it was tried last */
    int64_t since;      /* steps since it fired */
    bool is_compared;   /* its names need not be compared with the signature any more */
} compiled;

/* A column: whether patterns use it, and the numbers that they need of it. */
typedef struct used_column {
    bool used;
    bool is_weighed; /* a TD error is computed from it */
    bool has_number; /* the latest value is an integer or bool scalar */
    int64_t step;    /* of its latest value */
    int32_t number;
    double *sizes; /* is_weighed: |x| of the latest steps, a ring of `history` */
} used_column;

struct rp_structured_writer {
    rp_allocator alloc;
    rp_trajectory_writer *writer;
    int64_t step;     /* the latest, counted from 1 over all episodes */
    int64_t index;    /* of that step in its episode */
    int64_t cleared;  /* the last step that patterns must not look back to (T1) */
    int32_t history;  /* the most steps that a pattern looks back */
    bool is_compared; /* all patterns are */
    compiled *patterns;
    size_t pattern_count;
    used_column *columns;
    size_t column_count;
    rp_value *values; /* of an append: those of used columns */
    size_t value_capacity;
    rp_item_column *item; /* scratch for the largest pattern: its columns, and their rows */
    size_t item_capacity;
    rp_ref *refs;
    size_t ref_capacity;
};

static int32_t age_of(const rp_pattern_node *node)
{
    return -(node->has_start ? node->start : node->stop);
}

static int32_t step_of(const rp_pattern_node *node)
{
    return node->step > 0 ? node->step : 1;
}

/* Returns the number of rows that a node selects. */
static size_t row_count(const rp_pattern_node *node)
{
    int64_t length =
        node->has_start ? (int64_t)(node->has_stop ? node->stop : 0) - node->start : 1;

    return (size_t)((length + step_of(node) - 1) / step_of(node));
}

/* Returns the most steps that the patterns look back, at least 1. */
static int32_t longest(const rp_pattern *patterns, size_t count)
{
    int32_t age = 1;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < patterns[i].node_count; k++)
            if (age_of(&patterns[i].nodes[k]) > age) age = age_of(&patterns[i].nodes[k]);
    return age;
}

rp_trajectory_writer_options
rp_structured_writer_under(const rp_pattern *patterns, size_t count,
                           const rp_structured_writer_options *options)
{
    int32_t history = longest(patterns, count);

    if (options->chunk_length > history) history = options->chunk_length;
    return (rp_trajectory_writer_options){.column = {.history = history,
                                                     .chunk_length = options->chunk_length,
                                                     .chunk = options->chunk},
                                          .unchecked = true,
                                          .max_items = options->max_items,
                                          .max_bytes = options->max_bytes};
}

/* Copies `size` bytes. Returns NULL without memory. */
static void *duplicate(const rp_allocator *alloc, const void *data, size_t size)
{
    void *copy = rp_alloc(alloc, size > 0 ? size : 1);

    if (copy != NULL && size > 0) memcpy(copy, data, size);
    return copy;
}

static void release_text(const rp_allocator *alloc, const char *text)
{
    if (text != NULL) rp_release(alloc, (char *)(uintptr_t)text, strlen(text) + 1);
}

static void free_pattern(const rp_allocator *alloc, rp_pattern *p)
{
    for (size_t i = 0; p->nodes != NULL && i < p->node_count; i++)
        release_text(alloc, p->nodes[i].name);
    release_text(alloc, p->table);
    rp_release(alloc, (void *)(uintptr_t)p->nodes, p->node_count * sizeof *p->nodes);
    rp_release(alloc, (void *)(uintptr_t)p->conditions,
               p->condition_count > 0 ? p->condition_count * sizeof *p->conditions : 1);
}

/* Copies a pattern. Returns false without memory; free_pattern() frees a partial copy. */
static bool copy_pattern(const rp_allocator *alloc, const rp_pattern *from, rp_pattern *to)
{
    rp_pattern_node *nodes;

    *to = (rp_pattern){.node_count = from->node_count,
                       .condition_count = from->condition_count,
                       .priority = from->priority};
    to->table = duplicate(alloc, from->table, strlen(from->table) + 1);
    to->conditions =
        duplicate(alloc, from->conditions, from->condition_count * sizeof *from->conditions);
    to->nodes = nodes = duplicate(alloc, from->nodes, from->node_count * sizeof *nodes);
    if (nodes == NULL) return false;
    for (size_t i = 0; i < from->node_count; i++) nodes[i].name = NULL;
    for (size_t i = 0; i < from->node_count; i++) {
        const char *name = from->nodes[i].name;
        if (name == NULL) continue;
        nodes[i].name = duplicate(alloc, name, strlen(name) + 1);
        if (nodes[i].name == NULL) return false;
    }
    return to->table != NULL && to->conditions != NULL;
}

/* Computes the capacities: columns, and columns and rows of the largest pattern (T3, T4). */
static void measure(rp_structured_writer *w, const rp_pattern *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rp_pattern *p = &patterns[i];
        size_t rows = 0;
        for (size_t k = 0; k < p->node_count; k++) {
            rows += row_count(&p->nodes[k]);
            if (p->nodes[k].source >= w->column_count) w->column_count = p->nodes[k].source + 1;
        }
        for (size_t k = 0; k < p->condition_count; k++)
            if (p->conditions[k].left == RP_LEFT_DATA &&
                p->conditions[k].column >= w->column_count)
                w->column_count = p->conditions[k].column + 1;
        if (p->node_count > w->item_capacity) w->item_capacity = p->node_count;
        if (rows > w->ref_capacity) w->ref_capacity = rows;
    }
    w->history = longest(patterns, count);
}

/* Marks the columns that a pattern uses. Returns false without memory. */
static bool mark_columns(rp_structured_writer *w, const rp_pattern *p)
{
    used_column *weighed;

    for (size_t k = 0; k < p->node_count; k++) w->columns[p->nodes[k].source].used = true;
    for (size_t k = 0; k < p->condition_count; k++)
        if (p->conditions[k].left == RP_LEFT_DATA)
            w->columns[p->conditions[k].column].used = true;
    if (p->priority.kind != RP_PRIORITY_TD_ERROR) return true;
    assert(p->priority.column < w->column_count); /* T4 */
    weighed = &w->columns[p->priority.column];
    if (weighed->is_weighed) return true;
    weighed->sizes = rp_alloc_array(&w->alloc, (size_t)w->history, sizeof *weighed->sizes);
    weighed->is_weighed = weighed->sizes != NULL;
    return weighed->is_weighed;
}

/* Allocates all arrays and copies the patterns. Returns false without memory. */
static bool fill_in(rp_structured_writer *w, const rp_pattern *patterns, size_t count)
{
    measure(w, patterns, count);
    assert(w->column_count >= 1 && w->item_capacity >= 1 && w->ref_capacity >= 1); /* T3 */
    w->patterns = rp_alloc_array(&w->alloc, count, sizeof *w->patterns);
    w->columns = rp_alloc_array(&w->alloc, w->column_count, sizeof *w->columns);
    w->item = rp_alloc_array(&w->alloc, w->item_capacity, sizeof *w->item);
    w->refs = rp_alloc_array(&w->alloc, w->ref_capacity, sizeof *w->refs);
    w->values = rp_alloc_array(&w->alloc, w->column_count, sizeof *w->values);
    w->value_capacity = w->column_count;
    if (w->patterns == NULL || w->columns == NULL || w->item == NULL || w->refs == NULL ||
        w->values == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        compiled *c = &w->patterns[i];
        w->pattern_count++;
        if (!copy_pattern(&w->alloc, &patterns[i], &c->pattern)) return false;
        c->age = longest(&patterns[i], 1);
        if (!mark_columns(w, &patterns[i])) return false;
    }
    return true;
}

/* Frees all but the trajectory writer. */
static void discard(rp_structured_writer *w, size_t count)
{
    rp_allocator alloc = w->alloc;

    for (size_t i = 0; i < w->pattern_count; i++) free_pattern(&alloc, &w->patterns[i].pattern);
    for (size_t i = 0; w->columns != NULL && i < w->column_count; i++)
        rp_release(&alloc, w->columns[i].sizes, (size_t)w->history * sizeof(double));
    rp_release(&alloc, w->patterns, count * sizeof *w->patterns);
    rp_release(&alloc, w->columns, w->column_count * sizeof *w->columns);
    rp_release(&alloc, w->item, w->item_capacity * sizeof *w->item);
    rp_release(&alloc, w->refs, w->ref_capacity * sizeof *w->refs);
    rp_release(&alloc, w->values, w->value_capacity * sizeof *w->values);
    rp_release(&alloc, w, sizeof *w);
}

rp_status rp_structured_writer_open(rp_trajectory_writer *writer, const rp_pattern *patterns,
                                    size_t count, rp_structured_writer **out, rp_error *err)
{
    rp_structured_writer *w;
    rp_status st = rp_pattern_check(patterns, count, err);

    if (st != RP_OK) return st;
    w = rp_alloc_zero(&writer->alloc, sizeof *w);
    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    w->alloc = writer->alloc;
    w->writer = writer;
    if (!fill_in(w, patterns, count)) {
        discard(w, count);
        return rp_fail_memory(err, sizeof *w);
    }
    *out = w;
    return RP_OK;
}

void rp_structured_writer_free(rp_structured_writer *writer)
{
    if (writer == NULL) return;
    rp_trajectory_writer_free(writer->writer);
    discard(writer, writer->pattern_count);
}

rp_trajectory_writer *rp_structured_writer_inner(rp_structured_writer *writer)
{
    return writer->writer;
}

/* Reads a scalar. Returns false if its type has no case. */
#define CASE(dtype, type)                                                                      \
    case dtype: {                                                                              \
        type x_;                                                                               \
        memcpy(&x_, t->data, sizeof x_);                                                       \
        *out = (result)x_;                                                                     \
        return true;                                                                           \
    }
#define INTEGER_CASES                                                                          \
    CASE(RP_INT8, int8_t)                                                                      \
    CASE(RP_INT16, int16_t)                                                                    \
    CASE(RP_INT32, int32_t)                                                                    \
    CASE(RP_INT64, int64_t)                                                                    \
    CASE(RP_UINT8, uint8_t)                                                                    \
    CASE(RP_UINT16, uint16_t)                                                                  \
    CASE(RP_UINT32, uint32_t)                                                                  \
    CASE(RP_UINT64, uint64_t)

static bool is_scalar(const rp_tensor *t)
{
    size_t elements;

    return t->data != NULL && rp_shape_elements(&t->shape, &elements) == RP_OK && elements == 1;
}

/* Reads an integer, truncated to 32 bits. */
static bool read_integer(const rp_tensor *t, int32_t *out)
{
    typedef int32_t result;

    if (!is_scalar(t)) return false;
    switch (t->dtype) {
        INTEGER_CASES
        CASE(RP_BOOL, uint8_t)
    default: return false;
    }
}

static bool read_real(const rp_tensor *t, double *out)
{
    typedef double result;

    if (!is_scalar(t)) return false;
    switch (t->dtype) {
        INTEGER_CASES
        CASE(RP_FLOAT32, float)
        CASE(RP_FLOAT64, double)
    default: return false;
    }
}
#undef INTEGER_CASES
#undef CASE

static double *size_at(const rp_structured_writer *w, const used_column *c, int64_t step)
{
    assert(c->is_weighed && step >= 1 && step <= w->step && step > w->step - w->history);
    return &c->sizes[step % w->history];
}

/* Stores the numbers of a value that conditions and priorities need. */
static void store_numbers(rp_structured_writer *w, const rp_value *value)
{
    used_column *c = &w->columns[value->column];
    double x = NAN;

    assert(value->column < w->column_count && c->used); /* T4 */
    c->step = w->step;
    c->has_number = read_integer(&value->tensor, &c->number);
    if (c->is_weighed && read_real(&value->tensor, &x)) *size_at(w, c, w->step) = fabs(x);
}

/* Returns the number of steps that can be looked back to, at most `history`. */
static int32_t buffer_length(const rp_structured_writer *w)
{
    int64_t steps = w->step - w->cleared;

    assert(steps >= 0); /* T1 */
    return steps < w->history ? (int32_t)steps : w->history;
}

/* Gets the left side of a condition. Returns false if it has no value. */
static bool left_of(const rp_structured_writer *w, const compiled *p, const rp_condition *c,
                    bool is_end, int64_t *left)
{
    const used_column *column;

    switch (c->left) {
    case RP_LEFT_STEP_INDEX: *left = w->index; return true;
    case RP_LEFT_STEPS_SINCE_APPLIED: *left = p->since; return true;
    case RP_LEFT_BUFFER_LENGTH: *left = buffer_length(w); return true;
    case RP_LEFT_IS_END_EPISODE: *left = is_end; return true;
    case RP_LEFT_DATA:
        column = &w->columns[c->column];
        *left = column->number;
        return column->step == w->step && column->has_number;
    }
    return false;
}

static bool holds(const rp_structured_writer *w, const compiled *p, const rp_condition *c,
                  bool is_end)
{
    int64_t left;
    bool is = false;

    if (!left_of(w, p, c, is_end, &left)) return false;
    switch (c->compare) {
    case RP_COMPARE_EQ: is = left == c->value; break;
    case RP_COMPARE_GE: is = left >= c->value; break;
    case RP_COMPARE_MOD_EQ: is = left % c->mod == c->value; break;
    }
    return is != c->inverse;
}

static bool all_hold(const rp_structured_writer *w, const compiled *p, bool is_end)
{
    if (buffer_length(w) < p->age) return false;
    for (size_t i = 0; i < p->pattern.condition_count; i++)
        if (!holds(w, p, &p->pattern.conditions[i], is_end)) return false;
    return true;
}

/* Finds the rows of a pattern. Returns false if one is missing. */
static bool find_rows(rp_structured_writer *w, const rp_pattern *p)
{
    rp_ref *refs = w->refs;

    for (size_t i = 0; i < p->node_count; i++) {
        const rp_pattern_node *node = &p->nodes[i];
        size_t count = row_count(node);
        int64_t at = -(int64_t)age_of(node);
        for (size_t k = 0; k < count; k++, at += step_of(node))
            if (!rp_trajectory_writer_find(w->writer, node->source, at, &refs[k])) return false;
        w->item[i] = (rp_item_column){
            .refs = refs, .count = count, .squeeze = !node->has_start, .name = node->name};
        refs += count;
        assert(refs <= w->refs + w->ref_capacity && i < w->item_capacity); /* T3 */
    }
    return true;
}

/* Computes the TD error over the rows of the last node of the column. find_rows() has found all
 * of them. */
static double td_error(const rp_structured_writer *w, const rp_pattern *p)
{
    const used_column *c = &w->columns[p->priority.column];
    const rp_pattern_node *node = NULL;
    double sum = 0, most = 0, weight = p->priority.max_priority_weight;
    size_t count;
    int64_t step;

    for (size_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].source == p->priority.column) node = &p->nodes[i];
    assert(node != NULL);
    count = row_count(node);
    step = w->step + 1 - age_of(node);
    for (size_t k = 0; k < count; k++, step += step_of(node)) {
        double x = *size_at(w, c, step);
        sum += x;
        if (x > most || isnan(x)) most = x;
    }
    return weight * most + (1 - weight) * sum / (double)count;
}

static rp_status fire(rp_structured_writer *w, compiled *p, rp_error *err)
{
    const rp_pattern *pattern = &p->pattern;
    rp_new_item item = {pattern->table, pattern->priority.value, w->item, pattern->node_count};
    rp_status st;

    assert(p->applied < w->step && p->checked == w->step); /* T2 */
    if (pattern->priority.kind == RP_PRIORITY_TD_ERROR) item.priority = td_error(w, pattern);
    st = rp_writer_create(w->writer, &item, NULL, NULL, err);
    if (st != RP_OK) return st;
    p->applied = w->step;
    p->since = 0;
    return RP_OK;
}

/* Returns true if a used column has a value in the latest step. */
static bool has_values(const rp_structured_writer *w)
{
    for (size_t i = 0; i < w->column_count; i++)
        if (w->columns[i].used && w->columns[i].step == w->step) return true;
    return false;
}

static rp_status try_patterns(rp_structured_writer *w, bool is_end, rp_error *err)
{
    rp_status st = RP_OK;

    if (w->step == w->cleared || !has_values(w)) return RP_OK;
    for (size_t i = 0; st == RP_OK && i < w->pattern_count; i++) {
        compiled *p = &w->patterns[i];
        if (p->applied == w->step) continue;
        if (p->checked != w->step) p->since++;
        p->checked = w->step;
        if (all_hold(w, p, is_end) && find_rows(w, &p->pattern)) st = fire(w, p, err);
    }
    return st;
}

/* Copies the values of used columns to `values`. */
static rp_status filter(rp_structured_writer *w, const rp_value *values, size_t count,
                        size_t *used, rp_error *err)
{
    char label[RP_LABEL_BYTES];
    double x;

    *used = 0;
    if (values == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "append: `values` is NULL, count %zu", count);
    for (size_t i = 0; i < count; i++) {
        const rp_value *v = &values[i];
        if (v->column >= w->column_count || !w->columns[v->column].used) continue;
        if (v->tensor.data != NULL && w->columns[v->column].is_weighed &&
            !read_real(&v->tensor, &x))
            return rp_fail(err, RP_INVALID,
                           "%s: a TD error is computed from it, so it must hold float or "
                           "integer scalars",
                           rp_writer_label(v->column, v->name, label));
        if (*used == w->value_capacity)
            return rp_fail(err, RP_INVALID, "%s has a value in this step already",
                           rp_writer_label(v->column, v->name, label));
        assert(*used < w->value_capacity); /* T3 */
        w->values[(*used)++] = *v;
    }
    return RP_OK;
}

/* Fetches the signature of a pattern's table, and compares the names of the pattern's columns,
 * in `item`, with it. `*is_known`: whether a signature could be compared, or is not needed. */
static rp_status compare_item(rp_structured_writer *w, const rp_pattern *pattern, rp_wait wait,
                              bool *is_known, rp_error *why)
{
    const rp_writer_parts *parts = &w->writer->parts;
    rp_signature *signature = NULL;
    rp_status st = parts->find(parts->find_ctx, pattern->table, wait, &signature, NULL);

    *is_known = st != RP_DEADLINE && st != RP_CANCELLED;
    st = RP_OK;
    if (signature != NULL && rp_signature_column_count(signature) == pattern->node_count)
        st = rp_item_names_check(signature, w->item, why);
    rp_signature_unref(signature);
    return st;
}

/* Compares the names of a pattern's columns with the signature of its table, if that is known.
 * If they differ, another process may have created the table anew: the servers are asked once
 * more before the pattern is refused. */
static rp_status compare_names(rp_structured_writer *w, compiled *p, rp_wait wait,
                               rp_error *err)
{
    const rp_writer_parts *parts = &w->writer->parts;
    const rp_pattern *pattern = &p->pattern;
    bool has_names = false, is_known = true, is_again = false;
    rp_error why, again;
    rp_status st = RP_OK;

    for (size_t i = 0; i < pattern->node_count; i++) {
        w->item[i] = (rp_item_column){.name = pattern->nodes[i].name}; /* T3 */
        if (pattern->nodes[i].name != NULL) has_names = true;
    }
    if (has_names && parts->find != NULL) st = compare_item(w, pattern, wait, &is_known, &why);
    if (st != RP_OK && parts->forget != NULL) {
        parts->forget(parts->find_ctx, pattern->table);
        if (compare_item(w, pattern, wait, &is_again, &again) == RP_OK && is_again) st = RP_OK;
    }
    if (st != RP_OK && !is_again && parts->forget != NULL)
        return rp_fail(err, st, "table '%.64s': %.110s; %s", pattern->table, why.text,
                       rp_item_names_old(wait));
    if (st != RP_OK) return rp_fail(err, st, "table '%.64s': %s", pattern->table, why.text);
    p->is_compared = is_known;
    return RP_OK;
}

rp_status rp_structured_writer_compare_names(rp_structured_writer *writer, rp_wait wait,
                                             rp_error *err)
{
    rp_wait soon = rp_wait_ms(LOOK_UP_MS);
    bool all = true;

    if (writer->is_compared) return RP_OK;
    if (wait.until_ns < soon.until_ns) soon.until_ns = wait.until_ns;
    soon.cancel = wait.cancel;
    for (size_t i = 0; i < writer->pattern_count; i++) {
        compiled *p = &writer->patterns[i];
        rp_status st = p->is_compared ? RP_OK : compare_names(writer, p, soon, err);
        if (st != RP_OK) return st;
        if (!p->is_compared) all = false;
    }
    writer->is_compared = all;
    return RP_OK;
}

rp_status rp_structured_writer_append_now(rp_structured_writer *writer, const rp_value *values,
                                          size_t count, uint32_t flags, rp_error *err)
{
    bool is_new = !rp_trajectory_writer_is_open(writer->writer);
    int64_t index = rp_trajectory_writer_steps(writer->writer);
    size_t used;
    rp_status st = filter(writer, values, count, &used, err);

    if (st == RP_OK)
        st =
            rp_trajectory_writer_append(writer->writer, writer->values, used, flags, NULL, err);
    if (st != RP_OK) return st;
    if (is_new) writer->step++;
    writer->index = index;
    for (size_t i = 0; i < used; i++) store_numbers(writer, &writer->values[i]);
    return try_patterns(writer, false, err);
}

rp_status rp_structured_writer_append(rp_structured_writer *writer, const rp_value *values,
                                      size_t count, uint32_t flags, rp_wait wait, rp_error *err)
{
    rp_status st = rp_writer_check_alive(writer->writer, err);

    if (st == RP_OK) st = rp_structured_writer_compare_names(writer, wait, err);
    if (st == RP_OK) st = rp_writer_make_room(writer->writer, wait, err);
    if (st != RP_OK) return st;
    return rp_structured_writer_append_now(writer, values, count, flags, err);
}

bool rp_structured_writer_is_open(const rp_structured_writer *writer)
{
    return rp_trajectory_writer_is_open(writer->writer);
}

rp_status rp_structured_writer_flush(rp_structured_writer *writer, size_t leave, rp_wait wait,
                                     rp_error *err)
{
    return rp_trajectory_writer_flush(writer->writer, leave, wait, err);
}

size_t rp_structured_writer_pending(const rp_structured_writer *writer)
{
    return rp_trajectory_writer_pending(writer->writer);
}

rp_status rp_structured_writer_end_episode(rp_structured_writer *writer, bool clear,
                                           rp_wait wait, rp_error *err)
{
    rp_status st = rp_writer_check_alive(writer->writer, err);

    if (st == RP_OK) st = try_patterns(writer, true, err);
    if (st == RP_OK) st = rp_trajectory_writer_end_episode(writer->writer, clear, wait, err);
    if (st == RP_OK && clear) writer->cleared = writer->step;
    return st;
}

rp_status rp_structured_writer_end_now(rp_structured_writer *writer, bool clear, rp_error *err)
{
    rp_status st = try_patterns(writer, true, err);

    if (st != RP_OK) return st;
    rp_writer_begin_episode(writer->writer, clear);
    if (clear) writer->cleared = writer->step;
    return RP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of items, and the signature of their tables. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "adder/adder_inside.h"
#include "error/fail.h"

enum { MOST_WINDOW = 1 << 24, MOST_CELLS = 1 << 28, MOST_EXTRAS = 1024 };

static rp_status fill_column(rp_adder_column *column, const char *what, const rp_spec *spec,
                             rp_error *err)
{
    size_t elements = 0;

    if (rp_dtype_size(spec->dtype) == 0 || spec->dtype == RP_STRING)
        return rp_rl_fail(err, RP_INVALID, "adder: %s has no dtype of fixed size, got %d", what,
                          (int)spec->dtype);
    if (spec->shape.rank >= RP_MAX_RANK || rp_shape_elements(&spec->shape, &elements) != RP_OK)
        return rp_rl_fail(err, RP_INVALID, "adder: %s has no shape of a row", what);
    if (elements == 0 || elements > INT32_MAX)
        return rp_rl_fail(err, RP_INVALID,
                          "adder: %s must have 1 to %d elements in a row, got %zu", what,
                          INT32_MAX, elements);
    column->spec = (rp_spec){what, spec->dtype, spec->shape};
    column->bytes = elements * rp_dtype_size(spec->dtype);
    return RP_OK;
}

/* Broadcasts two shapes by NumPy's rule. Returns false if they do not fit. */
static bool broadcast(const rp_shape *a, const rp_shape *b, rp_shape *out)
{
    *out = (rp_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 1; i <= out->rank; i++) { /* from the innermost dimension */
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dims[out->rank - i] = x == 1 ? y : x;
    }
    return true;
}

static rp_status lay_out_numbers(const rp_adder_options *o, rp_adder_layout *out, rp_error *err)
{
    rp_spec reward = {NULL, RP_FLOAT32, o->reward_shape};
    rp_spec discount = {NULL, RP_FLOAT32, o->discount_shape};
    rp_status st = fill_column(&out->columns[RP_AT_REWARD], "reward", &reward, err);

    if (st == RP_OK)
        st = fill_column(&out->columns[RP_AT_DISCOUNT], "discount", &discount, err);
    if (st != RP_OK) return st;
    if (!broadcast(&reward.shape, &discount.shape, &out->return_shape))
        return rp_rl_fail(err, RP_INVALID,
                          "adder: reward_shape and discount_shape do not broadcast");
    out->reward_size = out->columns[RP_AT_REWARD].bytes / sizeof(float);
    out->discount_size = out->columns[RP_AT_DISCOUNT].bytes / sizeof(float);
    if (rp_shape_elements(&out->return_shape, &out->return_size) != RP_OK ||
        out->return_size > INT32_MAX)
        return rp_rl_fail(err, RP_INVALID, "adder: the shape of a return is too large");
    if (o->kind != RP_ADDER_N_STEP) return RP_OK;
    out->columns[RP_AT_REWARD].spec.shape = out->return_shape;
    out->columns[RP_AT_REWARD].bytes = out->return_size * sizeof(float);
    return RP_OK;
}

static rp_status lay_out_extras(const rp_adder_options *o, rp_adder_layout *out, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < o->extra_count; i++) {
        const char *name = o->extras[i].name;
        if (name == NULL || name[0] == 0)
            return rp_rl_fail(err, RP_INVALID, "adder: extra %zu has no name", i);
        if (i > 0 && strcmp(o->extras[i - 1].name, name) >= 0)
            return rp_rl_fail(err, RP_INVALID,
                              "adder: extras must be in byte order of their names, got "
                              "'%.64s' before '%.64s'",
                              o->extras[i - 1].name, name);
        st = fill_column(&out->columns[RP_AT_EXTRAS + i], name, &o->extras[i], err);
    }
    return st;
}

static rp_status check_bound(const char *what, int64_t value, int64_t low, int64_t high,
                             rp_error *err)
{
    if (value >= low && value <= high) return RP_OK;
    return rp_rl_fail(err, RP_INVALID, "adder: %s must be in [%lld, %lld], got %lld", what,
                      (long long)low, (long long)high, (long long)value);
}

static rp_status check_sequence(const rp_adder_options *o, rp_error *err)
{
    rp_status st = check_bound("length", o->length, 1, MOST_WINDOW, err);

    if (st == RP_OK) st = check_bound("period", o->period, 1, INT32_MAX, err);
    if (st == RP_OK)
        st = check_bound("end", (int64_t)o->end, RP_ADDER_ZERO_PAD, RP_ADDER_CONTINUE, err);
    if (st == RP_OK && o->end == RP_ADDER_TRUNCATE && o->period > o->length)
        st = rp_rl_fail(err, RP_INVALID,
                        "adder: with RP_ADDER_TRUNCATE the period must be at most length = %d, "
                        "got %d",
                        (int)o->length, (int)o->period);
    return st;
}

static rp_status check_kind(const rp_adder_options *o, rp_error *err)
{
    switch (o->kind) {
    case RP_ADDER_N_STEP:
        if (!isfinite(o->discount))
            return rp_rl_fail(err, RP_INVALID, "adder: discount must be finite");
        return check_bound("n", o->n, 1, MOST_CELLS / (int64_t)o->copies, err);
    case RP_ADDER_SEQUENCE: return check_sequence(o, err);
    case RP_ADDER_EPISODE: return check_bound("length", o->length, 2, MOST_WINDOW, err);
    }
    return rp_rl_fail(err, RP_INVALID, "adder: kind %d is unknown", (int)o->kind);
}

rp_status rp_adder_lay_out(const rp_adder_options *options, rp_adder_layout *out, rp_error *err)
{
    rp_adder_column *columns = out->columns;
    rp_status st = check_bound("copies", (int64_t)options->copies, 1, RP_ENV_MAX_COPIES, err);

    if (st == RP_OK) st = check_kind(options, err);
    if (st == RP_OK)
        st = check_bound("extra_count", (int64_t)options->extra_count, 0, MOST_EXTRAS, err);
    if (st == RP_OK)
        st =
            fill_column(&columns[RP_AT_OBSERVATION], "observation", &options->observation, err);
    if (st == RP_OK) st = fill_column(&columns[RP_AT_ACTION], "action", &options->action, err);
    if (st == RP_OK) st = lay_out_numbers(options, out, err);
    if (st == RP_OK) st = lay_out_extras(options, out, err);
    if (st != RP_OK) return st;
    if (options->kind == RP_ADDER_N_STEP) {
        columns[RP_AT_NEXT] = columns[RP_AT_OBSERVATION];
        columns[RP_AT_NEXT].spec.name = "next_observation";
    } else {
        columns[RP_AT_START] =
            (rp_adder_column){{"start_of_episode", RP_BOOL, {0}}, sizeof(bool)};
    }
    out->column_count = RP_AT_EXTRAS + options->extra_count;
    return RP_OK;
}

/* Returns the row dimension of items, or 0 if they have none. */
static int64_t row_dimension(const rp_adder_options *o)
{
    if (o->kind == RP_ADDER_N_STEP) return 0;
    if (o->kind == RP_ADDER_EPISODE) return o->pad ? o->length : -1;
    return o->end == RP_ADDER_TRUNCATE ? -1 : o->length;
}

static rp_nest_node make_leaf(const rp_adder_column *column, int64_t rows)
{
    rp_nest_node leaf = {.kind = RP_NEST_LEAF, .key = column->spec.name, .spec = column->spec};
    rp_shape *shape = &leaf.spec.shape;

    if (rows == 0) return leaf;
    assert(shape->rank < RP_MAX_RANK);
    memmove(shape->dims + 1, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
    shape->dims[0] = rows;
    shape->rank++;
    return leaf;
}

rp_status rp_adder_signature(const rp_adder_options *options, rp_signature **out, rp_error *err)
{
    const rp_allocator *alloc =
        options->alloc != NULL ? options->alloc : rp_allocator_default();
    size_t count = RP_AT_EXTRAS + options->extra_count + 2;
    size_t bytes = count * (sizeof(rp_nest_node) + sizeof(rp_adder_column));
    rp_adder_layout layout = {0};
    rp_nest_node *nodes;
    rp_status st;

    if (options->extra_count > MOST_EXTRAS)
        return check_bound("extra_count", (int64_t)options->extra_count, 0, MOST_EXTRAS, err);
    nodes = alloc->resize(alloc->ctx, NULL, 0, bytes);
    if (nodes == NULL) return rp_rl_fail_memory(err, bytes);
    memset(nodes, 0, bytes);
    layout.columns = (rp_adder_column *)(void *)(nodes + count);
    st = rp_adder_lay_out(options, &layout, err);
    if (st == RP_OK) {
        int64_t rows = row_dimension(options);
        bool is_n_step = options->kind == RP_ADDER_N_STEP;
        size_t at = 0;
        nodes[at++] = (rp_nest_node){.kind = RP_NEST_NAMEDTUPLE,
                                     .type_name = is_n_step ? "Transition" : "Trajectory",
                                     .child_count = RP_AT_EXTRAS};
        if (options->extra_count > 0) nodes[0].child_count++;
        for (size_t i = 0; i < layout.column_count; i++) {
            if (i == RP_AT_EXTRAS)
                nodes[at++] = (rp_nest_node){.kind = RP_NEST_DICT,
                                             .key = "extras",
                                             .child_count = (uint32_t)options->extra_count};
            nodes[at++] = make_leaf(&layout.columns[i], rows);
        }
        assert(at <= count);
        st = rp_signature_new(alloc, nodes, at, out, err);
    }
    (void)alloc->resize(alloc->ctx, nodes, bytes, 0);
    return st;
}

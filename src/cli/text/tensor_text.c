/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/tensor_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text/signature_spec.h"
#include "cli/text/units.h"

enum { EDGE = 3 }; /* elements at either end of a dimension that is shortened */

/* Decodes a float with so many bits of exponent and mantissa below its sign. `finite` (as in
 * E4M3FN): the highest exponent is an ordinary one, except that a mantissa of ones is NaN. */
static double small_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite)
{
    uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
    int highest = (1 << exponent_bits) - 1, bias = highest / 2;
    double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;

    assert(exponent >= 0 && exponent <= highest);
    if (exponent == highest && finite && mantissa == (1U << mantissa_bits) - 1) return NAN;
    if (exponent == highest && !finite) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((double)mantissa + (double)(1U << mantissa_bits),
                        exponent - bias - mantissa_bits);
}

static uint64_t raw(const void *element, size_t size)
{
    uint64_t bits = 0;

    memcpy(&bits, element, size < 8 ? size : 8); /* little-endian, as all data here */
    return bits;
}

static bool is_float(rp_dtype dtype)
{
    return dtype == RP_FLOAT32 || dtype == RP_FLOAT64 || dtype == RP_FLOAT16 ||
           dtype == RP_BFLOAT16 || dtype == RP_FLOAT8_E5M2 || dtype == RP_FLOAT8_E4M3FN;
}

static bool is_complex(rp_dtype dtype)
{
    return dtype == RP_COMPLEX64 || dtype == RP_COMPLEX128;
}

static bool is_unsigned(rp_dtype dtype)
{
    return dtype == RP_UINT8 || dtype == RP_UINT16 || dtype == RP_UINT32 ||
           dtype == RP_UINT64 || dtype == RP_QUINT8 || dtype == RP_QUINT16 ||
           dtype == RP_UINT4 || dtype == RP_BOOL;
}

static int64_t as_signed(rp_dtype dtype, const void *element)
{
    size_t size = rp_dtype_size(dtype);
    int shift = (int)(64 - 8 * size);

    assert(size >= 1 && size <= 8);
    return (int64_t)(raw(element, size) << shift) >> shift;
}

double rp_element_number(rp_dtype dtype, const void *element)
{
    uint64_t bits = raw(element, rp_dtype_size(dtype));
    double wide;
    float narrow;

    switch (dtype) {
    case RP_FLOAT64: memcpy(&wide, element, sizeof wide); return wide;
    case RP_FLOAT32: memcpy(&narrow, element, sizeof narrow); return narrow;
    case RP_FLOAT16: return small_float((uint32_t)bits, 5, 10, false);
    case RP_BFLOAT16: return small_float((uint32_t)bits, 8, 7, false);
    case RP_FLOAT8_E5M2: return small_float((uint32_t)bits, 5, 2, false);
    case RP_FLOAT8_E4M3FN: return small_float((uint32_t)bits, 4, 3, true);
    case RP_STRING:
    case RP_COMPLEX64:
    case RP_COMPLEX128:
    case RP_INVALID_DTYPE: return 0;
    default: return is_unsigned(dtype) ? (double)bits : (double)as_signed(dtype, element);
    }
}

/* Writes the shortest text that is read back as the same float of its type. Returns `text`. */
static char *float_text(rp_dtype dtype, const void *element, char *text, size_t size)
{
    double value = rp_element_number(dtype, element);

    if (dtype == RP_FLOAT64) return rp_decimal_text(value, text, size);
    for (int precision = dtype == RP_FLOAT32 ? 6 : 3; precision <= 9; precision++) {
        (void)snprintf(text, size, "%.*g", precision, value);
        if ((float)strtod(text, NULL) == (float)value) break;
    }
    return text;
}

/* Returns the dtype of the two parts of a complex number. */
static rp_dtype half_of(rp_dtype dtype)
{
    return dtype == RP_COMPLEX64 ? RP_FLOAT32 : RP_FLOAT64;
}

static void print_element(rp_text_buffer *out, rp_dtype dtype, const void *element)
{
    char text[32];

    if (dtype == RP_STRING) {
        rp_string s;

        memcpy(&s, element, sizeof s);
        rp_json_put_quote(out, s.data, s.size);
    } else if (is_float(dtype)) {
        rp_text_buffer_put(out, float_text(dtype, element, text, sizeof text));
    } else if (is_complex(dtype)) {
        size_t half = rp_dtype_size(half_of(dtype));

        rp_text_buffer_put(out, float_text(half_of(dtype), element, text, sizeof text));
        (void)float_text(half_of(dtype), (const char *)element + half, text, sizeof text);
        rp_text_buffer_format(out, "%s%sj", text[0] == '-' ? "" : "+", text);
    } else if (dtype == RP_BOOL) {
        rp_text_buffer_put(out, raw(element, 1) != 0 ? "true" : "false");
    } else if (is_unsigned(dtype)) {
        rp_text_buffer_format(out, "%" PRIu64, raw(element, rp_dtype_size(dtype)));
    } else {
        rp_text_buffer_format(out, "%" PRId64, as_signed(dtype, element));
    }
}

/* Returns the distance between two entries of dimension `dim`, in elements. */
static size_t stride_of(const rp_tensor *t, int32_t dim)
{
    size_t elements = 1;

    assert(dim >= 0 && dim < t->shape.rank);
    for (int32_t i = dim + 1; i < t->shape.rank; i++) elements *= (size_t)t->shape.dims[i];
    return elements;
}

static void print_level(rp_text_buffer *out, const rp_tensor *t, int32_t dim, const char *data,
                        bool cut)
{
    size_t count, step;

    if (dim == t->shape.rank) {
        print_element(out, t->dtype, data);
        return;
    }
    count = (size_t)t->shape.dims[dim];
    step = stride_of(t, dim) * rp_dtype_size(t->dtype);
    rp_text_buffer_put(out, "[");
    for (size_t i = 0; i < count && !out->failed; i++) {
        if (i > 0) rp_text_buffer_put(out, " ");
        if (cut && count > 2 * EDGE && i == EDGE) {
            rp_text_buffer_put(out, "... ");
            i = count - EDGE;
        }
        print_level(out, t, dim + 1, data + i * step, cut);
    }
    rp_text_buffer_put(out, "]");
}

void rp_tensor_print(rp_text_buffer *out, const rp_tensor *t, size_t most)
{
    size_t elements;

    if (rp_shape_elements(&t->shape, &elements) != RP_OK) return;
    print_level(out, t, 0, t->data, most > 0 && elements > most);
}

static void json_float(rp_text_buffer *out, rp_dtype dtype, const void *element)
{
    double value = rp_element_number(dtype, element);
    char text[32];

    if (isfinite(value))
        rp_json_put_raw(out, float_text(dtype, element, text, sizeof text));
    else
        rp_json_put_number(out, value);
}

static void json_element(rp_text_buffer *out, rp_dtype dtype, const char *element)
{
    rp_string s;

    if (dtype == RP_STRING) {
        memcpy(&s, element, sizeof s);
        rp_json_put_string(out, s.data, s.size);
    } else if (is_float(dtype)) {
        json_float(out, dtype, element);
    } else if (is_complex(dtype)) {
        rp_json_open(out, '[');
        json_float(out, half_of(dtype), element);
        json_float(out, half_of(dtype), element + rp_dtype_size(half_of(dtype)));
        rp_json_close(out, ']');
    } else if (dtype == RP_BOOL) {
        rp_json_put_boolean(out, raw(element, 1) != 0);
    } else if (is_unsigned(dtype)) {
        rp_json_put_unsigned(out, raw(element, rp_dtype_size(dtype)));
    } else {
        rp_json_put_integer(out, as_signed(dtype, element));
    }
}

static void json_level(rp_text_buffer *out, const rp_tensor *t, int32_t dim, const char *data)
{
    size_t count, step;

    if (dim == t->shape.rank) {
        json_element(out, t->dtype, data);
        return;
    }
    count = (size_t)t->shape.dims[dim];
    step = stride_of(t, dim) * rp_dtype_size(t->dtype);
    rp_json_open(out, '[');
    for (size_t i = 0; i < count && !out->failed; i++)
        json_level(out, t, dim + 1, data + i * step);
    rp_json_close(out, ']');
}

void rp_tensor_json(rp_text_buffer *out, const rp_tensor *t)
{
    size_t elements;

    if (rp_shape_elements(&t->shape, &elements) != RP_OK) return;
    if (elements > 0) {
        json_level(out, t, 0, t->data);
    } else { /* the shape [1000000000, 0] would be a billion brackets: it is printed apart */
        rp_json_open(out, '[');
        rp_json_close(out, ']');
    }
}

static bool is_word_number(const rp_json *v)
{
    return v->kind == RP_JSON_STRING &&
           (strcmp(v->u.string.text, "NaN") == 0 || strcmp(v->u.string.text, "Infinity") == 0 ||
            strcmp(v->u.string.text, "-Infinity") == 0);
}

/* Returns the dtype that both elements fit, or RP_INVALID_DTYPE. */
static rp_dtype common(rp_dtype a, rp_dtype b)
{
    bool numbers = a != RP_BOOL && b != RP_BOOL && a != RP_STRING && b != RP_STRING;

    if (a == RP_INVALID_DTYPE || a == b) return b;
    if (b == RP_INVALID_DTYPE) return a;
    return numbers ? RP_FLOAT64 : RP_INVALID_DTYPE;
}

rp_dtype rp_json_dtype(const rp_json *v)
{
    rp_dtype found = RP_INVALID_DTYPE;

    switch (v->kind) {
    case RP_JSON_FALSE:
    case RP_JSON_TRUE: return RP_BOOL;
    case RP_JSON_INTEGER: return RP_INT64;
    case RP_JSON_UNSIGNED: return RP_UINT64;
    case RP_JSON_NUMBER: return RP_FLOAT64;
    case RP_JSON_STRING: return is_word_number(v) ? RP_FLOAT64 : RP_STRING;
    case RP_JSON_ARRAY: break;
    case RP_JSON_NULL:
    case RP_JSON_OBJECT: return RP_INVALID_DTYPE;
    }
    for (const rp_json *n = v->child; n != NULL; n = n->next) {
        rp_dtype next = rp_json_dtype(n), both;

        if (next == RP_INVALID_DTYPE && n->kind != RP_JSON_ARRAY) return next;
        both = common(found, next);
        if (both == RP_INVALID_DTYPE && found != RP_INVALID_DTYPE) return both;
        found = both;
    }
    return found;
}

enum { VALUE_BYTES = 96 }; /* of a value in an error */

typedef struct filler {
    const char *name;
    rp_dtype dtype;
    rp_shape shape;
    char *at;
    rp_problem *problem;
} filler;

/* Writes the number or the string after a space; "" for other values. */
static const char *value_text(const rp_json *v, char value[VALUE_BYTES])
{
    char number[32];

    value[0] = '\0';
    if (v->kind == RP_JSON_NUMBER)
        (void)snprintf(value, VALUE_BYTES, " %s",
                       rp_decimal_text(v->u.number, number, sizeof number));
    else if (v->kind == RP_JSON_INTEGER)
        (void)snprintf(value, VALUE_BYTES, " %" PRId64, v->u.integer);
    else if (v->kind == RP_JSON_UNSIGNED)
        (void)snprintf(value, VALUE_BYTES, " %" PRIu64, v->u.number_unsigned);
    else if (v->kind == RP_JSON_STRING)
        (void)snprintf(value, VALUE_BYTES, " '%.40s'", v->u.string.text);
    return value;
}

static rp_status bad_element(const filler *f, const rp_json *v)
{
    char value[VALUE_BYTES];

    return rp_problem_set(f->problem, NULL, "%.100s: expected %s, got %s%s at byte %zu",
                          f->name, rp_dtype_text(f->dtype), rp_json_kind_text(v->kind),
                          value_text(v, value), v->offset + 1);
}

static rp_status out_of_range(const filler *f, const rp_json *v)
{
    char value[VALUE_BYTES];

    return rp_problem_set(f->problem, NULL, "%.100s: the number%s at byte %zu does not fit %s",
                          f->name, value_text(v, value), v->offset + 1,
                          rp_dtype_text(f->dtype));
}

static bool as_number(const rp_json *v, double *out)
{
    switch (v->kind) {
    case RP_JSON_INTEGER: *out = (double)v->u.integer; return true;
    case RP_JSON_UNSIGNED: *out = (double)v->u.number_unsigned; return true;
    case RP_JSON_NUMBER: *out = v->u.number; return true;
    default: break;
    }
    if (!is_word_number(v)) return false;
    *out = v->u.string.text[0] == 'N' ? NAN : v->u.string.text[0] == '-' ? -INFINITY : INFINITY;
    return true;
}

/* Encodes the nearest float16, bfloat16 or float8, by bisection: the bits of positive floats
 * are in the order of their values. */
static uint32_t to_small(rp_dtype dtype, double value)
{
    size_t size = rp_dtype_size(dtype);
    uint32_t sign = signbit(value) ? 1U << (8 * size - 1) : 0, low = 0, high;
    double size_of_value = fabs(value);

    assert(size >= 1 && size <= 2);
    high = dtype == RP_FLOAT16       ? 0x7c00
           : dtype == RP_BFLOAT16    ? 0x7f80
           : dtype == RP_FLOAT8_E5M2 ? 0x7c
                                     : 0x7e;
    if (isnan(value)) return sign | (dtype == RP_FLOAT8_E4M3FN ? 0x7f : high + 1);
    while (low < high) { /* find the smallest float that is not below the value */
        uint32_t middle = (low + high) / 2;

        if (rp_element_number(dtype, &middle) < size_of_value)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) {
        uint32_t below = low - 1;
        double down = size_of_value - rp_element_number(dtype, &below);
        double up = rp_element_number(dtype, &low) - size_of_value;

        if (down < up || (down == up && (below & 1) == 0)) low = below;
    }
    return sign | low;
}

static rp_status put_float(filler *f, const rp_json *v)
{
    uint32_t bits;
    double value;
    float narrow;

    if (!as_number(v, &value)) return bad_element(f, v);
    narrow = (float)value;
    if (f->dtype == RP_FLOAT64) {
        memcpy(f->at, &value, sizeof value);
    } else if (f->dtype == RP_FLOAT32) {
        if (isfinite(value) && !isfinite(narrow)) return out_of_range(f, v);
        memcpy(f->at, &narrow, sizeof narrow);
    } else {
        bits = to_small(f->dtype, value);
        memcpy(f->at, &bits, rp_dtype_size(f->dtype));
    }
    return RP_OK;
}

static rp_status put_integer(filler *f, const rp_json *v)
{
    size_t size = rp_dtype_size(f->dtype);
    uint64_t bits;

    if (v->kind == RP_JSON_UNSIGNED) {
        if (f->dtype != RP_UINT64) return out_of_range(f, v);
        bits = v->u.number_unsigned;
    } else if (v->kind == RP_JSON_INTEGER) {
        int64_t value = v->u.integer;
        int width = (int)(8 * size) - (is_unsigned(f->dtype) ? 0 : 1);

        if (is_unsigned(f->dtype) && value < 0) return out_of_range(f, v);
        if (width < 63 && (value >= (int64_t)1 << width || value < -((int64_t)1 << width)))
            return out_of_range(f, v);
        bits = (uint64_t)value;
    } else {
        return bad_element(f, v);
    }
    memcpy(f->at, &bits, size);
    return RP_OK;
}

static rp_status put_element(filler *f, const rp_json *v)
{
    if (f->dtype == RP_STRING) {
        rp_string s = {v->u.string.text, v->u.string.size};

        if (v->kind != RP_JSON_STRING) return bad_element(f, v);
        memcpy(f->at, &s, sizeof s);
        return RP_OK;
    }
    if (f->dtype == RP_BOOL) {
        if (v->kind != RP_JSON_TRUE && v->kind != RP_JSON_FALSE) return bad_element(f, v);
        *f->at = v->kind == RP_JSON_TRUE;
        return RP_OK;
    }
    return is_float(f->dtype) ? put_float(f, v) : put_integer(f, v);
}

static rp_status fill(filler *f, const rp_json *v, int32_t dim)
{
    rp_status st = RP_OK;

    if (dim == f->shape.rank) {
        if (v->kind == RP_JSON_ARRAY)
            return rp_problem_set(f->problem, NULL,
                                  "%.100s: arrays of different depth at byte "
                                  "%zu",
                                  f->name, v->offset + 1);
        st = put_element(f, v);
        f->at += rp_dtype_size(f->dtype);
        return st;
    }
    if (v->kind != RP_JSON_ARRAY || v->u.count != (size_t)f->shape.dims[dim])
        return rp_problem_set(f->problem, NULL,
                              "%.100s: expected an array of %" PRId64 " at byte %zu, like the "
                              "first one",
                              f->name, f->shape.dims[dim], v->offset + 1);
    for (const rp_json *n = v->child; n != NULL && st == RP_OK; n = n->next)
        st = fill(f, n, dim + 1);
    return st;
}

/* Counts the elements of nested arrays. */
static size_t leaves(const rp_json *v)
{
    size_t sum = 0;

    if (v->kind != RP_JSON_ARRAY) return 1;
    for (const rp_json *n = v->child; n != NULL; n = n->next) sum += leaves(n);
    return sum;
}

rp_status rp_tensor_from_json(rp_arena *arena, const char *name, const rp_json *v,
                              rp_dtype dtype, rp_tensor *out, rp_problem *problem)
{
    filler f = {.name = name, .dtype = dtype, .problem = problem};
    size_t elements;
    rp_status st;
    char *data;

    if (is_complex(dtype))
        return rp_problem_set(problem, NULL,
                              "%.100s: complex numbers cannot be given as JSON; "
                              "insert them from .npy files",
                              name);
    for (const rp_json *n = v; n->kind == RP_JSON_ARRAY; n = n->child) {
        if (f.shape.rank == RP_MAX_RANK)
            return rp_problem_set(problem, NULL, "%.100s: more than %d dimensions", name,
                                  RP_MAX_RANK);
        f.shape.dims[f.shape.rank++] = (int64_t)n->u.count;
        if (n->child == NULL) break;
    }
    if (rp_shape_elements(&f.shape, &elements) != RP_OK || elements != leaves(v))
        return rp_problem_set(problem, NULL, "%.100s: arrays of different lengths, or depths",
                              name);
    data = rp_arena_take(arena, elements * rp_dtype_size(dtype) + 1);
    if (data == NULL) return rp_problem_memory(problem);
    f.at = data;
    st = fill(&f, v, 0);
    assert(st != RP_OK || f.at == data + elements * rp_dtype_size(dtype));
    if (st == RP_OK) *out = (rp_tensor){dtype, f.shape, data};
    return st;
}

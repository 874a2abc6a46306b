/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   Y1  a reader has at <= end;
 *   Y2  the rank of a parsed shape is at most RP_MAX_RANK. */
#include "cli/text/npy.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/tensor_text.h"

enum { PREFIX = 10, ALIGNMENT = 64 };

static const char magic[] = "\x93NUMPY";

static const struct {
    const char *descr;
    rp_dtype dtype;
} types[] = {
    {"<f4", RP_FLOAT32},
    {"<f8", RP_FLOAT64},
    {"<i4", RP_INT32},
    {"|u1", RP_UINT8},
    {"<i2", RP_INT16},
    {"|i1", RP_INT8},
    {"<i8", RP_INT64},
    {"|b1", RP_BOOL},
    {"<u2", RP_UINT16},
    {"<f2", RP_FLOAT16},
    {"<u4", RP_UINT32},
    {"<u8", RP_UINT64},
    {"<c8", RP_COMPLEX64},
    {"<c16", RP_COMPLEX128},
    /* Written only: readers see plain numbers, or bytes. */
    {"|i1", RP_QINT8},
    {"|u1", RP_QUINT8},
    {"<i4", RP_QINT32},
    {"<i2", RP_QINT16},
    {"<u2", RP_QUINT16},
    {"|i1", RP_INT4},
    {"|u1", RP_UINT4},
    {"|V2", RP_BFLOAT16},
    {"|V1", RP_FLOAT8_E5M2},
    {"|V1", RP_FLOAT8_E4M3FN},
};

/* Reads the header, a Python dictionary of the form that NumPy writes. */
typedef struct reader {
    const char *at, *end;
    rp_problem *problem;
} reader;

typedef struct header {
    char descr[16];
    bool has_descr, fortran, has_fortran, has_shape;
    rp_shape shape;
} header;

static rp_status wrong(reader *r, const char *what)
{
    size_t left = (size_t)(r->end - r->at);

    assert(r->at <= r->end); /* Y1 */
    return rp_problem_set(r->problem, NULL, "not a .npy header: expected %s at '%.*s'", what,
                          (int)(left < 40 ? left : 40), r->at);
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) r->at++;
}

/* Skips spaces, then takes `byte` if it comes next. */
static bool take(reader *r, char byte)
{
    skip_space(r);
    if (r->at == r->end || *r->at != byte) return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);

    skip_space(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* Takes a string in single or double quotes, without escapes, cut to fit. */
static rp_status take_string(reader *r, char *out, size_t size)
{
    const char *close;
    char quote;

    skip_space(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return wrong(r, "a string");
    quote = *r->at++;
    close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (close == NULL) return wrong(r, "the end of a string");
    (void)snprintf(out, size, "%.*s", (int)(close - r->at < 255 ? close - r->at : 255), r->at);
    r->at = close + 1;
    assert(r->at <= r->end); /* Y1 */
    return RP_OK;
}

static rp_status take_dimension(reader *r, int64_t *out)
{
    int64_t sum = 0;
    const char *begin;

    skip_space(r);
    for (begin = r->at; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum) ||
            __builtin_add_overflow(sum, (int64_t)(*r->at - '0'), &sum))
            return wrong(r, "a smaller dimension");
    if (r->at == begin) return wrong(r, "a dimension");
    if (r->at < r->end && *r->at == 'L') r->at++; /* Python 2 */
    *out = sum;
    return RP_OK;
}

static rp_status take_shape(reader *r, rp_shape *shape)
{
    rp_status st;

    *shape = (rp_shape){0};
    if (!take(r, '(')) return wrong(r, "a shape");
    while (!take(r, ')')) {
        if (shape->rank == RP_MAX_RANK)
            return rp_problem_set(r->problem, NULL, "an array of more than %d dimensions",
                                  RP_MAX_RANK);
        st = take_dimension(r, &shape->dims[shape->rank]);
        if (st != RP_OK) return st;
        shape->rank++;
        assert(shape->rank <= RP_MAX_RANK); /* Y2 */
        if (!take(r, ',') && (r->at == r->end || *r->at != ')')) return wrong(r, "',' or ')'");
    }
    return RP_OK;
}

static rp_status take_entry(reader *r, header *h)
{
    char key[32];
    rp_status st = take_string(r, key, sizeof key);

    if (st != RP_OK) return st;
    if (!take(r, ':')) return wrong(r, "':'");
    if (strcmp(key, "descr") == 0) {
        skip_space(r);
        if (r->at < r->end && *r->at == '[')
            return rp_problem_set(r->problem, NULL,
                                  "an array of records; save each field as a separate array");
        h->has_descr = true;
        return take_string(r, h->descr, sizeof h->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        h->has_fortran = true;
        h->fortran = take_word(r, "True");
        return h->fortran || take_word(r, "False") ? RP_OK : wrong(r, "True or False");
    }
    if (strcmp(key, "shape") == 0) {
        h->has_shape = true;
        return take_shape(r, &h->shape);
    }
    return wrong(r, "descr, fortran_order or shape");
}

static rp_status take_header(reader *r, header *h)
{
    rp_status st;

    *h = (header){0};
    if (!take(r, '{')) return wrong(r, "'{'");
    while (!take(r, '}')) {
        st = take_entry(r, h);
        if (st != RP_OK) return st;
        if (!take(r, ',') && (r->at == r->end || *r->at != '}')) return wrong(r, "',' or '}'");
    }
    skip_space(r);
    if (r->at != r->end) return wrong(r, "nothing more");
    if (!h->has_descr || !h->has_fortran || !h->has_shape)
        return wrong(r, "descr, fortran_order and shape");
    return RP_OK;
}

static rp_status find_type(const char *descr, rp_dtype *out, rp_problem *problem)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0] && types[i].dtype != RP_QINT8; i++) {
        if (strcmp(descr, types[i].descr) != 0 &&
            (descr[0] != '<' || types[i].descr[0] != '|' ||
             strcmp(descr + 1, types[i].descr + 1) != 0))
            continue;
        *out = types[i].dtype;
        return RP_OK;
    }
    if (descr[0] == '>')
        return rp_problem_set(problem, NULL,
                              "big-endian elements (%s); save them with .astype('<%s')", descr,
                              descr + 1);
    if (descr[0] == '|' && descr[1] == 'O')
        return rp_problem_set(problem, NULL, "Python objects; only plain arrays are supported");
    if (strchr("SU", descr[1]) != NULL)
        return rp_problem_set(problem, NULL, "strings (%s); insert them as JSON lines", descr);
    return rp_problem_set(problem, NULL, "elements of an unsupported type: '%s'", descr);
}

rp_status rp_npy_parse(const uint8_t *bytes, size_t size, rp_tensor *out, rp_problem *problem)
{
    reader r = {.problem = problem};
    size_t length, begin = PREFIX, elements, data;
    rp_dtype dtype = RP_INVALID_DTYPE;
    rp_status st;
    header h;

    if (size < PREFIX || memcmp(bytes, magic, 6) != 0)
        return rp_problem_set(problem, NULL, "not a .npy file: wrong first bytes");
    if (bytes[6] < 1 || bytes[6] > 3)
        return rp_problem_set(problem, NULL, "a .npy file of version %d; 1 to 3 are known",
                              bytes[6]);
    length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        begin += 2;
        if (size < begin) return rp_problem_set(problem, NULL, "the file ends in its header");
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > RP_NPY_MAX_HEADER || length > size - begin)
        return rp_problem_set(problem, NULL, "a header of %zu bytes in a file of %zu", length,
                              size);
    r.at = (const char *)bytes + begin;
    r.end = r.at + length;
    st = take_header(&r, &h);
    if (st == RP_OK) st = find_type(h.descr, &dtype, problem);
    if (st != RP_OK) return st;
    if (rp_shape_elements(&h.shape, &elements) != RP_OK ||
        __builtin_mul_overflow(elements, rp_dtype_size(dtype), &data))
        return rp_problem_set(problem, NULL, "an array that does not fit into memory");
    if (h.fortran && h.shape.rank > 1 && elements > 1)
        return rp_problem_set(problem, NULL,
                              "column-major order; save it with numpy.ascontiguousarray()");
    assert(r.at == r.end && begin + length <= size); /* Y1 */
    if (data != size - begin - length)
        return rp_problem_set(problem, NULL, "%zu bytes of elements, but the shape needs %zu",
                              size - begin - length, data);
    *out = (rp_tensor){dtype, h.shape, bytes + begin + length};
    return RP_OK;
}

size_t rp_npy_header(rp_dtype dtype, const rp_shape *shape, char out[RP_NPY_HEADER_BYTES])
{
    char text[RP_NPY_HEADER_BYTES] = "";
    size_t elements, used, i = 0;

    while (i < sizeof types / sizeof types[0] && types[i].dtype != dtype) i++;
    if (i == sizeof types / sizeof types[0] || rp_shape_elements(shape, &elements) != RP_OK)
        return 0;
    (void)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   types[i].descr);
    for (int32_t d = 0; d < shape->rank; d++) {
        used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%" PRId64 "%s", d > 0 ? " " : "",
                       shape->dims[d], d + 1 < shape->rank || shape->rank == 1 ? "," : "");
    }
    used = strlen(text);
    (void)snprintf(text + used, sizeof text - used, "), }");
    used = PREFIX + strlen(text) + 1;
    used = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    assert(used <= RP_NPY_HEADER_BYTES && used % ALIGNMENT == 0);
    memset(out, ' ', used);
    memcpy(out, magic, 6);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((used - PREFIX) & 0xff);
    out[9] = (char)((used - PREFIX) >> 8);
    memcpy(out + PREFIX, text, strlen(text));
    out[used - 1] = '\n';
    return used;
}

rp_status rp_npy_check_priorities(const rp_tensor *array, const char *path, rp_problem *problem)
{
    size_t size = rp_dtype_size(array->dtype);

    if (array->shape.rank != 1)
        return rp_problem_set(problem, NULL, "%.500s: expected one number for each item", path);
    for (size_t i = 0; i < (size_t)array->shape.dims[0]; i++) {
        double priority = rp_element_number(array->dtype, (const char *)array->data + i * size);

        if (isfinite(priority)) continue;
        return rp_problem_set(problem, NULL,
                              "%.500s: row %zu (the first is 0) is %s; a priority is a finite "
                              "number",
                              path, i, isnan(priority) ? "NaN" : "infinite");
    }
    return RP_OK;
}

void rp_npy_advise(char *text, size_t size)
{
    static const char words[] = " but expected ";
    const char *at = strstr(text, ": got dtype ");
    char wanted[24];
    size_t used = strlen(text);

    if (at != NULL) at = strstr(at, words);
    if (at == NULL) return;
    (void)snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(at + sizeof words - 1, " ,;"),
                   at + sizeof words - 1);
    (void)snprintf(text + used, size - used, "; NumPy converts it: array.astype('%s')", wanted);
}

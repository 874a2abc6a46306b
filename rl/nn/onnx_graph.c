/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/onnx_graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 }; /* kinds of fields */
enum { MAX_VARINT = 10, FIRST_ROOM = 4096 };

void rp_onnx_graph_check(const rp_onnx_graph *g)
{
    assert(g->size <= g->room || g->failed); /* G1 */
    assert(g->depth <= RP_ONNX_MAX_DEPTH);
    for (size_t i = 0; i < g->depth; i++) {
        assert(g->open[i] <= g->size || g->failed);
        assert(i == 0 || g->open[i - 1] <= g->open[i]); /* G2 */
    }
    (void)g;
}

/* Makes place for `size` bytes at the end. Returns it, or NULL. */
static uint8_t *extend(rp_onnx_graph *g, size_t size)
{
    size_t room = g->room;
    uint8_t *bytes;

    if (g->failed) return NULL;
    while (room < g->size + size) room = room == 0 ? FIRST_ROOM : 2 * room;
    if (room > g->room) {
        bytes = g->alloc.resize(g->alloc.ctx, g->bytes, g->room, room);
        if (bytes == NULL) {
            g->failed = true;
            return NULL;
        }
        g->bytes = bytes;
        g->room = room;
    }
    g->size += size;
    rp_onnx_graph_check(g);
    return g->bytes + g->size - size;
}

static void put_bytes(rp_onnx_graph *g, const void *bytes, size_t size)
{
    uint8_t *place = extend(g, size);

    if (place != NULL && size > 0) memcpy(place, bytes, size);
}

static size_t varint(uint64_t value, uint8_t out[MAX_VARINT])
{
    size_t size = 0;

    for (; value >= 128; value >>= 7) out[size++] = (uint8_t)(value | 128);
    out[size++] = (uint8_t)value;
    assert(size <= MAX_VARINT);
    return size;
}

static void put_varint(rp_onnx_graph *g, uint64_t value)
{
    uint8_t bytes[MAX_VARINT];

    put_bytes(g, bytes, varint(value, bytes));
}

static void put_key(rp_onnx_graph *g, unsigned field, unsigned kind)
{
    put_varint(g, (uint64_t)field << 3 | kind);
}

void rp_onnx_open(rp_onnx_graph *g, unsigned field)
{
    put_key(g, field, BYTES);
    assert(g->depth < RP_ONNX_MAX_DEPTH);
    g->open[g->depth++] = g->size;
}

void rp_onnx_close(rp_onnx_graph *g)
{
    uint8_t length[MAX_VARINT], *end;
    size_t first, size, digits;

    assert(g->depth > 0); /* G2 */
    first = g->open[--g->depth];
    size = g->size - first;
    digits = varint(size, length);
    end = extend(g, digits);
    if (end == NULL) return;
    memmove(g->bytes + first + digits, g->bytes + first, size);
    memcpy(g->bytes + first, length, digits);
}

void rp_onnx_put_int(rp_onnx_graph *g, unsigned field, int64_t value)
{
    put_key(g, field, VARINT);
    put_varint(g, (uint64_t)value);
}

void rp_onnx_put_text(rp_onnx_graph *g, unsigned field, const char *text)
{
    put_key(g, field, BYTES);
    put_varint(g, strlen(text));
    put_bytes(g, text, strlen(text));
}

static void name_value(rp_onnx_graph *g, rp_onnx_value *value)
{
    (void)snprintf(value->name, sizeof value->name, "v%zu", g->names++);
}

static void put_attribute(rp_onnx_graph *g, const rp_onnx_attribute *attribute)
{
    rp_onnx_open(g, 5);
    rp_onnx_put_text(g, 1, attribute->name);
    if (attribute->kind == RP_ONNX_A_FLOAT) {
        put_key(g, 2, FIXED32);
        put_bytes(g, &attribute->number, sizeof attribute->number);
    } else if (attribute->kind == RP_ONNX_AN_INT) {
        rp_onnx_put_int(g, 3, attribute->ints[0]);
    } else {
        assert(attribute->kind == RP_ONNX_INTS && attribute->count >= 1);
        for (size_t i = 0; i < attribute->count; i++) rp_onnx_put_int(g, 8, attribute->ints[i]);
    }
    rp_onnx_put_int(g, 20, attribute->kind);
    rp_onnx_close(g);
}

void rp_onnx_add(rp_onnx_graph *g, rp_onnx_node node)
{
    assert(node.in[0] != NULL && node.out[0] != NULL);
    rp_onnx_open(g, 1);
    for (size_t i = 0; i < RP_ONNX_MAX_INPUTS && node.in[i] != NULL; i++) {
        assert(node.in[i]->name[0] != '\0'); /* G3 */
        rp_onnx_put_text(g, 1, node.in[i]->name);
    }
    for (size_t i = 0; i < RP_ONNX_MAX_OUTPUTS && node.out[i] != NULL; i++) {
        if (node.out[i]->name[0] == '\0') name_value(g, node.out[i]);
        rp_onnx_put_text(g, 2, node.out[i]->name);
    }
    rp_onnx_put_text(g, 4, node.op);
    for (size_t i = 0; i < RP_ONNX_MAX_ATTRIBUTES && node.attributes[i].name != NULL; i++)
        put_attribute(g, &node.attributes[i]);
    rp_onnx_close(g);
}

rp_onnx_value rp_onnx_apply(rp_onnx_graph *g, const char *op, const rp_onnx_value *a,
                            const rp_onnx_value *b)
{
    rp_onnx_value out = {""};

    rp_onnx_add(g, (rp_onnx_node){.op = op, .in = {a, b}, .out = {&out}});
    return out;
}

uint8_t *rp_onnx_constant(rp_onnx_graph *g, const char *name, int type, const size_t *dims,
                          size_t rank, rp_onnx_value *out)
{
    size_t size = type == RP_ONNX_INT64 ? sizeof(int64_t) : sizeof(float), first;

    assert(type == RP_ONNX_INT64 || type == RP_ONNX_FLOAT);
    if (name == NULL) {
        name_value(g, out);
    } else {
        (void)snprintf(out->name, sizeof out->name, "%s", name);
    }
    rp_onnx_open(g, 5);
    for (size_t i = 0; i < rank; i++) {
        rp_onnx_put_int(g, 1, (int64_t)dims[i]);
        size *= dims[i];
    }
    rp_onnx_put_int(g, 2, type);
    rp_onnx_put_text(g, 8, out->name);
    put_key(g, 9, BYTES);
    put_varint(g, size);
    (void)extend(g, size);
    rp_onnx_close(g); /* moves the data, which are still to be written: nothing is lost */
    if (g->failed) return NULL;
    first = g->size - size;
    return g->bytes + first;
}

rp_onnx_value rp_onnx_shape(rp_onnx_graph *g, const size_t *dims, size_t rank)
{
    rp_onnx_value out = {""};
    uint8_t *place = rp_onnx_constant(g, NULL, RP_ONNX_INT64, &rank, 1, &out);

    for (size_t i = 0; i < rank && place != NULL; i++) {
        int64_t number = (int64_t)dims[i];

        memcpy(place + i * sizeof number, &number, sizeof number);
    }
    return out;
}

rp_onnx_value rp_onnx_scalar(rp_onnx_graph *g, float number)
{
    rp_onnx_value out = {""};
    uint8_t *place = rp_onnx_constant(g, NULL, RP_ONNX_FLOAT, NULL, 0, &out);

    if (place != NULL) memcpy(place, &number, sizeof number);
    return out;
}

void rp_onnx_port(rp_onnx_graph *g, unsigned field, const char *name, int type,
                  const int64_t *dims, size_t rank)
{
    rp_onnx_open(g, field);
    rp_onnx_put_text(g, 1, name);
    rp_onnx_open(g, 2); /* the type, which is a tensor */
    rp_onnx_open(g, 1);
    rp_onnx_put_int(g, 1, type);
    rp_onnx_open(g, 2);
    rp_onnx_open(g, 1);
    rp_onnx_put_text(g, 2, "batch");
    rp_onnx_close(g);
    for (size_t i = 0; i < rank; i++) {
        rp_onnx_open(g, 1);
        rp_onnx_put_int(g, 1, dims[i]);
        rp_onnx_close(g);
    }
    for (int i = 0; i < 4; i++) rp_onnx_close(g);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading keeps a stack of the containers that are open, each with a reader of its own, and
 * appends nodes in preorder. A container is scanned once before it is opened, for its name and
 * the number of its children. A pair is scanned for its key, which may come after its value.
 * Names are copied, zero-terminated, into one block that is as large as the message. That is
 * enough, since in the message every name is preceded by a tag and a length. */
#include "wire/signature_wire.h"

#include <assert.h>

#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

enum {
    KIND_SPEC = 33,
    KIND_BOUNDED_SPEC = 35,
    KIND_LIST = 51,
    KIND_TUPLE = 52,
    KIND_DICT = 53,
    KIND_NAMED_TUPLE = 54,
};

typedef struct reading {
    const rp_allocator *alloc;
    rp_error *err;
    rp_nest_node *nodes;
    size_t node_count, node_capacity;
    char *names;      /* where the next name is copied to */
    size_t name_room; /* bytes left there */
    size_t depth;
    struct {
        rp_pb_reader reader;
        rp_nest_kind kind;
    } open[RP_MAX_NEST_DEPTH];
} reading;

static rp_status malformed(const reading *r)
{
    return rp_wire_malformed(r->err, "StructuredValue");
}

static rp_status invalid(const reading *r, const char *what)
{
    return rp_fail(r->err, RP_INVALID, "signature node %zu: %s", r->node_count, what);
}

/* Copies a name; `*out` is zero-terminated. */
static rp_status keep_name(reading *r, const rp_pb_field *field, const char **out)
{
    if (field->size > RP_WIRE_MAX_COLUMN_NAME_BYTES)
        return rp_fail(r->err, RP_INVALID,
                       "signature node %zu: a name has %zu bytes, the limit is %d",
                       r->node_count, field->size, RP_WIRE_MAX_COLUMN_NAME_BYTES);
    if (!rp_wire_is_text(field->data, field->size))
        return invalid(r, "a name is not UTF-8 text");
    assert(field->size < r->name_room);
    if (field->size > 0) memcpy(r->names, field->data, field->size);
    r->names[field->size] = '\0';
    *out = r->names;
    assert(r->name_room >= field->size + 1);
    r->names += field->size + 1;
    r->name_room -= field->size + 1;
    return RP_OK;
}

static rp_status append_node(reading *r, const rp_nest_node *node)
{
    if (r->node_count == r->node_capacity) {
        size_t capacity = r->node_capacity > 0 ? 2 * r->node_capacity : 16;
        if (r->node_count == RP_WIRE_MAX_SIGNATURE_NODES)
            return rp_fail(r->err, RP_NO_RESOURCE, "signature: more than %d nodes",
                           RP_WIRE_MAX_SIGNATURE_NODES);
        if (!rp_resize_array(r->alloc, &r->nodes, r->node_capacity, capacity, sizeof *r->nodes))
            return rp_fail_memory(r->err, capacity * sizeof *r->nodes);
        r->node_capacity = capacity;
    }
    assert(r->node_count < RP_WIRE_MAX_SIGNATURE_NODES && r->node_count < r->node_capacity);
    r->nodes[r->node_count++] = *node;
    return RP_OK;
}

static bool read_dim(const rp_pb_field *dim, int64_t *size)
{
    rp_pb_reader reader = rp_pb_open(dim->data, dim->size);
    rp_pb_field f;
    rp_pb_step step;

    *size = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) *size = (int64_t)f.value;
    return step == RP_PB_END;
}

/* Reads a TensorShapeProto. `*unknown` is set if the rank is not fixed. */
static rp_status read_shape(const reading *r, const rp_pb_field *field, rp_shape *shape,
                            bool *unknown)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) *unknown = f.value != 0;
        if (!rp_pb_is(&f, 2, RP_PB_BYTES)) continue;
        if (shape->rank == RP_MAX_RANK)
            return rp_fail(r->err, RP_INVALID,
                           "signature node %zu: a shape has more than %d dimensions",
                           r->node_count, RP_MAX_RANK);
        if (!read_dim(&f, &shape->dims[shape->rank++])) return malformed(r);
    }
    return step == RP_PB_END ? RP_OK : malformed(r);
}

static rp_status read_leaf(reading *r, const rp_pb_field *field, const char *key)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_nest_node node = {.kind = RP_NEST_LEAF, .key = key};
    rp_pb_field f;
    rp_pb_step step;
    bool unknown_rank = false;
    rp_status st = RP_OK;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) st = keep_name(r, &f, &node.spec.name);
        if (rp_pb_is(&f, 2, RP_PB_BYTES))
            st = read_shape(r, &f, &node.spec.shape, &unknown_rank);
        if (rp_pb_is(&f, 3, RP_PB_VARINT))
            node.spec.dtype = f.value <= RP_UINT4 ? (rp_dtype)f.value : RP_INVALID_DTYPE;
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return malformed(r);
    if (node.spec.name != NULL && node.spec.name[0] == '\0') node.spec.name = NULL;
    if (unknown_rank) node.spec.shape = (rp_shape){.rank = -1};
    return append_node(r, &node);
}

static uint32_t child_number(rp_nest_kind kind)
{
    return kind == RP_NEST_NAMEDTUPLE ? 2 : 1;
}

static rp_status open_container(reading *r, const rp_pb_field *field, rp_nest_kind kind,
                                const char *key)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_nest_node node = {.kind = kind, .key = key};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, child_number(kind), RP_PB_BYTES)) {
            node.child_count++; /* < 2^20: each has two bytes of the message or more */
        } else if (kind == RP_NEST_NAMEDTUPLE && rp_pb_is(&f, 1, RP_PB_BYTES)) {
            st = keep_name(r, &f, &node.type_name);
            if (st != RP_OK) return st;
        }
    }
    if (step != RP_PB_END) return malformed(r);
    if (kind == RP_NEST_NAMEDTUPLE && node.type_name == NULL) node.type_name = "";
    st = append_node(r, &node);
    if (st != RP_OK || node.child_count == 0) return st;
    if (r->depth == RP_MAX_NEST_DEPTH)
        return rp_fail(r->err, RP_INVALID, "signature: nested deeper than %d",
                       RP_MAX_NEST_DEPTH);
    r->open[r->depth].reader = rp_pb_open(field->data, field->size);
    r->open[r->depth++].kind = kind;
    return RP_OK;
}

/* Finds the only field of a StructuredValue, which is its kind. */
static rp_status find_kind(const reading *r, const uint8_t *data, size_t size,
                           rp_pb_field *kind)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;

    kind->number = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (kind->number != 0) return invalid(r, "more than one kind of value");
        *kind = f;
    }
    if (step != RP_PB_END) return malformed(r);
    if (kind->number == 0) return invalid(r, "no value");
    return RP_OK;
}

static rp_status read_value(reading *r, const uint8_t *data, size_t size, const char *key)
{
    rp_pb_field kind = {0};
    rp_status st = find_kind(r, data, size, &kind);

    if (st != RP_OK) return st;
    switch (kind.type == RP_PB_BYTES ? kind.number : 0) {
    case KIND_SPEC:
    case KIND_BOUNDED_SPEC: return read_leaf(r, &kind, key);
    case KIND_LIST: return open_container(r, &kind, RP_NEST_LIST, key);
    case KIND_TUPLE: return open_container(r, &kind, RP_NEST_TUPLE, key);
    case KIND_DICT: return open_container(r, &kind, RP_NEST_DICT, key);
    case KIND_NAMED_TUPLE: return open_container(r, &kind, RP_NEST_NAMEDTUPLE, key);
    default: break;
    }
    return rp_fail(r->err, RP_INVALID,
                   "signature node %zu: a value of kind %u; only tensor specs, lists, tuples, "
                   "dicts and named tuples may stand here",
                   r->node_count, kind.number);
}

/* Reads an entry of a dict, or a pair of a named tuple. An absent key is "". */
static rp_status read_pair(reading *r, const rp_pb_field *pair)
{
    rp_pb_reader reader = rp_pb_open(pair->data, pair->size);
    rp_pb_field f, value = {0};
    rp_pb_step step;
    const char *key = "";
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) {
            st = keep_name(r, &f, &key);
            if (st != RP_OK) return st;
        } else if (rp_pb_is(&f, 2, RP_PB_BYTES)) {
            if (value.number != 0) return invalid(r, "more than one kind of value");
            value = f;
        }
    }
    if (step != RP_PB_END) return malformed(r);
    return read_value(r, value.data, value.size, key);
}

/* Reads the children of open containers, innermost first, until none is open. */
static rp_status read_children(reading *r)
{
    while (r->depth > 0) {
        rp_nest_kind kind = r->open[r->depth - 1].kind;
        rp_pb_field f;
        rp_status st;
        /* The container was scanned before, so this returns a field or the end, but no error.
         */
        if (rp_pb_next(&r->open[r->depth - 1].reader, &f) != RP_PB_FIELD) {
            r->depth--;
            continue;
        }
        if (!rp_pb_is(&f, child_number(kind), RP_PB_BYTES)) continue;
        if (kind == RP_NEST_LIST || kind == RP_NEST_TUPLE)
            st = read_value(r, f.data, f.size, NULL);
        else
            st = read_pair(r, &f);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_wire_read_signature(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                 rp_signature **out, rp_error *err)
{
    reading r;
    char *names;
    rp_status st;

    if (size > RP_WIRE_MAX_SIGNATURE_BYTES)
        return rp_fail(err, RP_NO_RESOURCE, "signature: %zu bytes, the limit is %d", size,
                       RP_WIRE_MAX_SIGNATURE_BYTES);
    names = rp_alloc(alloc, size + 1);
    if (names == NULL) return rp_fail_memory(err, size + 1);
    r = (reading){.alloc = alloc, .err = err, .names = names, .name_room = size + 1};

    st = read_value(&r, data, size, NULL);
    if (st == RP_OK) st = read_children(&r);
    if (st == RP_OK) st = rp_signature_new(alloc, r.nodes, r.node_count, out, err);
    rp_release(alloc, r.nodes, r.node_capacity * sizeof *r.nodes);
    rp_release(alloc, names, size + 1);
    return st;
}

static void put_shape(rp_buf *out, uint32_t number, const rp_shape *shape)
{
    size_t mark = rp_wire_begin(out, number), dim;

    for (int32_t i = 0; i < shape->rank; i++) {
        dim = rp_wire_begin(out, 2);
        rp_wire_put_int(out, 1, shape->dims[i]);
        rp_wire_end(out, dim);
    }
    rp_wire_put_number(out, 3, shape->rank < 0);
    rp_wire_end(out, mark);
}

static void put_leaf(rp_buf *out, const rp_spec *spec)
{
    size_t mark = rp_wire_begin(out, KIND_SPEC);

    rp_wire_put_text(out, 1, spec->name);
    put_shape(out, 2, &spec->shape);
    rp_wire_put_number(out, 3, (uint64_t)spec->dtype);
    rp_wire_end(out, mark);
}

/* A container whose children are being written, and the messages around the current one. */
typedef struct container {
    rp_nest_kind kind;
    uint32_t children_left;
    size_t self, pair, value; /* marks */
} container;

static uint32_t kind_number(rp_nest_kind kind)
{
    switch (kind) {
    case RP_NEST_LEAF: return KIND_SPEC;
    case RP_NEST_LIST: return KIND_LIST;
    case RP_NEST_TUPLE: return KIND_TUPLE;
    case RP_NEST_DICT: return KIND_DICT;
    case RP_NEST_NAMEDTUPLE: return KIND_NAMED_TUPLE;
    }
    return KIND_SPEC;
}

static void begin_child(rp_buf *out, container *parent, const rp_nest_node *child)
{
    uint32_t number = child_number(parent->kind);

    assert(parent->children_left > 0);
    parent->children_left--;
    if (parent->kind == RP_NEST_LIST || parent->kind == RP_NEST_TUPLE) {
        parent->value = rp_wire_begin(out, number);
        return;
    }
    parent->pair = rp_wire_begin(out, number);
    if (parent->kind == RP_NEST_DICT) /* map entries always have both fields */
        rp_wire_put_bytes_always(out, 1, child->key, strlen(child->key));
    else
        rp_wire_put_text(out, 1, child->key);
    parent->value = rp_wire_begin(out, 2);
}

static void end_child(rp_buf *out, const container *parent)
{
    rp_wire_end(out, parent->value);
    if (parent->kind == RP_NEST_DICT || parent->kind == RP_NEST_NAMEDTUPLE)
        rp_wire_end(out, parent->pair);
}

void rp_wire_put_signature(rp_buf *out, uint32_t number, const rp_signature *signature)
{
    container open[RP_MAX_NEST_DEPTH + 1]; /* one for each level, and one that stays empty */
    size_t depth = 0, node_count, mark = rp_wire_begin(out, number);
    const rp_nest_node *nodes = rp_signature_nodes(signature, &node_count);

    for (size_t i = 0; i < node_count; i++) {
        const rp_nest_node *node = &nodes[i];
        if (depth > 0) begin_child(out, &open[depth - 1], node);
        if (node->kind == RP_NEST_LEAF) {
            put_leaf(out, &node->spec);
            if (depth > 0) end_child(out, &open[depth - 1]);
        } else {
            assert(depth < sizeof open / sizeof open[0]);
            open[depth++] = (container){.kind = node->kind,
                                        .children_left = node->child_count,
                                        .self = rp_wire_begin(out, kind_number(node->kind))};
            if (node->kind == RP_NEST_NAMEDTUPLE) rp_wire_put_text(out, 1, node->type_name);
        }
        while (depth > 0 && open[depth - 1].children_left == 0) {
            rp_wire_end(out, open[--depth].self);
            if (depth > 0) end_child(out, &open[depth - 1]);
        }
    }
    rp_wire_end(out, mark);
}

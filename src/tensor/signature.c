/* SPDX-License-Identifier: Apache-2.0 */
/* The signature of a table, in one allocation:
 *
 *   | rp_signature | nodes x n | columns x c | names in the nodes | paths of the columns |
 *
 * It is made in three passes over the nodes, without recursion, with a scratch buffer for the
 * structure of the tree:
 *
 *   outline   checks each node and lists its children in the given order; the children of a
 *             dict are then sorted by key
 *   measure   walks the leaves in flattened order and adds up the bytes of their paths
 *   fill      walks them again and writes columns and paths
 *
 *   children   | of node 0 | of node 1 | ...      those of node i begin at child_at[i]
 *
 * Invariants of an outline after the first pass:
 *   N1  every node but the root is the child of exactly one node;
 *   N2  the depth of a walk never exceeds RP_MAX_NEST_DEPTH. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "reprise/tensor.h"
#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/refcount.h"

enum {
    MAX_NODES = RP_MAX_COLUMNS * RP_MAX_NEST_DEPTH,
    MAX_PATH_BYTES = 4096,     /* of a column */
    MAX_PATHS_BYTES = 1 << 20, /* of all columns: bounds the effect of long shared keys */
};

struct rp_signature {
    rp_refcount refs;
    rp_allocator alloc;
    size_t size_bytes; /* of the whole allocation */
    size_t node_count, column_count;
    rp_nest_node *nodes;
    rp_spec *columns;
};

typedef struct outline {
    const rp_nest_node *nodes;
    size_t node_count;
    uint32_t *child_at; /* where the children of each node begin in `children` */
    uint32_t *children;
    uint32_t *spare; /* as long as `children` */
    size_t leaf_count;
    size_t name_bytes; /* keys, type names and spec names, each with its zero */
    size_t path_bytes; /* paths, each with its zero */
} outline;

static bool takes_keys(rp_nest_kind kind)
{
    return kind == RP_NEST_DICT || kind == RP_NEST_NAMEDTUPLE;
}

static size_t name_size(const char *name)
{
    return name == NULL ? 0 : strlen(name) + 1;
}

static rp_status check_leaf(const rp_nest_node *node, size_t index, rp_error *err)
{
    const rp_shape *shape = &node->spec.shape;
    char label[48];

    if (node->child_count != 0)
        return rp_fail(err, RP_INVALID, "signature node %zu: a leaf has %u children", index,
                       node->child_count);
    (void)snprintf(label, sizeof label, "signature node %zu", index);
    if (rp_dtype_size(node->spec.dtype) == 0)
        return rp_refuse_dtype(label, node->spec.dtype, err);
    if (shape->rank > RP_MAX_RANK) return rp_refuse_rank(label, shape->rank, RP_MAX_RANK, err);
    if (shape->rank < -1)
        return rp_fail(err, RP_INVALID, "%s: the rank must be >= -1, got %d", label,
                       (int)shape->rank);
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < -1)
            return rp_fail(err, RP_INVALID,
                           "signature node %zu: dimension %d must be >= -1, got %lld", index,
                           (int)i, (long long)shape->dims[i]);
    return RP_OK;
}

static rp_status check_node(const rp_nest_node *node, size_t index, rp_error *err)
{
    switch (node->kind) {
    case RP_NEST_LEAF: return check_leaf(node, index, err);
    case RP_NEST_LIST:
    case RP_NEST_TUPLE:
    case RP_NEST_DICT:
    case RP_NEST_NAMEDTUPLE: return RP_OK;
    }
    return rp_fail(err, RP_INVALID, "signature node %zu: unknown kind %d", index,
                   (int)node->kind);
}

/* Reserves the entries of the children of `index`. */
static rp_status open_node(outline *o, size_t index, uint32_t *next_free, rp_error *err)
{
    const rp_nest_node *node = &o->nodes[index];

    o->child_at[index] = *next_free;
    if (node->child_count > o->node_count - 1 - *next_free)
        return rp_fail(err, RP_INVALID,
                       "signature node %zu: %u children, but only %zu nodes are left", index,
                       node->child_count, o->node_count - 1 - *next_free);
    *next_free += node->child_count;
    return RP_OK;
}

/* Links node `index` to its parent, the innermost open one. That parent lacks children, since a
 * parent is closed when its last descendant has been seen. */
static rp_status link_child(outline *o, size_t index, const uint32_t *stack, size_t depth,
                            uint32_t *seen, rp_error *err)
{
    uint32_t parent = stack[depth - 1];

    assert(depth >= 1 && seen[depth - 1] < o->nodes[parent].child_count);
    o->children[o->child_at[parent] + seen[depth - 1]++] = (uint32_t)index;
    if (takes_keys(o->nodes[parent].kind) && o->nodes[index].key == NULL)
        return rp_fail(err, RP_INVALID, "signature node %zu: no key, but its parent needs one",
                       index);
    return RP_OK;
}

static rp_status find_children(outline *o, rp_error *err)
{
    uint32_t stack[RP_MAX_NEST_DEPTH], seen[RP_MAX_NEST_DEPTH], next_free = 0;
    size_t depth = 0;
    rp_status st;

    for (size_t i = 0; i < o->node_count; i++) {
        const rp_nest_node *node = &o->nodes[i];
        if (i > 0 && depth == 0)
            return rp_fail(err, RP_INVALID, "signature: node %zu is a second root", i);
        if ((st = check_node(node, i, err)) != RP_OK) return st;
        if (depth > 0 && (st = link_child(o, i, stack, depth, seen, err)) != RP_OK) return st;
        o->name_bytes +=
            name_size(node->key) + name_size(node->type_name) + name_size(node->spec.name);
        o->leaf_count += node->kind == RP_NEST_LEAF;
        if ((st = open_node(o, i, &next_free, err)) != RP_OK) return st;
        if (node->child_count > 0) {
            if (depth == RP_MAX_NEST_DEPTH)
                return rp_fail(err, RP_INVALID, "signature: nested deeper than %d",
                               RP_MAX_NEST_DEPTH);
            stack[depth] = (uint32_t)i;
            seen[depth++] = 0;
        }
        while (depth > 0 && seen[depth - 1] == o->nodes[stack[depth - 1]].child_count) depth--;
    }
    if (depth > 0)
        return rp_fail(err, RP_INVALID, "signature: node %u lacks %u of its %u children",
                       stack[depth - 1],
                       o->nodes[stack[depth - 1]].child_count - seen[depth - 1],
                       o->nodes[stack[depth - 1]].child_count);
    return RP_OK;
}

static int compare_keys(const outline *o, uint32_t a, uint32_t b)
{
    return strcmp(o->nodes[a].key, o->nodes[b].key); /* strcmp compares unsigned bytes */
}

static void sift_down(const outline *o, uint32_t *heap, size_t at, size_t count)
{
    assert(at < count);
    for (;;) {
        size_t child = 2 * at + 1;
        uint32_t moved = heap[at];
        if (child >= count) return;
        if (child + 1 < count && compare_keys(o, heap[child], heap[child + 1]) < 0) child++;
        if (compare_keys(o, moved, heap[child]) >= 0) return;
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* Heap sort: in place, without an allocation (which qsort() makes), and without a quadratic
 * case that a peer could provoke. */
static void sort_by_key(const outline *o, uint32_t *nodes, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) sift_down(o, nodes, i, count);
    for (size_t end = count; end-- > 1;) {
        uint32_t largest = nodes[0];
        nodes[0] = nodes[end];
        nodes[end] = largest;
        sift_down(o, nodes, 0, end);
    }
}

/* Sorts the children of dicts, and refuses a key that occurs twice in one parent. */
static rp_status sort_children(outline *o, rp_error *err)
{
    for (size_t i = 0; i < o->node_count; i++) {
        size_t count = o->nodes[i].child_count;
        uint32_t *own = o->children + o->child_at[i];
        uint32_t *sorted = o->nodes[i].kind == RP_NEST_DICT ? own : o->spare;
        if (!takes_keys(o->nodes[i].kind) || count == 0) continue;
        if (sorted != own) memcpy(sorted, own, count * sizeof *own);
        sort_by_key(o, sorted, count);
        for (size_t k = 1; k < count; k++)
            if (compare_keys(o, sorted[k - 1], sorted[k]) == 0)
                return rp_fail(err, RP_INVALID, "signature node %zu: key '%s' is repeated", i,
                               o->nodes[sorted[k]].key);
    }
    return RP_OK;
}

/* The state of a walk: the open parents, the next child of each, and the path so far. */
typedef struct walk {
    const outline *o;
    size_t depth;
    uint32_t parent[RP_MAX_NEST_DEPTH];
    uint32_t next[RP_MAX_NEST_DEPTH];
    size_t path_before[RP_MAX_NEST_DEPTH]; /* bytes of the path of each open parent */
    char path[MAX_PATH_BYTES];
    size_t path_size;
} walk;

static bool push_name(walk *w, const char *name)
{
    size_t size = strlen(name), slash = w->depth > 1 ? 1 : 0;

    assert(w->path_size < MAX_PATH_BYTES);
    if (size + slash >= MAX_PATH_BYTES - w->path_size) return false;
    if (slash) w->path[w->path_size++] = '/';
    memcpy(w->path + w->path_size, name, size);
    w->path_size += size;
    return true;
}

/* Appends the name of child number `position` of a parent: its key, or the number. */
static bool push_child_name(walk *w, const rp_nest_node *parent, const rp_nest_node *child,
                            uint32_t position)
{
    char number[16];

    if (takes_keys(parent->kind)) return push_name(w, child->key);
    (void)snprintf(number, sizeof number, "%u", position);
    return push_name(w, number);
}

/* Advances to the next leaf: writes its node number to `*leaf` and its path to w->path. False
 * at the end; also if a path is too long, with path_size == MAX_PATH_BYTES. */
static bool next_leaf(walk *w, uint32_t *leaf)
{
    const outline *o = w->o;

    while (w->depth > 0) {
        size_t top = w->depth - 1;
        uint32_t parent = w->parent[top], position = w->next[top], node;

        assert(position <= o->nodes[parent].child_count);
        if (position == o->nodes[parent].child_count) {
            w->depth--;
            continue;
        }
        w->next[top]++;
        w->path_size = w->path_before[top];
        node = o->children[o->child_at[parent] + position];
        if (!push_child_name(w, &o->nodes[parent], &o->nodes[node], position)) {
            w->path_size = MAX_PATH_BYTES;
            return false;
        }
        if (o->nodes[node].kind == RP_NEST_LEAF) {
            *leaf = node;
            return true;
        }
        if (o->nodes[node].child_count == 0) continue;
        assert(w->depth < RP_MAX_NEST_DEPTH); /* N2 */
        w->parent[w->depth] = node;
        w->next[w->depth] = 0;
        w->path_before[w->depth++] = w->path_size;
    }
    return false;
}

static void start_walk(walk *w, const outline *o)
{
    w->o = o;
    w->depth = o->nodes[0].child_count > 0 ? 1 : 0;
    w->parent[0] = 0;
    w->next[0] = 0;
    w->path_before[0] = 0;
    w->path_size = 0;
}

/* The name of a signature that is a single leaf, which has no path. */
static const char *root_name(const outline *o)
{
    return o->nodes[0].spec.name != NULL ? o->nodes[0].spec.name : "";
}

static rp_status measure(outline *o, rp_error *err)
{
    walk w;
    uint32_t leaf;

    if (o->leaf_count == 0) return rp_fail(err, RP_INVALID, "signature: no leaf");
    if (o->leaf_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "signature: %zu columns, the limit is %d",
                       o->leaf_count, RP_MAX_COLUMNS);
    if (o->nodes[0].kind == RP_NEST_LEAF) {
        o->path_bytes = strlen(root_name(o)) + 1;
        return RP_OK;
    }
    start_walk(&w, o);
    while (next_leaf(&w, &leaf)) o->path_bytes += w.path_size + 1;
    if (w.path_size == MAX_PATH_BYTES)
        return rp_fail(err, RP_INVALID, "signature: a path is longer than %d bytes",
                       MAX_PATH_BYTES - 1);
    if (o->path_bytes > MAX_PATHS_BYTES)
        return rp_fail(err, RP_INVALID,
                       "signature: the paths of %zu columns have %zu bytes, the limit is %d; "
                       "shorter keys help",
                       o->leaf_count, o->path_bytes, MAX_PATHS_BYTES);
    return RP_OK;
}

static const char *put_name(char **at, const char *name, size_t size)
{
    char *copy = *at;

    memcpy(copy, name, size);
    copy[size] = '\0';
    *at += size + 1;
    return copy;
}

static const char *copy_name(char **at, const char *name)
{
    return name == NULL ? NULL : put_name(at, name, strlen(name));
}

static void fill(rp_signature *s, const outline *o, char *strings)
{
    walk w;
    uint32_t leaf;
    size_t column = 0;

    memcpy(s->nodes, o->nodes, o->node_count * sizeof *s->nodes);
    for (size_t i = 0; i < o->node_count; i++) {
        s->nodes[i].key = copy_name(&strings, s->nodes[i].key);
        s->nodes[i].type_name = copy_name(&strings, s->nodes[i].type_name);
        s->nodes[i].spec.name = copy_name(&strings, s->nodes[i].spec.name);
    }
    if (o->nodes[0].kind == RP_NEST_LEAF) {
        s->columns[0] = s->nodes[0].spec;
        s->columns[0].name = copy_name(&strings, root_name(o));
        return;
    }
    start_walk(&w, o);
    while (next_leaf(&w, &leaf)) {
        s->columns[column] = s->nodes[leaf].spec;
        s->columns[column++].name = put_name(&strings, w.path, w.path_size);
    }
    assert(column == s->column_count);
}

static rp_status make_signature(const rp_allocator *alloc, const outline *o, rp_signature **out,
                                rp_error *err)
{
    size_t node_bytes = o->node_count * sizeof(rp_nest_node);
    size_t column_bytes = o->leaf_count * sizeof(rp_spec);
    size_t size = sizeof(rp_signature) + node_bytes + column_bytes + o->path_bytes;
    rp_signature *s;

    if (!rp_size_add(size, o->name_bytes, &size)) return rp_fail_memory(err, SIZE_MAX);
    s = rp_alloc(alloc, size);
    if (s == NULL) return rp_fail_memory(err, size);
    rp_refcount_init(&s->refs);
    s->alloc = *alloc;
    s->size_bytes = size;
    s->node_count = o->node_count;
    s->column_count = o->leaf_count;
    s->nodes = (rp_nest_node *)(s + 1);
    s->columns = (rp_spec *)(s->nodes + o->node_count);
    fill(s, o, (char *)(s->columns + o->leaf_count));
    *out = s;
    return RP_OK;
}

static_assert(sizeof(rp_signature) % _Alignof(rp_nest_node) == 0 &&
                  sizeof(rp_nest_node) % _Alignof(rp_spec) == 0,
              "the arrays of a signature follow each other without gaps");

rp_status rp_signature_new(const rp_allocator *alloc, const rp_nest_node *nodes,
                           size_t node_count, rp_signature **out, rp_error *err)
{
    outline o = {.nodes = nodes, .node_count = node_count};
    size_t scratch_bytes = 3 * node_count * sizeof(uint32_t);
    uint32_t *scratch;
    rp_status st;

    if (alloc == NULL) alloc = rp_allocator_default();
    if (node_count == 0) return rp_fail(err, RP_INVALID, "signature: no nodes");
    if (nodes == NULL)
        return rp_fail(err, RP_INVALID, "signature: `nodes` is NULL, node_count %zu",
                       node_count);
    if (node_count > MAX_NODES)
        return rp_fail(err, RP_INVALID, "signature: %zu nodes, the limit is %d", node_count,
                       MAX_NODES);
    scratch = rp_alloc(alloc, scratch_bytes);
    if (scratch == NULL) return rp_fail_memory(err, scratch_bytes);
    o.child_at = scratch;
    o.children = scratch + node_count;
    o.spare = scratch + 2 * node_count;

    st = find_children(&o, err);
    if (st == RP_OK) st = sort_children(&o, err);
    if (st == RP_OK) st = measure(&o, err);
    if (st == RP_OK) st = make_signature(alloc, &o, out, err);
    rp_release(alloc, scratch, scratch_bytes);
    return st;
}

rp_status rp_signature_flat(const rp_allocator *alloc, const rp_spec *columns,
                            size_t column_count, rp_signature **out, rp_error *err)
{
    rp_nest_node *nodes;
    rp_status st;

    if (alloc == NULL) alloc = rp_allocator_default();
    if (column_count == 0) return rp_fail(err, RP_INVALID, "signature: no columns");
    if (columns == NULL)
        return rp_fail(err, RP_INVALID, "signature: `columns` is NULL, column_count %zu",
                       column_count);
    if (column_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "signature: %zu columns, the limit is %d", column_count,
                       RP_MAX_COLUMNS);
    nodes = rp_alloc_array(alloc, column_count + 1, sizeof *nodes);
    if (nodes == NULL) return rp_fail_memory(err, (column_count + 1) * sizeof *nodes);
    nodes[0].kind = columns[0].name != NULL ? RP_NEST_DICT : RP_NEST_TUPLE;
    nodes[0].child_count = (uint32_t)column_count;
    for (size_t i = 0; i < column_count; i++)
        nodes[i + 1] =
            (rp_nest_node){.kind = RP_NEST_LEAF, .key = columns[i].name, .spec = columns[i]};
    st = rp_signature_new(alloc, nodes, column_count + 1, out, err);
    rp_release(alloc, nodes, (column_count + 1) * sizeof *nodes);
    return st;
}

rp_signature *rp_signature_ref(rp_signature *signature)
{
    rp_refcount_inc(&signature->refs);
    return signature;
}

void rp_signature_unref(rp_signature *signature)
{
    rp_allocator alloc;

    if (signature == NULL || !rp_refcount_dec(&signature->refs)) return;
    alloc = signature->alloc;
    rp_release(&alloc, signature, signature->size_bytes);
}

size_t rp_signature_bytes(const rp_signature *signature)
{
    return signature != NULL ? signature->size_bytes : 0;
}

size_t rp_signature_column_count(const rp_signature *signature)
{
    return signature->column_count;
}

const rp_spec *rp_signature_column(const rp_signature *signature, size_t index)
{
    assert(index < signature->column_count);
    return &signature->columns[index];
}

const rp_nest_node *rp_signature_nodes(const rp_signature *signature, size_t *node_count)
{
    *node_count = signature->node_count;
    return signature->nodes;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/signature_spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/units.h"

enum { LAST_DTYPE = RP_UINT4 };

/* Names of NumPy that differ from those of TensorFlow. */
static const struct {
    const char *name;
    rp_dtype dtype;
} numpy_names[] = {
    {"float16", RP_FLOAT16},
    {"float32", RP_FLOAT32},
    {"float64", RP_FLOAT64},
};

enum { NUMPY_NAMES = sizeof numpy_names / sizeof numpy_names[0] };

const char *rp_dtype_text(rp_dtype dtype)
{
    for (size_t i = 0; i < NUMPY_NAMES; i++)
        if (numpy_names[i].dtype == dtype) return numpy_names[i].name;
    return rp_dtype_name(dtype);
}

rp_dtype rp_dtype_parse(const char *name)
{
    for (int i = 1; i <= LAST_DTYPE; i++) {
        const char *known = rp_dtype_name((rp_dtype)i);

        if (known != NULL && strcmp(name, known) == 0) return (rp_dtype)i;
        known = rp_dtype_text((rp_dtype)i);
        if (known != NULL && strcmp(name, known) == 0) return (rp_dtype)i;
    }
    return RP_INVALID_DTYPE;
}

static const char *nearest_dtype(const char *name)
{
    rp_nearest nearest;

    rp_nearest_init(&nearest, name);
    for (int i = 1; i <= LAST_DTYPE; i++)
        if (rp_dtype_text((rp_dtype)i) != NULL)
            rp_nearest_offer(&nearest, rp_dtype_text((rp_dtype)i));
    return rp_nearest_get(&nearest);
}

static const char *skip_spaces(const char *p)
{
    return p + strspn(p, " ");
}

/* Parses the dimensions after '['. Returns true if they end with ']' and nothing follows. */
static bool parse_dims(const char *p, rp_shape *shape)
{
    char digits[24];
    size_t length;

    shape->rank = 0;
    p = skip_spaces(p);
    if (*p == ']') return *skip_spaces(p + 1) == '\0';
    for (;;) {
        assert(shape->rank >= 0 && shape->rank <= RP_MAX_RANK);
        if (shape->rank == RP_MAX_RANK) return false;
        length = strcspn(p, " ,]");
        if (length == 0 || length >= sizeof digits) return false;
        memcpy(digits, p, length);
        digits[length] = '\0';
        if (strcmp(digits, "?") == 0)
            shape->dims[shape->rank] = -1;
        else if (!rp_parse_integer(digits, &shape->dims[shape->rank]) ||
                 shape->dims[shape->rank] < 0)
            return false;
        shape->rank++;
        p = skip_spaces(p + length);
        if (*p == ']') return *skip_spaces(p + 1) == '\0';
        if (*p != ',') return false;
        p = skip_spaces(p + 1);
    }
}

rp_status rp_spec_parse(const char *text, rp_spec *spec, char *why, size_t why_bytes)
{
    size_t length = strcspn(text, " [");
    rp_spec parsed = {.shape.rank = -1};
    const char *rest = skip_spaces(text + length), *near;
    char name[32];

    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
    parsed.dtype = length < sizeof name ? rp_dtype_parse(name) : RP_INVALID_DTYPE;
    if (parsed.dtype == RP_INVALID_DTYPE) {
        near = nearest_dtype(name);
        (void)snprintf(why, why_bytes, "unknown dtype '%s'%s%s%s", name,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
        return RP_INVALID;
    }
    if (*rest != '\0' && (*rest != '[' || !parse_dims(rest + 1, &parsed.shape))) {
        (void)snprintf(why, why_bytes,
                       "the shape '%.60s' is not like [?, 84, 3], at most %d dimensions", rest,
                       RP_MAX_RANK);
        return RP_INVALID;
    }
    *spec = parsed;
    return RP_OK;
}

char *rp_spec_text(const rp_spec *spec, char *text, size_t size)
{
    const char *dtype = rp_dtype_text(spec->dtype);
    char shape[256];

    assert(size >= 1 && spec->shape.rank <= RP_MAX_RANK);
    if (spec->shape.rank < 0)
        (void)snprintf(text, size, "%s", dtype != NULL ? dtype : "?");
    else
        (void)snprintf(text, size, "%s %s", dtype != NULL ? dtype : "?",
                       rp_shape_text(&spec->shape, shape, sizeof shape));
    return text;
}

/* Collects nodes in preorder, as rp_signature_new() takes them; count <= capacity. */
typedef struct collector {
    rp_arena *arena;
    const char *key;
    rp_nest_node *nodes;
    size_t count, capacity;
    rp_problem *problem;
} collector;

static rp_status add_leaf(const collector *c, const rp_yaml *yaml, rp_nest_node *node)
{
    char why[200];

    if (rp_spec_parse(yaml->text, &node->spec, why, sizeof why) != RP_OK)
        return rp_problem_set(c->problem, &yaml->place, "%s%s%s: %s", c->key,
                              yaml->key != NULL ? "." : "", yaml->key != NULL ? yaml->key : "",
                              why);
    node->kind = RP_NEST_LEAF;
    return RP_OK;
}

static rp_status collect(collector *c, const rp_yaml *yaml, bool is_root)
{
    rp_nest_node *nodes =
        rp_arena_grow(c->arena, c->nodes, c->count, &c->capacity, sizeof *nodes);
    rp_nest_node node = {.key = is_root ? NULL : yaml->key};
    rp_status st = RP_OK;

    if (nodes == NULL) return rp_problem_memory(c->problem);
    c->nodes = nodes;
    if (yaml->kind == RP_YAML_SCALAR) {
        st = add_leaf(c, yaml, &node);
    } else {
        if (yaml->child_count == 0)
            return rp_problem_set(c->problem, &yaml->place, "%s: an empty %s", c->key,
                                  yaml->kind == RP_YAML_MAP ? "map" : "list");
        node.kind = yaml->kind == RP_YAML_MAP ? RP_NEST_DICT
                    : yaml->tuple             ? RP_NEST_TUPLE
                                              : RP_NEST_LIST;
        node.child_count = (uint32_t)yaml->child_count;
    }
    assert(c->count < c->capacity);
    c->nodes[c->count++] = node;
    for (const rp_yaml *n = yaml->first; st == RP_OK && n != NULL; n = n->next)
        st = collect(c, n, false);
    return st;
}

rp_status rp_signature_from_yaml(rp_arena *arena, const char *key, const rp_yaml *node,
                                 rp_signature **out, rp_problem *problem)
{
    collector c = {.arena = arena, .key = key, .problem = problem};
    rp_status st = collect(&c, node, true);
    rp_error err = {0};

    if (st != RP_OK) return st;
    st = rp_signature_new(arena->alloc, c.nodes, c.count, out, &err);
    if (st != RP_OK) (void)rp_problem_set(problem, &node->place, "%s: %s", key, err.text);
    return st;
}

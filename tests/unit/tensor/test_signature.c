/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chunks.h"

#define LEAF(k)                                                                                \
    {                                                                                          \
        .kind = RP_NEST_LEAF, .key = (k), .spec = { NULL, RP_INT32, {.rank = 1} }              \
    }
#define NEST(what, k, n)                                                                       \
    {                                                                                          \
        .kind = (what), .key = (k), .child_count = (n)                                         \
    }

static rp_signature *make(const rp_nest_node *nodes, size_t count)
{
    rp_signature *signature = NULL;
    rp_error err;
    assert_ok_err(rp_signature_new(rp_allocator_default(), nodes, count, &signature, &err),
                  &err);
    return signature;
}

/* The columns must have these names, in this order, separated by spaces. */
static void assert_columns(const rp_signature *signature, const char *names)
{
    char text[512] = "";

    for (size_t i = 0; i < rp_signature_column_count(signature); i++) {
        if (i > 0) strcat(text, " ");
        strcat(text, rp_signature_column(signature, i)->name);
    }
    assert_string_equal(text, names);
}

static void assert_refused(const rp_nest_node *nodes, size_t count, const char *part)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_signature *signature = NULL;
    rp_error err = {0};

    assert_fails(rp_signature_new(&alloc, nodes, count, &signature, &err), RP_INVALID, &err,
                 part);
    assert_null(signature);
    assert_int_equal(o.live, 0);
}

static void flat_columns_with_names_are_sorted_in_byte_order(void **state)
{
    const rp_spec columns[] = {{"reward", RP_FLOAT32, SCALAR},
                               {"\xc3\xa9", RP_INT8, SCALAR},
                               {"action", RP_INT32, SHAPE(-1)},
                               {"Obs", RP_UINT8, SHAPE(-1, 84, 84)}};
    rp_signature *s = NULL;

    (void)state;
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, 4, &s, NULL));
    assert_columns(s, "Obs action reward \xc3\xa9");
    assert_int_equal(rp_signature_column(s, 0)->dtype, RP_UINT8);
    assert_true(rp_shape_equal(&rp_signature_column(s, 0)->shape, &columns[3].shape));
    rp_signature_unref(s);
}

static void flat_columns_without_names_keep_their_order(void **state)
{
    const rp_spec columns[] = {{NULL, RP_FLOAT32, SCALAR}, {NULL, RP_INT32, SCALAR}};
    rp_signature *s = NULL;
    size_t count;

    (void)state;
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, 2, &s, NULL));
    assert_columns(s, "0 1");
    assert_int_equal(rp_signature_nodes(s, &count)[0].kind, RP_NEST_TUPLE);
    assert_int_equal(count, 3);
    rp_signature_unref(s);
}

static void flat_refuses_no_columns_and_too_many(void **state)
{
    rp_spec *columns = calloc(RP_MAX_COLUMNS + 1, sizeof *columns);
    rp_signature *s = NULL;
    rp_error err;

    (void)state;
    assert_non_null(columns);
    for (size_t i = 0; i <= RP_MAX_COLUMNS; i++) columns[i].dtype = RP_INT8;
    assert_fails(rp_signature_flat(rp_allocator_default(), columns, 0, &s, &err), RP_INVALID,
                 &err, "no columns");
    assert_fails(
        rp_signature_flat(rp_allocator_default(), columns, RP_MAX_COLUMNS + 1, &s, &err),
        RP_INVALID, &err, "4097 columns");
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, RP_MAX_COLUMNS, &s, &err));
    assert_int_equal(rp_signature_column_count(s), RP_MAX_COLUMNS);
    assert_string_equal(rp_signature_column(s, 4095)->name, "4095");
    rp_signature_unref(s);
    free(columns);
}

static void paths_join_keys_and_positions(void **state)
{
    const rp_nest_node nodes[] = {
        NEST(RP_NEST_DICT, NULL, 2),
        NEST(RP_NEST_TUPLE, "z", 2),
        LEAF(NULL),
        NEST(RP_NEST_LIST, NULL, 1),
        LEAF(NULL),
        NEST(RP_NEST_DICT, "a", 1),
        LEAF("b"),
    };
    rp_signature *s = make(nodes, COUNT_OF(nodes));

    (void)state;
    assert_columns(s, "a/b z/0 z/1/0");
    rp_signature_unref(s);
}

static void a_named_tuple_keeps_its_order(void **state)
{
    rp_nest_node nodes[] = {NEST(RP_NEST_NAMEDTUPLE, NULL, 3), LEAF("z"), LEAF("a"), LEAF("m")};
    rp_signature *s;
    size_t count;

    (void)state;
    nodes[0].type_name = "Step";
    s = make(nodes, 4);
    assert_columns(s, "z a m");
    assert_string_equal(rp_signature_nodes(s, &count)->type_name, "Step");
    rp_signature_unref(s);
}

static void a_single_leaf_is_a_signature(void **state)
{
    rp_nest_node leaf = LEAF(NULL);
    rp_signature *s = make(&leaf, 1);

    (void)state;
    assert_columns(s, "");
    rp_signature_unref(s);
    leaf.spec.name = "obs";
    s = make(&leaf, 1);
    assert_columns(s, "obs");
    rp_signature_unref(s);
}

static void empty_nests_beside_a_leaf_are_allowed(void **state)
{
    const rp_nest_node nodes[] = {NEST(RP_NEST_TUPLE, NULL, 3), NEST(RP_NEST_DICT, NULL, 0),
                                  LEAF(NULL), NEST(RP_NEST_LIST, NULL, 0)};
    rp_signature *s = make(nodes, 4);

    (void)state;
    assert_columns(s, "1");
    rp_signature_unref(s);
}

static void nodes_come_back_as_they_were_given(void **state)
{
    char key[] = "b", name[] = "spec";
    rp_nest_node nodes[] = {NEST(RP_NEST_DICT, NULL, 2), LEAF(key), LEAF("a")};
    const rp_nest_node *copy;
    rp_signature *s;
    size_t count;

    (void)state;
    nodes[1].spec.name = name;
    s = make(nodes, 3);
    key[0] = name[0] = '!'; /* the signature has copies */
    copy = rp_signature_nodes(s, &count);
    assert_int_equal(count, 3);
    assert_string_equal(copy[1].key, "b");
    assert_string_equal(copy[1].spec.name, "spec");
    assert_string_equal(copy[2].key, "a");
    assert_null(copy[2].spec.name);
    assert_columns(s, "a b");
    rp_signature_unref(s);
}

static void trees_with_inconsistent_counts_are_refused(void **state)
{
    const rp_nest_node two_roots[] = {LEAF(NULL), LEAF(NULL)};
    const rp_nest_node lacking[] = {NEST(RP_NEST_TUPLE, NULL, 2), LEAF(NULL)};
    const rp_nest_node lacking_below[] = {NEST(RP_NEST_TUPLE, NULL, 2), LEAF(NULL),
                                          NEST(RP_NEST_TUPLE, NULL, 1)};
    const rp_nest_node after_end[] = {NEST(RP_NEST_TUPLE, NULL, 1), LEAF(NULL), LEAF(NULL)};
    const rp_nest_node huge[] = {NEST(RP_NEST_TUPLE, NULL, UINT32_MAX), LEAF(NULL)};

    (void)state;
    assert_refused(two_roots, 2, "node 1 is a second root");
    assert_refused(lacking, 2, "only 1 nodes are left");
    assert_refused(lacking_below, 3, "only 0 nodes are left");
    assert_refused(after_end, 3, "node 2 is a second root");
    assert_refused(huge, 2, "children");
    assert_refused(two_roots, 0, "no nodes");
}

static void invalid_leaves_are_refused(void **state)
{
    rp_nest_node children = LEAF(NULL), dtype = LEAF(NULL), rank = LEAF(NULL), dim = LEAF(NULL);

    (void)state;
    children.child_count = 1;
    dtype.spec.dtype = (rp_dtype)20;
    rank.spec.shape.rank = RP_MAX_RANK + 1;
    dim.spec.shape.dims[0] = -2;
    assert_refused(&children, 1, "a leaf has 1 children");
    assert_refused(&dtype, 1, "signature node 0: type code 20 is none of rp_dtype");
    assert_refused(&rank, 1, "signature node 0 has 9 dimensions; at most 8 are supported");
    assert_refused(&dim, 1, "dimension 0 must be >= -1, got -2");
    rank.spec.shape.rank = -2;
    assert_refused(&rank, 1, "got -2");
}

static void an_unknown_kind_is_refused(void **state)
{
    const rp_nest_node node = {.kind = (rp_nest_kind)9};

    (void)state;
    assert_refused(&node, 1, "unknown kind 9");
}

static void keys_must_be_present_and_differ(void **state)
{
    const rp_nest_node missing[] = {NEST(RP_NEST_DICT, NULL, 1), LEAF(NULL)};
    const rp_nest_node missing_name[] = {NEST(RP_NEST_NAMEDTUPLE, NULL, 1), LEAF(NULL)};
    const rp_nest_node twice[] = {NEST(RP_NEST_DICT, NULL, 3), LEAF("a"), LEAF("b"), LEAF("a")};
    const rp_nest_node twice_name[] = {NEST(RP_NEST_NAMEDTUPLE, NULL, 3), LEAF("a"), LEAF("b"),
                                       LEAF("a")};

    (void)state;
    assert_refused(missing, 2, "no key");
    assert_refused(missing_name, 2, "no key");
    assert_refused(twice, 4, "key 'a' is repeated");
    assert_refused(twice_name, 4, "key 'a' is repeated");
}

static void the_same_key_in_different_nests_is_fine(void **state)
{
    const rp_nest_node nodes[] = {NEST(RP_NEST_DICT, NULL, 2), NEST(RP_NEST_DICT, "b", 1),
                                  LEAF("x"), NEST(RP_NEST_DICT, "a", 1), LEAF("x")};
    rp_signature *s = make(nodes, 5);

    (void)state;
    assert_columns(s, "a/x b/x");
    rp_signature_unref(s);
}

static void a_signature_without_a_leaf_is_refused(void **state)
{
    const rp_nest_node nodes[] = {NEST(RP_NEST_TUPLE, NULL, 1), NEST(RP_NEST_DICT, NULL, 0)};

    (void)state;
    assert_refused(nodes, 2, "no leaf");
}

static void nesting_is_limited(void **state)
{
    rp_nest_node nodes[RP_MAX_NEST_DEPTH + 2];
    rp_signature *s;

    (void)state;
    for (size_t i = 0; i <= RP_MAX_NEST_DEPTH; i++)
        nodes[i] = (rp_nest_node)NEST(RP_NEST_LIST, NULL, 1);
    nodes[RP_MAX_NEST_DEPTH] = (rp_nest_node)LEAF(NULL);
    s = make(nodes, RP_MAX_NEST_DEPTH + 1);
    assert_int_equal(strlen(rp_signature_column(s, 0)->name), 2 * RP_MAX_NEST_DEPTH - 1);
    rp_signature_unref(s);

    nodes[RP_MAX_NEST_DEPTH] = (rp_nest_node)NEST(RP_NEST_LIST, NULL, 1);
    nodes[RP_MAX_NEST_DEPTH + 1] = (rp_nest_node)LEAF(NULL);
    assert_refused(nodes, RP_MAX_NEST_DEPTH + 2, "nested deeper than 64");
}

static void paths_are_limited(void **state)
{
    char key[4097];
    rp_nest_node nodes[] = {NEST(RP_NEST_DICT, NULL, 1), LEAF(key)};
    rp_signature *s;

    (void)state;
    memset(key, 'k', sizeof key);
    key[4095] = '\0';
    s = make(nodes, 2);
    assert_string_equal(rp_signature_column(s, 0)->name, key);
    rp_signature_unref(s);
    key[4095] = 'k';
    key[4096] = '\0';
    assert_refused(nodes, 2, "a path is longer than 4095 bytes");
}

/* One long key in front of many columns is in the path of each. */
static void paths_are_limited_together_issue_20(void **state)
{
    enum { LEAVES = 1024 };
    static rp_nest_node nodes[LEAVES + 2];
    static char key[1100];
    rp_signature *s;

    (void)state;
    nodes[0] = (rp_nest_node)NEST(RP_NEST_DICT, NULL, 1);
    nodes[1] = (rp_nest_node)NEST(RP_NEST_LIST, key, LEAVES);
    for (size_t i = 0; i < LEAVES; i++) nodes[i + 2] = (rp_nest_node)LEAF(NULL);
    memset(key, 'k', 1000); /* with a slash, a number and a zero each just under 1 MiB */
    s = make(nodes, LEAVES + 2);
    rp_signature_unref(s);
    memset(key, 'k', 1030);
    assert_refused(nodes, LEAVES + 2, "the paths of 1024 columns");
}

static void the_last_reference_frees(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    const rp_nest_node leaf = LEAF(NULL);
    rp_signature *s = NULL;

    (void)state;
    assert_ok(rp_signature_new(&alloc, &leaf, 1, &s, NULL));
    assert_ptr_equal(rp_signature_ref(s), s);
    rp_signature_unref(s);
    assert_int_equal(o.live, 1);
    rp_signature_unref(s);
    assert_int_equal(o.live, 0);
    rp_signature_unref(NULL);
}

static rp_status make_flat(const rp_allocator *alloc)
{
    const rp_spec columns[] = {{"b", RP_FLOAT32, SCALAR}, {"a", RP_INT32, SHAPE(-1)}};
    rp_signature *s = NULL;
    rp_error err;
    rp_status st = rp_signature_flat(alloc, columns, 2, &s, &err);
    rp_signature_unref(s);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(make_flat);
}

/* A random nest, written down while it is built; the reference flattening is recursive. */
typedef struct nest {
    rp_nest_node nodes[600];
    char keys[600][8];
    size_t count;
    char flat[600][80];
    size_t flat_count;
} nest;

static void grow(nest *n, rp_rng *rng, int depth)
{
    static const rp_nest_kind kinds[] = {RP_NEST_LEAF, RP_NEST_LIST, RP_NEST_TUPLE,
                                         RP_NEST_DICT, RP_NEST_NAMEDTUPLE};
    size_t self = n->count++;
    rp_nest_node *node = &n->nodes[self];

    *node = (rp_nest_node){.kind = depth == 0  ? RP_NEST_DICT
                                   : depth > 4 ? RP_NEST_LEAF
                                               : kinds[rp_rng_below(rng, 5)],
                           .key = n->keys[self],
                           .spec = {NULL, RP_INT32, SCALAR}};
    (void)snprintf(n->keys[self], sizeof n->keys[self], "%c%zu",
                   (int)('a' + rp_rng_below(rng, 20)), self);
    if (node->kind == RP_NEST_LEAF) return;
    node->child_count = (uint32_t)(1 + rp_rng_below(rng, 4));
    if (n->count > 200) node->child_count = 1;
    for (uint32_t i = 0; i < n->nodes[self].child_count; i++) grow(n, rng, depth + 1);
}

static size_t skip_nest(const nest *n, size_t at)
{
    uint32_t children = n->nodes[at].child_count;
    for (at++; children > 0; children--) at = skip_nest(n, at);
    return at;
}

static void flatten(nest *n, size_t at, const char *path)
{
    const rp_nest_node *node = &n->nodes[at];
    size_t child[8], c = at + 1;
    char below[80];

    if (node->kind == RP_NEST_LEAF) {
        strcpy(n->flat[n->flat_count++], path);
        return;
    }
    for (uint32_t i = 0; i < node->child_count; i++, c = skip_nest(n, c)) child[i] = c;
    for (uint32_t i = 0; node->kind == RP_NEST_DICT && i < node->child_count; i++)
        for (uint32_t k = i; k > 0 && strcmp(n->keys[child[k]], n->keys[child[k - 1]]) < 0;
             k--) {
            size_t moved = child[k];
            child[k] = child[k - 1];
            child[k - 1] = moved;
        }
    for (uint32_t i = 0; i < node->child_count; i++) {
        bool named = node->kind == RP_NEST_DICT || node->kind == RP_NEST_NAMEDTUPLE;
        const char *slash = path[0] != '\0' ? "/" : "";
        if (named)
            (void)snprintf(below, sizeof below, "%.60s%s%s", path, slash, n->keys[child[i]]);
        else
            (void)snprintf(below, sizeof below, "%.60s%s%u", path, slash, i);
        flatten(n, child[i], below);
    }
}

static void random_nests_flatten_as_a_recursive_model_does(void **state)
{
    static nest n;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 41);
    for (int round = 0; round < 300; round++) {
        rp_signature *s;
        memset(&n, 0, sizeof n);
        grow(&n, &rng, 0);
        flatten(&n, 0, "");
        s = make(n.nodes, n.count);
        assert_int_equal(rp_signature_column_count(s), n.flat_count);
        for (size_t i = 0; i < n.flat_count; i++)
            assert_string_equal(rp_signature_column(s, i)->name, n.flat[i]);
        rp_signature_unref(s);
    }
}

RP_TESTS(signature)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_columns_with_names_are_sorted_in_byte_order),
        cmocka_unit_test(flat_columns_without_names_keep_their_order),
        cmocka_unit_test(flat_refuses_no_columns_and_too_many),
        cmocka_unit_test(paths_join_keys_and_positions),
        cmocka_unit_test(a_named_tuple_keeps_its_order),
        cmocka_unit_test(a_single_leaf_is_a_signature),
        cmocka_unit_test(empty_nests_beside_a_leaf_are_allowed),
        cmocka_unit_test(nodes_come_back_as_they_were_given),
        cmocka_unit_test(trees_with_inconsistent_counts_are_refused),
        cmocka_unit_test(invalid_leaves_are_refused),
        cmocka_unit_test(an_unknown_kind_is_refused),
        cmocka_unit_test(keys_must_be_present_and_differ),
        cmocka_unit_test(the_same_key_in_different_nests_is_fine),
        cmocka_unit_test(a_signature_without_a_leaf_is_refused),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(paths_are_limited),
        cmocka_unit_test(paths_are_limited_together_issue_20),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(random_nests_flatten_as_a_recursive_model_does),
    };
    return cmocka_run_group_tests_name("signature", tests, NULL, NULL);
}

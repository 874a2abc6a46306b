/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/config_yaml.h"

#include <assert.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/signature_spec.h"
#include "cli/text/yaml_tree.h"

static const char *kind_name(rp_yaml_kind kind)
{
    return kind == RP_YAML_MAP ? "a map" : kind == RP_YAML_LIST ? "a list" : "a value";
}

static bool is_null(const rp_yaml *node)
{
    return node->kind == RP_YAML_SCALAR && !node->quoted &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

static rp_status expect(const rp_yaml *node, rp_yaml_kind kind, const char *key,
                        rp_problem *problem)
{
    if (is_null(node)) return rp_problem_set(problem, &node->place, "%s: has no value", key);
    if (node->kind != kind)
        return rp_problem_set(problem, &node->place, "%s: expected %s, got %s", key,
                              kind_name(kind), kind_name(node->kind));
    return RP_OK;
}

/* Gets the scalar of a node as a setting named `key`. */
static rp_status scalar(const rp_yaml *node, const char *key, rp_setting *value,
                        rp_problem *problem)
{
    *value = (rp_setting){key, node->text, node->quoted, node->place};
    return expect(node, RP_YAML_SCALAR, key, problem);
}

static rp_status read_listen(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    rp_setting value;
    rp_status st;

    if (node->kind != RP_YAML_LIST) {
        st = scalar(node, "listen", &value, problem);
        return st == RP_OK ? rp_config_set(c, RP_SERVE_LISTEN, &value, problem) : st;
    }
    if (node->child_count == 0)
        return rp_problem_set(problem, &node->place, "listen: an empty list");
    st = RP_OK;
    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next) {
        st = scalar(n, "listen", &value, problem);
        if (st == RP_OK) st = rp_config_set(c, RP_SERVE_LISTEN, &value, problem);
    }
    return st;
}

static rp_status read_limits(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    rp_status st = expect(node, RP_YAML_MAP, "limits", problem);
    rp_setting value;

    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next) {
        const char *key = rp_arena_format(&c->arena, "limits.%s", n->key);

        assert(n->key != NULL); /* the entry of a map */
        if (key == NULL) return rp_problem_memory(problem);
        st = scalar(n, key, &value, problem);
        if (st != RP_OK) return st;
        value.text = rp_arena_format(&c->arena, "%s=%s", n->key, n->text);
        if (value.text == NULL) return rp_problem_memory(problem);
        st = rp_config_set(c, RP_SERVE_LIMIT, &value, problem);
    }
    return st;
}

static rp_status unknown_table_key(const rp_table_settings *t, const rp_yaml *node,
                                   rp_problem *problem)
{
    char hint[RP_TABLE_KEY_HINT_BYTES];

    return rp_problem_set(problem, &node->key_place, "%s.%.100s: unknown key%s", t->title,
                          node->key,
                          rp_table_key_hint(node->key, RP_KEY_SAMPLER, "signature", hint));
}

static rp_status read_table_key(rp_config *c, rp_table_settings *t, const rp_yaml *node,
                                rp_problem *problem)
{
    const char *name = rp_arena_format(&c->arena, "%s.%s", t->title, node->key);
    rp_table_key key = rp_table_key_find(node->key);
    rp_setting value;
    rp_status st;

    assert(node->key != NULL && t->title != NULL);
    if (name == NULL) return rp_problem_memory(problem);
    if (strcmp(node->key, "signature") == 0) {
        if (is_null(node)) return expect(node, RP_YAML_SCALAR, name, problem);
        return rp_signature_from_yaml(&c->arena, name, node, &t->signature, problem);
    }
    if (key == RP_TABLE_KEYS) return unknown_table_key(t, node, problem);
    st = scalar(node, name, &value, problem);
    return st == RP_OK ? rp_table_settings_set(t, key, &value, c->memory, problem) : st;
}

static rp_status read_table(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    const char *title = rp_arena_format(&c->arena, "tables.%s", node->key);
    rp_table_settings table;
    rp_status st = RP_OK;

    if (title == NULL) return rp_problem_memory(problem);
    rp_table_settings_init(&table, node->key, title, &node->key_place);
    if (node->kind == RP_YAML_SCALAR) {
        st = expect(node, RP_YAML_SCALAR, title, problem);
        if (st == RP_OK)
            st = rp_table_settings_parse(&table, &c->arena, node->text, c->memory, problem);
    } else {
        st = expect(node, RP_YAML_MAP, title, problem);
    }
    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next)
        st = read_table_key(c, &table, n, problem);
    assert(st != RP_OK || table.name == node->key);
    if (st == RP_OK) st = rp_config_add_table(c, &table, problem);
    if (st != RP_OK) rp_signature_unref(table.signature);
    return st;
}

static rp_status read_tables(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    rp_status st = expect(node, RP_YAML_MAP, "tables", problem);

    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next)
        st = read_table(c, n, problem);
    return st;
}

static rp_status read_value(rp_config *c, rp_serve_option option, const char *key,
                            const rp_yaml *node, rp_problem *problem)
{
    rp_setting value;
    rp_status st = scalar(node, key, &value, problem);

    return st == RP_OK ? rp_config_set(c, option, &value, problem) : st;
}

static rp_status unknown_key(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    rp_nearest nearest;

    for (int i = RP_SERVE_DATA; i <= RP_SERVE_ACCEPT_CHANGES; i++) {
        const char *key = rp_config_key(c, (rp_serve_option)i);

        if (key == NULL) return rp_problem_memory(problem);
        if (strcmp(key + strlen("storage."), node->key) == 0)
            return rp_problem_set(problem, &node->key_place,
                                  "%.100s: unknown key, did you mean '%s'?", node->key, key);
    }
    rp_nearest_init(&nearest, node->key);
    rp_nearest_offer(&nearest, "storage");
    for (int i = RP_SERVE_TABLE; i < RP_SERVE_OPTIONS; i++) {
        const char *key = rp_config_key(c, (rp_serve_option)i);

        if (key == NULL) return rp_problem_memory(problem);
        rp_nearest_offer(&nearest, key);
    }
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, &node->key_place,
                              "%.100s: unknown key, did you mean '%s'?", node->key,
                              rp_nearest_get(&nearest));
    return rp_problem_set(problem, &node->key_place, "%.100s: unknown key", node->key);
}

/* Reads a key below `storage`. */
static rp_status read_storage_key(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    const char *name = rp_arena_format(&c->arena, "storage.%s", node->key);
    rp_nearest nearest;

    if (name == NULL) return rp_problem_memory(problem);
    rp_nearest_init(&nearest, name);
    for (int i = RP_SERVE_DATA; i <= RP_SERVE_ACCEPT_CHANGES; i++) {
        const char *key = rp_config_key(c, (rp_serve_option)i);

        assert(rp_config_is_storage((rp_serve_option)i));
        if (key == NULL) return rp_problem_memory(problem);
        if (strcmp(key, name) == 0)
            return read_value(c, (rp_serve_option)i, key, node, problem);
        rp_nearest_offer(&nearest, key);
    }
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, &node->key_place,
                              "%.100s: unknown key, did you mean '%s'?", name,
                              rp_nearest_get(&nearest));
    return rp_problem_set(problem, &node->key_place, "%.100s: unknown key", name);
}

static rp_status read_storage(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    rp_status st = expect(node, RP_YAML_MAP, "storage", problem);

    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next)
        st = read_storage_key(c, n, problem);
    return st;
}

static rp_status read_setting(rp_config *c, const rp_yaml *node, rp_problem *problem)
{
    int option = RP_SERVE_TABLE; /* the options before it are not allowed in a file */

    assert(node->key != NULL);
    if (strcmp(node->key, "storage") == 0) return read_storage(c, node, problem);
    for (; option < RP_SERVE_OPTIONS; option++) {
        const char *key = rp_config_key(c, (rp_serve_option)option);

        if (key == NULL) return rp_problem_memory(problem);
        if (strcmp(key, node->key) == 0) break;
    }
    if (option == RP_SERVE_OPTIONS) return unknown_key(c, node, problem);
    if (option == RP_SERVE_TABLE) return read_tables(c, node, problem);
    if (option == RP_SERVE_LIMIT) return read_limits(c, node, problem);
    if (option == RP_SERVE_LISTEN) return read_listen(c, node, problem);
    return read_value(c, (rp_serve_option)option, node->key, node, problem);
}

static rp_status read_root(rp_config *c, const rp_yaml *root, rp_problem *problem)
{
    rp_status st = RP_OK;

    if (root == NULL || is_null(root)) return RP_OK; /* an empty file */
    if (root->kind != RP_YAML_MAP)
        return rp_problem_set(problem, &root->place, "expected keys with values, got %s",
                              kind_name(root->kind));
    for (const rp_yaml *n = root->first; n != NULL && st == RP_OK; n = n->next)
        st = read_setting(c, n, problem);
    return st;
}

rp_status rp_config_read_text(rp_config *c, const char *file, const char *text, size_t size,
                              rp_problem *problem)
{
    rp_yaml *root = NULL;
    rp_status st = rp_yaml_parse(&c->arena, file, text, size, &root, problem);

    return st == RP_OK ? read_root(c, root, problem) : st;
}

rp_status rp_config_read_file(rp_config *c, const char *file, rp_problem *problem)
{
    rp_yaml *root = NULL;
    rp_status st = rp_yaml_read(&c->arena, file, &root, problem);

    return st == RP_OK ? read_root(c, root, problem) : st;
}

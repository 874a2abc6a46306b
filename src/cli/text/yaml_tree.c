/* SPDX-License-Identifier: Apache-2.0 */
/* Builds nodes from the events of libyaml, with a stack of the open maps and lists.
 *
 * Invariants:
 *   M1  depth <= RP_YAML_MAX_DEPTH; open[0 .. depth) are maps and lists, each the child of the
 *       one before it;
 *   M2  a node has child_count children from `first` to `last`; children of a map have keys,
 *       other nodes have none;
 *   M3  `key` is set only between a key of the innermost map and its value. */
#include "cli/text/yaml_tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

typedef struct builder {
    rp_arena *arena;
    const char *file, *text;
    size_t size;
    rp_problem *problem;
    rp_yaml *root;
    rp_yaml *open[RP_YAML_MAX_DEPTH]; /* outermost first */
    size_t depth;
    const char *key; /* of the next value, in a map (M3); NULL: a key comes next */
    rp_place key_place;
} builder;

static rp_place place_of(const builder *b, const yaml_mark_t *mark)
{
    return (rp_place){b->file, mark->line + 1, mark->column + 1};
}

static rp_status give_key(builder *b, const yaml_event_t *event, rp_place place)
{
    const rp_yaml *map = b->open[b->depth - 1];
    const char *text = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;

    assert(map->kind == RP_YAML_MAP && b->key == NULL); /* M3 */
    if (event->type != YAML_SCALAR_EVENT)
        return rp_problem_set(b->problem, &place, "a key must be a text");
    if (strlen(text) != size)
        return rp_problem_set(b->problem, &place, "a key must not hold a zero byte");
    for (const rp_yaml *n = map->first; n != NULL; n = n->next)
        if (strcmp(n->key, text) == 0)
            return rp_problem_set(b->problem, &place, "%.200s: given twice, first in line %zu",
                                  text, n->key_place.line);
    b->key = rp_arena_text(b->arena, text, size);
    b->key_place = place;
    return b->key != NULL ? RP_OK : rp_problem_memory(b->problem);
}

/* Adds the node to the innermost open one. */
static rp_status attach(builder *b, rp_yaml *node)
{
    rp_yaml *parent = b->depth > 0 ? b->open[b->depth - 1] : NULL;

    if (parent == NULL) {
        b->root = node;
        return RP_OK;
    }
    if (parent->child_count == RP_YAML_MAX_ENTRIES)
        return rp_problem_set(b->problem, &node->place, "more than %d entries",
                              RP_YAML_MAX_ENTRIES);
    if (parent->kind == RP_YAML_MAP) {
        assert(b->key != NULL); /* M3 */
        node->key = b->key;
        node->key_place = b->key_place;
        b->key = NULL;
    }
    if (parent->last != NULL)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->child_count++;
    assert(node->next == NULL && (parent->kind == RP_YAML_MAP) == (node->key != NULL));
    return RP_OK;
}

static rp_status check_tag(builder *b, rp_yaml *node, const yaml_char_t *tag)
{
    if (tag == NULL) return RP_OK;
    node->tuple = node->kind == RP_YAML_LIST && strcmp((const char *)tag, "!tuple") == 0;
    if (node->tuple) return RP_OK;
    return rp_problem_set(b->problem, &node->place, "unknown tag '%.100s'", (const char *)tag);
}

static rp_status begin(builder *b, rp_yaml *node, const yaml_char_t *anchor,
                       const yaml_char_t *tag)
{
    rp_status st;

    if (anchor != NULL)
        return rp_problem_set(b->problem, &node->place, "anchors are not supported");
    st = check_tag(b, node, tag);
    if (st == RP_OK) st = attach(b, node);
    if (st != RP_OK || node->kind == RP_YAML_SCALAR) return st;
    if (b->depth == RP_YAML_MAX_DEPTH)
        return rp_problem_set(b->problem, &node->place, "nested more than %d deep",
                              RP_YAML_MAX_DEPTH);
    assert(b->depth < RP_YAML_MAX_DEPTH); /* M1 */
    b->open[b->depth++] = node;
    return RP_OK;
}

static rp_status add_scalar(builder *b, const yaml_event_t *event, rp_yaml *node)
{
    const char *text = (const char *)event->data.scalar.value;

    node->kind = RP_YAML_SCALAR;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != event->data.scalar.length)
        return rp_problem_set(b->problem, &node->place, "a text must not hold a zero byte");
    node->text = rp_arena_text(b->arena, text, event->data.scalar.length);
    if (node->text == NULL) return rp_problem_memory(b->problem);
    return begin(b, node, event->data.scalar.anchor, event->data.scalar.tag);
}

static rp_status add_node(builder *b, const yaml_event_t *event, rp_place place)
{
    rp_yaml *node;

    if (b->depth > 0 && b->open[b->depth - 1]->kind == RP_YAML_MAP && b->key == NULL)
        return give_key(b, event, place);
    node = rp_arena_take(b->arena, sizeof *node);
    if (node == NULL) return rp_problem_memory(b->problem);
    node->place = place;
    node->text = "";
    if (event->type == YAML_SCALAR_EVENT) return add_scalar(b, event, node);
    if (event->type == YAML_MAPPING_START_EVENT) {
        node->kind = RP_YAML_MAP;
        return begin(b, node, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    }
    node->kind = RP_YAML_LIST;
    return begin(b, node, event->data.sequence_start.anchor, event->data.sequence_start.tag);
}

static rp_status on_event(builder *b, const yaml_event_t *event)
{
    rp_place place = place_of(b, &event->start_mark);

    switch (event->type) {
    case YAML_SCALAR_EVENT:
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: return add_node(b, event, place);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        assert(b->depth > 0); /* libyaml balances starts and ends */
        b->depth--;
        return RP_OK;
    case YAML_ALIAS_EVENT:
        return rp_problem_set(b->problem, &place, "aliases are not supported");
    case YAML_DOCUMENT_START_EVENT:
        if (b->root != NULL)
            return rp_problem_set(b->problem, &place, "a second document: only one is allowed");
        return RP_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    default: return RP_OK;
    }
}

/* Returns true if a line, counted from 0, is indented with a tab. */
static bool begins_with_tab(const builder *b, size_t line)
{
    const char *at = b->text, *end = at + b->size;

    while (line > 0 && at != NULL && at < end) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at != NULL) at++;
        line--;
    }
    while (at != NULL && at < end && *at == ' ') at++;
    return at != NULL && at < end && *at == '\t';
}

static rp_status parser_failed(builder *b, const yaml_parser_t *parser)
{
    rp_place place = place_of(b, &parser->problem_mark);

    if (parser->error == YAML_MEMORY_ERROR) return rp_problem_memory(b->problem);
    if (parser->error == YAML_READER_ERROR)
        return rp_problem_set(b->problem, NULL, "%s: not a text in UTF-8: %s at byte %zu",
                              b->file, parser->problem, parser->problem_offset);
    if (begins_with_tab(b, parser->problem_mark.line))
        return rp_problem_set(b->problem, &place, "not YAML: a tab: indent with spaces");
    return rp_problem_set(b->problem, &place, "not YAML: %s",
                          parser->problem != NULL ? parser->problem : "it cannot be read");
}

rp_status rp_yaml_parse(rp_arena *arena, const char *file, const void *bytes, size_t size,
                        rp_yaml **root, rp_problem *problem)
{
    builder b = {.arena = arena, .file = file, .text = bytes, .size = size, .problem = problem};
    rp_status st = RP_OK;
    yaml_parser_t parser;
    bool ended = false;

    if (size > RP_YAML_MAX_BYTES)
        return rp_problem_set(problem, NULL, "%s: larger than %d bytes", file,
                              RP_YAML_MAX_BYTES);
    if (!yaml_parser_initialize(&parser)) return rp_problem_memory(problem);
    yaml_parser_set_input_string(&parser, bytes, size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    while (st == RP_OK && !ended) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            st = parser_failed(&b, &parser);
            break;
        }
        st = on_event(&b, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    assert(st != RP_OK || b.depth == 0);
    if (st == RP_OK) *root = b.root;
    return st;
}

rp_status rp_yaml_read(rp_arena *arena, const char *file, rp_yaml **root, rp_problem *problem)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    char *bytes = rp_arena_take(arena, RP_YAML_MAX_BYTES + 1);
    size_t size = 0;
    ssize_t got = -1;

    if (bytes == NULL) {
        if (fd >= 0) (void)close(fd);
        return rp_problem_memory(problem);
    }
    while (fd >= 0 && size <= RP_YAML_MAX_BYTES) {
        got = read(fd, bytes + size, RP_YAML_MAX_BYTES + 1 - size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        size += (size_t)got;
    }
    if (got < 0) {
        (void)rp_problem_set(problem, NULL, "%s: %s", file, strerror(errno));
        if (fd >= 0) (void)close(fd);
        return RP_NOT_FOUND;
    }
    (void)close(fd);
    return rp_yaml_parse(arena, file, bytes, size, root, problem);
}

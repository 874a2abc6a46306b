/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a YAML file into a tree of nodes, each with its position in the file.
 *
 * The file must be one document of maps, lists and scalars. The parser rejects aliases,
 * anchors, unknown tags, keys that are not text, repeated keys, and files beyond the limits
 * below. */
#ifndef RP_CLI_TEXT_YAML_TREE_H
#define RP_CLI_TEXT_YAML_TREE_H

#include "cli/text/arena.h"
#include "cli/text/problem.h"

enum {
    RP_YAML_MAX_BYTES = 1 << 20,
    RP_YAML_MAX_DEPTH = 96,
    RP_YAML_MAX_ENTRIES = 8192, /* entries of one map or list */
};

typedef enum rp_yaml_kind { RP_YAML_SCALAR, RP_YAML_MAP, RP_YAML_LIST } rp_yaml_kind;

/* A node of the tree. Its memory belongs to the arena of the parser. */
typedef struct rp_yaml rp_yaml;
struct rp_yaml {
    rp_yaml_kind kind;
    rp_place place;
    const char *key;              /* key of this node in its map; NULL if it is not in a map */
    rp_place key_place;           /* position of that key */
    const char *text;             /* text of a scalar; "" for maps and lists */
    bool quoted;                  /* this scalar is in quotes, or is a block scalar ('|' or
                                     '>') */
    bool tuple;                   /* this list has the tag !tuple */
    rp_yaml *first, *last, *next; /* first and last child; next child of the same parent */
    size_t child_count;
};

/* Parses `size` bytes. `file` is a name for error texts, and must outlive the tree. Sets
 * `*root` to NULL if the bytes contain no node. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_yaml_parse(rp_arena *arena, const char *file, const void *bytes,
                                     size_t size, rp_yaml **root, rp_problem *problem);

/* Reads and parses a file. Returns RP_NOT_FOUND if the file cannot be read. */
RP_NODISCARD rp_status rp_yaml_read(rp_arena *arena, const char *file, rp_yaml **root,
                                    rp_problem *problem);

#endif

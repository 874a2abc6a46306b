/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a YAML file into a tree; every node has its place in the file.
 *
 * Accepts one document of maps, lists and scalars. Rejects aliases, anchors, unknown tags, keys
 * that are not text, keys given twice, and anything over a bound. */
#ifndef RP_CLI_TEXT_YAML_TREE_H
#define RP_CLI_TEXT_YAML_TREE_H

#include "cli/text/arena.h"
#include "cli/text/problem.h"

enum {
    RP_YAML_MAX_BYTES = 1 << 20,
    RP_YAML_MAX_DEPTH = 96,
    RP_YAML_MAX_ENTRIES = 8192, /* of one map or list */
};

typedef enum rp_yaml_kind { RP_YAML_SCALAR, RP_YAML_MAP, RP_YAML_LIST } rp_yaml_kind;

/* A node. Lives in the arena it was parsed into. */
typedef struct rp_yaml rp_yaml;
struct rp_yaml {
    rp_yaml_kind kind;
    rp_place place;
    const char *key;    /* in a map; NULL elsewhere */
    rp_place key_place; /* in a map */
    const char *text;   /* of a scalar; "" elsewhere */
    bool quoted;        /* a scalar in quotes, or a block of text */
    bool tuple;         /* a list with the tag !tuple */
    rp_yaml *first, *last, *next;
    size_t child_count;
};

/* Parses `size` bytes. `file` is the name for error texts and must outlive the tree. `*root` is
 * NULL if the file is empty. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_yaml_parse(rp_arena *arena, const char *file, const void *bytes,
                                     size_t size, rp_yaml **root, rp_problem *problem);

/* Parses a file. RP_NOT_FOUND if it cannot be read. */
RP_NODISCARD rp_status rp_yaml_read(rp_arena *arena, const char *file, rp_yaml **root,
                                    rp_problem *problem);

#endif

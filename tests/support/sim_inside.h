/* SPDX-License-Identifier: Apache-2.0 */
/* Private to sim_files.h: nodes and their names (sim_disk.c), and the calls on them
 * (sim_files.c).
 *
 * `stored` with the pending changes applied in order is `now`. A node has a reference for each
 * entry, change and handle that refers to it. */
#ifndef RP_TEST_SIM_INSIDE_H
#define RP_TEST_SIM_INSIDE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sim_image.h"

/* A file or a directory. */
typedef struct rp_sim_node {
    size_t refs;
    bool directory;
    rp_sim_image now, stored;
    bool *lost; /* pages that a failed sync has marked clean; NULL: none */
    size_t lost_count;
    struct rp_sim_node *twin; /* its copy, while a disk is copied */
} rp_sim_node;

typedef struct rp_sim_entry {
    char path[RP_SIM_PATH];
    rp_sim_node *node;
} rp_sim_entry;

typedef struct rp_sim_names {
    rp_sim_entry *list;
    size_t count, capacity;
} rp_sim_names;

typedef enum rp_sim_kind { RP_SIM_CREATED, RP_SIM_REMOVED, RP_SIM_RENAMED } rp_sim_kind;

/* A change of names that is not on the disk yet. */
typedef struct rp_sim_change_of_name {
    rp_sim_kind kind;
    char from[RP_SIM_PATH]; /* REMOVED, RENAMED */
    char to[RP_SIM_PATH];   /* CREATED, RENAMED */
    rp_sim_node *node;
} rp_sim_change_of_name;

struct rp_sim {
    pthread_mutex_t mu; /* recursive, for the hook */
    size_t refs;        /* its owner and its mounts */
    rp_sim_names now, stored;
    rp_sim_change_of_name *changes;
    size_t change_count, change_capacity;
    size_t handles;
    bool locked;
    uint64_t calls, cut, failed, capacity;
    size_t inodes;
    rp_sim_fault fault;
    rp_sim_hook *hook;
    void *hook_ctx;
};

static inline void *rp_sim_need(void *memory)
{
    if (memory == NULL) abort();
    return memory;
}

static inline void rp_sim_set_path(char to[RP_SIM_PATH], const char *path)
{
    if (snprintf(to, RP_SIM_PATH, "%s", path) >= RP_SIM_PATH) abort();
}

void rp_sim_lock(rp_sim *disk);
void rp_sim_unlock(rp_sim *disk);

/* Makes a node without references. */
rp_sim_node *rp_sim_node_new(bool directory);
void rp_sim_node_unref(rp_sim_node *n);

/* Returns the entry of that name; NULL if there is none. */
rp_sim_entry *rp_sim_find(const rp_sim_names *list, const char *path);
void rp_sim_names_apply(rp_sim_names *list, const rp_sim_change_of_name *c);
/* Changes the names of a disk, and adds a pending change. */
void rp_sim_change(rp_sim *disk, rp_sim_kind kind, const char *from, const char *to,
                   rp_sim_node *n);

/* Returns the length of the path of its directory. */
size_t rp_sim_parent_length(const char *path);
bool rp_sim_is_in(const char *path, const char *directory);
bool rp_sim_has_directory(const rp_sim_names *list, const char *path);
bool rp_sim_has_parent(const rp_sim_names *list, const char *path);

#endif

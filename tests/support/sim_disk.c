/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_inside.h"

rp_sim_node *rp_sim_node_new(bool directory)
{
    rp_sim_node *n = rp_sim_need(calloc(1, sizeof *n));

    n->directory = directory;
    return n;
}

void rp_sim_node_unref(rp_sim_node *n)
{
    if (n == NULL || --n->refs > 0) return;
    rp_sim_image_clear(&n->now);
    rp_sim_image_clear(&n->stored);
    free(n->lost);
    free(n);
}

rp_sim_entry *rp_sim_find(const rp_sim_names *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->list[i].path, path) == 0) return &list->list[i];
    return NULL;
}

static void names_set(rp_sim_names *list, const char *path, rp_sim_node *n)
{
    rp_sim_entry *e = rp_sim_find(list, path);

    n->refs++;
    if (e != NULL) {
        rp_sim_node_unref(e->node);
        e->node = n;
        return;
    }
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 8;
        list->list = rp_sim_need(realloc(list->list, list->capacity * sizeof *list->list));
    }
    e = &list->list[list->count++];
    rp_sim_set_path(e->path, path);
    e->node = n;
}

static void names_unset(rp_sim_names *list, const char *path)
{
    rp_sim_entry *e = rp_sim_find(list, path);

    if (e == NULL || list->list == NULL) return;
    rp_sim_node_unref(e->node);
    *e = list->list[--list->count];
}

static void names_clear(rp_sim_names *list)
{
    for (size_t i = 0; i < list->count; i++) rp_sim_node_unref(list->list[i].node);
    free(list->list);
    *list = (rp_sim_names){0};
}

void rp_sim_names_apply(rp_sim_names *list, const rp_sim_change_of_name *c)
{
    if (c->kind != RP_SIM_REMOVED) names_set(list, c->to, c->node);
    if (c->kind != RP_SIM_CREATED) names_unset(list, c->from);
}

size_t rp_sim_parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) : 0;
}

bool rp_sim_is_in(const char *path, const char *directory)
{
    size_t length = rp_sim_parent_length(path);

    return path[0] != '\0' && length == strlen(directory) &&
           strncmp(path, directory, length) == 0;
}

bool rp_sim_has_directory(const rp_sim_names *list, const char *path)
{
    const rp_sim_entry *e = rp_sim_find(list, path);

    return path[0] == '\0' || (e != NULL && e->node->directory);
}

bool rp_sim_has_parent(const rp_sim_names *list, const char *path)
{
    char parent[RP_SIM_PATH];

    rp_sim_set_path(parent, path);
    parent[rp_sim_parent_length(path)] = '\0';
    return rp_sim_has_directory(list, parent);
}

static void changes_add(rp_sim *disk, rp_sim_kind kind, const char *from, const char *to,
                        rp_sim_node *n)
{
    rp_sim_change_of_name *c;

    if (disk->change_count == disk->change_capacity) {
        disk->change_capacity = disk->change_capacity * 2 + 8;
        disk->changes =
            rp_sim_need(realloc(disk->changes, disk->change_capacity * sizeof *disk->changes));
    }
    c = &disk->changes[disk->change_count++];
    *c = (rp_sim_change_of_name){.kind = kind, .node = n};
    rp_sim_set_path(c->from, from);
    rp_sim_set_path(c->to, to);
    n->refs++;
}

void rp_sim_change(rp_sim *disk, rp_sim_kind kind, const char *from, const char *to,
                   rp_sim_node *n)
{
    changes_add(disk, kind, from, to, n);
    rp_sim_names_apply(&disk->now, &disk->changes[disk->change_count - 1]);
}

rp_sim *rp_sim_new(void)
{
    rp_sim *disk = rp_sim_need(calloc(1, sizeof *disk));
    pthread_mutexattr_t attributes;

    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&disk->mu, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    disk->refs = 1;
    return disk;
}

void rp_sim_lock(rp_sim *disk)
{
    (void)pthread_mutex_lock(&disk->mu);
}

void rp_sim_unlock(rp_sim *disk)
{
    (void)pthread_mutex_unlock(&disk->mu);
}

void rp_sim_free(rp_sim *disk)
{
    bool last;

    if (disk == NULL) return;
    rp_sim_lock(disk);
    last = --disk->refs == 0;
    rp_sim_unlock(disk);
    if (!last) return;
    names_clear(&disk->now);
    names_clear(&disk->stored);
    for (size_t i = 0; i < disk->change_count; i++) rp_sim_node_unref(disk->changes[i].node);
    free(disk->changes);
    (void)pthread_mutex_destroy(&disk->mu);
    free(disk);
}

static void node_copy_lost(rp_sim_node *to, const rp_sim_node *from)
{
    if (from->lost == NULL) return;
    to->lost = rp_sim_need(malloc(from->lost_count * sizeof *to->lost));
    memcpy(to->lost, from->lost, from->lost_count * sizeof *to->lost);
    to->lost_count = from->lost_count;
}

/* Returns the copy of a node on the new disk. Makes it at the first call. */
static rp_sim_node *twin_of(rp_sim_node *n)
{
    if (n->twin != NULL) return n->twin;
    n->twin = rp_sim_node_new(n->directory);
    rp_sim_image_copy(&n->twin->now, &n->now);
    rp_sim_image_copy(&n->twin->stored, &n->stored);
    node_copy_lost(n->twin, n);
    return n->twin;
}

static void forget_twins(rp_sim *disk)
{
    for (size_t i = 0; i < disk->now.count; i++) disk->now.list[i].node->twin = NULL;
    for (size_t i = 0; i < disk->stored.count; i++) disk->stored.list[i].node->twin = NULL;
    for (size_t i = 0; i < disk->change_count; i++) disk->changes[i].node->twin = NULL;
}

rp_sim *rp_sim_copy(rp_sim *disk)
{
    rp_sim *copy = rp_sim_new();

    rp_sim_lock(disk);
    for (size_t i = 0; i < disk->now.count; i++)
        names_set(&copy->now, disk->now.list[i].path, twin_of(disk->now.list[i].node));
    for (size_t i = 0; i < disk->stored.count; i++)
        names_set(&copy->stored, disk->stored.list[i].path, twin_of(disk->stored.list[i].node));
    for (size_t i = 0; i < disk->change_count; i++) {
        const rp_sim_change_of_name *c = &disk->changes[i];
        changes_add(copy, c->kind, c->from, c->to, twin_of(c->node));
    }
    copy->capacity = disk->capacity;
    forget_twins(disk);
    rp_sim_unlock(disk);
    return copy;
}

size_t rp_sim_open_handles(rp_sim *disk)
{
    size_t handles;

    rp_sim_lock(disk);
    handles = disk->handles;
    rp_sim_unlock(disk);
    return handles;
}

/* Sets `taken` to true for the pending changes that reach the disk. */
static void choose_changes(const rp_sim *disk, rp_sim_variant variant, rp_rng *rng, bool *taken)
{
    rp_sim_kind kind = variant == RP_SIM_LOST_RENAME ? RP_SIM_RENAMED : RP_SIM_CREATED;
    size_t count = disk->change_count, of_kind = 0, lost;

    for (size_t i = 0; i < count; i++) {
        taken[i] = variant != RP_SIM_NONE;
        of_kind += disk->changes[i].kind == kind;
    }
    if (variant == RP_SIM_NONE || variant == RP_SIM_ALL) return;
    if (variant != RP_SIM_LOST_RENAME && variant != RP_SIM_LOST_ENTRY) {
        if (rp_rng_below(rng, 4) > 0) return; /* this variant is not about names */
        for (size_t i = rp_rng_below(rng, count + 1); i < count; i++) taken[i] = false;
        return;
    }
    if (of_kind == 0) return;
    lost = rp_rng_below(rng, of_kind); /* this change is always lost */
    for (size_t i = 0; i < count; i++) {
        if (disk->changes[i].kind != kind) continue;
        if (lost == 0 || rp_rng_below(rng, 3) == 0) taken[i] = false;
        lost--; /* wraps below 0, and is then never 0 again */
    }
}

/* Returns the copy of a file after the power cut. */
static rp_sim_node *survivor_of(rp_sim_node *n, rp_sim_variant variant, rp_rng *rng)
{
    rp_sim_image now = {0};

    if (n->twin != NULL) return n->twin;
    n->twin = rp_sim_node_new(n->directory);
    rp_sim_image_copy(&now, &n->now);
    for (size_t i = 0; i < n->lost_count; i++)
        if (n->lost[i]) rp_sim_image_share(&now, &n->stored, i);
    rp_sim_image_after(&n->twin->now, &n->stored, &now, variant, rng);
    rp_sim_image_copy(&n->twin->stored, &n->twin->now);
    rp_sim_image_clear(&now);
    return n->twin;
}

rp_sim *rp_sim_after(rp_sim *disk, rp_sim_variant variant, uint64_t seed)
{
    rp_sim *after = rp_sim_new();
    rp_sim_names left = {0};
    bool *taken;
    rp_rng rng;

    rp_rng_init(&rng, seed);
    rp_sim_lock(disk);
    taken = rp_sim_need(malloc((disk->change_count + 1) * sizeof *taken));
    choose_changes(disk, variant, &rng, taken);
    for (size_t i = 0; i < disk->stored.count; i++)
        names_set(&left, disk->stored.list[i].path, disk->stored.list[i].node);
    for (size_t i = 0; i < disk->change_count; i++)
        if (taken[i]) rp_sim_names_apply(&left, &disk->changes[i]);
    for (size_t i = 0; i < left.count; i++) {
        const rp_sim_entry *e = &left.list[i];
        rp_sim_node *n;
        if (!rp_sim_has_parent(&left, e->path)) continue; /* lost with its directory */
        n = survivor_of(e->node, variant, &rng);
        names_set(&after->now, e->path, n);
        names_set(&after->stored, e->path, n);
    }
    for (size_t i = 0; i < left.count; i++) left.list[i].node->twin = NULL;
    names_clear(&left);
    after->capacity = disk->capacity;
    rp_sim_unlock(disk);
    free(taken);
    return after;
}

void rp_sim_cut(rp_sim *disk, uint64_t number)
{
    rp_sim_lock(disk);
    disk->cut = number;
    rp_sim_unlock(disk);
}

uint64_t rp_sim_calls(rp_sim *disk)
{
    uint64_t calls;

    rp_sim_lock(disk);
    calls = disk->calls;
    rp_sim_unlock(disk);
    return calls;
}

void rp_sim_on_call(rp_sim *disk, rp_sim_hook *hook, void *ctx)
{
    rp_sim_lock(disk);
    disk->hook = hook;
    disk->hook_ctx = ctx;
    rp_sim_unlock(disk);
}

static rp_sim_node *find_file(rp_sim *disk, const char *path)
{
    const rp_sim_entry *e = rp_sim_find(&disk->now, path);

    return e != NULL && !e->node->directory ? e->node : NULL;
}

static bool overwrite(rp_sim_node *n, uint64_t offset, const void *data, size_t size)
{
    if (n == NULL || offset + size > n->now.size) return false;
    rp_sim_image_write(&n->now, offset, data, size);
    if (offset + size <= n->stored.size) rp_sim_image_write(&n->stored, offset, data, size);
    return true;
}

bool rp_sim_overwrite(rp_sim *disk, const char *path, uint64_t offset, const void *data,
                      size_t size)
{
    bool done;

    rp_sim_lock(disk);
    done = overwrite(find_file(disk, path), offset, data, size);
    rp_sim_unlock(disk);
    return done;
}

bool rp_sim_flip(rp_sim *disk, const char *path, uint64_t bit)
{
    uint8_t byte = 0;
    bool done;
    rp_sim_node *n;

    rp_sim_lock(disk);
    n = find_file(disk, path);
    done = n != NULL && rp_sim_image_read(&n->now, bit / 8, &byte, 1) == 1;
    byte ^= (uint8_t)(1 << bit % 8);
    done = done && overwrite(n, bit / 8, &byte, 1);
    rp_sim_unlock(disk);
    return done;
}

bool rp_sim_resize(rp_sim *disk, const char *path, uint64_t size)
{
    rp_sim_node *n;

    rp_sim_lock(disk);
    n = find_file(disk, path);
    if (n != NULL) {
        rp_sim_image_resize(&n->now, size);
        rp_sim_image_resize(&n->stored, size);
    }
    rp_sim_unlock(disk);
    return n != NULL;
}

bool rp_sim_put(rp_sim *disk, const char *path, const void *data, size_t size)
{
    rp_sim_node *n = rp_sim_node_new(false);
    bool done;

    rp_sim_lock(disk);
    rp_sim_image_write(&n->now, 0, data, size);
    rp_sim_image_copy(&n->stored, &n->now);
    n->refs++;
    done = rp_sim_has_parent(&disk->now, path);
    if (done) {
        names_set(&disk->now, path, n);
        names_set(&disk->stored, path, n);
    }
    rp_sim_node_unref(n);
    rp_sim_unlock(disk);
    return done;
}

bool rp_sim_delete(rp_sim *disk, const char *path)
{
    bool done;

    rp_sim_lock(disk);
    done = find_file(disk, path) != NULL;
    if (done) {
        names_unset(&disk->now, path);
        names_unset(&disk->stored, path);
    }
    rp_sim_unlock(disk);
    return done;
}

size_t rp_sim_read(rp_sim *disk, const char *path, uint64_t offset, void *data, size_t size)
{
    size_t got = 0;
    rp_sim_node *n;

    rp_sim_lock(disk);
    n = find_file(disk, path);
    if (n != NULL) got = rp_sim_image_read(&n->now, offset, data, size);
    rp_sim_unlock(disk);
    return got;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const rp_sim_entry *)a)->path, ((const rp_sim_entry *)b)->path);
}

void rp_sim_list(rp_sim *disk, void (*each)(void *ctx, const char *path, uint64_t size),
                 void *ctx)
{
    rp_sim_lock(disk);
    if (disk->now.count > 0)
        qsort(disk->now.list, disk->now.count, sizeof *disk->now.list, by_path);
    for (size_t i = 0; i < disk->now.count; i++)
        if (!disk->now.list[i].node->directory)
            each(ctx, disk->now.list[i].path, disk->now.list[i].node->now.size);
    rp_sim_unlock(disk);
}

void rp_sim_fail(rp_sim *disk, const rp_sim_fault *fault)
{
    rp_sim_lock(disk);
    disk->fault = *fault;
    disk->failed = 0;
    rp_sim_unlock(disk);
}

uint64_t rp_sim_failed(rp_sim *disk)
{
    uint64_t failed;

    rp_sim_lock(disk);
    failed = disk->failed;
    rp_sim_unlock(disk);
    return failed;
}

void rp_sim_set_capacity(rp_sim *disk, uint64_t bytes)
{
    rp_sim_lock(disk);
    disk->capacity = bytes;
    rp_sim_unlock(disk);
}

void rp_sim_set_inodes(rp_sim *disk, size_t count)
{
    rp_sim_lock(disk);
    disk->inodes = count;
    rp_sim_unlock(disk);
}

void rp_sim_drop_caches(rp_sim *disk)
{
    rp_sim_lock(disk);
    for (size_t i = 0; i < disk->now.count; i++) {
        rp_sim_node *n = disk->now.list[i].node;
        for (size_t page = 0; page < n->lost_count; page++)
            if (n->lost[page]) rp_sim_image_share(&n->now, &n->stored, page);
    }
    rp_sim_unlock(disk);
}

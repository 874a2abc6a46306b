/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/memory_size.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/text/units.h"

enum { PATH_BYTES = 4096 };

/* Returns the number in a file, or UINT64_MAX if there is none: no file, or "max". */
static uint64_t number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    char text[64] = "";
    uint64_t value;

    if (file == NULL) return UINT64_MAX;
    if (fgets(text, (int)sizeof text, file) == NULL) text[0] = '\0';
    (void)fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return rp_parse_unsigned(text, &value) ? value : UINT64_MAX;
}

/* Returns the smallest limit of a group and of the groups that contain it. */
static uint64_t group_limit(const char *mount, char *group, const char *file)
{
    uint64_t least = UINT64_MAX, limit;
    char path[PATH_BYTES], *slash;

    assert(mount != NULL && group != NULL);
    for (;;) {
        if (snprintf(path, sizeof path, "%s%s/%s", mount, group, file) < (int)sizeof path) {
            limit = number_in(path);
            if (limit < least) least = limit;
        }
        slash = strrchr(group, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

/* Returns true if a list of controllers such as "cpu,memory" contains "memory". */
static bool names_memory(const char *controllers)
{
    for (const char *p = controllers; *p != '\0'; p += strspn(p, ",")) {
        size_t length = strcspn(p, ",");

        if (length == strlen("memory") && strncmp(p, "memory", length) == 0) return true;
        p += length;
    }
    return false;
}

/* Lines of /proc/self/cgroup are "id:controllers:/group"; version 2 has no controllers. */
static uint64_t cgroup_limit(const char *root)
{
    char path[PATH_BYTES], line[PATH_BYTES], *controllers, *group;
    uint64_t least = UINT64_MAX, limit;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    if (file == NULL) return least;
    while (fgets(line, (int)sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        controllers = strchr(line, ':');
        group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        *controllers++ = '\0';
        *group++ = '\0';
        limit = UINT64_MAX;
        if (controllers[0] == '\0') {
            (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup", root);
            limit = group_limit(path, group, "memory.max");
        } else if (names_memory(controllers)) {
            (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/memory", root);
            limit = group_limit(path, group, "memory.limit_in_bytes");
        }
        if (limit < least) least = limit;
    }
    (void)fclose(file);
    return least;
}

uint64_t rp_memory_size(const char *root)
{
    uint64_t limit = cgroup_limit(root);
    long pages = root[0] == '\0' ? sysconf(_SC_PHYS_PAGES) : -1;
    long page_bytes = sysconf(_SC_PAGESIZE);

    if (pages > 0 && page_bytes > 0 && (uint64_t)pages * (uint64_t)page_bytes < limit)
        limit = (uint64_t)pages * (uint64_t)page_bytes;
    return limit == UINT64_MAX ? 0 : limit;
}

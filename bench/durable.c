/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs that data outlives its process, and that there may be more of it than memory.
 * Works on files beside the program itself, so on the disk that it was built on. */
#include <limits.h>
#include <unistd.h>

#include "bench.h"
#include "durable_tier.h"

/* A folder that is not there yet, beside the program. */
static void choose_folder(char *out, size_t size)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    if (length < 0) bench_check(RP_UNAVAILABLE, NULL);
    path[length] = '\0';
    snprintf(out, size, "%s-%ld", path, (long)getpid());
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "durability against the disk alone");
    char folder[PATH_MAX + 32];

    choose_folder(folder, sizeof folder);
    bench_durable_tier(folder, options.quick);
    return 0;
}

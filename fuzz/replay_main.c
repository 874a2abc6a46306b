/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over stored inputs, without a fuzzing engine: each file named on the
 * command line, and each file of each folder named there. It needs no particular compiler, so
 * the ordinary tests run the corpora. */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

enum { MAX_INPUT_BYTES = 1 << 20 };

/* Runs one file. False if it could not be read. */
static int replay_file(const char *path)
{
    static uint8_t bytes[MAX_INPUT_BYTES];
    FILE *file = fopen(path, "rb");
    uint8_t *exact;
    size_t size;

    if (file == NULL) return 0;
    size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    exact = malloc(size > 0 ? size : 1); /* for sanitizers: exactly its size */
    if (exact == NULL) return 0;
    memcpy(exact, bytes, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static long replay(const char *path);

static long replay_folder(DIR *folder, const char *path)
{
    const struct dirent *entry;
    char inner[4096];
    long count = 0, done;

    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner)
            return -1;
        done = replay(inner);
        if (done < 0) return done;
        count += done;
    }
    return count;
}

/* Runs a file, or all files below a folder. Returns their number; -1 if one could not be read.
 */
static long replay(const char *path)
{
    DIR *folder = opendir(path);
    long count;

    if (folder == NULL) return replay_file(path) ? 1 : -1;
    count = replay_folder(folder, path);
    (void)closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    long count = 0;

    for (int i = 1; i < argc; i++) {
        long done = replay(argv[i]);
        if (done < 0) {
            (void)fprintf(stderr, "%s: could not be read\n", argv[i]);
            return 1;
        }
        count += done;
    }
    (void)printf("%ld inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kill points: every RP_KILL_POINT of the sources ends a process once, in the middle of the
 * operation that it names, on the system's own files. After that, all acknowledged data must be
 * there. All kill points must be reached. Only in builds that have them (-Dkill_points=true).
 *
 * With RP_TEST_SCALE 5 and more, a process ends at the first to the fifth pass of each. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/durable_rig.h"

#ifndef RP_KILL_POINTS

static void acknowledged_changes_survive_every_kill_point(void **state)
{
    (void)state;
    skip();
}

#else

enum { STEPS = 60, MAX_POINTS = 128, NAME_BYTES = 64, LINE_BYTES = 512 };

typedef struct points {
    char names[MAX_POINTS][NAME_BYTES];
    size_t count;
} points;

/* Shared with the processes that die. */
typedef struct shared {
    rp_rig rig;
    uint64_t digests[3 * STEPS + 16];
    size_t checkpoints[3 * STEPS + 16];
    uint32_t crcs[RP_RIG_CHUNKS];
} shared;

static void find_names(points *p, const char *folder)
{
    char path[LINE_BYTES], line[LINE_BYTES];
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/%s", RP_TEST_SOURCES, folder);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);
        FILE *file;

        if (length < 2 || strcmp(entry->d_name + length - 2, ".c") != 0) continue;
        (void)snprintf(path, sizeof path, "%s/%s/%s", RP_TEST_SOURCES, folder, entry->d_name);
        file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file) != NULL) {
            const char *at = strstr(line, "RP_KILL_POINT(\"");

            if (at == NULL) continue;
            assert_true(p->count < MAX_POINTS);
            (void)snprintf(p->names[p->count], NAME_BYTES, "%.*s", (int)strcspn(at + 15, "\""),
                           at + 15);
            p->count++;
        }
        (void)fclose(file);
    }
    (void)closedir(dir);
}

static rp_files *open_files(const char *folder)
{
    rp_files *files = NULL;
    rp_error err = {0};

    assert_ok_err(rp_files_open_directory(rp_allocator_default(), folder, &files, &err), &err);
    return files;
}

/* Runs in the child: opens the store, continues the script, and ends. `in_order`: closes the
 * store first. */
static void live(shared *s, const char *folder, size_t steps, bool in_order)
{
    rp_rig *r = &s->rig;
    size_t step = 0;

    r->store = NULL;
    r->durable = NULL;
    r->files = NULL;
    memset(r->recent, 0, sizeof r->recent);
    r->last_chunk = NULL;
    if (rp_rig_try_open_on(r, open_files(folder), &r->err) != RP_OK) _exit(2);
    if (atomic_load(&r->started) == 0) r->digests[0] = rp_rig_digest(r);
    if (!rp_rig_find(r, rp_rig_digest(r), rp_rig_promised(r, false), atomic_load(&r->started),
                     &step))
        _exit(3);
    atomic_store(&r->started, step);
    r->options.steps = step + steps;
    while (rp_rig_step(r))
        ;
    if (rp_rig_checkpoint(r) != RP_OK || r->failed_steps > 0) _exit(4);
    r->options.steps += 8; /* so that there are log records to redo */
    r->options.checkpoint_every = 0;
    while (rp_rig_step(r))
        ;
    if (in_order && rp_rig_close(r) != RP_OK) _exit(5);
    _exit(0);
}

static int in_child(shared *s, const char *folder, size_t steps, bool in_order,
                    const char *kill_at)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (kill_at != NULL) (void)setenv("RP_KILL", kill_at, 1);
        live(s, folder, steps, in_order);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Overwrites a part of the manifest with the highest number. */
static void damage_newest(const char *folder)
{
    char command[256];

    (void)snprintf(command, sizeof command,
                   "printf xx | dd of=\"$(ls %s/manifest/* | tail -1)\" bs=1 seek=100 "
                   "conv=notrunc 2>/dev/null",
                   folder);
    assert_int_equal(system(command), 0);
}

/* Ends a process at the kill point. Returns true if the point was reached. */
static bool die_at(const char *name, int pass, rp_durability mode)
{
    rp_rig_options options = {.seed = 3 + (uint64_t)mode,
                              .mode = mode,
                              .steps = 3 * STEPS,
                              .checkpoint_every = 9,
                              .segment_bytes = 1500,
                              .journal_bytes = 900};
    char folder[] = "./reprise-point-XXXXXX", kill_at[NAME_BYTES + 8], command[128];
    shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rp_rig_recovered got;
    int status;

    /* Data that is written in pieces must be large. */
    if (strcmp(name, "checkpoint.segments") == 0) options.chunk_bytes = 4 << 20;
    assert_true(s != MAP_FAILED);
    assert_non_null(mkdtemp(folder));
    rp_rig_init(&s->rig, &options);
    free(s->rig.digests);
    free(s->rig.checkpoints);
    free(s->rig.crcs);
    s->rig.digests = s->digests;
    s->rig.checkpoints = s->checkpoints;
    s->rig.crcs = s->crcs;
    status = in_child(s, folder, STEPS / 2, false, NULL);
    if (status != 0) fail_msg("mode %d: the first life ends with %d", (int)mode, status);
    if (strcmp(name, "recovery.quarantine") == 0) {
        if (mode != RP_DURABLE_CHECKPOINT) goto out; /* the journal needs the newest */
        damage_newest(folder);
        atomic_store(&s->rig.checkpointed, 0); /* the checkpoint before is sufficient */
    }
    s->rig.options.checkpoint_every = 9;
    (void)snprintf(kill_at, sizeof kill_at, "%s:%d", name, pass);
    status = in_child(s, folder, STEPS, true, kill_at);
    if (!WIFSIGNALED(status) && status != 0)
        fail_msg("mode %d: to %s, the second life ends with %d", (int)mode, kill_at, status);
    rp_rig_recover_on(&s->rig, open_files(folder), &got);
    if (got.status != RP_OK || !got.sound ||
        (!rp_rig_find(&s->rig, got.digest, rp_rig_promised(&s->rig, false),
                      atomic_load(&s->rig.started), NULL) &&
         !rp_rig_is_next(&s->rig, &got)))
        fail_msg("mode %d, killed at %s: %s %s, sound %d, promised %zu of %zu; %s", (int)mode,
                 kill_at, rp_status_name(got.status), got.err.text, got.sound,
                 rp_rig_promised(&s->rig, false), atomic_load(&s->rig.started), folder);
out:
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(munmap(s, sizeof *s), 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void acknowledged_changes_survive_every_kill_point(void **state)
{
    int passes = rp_test_scale() >= 5 ? 5 : 1;
    size_t missed = 0, kills = 0;
    points *p = calloc(1, sizeof *p);

    (void)state;
    assert_non_null(p);
    find_names(p, "durable");
    find_names(p, "disk");
    for (size_t i = 0; i < p->count; i++) {
        bool reached = false;

        for (int pass = 1; pass <= passes; pass++)
            for (int mode = 0; mode < 3; mode++)
                if (die_at(p->names[i], pass, (rp_durability)mode)) {
                    kills++;
                    reached = true;
                }
        if (!reached) {
            print_error("'%s' is never reached\n", p->names[i]);
            missed++;
        }
    }
    print_message("# %zu points, %zu kills\n", p->count, kills);
    assert_true(p->count > 5);
    assert_int_equal(missed, 0);
    free(p);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_changes_survive_every_kill_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

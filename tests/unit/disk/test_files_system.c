/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk/files.h"
#include "support/unit.h"

/* A directory of the test's own, beside where it runs: a real disk where that is one. */
typedef struct scene {
    char directory[64];
    rp_files *fs;
} scene;

static int arrange(void **state)
{
    scene *s = calloc(1, sizeof *s);
    rp_error err;

    assert_non_null(s);
    (void)snprintf(s->directory, sizeof s->directory, "files_test_XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_ok_err(rp_files_open_directory(rp_allocator_default(), s->directory, &s->fs, &err),
                  &err);
    *state = s;
    return 0;
}

static int tidy(void **state)
{
    scene *s = *state;
    char command[128];

    s->fs->ops->free(s->fs);
    (void)snprintf(command, sizeof command, "rm -rf %s", s->directory);
    assert_int_equal(system(command), 0);
    free(s);
    return 0;
}

static rp_file *create(rp_files *fs, const char *path)
{
    rp_file *file = NULL;
    rp_error err;

    assert_ok_err(fs->ops->open(fs, path, RP_OPEN_CREATE, &file, &err), &err);
    return file;
}

static char *in_directory(const scene *s, const char *path, char out[128])
{
    (void)snprintf(out, 128, "%s/%s", s->directory, path);
    return out;
}

static void written_bytes_are_read_back(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *file = create(fs, "a"), *again = NULL;
    char data[16] = "";
    uint64_t size;
    size_t got;

    assert_ok(fs->ops->write(file, 3, (rp_bytes[]){{"hel", 3}, {"", 0}, {NULL, 0}, {"lo", 2}},
                             4, NULL));
    assert_ok(fs->ops->sync(file, NULL));
    assert_ok(fs->ops->size(file, &size, NULL));
    assert_int_equal(size, 8);
    fs->ops->close(file);

    assert_ok(fs->ops->open(fs, "a", RP_OPEN_READ, &again, NULL));
    assert_ok(fs->ops->read(again, 1, data, sizeof data, &got, NULL));
    assert_int_equal(got, 7);
    assert_memory_equal(data, "\0\0hello", 7);
    assert_ok(fs->ops->read(again, 100, data, sizeof data, &got, NULL));
    assert_int_equal(got, 0);
    fs->ops->close(again);
}

static void a_read_fills_several_buffers(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *file = create(fs, "a");
    char one[3], two[8] = "";
    size_t got;

    assert_ok(fs->ops->write(file, 0, &(rp_bytes){"0123456789", 10}, 1, NULL));
    assert_ok(fs->ops->read_into(file, 2, (rp_read_part[]){{one, 3}, {NULL, 0}, {two, 4}}, 3,
                                 &got, NULL));
    assert_int_equal(got, 7);
    assert_memory_equal(one, "234", 3);
    assert_string_equal(two, "5678");
    assert_ok(fs->ops->read_into(file, 6, (rp_read_part[]){{one, 3}, {two, 4}}, 2, &got, NULL));
    assert_int_equal(got, 4);
    assert_memory_equal(one, "678", 3);
    assert_string_equal(two, "9678");
    fs->ops->close(file);
}

/* More parts than the system takes in a call. */
static void many_parts_are_written_in_order(void **state)
{
    enum { PARTS = 5000 };
    rp_files *fs = ((scene *)*state)->fs;
    static uint8_t bytes[PARTS * 3], got_bytes[PARTS * 3];
    static rp_bytes parts[PARTS];
    rp_file *file = create(fs, "many");
    size_t at = 0, got;

    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (rp_bytes){bytes + at, i % 7 == 0 ? 0 : 1 + i % 3};
        at += parts[i].size;
    }
    assert_ok(fs->ops->write(file, 0, parts, PARTS, NULL));
    assert_ok(fs->ops->read(file, 0, got_bytes, sizeof got_bytes, &got, NULL));
    assert_int_equal(got, at);
    assert_memory_equal(got_bytes, bytes, at);
    assert_ok(fs->ops->write(file, 5, parts, 0, NULL));
    fs->ops->close(file);
}

static void missing_and_existing_files_have_their_statuses(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *file = NULL;
    rp_error err;

    assert_fails(fs->ops->open(fs, "none", RP_OPEN_READ, &file, &err), RP_NOT_FOUND, &err,
                 "none: open: No such file");
    assert_fails(fs->ops->open(fs, "none", RP_OPEN_WRITE, &file, &err), RP_NOT_FOUND, &err,
                 "none");
    assert_fails(fs->ops->open(fs, "no/where", RP_OPEN_CREATE, &file, &err), RP_NOT_FOUND, &err,
                 "no/where");
    fs->ops->close(create(fs, "a"));
    assert_fails(fs->ops->open(fs, "a", RP_OPEN_CREATE, &file, &err), RP_EXISTS, &err,
                 "a: open");
    assert_fails(fs->ops->remove(fs, "none", &err), RP_NOT_FOUND, &err, "none: unlink");
    assert_fails(fs->ops->rename(fs, "none", "b", &err), RP_NOT_FOUND, &err, "none: rename");
    assert_fails(fs->ops->make_directory(fs, "a", &err), RP_EXISTS, &err, "a: mkdir");
    assert_fails(fs->ops->sync_directory(fs, "none", &err), RP_NOT_FOUND, &err, "none: open");
}

static void paths_that_lead_out_are_refused(void **state)
{
    static const char *const wrong[] = {"/etc/passwd", "..",  "../a",  "a/../b", "a//b",
                                        "a/",          "./a", "a/./b", "."};
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *file = NULL;
    char far[300];
    rp_error err;

    memset(far, 'a', sizeof far);
    far[sizeof far - 1] = '\0';
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_fails(fs->ops->open(fs, wrong[i], RP_OPEN_CREATE, &file, &err), RP_INVALID, &err,
                     wrong[i]);
        assert_int_equal(fs->ops->remove(fs, wrong[i], &err), RP_INVALID);
        assert_int_equal(fs->ops->rename(fs, wrong[i], "b", &err), RP_INVALID);
        assert_int_equal(fs->ops->rename(fs, "b", wrong[i], &err), RP_INVALID);
        assert_int_equal(fs->ops->make_directory(fs, wrong[i], &err), RP_INVALID);
        assert_int_equal(fs->ops->sync_directory(fs, wrong[i], &err), RP_INVALID);
        assert_int_equal(fs->ops->lock(fs, wrong[i], &err), RP_INVALID);
    }
    assert_int_equal(fs->ops->open(fs, "", RP_OPEN_CREATE, &file, &err), RP_INVALID);
    assert_int_equal(fs->ops->open(fs, far, RP_OPEN_CREATE, &file, &err), RP_INVALID);
}

static void links_are_not_followed(void **state)
{
    scene *s = *state;
    rp_files *fs = s->fs;
    rp_file *file = NULL;
    char path[128];

    assert_ok(fs->ops->make_directory(fs, "real", NULL));
    fs->ops->close(create(fs, "real/a"));
    assert_int_equal(symlink("real", in_directory(s, "link", path)), 0);
    assert_int_equal(symlink("real/a", in_directory(s, "file", path)), 0);
    assert_int_equal(fs->ops->open(fs, "link/a", RP_OPEN_READ, &file, NULL), RP_UNAVAILABLE);
    assert_int_equal(fs->ops->open(fs, "file", RP_OPEN_WRITE, &file, NULL), RP_UNAVAILABLE);
    assert_int_not_equal(fs->ops->remove(fs, "link/a", NULL), RP_OK);
    assert_int_not_equal(fs->ops->rename(fs, "link/a", "b", NULL), RP_OK);
    assert_int_not_equal(fs->ops->make_directory(fs, "link/b", NULL), RP_OK);
    assert_int_not_equal(fs->ops->sync_directory(fs, "link", NULL), RP_OK);
    assert_int_not_equal(fs->ops->lock(fs, "file", NULL), RP_OK);
    assert_ok(fs->ops->remove(fs, "link", NULL)); /* the link, not what it leads to */
    assert_ok(fs->ops->open(fs, "real/a", RP_OPEN_READ, &file, NULL));
    fs->ops->close(file);
}

static void only_regular_files_are_opened(void **state)
{
    scene *s = *state;
    rp_file *file = NULL;
    char path[128];
    rp_error err;

    assert_int_equal(mkfifo(in_directory(s, "pipe", path), 0600), 0);
    assert_fails(s->fs->ops->open(s->fs, "pipe", RP_OPEN_READ, &file, &err), RP_UNAVAILABLE,
                 &err, "not a regular file");
    assert_ok(s->fs->ops->make_directory(s->fs, "d", NULL));
    assert_int_equal(s->fs->ops->open(s->fs, "d", RP_OPEN_READ, &file, &err), RP_UNAVAILABLE);
}

static void note_name(void *ctx, const char *name)
{
    char *names = ctx;

    (void)strncat(names, name, 60 - strlen(names));
}

static void directories_are_made_listed_and_synced(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    char names[64] = "";

    assert_ok(fs->ops->make_directory(fs, "d", NULL));
    assert_ok(fs->ops->make_directory(fs, "d", NULL));
    fs->ops->close(create(fs, "d/x"));
    assert_ok(fs->ops->rename(fs, "d/x", "d/y", NULL));
    assert_ok(fs->ops->list(fs, "d", note_name, names, NULL));
    assert_string_equal(names, "y");
    assert_ok(fs->ops->sync_directory(fs, "d", NULL));
    assert_ok(fs->ops->sync_directory(fs, "", NULL));
    names[0] = '\0';
    assert_ok(fs->ops->list(fs, "", note_name, names, NULL));
    assert_string_equal(names, "d");
    assert_int_equal(fs->ops->list(fs, "e", note_name, names, NULL), RP_NOT_FOUND);
}

static void a_rename_replaces(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *old = create(fs, "old"), *new = create(fs, "new"), *file = NULL;
    char data[8] = "";
    size_t got;

    assert_ok(fs->ops->write(old, 0, &(rp_bytes){"old", 3}, 1, NULL));
    assert_ok(fs->ops->write(new, 0, &(rp_bytes){"new", 3}, 1, NULL));
    assert_ok(fs->ops->rename(fs, "new", "old", NULL));
    assert_ok(fs->ops->open(fs, "old", RP_OPEN_READ, &file, NULL));
    assert_ok(fs->ops->read(file, 0, data, sizeof data, &got, NULL));
    assert_string_equal(data, "new");
    /* What was replaced stays readable for who has it open. */
    assert_ok(fs->ops->read(old, 0, data, sizeof data, &got, NULL));
    assert_memory_equal(data, "old", 3);
    fs->ops->close(file);
    fs->ops->close(old);
    fs->ops->close(new);
}

static void a_file_is_truncated(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    rp_file *file = create(fs, "a");
    uint64_t size;

    assert_ok(fs->ops->write(file, 0, &(rp_bytes){"0123456789", 10}, 1, NULL));
    assert_ok(fs->ops->truncate(file, 4, NULL));
    assert_ok(fs->ops->size(file, &size, NULL));
    assert_int_equal(size, 4);
    assert_int_equal(fs->ops->truncate(file, UINT64_MAX, NULL), RP_NO_RESOURCE);
    assert_int_equal(fs->ops->write(file, UINT64_MAX - 2, &(rp_bytes){"0123", 4}, 1, NULL),
                     RP_NO_RESOURCE);
    fs->ops->close(file);
}

static void a_lock_is_exclusive(void **state)
{
    scene *s = *state;
    rp_files *other = NULL;
    char text[64];
    rp_error err;

    (void)snprintf(text, sizeof text, "process %ld has this directory: that is this process",
                   (long)getpid());
    assert_ok(s->fs->ops->lock(s->fs, "LOCK", &err));
    assert_ok(rp_files_open_directory(rp_allocator_default(), s->directory, &other, &err));
    assert_fails(other->ops->lock(other, "LOCK", &err), RP_PRECONDITION, &err, text);
    s->fs->ops->free(s->fs);
    s->fs = other;
    assert_ok(other->ops->lock(other, "LOCK", &err));
}

/* The file is there, with a number in it, and nobody has it. */
static void a_lock_file_of_a_dead_process_is_free(void **state)
{
    scene *s = *state;
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        rp_files *fs = NULL;
        if (rp_files_open_directory(rp_allocator_default(), s->directory, &fs, NULL) != RP_OK ||
            fs->ops->lock(fs, "LOCK", NULL) != RP_OK)
            _exit(1);
        _exit(0); /* as if killed */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(s->fs->ops->lock(s->fs, "LOCK", NULL));
}

static void a_child_does_not_keep_the_lock(void **state)
{
    scene *s = *state;
    int ends[2], born[2];
    pid_t child;
    rp_files *fresh = NULL;
    char byte;

    assert_ok(s->fs->ops->lock(s->fs, "LOCK", NULL));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(born), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[1]);
        (void)!write(born[1], "", 1);
        while (read(ends[0], &byte, 1) > 0) {}
        _exit(0);
    }
    assert_int_equal(read(born[0], &byte, 1), 1);
    s->fs->ops->free(s->fs);
    assert_ok(rp_files_open_directory(rp_allocator_default(), s->directory, &fresh, NULL));
    s->fs = fresh;
    assert_ok(fresh->ops->lock(fresh, "LOCK", NULL));
    (void)close(ends[1]);
    (void)close(ends[0]);
    (void)close(born[0]);
    (void)close(born[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void running_out_of_descriptors_is_a_lack_of_resources(void **state)
{
    rp_files *fs = ((scene *)*state)->fs;
    struct rlimit old, few;
    rp_file *file = NULL;
    rp_status st;
    rp_error err;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = 3, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    st = fs->ops->open(fs, "a", RP_OPEN_CREATE, &file, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_fails(st, RP_NO_RESOURCE, &err, "a: open: Too many open files");
}

static void a_directory_is_made_if_its_parent_is_there(void **state)
{
    scene *s = *state;
    rp_files *fs = NULL;
    char path[128];
    rp_error err;

    assert_ok(rp_files_open_directory(rp_allocator_default(), in_directory(s, "new", path), &fs,
                                      &err));
    fs->ops->close(create(fs, "a"));
    fs->ops->free(fs);
    assert_fails(rp_files_open_directory(rp_allocator_default(),
                                         in_directory(s, "no/where", path), &fs, &err),
                 RP_NOT_FOUND, &err, "no/where");
    assert_int_equal(rp_files_open_directory(rp_allocator_default(),
                                             in_directory(s, "new/a", path), &fs, &err),
                     RP_NOT_FOUND);
}

static const char *oom_directory;

static rp_status open_and_create(const rp_allocator *alloc)
{
    rp_file *file = NULL;
    rp_files *fs = NULL;
    rp_status st = rp_files_open_directory(alloc, oom_directory, &fs, NULL);

    if (st == RP_OK) st = fs->ops->open(fs, "oom", RP_OPEN_CREATE, &file, NULL);
    if (file != NULL) fs->ops->close(file);
    if (fs != NULL) fs->ops->free(fs);
    return st;
}

static void memory_may_run_out_at_any_point(void **state)
{
    oom_directory = ((scene *)*state)->directory;
    rp_test_survives_oom(open_and_create);
}

/* proc reports no blocks, as ramfs does. */
static void a_file_system_without_blocks_is_not_full(void **state)
{
    uint64_t total = 0, available = 0;
    rp_files *fs = NULL;
    rp_error err;

    (void)state;
    assert_ok_err(rp_files_open_directory(rp_allocator_default(), "/proc", &fs, &err), &err);
    assert_ok_err(fs->ops->space(fs, &total, &available, &err), &err);
    assert_true(total == INT64_MAX && available == INT64_MAX);
    fs->ops->free(fs);
}

RP_TESTS(files_system)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, arrange, tidy)
    const struct CMUnitTest tests[] = {
        TEST(written_bytes_are_read_back),
        TEST(a_read_fills_several_buffers),
        TEST(many_parts_are_written_in_order),
        TEST(missing_and_existing_files_have_their_statuses),
        TEST(paths_that_lead_out_are_refused),
        TEST(links_are_not_followed),
        TEST(only_regular_files_are_opened),
        TEST(directories_are_made_listed_and_synced),
        TEST(a_rename_replaces),
        TEST(a_file_is_truncated),
        TEST(a_lock_is_exclusive),
        TEST(a_lock_file_of_a_dead_process_is_free),
        TEST(a_child_does_not_keep_the_lock),
        TEST(running_out_of_descriptors_is_a_lack_of_resources),
        TEST(a_directory_is_made_if_its_parent_is_there),
        TEST(memory_may_run_out_at_any_point),
        cmocka_unit_test(a_file_system_without_blocks_is_not_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

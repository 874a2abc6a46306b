/* SPDX-License-Identifier: Apache-2.0 */
#include "util/shared_arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/unit.h"
#include "util/mem.h"
#include "util/rng.h"
#include "util/shared_map.h"

enum { MIB = 1 << 20, MIN = RP_SHARED_MIN_BYTES };

static rp_error err;

static rp_shared_arena *make(size_t reserve, size_t step)
{
    rp_shared_arena *arena;

    assert_ok_err(rp_shared_arena_new(rp_allocator_default(), reserve, step, &arena, &err),
                  &err);
    return arena;
}

static void expect_sound(rp_shared_arena *arena)
{
    assert_ok_err(rp_shared_arena_check(arena, &err), &err);
}

static void blocks_lie_in_the_file_and_go_back_to_it(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(16 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    uint8_t *block = rp_alloc(&alloc, 3 * MIN + 1);
    uint64_t offset = 1;

    assert_non_null(block);
    memset(block, 7, 3 * MIN + 1);
    assert_true(rp_shared_arena_find(arena, block + 5, 10, &offset));
    assert_int_equal(offset, 5);
    assert_false(rp_shared_arena_find(arena, &offset, 1, &offset));
    assert_true(rp_shared_arena_look(arena).used_bytes > 3 * MIN);
    expect_sound(arena);
    rp_release(&alloc, block, 3 * MIN + 1);
    assert_int_equal(rp_shared_arena_look(arena).used_bytes, 0);
    expect_sound(arena);
    rp_shared_arena_unref(arena);
}

static void small_and_overflowing_blocks_come_from_the_default_allocator(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(2 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    uint64_t offset;
    void *small = rp_alloc(&alloc, MIN - 1), *large = rp_alloc(&alloc, 3 * MIB);
    void *blocks[64];
    size_t inside = 0;

    assert_false(rp_shared_arena_find(arena, small, 1, &offset));
    assert_false(rp_shared_arena_find(arena, large, 1, &offset));
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = rp_alloc(&alloc, 2 * MIN);
        assert_non_null(blocks[i]);
        inside += rp_shared_arena_find(arena, blocks[i], 2 * MIN, &offset);
    }
    assert_int_equal(inside, 2 * MIB / (2 * MIN)); /* to the last page */
    assert_int_equal(rp_shared_arena_look(arena).file_bytes, 2 * MIB);
    expect_sound(arena);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) rp_release(&alloc, blocks[i], 2 * MIN);
    rp_release(&alloc, small, MIN - 1);
    rp_release(&alloc, large, 3 * MIB);
    assert_int_equal(rp_shared_arena_look(arena).used_bytes, 0);
    rp_shared_arena_unref(arena);
}

static void the_file_grows_on_demand(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(64 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    size_t before = 0;
    void *blocks[20];

    assert_int_equal(rp_shared_arena_look(arena).file_bytes, 0);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = rp_alloc(&alloc, MIB);
        assert_non_null(blocks[i]);
        assert_true(rp_shared_arena_look(arena).file_bytes >= (i + 1) * MIB);
        assert_true(rp_shared_arena_look(arena).file_bytes - before <= 4 * MIB);
        before = rp_shared_arena_look(arena).file_bytes;
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) rp_release(&alloc, blocks[i], MIB);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = rp_alloc(&alloc, MIB);
    assert_int_equal(rp_shared_arena_look(arena).file_bytes, before); /* used again */
    for (size_t i = 0; i < COUNT_OF(blocks); i++) rp_release(&alloc, blocks[i], MIB);
    expect_sound(arena);
    rp_shared_arena_unref(arena);
}

/* Everything that a descriptor opened again for writing could be used for. */
static void expect_sealed(int again)
{
    assert_true(mmap(NULL, MIB, PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
    assert_int_equal(write(again, "x", 1), -1);
    assert_int_equal(ftruncate(again, 0), -1);
    assert_int_equal(ftruncate(again, 64 * MIB), -1);
    assert_int_equal(fallocate(again, 0, 64 * MIB, MIB), -1);
    assert_int_equal(fallocate(again, FALLOC_FL_KEEP_SIZE, 64 * MIB, MIB), -1);
    assert_int_equal(fallocate(again, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 64 << 10),
                     -1);
    assert_int_equal(fcntl(again, F_ADD_SEALS, F_SEAL_GROW), -1);
}

static void other_processes_cannot_write_resize_or_unseal_issue_20(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(16 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    void *blocks[2] = {rp_alloc(&alloc, MIB), rp_alloc(&alloc, 4 * MIB)};

    assert_int_equal(rp_shared_arena_parts(arena), 2);
    for (size_t i = 0; i < 2; i++) {
        const rp_shared_part *part = rp_shared_arena_part(arena, i);
        struct stat before, after;
        char path[64];
        int again;

        assert_int_equal(fstat(part->fd, &before), 0);
        assert_int_equal(before.st_mode & 0777, 0); /* no user but root may open it again */
        assert_true(mmap(NULL, MIB, PROT_WRITE, MAP_SHARED, part->fd, 0) == MAP_FAILED);
        assert_int_equal(write(part->fd, "x", 1), -1);
        (void)fchmod(part->fd, 0700); /* what the same user can always do */
        snprintf(path, sizeof path, "/proc/self/fd/%d", part->fd);
        again = open(path, O_RDWR | O_CLOEXEC);
        assert_true(again >= 0);
        expect_sealed(again);
        (void)close(again);
        assert_int_equal(fstat(part->fd, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
        assert_int_equal(after.st_size, part->bytes);
    }
    rp_release(&alloc, blocks[0], MIB);
    rp_release(&alloc, blocks[1], 4 * MIB);
    rp_shared_arena_unref(arena);
}

/* 0: everything was refused. */
static int try_as_another_user(int fd)
{
    char path[64];

    if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (open(path, O_RDWR | O_CLOEXEC) >= 0) return 2;
    if (fchmod(fd, 0777) == 0) return 3;
    if (fsetxattr(fd, "user.x", "x", 1, 0) == 0) return 4; /* the system would keep it */
    if (mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) return 5;
    return 0;
}

static void another_user_can_only_read_issue_20(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(16 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    void *block = rp_alloc(&alloc, MIB);
    int status;
    pid_t pid;

    if (geteuid() != 0) skip(); /* cannot become another user */
    pid = fork();
    if (pid == 0) _exit(try_as_another_user(rp_shared_arena_part(arena, 0)->fd));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    rp_release(&alloc, block, MIB);
    rp_shared_arena_unref(arena);
}

/* A reader makes the system provide the pages that it touches: there must be no more of them
 * than blocks needed. The number of parts is what a client has to keep descriptors for. */
static void parts_are_few_and_no_larger_than_blocks_need(void **state)
{
    (void)state;
    rp_shared_arena *arena = make((size_t)2 << 30, 0); /* nothing of it is touched */
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    size_t count = 0;
    void **blocks = calloc(2048, sizeof *blocks);

    for (; count < 1900; count++) {
        rp_shared_arena_info info;
        blocks[count] = rp_alloc(&alloc, MIB);
        info = rp_shared_arena_look(arena);
        assert_true(info.file_bytes <= info.used_bytes + info.used_bytes / 6 + 19 * MIB);
    }
    assert_in_range(rp_shared_arena_parts(arena), 8, 40);
    for (size_t i = 0; i < count; i++) rp_release(&alloc, blocks[i], MIB);
    free(blocks);
    expect_sound(arena);
    rp_shared_arena_unref(arena);
}

static void blocks_keep_the_arena_alive(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(4 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    uint8_t *inside = rp_alloc(&alloc, MIB), *outside = rp_alloc(&alloc, 8 * MIB);

    rp_shared_arena_unref(arena);
    memset(inside, 1, MIB);
    rp_release(&alloc, outside, 8 * MIB);
    memset(inside, 2, MIB);
    rp_release(&alloc, inside, MIB);
}

static void map_part(rp_shared_map *map, const rp_shared_arena *arena, size_t index)
{
    const rp_shared_part *part = rp_shared_arena_part(arena, index);

    assert_ok_err(rp_shared_map_add(map, part->fd, part->bytes, &err), &err);
}

static void a_retired_arena_does_not_change(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(8 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    uint8_t *block = rp_alloc(&alloc, MIB), *other;
    rp_shared_map map;
    uint64_t offset;
    const uint8_t *seen;

    memset(block, 9, MIB);
    assert_ok_err(rp_shared_map_init(&map, 8 * MIB, &err), &err);
    map_part(&map, arena, 0);
    seen = rp_shared_map_find(&map, 0, MIB);
    assert_non_null(seen);
    rp_shared_arena_retire(arena);
    rp_release(&alloc, block, MIB);
    other = rp_alloc(&alloc, MIB);
    memset(other, 1, MIB);
    assert_false(rp_shared_arena_find(arena, other, 1, &offset));
    rp_release(&alloc, other, MIB);
    rp_shared_arena_unref(arena);
    for (size_t i = 0; i < MIB; i++) assert_int_equal(seen[i], 9); /* also when it is gone */
    rp_shared_map_deinit(&map);
}

typedef struct entry {
    uint8_t *data;
    size_t size;
    uint8_t fill;
} entry;

static void paint(entry *e, uint8_t fill)
{
    e->fill = fill;
    memset(e->data, fill, 64);
    memset(e->data + e->size - 64, fill, 64);
}

static void expect_paint(const entry *e, size_t size)
{
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(e->data[i], e->fill);
        if (size == e->size) assert_int_equal(e->data[e->size - 1 - i], e->fill);
    }
}

static size_t random_size(rp_rng *rng)
{
    uint64_t kind = rp_rng_below(rng, 4);

    if (kind == 0) return MIN + rp_rng_below(rng, 2 * MIN);
    if (kind == 1) return 400000;
    if (kind == 2) return 64 + rp_rng_below(rng, MIN);
    return MIN + rp_rng_below(rng, 2 * MIB);
}

static void change(const rp_allocator *alloc, entry *e, rp_rng *rng)
{
    size_t size = random_size(rng), old = e->size;

    if (e->data == NULL) {
        e->data = rp_alloc(alloc, size);
        assert_non_null(e->data);
        e->size = size;
        paint(e, (uint8_t)rp_rng_below(rng, 256));
        return;
    }
    expect_paint(e, old);
    if (rp_rng_below(rng, 4) != 0) {
        rp_release(alloc, e->data, e->size);
        e->data = NULL;
        return;
    }
    e->data = alloc->resize(alloc->ctx, e->data, old, size);
    assert_non_null(e->data);
    e->size = size;
    expect_paint(e, 0); /* its beginning has come with it */
    paint(e, e->fill);
}

static void random_blocks_keep_the_invariants(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(48 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    entry entries[100] = {0};
    rp_rng rng;

    rp_rng_init(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        change(&alloc, &entries[rp_rng_below(&rng, COUNT_OF(entries))], &rng);
        if (i % 16 == 0) expect_sound(arena);
    }
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        if (entries[i].data == NULL) continue;
        expect_paint(&entries[i], entries[i].size);
        rp_release(&alloc, entries[i].data, entries[i].size);
    }
    expect_sound(arena);
    assert_int_equal(rp_shared_arena_look(arena).used_bytes, 0);
    rp_shared_arena_unref(arena);
}

static void *churn(void *arg)
{
    rp_allocator alloc = rp_shared_arena_allocator(arg);
    entry entries[8] = {0};
    rp_rng rng;

    rp_rng_init(&rng, (uint64_t)(uintptr_t)&rng);
    for (int i = 0; i < 2000; i++) change(&alloc, &entries[rp_rng_below(&rng, 8)], &rng);
    for (size_t i = 0; i < 8; i++)
        if (entries[i].data != NULL) rp_release(&alloc, entries[i].data, entries[i].size);
    return NULL;
}

static void threads_share_the_arena(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(32 * MIB, MIB);
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, arena), 0);
    for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    expect_sound(arena);
    assert_int_equal(rp_shared_arena_look(arena).used_bytes, 0);
    rp_shared_arena_unref(arena);
}

static rp_status one_of_each(const rp_allocator *alloc)
{
    rp_shared_arena *arena;
    rp_status st = rp_shared_arena_new(alloc, MIB, MIB, &arena, &err);
    rp_allocator inner;
    void *blocks[3];

    if (st != RP_OK) return st;
    inner = rp_shared_arena_allocator(arena);
    blocks[0] = rp_alloc(&inner, MIN);
    blocks[1] = rp_alloc(&inner, 100);
    blocks[2] = rp_alloc(&inner, 2 * MIB);
    for (size_t i = 0; i < 3; i++)
        if (blocks[i] == NULL) st = RP_NO_RESOURCE;
    rp_release(&inner, blocks[0], MIN);
    rp_release(&inner, blocks[1], 100);
    rp_release(&inner, blocks[2], 2 * MIB);
    rp_shared_arena_unref(arena);
    return st;
}

static void memory_that_runs_out_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(one_of_each);
}

static void a_map_reads_mapped_parts_and_no_further(void **state)
{
    (void)state;
    rp_shared_arena *arena = make(16 * MIB, MIB);
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    uint8_t *first = rp_alloc(&alloc, MIB), *second;
    rp_shared_map map;
    size_t file;
    uint64_t offset;

    memset(first, 3, MIB);
    assert_ok_err(rp_shared_map_init(&map, 16 * MIB, &err), &err);
    assert_null(rp_shared_map_find(&map, 0, 1)); /* no part has come */
    map_part(&map, arena, 0);
    assert_int_equal(rp_shared_map_find(&map, 0, MIB)[MIB - 1], 3);
    file = rp_shared_arena_look(arena).file_bytes;
    assert_non_null(rp_shared_map_find(&map, file - 1, 1));
    assert_null(rp_shared_map_find(&map, file - 1, 2));
    assert_null(rp_shared_map_find(&map, file + 1, 1));
    assert_null(rp_shared_map_find(&map, 16 * MIB, 1));
    assert_null(rp_shared_map_find(&map, UINT64_MAX, 1));
    assert_null(rp_shared_map_find(&map, 1, UINT64_MAX));
    second = rp_alloc(&alloc, 4 * MIB); /* begins in the first part and ends in the second */
    assert_true(rp_shared_arena_find(arena, second, 4 * MIB, &offset));
    assert_true(offset < file && offset + 4 * MIB > file);
    memset(second, 4, 4 * MIB);
    assert_null(rp_shared_map_find(&map, offset, 4 * MIB));
    map_part(&map, arena, 1);
    assert_int_equal(rp_shared_map_find(&map, offset, 4 * MIB)[0], 4);
    assert_int_equal(rp_shared_map_find(&map, offset, 4 * MIB)[4 * MIB - 1], 4);
    rp_release(&alloc, first, MIB);
    rp_release(&alloc, second, 4 * MIB);
    rp_shared_map_deinit(&map);
    rp_shared_arena_unref(arena);
}

static void a_map_of_anything_else_is_refused(void **state)
{
    (void)state;
    int fds[2], loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    rp_shared_map map;

    assert_fails(rp_shared_map_init(&map, 0, &err), RP_CORRUPT, &err, "0 bytes");
    assert_fails(rp_shared_map_init(&map, UINT64_MAX, &err), RP_CORRUPT, &err, "bytes");
    assert_ok_err(rp_shared_map_init(&map, 2 * MIB, &err), &err);
    assert_int_equal(ftruncate(loose, MIB), 0);
    assert_fails(rp_shared_map_add(&map, loose, MIB, &err), RP_CORRUPT, &err, "sealed");
    assert_int_equal(fcntl(loose, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_fails(rp_shared_map_add(&map, loose, 0, &err), RP_CORRUPT, &err, "0 bytes");
    assert_fails(rp_shared_map_add(&map, loose, MIB - 1, &err), RP_CORRUPT, &err, "bytes");
    assert_fails(rp_shared_map_add(&map, loose, 2 * MIB, &err), RP_CORRUPT, &err, "bytes");
    assert_fails(rp_shared_map_add(&map, loose, UINT64_MAX, &err), RP_CORRUPT, &err, "bytes");
    assert_int_equal(pipe(fds), 0);
    assert_fails(rp_shared_map_add(&map, fds[0], MIB, &err), RP_CORRUPT, &err, "sealed");
    assert_ok_err(rp_shared_map_add(&map, loose, MIB, &err), &err);
    assert_ok_err(rp_shared_map_add(&map, loose, MIB, &err), &err);
    assert_fails(rp_shared_map_add(&map, loose, MIB, &err), RP_CORRUPT, &err, "bytes");
    rp_shared_map_deinit(&map);
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)close(loose);
}

/* Mappings are scarce: a process may have 65,530 of them. */
static void parts_of_a_map_are_limited(void **state)
{
    (void)state;
    int fd = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    rp_shared_map map;

    assert_int_equal(ftruncate(fd, (off_t)page), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_ok_err(rp_shared_map_init(&map, 64 * MIB, &err), &err);
    for (size_t i = 0; i < RP_SHARED_MAX_PARTS; i++)
        assert_ok_err(rp_shared_map_add(&map, fd, page, &err), &err);
    assert_fails(rp_shared_map_add(&map, fd, page, &err), RP_CORRUPT, &err, "256 parts");
    rp_shared_map_deinit(&map);
    (void)close(fd);
}

/* A server may send a file of huge pages that the system does not have. */
static void a_map_that_is_accepted_can_be_read(void **state)
{
    (void)state;
    int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    rp_shared_map map;

    if (huge < 0) skip(); /* the system knows no huge pages */
    assert_int_equal(ftruncate(huge, 4 * MIB), 0);
    assert_int_equal(fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_ok_err(rp_shared_map_init(&map, 64 * MIB, &err), &err);
    if (rp_shared_map_add(&map, huge, 4 * MIB, &err) == RP_OK)
        for (size_t i = 0; i < 4 * MIB; i += 4096)
            assert_int_equal(*(const volatile uint8_t *)rp_shared_map_find(&map, i, 1), 0);
    rp_shared_map_deinit(&map);
    (void)close(huge);
}

RP_TESTS(shared_arena)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_lie_in_the_file_and_go_back_to_it),
        cmocka_unit_test(small_and_overflowing_blocks_come_from_the_default_allocator),
        cmocka_unit_test(the_file_grows_on_demand),
        cmocka_unit_test(other_processes_cannot_write_resize_or_unseal_issue_20),
        cmocka_unit_test(another_user_can_only_read_issue_20),
        cmocka_unit_test(parts_are_few_and_no_larger_than_blocks_need),
        cmocka_unit_test(blocks_keep_the_arena_alive),
        cmocka_unit_test(a_retired_arena_does_not_change),
        cmocka_unit_test(random_blocks_keep_the_invariants),
        cmocka_unit_test(threads_share_the_arena),
        cmocka_unit_test(memory_that_runs_out_is_a_status),
        cmocka_unit_test(a_map_reads_mapped_parts_and_no_further),
        cmocka_unit_test(a_map_of_anything_else_is_refused),
        cmocka_unit_test(parts_of_a_map_are_limited),
        cmocka_unit_test(a_map_that_is_accepted_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

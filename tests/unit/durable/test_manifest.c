/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/format/manifest.h"

#include "support/sim_files.h"
#include "support/unit.h"

enum { SLOTS = 2 * RP_MANIFEST_SLOTS + 5, CHECKPOINT = 7 };

static const rp_store_id id = {{1, 2, 3}};

static rp_table_state state_of(const char *name, uint64_t slots)
{
    return (rp_table_state){.options = {.name = name, .max_size = 5},
                            .slot_capacity = (slots + 255) / 256 * 256,
                            .slots_used = slots,
                            .live = slots,
                            .first_free = RP_SLOT_NONE,
                            .set_counts = {slots, 0}};
}

static rp_manifest_block block_at(uint64_t i)
{
    return (rp_manifest_block){{1 + i / 5000, 64 + i % 5000 * 7, (uint32_t)(i % 50)}, i * i};
}

/* Two tables, one of them small or large. */
static rp_status write(const rp_allocator *alloc, rp_files *files, const char *path,
                       uint64_t slots, rp_current *current, rp_error *err)
{
    static const rp_manifest_segment segments[] = {
        {1, 50000, 300}, {2, 40000, 400}, {9, 64, 0}};
    rp_manifest_store store = {.checkpoint = CHECKPOINT,
                               .lsn = 55,
                               .seed = 66,
                               .keys = {{1, 2, 3, 4}},
                               .table_count = 2};
    rp_table_state big = state_of("big", slots), none = state_of("none", 0);
    size_t blocks = (size_t)(slots + 255) / 256;
    rp_manifest_writer *w = NULL;
    rp_status st = rp_manifest_writer_new(alloc, files, path, &id, &store, &w, err);

    if (st != RP_OK) return st;
    rp_manifest_add_table(w, &big, blocks);
    for (uint64_t i = 0; i < blocks; i++) {
        rp_manifest_block block = block_at(i);
        rp_manifest_add_blocks(w, &block, 1);
    }
    for (uint64_t at = 0; at < slots;) {
        uint32_t page[1000];
        size_t n = slots - at < 1000 ? (size_t)(slots - at) : 1000;

        for (size_t i = 0; i < n; i++) page[i] = (uint32_t)((at + i) * 7919 % slots);
        rp_manifest_add_set(w, 0, page, n);
        at += n;
    }
    rp_manifest_add_table(w, &none, 0);
    rp_manifest_add_segments(w, segments, COUNT_OF(segments));
    *current = (rp_current){.store_id = id, .checkpoint = CHECKPOINT};
    st = rp_manifest_writer_finish(w, &current->bytes, current->hash, err);
    rp_manifest_writer_free(w);
    return st;
}

static rp_files *mount(rp_sim *disk)
{
    rp_files *files = rp_sim_mount(disk);

    assert_ok(files->ops->make_directory(files, "manifest", NULL));
    return files;
}

static void a_manifest_round_trips(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = mount(disk);
    char path[RP_MANIFEST_PATH_BYTES];
    rp_current current;
    rp_manifest *m = NULL;
    rp_error err;

    (void)state;
    (void)rp_manifest_path(path, CHECKPOINT);
    assert_string_equal(path, "manifest/0000000000000007");
    assert_ok_err(write(rp_allocator_default(), files, path, SLOTS, &current, &err), &err);
    assert_ok_err(
        rp_manifest_load(rp_allocator_default(), files, path, CHECKPOINT, &id, &m, &err), &err);
    assert_int_equal(m->bytes, current.bytes);
    assert_memory_equal(m->hash, current.hash, sizeof current.hash);
    assert_int_equal(m->store.lsn, 55);
    assert_int_equal(m->store.keys.s[3], 4);
    assert_int_equal(m->table_count, 2);
    assert_string_equal(m->tables[0].state.options.name, "big");
    for (uint64_t i = 0; i < m->tables[0].block_count; i++) {
        rp_manifest_block block = block_at(i);
        assert_int_equal(m->tables[0].blocks[i].location.offset, block.location.offset);
        assert_int_equal(m->tables[0].blocks[i].hash, block.hash);
    }
    for (uint64_t i = 0; i < SLOTS; i++)
        assert_int_equal(m->tables[0].sets[0][i], i * 7919 % SLOTS);
    assert_int_equal(m->segment_count, 3);
    assert_int_equal(m->segments[2].number, 9);
    rp_manifest_free(m);
    assert_int_equal(rp_manifest_load(rp_allocator_default(), files, path, 8, &id, &m, &err),
                     RP_CORRUPT);
    files->ops->free(files);
    rp_sim_free(disk);
}

static void every_damaged_bit_and_length_is_noticed(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = mount(disk);
    const char *path = "manifest/0000000000000007";
    rp_current current;
    rp_manifest *m = NULL;
    rp_error err;

    (void)state;
    assert_ok_err(write(rp_allocator_default(), files, path, 20, &current, &err), &err);
    for (uint64_t bit = 0; bit < 8 * current.bytes; bit++) {
        rp_status st;

        assert_true(rp_sim_flip(disk, path, bit));
        st = rp_manifest_load(rp_allocator_default(), files, path, CHECKPOINT, &id, &m, &err);
        assert_true(st == RP_CORRUPT || st == RP_PRECONDITION);
        assert_true(rp_sim_flip(disk, path, bit));
    }
    for (uint64_t size = current.bytes; size-- > 0;) {
        assert_true(rp_sim_resize(disk, path, size));
        assert_int_equal(
            rp_manifest_load(rp_allocator_default(), files, path, CHECKPOINT, &id, &m, &err),
            RP_CORRUPT);
    }
    files->ops->free(files);
    rp_sim_free(disk);
}

static void current_round_trips_and_damage_is_noticed(void **state)
{
    rp_current current = {id, 99, 12345, {9, 8, 7}}, read;
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_error err;

    (void)state;
    assert_int_equal(rp_current_load(files, &read, &err), RP_NOT_FOUND);
    assert_ok_err(rp_current_prepare(files, &current, &err), &err);
    assert_ok_err(rp_current_switch(files, &err), &err);
    assert_ok_err(rp_current_load(files, &read, &err), &err);
    assert_int_equal(read.checkpoint, 99);
    assert_int_equal(read.bytes, 12345);
    assert_memory_equal(read.hash, current.hash, sizeof read.hash);
    for (uint64_t bit = 0; bit < 8 * RP_CURRENT_BYTES; bit++) {
        rp_status st;

        assert_true(rp_sim_flip(disk, RP_CURRENT_PATH, bit));
        st = rp_current_load(files, &read, &err);
        assert_true(st == RP_CORRUPT || st == RP_PRECONDITION);
        assert_true(rp_sim_flip(disk, RP_CURRENT_PATH, bit));
    }
    files->ops->free(files);
    rp_sim_free(disk);
}

static rp_status round_trip(const rp_allocator *alloc)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = mount(disk);
    rp_manifest *m = NULL;
    rp_current current;
    rp_status st = write(alloc, files, "manifest/0000000000000007", 600, &current, NULL);

    if (st == RP_OK)
        st = rp_manifest_load(alloc, files, "manifest/0000000000000007", CHECKPOINT, NULL, &m,
                              NULL);
    rp_manifest_free(m);
    files->ops->free(files);
    rp_sim_free(disk);
    return st;
}

static void manifests_survive_running_out_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(round_trip);
}

RP_TESTS(manifest)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_round_trips),
        cmocka_unit_test(every_damaged_bit_and_length_is_noticed),
        cmocka_unit_test(current_round_trips_and_damage_is_noticed),
        cmocka_unit_test(manifests_survive_running_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

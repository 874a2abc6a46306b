/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts in a data directory: checkpoints, the journal, damage, and a full disk. The power
 * cuts are in tests/durability/test_rollouts.c. */
#include <time.h>

#include "durable/format/rollout_records.h"
#include "durable/journal/redo_rollouts.h"
#include "rollouts/rollouts_image.h"
#include "support/oom.h"
#include "support/rollout_load.h"
#include "support/sim_files.h"
#include "util/little_endian.h"

enum { STEPS = 40, LSN = 100 };

typedef struct bench {
    rp_rollout_load *rig;
    rp_sim *disk;
    rp_files *files;
} bench;

static void begin(bench *b, rp_durability mode)
{
    b->rig = calloc(1, sizeof *b->rig);
    assert_non_null(b->rig);
    rp_rollout_load_init(b->rig, 7, mode);
    b->disk = rp_sim_new();
    b->files = rp_sim_mount(b->disk);
    rp_rollout_load_open(b->rig, b->files);
}

static void end(bench *b)
{
    if (b->rig->store != NULL) assert_int_equal(rp_rollout_load_close(b->rig), RP_OK);
    b->files->ops->free(b->files);
    rp_sim_free(b->disk);
    free(b->rig);
}

static void make_steps(bench *b, size_t count)
{
    for (size_t i = 0; i < count; i++) rp_rollout_load_step(b->rig);
}

/* Ends the process that uses the disk. */
static void shut(bench *b)
{
    assert_int_equal(rp_rollout_load_close(b->rig), RP_OK);
    b->files->ops->free(b->files);
    b->files = rp_sim_mount(b->disk);
}

/* Closes the store and opens it again, as another process. */
static void reopen(bench *b)
{
    shut(b);
    atomic_store(&b->rig->event_count, 0);
    rp_rollout_load_open(b->rig, b->files);
}

static const uint64_t *last_digests(const bench *b)
{
    return b->rig->digests[atomic_load(&b->rig->started)];
}

static void assert_state(bench *b, const uint64_t digests[RP_RIG_ROLLOUTS])
{
    uint64_t found[RP_RIG_ROLLOUTS];

    assert_true(rp_rollout_load_digest(b->rig->store, found));
    assert_memory_equal(found, digests, sizeof found);
}

static rp_rollouts *make_rollouts(bench *b, const char *name, uint32_t group_size)
{
    rp_rollouts *rollouts = NULL;
    rp_rollout_options o;
    rp_error err = {0};

    rp_rollout_options_init(&o);
    o.group_size = group_size;
    assert_ok_err(rp_rollout_set_create(rp_store_rollouts(b->rig->store),
                                        (rp_string){name, strlen(name)}, &o, &rollouts, NULL,
                                        &err),
                  &err);
    return rollouts;
}

static rp_status put(bench *b, const char *name, const char *group, size_t bytes)
{
    static uint8_t data[64 << 10];
    rp_rollout_column column = {{"tokens", 6},
                                {RP_UINT8, {.rank = 1, .dims = {(int64_t)bytes}}, data}};
    rp_rollout_op op = {.kind = RP_ROLLOUT_PUT,
                        .group = {group, strlen(group)},
                        .columns = &column,
                        .column_count = 1};
    rp_rollout_result result;

    assert_true(bytes <= sizeof data);
    return rp_rollout_load_apply(b->rig->store, name, &op, &result);
}

static void reopening_gives_the_last_state(void **state)
{
    (void)state;
    for (int mode = RP_DURABLE_CHECKPOINT; mode <= RP_DURABLE_SYNC; mode++) {
        bench b;

        begin(&b, (rp_durability)mode);
        for (int round = 0; round < 4; round++) {
            make_steps(&b, STEPS);
            if (mode == RP_DURABLE_CHECKPOINT || round % 2 == 1)
                rp_rollout_load_checkpoint(b.rig);
            if (mode != RP_DURABLE_CHECKPOINT) make_steps(&b, STEPS / 4);
            reopen(&b);
            assert_state(&b, last_digests(&b));
            assert_int_equal(b.rig->event_count, 0);
        }
        assert_true(b.rig->changed > STEPS);
        end(&b);
    }
}

static void find_newest(void *ctx, const char *path, uint64_t size)
{
    char *newest = ctx;

    (void)size;
    if (strncmp(path, "rollouts/", 9) == 0) (void)snprintf(newest, RP_SIM_PATH, "%s", path);
}

static void count_rollouts(void *ctx, const char *path, uint64_t size)
{
    (void)size;
    *(size_t *)ctx += strncmp(path, "rollouts/", 9) == 0;
}

static size_t count_files(bench *b)
{
    size_t count = 0;

    rp_sim_list(b->disk, count_rollouts, &count);
    return count;
}

/* The checkpoint before it and the journal have everything, and the loss is reported. */
static void a_damaged_file_of_rollouts_is_replaced_by_the_journal(void **state)
{
    (void)state;
    for (int missing = 0; missing < 2; missing++) {
        char newest[RP_SIM_PATH] = "";
        bench b;

        begin(&b, RP_DURABLE_SYNC);
        b.rig->seed = 8; /* keeps three checkpoints */
        reopen(&b);
        for (int i = 0; i < 3; i++) {
            make_steps(&b, STEPS);
            rp_rollout_load_checkpoint(b.rig);
        }
        make_steps(&b, STEPS);
        shut(&b);
        rp_sim_list(b.disk, find_newest, newest);
        assert_true(missing ? rp_sim_delete(b.disk, newest)
                            : rp_sim_flip(b.disk, newest, 8 * 200));
        rp_rollout_load_open(b.rig, b.files);
        assert_true(b.rig->event_count > 0);
        assert_state(&b, last_digests(&b));
        make_steps(&b, STEPS);
        reopen(&b);
        assert_state(&b, last_digests(&b));
        end(&b);
    }
}

/* A file of another checkpoint, whole and of the same store, is not taken for the right one. */
static void the_file_of_another_checkpoint_is_refused(void **state)
{
    static uint8_t bytes[1 << 20];
    char newest[RP_SIM_PATH] = "";
    size_t size;
    rp_error err = {0};
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_CHECKPOINT);
    b.rig->seed = 6; /* keeps one checkpoint */
    reopen(&b);
    make_steps(&b, STEPS);
    rp_rollout_load_checkpoint(b.rig);
    rp_sim_list(b.disk, find_newest, newest);
    size = rp_sim_read(b.disk, newest, 0, bytes, sizeof bytes);
    make_steps(&b, STEPS);
    rp_rollout_load_checkpoint(b.rig);
    shut(&b);
    rp_sim_list(b.disk, find_newest, newest);
    assert_true(rp_sim_put(b.disk, newest, bytes, size));
    assert_int_equal(rp_rollout_load_try_open(b.rig, b.files, &err), RP_CORRUPT);
    assert_non_null(strstr(err.text, "rollouts/"));
    end(&b);
}

static void salvage_keeps_the_rollouts_before_the_damage(void **state)
{
    const rp_durable_options options = {
        .directory = "rollouts", .period_ns = RP_FOREVER, .salvage = true};
    const rp_durable_tuning tuning = {0};
    char newest[RP_SIM_PATH] = "";
    uint64_t digest = 0, found = 1, size = 0;
    rp_rollouts *rollouts;
    rp_error err = {0};
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_CHECKPOINT);
    rollouts = make_rollouts(&b, "a", 1);
    assert_ok(put(&b, "a", "one", 3000));
    assert_ok(rp_rollouts_digest(rollouts, &digest));
    rp_rollouts_unref(rollouts);
    rp_rollouts_unref(make_rollouts(&b, "b", 1));
    assert_ok(put(&b, "b", "two", 3000));
    rp_rollout_load_checkpoint(b.rig);
    shut(&b);
    rp_sim_list(b.disk, find_newest, newest);
    while (rp_sim_read(b.disk, newest, size, &(uint8_t){0}, 1) == 1) size++;
    assert_true(rp_sim_flip(b.disk, newest, 8 * (size - 500)));
    assert_ok(rp_store_new(NULL, &b.rig->store, &err));

    assert_ok_err(
        rp_durable_open_tuned(b.files, &options, &tuning, b.rig->store, &b.rig->durable, &err),
        &err);

    rollouts = rp_rollout_set_find(rp_store_rollouts(b.rig->store), (rp_string){"a", 1});
    assert_non_null(rollouts);
    assert_ok(rp_rollouts_digest(rollouts, &found));
    assert_int_equal(found, digest);
    rp_rollouts_unref(rollouts);
    assert_null(rp_rollout_set_find(rp_store_rollouts(b.rig->store), (rp_string){"b", 1}));
    end(&b);
}

static void only_the_files_of_kept_checkpoints_stay(void **state)
{
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_INTERVAL);
    b.rig->seed = 7; /* keeps two checkpoints */
    reopen(&b);
    assert_int_equal(count_files(&b), 0);
    for (int i = 0; i < 5; i++) {
        make_steps(&b, 5);
        rp_rollout_load_checkpoint(b.rig);
    }
    assert_int_equal(count_files(&b), 2);

    /* What a crash has left is removed at the next start. */
    assert_true(rp_sim_put(b.disk, "rollouts/00000000000000ff", "RPRS", 4));
    reopen(&b);
    assert_int_equal(count_files(&b), 2);
    end(&b);
}

/* A store without rollouts has neither the folder nor the feature, so that older versions read
 * its directory. */
static void a_directory_without_rollouts_is_as_before(void **state)
{
    uint8_t header[RP_FILE_HEADER_BYTES];
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_SYNC);
    rp_rollout_load_checkpoint(b.rig);
    assert_int_equal(rp_sim_read(b.disk, "manifest/0000000000000002", 0, header, sizeof header),
                     sizeof header);
    assert_int_equal(rp_get_u32(header + 24), 0);
    assert_int_equal(count_files(&b), 0);

    make_steps(&b, 4);
    rp_rollout_load_checkpoint(b.rig);
    assert_int_equal(rp_sim_read(b.disk, "manifest/0000000000000003", 0, header, sizeof header),
                     sizeof header);
    assert_int_equal(rp_get_u32(header + 24), RP_FEATURE_ROLLOUTS);
    assert_int_equal(count_files(&b), 1);
    end(&b);
}

/* The times of leases and reservations are those of the wall clock, also after a restart. */
static void a_lease_expires_at_its_time_after_a_restart(void **state)
{
    rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW, .now_ns = 1000, .ttl_ns = 500, .groups = 1};
    rp_rollout_op expire = {.kind = RP_ROLLOUT_EXPIRE, .now_ns = 1499};
    rp_rollout_result result;
    rp_rollouts *rollouts;
    bench b;

    (void)state;
    for (int from_checkpoint = 0; from_checkpoint < 2; from_checkpoint++) {
        begin(&b, RP_DURABLE_SYNC);
        rp_rollouts_unref(make_rollouts(&b, "a", 1));
        assert_ok(put(&b, "a", "one", 10));
        assert_ok(rp_rollout_load_apply(b.rig->store, "a", &draw, &result));
        assert_non_null(result.batch);
        rp_rollout_batch_free(result.batch);
        if (from_checkpoint) rp_rollout_load_checkpoint(b.rig);

        reopen(&b);

        rollouts = rp_rollout_set_find(rp_store_rollouts(b.rig->store), (rp_string){"a", 1});
        assert_int_equal(rp_rollouts_next_expiry(rollouts), 1500);
        rp_rollouts_unref(rollouts);
        expire.now_ns = 1499;
        assert_ok(rp_rollout_load_apply(b.rig->store, "a", &expire, &result));
        assert_int_equal(result.expired_leases, 0);
        expire.now_ns = 1500;
        assert_ok(rp_rollout_load_apply(b.rig->store, "a", &expire, &result));
        assert_int_equal(result.expired_leases, 1);
        end(&b);
    }
}

static void rollouts_created_again_are_the_new_ones(void **state)
{
    rp_rollout_fate fate;
    rp_rollouts *rollouts;
    bench b;

    (void)state;
    for (int when = 0; when < 3; when++) {
        begin(&b, RP_DURABLE_SYNC);
        rp_rollouts_unref(make_rollouts(&b, "a", 1));
        assert_ok(put(&b, "a", "old", 10));
        if (when == 1) rp_rollout_load_checkpoint(b.rig);
        assert_ok(rp_rollout_set_drop(rp_store_rollouts(b.rig->store), (rp_string){"a", 1},
                                      NULL, NULL));
        rp_rollouts_unref(make_rollouts(&b, "a", 1));
        if (when == 2) rp_rollout_load_checkpoint(b.rig);
        assert_ok(put(&b, "a", "new", 10));

        reopen(&b);

        rollouts = rp_rollout_set_find(rp_store_rollouts(b.rig->store), (rp_string){"a", 1});
        assert_non_null(rollouts);
        assert_ok(rp_rollouts_peek(rollouts, (rp_string){"old", 3}, &fate, NULL));
        assert_int_equal(fate, RP_ROLLOUT_UNKNOWN);
        assert_ok(rp_rollouts_peek(rollouts, (rp_string){"new", 3}, &fate, NULL));
        assert_int_equal(fate, RP_ROLLOUT_COMPLETE);
        rp_rollouts_unref(rollouts);
        end(&b);
    }
}

/* Rollouts that the store has before it is opened are neither replaced nor forgotten. */
static void rollouts_that_the_store_has_already(void **state)
{
    const rp_durable_options options = {.directory = "rollouts", .period_ns = RP_FOREVER};
    const rp_durable_tuning tuning = {0};
    rp_error err = {0};
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_CHECKPOINT);
    rp_rollout_load_checkpoint(b.rig);
    shut(&b);
    for (int i = 0; i < 2; i++) {
        assert_ok(rp_store_new(NULL, &b.rig->store, &err));
        rp_rollouts_unref(make_rollouts(&b, "a", 1));
        assert_int_equal(rp_durable_open_tuned(b.files, &options, &tuning, b.rig->store,
                                               &b.rig->durable, &err),
                         i == 0 ? RP_OK : RP_PRECONDITION);
        if (i == 0) assert_ok(rp_durable_close(b.rig->durable, NULL));
        rp_store_free(b.rig->store);
        b.rig->store = NULL;
        b.files->ops->free(b.files);
        b.files = rp_sim_mount(b.disk);
    }
    assert_non_null(strstr(err.text, "rollouts 'a'"));
    end(&b);
}

/* Applies a record to rollouts of which there is an image up to `LSN`, listed up to LSN + 10.
 */
static rp_status redo(rp_store *store, const rp_rollouts_found *found, rp_record_kind kind,
                      const char *name, uint64_t lsn, bool *applied)
{
    const rp_rollouts_redo options = {
        .alloc = rp_allocator_default(), .store = store, .found = found, .lsn = LSN + 10};
    rp_rollout_op op = {.kind = RP_ROLLOUT_ADVANCE, .now_ns = 1, .version = (int64_t)lsn};
    rp_rollout_options o;
    rp_record record = {.kind = kind, .number = lsn};
    rp_buf payload;
    rp_status st;

    rp_buf_init(&payload, rp_allocator_default());
    rp_rollout_options_init(&o);
    rp_rollout_record_write_name(&payload, (rp_string){name, strlen(name)});
    if (kind == RP_RECORD_ROLLOUTS_OP) rp_rollout_op_write(&payload, &op);
    if (kind == RP_RECORD_ROLLOUTS_CREATE) rp_rollout_options_write(&payload, &o);
    record.payload = payload.data;
    record.size = payload.size;
    st = rp_redo_rollouts(&options, &record, applied, NULL);
    rp_buf_deinit(&payload);
    return st;
}

static void redo_skips_what_an_image_has(void **state)
{
    rp_store *store = NULL;
    rp_rollouts_found found = {.count = 1};
    rp_rollout_options o;
    rp_rollout_info info;
    bool applied = true;

    (void)state;
    rp_rollout_options_init(&o);
    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok(rp_rollout_set_create(rp_store_rollouts(store), (rp_string){"here", 4}, &o,
                                    &found.at[0].rollouts, NULL, NULL));
    found.at[0].lsn = LSN;

    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_DROP, "here", LSN - 2, &applied));
    assert_false(applied); /* of older rollouts of that name */
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_CREATE, "here", LSN - 1, &applied));
    assert_false(applied);
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_OP, "here", LSN, &applied));
    assert_false(applied);
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_OP, "here", LSN + 1, &applied));
    assert_true(applied);
    rp_rollouts_get_info(found.at[0].rollouts, &info);
    assert_int_equal(info.version, LSN + 1);
    /* The same again changes nothing: the state is not that in which it was logged. */
    assert_int_equal(redo(store, &found, RP_RECORD_ROLLOUTS_OP, "here", LSN + 1, &applied),
                     RP_CORRUPT);
    assert_int_equal(redo(store, &found, RP_RECORD_ROLLOUTS_CREATE, "here", LSN + 2, &applied),
                     RP_CORRUPT);

    /* Dropped before the rollouts were listed; then not. */
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_OP, "gone", LSN + 9, &applied));
    assert_false(applied);
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_DROP, "gone", LSN + 10, &applied));
    assert_false(applied);
    assert_int_equal(redo(store, &found, RP_RECORD_ROLLOUTS_OP, "gone", LSN + 11, &applied),
                     RP_CORRUPT);
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_CREATE, "gone", LSN + 11, &applied));
    assert_true(applied);
    assert_ok(redo(store, &found, RP_RECORD_ROLLOUTS_DROP, "gone", LSN + 12, &applied));
    assert_true(applied);
    rp_rollouts_found_free(&found);
    rp_store_free(store);
}

static void malformed_records_are_refused(void **state)
{
    static const uint8_t good[] = {3, 'a', 'b', 'c', 9}, empty[] = {0, 9}, zero[] = {1, 0, 9};
    rp_rollout_record r;

    (void)state;
    assert_ok(rp_rollout_record_read(RP_RECORD_ROLLOUTS_OP, good, 5, &r, NULL));
    assert_int_equal(r.name.size, 3);
    assert_int_equal(r.body.size, 1);
    assert_ok(rp_rollout_record_read(RP_RECORD_ROLLOUTS_DROP, good, 4, &r, NULL));
    assert_int_equal(rp_rollout_record_read(RP_RECORD_ROLLOUTS_DROP, good, 5, &r, NULL),
                     RP_CORRUPT);
    for (size_t size = 0; size < 4; size++)
        assert_int_equal(rp_rollout_record_read(RP_RECORD_ROLLOUTS_OP, good, size, &r, NULL),
                         RP_CORRUPT);
    assert_int_equal(rp_rollout_record_read(RP_RECORD_ROLLOUTS_OP, empty, 2, &r, NULL),
                     RP_CORRUPT);
    assert_int_equal(rp_rollout_record_read(RP_RECORD_ROLLOUTS_OP, zero, 3, &r, NULL),
                     RP_CORRUPT);
}

/* The bound that the reserve of disk space follows is never below the size of the file, and
 * falls when groups are removed. */
static void the_bound_of_images_holds(void **state)
{
    rp_rollout_op abort = {.kind = RP_ROLLOUT_ABORT};
    rp_rollout_op reserve = {.kind = RP_ROLLOUT_RESERVE, .ttl_ns = 1000};
    rp_rollout_set *set;
    rp_rollout_result result;
    uint64_t empty, full;
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_INTERVAL);
    set = rp_store_rollouts(b.rig->store);
    assert_int_equal(rp_rollout_set_image_bytes(set), 0);
    for (int i = 0; i < 60; i++) {
        char newest[RP_SIM_PATH] = "";
        uint64_t size = 0;

        make_steps(&b, 7);
        full = rp_rollout_set_image_bytes(set);
        rp_rollout_load_checkpoint(b.rig);
        rp_sim_list(b.disk, find_newest, newest);
        while (rp_sim_read(b.disk, newest, size, &(uint8_t){0}, 1) == 1) size++;
        assert_true(size <= full);
        if (i % 10 == 9) reopen(&b);
        set = rp_store_rollouts(b.rig->store);
    }

    full = rp_rollout_set_image_bytes(set);
    rp_rollouts_unref(make_rollouts(&b, "more", 8));
    empty = rp_rollout_set_image_bytes(set);
    assert_true(empty > full);
    reserve.group = abort.group = (rp_string){"g", 1};
    assert_ok(rp_rollout_load_apply(b.rig->store, "more", &reserve, &result));
    assert_ok(put(&b, "more", "g", 5000));
    assert_true(rp_rollout_set_image_bytes(set) >= empty + 5000);
    assert_ok(rp_rollout_load_apply(b.rig->store, "more", &abort, &result));
    assert_true(rp_rollout_set_image_bytes(set) < empty + 1000);
    assert_ok(rp_rollout_set_drop(set, (rp_string){"more", 4}, NULL, NULL));
    assert_int_equal(rp_rollout_set_image_bytes(set), full);
    end(&b);
}

/* A repeated operation is confirmed when the first one is safe. */
static void a_repeated_operation_has_the_lsn_of_the_last_one(void **state)
{
    static const uint8_t data[3] = {1, 2, 3};
    rp_rollout_column column = {{"tokens", 6}, {RP_UINT8, {.rank = 1, .dims = {3}}, data}};
    rp_rollout_op op = {
        .kind = RP_ROLLOUT_PUT, .group = {"g", 1}, .columns = &column, .column_count = 1};
    rp_rollout_result first, second;
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_SYNC);
    rp_rollouts_unref(make_rollouts(&b, "a", 1));
    assert_ok(rp_rollout_load_apply(b.rig->store, "a", &op, &first));
    assert_ok(rp_rollout_load_apply(b.rig->store, "a", &op, &second));
    assert_int_equal(second.outcome, RP_ROLLOUT_REPEATED);
    assert_true(first.lsn > 0);
    assert_int_equal(second.lsn, first.lsn);
    assert_int_equal(rp_store_rollouts_lsn(b.rig->store), first.lsn);
    end(&b);
}

/* Writes and reads the file with room for 0, 1, 2, ... allocations. */
static void no_memory_is_a_status(void **state)
{
    const rp_store_id id = {{1, 2, 3}};
    rp_rollouts *all[1];
    bench b;
    bool is_done = false;

    (void)state;
    begin(&b, RP_DURABLE_CHECKPOINT);
    all[0] = make_rollouts(&b, "a", 1);
    assert_ok(put(&b, "a", "one", 3000));
    for (size_t room = 0; !is_done; room++) {
        rp_test_oom o = RP_TEST_OOM_INIT(room);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        const rp_rollouts_write_options write = {.alloc = &alloc,
                                                 .files = b.files,
                                                 .store = id,
                                                 .checkpoint = 77,
                                                 .lsn = LSN,
                                                 .rollouts = all,
                                                 .count = 1};
        rp_manifest_rollouts wanted = {.is_there = true, .lsn = LSN};
        rp_rollouts_found found = {0};
        rp_status st = rp_rollouts_file_write(&write, &wanted, NULL);

        if (st == RP_OK) {
            const rp_rollouts_read_options read = {.alloc = &alloc,
                                                   .files = b.files,
                                                   .store = &id,
                                                   .checkpoint = 77,
                                                   .wanted = &wanted};
            st = rp_rollouts_file_read(&read, &found, NULL);
            is_done = st == RP_OK;
            assert_true(!is_done || (found.count == 1 && found.at[0].lsn == LSN));
            rp_rollouts_found_free(&found);
        } else {
            assert_int_equal(count_files(&b), 0);
        }
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_int_equal(o.live, 0);
    }
    rp_rollouts_unref(all[0]);
    end(&b);
}

/* Waits until the journal has written all records. It tries again at intervals after it could
 * not write. */
static void await_journal(bench *b)
{
    rp_store *store = b->rig->store;
    rp_status st = RP_UNAVAILABLE;
    rp_error err = {0};

    for (int tries = 0; tries < 120000 && st == RP_UNAVAILABLE; tries++) {
        st = rp_store_rollouts_wait(store, rp_store_rollouts_lsn(store), rp_wait_ms(120000),
                                    &err);
        if (st == RP_UNAVAILABLE) (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_ok_err(st, &err);
}

/* On a full disk an operation that adds data waits; acknowledged groups give their space back.
 */
static void a_full_disk_refuses_data_until_groups_are_removed(void **state)
{
    const rp_durable_options options = {.directory = "full",
                                        .mode = RP_DURABLE_SYNC,
                                        .period_ns = RP_FOREVER,
                                        .keep = 1,
                                        .segment_bytes = 64 << 10};
    const rp_durable_tuning tuning = {.retry_ns = 1000000, .reserve_bytes = 64 << 10};
    const rp_wait soon = rp_wait_ms(120000);
    rp_error err = {0};
    rp_rollouts *rollouts;
    rp_rollout_result result;
    uint64_t claimed = 0, digest = 0, again = 1;
    size_t count = 0;
    char group[32];
    bench b;

    (void)state;
    begin(&b, RP_DURABLE_SYNC);
    shut(&b);
    rp_sim_set_capacity(b.disk, 8 << 20);
    assert_ok(rp_store_new(NULL, &b.rig->store, &err));
    assert_ok_err(
        rp_durable_open_tuned(b.files, &options, &tuning, b.rig->store, &b.rig->durable, &err),
        &err);
    rollouts = make_rollouts(&b, "a", 1);
    for (; count < 1000; count++) {
        static uint8_t data[32 << 10];
        rp_rollout_column column = {{"tokens", 6},
                                    {RP_UINT8, {.rank = 1, .dims = {sizeof data}}, data}};
        rp_rollout_op op = {
            .kind = RP_ROLLOUT_PUT, .group = {group, 0}, .columns = &column, .column_count = 1};
        rp_status st;

        op.group.size = (size_t)snprintf(group, sizeof group, "group %zu", count);
        st = rp_store_rollouts_admit_wait(b.rig->store, &op, rp_wait_ms(300), &claimed, &err);
        if (st != RP_OK) {
            assert_true(st == RP_DEADLINE || st == RP_UNAVAILABLE);
            break;
        }
        assert_ok(rp_rollouts_apply(rollouts, &op, &result, NULL));
        rp_store_rollouts_unclaim(b.rig->store, claimed);
        assert_ok_err(rp_store_rollouts_wait(b.rig->store, result.lsn, soon, &err), &err);
    }
    assert_true(count > 8 && count < 250);

    for (size_t i = 0; i < count; i++) { /* what removes groups never waits for disk space */
        rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW, .ttl_ns = 1000, .groups = 1};
        rp_rollout_op ack = {.kind = RP_ROLLOUT_ACK};

        assert_ok(rp_store_rollouts_admit_wait(b.rig->store, &draw, soon, &claimed, &err));
        assert_ok(rp_rollouts_apply(rollouts, &draw, &result, &err));
        ack.lease = result.batch->lease;
        rp_rollout_batch_free(result.batch);
        assert_ok(rp_rollouts_apply(rollouts, &ack, &result, &err));
    }
    for (int i = 0; i < 4; i++) (void)!put(&b, "a", "more", 16 << 10);
    assert_ok_err(rp_durable_checkpoint(b.rig->durable, soon, NULL, 0, &err), &err);
    await_journal(&b);
    assert_ok(put(&b, "a", "even more", 16 << 10));
    assert_ok(rp_rollouts_digest(rollouts, &digest));
    rp_rollouts_unref(rollouts);
    shut(&b);

    rp_rollout_load_open(b.rig, b.files);
    rollouts = rp_rollout_set_find(rp_store_rollouts(b.rig->store), (rp_string){"a", 1});
    assert_non_null(rollouts);
    assert_ok(rp_rollouts_digest(rollouts, &again));
    assert_int_equal(digest, again);
    rp_rollouts_unref(rollouts);
    end(&b);
}

RP_TESTS(rollouts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reopening_gives_the_last_state),
        cmocka_unit_test(a_damaged_file_of_rollouts_is_replaced_by_the_journal),
        cmocka_unit_test(the_file_of_another_checkpoint_is_refused),
        cmocka_unit_test(salvage_keeps_the_rollouts_before_the_damage),
        cmocka_unit_test(only_the_files_of_kept_checkpoints_stay),
        cmocka_unit_test(a_directory_without_rollouts_is_as_before),
        cmocka_unit_test(a_lease_expires_at_its_time_after_a_restart),
        cmocka_unit_test(rollouts_created_again_are_the_new_ones),
        cmocka_unit_test(rollouts_that_the_store_has_already),
        cmocka_unit_test(redo_skips_what_an_image_has),
        cmocka_unit_test(malformed_records_are_refused),
        cmocka_unit_test(the_bound_of_images_holds),
        cmocka_unit_test(a_repeated_operation_has_the_lsn_of_the_last_one),
        cmocka_unit_test(no_memory_is_a_status),
        cmocka_unit_test(a_full_disk_refuses_data_until_groups_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/durable_bed.h"
#include "util/rng.h"

/* Random things happen to a table. */
static void churn(rp_test_rig *rig, rp_table *t, uint64_t seed, size_t steps)
{
    rp_sample_options one = {.count = 1};
    rp_rng rng;

    rp_rng_init(&rng, seed);
    for (size_t i = 0; i < steps; i++) {
        uint64_t key = 1 + rp_rng_below(&rng, 400);
        rp_update update = {key, (double)rp_rng_below(&rng, 50) / 7};
        rp_sample sample;
        size_t drawn = 0;

        switch (rp_rng_below(&rng, 8)) {
        case 0:
        case 1:
        case 2:
        case 3:
            rig->bed.wall_ns += 1000;
            if (rp_table_can_insert(t, 1)) rp_test_put_items(rig, t, key, 1, 20 + key);
            break;
        case 4: assert_ok(rp_table_update(t, &update, 1, NULL, NULL)); break;
        case 5: assert_ok(rp_table_delete(t, &key, 1, NULL, NULL)); break;
        default:
            if (!rp_table_can_sample(t, 1)) break;
            assert_ok(rp_table_sample(t, &one, &sample, &drawn, rp_wait_none(), NULL));
            rp_samples_release(&sample, drawn);
        }
    }
}

static void saved_tables_are_loaded_to_the_bit(void **state)
{
    const rp_limiter_options limiters[] = {rp_limiter_min_size(1), rp_limiter_ratio(2, 10, 60),
                                           rp_limiter_queue(300)};

    (void)state;
    for (int sampler = RP_FIFO; sampler <= RP_MAX_HEAP; sampler++)
        for (int remover = RP_FIFO; remover <= RP_MAX_HEAP; remover++) {
            size_t which = (size_t)(sampler + remover) % COUNT_OF(limiters);
            /* Where everything is slower, two removers for each sampler. */
            if ((sampler - remover) % (int)rp_test_step(1, 3) != 0) continue;
            rp_table_options o =
                rp_test_options("t", (rp_selector_kind)sampler, (rp_selector_kind)remover, 290);
            rp_sim *disk = rp_sim_new();
            rp_test_rig rig, again;
            rp_durable_info was, is;
            rp_table *t, *u;
            uint64_t key;

            o.limiter = limiters[which];
            rp_test_rig_init(&rig, disk, NULL);
            t = rp_test_bed_table(&rig.bed, &o);
            rp_test_rig_open(&rig);
            churn(&rig, t, (uint64_t)(sampler * 7 + remover), 700);
            rp_test_rig_save(&rig);
            churn(&rig, t, 99, 100); /* some blocks change, some do not */
            rp_test_rig_save(&rig);

            was = rp_test_rig_info(&rig);
            rp_test_rig_init(&again, disk, NULL);
            again.options.directory = "sim";
            rp_test_rig_close(&rig);
            if (remover % 2 == 0) (void)rp_test_bed_table(&again.bed, &o); /* or it is made */
            rp_test_rig_open(&again);
            u = rp_test_rig_find(&again, "t");
            assert_true(rp_table_check(u));
            assert_int_equal(rp_table_digest(t), rp_table_digest(u));
            is = rp_test_rig_info(&again);
            assert_int_equal(is.recovered_items, rp_test_info_of(u).size);
            assert_int_equal(is.segments, was.segments);
            assert_int_equal(is.live_bytes, was.live_bytes);
            assert_true(is.live_bytes > 0 && is.disk_bytes >= is.live_bytes);
            key = rp_store_new_key(rig.bed.store);
            assert_int_equal(key, rp_store_new_key(again.bed.store));
            again.bed.wall_ns = rig.bed.wall_ns;
            churn(&rig, t, 5, 300);
            churn(&again, u, 5, 300);
            assert_int_equal(rp_table_digest(t), rp_table_digest(u));
            rp_test_rig_deinit(&rig);
            rp_test_rig_deinit(&again);
            rp_sim_free(disk);
        }
}

static void a_small_change_makes_a_small_checkpoint(void **state)
{
    static const size_t payloads[] = {400, 4000};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        size_t items = rp_test_part(12800, 1600);
        rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, (int64_t)items);
        rp_sim *disk = rp_sim_new();
        rp_test_rig rig;
        rp_table *t;
        uint64_t full, part;

        rp_test_rig_init(&rig, disk, NULL);
        rig.options.segment_bytes = 8 << 20;
        t = rp_test_bed_table(&rig.bed, &o);
        rp_test_rig_open(&rig);
        rp_test_put_items(&rig, t, 1, items, payloads[i]);
        rp_test_rig_save(&rig);
        full = rp_test_rig_info(&rig).last_checkpoint_bytes;
        assert_true(full >= items * payloads[i]);
        rp_test_put_items(&rig, t, items + 1, items / 100, payloads[i]);
        rp_test_rig_save(&rig);
        part = rp_test_rig_info(&rig).last_checkpoint_bytes;
        assert_true(part > 0 && part <= full * 3 / 100);
        rp_test_rig_save(&rig); /* nothing has changed: a manifest */
        assert_true(rp_test_rig_info(&rig).last_checkpoint_bytes < 8192);
        rp_test_rig_close(&rig);
        assert_int_equal(rp_test_digest_on(disk, "t"), rp_table_digest(t));
        rp_test_rig_deinit(&rig);
        rp_sim_free(disk);
    }
}

/* A table that was emptied has given back its slots, which its journal says: what comes after
 * that is redone. */
static void an_emptied_table_is_redone(void **state)
{
    enum { FEW = 400 };
    const size_t many = rp_test_length(3000, 2100);
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_PRIORITIZED, (int64_t)many);
    rp_store_options store = {.max_bytes = 4 << 20};
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_store_info info;
    rp_table *t;

    (void)state;
    rp_test_rig_init(&rig, disk, &store);
    rig.options.mode = RP_DURABLE_SYNC;
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, t, 1, many, 30);
    for (uint64_t key = 1; key <= many; key++)
        assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
    rp_store_get_info(rig.bed.store, &info);
    assert_int_equal(info.bytes, 0);
    rp_test_put_items(&rig, t, 1, FEW, 30);
    assert_ok(rp_table_alter(
        t, &(rp_table_alteration){.which = RP_ALTER_MAX_SIZE, .max_size = FEW / 2}, NULL));
    assert_ok(rp_table_trim(t, NULL, NULL));
    rp_test_rig_close(&rig);

    assert_int_equal(rp_test_digest_on(disk, "t"), rp_table_digest(t));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* A disk with one checkpoint, and what its table is. */
static rp_sim *saved_disk(uint64_t *digest)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 300);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;

    rp_test_rig_init(&rig, disk, NULL);
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, t, 1, 300, 30);
    rp_test_rig_save(&rig);
    *digest = rp_table_digest(t);
    rp_test_rig_deinit(&rig);
    return disk;
}

/* Loads the disk, changes the table and saves it, with a call failing on the way; then looks
 * what is there. Returns false once the fault comes too late. */
static bool save_with_fault(rp_sim *saved, uint64_t before, uint64_t nth, rp_sim_error error,
                            bool for_good)
{
    rp_sim *disk = rp_sim_copy(saved);
    rp_sim_fault fault = {.error = error, .for_good = for_good, .seed = nth};
    uint64_t after, found;
    rp_test_rig rig;
    rp_status st;
    bool hit;

    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, rp_test_rig_find(&rig, "t"), 1000, 40, 50);
    after = rp_table_digest(rp_test_rig_find(&rig, "t"));
    fault.call = rp_sim_calls(disk) + nth;
    rp_sim_fail(disk, &fault);
    st = rp_test_rig_try_save(&rig);
    hit = rp_sim_failed(disk) > 0 || rp_sim_calls(disk) >= fault.call;
    for (int v = 0; v < 2; v++) { /* killed now, or power cut now */
        rp_sim *image = v == 0 ? rp_sim_copy(disk) : rp_sim_after(disk, RP_SIM_NONE, nth);

        found = rp_test_digest_on(image, "t");
        assert_true(st == RP_OK ? found == after : found == before || found == after);
        rp_sim_free(image);
    }
    rp_sim_fail(disk, &(rp_sim_fault){0});
    rp_test_rig_save(&rig);
    assert_false(rp_test_rig_info(&rig).degraded);
    rp_test_rig_deinit(&rig);
    assert_int_equal(rp_test_digest_on(disk, "t"), after);
    rp_sim_free(disk);
    return hit;
}

static void a_failed_call_keeps_the_previous_checkpoint(void **state)
{
    uint64_t before;
    rp_sim *saved = saved_disk(&before);

    (void)state;
    for (int error = 0; error < RP_SIM_ERRORS; error++)
        for (int for_good = 0; for_good < 2; for_good++)
            for (uint64_t nth = 1 + (uint64_t)(error * 2 + for_good);
                 save_with_fault(saved, before, nth, (rp_sim_error)error, for_good);
                 nth += rp_test_length(rp_test_step(1, 4 * RP_SIM_ERRORS - 1),
                                       20 * RP_SIM_ERRORS - 1)) {}
    rp_sim_free(saved);
}

static void a_failed_call_while_loading_does_no_harm(void **state)
{
    uint64_t before, nth = 1;
    rp_sim *saved = saved_disk(&before);
    bool hit = true;

    (void)state;
    for (; hit; nth += rp_test_length(rp_test_step(1, 3), 7)) {
        rp_sim *disk = rp_sim_copy(saved);
        rp_sim_fault fault = {.call = nth, .error = RP_SIM_EIO};
        rp_test_rig rig;

        rp_test_rig_init(&rig, disk, NULL);
        rp_sim_fail(disk, &fault);
        if (rp_test_rig_try_open(&rig) != RP_OK)
            assert_true(rig.err.code == RP_UNAVAILABLE);
        else
            assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), before);
        hit = rp_sim_failed(disk) > 0;
        rp_test_rig_deinit(&rig);
        rp_sim_fail(disk, &(rp_sim_fault){0});
        assert_int_equal(rp_test_digest_on(disk, "t"), before);
        rp_sim_free(disk);
    }
    assert_true(nth > 20);
    rp_sim_free(saved);
}

typedef struct names {
    char paths[64][RP_SIM_PATH];
    uint64_t sizes[64];
    size_t count;
} names;

static void add_name(void *ctx, const char *path, uint64_t size)
{
    names *n = ctx;

    assert_true(n->count < COUNT_OF(n->paths));
    (void)snprintf(n->paths[n->count], RP_SIM_PATH, "%s", path);
    n->sizes[n->count++] = size;
}

static names list_files(rp_sim *disk)
{
    names n = {.count = 0};

    rp_sim_list(disk, add_name, &n);
    return n;
}

static size_t count_in(rp_sim *disk, const char *folder)
{
    names n = list_files(disk);
    size_t count = 0;

    for (size_t i = 0; i < n.count; i++)
        count += strncmp(n.paths[i], folder, strlen(folder)) == 0;
    return count;
}

static void damage_anywhere_is_noticed_or_harmless(void **state)
{
    uint64_t before, after, empty;
    rp_sim *saved = saved_disk(&before);
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 300);
    rp_test_rig rig;
    names n;

    (void)state;
    rp_test_rig_init(&rig, saved, NULL);
    empty = rp_table_digest(rp_test_bed_table(&rig.bed, &o)); /* the first checkpoint */
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, rp_test_rig_find(&rig, "t"), 1000, 5, 50);
    rp_test_rig_save(&rig);
    after = rp_table_digest(rp_test_rig_find(&rig, "t"));
    rp_test_rig_deinit(&rig);
    n = list_files(saved);
    for (size_t i = 0; i < n.count; i++)
        for (uint64_t byte = 0; byte<n.sizes[i]; byte += n.sizes[i]> 4096
                                    ? rp_test_length(rp_test_step(61, 1103), 2203)
                                    : rp_test_length(rp_test_step(7, 127), 331)) {
            rp_sim *disk = rp_sim_copy(saved);
            uint64_t found;

            assert_true(rp_sim_flip(disk, n.paths[i], 8 * byte + byte % 8));
            rp_test_rig_init(&rig, disk, NULL);
            if (rp_test_rig_try_open(&rig) == RP_OK) {
                found = rp_table_digest(rp_test_rig_find(&rig, "t"));
                assert_true(found == before || found == after || found == empty);
                if (found != after) assert_true(rig.event_count > 0);
            } else {
                assert_true(rig.err.code == RP_CORRUPT || rig.err.code == RP_PRECONDITION);
            }
            rp_test_rig_deinit(&rig);
            rp_sim_free(disk);
        }
    rp_sim_free(saved);
}

static void a_directory_without_a_good_checkpoint_is_refused_every_time(void **state)
{
    uint64_t digest;
    rp_sim *disk = saved_disk(&digest);
    names n = list_files(disk);
    rp_test_rig rig;

    (void)state;
    for (size_t i = 0; i < n.count; i++)
        if (strncmp(n.paths[i], "manifest/", 9) == 0)
            assert_true(rp_sim_flip(disk, n.paths[i], 8 * 70));
    for (int again = 0; again < 3; again++) {
        rp_test_rig_init(&rig, disk, NULL);
        assert_fails(rp_test_rig_try_open(&rig), RP_CORRUPT, &rig.err, "manifest/");
        rp_test_rig_deinit(&rig);
    }
    for (size_t i = 0; i < n.count; i++)
        if (strncmp(n.paths[i], "manifest/", 9) == 0)
            assert_true(rp_sim_delete(disk, n.paths[i]));
    rp_test_rig_init(&rig, disk, NULL);
    assert_fails(rp_test_rig_try_open(&rig), RP_CORRUPT, &rig.err, "no manifest");
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void salvage_loads_readable_items(void **state)
{
    uint64_t digest;
    rp_sim *disk = saved_disk(&digest);
    rp_test_rig rig;
    rp_table *t;
    int64_t size;

    (void)state;
    /* A chunk in the middle of the first segment. */
    assert_true(rp_sim_flip(disk, "seg/0000000000000001", 8 * 5000));
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.salvage = true;
    rp_test_rig_open(&rig);
    t = rp_test_rig_find(&rig, "t");
    assert_true(rp_table_check(t));
    size = rp_test_info_of(t).size;
    assert_true(size >= 298 && size < 300);
    assert_true(rig.event_count > 0);
    rp_test_put_items(&rig, t, 2000, 10, 20);
    assert_true(rp_table_check(t));
    rp_test_rig_save(&rig);
    digest = rp_table_digest(t);
    rp_test_rig_deinit(&rig);
    assert_int_equal(rp_test_digest_on(disk, "t"), digest); /* without salvage */
    rp_sim_free(disk);
}

static void a_directory_is_locked_for_one_process(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig, other;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_init(&other, disk, NULL);
    rp_test_rig_open(&rig);
    assert_int_equal(rp_test_rig_try_open(&other), RP_PRECONDITION);
    rp_test_rig_deinit(&rig);
    rp_test_rig_open(&other);
    rp_test_rig_deinit(&other);
    rp_sim_free(disk);
}

static void tables_that_differ_are_named(void **state)
{
    const rp_spec column = {"x", RP_UINT8, {.rank = 2, .dims = {-1, 30}}};
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 300);
    uint64_t digest;
    rp_sim *disk = saved_disk(&digest);
    rp_signature *signature = NULL;
    rp_test_rig rig;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    (void)rp_test_bed_table(&rig.bed, &o);
    assert_fails(rp_test_rig_try_open(&rig), RP_PRECONDITION, &rig.err, "table 't'");
    rp_test_rig_deinit(&rig);

    assert_ok(rp_signature_flat(rp_allocator_default(), &column, 1, &signature, NULL));
    o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 300);
    o.signature = signature;
    rp_test_rig_init(&rig, disk, NULL);
    (void)rp_test_bed_table(&rig.bed, &o);
    assert_fails(rp_test_rig_try_open(&rig), RP_PRECONDITION, &rig.err, "signature");
    rp_test_rig_deinit(&rig);
    rp_signature_unref(signature);
    rp_sim_free(disk);
}

static void a_larger_table_and_other_selectors_can_be_configured(void **state)
{
    uint64_t digest;
    rp_sim *disk = saved_disk(&digest);

    (void)state;
    for (int sampler = RP_FIFO; sampler <= RP_MAX_HEAP; sampler++) {
        rp_table_options o = rp_test_options("t", (rp_selector_kind)sampler, RP_MIN_HEAP, 1000);
        rp_sim *copy = rp_sim_copy(disk);
        rp_test_rig rig;
        rp_table *t;

        rp_test_rig_init(&rig, copy, NULL);
        rig.options.accept_changes = true;
        t = rp_test_bed_table(&rig.bed, &o);
        rp_test_rig_open(&rig);
        assert_true(rp_table_check(t));
        assert_int_equal(rp_test_info_of(t).size, 300);
        assert_int_equal(rp_test_info_of(t).max_size, 1000);
        rp_test_put_items(&rig, t, 5000, 500, 10);
        assert_int_equal(rp_test_info_of(t).size, 800);
        rp_test_rig_save(&rig);
        digest = rp_table_digest(t);
        rp_test_rig_deinit(&rig);
        assert_int_equal(rp_test_digest_on(copy, "t"), digest);
        rp_sim_free(copy);
    }
    rp_sim_free(disk);
}

static void only_unneeded_files_are_removed(void **state)
{
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 200);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;
    size_t most = 0;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.keep = 2;
    rig.options.segment_bytes = 8192;
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    assert_true(rp_sim_put(disk, "seg/notes.txt", "mine", 4));
    assert_true(rp_sim_put(disk, "manifest/ffff", "mine", 4));
    assert_true(rp_sim_put(disk, "seg/00000000ffffffff", "mine", 4));
    for (uint64_t i = 0; i < 40; i++) {
        rp_test_put_items(&rig, t, 1 + i * 50, 50, 300);
        rp_test_rig_save(&rig);
        if (i > 10 && count_in(disk, "seg/") > most) most = count_in(disk, "seg/");
        assert_true(count_in(disk, "manifest/") <= 3);
    }
    assert_true(most < 40); /* of more than 80 that were written */
    assert_int_equal(count_in(disk, "manifest/"), 3);
    assert_int_equal(count_in(disk, "seg/notes.txt"), 1);
    assert_int_equal(count_in(disk, "seg/00000000ffffffff"), 1);
    rp_test_rig_close(&rig);
    rp_sim_delete(disk, "seg/00000000ffffffff");
    assert_int_equal(rp_test_digest_on(disk, "t"), rp_table_digest(t));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* Items that go one here and one there leave segments that are nearly empty. */
static void nearly_empty_segments_are_compacted(void **state)
{
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 100000);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_durable_info info;
    rp_table *t;
    uint64_t digest;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.keep = 1;
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, t, 1, 5000, 300);
    rp_test_rig_save(&rig);
    for (uint64_t key = 1; key <= 5000; key++)
        if (key % 20 != 0) assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
    for (int i = 0; i < 5; i++) rp_test_rig_save(&rig);
    info = rp_test_rig_info(&rig);
    assert_true(info.live_bytes > 250 * 300);
    assert_true(info.disk_bytes < 4 * info.live_bytes + (2 << 16));
    digest = rp_table_digest(t);
    rp_test_rig_deinit(&rig);
    assert_int_equal(rp_test_digest_on(disk, "t"), digest);
    rp_sim_free(disk);
}

static void changes_in_the_journal_are_redone(void **state)
{
    static const rp_durability modes[] = {RP_DURABLE_INTERVAL, RP_DURABLE_SYNC};

    (void)state;
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 150);
        rp_sim *disk = rp_sim_new(), *killed;
        rp_test_rig rig;
        rp_table *t;
        uint64_t digest;

        rp_test_rig_init(&rig, disk, NULL);
        rig.options.mode = modes[m];
        t = rp_test_bed_table(&rig.bed, &o);
        rp_test_rig_open(&rig);
        for (int round = 0; round < 3; round++) {
            churn(&rig, t, 40 + (uint64_t)round, 300);
            assert_ok(rp_journal_sync(rig.durable->journal, rp_wait_forever(), NULL));
            digest = rp_table_digest(t);
            killed = m == 0 ? rp_sim_copy(disk) : rp_sim_after(disk, RP_SIM_NONE, 1);
            assert_int_equal(rp_test_digest_on(killed, "t"), digest);
            rp_sim_free(killed);
            rp_test_rig_save(&rig);
        }
        digest = rp_table_digest(t);
        rp_test_rig_deinit(&rig);
        assert_int_equal(rp_test_digest_on(disk, "t"), digest);
        rp_sim_free(disk);
    }
}

/* What comes after damage in the journal is lost with salvage, but not in silence. */
static void salvage_names_the_damaged_place_of_the_journal(void **state)
{
    rp_durable_tuning tuning = {.journal_bytes = 2000};
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 150);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    t = rp_test_bed_table(&rig.bed, &o);
    assert_ok(rp_durable_open_tuned(rig.files, &rig.options, &tuning, rig.bed.store,
                                    &rig.durable, &rig.err));
    rp_test_put_items(&rig, t, 1, 50, 10);
    rp_test_rig_deinit(&rig);
    assert_true(rp_sim_flip(disk, "wal/0000000000000001", 1200 * 8));
    for (int salvage = 0; salvage < 2; salvage++) {
        rp_test_rig_init(&rig, disk, NULL);
        rig.options.mode = RP_DURABLE_SYNC;
        rig.options.salvage = salvage;
        assert_int_equal(rp_test_rig_try_open(&rig), salvage ? RP_OK : RP_CORRUPT);
        if (salvage) {
            int64_t left = rp_test_info_of(rp_test_rig_find(&rig, "t")).size;

            assert_true(left > 0 && left < 50);
            assert_int_equal(atomic_load(&rig.degraded_count), 1);
            assert_non_null(strstr(rig.event, "wal/0000000000000001"));
        }
        rp_test_rig_deinit(&rig);
    }
    rp_sim_free(disk);
}

/* What a killed process had only handed to the system is read, and a checkpoint built upon it:
 * so it must be made safe, and not only where a journal goes on. */
static void a_checkpoint_over_unsynced_data_survives_a_power_cut(void **state)
{
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 150);
    rp_sim *disk = rp_sim_new(), *killed, *cut;
    rp_test_rig rig, next;
    uint64_t digest;
    rp_table *t;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_INTERVAL;
    rig.options.interval_ns = RP_FOREVER / 4;
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, t, 1, 100, 200);
    digest = rp_table_digest(t);
    killed = rp_sim_copy(disk);
    rp_test_rig_init(&next, killed, NULL);
    rp_test_rig_open(&next);
    assert_int_equal(rp_table_digest(rp_test_rig_find(&next, "t")), digest);
    cut = rp_sim_after(killed, RP_SIM_NONE, 1);
    assert_int_equal(rp_test_digest_on(cut, "t"), digest);
    rp_test_rig_deinit(&next);
    rp_test_rig_deinit(&rig);
    rp_sim_free(cut);
    rp_sim_free(killed);
    rp_sim_free(disk);
}

static void keys_are_not_reused(void **state)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 150);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    uint64_t key;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    (void)rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    key = rp_store_new_key(rig.bed.store);
    rp_test_put_items(&rig, rp_test_rig_find(&rig, "t"), key, 1, 10);
    rp_test_rig_deinit(&rig);
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    rp_test_rig_open(&rig);
    assert_true(rp_test_has_key(rp_test_rig_find(&rig, "t"), key));
    assert_int_not_equal(rp_store_new_key(rig.bed.store), key);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

RP_TESTS(durable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_tables_are_loaded_to_the_bit),
        cmocka_unit_test(a_small_change_makes_a_small_checkpoint),
        cmocka_unit_test(an_emptied_table_is_redone),
        cmocka_unit_test(a_failed_call_keeps_the_previous_checkpoint),
        cmocka_unit_test(a_failed_call_while_loading_does_no_harm),
        cmocka_unit_test(damage_anywhere_is_noticed_or_harmless),
        cmocka_unit_test(a_directory_without_a_good_checkpoint_is_refused_every_time),
        cmocka_unit_test(salvage_loads_readable_items),
        cmocka_unit_test(a_directory_is_locked_for_one_process),
        cmocka_unit_test(tables_that_differ_are_named),
        cmocka_unit_test(a_larger_table_and_other_selectors_can_be_configured),
        cmocka_unit_test(only_unneeded_files_are_removed),
        cmocka_unit_test(nearly_empty_segments_are_compacted),
        cmocka_unit_test(changes_in_the_journal_are_redone),
        cmocka_unit_test(salvage_names_the_damaged_place_of_the_journal),
        cmocka_unit_test(a_checkpoint_over_unsynced_data_survives_a_power_cut),
        cmocka_unit_test(keys_are_not_reused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

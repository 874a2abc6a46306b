/* SPDX-License-Identifier: Apache-2.0 */
/* Damages a store of about 64 KiB: flips bits, truncates files at every length, and zeroes,
 * exchanges or duplicates sectors. Every load must give all data, or an older state and a
 * report of this, or an error. It must never crash or give anything else. If the damaged
 * checkpoint is not the only one, an earlier one must load.
 *
 * With RP_TEST_SCALE 1, one bit of every byte is flipped; with 8 and more, every bit, and files
 * are truncated at every length. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "disk/record.h"
#include "support/durable_rig.h"

enum { THREADS = 2, MAX_FILES = 64, SECTOR = 512, SHUFFLES = 1500, LENGTHS = 3000 };

typedef struct file {
    char path[RP_SIM_PATH];
    uint64_t size, before; /* `before`: bytes of the files before this one */
} file;

typedef enum kind { BITS, LENGTH, SHUFFLE, RECORDS } kind;

typedef struct store {
    rp_rig rig;
    rp_sim *disk;
    uint64_t digest; /* of all data */
    size_t known;    /* steps from this one on may be lost as a torn tail */
    file files[MAX_FILES];
    size_t count;
    uint64_t bytes;
    kind kind;
    uint64_t items;     /* cases to test */
    uint64_t bits_each; /* BITS: bits that are flipped in each byte */
    atomic_ullong next;
    atomic_size_t loads, refused, older, same, failures;
    pthread_mutex_t mu;
} store;

static void add_file(void *ctx, const char *path, uint64_t size)
{
    store *s = ctx;
    file *f = &s->files[s->count];

    if (strcmp(path, "LOCK") == 0) return;
    assert_true(s->count < MAX_FILES);
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    f->size = size;
    f->before = s->bytes;
    s->bytes += size;
    s->count++;
}

static void drop_newest(rp_sim *image, const store *s)
{
    const file *newest = NULL;

    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->files[i].path, "manifest/", 9) == 0) newest = &s->files[i];
    if (newest != NULL) (void)rp_sim_delete(image, newest->path);
    (void)rp_sim_delete(image, "CURRENT");
}

/* Checks that there is a checkpoint before the last, and that it loads. */
static void check_older(store *s)
{
    rp_sim *image = rp_sim_copy(s->disk);
    rp_rig_recovered got;

    if (s->rig.options.mode == RP_DURABLE_CHECKPOINT) {
        drop_newest(image, s);
        rp_rig_recover(&s->rig, image, 0, &got);
        assert_ok_err(got.status, &got.err);
        assert_true(rp_rig_find(&s->rig, got.digest, s->rig.checkpoints[1],
                                s->rig.checkpoints[1], NULL));
    }
    rp_sim_free(image);
}

static void make(store *s, rp_durability mode, uint64_t seed)
{
    rp_rig_options options = {.seed = seed,
                              .mode = mode,
                              .steps = 70,
                              .chunk_bytes = 900,
                              .segment_bytes = 8000,
                              .journal_bytes = 3000};
    rp_sim *disk = rp_sim_new();
    size_t last_acked = 0;

    memset(s, 0, sizeof *s);
    assert_int_equal(pthread_mutex_init(&s->mu, NULL), 0);
    rp_rig_init(&s->rig, &options);
    rp_rig_open(&s->rig, disk);
    while (rp_rig_step(&s->rig)) {
        size_t step = atomic_load(&s->rig.started), acked = atomic_load(&s->rig.acked);

        if (acked > last_acked) {
            s->known = last_acked;
            last_acked = acked;
        }
        if (step == 30 || step == 60) assert_ok_err(rp_rig_checkpoint(&s->rig), &s->rig.err);
    }
    if (mode == RP_DURABLE_CHECKPOINT) assert_ok_err(rp_rig_checkpoint(&s->rig), &s->rig.err);
    s->digest = rp_rig_digest(&s->rig);
    s->disk = rp_sim_after(disk, RP_SIM_ALL, 1);
    (void)rp_rig_close(&s->rig);
    rp_sim_free(disk);
    rp_sim_list(s->disk, add_file, s);
    check_older(s);
    print_message("# mode %d: %llu bytes in %zu files\n", (int)mode,
                  (unsigned long long)s->bytes, s->count);
}

static void unmake(store *s)
{
    rp_sim_free(s->disk);
    rp_rig_deinit(&s->rig);
    (void)pthread_mutex_destroy(&s->mu);
}

static const file *file_at(const store *s, uint64_t *at)
{
    for (size_t i = 0; i < s->count; i++)
        if (*at - s->files[i].before < s->files[i].size) {
            *at -= s->files[i].before;
            return &s->files[i];
        }
    return NULL;
}

static bool flip(store *s, rp_sim *image, uint64_t index, char what[256])
{
    uint64_t byte = s->bits_each == 8 ? index / 8 : s->bytes * index / s->items;
    uint64_t mixed = index, bit = s->bits_each == 8 ? index % 8 : rp_splitmix64(&mixed) % 8;
    const file *f = file_at(s, &byte);

    (void)snprintf(what, 256, "bit %llu of byte %llu of %s", (unsigned long long)bit,
                   (unsigned long long)byte, f->path);
    return rp_sim_flip(image, f->path, byte * 8 + bit);
}

static bool cut_short(store *s, rp_sim *image, uint64_t index, char what[256])
{
    uint64_t at = s->bytes * index / s->items;
    const file *f = file_at(s, &at);

    (void)snprintf(what, 256, "%s cut to %llu of %llu", f->path, (unsigned long long)at,
                   (unsigned long long)f->size);
    return rp_sim_resize(image, f->path, at);
}

static bool shuffle(store *s, rp_sim *image, uint64_t index, char what[256])
{
    uint8_t one[SECTOR] = {0}, two[SECTOR] = {0};
    uint64_t from, to;
    const file *a, *b;
    size_t n, m;
    rp_rng rng;

    rp_rng_init(&rng, index + 1);
    from = rp_rng_below(&rng, s->bytes);
    to = rp_rng_below(&rng, s->bytes);
    a = file_at(s, &from);
    b = file_at(s, &to);
    if (index % 5 != 4) { /* whole sectors; otherwise any offset */
        from -= from % SECTOR;
        to -= to % SECTOR;
    }
    n = rp_sim_read(image, a->path, from, one, SECTOR);
    m = rp_sim_read(image, b->path, to, two, SECTOR);
    if (m < n) n = m;
    (void)snprintf(what, 256, "%zu bytes: %s at %llu, %s at %llu, way %llu", n, a->path,
                   (unsigned long long)from, b->path, (unsigned long long)to,
                   (unsigned long long)(index % 3));
    if (index % 3 == 2) memset(one, 0, sizeof one);
    if (index % 3 == 1 && !rp_sim_overwrite(image, a->path, from, two, n)) return false;
    return rp_sim_overwrite(image, b->path, to, one, n);
}

/* Finds the offsets of the records. The first one is after the header of the file. */
static size_t find_records(rp_sim *image, const file *f, uint64_t *at, size_t capacity)
{
    uint64_t offset = RP_FILE_HEADER_BYTES;
    size_t count = 0;

    while (count < capacity && offset + RP_RECORD_HEADER_BYTES <= f->size) {
        uint8_t header[RP_RECORD_HEADER_BYTES];
        rp_record record;

        if (rp_sim_read(image, f->path, offset, header, sizeof header) != sizeof header ||
            rp_record_header_read(header, sizeof header, &record, NULL, NULL, NULL) != RP_OK)
            break;
        at[count++] = offset;
        offset += RP_RECORD_HEADER_BYTES + record.size;
    }
    at[count] = offset < f->size ? offset : f->size;
    return count;
}

/* Exchanges two records of one file that have the same length, or overwrites one by the other.
 */
static bool exchange(store *s, rp_sim *image, uint64_t index, char what[256])
{
    enum { MOST = 400, BYTES = 4096 };
    static _Thread_local uint8_t one[BYTES], two[BYTES];
    const file *f = &s->files[index % s->count];
    uint64_t at[MOST + 1], wanted = index / s->count;
    size_t count = find_records(image, f, at, MOST);

    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            size_t n = (size_t)(at[i + 1] - at[i]);

            if (n != at[j + 1] - at[j] || n > BYTES || wanted-- > 0) continue;
            (void)rp_sim_read(image, f->path, at[i], one, n);
            (void)rp_sim_read(image, f->path, at[j], two, n);
            (void)snprintf(what, 256, "records %zu and %zu of %s, way %llu", i, j, f->path,
                           (unsigned long long)(index % 2));
            if (index % 2 == 0 && !rp_sim_overwrite(image, f->path, at[j], one, n))
                return false;
            return rp_sim_overwrite(image, f->path, at[i], two, n);
        }
    return false;
}

static bool damage(store *s, rp_sim *image, uint64_t index, char what[256])
{
    return s->kind == BITS      ? flip(s, image, index, what)
           : s->kind == LENGTH  ? cut_short(s, image, index, what)
           : s->kind == RECORDS ? exchange(s, image, index, what)
                                : shuffle(s, image, index, what);
}

/* Returns true if the end of the last file of the journal is damaged. */
static bool got_end(store *s, uint64_t index)
{
    const file *last = NULL;
    uint64_t at = s->kind == LENGTH ? s->bytes * index / s->items : 0;
    rp_rng rng;

    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->files[i].path, "wal/", 4) == 0) last = &s->files[i];
    if (s->kind == LENGTH) return file_at(s, &at) == last;
    if (s->kind != SHUFFLE) return false;
    rp_rng_init(&rng, index + 1); /* as shuffle() does */
    for (int i = 0; i < 2; i++) {
        at = rp_rng_below(&rng, s->bytes);
        if (file_at(s, &at) == last && at + 2 * SECTOR >= last->size) return true;
    }
    return false;
}

/* Returns the error of a load; NULL if there is none. */
static const char *judge(store *s, uint64_t index, const rp_rig_recovered *got)
{
    size_t last = s->rig.options.steps;
    char what[256];
    rp_rig_recovered before;
    rp_sim *image;

    if (got->status == RP_OK) {
        if (!got->sound) return "loaded, and wrong";
        if (got->digest == s->digest) {
            atomic_fetch_add(&s->same, 1);
            return NULL;
        }
        if (!rp_rig_find(&s->rig, got->digest, 0, last, NULL)) return "other data";
        atomic_fetch_add(&s->older, 1);
        /* The journal records that all batches except the last were synced. If its end is
         * damaged, this record may be lost, too. */
        if (s->rig.options.mode == RP_DURABLE_SYNC && !got_end(s, index)) {
            if (!rp_rig_find(&s->rig, got->digest, s->known, last, NULL))
                return "what was synced is taken for a torn tail";
        } else if (s->rig.options.mode == RP_DURABLE_SYNC) {
            return rp_rig_find(&s->rig, got->digest, atomic_load(&s->rig.checkpointed), last,
                               NULL)
                       ? NULL
                       : "older than need be";
        }
        return got->told ? NULL : "older data, and nobody is told";
    }
    if (got->status != RP_CORRUPT && got->status != RP_PRECONDITION)
        return "refused for another reason";
    atomic_fetch_add(&s->refused, 1);
    image = rp_sim_copy(s->disk);
    (void)damage(s, image, index, what);
    drop_newest(image, s);
    rp_rig_recover(&s->rig, image, 0, &before);
    rp_sim_free(image);
    return before.status == RP_OK ? "refused, though the checkpoint before loads" : NULL;
}

static void *load_some(void *ctx)
{
    store *s = ctx;

    for (;;) {
        uint64_t index = atomic_fetch_add(&s->next, 1);
        rp_sim *image;
        rp_rig_recovered got;
        const char *wrong;
        char what[256] = "";

        if (index >= s->items) return NULL;
        image = rp_sim_copy(s->disk);
        if (damage(s, image, index, what)) {
            rp_rig_recover(&s->rig, image, 0, &got);
            atomic_fetch_add(&s->loads, 1);
            wrong = judge(s, index, &got);
            if (wrong != NULL && atomic_fetch_add(&s->failures, 1) < 20) {
                (void)pthread_mutex_lock(&s->mu);
                print_error("mode %d, %s: %s (%s %s)\n", (int)s->rig.options.mode, what, wrong,
                            rp_status_name(got.status), got.err.text);
                (void)pthread_mutex_unlock(&s->mu);
            }
        }
        rp_sim_free(image);
    }
}

static void load_all(store *s, kind way, uint64_t items)
{
    pthread_t threads[THREADS];

    s->kind = way;
    s->items = items;
    atomic_store(&s->next, 0);
    atomic_store(&s->loads, 0);
    atomic_store(&s->same, 0);
    atomic_store(&s->older, 0);
    atomic_store(&s->refused, 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_some, s), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    print_message("# %zu loads: %zu the same, %zu older and told, %zu refused\n",
                  atomic_load(&s->loads), atomic_load(&s->same), atomic_load(&s->older),
                  atomic_load(&s->refused));
    assert_int_equal(atomic_load(&s->failures), 0);
}

static void both_modes(kind way, uint64_t (*items)(store *))
{
    static const rp_durability modes[] = {RP_DURABLE_CHECKPOINT, RP_DURABLE_SYNC};

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        store *s = calloc(1, sizeof *s);

        assert_non_null(s);
        make(s, modes[i], 3 + i);
        load_all(s, way, items(s));
        if (way == BITS && s->bits_each == 1) assert_true(atomic_load(&s->refused) > 0);
        unmake(s);
        free(s);
    }
}

static uint64_t bits(store *s)
{
    double scale = rp_test_scale();

    s->bits_each = scale >= 8 ? 8 : 1;
    return s->bits_each == 8 ? 8 * s->bytes
           : scale < 1       ? (uint64_t)((double)s->bytes * scale) / rp_test_length(1, 2)
                             : s->bytes;
}

static uint64_t lengths(store *s)
{
    size_t n = rp_test_scaled(LENGTHS, 100);

    return rp_test_scale() >= 8 || n > s->bytes ? s->bytes : n;
}

static uint64_t shuffles(store *s)
{
    (void)s;
    return rp_test_scaled(SHUFFLES, 100);
}

static void a_load_survives_flipped_bits(void **state)
{
    (void)state;
    both_modes(BITS, bits);
}

static void a_load_survives_truncated_files(void **state)
{
    (void)state;
    both_modes(LENGTH, lengths);
}

static void a_load_survives_damaged_sectors(void **state)
{
    (void)state;
    both_modes(SHUFFLE, shuffles);
}

static uint64_t exchanges(store *s)
{
    return s->count * rp_test_scaled(40, 10);
}

static void a_load_survives_damaged_records(void **state)
{
    (void)state;
    both_modes(RECORDS, exchanges);
}

/* Removes files, one at a time. */
static void a_load_survives_missing_files(void **state)
{
    static const rp_durability modes[] = {RP_DURABLE_CHECKPOINT, RP_DURABLE_SYNC};

    (void)state;
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        store *s = calloc(1, sizeof *s);

        assert_non_null(s);
        make(s, modes[m], 5);
        for (size_t i = 0; i < s->count; i++) {
            rp_sim *image = rp_sim_copy(s->disk);
            rp_rig_recovered got;

            assert_true(rp_sim_delete(image, s->files[i].path));
            rp_rig_recover(&s->rig, image, 0, &got);
            if (got.status == RP_OK) {
                size_t step = 0;
                bool known = rp_rig_find(&s->rig, got.digest, 0, s->rig.options.steps, &step);
                /* It cannot be known that the last file of a journal existed. */
                bool is_journal = strncmp(s->files[i].path, "wal/", 4) == 0;
                /* Samples do not wait for the journal: the last ones may not be on the disk. */
                size_t promised =
                    atomic_load(is_journal ? &s->rig.checkpointed : &s->rig.acked);
                bool told = got.told || got.digest == s->digest ||
                            (m > 0 && rp_rig_find(&s->rig, got.digest, promised,
                                                  s->rig.options.steps, NULL));

                if (!known || !got.sound || !told) {
                    print_error("without %s: step %zu, told %d, sound %d\n", s->files[i].path,
                                step, got.told, got.sound);
                    fail();
                }
            } else {
                assert_int_equal(got.status, RP_CORRUPT);
            }
            rp_sim_free(image);
        }
        unmake(s);
        free(s);
    }
}

/* Loses a record of a segment that is not needed, or that was not synced. A store that can
 * still be loaded can also be used further, saved and loaded again. */
static void a_store_loaded_with_lost_records_can_continue(void **state)
{
    enum { MOST = 400, BYTES = 4096 };
    static const uint8_t zeros[BYTES];
    size_t loaded = 0;

    (void)state;
    for (uint64_t seed = 21; seed < 25; seed++) {
        store *s = calloc(1, sizeof *s);

        assert_non_null(s);
        make(s, RP_DURABLE_INTERVAL, seed);
        for (size_t f = 0; f < s->count; f++) {
            uint64_t at[MOST + 1];
            size_t count = find_records(s->disk, &s->files[f], at, MOST);

            if (strncmp(s->files[f].path, "seg/", 4) != 0) continue;
            for (size_t i = 0; i < count; i++) {
                rp_sim *image = rp_sim_copy(s->disk);
                rp_rig_recovered got;

                (void)rp_sim_overwrite(image, s->files[f].path, at[i], zeros,
                                       (size_t)(at[i + 1] - at[i]));
                rp_rig_recover(&s->rig, image, RP_RIG_GO_ON, &got);
                loaded += got.status == RP_OK;
                if (got.stuck != NULL)
                    fail_msg("seed %llu, without record %zu of %s: %s; %s",
                             (unsigned long long)seed, i, s->files[f].path, got.stuck,
                             got.err.text);
                rp_sim_free(image);
            }
        }
        unmake(s);
        free(s);
    }
    assert_true(loaded > 0);
}

/* However the last checkpoint is damaged, the checkpoint before it and the journal since then
 * are complete. */
static void keep_older(rp_durability mode)
{
    rp_rig_options options = {
        .seed = 9, .mode = mode, .steps = 90, .segment_bytes = 700, .journal_bytes = 600};
    store *s = calloc(1, sizeof *s);
    rp_sim *disk = rp_sim_new();

    assert_non_null(s);
    rp_rig_init(&s->rig, &options);
    rp_rig_open(&s->rig, disk);
    while (rp_rig_step(&s->rig)) {
        rp_rig_recovered got;
        size_t done = s->rig.checkpoint_count;

        if (atomic_load(&s->rig.started) % 7 != 0) continue;
        assert_ok_err(rp_rig_checkpoint(&s->rig), &s->rig.err);
        if (done++ == 0) continue;
        s->disk = rp_sim_copy(disk);
        s->count = 0;
        rp_sim_list(s->disk, add_file, s);
        drop_newest(s->disk, s);
        rp_rig_recover(&s->rig, s->disk, 0, &got);
        assert_ok_err(got.status, &got.err);
        assert_true(got.sound);
        if (mode == RP_DURABLE_CHECKPOINT)
            assert_true(got.digest == s->rig.digests[s->rig.checkpoints[done - 2]]);
        else
            assert_true(rp_rig_find(&s->rig, got.digest, atomic_load(&s->rig.acked),
                                    atomic_load(&s->rig.started), NULL));
        rp_sim_free(s->disk);
    }
    rp_rig_deinit(&s->rig);
    rp_sim_free(disk);
    free(s);
}

static void an_older_checkpoint_loads_when_the_newest_is_damaged(void **state)
{
    (void)state;
    keep_older(RP_DURABLE_CHECKPOINT);
    keep_older(RP_DURABLE_INTERVAL);
    keep_older(RP_DURABLE_SYNC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_survives_flipped_bits),
        cmocka_unit_test(a_load_survives_truncated_files),
        cmocka_unit_test(a_load_survives_damaged_sectors),
        cmocka_unit_test(a_load_survives_damaged_records),
        cmocka_unit_test(a_load_survives_missing_files),
        cmocka_unit_test(an_older_checkpoint_loads_when_the_newest_is_damaged),
        cmocka_unit_test(a_store_loaded_with_lost_records_can_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

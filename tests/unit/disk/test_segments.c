/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/records_scan.h"
#include "disk/segments.h"

#include "disk/hash.h"
#include "support/segments_rig.h"
#include "util/little_endian.h"

static rp_disk_location put(rp_rig *rig, rp_chunk *chunk)
{
    rp_disk_location location = {0};

    assert_ok(rp_segments_put_chunk(rig->segments, chunk, &location));
    rp_rig_check(rig);
    return location;
}

static void same_location(const rp_disk_location *a, const rp_disk_location *b)
{
    assert_int_equal(a->segment, b->segment);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->size, b->size);
}

static void sync_all(rp_rig *rig)
{
    rp_error err = {0};

    assert_ok_err(rp_segments_sync(rig->segments, &err), &err);
    rp_rig_check(rig);
}

static void expect(rp_rig *rig, const rp_disk_location *location, const rp_chunk *chunk)
{
    rp_error err = {0};

    assert_ok_err(rp_rig_compare(rig->segments, location, chunk, &err), &err);
}

/* The same disk, seen by a process that starts. */
static rp_rig reopen(rp_rig *rig, uint64_t next_number)
{
    rp_rig again = rp_rig_open(rp_sim_after(rig->disk, RP_SIM_NONE, 0), next_number);

    rp_rig_close(rig);
    return again;
}

static void records_get_consecutive_locations(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 5);
    rp_chunk *chunk = rp_rig_chunk(1, 100);
    rp_disk_location a, b, c;

    (void)state;
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 9, "block", 5, &a));
    b = put(&rig, chunk);
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 9, NULL, 0, &c));
    assert_int_equal(a.segment, 5);
    assert_int_equal(a.offset, 64);
    assert_int_equal(a.size, 5);
    assert_int_equal(b.offset, 64 + 32 + 5);
    assert_int_equal(b.size, chunk->wire_bytes);
    assert_int_equal(c.offset, b.offset + 32 + b.size);
    assert_int_equal(rp_segments_queued(rig.segments), 3 * 32 + 5 + chunk->wire_bytes);
    assert_int_equal(rp_segments_writing(rig.segments), 5);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

static void a_chunk_is_written_once(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100);
    rp_disk_location a, b;

    (void)state;
    assert_false(rp_chunk_locate(chunk, &a));
    assert_false(rp_segments_locate(rig.segments, chunk, &a));
    a = put(&rig, chunk);
    assert_true(rp_segments_locate(rig.segments, chunk, &b));
    same_location(&a, &b);
    assert_false(rp_segments_has_stored(rig.segments, chunk));
    sync_all(&rig);
    assert_true(rp_segments_has_stored(rig.segments, chunk));
    b = put(&rig, chunk);
    same_location(&a, &b);
    assert_int_equal(rp_segments_queued(rig.segments), 0);
    assert_int_equal(rp_refcount_get(&chunk->refs), 1); /* the queue has let go */
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

static void queued_chunks_are_read_from_memory(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100);
    rp_disk_location a = put(&rig, chunk), b;
    char data[8] = "";

    (void)state;
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 0, "block", 5, &b));
    expect(&rig, &a, chunk);
    assert_ok(rp_segments_read(rig.segments, &b, RP_RECORD_BLOCK, data, NULL, NULL));
    assert_string_equal(data, "block");
    assert_int_equal(rp_sim_calls(rig.disk), 0);
    assert_int_equal(rp_segments_read(rig.segments, &b, RP_RECORD_CHUNK, data, NULL, NULL),
                     RP_CORRUPT);
    assert_ok(rp_segments_flush(rig.segments, NULL));
    assert_int_equal(rp_segments_queued(rig.segments), 0);
    expect(&rig, &a, chunk);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

static void synced_chunks_survive_a_power_cut(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *small = rp_rig_chunk(1, 100), *large = rp_rig_chunk(2, 20000);
    rp_disk_location a = put(&rig, small), b = put(&rig, large);
    uint64_t bytes = 0;
    rp_error err;

    (void)state;
    sync_all(&rig);
    expect(&rig, &a, small);
    rig = reopen(&rig, 2);
    assert_fails(rp_rig_compare(rig.segments, &a, small, &err), RP_NOT_FOUND, &err,
                 "no segment 1");
    assert_ok(rp_segments_open(rig.segments, 1, &bytes, NULL));
    assert_int_equal(bytes, b.offset + 32 + b.size);
    assert_ok(rp_segments_open(rig.segments, 1, &bytes, NULL));
    expect(&rig, &a, small);
    expect(&rig, &b, large);
    rp_chunk_unref(small);
    rp_chunk_unref(large);
    rp_rig_close(&rig);
}

/* Where what may not be read is, what is asked for, and what the answer is. */
static void wrong_locations_are_refused(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100);
    rp_disk_location good = put(&rig, chunk);
    const struct {
        rp_disk_location location;
        rp_record_kind kind;
        rp_status status;
    } rows[] = {
        {{1, good.offset, good.size}, RP_RECORD_BLOCK, RP_CORRUPT},
        {{1, good.offset, good.size - 1}, RP_RECORD_CHUNK, RP_CORRUPT},
        {{1, good.offset + 1, good.size - 1}, RP_RECORD_CHUNK, RP_CORRUPT},
        {{1, 0, good.size}, RP_RECORD_CHUNK, RP_NOT_FOUND},
        {{1, good.offset, good.size + 1}, RP_RECORD_CHUNK, RP_NOT_FOUND},
        {{1, UINT64_MAX - 10, good.size}, RP_RECORD_CHUNK, RP_NOT_FOUND},
        {{2, good.offset, good.size}, RP_RECORD_CHUNK, RP_NOT_FOUND},
        {{0, 0, good.size}, RP_RECORD_CHUNK, RP_NOT_FOUND},
    };
    static uint8_t out[4096];

    (void)state;
    sync_all(&rig);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(
            rp_segments_read(rig.segments, &rows[i].location, rows[i].kind, out, NULL, NULL),
            rows[i].status);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

static void every_flipped_bit_of_a_record_is_found(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 60);
    rp_disk_location location = put(&rig, chunk);
    rp_error err;

    (void)state;
    sync_all(&rig);
    for (uint64_t bit = 8 * location.offset; bit < 8 * (location.offset + 32 + location.size);
         bit++) {
        assert_true(rp_sim_flip(rig.disk, "seg/0000000000000001", bit));
        assert_int_equal(rp_rig_compare(rig.segments, &location, chunk, &err), RP_CORRUPT);
        assert_true(rp_sim_flip(rig.disk, "seg/0000000000000001", bit));
    }
    expect(&rig, &location, chunk);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

/* Two records, and the seal that a third in the next segment brings. */
static void a_segment_has_the_bytes_of_the_manual(void **state)
{
    static uint8_t got[16384], expected[16384], payload[RP_RIG_SEGMENT_BYTES];
    rp_file_header header = {.version = 1, .kind = RP_FILE_SEGMENT, .number = 3};
    rp_rig rig = rp_rig_open(rp_sim_new(), 3);
    rp_hash *hash = rp_hash_new(rp_allocator_default());
    size_t second = 64 + 32 + 5, end = second + 32 + sizeof payload;
    uint8_t *seal = expected + end + 32;
    rp_disk_location location;
    uint32_t crc;

    (void)state;
    memset(payload, 'x', sizeof payload);
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 8, "block", 5, &location));
    assert_ok(
        rp_segments_put(rig.segments, RP_RECORD_BLOCK, 9, payload, sizeof payload, &location));
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 10, "next", 4, &location));
    assert_int_equal(location.segment, 4);
    sync_all(&rig);

    header.store = rp_rig_store;
    crc = rp_file_header_write(expected, &header);
    crc = rp_record_write(expected + 64, RP_RECORD_BLOCK, 8, crc, "block", 5);
    memcpy(expected + 96, "block", sizeof "block" - 1);
    crc = rp_record_write(expected + second, RP_RECORD_BLOCK, 9, crc, payload, sizeof payload);
    memcpy(expected + second + 32, payload, sizeof payload);
    rp_hash_update(hash, expected, end);
    rp_put_u64(seal, 2);
    rp_put_u64(seal + 8, end);
    rp_hash_digest(hash, seal + 16);
    rp_put_u32(seal + 32, 64);
    rp_put_u32(seal + 36, (uint32_t)second);
    (void)rp_record_write(expected + end, RP_RECORD_SEAL, 3, crc, seal, 40);
    assert_int_equal(rp_sim_read(rig.disk, "seg/0000000000000003", 0, got, sizeof got),
                     end + 32 + 40);
    assert_memory_equal(got, expected, end + 32 + 40);
    rp_hash_free(hash);
    rp_rig_close(&rig);
}

typedef struct visited {
    size_t count, seals;
    uint64_t last;
    size_t stop_after;
} visited;

static bool visit(void *ctx, uint64_t offset, const rp_record *record)
{
    visited *v = ctx;

    assert_true(offset >= v->last);
    v->last = offset;
    v->count++;
    v->seals += record->kind == RP_RECORD_SEAL;
    return v->stop_after == 0 || v->count < v->stop_after;
}

static rp_status scan(rp_rig *rig, const char *path, visited *v, uint64_t *end)
{
    rp_file_header header;

    *v = (visited){.stop_after = v->stop_after};
    return rp_records_scan(&(rp_records_scan_options){.alloc = rp_allocator_default(),
                                                      .files = rig->files,
                                                      .path = path,
                                                      .kind = RP_FILE_SEGMENT,
                                                      .store = &rp_rig_store,
                                                      .each = visit,
                                                      .ctx = v},
                           &header, end, NULL);
}

/* Segment 1 is sealed and has 6 records, the last larger than the buffer; 2 has one. */
static rp_rig two_segments(uint64_t *size)
{
    static uint8_t large[300 << 10];
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_disk_location location;

    for (uint64_t i = 0; i < 5; i++)
        assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, i, large, 100, &location));
    assert_ok(
        rp_segments_put(rig.segments, RP_RECORD_BLOCK, 6, large, sizeof large, &location));
    assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 7, large, 10, &location));
    assert_int_equal(location.segment, 2);
    sync_all(&rig);
    assert_ok(rp_segments_open(rig.segments, 1, size, NULL));
    return rig;
}

static void a_scan_visits_every_record(void **state)
{
    uint64_t size = 0, end = 0;
    rp_rig rig = two_segments(&size);
    visited v = {0};

    (void)state;
    assert_ok(scan(&rig, "seg/0000000000000001", &v, &end));
    assert_int_equal(v.count, 7); /* with the seal */
    assert_int_equal(v.seals, 1);
    assert_int_equal(end, size);
    assert_ok(scan(&rig, "seg/0000000000000002", &v, &end));
    assert_int_equal(v.count, 1);
    assert_int_equal(v.seals, 0);
    v.stop_after = 2;
    assert_ok(scan(&rig, "seg/0000000000000001", &v, &end));
    assert_int_equal(v.count, 2);
    assert_int_equal(end, 64 + 2 * 132);
    assert_int_equal(scan(&rig, "seg/0000000000000009", &v, &end), RP_NOT_FOUND);
    rp_rig_close(&rig);
}

static void a_file_of_another_kind_or_store_is_refused(void **state)
{
    const rp_store_id other = {{9}};
    uint64_t size = 0, end = 0;
    rp_rig rig = two_segments(&size);
    rp_file_header header;
    visited v = {0};
    rp_records_scan_options options = {.alloc = rp_allocator_default(),
                                       .files = rig.files,
                                       .path = "seg/0000000000000001",
                                       .kind = RP_FILE_JOURNAL,
                                       .store = &rp_rig_store,
                                       .each = visit,
                                       .ctx = &v};
    rp_error err;

    (void)state;
    assert_fails(rp_records_scan(&options, &header, &end, &err), RP_CORRUPT, &err, "kind");
    options.kind = RP_FILE_SEGMENT;
    options.store = &other;
    assert_fails(rp_records_scan(&options, &header, &end, &err), RP_CORRUPT, &err,
                 "another store");
    options.store = NULL;
    assert_ok(rp_records_scan(&options, &header, &end, &err));
    assert_int_equal(header.number, 1);
    rp_rig_close(&rig);
}

/* A small sealed segment. */
static rp_rig small_segment(uint64_t *size)
{
    static const uint8_t block[RP_RIG_SEGMENT_BYTES] = {1, 2, 3};
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_segments_options options = {.alloc = rp_allocator_default(),
                                   .files = rig.files,
                                   .store = rp_rig_store,
                                   .segment_bytes = 300,
                                   .next_number = 1};
    rp_disk_location location;

    rp_segments_free(rig.segments);
    assert_ok(rp_segments_new(&options, &rig.segments, NULL));
    for (int i = 0; i < 4; i++)
        assert_ok(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 1, block, 70, &location));
    assert_int_equal(location.segment, 2);
    sync_all(&rig);
    assert_ok(rp_segments_open(rig.segments, 1, size, NULL));
    return rig;
}

static void every_flipped_bit_of_a_sealed_segment_is_found(void **state)
{
    uint64_t size = 0, end = 0;
    rp_rig rig = small_segment(&size);
    visited v = {0};

    (void)state;
    assert_ok(scan(&rig, "seg/0000000000000001", &v, &end));
    for (uint64_t bit = 0; bit < 8 * size; bit++) {
        assert_true(rp_sim_flip(rig.disk, "seg/0000000000000001", bit));
        assert_int_equal(scan(&rig, "seg/0000000000000001", &v, &end), RP_CORRUPT);
        assert_true(end <= bit / 8);
        assert_true(rp_sim_flip(rig.disk, "seg/0000000000000001", bit));
    }
    rp_rig_close(&rig);
}

static void a_truncated_segment_is_readable_up_to_the_cut(void **state)
{
    uint64_t size = 0, end = 0;
    rp_rig rig = small_segment(&size);
    visited v = {0};

    (void)state;
    for (uint64_t cut = size; cut-- > 0;) {
        size_t whole = cut < 64 ? 0 : (size_t)(cut - 64) / 102;
        assert_true(rp_sim_resize(rig.disk, "seg/0000000000000001", cut));
        assert_int_equal(scan(&rig, "seg/0000000000000001", &v, &end),
                         cut < 64 ? RP_CORRUPT : RP_OK);
        assert_int_equal(v.count, whole > 3 ? 3 : whole);
        assert_int_equal(end, cut < 64 ? 0 : 64 + 102 * (whole > 3 ? 3 : whole));
    }
    rp_rig_close(&rig);
}

/* Bytes behind a seal, records that changed places, a seal of another segment. */
static void a_segment_of_rearranged_records_is_refused(void **state)
{
    static uint8_t whole[4096], other[4096];
    uint64_t size = 0, end = 0;
    rp_rig rig = small_segment(&size);
    visited v = {0};
    const char *path = "seg/0000000000000001";

    (void)state;
    assert_int_equal(rp_sim_read(rig.disk, path, 0, whole, sizeof whole), size);
    assert_true(rp_sim_resize(rig.disk, path, size + 1));
    assert_int_equal(scan(&rig, path, &v, &end), RP_CORRUPT);
    assert_true(rp_sim_resize(rig.disk, path, size));
    assert_ok(scan(&rig, path, &v, &end));

    memcpy(other, whole, sizeof whole);
    memcpy(other + 64, whole + 64 + 102, 102); /* the same payload, but it follows another */
    assert_true(rp_sim_overwrite(rig.disk, path, 0, other, (size_t)size));
    assert_int_equal(scan(&rig, path, &v, &end), RP_CORRUPT);
    assert_int_equal(end, 64);
    rp_rig_close(&rig);
}

static rp_rig *oom_rig;

static rp_status scan_with(const rp_allocator *alloc)
{
    rp_file_header header;
    visited v = {0};
    uint64_t end;

    return rp_records_scan(&(rp_records_scan_options){.alloc = alloc,
                                                      .files = oom_rig->files,
                                                      .path = "seg/0000000000000001",
                                                      .kind = RP_FILE_SEGMENT,
                                                      .store = &rp_rig_store,
                                                      .each = visit,
                                                      .ctx = &v},
                           &header, &end, NULL);
}

static void a_scan_may_run_out_of_memory_and_of_disk(void **state)
{
    uint64_t size = 0, end = 0;
    rp_rig rig = two_segments(&size);
    visited v = {0};
    uint64_t calls;

    (void)state;
    oom_rig = &rig;
    rp_test_survives_oom(scan_with);
    calls = rp_sim_calls(rig.disk);
    assert_ok(scan(&rig, "seg/0000000000000001", &v, &end));
    calls = rp_sim_calls(rig.disk) - calls;
    assert_true(calls >= 4);
    for (uint64_t i = 1; i <= calls; i++) {
        rp_sim_fail(rig.disk, &(rp_sim_fault){.call = rp_sim_calls(rig.disk) + i});
        assert_int_equal(scan(&rig, "seg/0000000000000001", &v, &end), RP_UNAVAILABLE);
    }
    rp_rig_close(&rig);
}

static void a_removed_segment_stays_readable_for_its_chunks(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 9000), *other = rp_rig_chunk(2, 100);
    rp_disk_location a = put(&rig, chunk), b = put(&rig, other);
    uint64_t bytes;
    rp_error err;

    (void)state;
    assert_fails(rp_segments_remove(rig.segments, 1, &err), RP_PRECONDITION, &err, "segment 1");
    sync_all(&rig);
    assert_int_equal(b.segment, 2);
    assert_int_equal(rp_segments_writing(rig.segments), 2);
    assert_true(rp_segments_in_use(rig.segments, 1));
    assert_int_equal(rp_segments_remove(rig.segments, 2, &err), RP_PRECONDITION);
    assert_ok(rp_segments_remove(rig.segments, 1, &err));
    expect(&rig, &a, chunk);
    assert_int_equal(rp_sim_open_handles(rig.disk), 2);
    rp_chunk_unref(chunk);
    assert_false(rp_segments_in_use(rig.segments, 1));
    assert_int_equal(rp_segments_read(rig.segments, &a, RP_RECORD_CHUNK, &bytes, NULL, NULL),
                     RP_NOT_FOUND);
    assert_int_equal(rp_segments_remove(rig.segments, 1, &err), RP_NOT_FOUND);
    assert_int_equal(rp_sim_open_handles(rig.disk), 1); /* closed by then */
    rp_chunk_unref(other);
    rp_rig_close(&rig);
}

static void chunks_may_outlive_the_segments(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100), *queued = rp_rig_chunk(2, 100);
    rp_disk_location location = put(&rig, chunk);

    (void)state;
    sync_all(&rig);
    (void)put(&rig, queued);
    rp_rig_close(&rig); /* every file is closed */
    assert_true(rp_chunk_locate(chunk, &location));
    rp_chunk_unref(chunk);
    rp_chunk_unref(queued);
}

static void a_chunk_moves_to_a_new_segment(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100), *filler = rp_rig_chunk(2, 9000);
    rp_disk_location old, new, again;

    (void)state;
    assert_ok(rp_segments_move_chunk(rig.segments, chunk, &old, NULL)); /* had none */
    (void)put(&rig, filler);
    assert_ok(rp_segments_move_chunk(rig.segments, chunk, &again, NULL));
    same_location(&again, &old); /* on its way */
    sync_all(&rig);
    assert_ok(rp_segments_move_chunk(rig.segments, chunk, &new, NULL));
    rp_rig_check(&rig);
    assert_int_equal(new.segment, 2);
    assert_false(rp_segments_has_stored(rig.segments, chunk));
    assert_true(rp_segments_locate(rig.segments, chunk, &again));
    same_location(&again, &new);
    expect(&rig, &new, chunk);
    expect(&rig, &old, chunk);
    sync_all(&rig);
    assert_true(rp_segments_has_stored(rig.segments, chunk));
    rp_chunk_unref(filler);
    assert_false(rp_segments_in_use(rig.segments, 1));
    assert_ok(rp_segments_remove(rig.segments, 1, NULL));
    expect(&rig, &new, chunk);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

static void a_chunk_that_was_read_is_adopted(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100), *same = rp_rig_chunk(1, 100);
    rp_disk_location location = put(&rig, chunk), got = {0};
    uint64_t bytes;

    (void)state;
    sync_all(&rig);
    rig = reopen(&rig, 2);
    assert_int_equal(rp_segments_adopt(rig.segments, same, &location, 0), RP_NOT_FOUND);
    assert_ok(rp_segments_open(rig.segments, 1, &bytes, NULL));
    location.size++;
    assert_int_equal(rp_segments_adopt(rig.segments, same, &location, 0), RP_INVALID);
    location.size--;
    assert_ok(rp_segments_adopt(rig.segments, same, &location, 0));
    assert_ok(rp_segments_adopt(rig.segments, same, &location, 0));
    assert_true(rp_segments_has_stored(rig.segments, same));
    assert_ok(rp_segments_put_chunk(rig.segments, same, &got));
    same_location(&got, &location);
    assert_int_equal(rp_segments_queued(rig.segments), 0);
    assert_true(rp_segments_in_use(rig.segments, 1));
    rp_chunk_unref(chunk);
    rp_chunk_unref(same);
    rp_rig_close(&rig);
}

/* Places in one store are nothing in another, even if their numbers are the same. */
static void a_chunk_may_lie_in_two_stores(void **state)
{
    rp_rig one = rp_rig_open(rp_sim_new(), 1), two = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 100), *before = rp_rig_chunk(2, 300);
    rp_disk_location a, b;

    (void)state;
    a = put(&one, chunk);
    assert_false(rp_segments_locate(two.segments, chunk, &b));
    (void)put(&two, before);
    b = put(&two, chunk);
    assert_int_not_equal(a.offset, b.offset);
    sync_all(&one);
    sync_all(&two);
    expect(&one, &a, chunk);
    expect(&two, &b, chunk);
    rp_rig_close(&one);
    expect(&two, &b, chunk);
    rp_chunk_unref(before);
    rp_chunk_unref(chunk);
    rp_rig_close(&two);
}

static void a_segment_of_another_kind_is_not_opened(void **state)
{
    static const rp_store_id other = {{7}};
    rp_rig rig = rp_rig_open(rp_sim_new(), 9);
    rp_file_header header = {
        .version = 1, .kind = RP_FILE_SEGMENT, .number = 1, .store = rp_rig_store};
    uint8_t bytes[64];
    uint64_t size;
    rp_error err;

    (void)state;
    assert_ok(rig.files->ops->make_directory(rig.files, "seg", NULL));
    assert_fails(rp_segments_open(rig.segments, 1, &size, &err), RP_NOT_FOUND, &err, "seg/");
    (void)rp_file_header_write(bytes, &header);
    assert_true(rp_sim_put(rig.disk, "seg/0000000000000001", bytes, 63));
    assert_int_equal(rp_segments_open(rig.segments, 1, &size, &err), RP_CORRUPT);
    assert_true(rp_sim_put(rig.disk, "seg/0000000000000002", bytes, 64));
    assert_fails(rp_segments_open(rig.segments, 2, &size, &err), RP_CORRUPT, &err,
                 "it is segment 1");
    header.store = other;
    (void)rp_file_header_write(bytes, &header);
    assert_true(rp_sim_put(rig.disk, "seg/0000000000000001", bytes, 64));
    assert_fails(rp_segments_open(rig.segments, 1, &size, &err), RP_CORRUPT, &err, "store");
    header = (rp_file_header){.version = 2, .kind = RP_FILE_SEGMENT, .number = 1};
    (void)rp_file_header_write(bytes, &header);
    assert_true(rp_sim_put(rig.disk, "seg/0000000000000001", bytes, 64));
    assert_int_equal(rp_segments_open(rig.segments, 1, &size, &err), RP_PRECONDITION);
    header = (rp_file_header){.version = 1, .kind = RP_FILE_JOURNAL, .number = 1};
    (void)rp_file_header_write(bytes, &header);
    assert_true(rp_sim_put(rig.disk, "seg/0000000000000001", bytes, 64));
    assert_fails(rp_segments_open(rig.segments, 1, &size, &err), RP_CORRUPT, &err, "kind 4");
    rp_rig_close(&rig);
}

static void options_are_checked(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_segments_options options = {
        .alloc = rp_allocator_default(), .files = rig.files, .next_number = 1};
    rp_segments *s = NULL;
    rp_error err;

    (void)state;
    options.segment_bytes = ((uint64_t)2 << 30) + 1;
    assert_fails(rp_segments_new(&options, &s, &err), RP_INVALID, &err, "segment_bytes");
    options.segment_bytes = 0;
    options.next_number = 0;
    assert_fails(rp_segments_new(&options, &s, &err), RP_INVALID, &err, "next_number");
    options.next_number = (uint64_t)1 << 32;
    assert_int_equal(rp_segments_new(&options, &s, &err), RP_INVALID);
    options.next_number = UINT32_MAX;
    assert_ok(rp_segments_new(&options, &s, &err));
    rp_segments_free(s);
    rp_segments_free(NULL);
    rp_rig_close(&rig);
}

/* The last number is given once; then there are none. */
static void numbers_of_segments_may_run_out(void **state)
{
    static const uint8_t block[RP_RIG_SEGMENT_BYTES];
    rp_rig rig = rp_rig_open(rp_sim_new(), UINT32_MAX);
    rp_disk_location location;

    (void)state;
    assert_ok(
        rp_segments_put(rig.segments, RP_RECORD_BLOCK, 0, block, sizeof block, &location));
    assert_int_equal(location.segment, UINT32_MAX);
    assert_int_equal(rp_segments_put(rig.segments, RP_RECORD_BLOCK, 0, block, 1, &location),
                     RP_NO_RESOURCE);
    sync_all(&rig);
    rp_rig_close(&rig);
}

RP_TESTS(segments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_get_consecutive_locations),
        cmocka_unit_test(a_chunk_is_written_once),
        cmocka_unit_test(queued_chunks_are_read_from_memory),
        cmocka_unit_test(synced_chunks_survive_a_power_cut),
        cmocka_unit_test(wrong_locations_are_refused),
        cmocka_unit_test(every_flipped_bit_of_a_record_is_found),
        cmocka_unit_test(a_segment_has_the_bytes_of_the_manual),
        cmocka_unit_test(a_scan_visits_every_record),
        cmocka_unit_test(a_file_of_another_kind_or_store_is_refused),
        cmocka_unit_test(every_flipped_bit_of_a_sealed_segment_is_found),
        cmocka_unit_test(a_truncated_segment_is_readable_up_to_the_cut),
        cmocka_unit_test(a_segment_of_rearranged_records_is_refused),
        cmocka_unit_test(a_scan_may_run_out_of_memory_and_of_disk),
        cmocka_unit_test(a_removed_segment_stays_readable_for_its_chunks),
        cmocka_unit_test(chunks_may_outlive_the_segments),
        cmocka_unit_test(a_chunk_moves_to_a_new_segment),
        cmocka_unit_test(a_chunk_that_was_read_is_adopted),
        cmocka_unit_test(a_chunk_may_lie_in_two_stores),
        cmocka_unit_test(a_segment_of_another_kind_is_not_opened),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(numbers_of_segments_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fixture.h"
#include "chunk/trajectory.h"
#include "store/store.h"
#include "table/spill.h"
#include "table/table.h"
#include "util/printable.h"

size_t rp_test_scaled(size_t count, size_t least)
{
    double n = (double)count * rp_test_scale();

    return n > (double)least ? (size_t)n : least;
}

rp_chunk *rp_test_try_blob(const rp_allocator *alloc, uint64_t key, uint64_t episode,
                           size_t payload)
{
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {(int64_t)payload}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_chunk_origin origin = {.key = key, .episode = episode};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;
    uint8_t *data = malloc(payload);
    rp_tensor row = {RP_UINT8, spec.shape, data};

    assert_non_null(data);
    memset(data, (int)(key & 0xff), payload);
    if (rp_chunk_builder_new(alloc, &spec, 1, &options, &builder, NULL) == RP_OK &&
        rp_chunk_builder_append(builder, &row, NULL) == RP_OK &&
        rp_chunk_builder_finish(builder, &origin, &chunk, NULL) != RP_OK)
        chunk = NULL;
    rp_chunk_builder_free(builder);
    free(data);
    return chunk;
}

rp_trajectory *rp_test_try_join(const rp_allocator *alloc, rp_chunk *const *chunks,
                                size_t count)
{
    rp_chunk_slice *slices = calloc(count, sizeof *slices);
    rp_slices column = {.slices = slices, .slice_count = count};
    rp_trajectory *trajectory = NULL;

    assert_non_null(slices);
    for (size_t i = 0; i < count; i++)
        slices[i] = (rp_chunk_slice){.chunk = chunks[i], .length = 1};
    if (rp_trajectory_new(alloc, &column, 1, &trajectory, NULL) != RP_OK) trajectory = NULL;
    free(slices);
    return trajectory;
}

rp_trajectory *rp_test_blob_trajectory(const rp_allocator *alloc, uint64_t key,
                                       uint64_t episode, size_t payload)
{
    rp_chunk *chunk = rp_test_try_blob(alloc, key, episode, payload);
    rp_trajectory *trajectory;

    assert_non_null(chunk);
    trajectory = rp_test_try_join(alloc, &chunk, 1);
    assert_non_null(trajectory);
    rp_chunk_unref(chunk);
    return trajectory;
}

static int64_t bed_wall_ns(void *ctx)
{
    return ((const rp_test_bed *)ctx)->wall_ns;
}

void rp_test_bed_init(rp_test_bed *bed, const rp_store_options *options)
{
    rp_store_options o = options != NULL ? *options : (rp_store_options){0};

    *bed = (rp_test_bed){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED), .wall_ns = 1000};
    bed->alloc = rp_test_oom_allocator(&bed->oom);
    o.alloc = &bed->alloc;
    o.wall_ns = bed_wall_ns;
    o.wall_ctx = bed;
    if (o.seed == 0) o.seed = 7;
    assert_ok_err(rp_store_new(&o, &bed->store, &bed->err), &bed->err);
    bed->plain = rp_test_blob_trajectory(&bed->alloc, 1, 1, 16);
}

void rp_test_bed_deinit(rp_test_bed *bed)
{
    rp_trajectory_unref(bed->plain);
    rp_store_free(bed->store);
    assert_int_equal(bed->oom.live, 0);
    assert_int_equal(bed->oom.live_bytes, 0);
}

rp_table *rp_test_bed_table(rp_test_bed *bed, const rp_table_options *options)
{
    rp_table *t = NULL;
    uint64_t lsn;

    if (rp_is_utf8(options->name, strlen(options->name)))
        assert_ok_err(rp_store_add_table(bed->store, options, &t, &bed->err), &bed->err);
    else /* as a data directory of an earlier version may have it */
        assert_ok_err(rp_store_add_table_logged(bed->store, options, &t, &lsn, &bed->err),
                      &bed->err);
    return t;
}

rp_table *rp_test_bed_queue(rp_test_bed *bed, const char *name)
{
    rp_table_options o = rp_test_options(name, RP_FIFO, RP_FIFO, 100000);

    o.limiter = rp_limiter_queue(100000);
    o.max_times_sampled = 1;
    return rp_test_bed_table(bed, &o);
}

void rp_test_bed_fill(rp_test_bed *bed, rp_table *t, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) rp_test_put(t, first + i, 1, bed->plain);
}

rp_table_options rp_test_options(const char *name, rp_selector_kind sampler,
                                 rp_selector_kind remover, int64_t max_size)
{
    return (rp_table_options){.name = name,
                              .sampler = {.kind = sampler, .exponent = 1},
                              .remover = {.kind = remover, .exponent = 1},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = max_size};
}

rp_status rp_test_try_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory,
                          rp_error *err)
{
    rp_insert item = {.key = key, .priority = priority, .trajectory = trajectory};

    return rp_table_insert(t, &item, 1, rp_wait_none(), NULL, err);
}

void rp_test_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory)
{
    rp_error err;

    assert_ok_err(rp_test_try_put(t, key, priority, trajectory, &err), &err);
}

rp_sample rp_test_draw(rp_table *t)
{
    rp_sample_options options = {.count = 1};
    rp_sample sample;

    assert_int_equal(rp_test_draw_many(t, &options, &sample), 1);
    return sample;
}

size_t rp_test_draw_many(rp_table *t, const rp_sample_options *options, rp_sample *out)
{
    rp_error err;
    size_t drawn = 0;

    assert_ok_err(rp_table_sample(t, options, out, &drawn, rp_wait_none(), &err), &err);
    rp_samples_release(out, drawn);
    return drawn;
}

bool rp_test_has_key(rp_table *t, uint64_t key)
{
    rp_sample sample;
    size_t found = 0;

    assert_ok(rp_table_peek(t, &key, 1, &sample, &found, NULL));
    rp_samples_release(&sample, 1);
    return found == 1;
}

rp_table_info rp_test_info_of(rp_table *t)
{
    rp_table_info info;

    rp_table_get_info(t, &info);
    return info;
}

void rp_test_unchanged(rp_table *t, const rp_table_info *before, const char *file, int line)
{
    rp_table_info now = rp_test_info_of(t);
    bool same = now.size == before->size && now.bytes == before->bytes &&
                now.inserts == before->inserts && now.samples == before->samples &&
                now.deletes == before->deletes && now.updates == before->updates &&
                now.evictions == before->evictions && now.episodes == before->episodes &&
                now.deleted_episodes == before->deleted_episodes &&
                now.unique_samples == before->unique_samples &&
                now.max_priority == before->max_priority &&
                now.waiting_inserts == before->waiting_inserts &&
                now.waiting_samples == before->waiting_samples && now.closed == before->closed;

    if (same && rp_table_check(t)) return;
    print_error("the table is not as before: size %lld -> %lld, bytes %llu -> %llu\n",
                (long long)before->size, (long long)now.size, (unsigned long long)before->bytes,
                (unsigned long long)now.bytes);
    _fail(file, line);
}

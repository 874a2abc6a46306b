/* SPDX-License-Identifier: Apache-2.0 */
/* A store with tables, and items whose values follow from their steps. Step s of an episode has
 *
 *   column 0 'obs'      int32[3]    100 s, 100 s + 1, 100 s + 2
 *   column 1 'action'   float64     s + 0.5
 */
#ifndef RP_TEST_WRITING_H
#define RP_TEST_WRITING_H

#include "chunk/trajectory.h"
#include "reprise/reprise.h"
#include "support/chunks.h"
#include "support/unit.h"
#include "table/spill.h"

typedef struct rp_test_rig {
    rp_test_oom oom; /* counts what the store and its items allocate */
    rp_allocator alloc;
    rp_store *store;
    rp_table *a, *b;
    rp_decoder *decoder;
    uint64_t next_key;
    uint64_t episode;
    int64_t steps; /* steps of the episode so far */
    rp_error err;
} rp_test_rig;

enum { RP_TEST_OBS = 0, RP_TEST_ACTION = 1 };

static inline const rp_spec *rp_test_columns(void)
{
    static const rp_spec columns[] = {
        {"obs", RP_INT32, {1, {3}}},
        {"action", RP_FLOAT64, {0, {0}}},
    };
    return columns;
}

/* Returns options of a table whose calls never wait: uniform, evicts the oldest. */
static inline rp_table_options rp_test_open_table(const char *name)
{
    return (rp_table_options){.name = name,
                              .sampler = {.kind = RP_UNIFORM},
                              .remover = {.kind = RP_FIFO},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = 1 << 20};
}

/* Makes a store without tables. */
static inline void rp_test_rig_open(rp_test_rig *r, const rp_store_options *options)
{
    rp_store_options o = options != NULL ? *options : (rp_store_options){0};

    *r = (rp_test_rig){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED)};
    r->alloc = rp_test_oom_allocator(&r->oom);
    o.alloc = &r->alloc;
    if (o.seed == 0) o.seed = 7;
    assert_ok_err(rp_store_new(&o, &r->store, &r->err), &r->err);
    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 20, &r->decoder));
}

/* Frees the store. Fails if memory was not freed. */
static inline void rp_test_rig_deinit(rp_test_rig *r)
{
    rp_store_free(r->store);
    rp_decoder_free(r->decoder);
    assert_int_equal(r->oom.live, 0);
    assert_int_equal(r->oom.live_bytes, 0);
}

/* Makes a chunk of one row of one column, with the allocator of the fixture. Returns owned. */
static inline rp_chunk *rp_test_step_chunk(rp_test_rig *r, size_t column, const void *row)
{
    rp_chunk_origin origin = {++r->next_key, r->episode, (int32_t)r->steps - 1,
                              (int32_t)r->steps - 1, false};
    const rp_spec *spec = &rp_test_columns()[column];
    rp_tensor tensor = {spec->dtype, spec->shape, row};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;

    assert_ok_err(rp_chunk_builder_new(&r->alloc, spec, 1, NULL, &builder, &r->err), &r->err);
    assert_ok_err(rp_chunk_builder_append(builder, &tensor, &r->err), &r->err);
    assert_ok_err(rp_chunk_builder_finish(builder, &origin, &chunk, &r->err), &r->err);
    rp_chunk_builder_free(builder);
    return chunk;
}

/* Inserts an item of the latest step, after rp_test_append(). Returns its key. */
static inline uint64_t rp_test_put_latest(rp_test_rig *r, const char *table, double priority)
{
    int32_t s = (int32_t)r->steps - 1, obs[] = {100 * s, 100 * s + 1, 100 * s + 2};
    double action = (double)s + 0.5;
    rp_chunk *chunks[] = {rp_test_step_chunk(r, RP_TEST_OBS, obs),
                          rp_test_step_chunk(r, RP_TEST_ACTION, &action)};
    rp_chunk_slice slices[] = {{chunks[0], 0, 0, 1}, {chunks[1], 0, 0, 1}};
    rp_slices columns[] = {{&slices[0], 1, false}, {&slices[1], 1, false}};
    rp_insert item = {.key = ++r->next_key, .priority = priority};

    assert_ok_err(rp_trajectory_new(&r->alloc, columns, 2, &item.trajectory, &r->err), &r->err);
    rp_chunk_unref(chunks[0]);
    rp_chunk_unref(chunks[1]);
    assert_ok_err(rp_table_insert(rp_test_table(r->store, table), &item, 1, rp_wait_ms(1000),
                                  NULL, &r->err),
                  &r->err);
    rp_trajectory_unref(item.trajectory);
    return item.key;
}

/* Appends `count` steps. */
static inline void rp_test_append(rp_test_rig *r, int count)
{
    r->steps += count;
}

static inline void rp_test_end_episode(rp_test_rig *r)
{
    r->episode++;
    r->steps = 0;
}

/* Returns a reference to the trajectory of an item, which must be in the table. */
static inline rp_trajectory *rp_test_peek(rp_test_rig *r, rp_table *table, uint64_t key)
{
    rp_sample sample;
    size_t found = 0;

    assert_ok_err(rp_table_peek(table, &key, 1, &sample, &found, &r->err), &r->err);
    assert_int_equal(found, 1);
    return sample.trajectory;
}

static inline bool rp_test_has(rp_test_rig *r, rp_table *table, uint64_t key)
{
    rp_sample sample;
    size_t found = 0;

    assert_ok_err(rp_table_peek(table, &key, 1, &sample, &found, &r->err), &r->err);
    rp_samples_release(&sample, found);
    return found == 1;
}

/* Checks that a column of a trajectory has the 'obs' of steps start, start + stride, ... */
static inline void rp_test_expect_obs(rp_test_rig *r, const rp_trajectory *t, size_t column,
                                      int64_t start, int32_t count, int32_t stride)
{
    int32_t *got = calloc((size_t)count * 3, sizeof *got);

    assert_non_null(got);
    assert_int_equal(rp_trajectory_get_column(t, column).dtype, RP_INT32);
    assert_ok_err(rp_decoder_stack(r->decoder, &t, 1, column, got,
                                   (size_t)count * 3 * sizeof *got, &r->err),
                  &r->err);
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < 3; j++)
            assert_int_equal(got[3 * i + j], 100 * (start + (int64_t)i * stride) + j);
    free(got);
}

static inline void rp_test_expect_actions(rp_test_rig *r, const rp_trajectory *t, size_t column,
                                          int64_t start, int32_t count, int32_t stride)
{
    double *got = calloc((size_t)count, sizeof *got);

    assert_non_null(got);
    assert_ok_err(
        rp_decoder_stack(r->decoder, &t, 1, column, got, (size_t)count * sizeof *got, &r->err),
        &r->err);
    for (int32_t i = 0; i < count; i++)
        assert_true(got[i] == (double)(start + (int64_t)i * stride) + 0.5);
    free(got);
}

/* Checks that an item of rp_test_put_latest() is in the table and has these steps. */
static inline void rp_test_expect_item(rp_test_rig *r, rp_table *table, uint64_t key,
                                       int64_t start, int32_t count, int32_t stride)
{
    rp_trajectory *t = rp_test_peek(r, table, key);

    assert_int_equal(rp_trajectory_column_count(t), 2);
    rp_test_expect_obs(r, t, 0, start, count, stride);
    rp_test_expect_actions(r, t, 1, start, count, stride);
    rp_trajectory_unref(t);
}

static inline rp_table_info rp_test_info(rp_table *table)
{
    rp_table_info info;

    rp_table_get_info(table, &info);
    return info;
}

#endif

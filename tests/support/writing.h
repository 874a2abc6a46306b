/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a table or two and a writer whose every value is known: step s holds
 *
 *   column 0 'obs'      int32[3]    100 s, 100 s + 1, 100 s + 2
 *   column 1 'action'   float64     s + 0.5
 */
#ifndef RP_TEST_WRITING_H
#define RP_TEST_WRITING_H

#include "reprise/reprise.h"
#include "support/chunks.h"
#include "support/unit.h"

typedef struct rp_test_rig {
    rp_test_oom oom; /* what the store and the writer have allocated */
    rp_allocator alloc;
    rp_store *store;
    rp_table *a, *b;
    rp_writer *writer;
    rp_decoder *decoder;
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

static inline rp_writer_options rp_test_writing(int32_t history, int32_t chunk_length)
{
    return (rp_writer_options){.columns = rp_test_columns(),
                               .column_count = 2,
                               .history = history,
                               .chunk_length = chunk_length};
}

/* A table that takes everything: uniform, oldest out first. */
static inline rp_table_options rp_test_open_table(const char *name)
{
    return (rp_table_options){.name = name,
                              .sampler = {.kind = RP_UNIFORM},
                              .remover = {.kind = RP_FIFO},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = 1 << 20};
}

/* A store without tables. */
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

/* A store with the tables 'a' and 'b', both of which take everything, and a writer. */
static inline void rp_test_rig_init(rp_test_rig *r, const rp_writer_options *options)
{
    rp_table_options a = rp_test_open_table("a"), b = rp_test_open_table("b");

    rp_test_rig_open(r, NULL);
    assert_ok_err(rp_store_add_table(r->store, &a, &r->a, &r->err), &r->err);
    assert_ok_err(rp_store_add_table(r->store, &b, &r->b, &r->err), &r->err);
    assert_ok_err(rp_writer_new(r->store, options, &r->writer, &r->err), &r->err);
}

/* Frees everything; nothing may be left. */
static inline void rp_test_rig_deinit(rp_test_rig *r)
{
    rp_writer_free(r->writer);
    rp_store_free(r->store);
    rp_decoder_free(r->decoder);
    assert_int_equal(r->oom.live, 0);
    assert_int_equal(r->oom.live_bytes, 0);
}

/* Appends the step that comes next. */
static inline rp_status rp_test_try_append(rp_test_rig *r)
{
    int64_t s = rp_writer_steps(r->writer);
    int32_t obs[] = {(int32_t)(100 * s), (int32_t)(100 * s + 1), (int32_t)(100 * s + 2)};
    double action = (double)s + 0.5;
    rp_tensor step[] = {{RP_INT32, SHAPE(3), obs}, {RP_FLOAT64, SCALAR, &action}};

    return rp_writer_append(r->writer, step, &r->err);
}

static inline void rp_test_append(rp_test_rig *r, int count)
{
    for (int i = 0; i < count; i++) assert_ok_err(rp_test_try_append(r), &r->err);
}

/* Creates an item of one pick of 'obs' and one of 'action', from the same steps. */
static inline rp_status rp_test_try_item(rp_test_rig *r, const char *table, int64_t start,
                                         int32_t count, int32_t stride, rp_wait wait,
                                         uint64_t *key)
{
    rp_pick picks[] = {
        {.column = RP_TEST_OBS, .start = start, .count = count, .stride = stride},
        {.column = RP_TEST_ACTION, .start = start, .count = count, .stride = stride}};

    return rp_writer_create_item(r->writer, table, 1.0, picks, 2, wait, key, &r->err);
}

static inline uint64_t rp_test_item(rp_test_rig *r, const char *table, int64_t start,
                                    int32_t count, int32_t stride)
{
    uint64_t key = 0;

    assert_ok_err(rp_test_try_item(r, table, start, count, stride, rp_wait_none(), &key),
                  &r->err);
    return key;
}

static inline void rp_test_flush(rp_test_rig *r)
{
    assert_ok_err(rp_writer_flush(r->writer, rp_wait_none(), &r->err), &r->err);
    assert_int_equal(rp_writer_pending(r->writer), 0);
}

/* The item's trajectory, which must be in the table. Returns a reference. */
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

/* Column `column` of a trajectory holds the 'obs' of steps start, start + stride, ... */
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

/* An item of rp_test_try_item() is in the table and holds those steps. */
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "table/spill.h"

enum { WAIT_S = 60 };

void rp_test_line_open(rp_test_line *line, const char *address)
{
    rp_channel_options options = {.text = address, .seed = 3};
    rp_address parsed;
    rp_error err = {0};

    *line = (rp_test_line){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED)};
    line->alloc = rp_test_oom_allocator(&line->oom);
    options.alloc = &line->alloc;
    options.address = &parsed;
    options.retry_max_ns = 100000000;
    assert_ok_err(rp_address_parse(address, &parsed, &err), &err);
    assert_ok_err(rp_runtime_get(&line->runtime, &err), &err);
    assert_ok_err(rp_channel_new(line->runtime, &options, &line->channel, &err), &err);
}

void rp_test_line_open_tcp(rp_test_line *line, const rp_test_live *live)
{
    char address[64];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", live->port);
    rp_test_line_open(line, address);
}

void rp_test_line_open_unix(rp_test_line *line, const rp_test_live *live)
{
    char address[128];

    (void)snprintf(address, sizeof address, "unix:%s", live->path);
    rp_test_line_open(line, address);
}

static void free_channel(void *arg)
{
    rp_channel_free(arg);
}

void rp_test_line_close(rp_test_line *line)
{
    rp_runtime_run_on_loop(line->runtime, free_channel, line->channel);
    rp_runtime_put(line->runtime);
    assert_int_equal(line->oom.live, 0);
    assert_int_equal(line->oom.live_bytes, 0);
}

void rp_test_live_restart(rp_test_live *live)
{
    char tcp[64], local[112];
    const char *addresses[] = {tcp, local};
    rp_server_options options = {.addresses = addresses, .address_count = 2};

    (void)snprintf(tcp, sizeof tcp, "127.0.0.1:%d", live->port);
    (void)snprintf(local, sizeof local, "unix:%s", live->path);
    assert_ok_err(rp_test_live_try(live, &options), &live->err);
}

void rp_test_live_add(rp_test_live *live, const char *name, size_t max_size)
{
    rp_table_options options = {.name = name,
                                .sampler = {.kind = RP_UNIFORM},
                                .remover = {.kind = RP_FIFO},
                                .limiter = rp_limiter_min_size(1),
                                .max_size = (int64_t)max_size};

    assert_ok_err(rp_store_add_table(live->store, &options, NULL, &live->err), &live->err);
}

size_t rp_test_live_find(const rp_test_live *live, const char *table, uint64_t first,
                         size_t count)
{
    rp_table *t = rp_test_table(live->store, table);
    size_t found = 0, one;

    assert_non_null(t);
    for (uint64_t key = first; key < first + count; key++) {
        rp_sample sample;
        assert_ok(rp_table_peek(t, &key, 1, &sample, &one, NULL));
        rp_samples_release(&sample, one);
        found += one;
    }
    return found;
}

rp_chunk *rp_test_byte_chunk(uint64_t key, size_t bytes)
{
    rp_spec spec = {"x", RP_UINT8, SHAPE((int64_t)bytes)};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    uint8_t *data = malloc(bytes);
    rp_chunk *chunk;

    assert_non_null(data);
    memset(data, (int)(key & 0xff), bytes);
    chunk = rp_test_chunk(key, &options, &spec, 1, data);
    free(data);
    return chunk;
}

rp_sink_item rp_test_sink_item_of(const char *table, uint64_t key, rp_chunk *const *chunks,
                                  size_t count)
{
    rp_sink_item item = {.key = key, .table = table, .priority = 1.0};
    rp_chunk_slice slices[64];
    rp_slices column = {slices, count, false};

    assert_true(count <= COUNT_OF(slices));
    for (size_t i = 0; i < count; i++) slices[i] = (rp_chunk_slice){chunks[i], 0, 0, 1};
    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &item.trajectory, NULL));
    return item;
}

rp_sink_item rp_test_sink_item(const char *table, uint64_t key, size_t bytes)
{
    rp_chunk *chunk = rp_test_byte_chunk(key, bytes);
    rp_sink_item item = rp_test_sink_item_of(table, key, &chunk, 1);

    rp_chunk_unref(chunk);
    return item;
}

static void init_wait(pthread_mutex_t *mu, pthread_cond_t *cv)
{
    pthread_condattr_t attributes;

    assert_int_equal(pthread_mutex_init(mu, NULL), 0);
    assert_int_equal(pthread_condattr_init(&attributes), 0);
    assert_int_equal(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(cv, &attributes), 0);
    (void)pthread_condattr_destroy(&attributes);
}

static struct timespec wait_end(void)
{
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += WAIT_S;
    return end;
}

static void on_settled(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text)
{
    rp_test_settled *s = user;

    (void)pthread_mutex_lock(&s->mu);
    for (size_t i = 0; i < count; i++) {
        if (keys[i] >= RP_TEST_KEYS) continue;
        s->times[keys[i]]++;
        s->statuses[keys[i]] = (uint8_t)status;
    }
    s->count += count;
    s->calls++;
    if (status != RP_OK) {
        s->refused += count;
        (void)snprintf(s->text, sizeof s->text, "%s", text);
    }
    (void)pthread_cond_broadcast(&s->cv);
    (void)pthread_mutex_unlock(&s->mu);
}

void rp_test_settled_init(rp_test_settled *settled)
{
    memset(settled, 0, sizeof *settled);
    init_wait(&settled->mu, &settled->cv);
}

void rp_test_settled_deinit(rp_test_settled *settled)
{
    (void)pthread_mutex_destroy(&settled->mu);
    (void)pthread_cond_destroy(&settled->cv);
}

rp_sink_events rp_test_settled_events(rp_test_settled *settled)
{
    return (rp_sink_events){on_settled, settled};
}

bool rp_test_settled_await(rp_test_settled *s, size_t count)
{
    struct timespec end = wait_end();
    bool ok;

    (void)pthread_mutex_lock(&s->mu);
    while (s->count < count && pthread_cond_timedwait(&s->cv, &s->mu, &end) == 0) {}
    ok = s->count >= count;
    if (!ok) print_error("%zu of %zu were settled\n", s->count, count);
    (void)pthread_mutex_unlock(&s->mu);
    return ok;
}

size_t rp_test_settled_count(rp_test_settled *s)
{
    size_t count;

    (void)pthread_mutex_lock(&s->mu);
    count = s->count;
    (void)pthread_mutex_unlock(&s->mu);
    return count;
}

void rp_test_settled_expect(rp_test_settled *s, uint64_t first, size_t count, rp_status status)
{
    (void)pthread_mutex_lock(&s->mu);
    for (uint64_t key = first; key < first + count; key++) {
        if (s->times[key] != 1 || s->statuses[key] != status) {
            print_error("key %llu: told %d times, last %d\n", (unsigned long long)key,
                        s->times[key], s->statuses[key]);
            fail();
        }
    }
    (void)pthread_mutex_unlock(&s->mu);
}

static void on_samples(void *user, const rp_sample *samples, size_t count)
{
    rp_test_drawn *d = user;

    (void)pthread_mutex_lock(&d->mu);
    if (d->count + count > d->capacity) {
        d->capacity = 2 * (d->count + count);
        d->keys = realloc(d->keys, d->capacity * sizeof *d->keys);
    }
    for (size_t i = 0; i < count; i++) {
        d->keys[d->count++] = samples[i].key;
        d->bytes += samples[i].trajectory->bytes;
        rp_trajectory_unref(samples[i].trajectory);
    }
    (void)pthread_cond_broadcast(&d->cv);
    (void)pthread_mutex_unlock(&d->mu);
}

static void on_end(void *user, size_t forgotten, rp_status status, const char *text)
{
    rp_test_drawn *d = user;

    (void)forgotten;
    (void)pthread_mutex_lock(&d->mu);
    d->ends++;
    d->status = status;
    (void)snprintf(d->text, sizeof d->text, "%s", text);
    (void)pthread_cond_broadcast(&d->cv);
    (void)pthread_mutex_unlock(&d->mu);
}

static void on_reach(void *user, bool reached, const char *text)
{
    rp_test_drawn *d = user;

    (void)text;
    (void)pthread_mutex_lock(&d->mu);
    if (reached)
        d->found++;
    else
        d->lost++;
    (void)pthread_cond_broadcast(&d->cv);
    (void)pthread_mutex_unlock(&d->mu);
}

void rp_test_drawn_init(rp_test_drawn *drawn)
{
    *drawn = (rp_test_drawn){0};
    init_wait(&drawn->mu, &drawn->cv);
}

void rp_test_drawn_deinit(rp_test_drawn *drawn)
{
    free(drawn->keys);
    (void)pthread_mutex_destroy(&drawn->mu);
    (void)pthread_cond_destroy(&drawn->cv);
}

rp_source_events rp_test_drawn_events(rp_test_drawn *drawn)
{
    return (rp_source_events){on_samples, on_end, on_reach, drawn};
}

/* Waits until all counts are at least these. */
static bool await(rp_test_drawn *d, size_t count, size_t ends, size_t lost, size_t found)
{
    struct timespec end = wait_end();
    bool ok = false, in_time = true;

    (void)pthread_mutex_lock(&d->mu);
    while (!ok && in_time) {
        ok = d->count >= count && d->ends >= ends && d->lost >= lost && d->found >= found;
        if (!ok) in_time = pthread_cond_timedwait(&d->cv, &d->mu, &end) == 0;
    }
    if (!ok)
        print_error("%zu samples, %zu ends, %zu lost, %zu found\n", d->count, d->ends, d->lost,
                    d->found);
    (void)pthread_mutex_unlock(&d->mu);
    return ok;
}

bool rp_test_drawn_await(rp_test_drawn *drawn, size_t count)
{
    return await(drawn, count, 0, 0, 0);
}

bool rp_test_drawn_await_end(rp_test_drawn *drawn, size_t ends)
{
    return await(drawn, 0, ends, 0, 0);
}

bool rp_test_drawn_await_reach(rp_test_drawn *drawn, size_t lost, size_t found)
{
    return await(drawn, 0, 0, lost, found);
}

size_t rp_test_drawn_count(rp_test_drawn *d)
{
    size_t count;

    (void)pthread_mutex_lock(&d->mu);
    count = d->count;
    (void)pthread_mutex_unlock(&d->mu);
    return count;
}

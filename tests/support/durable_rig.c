/* SPDX-License-Identifier: Apache-2.0 */
#include "support/durable_rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "disk/record.h"
#include "table/snapshot/cut.h"

enum { CHUNK_BYTES = 200, SEGMENT_BYTES = 3000, JOURNAL_BYTES = 1500, MORE_STEPS = 6 };

static int64_t read_wall(void *ctx)
{
    return *(int64_t *)ctx;
}

static void on_event(void *ctx, bool degraded, const char *text)
{
    rp_rig *r = ctx;

    if (getenv("RP_RIG_TRACE") != NULL) print_message("# %d: %s\n", degraded, text);
    if (atomic_fetch_add(&r->events, 1) == 0)
        (void)snprintf(r->event, sizeof r->event, "%s", text);
    atomic_store(&r->degraded, degraded);
}

void rp_rig_init(rp_rig *r, const rp_rig_options *options)
{
    static atomic_ullong rigs;

    memset(r, 0, sizeof *r);
    r->number = atomic_fetch_add(&rigs, 1) + 1;
    r->options = *options;
    if (r->options.chunk_bytes == 0) r->options.chunk_bytes = CHUNK_BYTES;
    if (r->options.segment_bytes == 0) r->options.segment_bytes = SEGMENT_BYTES;
    if (r->options.journal_bytes == 0) r->options.journal_bytes = JOURNAL_BYTES;
    r->next_chunk = 1;
    rp_rng_init(&r->rng, options->seed);
    r->digests = calloc(options->steps + MORE_STEPS + 1, sizeof *r->digests);
    r->checkpoints = calloc(options->steps + MORE_STEPS + 2, sizeof *r->checkpoints);
    r->crcs = calloc(RP_RIG_CHUNKS, sizeof *r->crcs);
    assert_non_null(r->digests);
    assert_non_null(r->checkpoints);
    assert_non_null(r->crcs);
}

void rp_rig_deinit(rp_rig *r)
{
    if (r->store != NULL) (void)rp_rig_close(r);
    free(r->digests);
    free(r->checkpoints);
    free(r->crcs);
}

static void add_tables(rp_rig *r)
{
    rp_table_options o[RP_RIG_TABLES] = {
        rp_test_options("queue", RP_FIFO, RP_FIFO, 12),
        rp_test_options("uniform", RP_UNIFORM, RP_FIFO, 20),
        rp_test_options("priorities", RP_PRIORITIZED, RP_MIN_HEAP, 16),
        rp_test_options("heap", RP_MAX_HEAP, RP_UNIFORM, 300),
        rp_test_options("stack", RP_LIFO, RP_PRIORITIZED, 10),
    };

    o[0].limiter = rp_limiter_queue(12);
    o[0].max_times_sampled = 1;
    o[2].sampler.exponent = 0.7;
    o[3].limiter = rp_limiter_ratio(1.5, 3, 8);
    o[3].max_bytes = 12 * r->options.chunk_bytes;
    o[4].remover.exponent = -0.4;
    o[4].max_times_sampled = 3;
    for (size_t i = 0; i < RP_RIG_TABLES; i++)
        assert_ok_err(rp_store_add_table(r->store, &o[i], &r->tables[i], &r->err), &r->err);
}

rp_status rp_rig_try_open_on(rp_rig *r, rp_files *files, rp_error *err)
{
    rp_store_options store = {
        .seed = 7 + r->options.seed, .wall_ns = read_wall, .wall_ctx = &r->wall_ns};
    rp_durable_options options = {.directory = "rig",
                                  .mode = r->options.mode,
                                  .interval_ns = 2000000,
                                  .period_ns = RP_FOREVER,
                                  .keep = r->options.keep != 0 ? r->options.keep : 2,
                                  .segment_bytes = r->options.segment_bytes,
                                  .max_memory = r->options.max_memory,
                                  .on_event = on_event,
                                  .ctx = r};
    rp_durable_tuning tuning = {.journal_bytes = r->options.journal_bytes, .retry_ns = 1000000};
    rp_status st;

    assert_null(r->store);
    r->files = files;
    assert_ok_err(rp_store_new(&store, &r->store, err), err);
    add_tables(r);
    st = rp_durable_open_tuned(r->files, &options, &tuning, r->store, &r->durable, err);
    if (st != RP_OK) {
        r->durable = NULL;
        (void)rp_rig_close(r);
        return st;
    }
    return RP_OK;
}

rp_status rp_rig_try_open(rp_rig *r, rp_sim *disk, rp_error *err)
{
    return rp_rig_try_open_on(r, rp_sim_mount(disk), err);
}

void rp_rig_open(rp_rig *r, rp_sim *disk)
{
    assert_ok_err(rp_rig_try_open(r, disk, &r->err), &r->err);
    r->digests[0] = rp_rig_digest(r);
}

static void forget_chunks(rp_rig *r)
{
    for (size_t i = 0; i < RP_RIG_RECENT; i++) {
        rp_trajectory_unref(r->recent[i]);
        r->recent[i] = NULL;
    }
    rp_chunk_unref(r->last_chunk);
    r->last_chunk = NULL;
}

rp_status rp_rig_close(rp_rig *r)
{
    rp_status st = RP_OK;

    rp_rig_await(r);
    if (r->durable != NULL) st = rp_durable_close(r->durable, &r->err);
    r->durable = NULL;
    forget_chunks(r);
    rp_store_free(r->store);
    r->store = NULL;
    if (r->files != NULL) r->files->ops->free(r->files);
    r->files = NULL;
    return st;
}

static uint32_t crc_of(const rp_chunk *chunk)
{
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    return rp_crc32c(0, wire, size);
}

/* Picks a trajectory: of a new chunk, of a new chunk and the one before it, or an earlier
 * trajectory. Returns owned. */
static rp_trajectory *pick_trajectory(rp_rig *r)
{
    size_t at = rp_rng_below(&r->rng, RP_RIG_RECENT);
    rp_chunk *both[2];
    bool joins; /* rows must have the same size */

    if (r->recent[at] != NULL && rp_rng_below(&r->rng, 3) == 0)
        return rp_trajectory_ref(r->recent[at]);
    assert_true(r->next_chunk < RP_RIG_CHUNKS);
    joins = r->last_chunk != NULL && rp_rng_below(&r->rng, 3) == 0;
    if (!joins) r->row_bytes = 1 + rp_rng_below(&r->rng, r->options.chunk_bytes);
    both[0] = rp_test_try_blob(rp_allocator_default(), r->next_chunk, r->next_chunk / 3,
                               r->row_bytes);
    both[1] = r->last_chunk;
    assert_non_null(both[0]);
    r->crcs[r->next_chunk++] = crc_of(both[0]);
    rp_trajectory_unref(r->recent[at]);
    r->recent[at] = rp_test_try_join(rp_allocator_default(), both, joins ? 2 : 1);
    assert_non_null(r->recent[at]);
    rp_chunk_unref(r->last_chunk);
    r->last_chunk = both[0];
    return rp_trajectory_ref(r->recent[at]);
}

static rp_status insert(rp_rig *r, rp_table *t)
{
    rp_insert items[3];
    size_t count = 1 + rp_rng_below(&r->rng, 3), inserted;
    rp_status st;

    for (size_t i = 0; i < count; i++)
        items[i] =
            (rp_insert){.key = 1 + rp_rng_below(&r->rng, RP_RIG_KEYS),
                        .priority = (double)rp_rng_below(&r->rng, 9) / 4,
                        .flags = rp_rng_below(&r->rng, 6) == 0 ? RP_INSERT_MAX_PRIORITY : 0,
                        .trajectory = pick_trajectory(r)};
    st = rp_table_insert(t, items, count, rp_wait_none(), &inserted, &r->err);
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(items[i].trajectory);
    return st == RP_DEADLINE ? RP_OK : st; /* the limiter: some items were inserted */
}

static rp_status sample(rp_rig *r, rp_table *t)
{
    rp_sample samples[4];
    rp_sample_options o = {.count = 1 + rp_rng_below(&r->rng, 4),
                           .at_least = 1,
                           .distinct = rp_rng_below(&r->rng, 3) == 0};
    size_t drawn = 0;
    rp_status st = rp_table_sample(t, &o, samples, &drawn, rp_wait_none(), &r->err);

    rp_samples_release(samples, drawn);
    return st == RP_DEADLINE ? RP_OK : st;
}

static rp_status update(rp_rig *r, rp_table *t)
{
    rp_update updates[5];
    size_t count = 1 + rp_rng_below(&r->rng, 5);

    for (size_t i = 0; i < count; i++)
        updates[i] = (rp_update){1 + rp_rng_below(&r->rng, RP_RIG_KEYS),
                                 (double)rp_rng_below(&r->rng, 20) / 8};
    return rp_table_update(t, updates, count, NULL, &r->err);
}

static rp_status delete (rp_rig *r, rp_table *t)
{
    uint64_t keys[4];
    size_t count = 1 + rp_rng_below(&r->rng, 4);

    for (size_t i = 0; i < count; i++) keys[i] = 1 + rp_rng_below(&r->rng, RP_RIG_KEYS);
    return rp_table_delete(t, keys, count, NULL, &r->err);
}

static rp_status seldom(rp_rig *r, rp_table *t)
{
    rp_table_alteration change = {.which = RP_ALTER_MAX_TIMES_SAMPLED,
                                  .max_times_sampled = (int32_t)rp_rng_below(&r->rng, 4)};

    switch (rp_rng_below(&r->rng, 4)) {
    case 0: return rp_table_reset(t, &r->err);
    case 1: return rp_table_alter(t, &change, &r->err);
    case 2: return rp_table_pause(t, RP_SIDE_SAMPLES, &r->err);
    default: return rp_table_resume(t, RP_SIDE_SAMPLES, &r->err);
    }
}

/* Makes a change. Sets `*awaited` to true if the call waits for the journal; samples do not. */
static rp_status change(rp_rig *r, rp_table *t, bool *awaited)
{
    uint64_t dice = rp_rng_below(&r->rng, 100);

    r->wall_ns += 3;
    *awaited = true;
    if (dice < 50) return insert(r, t);
    if (dice < 72) {
        *awaited = false;
        return sample(r, t);
    }
    if (dice < 86) return update(r, t);
    if (dice < 97) return delete (r, t);
    return seldom(r, t);
}

static void note_checkpoint(rp_rig *r, size_t step, rp_status st)
{
    if (st != RP_OK) {
        atomic_fetch_add(&r->failed_checkpoints, 1);
        return;
    }
    atomic_store(&r->checkpointed, step);
    r->checkpoints[r->checkpoint_count++] = step;
}

void rp_rig_await(rp_rig *r)
{
    const struct timespec moment = {.tv_nsec = 20000};

    while (atomic_load(&r->writing)) (void)nanosleep(&moment, NULL);
}

rp_status rp_rig_checkpoint(rp_rig *r)
{
    size_t step = atomic_load(&r->started);
    rp_status st;

    rp_rig_await(r);
    st = rp_durable_checkpoint(r->durable, rp_wait_forever(), NULL, 0, &r->err);
    note_checkpoint(r, step, st);
    return st;
}

static void on_written(void *ctx, rp_status status, const char *path, const char *text)
{
    rp_rig *r = ctx;

    (void)path;
    (void)text;
    note_checkpoint(r, r->writing_from, status);
    atomic_store(&r->writing, false);
}

static void begin_checkpoint(rp_rig *r)
{
    rp_rig_await(r);
    r->writing_from = atomic_load(&r->started);
    atomic_store(&r->writing, true);
    if (rp_durable_start_checkpoint(r->durable, on_written, r, &r->err) != RP_OK) {
        atomic_fetch_add(&r->failed_checkpoints, 1);
        atomic_store(&r->writing, false);
    }
}

static bool is_degraded(rp_rig *r)
{
    rp_durable_info info;

    rp_durable_get_info(r->durable, &info);
    return info.degraded;
}

bool rp_rig_step(rp_rig *r)
{
    size_t step = atomic_load(&r->started), which;
    uint64_t before;
    bool awaited;
    rp_status st;

    if (step >= r->options.steps) return false;
    if (r->options.checkpoint_every != 0 &&
        rp_rng_below(&r->rng, r->options.checkpoint_every) == 0) {
        if (r->options.beside && rp_rng_below(&r->rng, 2) == 0)
            begin_checkpoint(r);
        else
            (void)rp_rig_checkpoint(r);
    }
    which = rp_rng_below(&r->rng, RP_RIG_TABLES);
    before = rp_table_digest(r->tables[which]);
    r->touching = which;
    for (size_t i = 0; i < RP_RIG_TABLES; i++) r->known[i] = rp_table_digest(r->tables[i]);
    atomic_store(&r->started, step + 1);
    st = change(r, r->tables[which], &awaited);
    /* Set before `acked`, so that a thread that reads `acked` finds the digest. */
    r->digests[step + 1] = rp_rig_digest(r);
    if (rp_table_digest(r->tables[which]) != before) r->changed[which] = step + 1;
    if (st != RP_OK) r->failed_steps++;
    /* The last change of this table is safe, and so are all changes before it. */
    if (st == RP_OK && awaited && !is_degraded(r) && r->changed[which] > atomic_load(&r->acked))
        atomic_store(&r->acked, r->changed[which]);
    return true;
}

void rp_rig_saw_call(rp_rig *r, rp_sim *disk, const char *call, const char *path)
{
    /* The journal's thread makes the calls on its files one after another. When it makes a
     * call, the one before is done, and has succeeded if no failure was counted since. */
    static _Thread_local struct {
        uint64_t rig, failed;
        size_t step; /* the step that is safe if the sync succeeds */
        bool syncing;
    } last;
    uint64_t failed = rp_sim_failed(disk);

    if (strncmp(path, "wal/", 4) != 0) return;
    /* If a rename follows the sync, the file was not part of the journal yet. */
    if (last.rig == r->number && last.syncing && strcmp(call, "rename") != 0 &&
        last.failed == failed && last.step > atomic_load(&r->synced))
        atomic_store(&r->synced, last.step);
    last.rig = r->number;
    last.syncing = strcmp(call, "sync") == 0;
    last.step = atomic_load(&r->acked);
    last.failed = failed;
}

size_t rp_rig_promised(rp_rig *r, bool power_cut)
{
    size_t checkpointed = atomic_load(&r->checkpointed), kept = 0;

    if (r->options.mode == RP_DURABLE_SYNC) kept = atomic_load(&r->acked);
    /* Steps that are acknowledged while the journal cannot write are not in `acked`. Earlier
     * steps stay promised: the system has their data, whatever fails later. */
    if (r->options.mode == RP_DURABLE_INTERVAL)
        kept = power_cut ? atomic_load(&r->synced) : atomic_load(&r->acked);
    return kept > checkpointed ? kept : checkpointed;
}

uint64_t rp_rig_digest(rp_rig *r)
{
    uint64_t hash = 1;

    for (size_t i = 0; i < RP_RIG_TABLES; i++) {
        uint64_t state = hash ^ rp_table_digest(r->tables[i]);
        hash = rp_splitmix64(&state) + i;
    }
    return hash;
}

bool rp_rig_find(const rp_rig *r, uint64_t digest, size_t from, size_t to, size_t *step)
{
    for (size_t i = from; i <= to; i++)
        if (r->digests[i] == digest) {
            if (step != NULL) *step = i;
            return true;
        }
    return false;
}

bool rp_rig_is_next(const rp_rig *r, const rp_rig_recovered *recovered)
{
    for (size_t i = 0; i < RP_RIG_TABLES; i++)
        if (i != r->touching && recovered->digests[i] != r->known[i]) return false;
    return true;
}

static bool bytes_are_right(const rp_rig *history, const rp_sample *s)
{
    for (uint32_t c = 0; c < s->trajectory->column_count; c++) {
        rp_slices column = rp_trajectory_slices(s->trajectory, c);

        for (size_t i = 0; i < column.slice_count; i++) {
            const rp_chunk *chunk = column.slices[i].chunk;
            uint64_t key = chunk->origin.key;

            if (key == 0 || key >= RP_RIG_CHUNKS || crc_of(chunk) != history->crcs[key])
                return false;
        }
    }
    return true;
}

static bool is_sound(rp_rig *r, const rp_rig *history)
{
    uint64_t keys[RP_RIG_KEYS];
    rp_sample samples[RP_RIG_KEYS];
    size_t found = 0;
    bool ok = true;

    for (size_t i = 0; i < RP_RIG_KEYS; i++) keys[i] = i + 1;
    for (size_t t = 0; t < RP_RIG_TABLES; t++) {
        if (!rp_table_check(r->tables[t])) return false;
        assert_ok(rp_table_peek(r->tables[t], keys, RP_RIG_KEYS, samples, &found, NULL));
        for (size_t i = 0; i < RP_RIG_KEYS; i++)
            if (samples[i].trajectory != NULL) ok &= bytes_are_right(history, &samples[i]);
        rp_samples_release(samples, RP_RIG_KEYS);
    }
    return ok;
}

/* Makes a few more steps and a checkpoint, opens the store again, and checks it. Returns the
 * error; NULL if there is none. */
static const char *go_on(rp_rig *r, rp_sim *disk, rp_error *err)
{
    const char *wrong = NULL;
    uint64_t digest;
    rp_rig again;

    while (rp_rig_step(r))
        ;
    *err = r->err;
    if (r->failed_steps > 0) return "a step fails";
    if (rp_rig_checkpoint(r) != RP_OK) {
        *err = r->err;
        return "a checkpoint fails";
    }
    digest = rp_rig_digest(r);
    if (rp_rig_close(r) != RP_OK) {
        *err = r->err;
        return "it does not close";
    }
    rp_rig_init(&again, &r->options);
    if (rp_rig_try_open(&again, disk, err) != RP_OK) {
        wrong = "it does not open again";
        if (again.event[0] != '\0') memcpy(err->text, again.event, sizeof err->text);
    } else if (rp_rig_digest(&again) != digest || !is_sound(&again, r))
        wrong = "something else is there when it is opened again";
    rp_rig_deinit(&again);
    return wrong;
}

/* Opens these files with a new rig. */
static void look(const rp_rig *r, rp_rig *n, rp_files *files, rp_rig_recovered *out)
{
    rp_durable_info info;

    memset(out, 0, sizeof *out);
    out->status = rp_rig_try_open_on(n, files, &out->err);
    if (out->status != RP_OK) return;
    out->digest = rp_rig_digest(n);
    for (size_t i = 0; i < RP_RIG_TABLES; i++) out->digests[i] = rp_table_digest(n->tables[i]);
    out->sound = is_sound(n, r);
    rp_durable_get_info(n->durable, &info);
    out->torn_bytes = info.torn_bytes;
    out->last_checkpoint = info.last_checkpoint;
    out->told = atomic_load(&n->degraded) || atomic_load(&n->events) > 0 || info.torn_bytes > 0;
}

static void init_next(const rp_rig *r, rp_rig *n, size_t steps)
{
    rp_rig_options options = r->options;

    options.steps = steps;
    options.checkpoint_every = 0;
    rp_rig_init(n, &options);
    /* Chunks that are made later differ from those of `r`. */
    memcpy(n->crcs, r->crcs, RP_RIG_CHUNKS * sizeof *n->crcs);
    n->next_chunk = r->next_chunk;
    n->rng.s[0] ^= 0x5eed;
    n->wall_ns = r->wall_ns + 1000;
}

void rp_rig_recover(const rp_rig *r, rp_sim *disk, int how, rp_rig_recovered *out)
{
    bool goes = (how & RP_RIG_GO_ON) != 0;
    rp_rig n;

    init_next(r, &n, goes ? MORE_STEPS : 0);
    look(r, &n, rp_sim_mount(disk), out);
    if (out->status == RP_OK && goes) out->stuck = go_on(&n, disk, &out->err);
    rp_rig_deinit(&n);
}

void rp_rig_recover_on(const rp_rig *r, rp_files *files, rp_rig_recovered *out)
{
    rp_rig n;

    init_next(r, &n, 0);
    look(r, &n, files, out);
    rp_rig_deinit(&n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Brings samples into memory.
 *
 *   load ─┬─ bytes in memory ───► pin, view                 no lock
 *         ├─ in the read cache ─► reference                 one lock for all chunks
 *         └─ on disk ───────────► queue, sorted by location; a reader thread reads and checks
 *                                 the record and completes all requests for the chunk
 *
 * Each load has a queue of its own, and the readers take READS_A_TURN chunks of each load in
 * turn. So a load of few chunks does not wait for all chunks of the loads before it.
 *
 * A chunk that several loads request is read once: the first request is in the queue, the
 * others are attached to it. All missing chunks of a load are queued at once, so the read-ahead
 * is as deep as the number of samples that its caller asks for. A record is checked twice: its
 * checksums, then the message of the chunk against the columns of the table's chunk. */
#include <assert.h>
#include <stdlib.h>

#include "chunk/trajectory.h"
#include "durable/tier/tier.h"
#include "durable/tier/tier_inside.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    MAX_MOVES = 8,    /* of a chunk while it is being read */
    READS_A_TURN = 8, /* chunks of a load that are read before those of the next load */
};

typedef struct rp_tier_job job;

static void release_block(void *ctx)
{
    rp_loaded *block = ctx;
    rp_allocator alloc = block->alloc;

    rp_release(&alloc, block, block->size);
}

/* One chunk of a sample that is being loaded. */
struct rp_want {
    rp_chunk *base;   /* of the table: lives as long as the sample */
    rp_chunk *result; /* a reference; NULL: not available yet */
    bool is_loaded;   /* `result` is the chunk that was read, not a view of it yet */
    job *job;
    rp_want *next_reader; /* of the same chunk */
    rp_want *next;        /* in the queue of its job */
    rp_disk_location location;
    rp_loaded *block; /* destination of the read. Allocated by the requesting thread, since
                         malloc keeps a heap for each thread that allocates */
};

/* One load. It is over when `left`, the number of chunks that are not read yet, reaches 0. */
struct rp_tier_job {
    rp_sample_load *load;
    size_t size;        /* of this block */
    size_t count, left; /* of `wants` */
    rp_status status;
    rp_error error;
    job *next; /* in the queue of the readers; later in a list of jobs that are over */
    rp_want *first_want, *last_want; /* chunks to be read; the job is in the queue of the
                                        readers exactly while there are some */
    size_t reads;                    /* taken by the readers in this turn */
    rp_want wants[];
};

void rp_tier_uncache_locked(rp_tier *t, rp_tier_chunk *entry)
{
    rp_loaded *loaded = entry->loaded;

    assert(loaded != NULL && t->cached >= entry->chunk->wire_bytes); /* S3 */
    rp_tier_list_unlink(&t->ring, entry);
    entry->loaded = NULL;
    t->cached -= entry->chunk->wire_bytes;
    loaded->next = t->uncached;
    t->uncached = loaded;
}

void rp_tier_unref_loaded(rp_loaded *list)
{
    while (list != NULL) {
        rp_chunk *chunk = list->chunk;

        list = list->next; /* before the chunk frees the block */
        rp_chunk_unref(chunk);
    }
}

/* Evicts chunks that were not used since the clock hand passed them. */
static void trim_cache_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    while (t->cached > t->cache_limit) {
        rp_tier_chunk *entry = t->ring.first;

        if (entry->recent) {
            entry->recent = false;
            rp_tier_list_unlink(&t->ring, entry);
            rp_tier_list_append(&t->ring, entry);
        } else {
            rp_tier_uncache_locked(t, entry);
        }
    }
}

static void cache_locked(rp_tier *t, rp_tier_chunk *entry, rp_loaded *loaded) RP_REQUIRES(t->mu)
{
    uint64_t bytes = loaded->chunk->wire_bytes;

    if (!entry->held || entry->loaded != NULL || bytes > t->cache_limit / 4) return;
    assert(entry->state == RP_TIER_SPILLED); /* S3 */
    entry->loaded = loaded;
    (void)rp_chunk_ref(loaded->chunk);
    entry->recent = false;
    rp_tier_list_append(&t->ring, entry);
    t->cached += bytes;
    trim_cache_locked(t);
}

static bool same_columns(const rp_chunk *a, const rp_chunk *b)
{
    if (a->column_count != b->column_count || a->origin.key != b->origin.key) return false;
    for (size_t i = 0; i < a->column_count; i++) {
        const rp_chunk_column *x = &a->columns[i], *y = &b->columns[i];

        if (x->dtype != y->dtype || x->shape.rank != y->shape.rank ||
            memcmp(x->shape.dims, y->shape.dims,
                   (size_t)x->shape.rank * sizeof x->shape.dims[0]) != 0)
            return false;
    }
    return true;
}

/* NULL if there is no memory. */
static rp_loaded *new_block(rp_tier *t, size_t bytes)
{
    rp_loaded *block;
    size_t size;

    if (!rp_size_add(bytes, sizeof *block, &size)) return NULL;
    block = rp_alloc(&t->alloc, size);
    if (block == NULL) return NULL;
    *block = (rp_loaded){.alloc = t->alloc, .size = size};
    return block;
}

/* Reads the record. The chunk may be moved, and its old segment removed, after its location was
 * looked up: then reads from the new location. */
static rp_status read_record(rp_tier *t, const rp_want *want, uint8_t *out, rp_error *err)
{
    rp_disk_location location = want->location, now;
    rp_status st = RP_NOT_FOUND;

    for (int tries = 0; st == RP_NOT_FOUND && tries < MAX_MOVES; tries++) {
        st = rp_segments_read(t->segments, &location, RP_RECORD_CHUNK, out, NULL, err);
        if (st != RP_NOT_FOUND || !rp_segments_locate(t->segments, want->base, &now) ||
            now.size != location.size ||
            (now.segment == location.segment && now.offset == location.offset))
            break;
        location = now;
    }
    return st;
}

/* Reads and checks the chunk of a request. Takes its block. */
static rp_status read_chunk(rp_tier *t, const rp_want *want, rp_chunk **out, rp_error *err)
{
    /* The limits of the format: the chunk was admitted when it was inserted. */
    const rp_chunk_limits limits = {SIZE_MAX, SIZE_MAX, RP_MAX_COLUMNS};
    size_t bytes = want->base->wire_bytes;
    rp_loaded *block = want->block;
    rp_status st;

    if (block == NULL) return rp_fail_memory(err, bytes);
    st = RP_OK;
    if (want->location.size != bytes)
        st = rp_fail(err, RP_CORRUPT, "chunk %llu has %zu bytes, and %u on disk",
                     (unsigned long long)want->base->origin.key, bytes, want->location.size);
    if (st == RP_OK) st = read_record(t, want, block->bytes, err);
    if (st == RP_OK) {
        st = rp_chunk_adopt(&t->alloc, block->bytes, bytes, &limits,
                            &(rp_chunk_owner){release_block, block}, out, err);
        if (st == RP_INVALID) st = rp_fail(err, RP_CORRUPT, "a chunk on disk cannot be read");
    }
    if (st != RP_OK) {
        release_block(block);
        return st;
    }
    assert((*out)->wire_bytes == bytes);
    block->chunk = *out;
    if (same_columns(*out, want->base)) return RP_OK;
    rp_chunk_unref(*out);
    *out = NULL;
    return rp_fail(err, RP_CORRUPT, "another chunk stands where chunk %llu should",
                   (unsigned long long)want->base->origin.key);
}

/* True if a chunk of the trajectory may be on disk only. */
static bool is_tiered(const rp_trajectory *trajectory)
{
    if (trajectory == NULL) return false;
    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        if (rp_chunk_can_spill(trajectory->chunks[i])) return true;
    return false;
}

/* Replaces chunks that were read by views: the cache shares them with other samples, and a
 * cached chunk must not be put into a table, where it could be spilled. */
static void view_loaded(rp_tier *t, job *j)
{
    for (size_t i = 0; i < j->count && j->status == RP_OK; i++) {
        rp_want *want = &j->wants[i];
        rp_chunk *loaded = want->result;
        bool is_there;

        if (!want->is_loaded) continue;
        is_there = rp_chunk_pin(loaded);
        assert(is_there);
        (void)is_there;
        want->result = rp_chunk_view(&t->alloc, loaded);
        if (want->result == NULL) {
            rp_chunk_unpin(loaded);
            j->status = rp_fail_memory(&j->error, sizeof *loaded);
        }
        rp_chunk_unref(loaded);
    }
}

/* Replaces the trajectories of all samples; on failure, of none. */
static void replace(rp_tier *t, job *j)
{
    rp_sample_load *load = j->load;
    rp_chunk *few[64], **chunks;
    rp_trajectory **made;
    size_t at = 0, n = 0;

    made = rp_alloc_array(&t->alloc, load->count, sizeof(rp_trajectory *));
    if (made == NULL) j->status = rp_fail_memory(&j->error, load->count * sizeof *made);
    for (; made != NULL && j->status == RP_OK && n < load->count && at < j->count; n++) {
        const rp_trajectory *old = load->samples[n].trajectory;
        size_t count;

        if (!is_tiered(old)) continue;
        count = old->chunk_count;
        chunks = count > 64 ? rp_alloc_array(&t->alloc, count, sizeof *chunks) : few;
        for (size_t i = 0; chunks != NULL && i < count; i++)
            chunks[i] = j->wants[at + i].result;
        if (chunks != NULL) made[n] = rp_trajectory_over(&t->alloc, old, chunks);
        if (chunks != few) rp_release(&t->alloc, chunks, count * sizeof *chunks);
        if (made[n] == NULL) j->status = rp_fail_memory(&j->error, count * sizeof *chunks);
        at += count;
    }
    for (size_t i = 0; made != NULL && i < load->count; i++) {
        if (made[i] == NULL) continue;
        if (j->status != RP_OK) {
            rp_trajectory_unref(made[i]);
            continue;
        }
        rp_trajectory_unref(load->samples[i].trajectory);
        load->samples[i].trajectory = made[i];
    }
    rp_release(&t->alloc, made, load->count * sizeof *made);
}

/* Ends a job and frees it. Returns its load. */
static rp_sample_load *end_job(rp_tier *t, job *j)
{
    rp_sample_load *load = j->load;

    assert(j->left == 0);
    if (j->status == RP_OK) view_loaded(t, j);
    if (j->status == RP_OK) replace(t, j);
    load->status = j->status;
    if (j->status != RP_OK) load->error = j->error;
    for (size_t i = 0; i < j->count; i++) rp_chunk_unref(j->wants[i].result);
    rp_release(&t->alloc, j, j->size);
    return load;
}

/* Completes all requests for the chunk. Returns a list of the jobs that are over. */
static job *settle_locked(rp_tier *t, rp_tier_chunk *entry, rp_chunk *loaded,
                          const rp_error *err) RP_REQUIRES(t->mu)
{
    rp_want *want = entry->readers;
    job *over = NULL;

    entry->readers = NULL;
    while (want != NULL) {
        rp_want *next = want->next_reader;
        job *j = want->job;

        if (loaded != NULL) {
            want->result = rp_chunk_ref(loaded);
            want->is_loaded = true;
        } else if (j->status == RP_OK) {
            j->status = err->code;
            j->error = *err;
        }
        assert(want->result != NULL || j->status != RP_OK);
        assert(j->left > 0);
        if (--j->left == 0) {
            j->next = over;
            over = j;
        }
        want = next;
    }
    (void)t;
    return over;
}

static void read_one(rp_tier *t, rp_want *want) RP_EXCLUDES(t->mu)
{
    rp_tier_chunk *entry =
        (rp_tier_chunk *)atomic_load_explicit(&want->base->stay, memory_order_acquire);
    rp_loaded *block = want->block, *uncached;
    rp_chunk *loaded = NULL;
    rp_error err = {0};
    job *over;

    err.code = read_chunk(t, want, &loaded, &err);
    rp_mutex_lock(&t->mu);
    if (loaded != NULL) {
        t->loads++;
        t->load_bytes += loaded->wire_bytes;
        cache_locked(t, entry, block);
    }
    over = settle_locked(t, entry, loaded, &err); /* `want` may be freed after this */
    uncached = t->uncached;
    t->uncached = NULL;
    rp_mutex_unlock(&t->mu);
    rp_chunk_unref(loaded);
    rp_tier_unref_loaded(uncached);
    while (over != NULL) {
        job *next = over->next;
        rp_sample_load *load = end_job(t, over);

        load->on_done(load);
        over = next;
    }
}

/* Waits until wake_readers_locked() or rp_tier_stop_readers() wakes this reader. */
static void wait_idle_locked(rp_tier *t, rp_tier_reader *reader) RP_REQUIRES(t->mu)
{
    assert(!reader->is_idle);
    reader->is_idle = true;
    reader->next = t->idle_readers;
    t->idle_readers = reader;
    while (reader->is_idle) (void)rp_cond_wait(&reader->cv, &t->mu, RP_FOREVER);
}

/* Wakes up to `count` idle readers, the latest first: their stacks are in the caches. */
static void wake_readers_locked(rp_tier *t, size_t count) RP_REQUIRES(t->mu)
{
    for (; count > 0 && t->idle_readers != NULL; count--) {
        rp_tier_reader *reader = t->idle_readers;

        assert(reader->is_idle);
        t->idle_readers = reader->next;
        reader->is_idle = false;
        rp_cond_signal(&reader->cv);
    }
}

static void append_job_locked(rp_tier *t, job *j) RP_REQUIRES(t->mu)
{
    assert(j->first_want != NULL);
    j->next = NULL;
    j->reads = 0;
    *(t->last_job == NULL ? &t->first_job : &t->last_job->next) = j;
    t->last_job = j;
}

/* Takes the next chunk to read: READS_A_TURN of a job, then those of the next job. NULL if
 * there is none. The job may be freed once all its chunks are read. */
static rp_want *take_want_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    job *j = t->first_job;
    rp_want *want;

    if (j == NULL) return NULL;
    want = j->first_want;
    j->first_want = want->next;
    if (j->first_want == NULL) j->last_want = NULL;
    if (j->first_want != NULL && ++j->reads < READS_A_TURN) return want;
    t->first_job = j->next;
    if (t->first_job == NULL) t->last_job = NULL;
    if (j->first_want != NULL) append_job_locked(t, j);
    return want;
}

static void *run_reader(void *arg)
{
    rp_tier_reader *reader = arg;
    rp_tier *t = reader->tier;

    rp_mutex_lock(&t->mu);
    for (;;) {
        rp_want *want = take_want_locked(t);

        if (want == NULL) {
            if (t->stopping) break;
            wait_idle_locked(t, reader);
            continue;
        }
        rp_mutex_unlock(&t->mu);
        read_one(t, want);
        rp_mutex_lock(&t->mu);
    }
    rp_mutex_unlock(&t->mu);
    return NULL;
}

bool rp_tier_start_readers(rp_tier *t, size_t count)
{
    t->readers = rp_alloc_array(&t->alloc, count, sizeof *t->readers);
    if (t->readers == NULL) return false;
    t->reader_room = count;
    for (; t->reader_count < count; t->reader_count++) {
        rp_tier_reader *reader = &t->readers[t->reader_count];

        *reader = (rp_tier_reader){.tier = t};
        rp_cond_init(&reader->cv);
        if (rp_thread_start(&reader->thread, "rp-tier-read", run_reader, reader)) continue;
        rp_cond_deinit(&reader->cv);
        return false;
    }
    return true;
}

void rp_tier_stop_readers(rp_tier *t)
{
    rp_mutex_lock(&t->mu);
    assert(t->stopping);
    wake_readers_locked(t, t->reader_count);
    rp_mutex_unlock(&t->mu);
    for (size_t i = 0; i < t->reader_count; i++) {
        (void)pthread_join(t->readers[i].thread, NULL);
        rp_cond_deinit(&t->readers[i].cv);
    }
    rp_release(&t->alloc, t->readers, t->reader_room * sizeof *t->readers);
}

static job *new_job(rp_tier *t, rp_sample_load *load, size_t count)
{
    size_t size;
    job *j;

    if (!rp_size_mul(count, sizeof(rp_want), &size) || !rp_size_add(size, sizeof *j, &size))
        return NULL;
    j = rp_alloc_zero(&t->alloc, size);
    if (j == NULL) return NULL;
    j->load = load;
    j->size = size;
    j->count = count;
    return j;
}

/* Takes views of the chunks in memory. Returns how many chunks are not in memory. */
static size_t take_residents(rp_tier *t, job *j)
{
    size_t at = 0, missing = 0;

    for (size_t n = 0; n < j->load->count; n++) {
        const rp_trajectory *trajectory = j->load->samples[n].trajectory;

        if (!is_tiered(trajectory)) continue;
        for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
            rp_want *want = &j->wants[at++];
            rp_chunk *base = trajectory->chunks[i];

            want->base = base;
            want->job = j;
            if (!rp_chunk_can_spill(base)) {
                want->result = rp_chunk_ref(base);
            } else if (!rp_chunk_pin(base)) {
                missing++;
            } else {
                want->result = rp_chunk_view(&t->alloc, base);
                if (want->result != NULL) continue;
                rp_chunk_unpin(base);
                if (j->status == RP_OK) j->status = rp_fail_memory(&j->error, sizeof *base);
            }
        }
    }
    assert(at == j->count);
    return missing;
}

static int compare_locations(const void *a, const void *b)
{
    const rp_disk_location *x = &(*(rp_want *const *)a)->location,
                           *y = &(*(rp_want *const *)b)->location;

    if (x->segment != y->segment) return x->segment < y->segment ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Queues the chunks of a job that are to be read. */
static void queue_locked(rp_tier *t, job *j, rp_want *const *wants, size_t count)
    RP_REQUIRES(t->mu)
{
    assert(count > 0 && j->first_want == NULL);
    for (size_t i = 0; i < count; i++) {
        wants[i]->next = NULL;
        *(j->last_want == NULL ? &j->first_want : &j->last_want->next) = wants[i];
        j->last_want = wants[i];
    }
    append_job_locked(t, j);
    wake_readers_locked(t, count);
}

static rp_status fail_bound(const rp_sample_load *load, rp_error *err)
{
    if (load->count == 1)
        return rp_fail(err, RP_NO_RESOURCE,
                       "the chunks of the item are on disk and take more than %zu bytes in "
                       "memory, the most for one response; raise message_bytes of the server",
                       load->max_bytes);
    return rp_fail(err, RP_NO_RESOURCE,
                   "the chunks of these %zu items are on disk and take more than %zu bytes in "
                   "memory; ask for fewer items",
                   load->count, load->max_bytes);
}

/* True if the chunks to be read, each counted once, fit into the bound of the load. `missing`
 * is sorted by location. */
static bool is_within_bound(const rp_sample_load *load, rp_want *const *missing, size_t count)
{
    size_t bytes = 0;

    if (load->max_bytes == 0) return true;
    for (size_t i = 0; i < count && bytes <= load->max_bytes; i++)
        if (i == 0 || missing[i]->base != missing[i - 1]->base)
            bytes += missing[i]->base->wire_bytes;
    return bytes <= load->max_bytes;
}

/* Takes chunks from the cache, joins reads that are pending, and queues the rest. Returns true
 * if nothing is left to wait for; otherwise the readers own the job. */
static bool fetch(rp_tier *t, job *j, rp_want **missing, size_t missing_count)
{
    size_t new_count = 0, joined = 0;

    for (size_t i = 0; i < missing_count; i++)
        if (!rp_segments_locate(t->segments, missing[i]->base, &missing[i]->location)) {
            j->status = rp_fail(&j->error, RP_INTERNAL,
                                "a chunk has neither bytes in memory nor a disk location");
            return true;
        }
    if (missing_count > 1) qsort(missing, missing_count, sizeof(rp_want *), compare_locations);
    if (!is_within_bound(j->load, missing, missing_count)) {
        j->status = fail_bound(j->load, &j->error);
        return true;
    }
    rp_mutex_lock(&t->mu);
    for (size_t i = 0; i < missing_count; i++) {
        rp_want *want = missing[i];
        rp_tier_chunk *entry =
            (rp_tier_chunk *)atomic_load_explicit(&want->base->stay, memory_order_relaxed);

        if (entry->loaded != NULL) {
            want->result = rp_chunk_ref(entry->loaded->chunk);
            want->is_loaded = true;
            entry->recent = true;
            t->hits++;
            continue;
        }
        joined++;
        if (entry->readers == NULL) missing[new_count++] = want;
        want->next_reader = entry->readers;
        entry->readers = want;
    }
    j->left = joined;
    rp_mutex_unlock(&t->mu);
    if (new_count > 0) {
        for (size_t i = 0; i < new_count; i++)
            missing[i]->block = new_block(t, missing[i]->base->wire_bytes);
        rp_mutex_lock(&t->mu);
        queue_locked(t, j, missing, new_count); /* the job may be freed after this */
        rp_mutex_unlock(&t->mu);
    }
    return joined == 0;
}

bool rp_tier_start_load(rp_tier *t, rp_tier_load *load)
{
    size_t count = 0, missing_count, n = 0;
    rp_want **missing;
    bool is_over = true;
    job *j;

    load->status = RP_OK;
    for (size_t i = 0; i < load->count; i++)
        if (is_tiered(load->samples[i].trajectory))
            count += load->samples[i].trajectory->chunk_count;
    if (count == 0) return true;
    if (load->max_bytes > 0 && count > load->max_bytes / sizeof(rp_want)) {
        load->status = fail_bound(load, &load->error);
        return true;
    }
    j = new_job(t, load, count);
    if (j == NULL) {
        load->status = rp_fail_memory(&load->error, count * sizeof(rp_want));
        return true;
    }
    missing_count = take_residents(t, j);
    if (missing_count > 0 && j->status == RP_OK) {
        missing = rp_alloc_array(&t->alloc, missing_count, sizeof(rp_want *));
        if (missing == NULL) {
            j->status = rp_fail_memory(&j->error, missing_count * sizeof(rp_want *));
        } else {
            for (size_t i = 0; i < count; i++)
                if (j->wants[i].result == NULL) missing[n++] = &j->wants[i];
            is_over = fetch(t, j, missing, n);
            rp_release(&t->alloc, missing, missing_count * sizeof(rp_want *));
        }
    }
    if (is_over) (void)end_job(t, j);
    return is_over;
}

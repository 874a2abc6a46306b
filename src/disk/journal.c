/* SPDX-License-Identifier: Apache-2.0 */
/* Append, queries, start and stop. The invariants are in disk/journal_inside.h. */
#include "disk/journal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "disk/journal_inside.h"
#include "disk/journal_takeover.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"
#include "util/verify.h"

enum { DEFAULT_BYTES = 64 << 20 /* of a file; in the queue */ };
static const int64_t default_retry_ns = 1000000000;

void rp_journal_release(const rp_journal *j, rp_record_kind kind, const void *raw, size_t size)
{
    if (j->o.release != NULL) j->o.release(j->o.ctx, kind, raw, size);
}

void rp_journal_lose_locked(rp_journal *j)
{
    j->is_lost = true;
    j->losses++;
}

#ifndef NDEBUG
bool rp_journal_is_valid_locked(rp_journal *j)
{
    uint64_t last = atomic_load(&j->last);

    if (j->synced > j->written || j->written > last || atomic_load(&j->safe) > last)
        return false; /* J5 */
    if (j->file_count > j->file_capacity) return false;
    for (size_t i = 1; i < j->file_count; i++)
        if (j->files[i - 1] >= j->files[i]) return false; /* J7 */
    for (const waiter *w = j->waiters; w != NULL; w = w->next)
        if (w->prev == NULL ? j->waiters != w : w->prev->next != w) return false; /* J8 */
    return j->hold == 0 || j->resume == j->hold + 1;                              /* J9 */
}
#endif

/* True if a change of this kind may leave dead bytes on disk. */
static bool may_free(rp_record_kind kind)
{
    return kind == RP_RECORD_DELETE || kind == RP_RECORD_EVICT || kind == RP_RECORD_RESET ||
           kind == RP_RECORD_DROP || kind == RP_RECORD_ALTER || kind == RP_RECORD_ROLLOUTS_OP ||
           kind == RP_RECORD_ROLLOUTS_DROP;
}

uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count, bool *is_kept)
{
    uint64_t lsn, before;
    bool ok;

    rp_mutex_lock(&j->mu);
    lsn = atomic_load_explicit(&j->last, memory_order_relaxed) + 1;
    before = j->queue.bytes;
    ok = rp_raw_queue_append(&j->queue, &j->alloc, &j->spare, lsn, kind, parts, count);
    if (!ok && !j->is_lost) {
        rp_journal_lose_locked(j);
        (void)rp_fail(&j->info.trouble, RP_NO_RESOURCE,
                      "no memory for a record: it needs a checkpoint to go on");
    }
    (void)atomic_fetch_add_explicit(&j->queued, j->queue.bytes - before, memory_order_relaxed);
    if (may_free(kind)) j->freed = lsn;
    assert(lsn > atomic_load(&j->safe)); /* J5: nothing is safe before it is appended */
    atomic_store_explicit(&j->last, lsn, memory_order_relaxed);
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    if (is_kept != NULL) *is_kept = ok;
    return lsn;
}

uint64_t rp_journal_append_nothing(rp_journal *j)
{
    static const rp_bytes too_much = {NULL, (size_t)RP_MAX_RECORD_BYTES + 1};

    return rp_journal_append(j, RP_RECORD_SEAL, &too_much, 1, NULL);
}

bool rp_journal_is_lost(rp_journal *j)
{
    return atomic_load(&j->is_lost);
}

/* Makes the thread write the queue of the segments. There may be no record that would: the
 * chunks may be of inserts that wait for their tables. */
static void want_flush(rp_journal *j)
{
    if (atomic_exchange(&j->is_flush_wanted, true)) return;
    rp_mutex_lock(&j->mu);
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
}

bool rp_journal_is_behind(rp_journal *j, bool takes_space)
{
    uint64_t bytes = atomic_load(&j->queued);
    int64_t pause_until = atomic_load(&j->pause_until);

    if (takes_space && pause_until != 0 && rp_now_ns() < pause_until) return true;
    if (atomic_load(&j->is_degraded)) return false; /* it gives up records instead */
    if (bytes >= j->o.max_queued) return true;
    /* Only changes that put chunks wait for the segments, which may not be writable while a
     * checkpoint frees a full disk. */
    if (j->o.segments == NULL || !takes_space) return false;
    if (bytes + rp_segments_queued(j->o.segments) < j->o.max_queued) return false;
    want_flush(j);
    return true;
}

uint64_t rp_journal_backlog(rp_journal *j, uint64_t *most)
{
    uint64_t bytes = atomic_load(&j->queued);

    if (j->o.segments != NULL) bytes += rp_segments_queued(j->o.segments);
    *most = j->o.max_queued;
    return bytes;
}

int64_t rp_journal_stalled_ns(rp_journal *j, int64_t now_ns)
{
    int64_t since = atomic_load(&j->pass_since), beside = atomic_load(&j->beside_since);

    if (beside != 0 && (since == 0 || beside < since)) since = beside;
    return since != 0 && now_ns > since ? now_ns - since : 0;
}

bool rp_journal_claim_space(rp_journal *j, uint64_t bytes, uint64_t least)
{
    if (rp_journal_space_claim(&j->space, atomic_load(&j->queued), bytes, least)) return true;
    rp_mutex_lock(&j->mu);
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    return false;
}

void rp_journal_release_space(rp_journal *j, uint64_t bytes)
{
    rp_journal_space_release(&j->space, bytes);
}

uint64_t rp_journal_most_space(const rp_journal *j)
{
    return rp_journal_space_most(&j->space);
}

bool rp_journal_is_space_wanted(const rp_journal *j)
{
    return rp_journal_space_is_wanted(&j->space);
}

void rp_journal_clear_space_wanted(rp_journal *j)
{
    rp_journal_space_clear_wanted(&j->space);
}

uint64_t rp_journal_last(rp_journal *j)
{
    return atomic_load(&j->last);
}

uint64_t rp_journal_reached(rp_journal *j)
{
    uint64_t reached;

    rp_mutex_lock(&j->mu);
    reached = j->reached;
    rp_mutex_unlock(&j->mu);
    return reached;
}

uint64_t rp_journal_safe(rp_journal *j)
{
    return atomic_load(&j->safe);
}

uint64_t rp_journal_cut(rp_journal *j)
{
    uint64_t last;

    rp_mutex_lock(&j->mu);
    last = atomic_load_explicit(&j->last, memory_order_relaxed);
    if (j->is_lost) {
        j->is_lost = false;
        j->resume = last + 1;
        j->hold = last;
        rp_cond_signal(&j->cv);
    }
    RP_VERIFY(j->file_count, rp_journal_is_valid_locked(j));
    rp_mutex_unlock(&j->mu);
    return last;
}

rp_status rp_journal_trim(rp_journal *j, uint64_t base, rp_error *err)
{
    char path[RP_JOURNAL_PATH_BYTES];
    rp_status first = RP_OK;
    bool more = true;

    while (more) {
        uint64_t file = 0;
        rp_error why;
        rp_status st;

        rp_mutex_lock(&j->mu);
        more = j->file_count > 1 && j->files[1] - 1 <= base;
        if (more) {
            file = j->files[0];
            j->file_count--;
            memmove(j->files, j->files + 1, j->file_count * sizeof *j->files);
            assert(j->file_count > 0 &&
                   file < j->files[0]); /* the open file is never removed */
        }
        rp_mutex_unlock(&j->mu);
        if (!more) break;
        RP_KILL_POINT("journal.trim");
        st = j->o.files->ops->remove(j->o.files, rp_journal_path(path, file), &why);
        if (st == RP_OK || st == RP_NOT_FOUND || first != RP_OK) continue;
        first = st; /* the file stays; the next start lists it again */
        if (err != NULL) *err = why;
    }
    return first;
}

void rp_journal_resume(rp_journal *j, uint64_t covered)
{
    rp_mutex_lock(&j->mu);
    if (j->hold > 0 && covered >= j->hold) {
        j->hold = 0;
        rp_cond_signal(&j->cv);
    }
    rp_mutex_unlock(&j->mu);
}

bool rp_journal_pause(rp_journal *j)
{
    bool is_paused;

    rp_mutex_lock(&j->mu);
    assert(!j->is_paused && !j->is_stopping);
    j->is_paused = true;
    while (j->is_passing) (void)rp_cond_wait(&j->idle, &j->mu, INT64_MAX);
    is_paused = j->is_paused = !j->is_lost && j->hold == 0;
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    return is_paused;
}

void rp_journal_unpause(rp_journal *j)
{
    rp_mutex_lock(&j->mu);
    assert(j->is_paused);
    j->is_paused = false;
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
}

void rp_journal_get_info(rp_journal *j, rp_journal_info *out)
{
    rp_mutex_lock(&j->mu);
    *out = j->info;
    out->last = atomic_load(&j->last);
    out->safe = atomic_load(&j->safe);
    out->synced = j->synced;
    out->queued = atomic_load(&j->queued);
    out->files = j->file_count;
    out->is_lost = j->is_lost || j->hold > 0;
    rp_mutex_unlock(&j->mu);
}

/* The thread has ended, or was not started. */
static void free_journal(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_allocator alloc = j->alloc;

    assert(j->waiters == NULL);
    rp_raw_queue_move(&j->kept, &j->queue);
    rp_journal_release_kept(j, UINT64_MAX);
    if (j->file.handle != NULL) j->o.files->ops->close(j->file.handle);
    rp_raw_batch_free(j->spare, &alloc);
    rp_buf_deinit(&j->piece.bytes);
    rp_release(&alloc, j->files, j->file_capacity * sizeof *j->files);
    rp_cond_deinit(&j->beside_cv);
    rp_cond_deinit(&j->idle);
    rp_cond_deinit(&j->cv);
    rp_mutex_deinit(&j->mu);
    rp_release(&alloc, j, sizeof *j);
}

static void end_second(rp_journal *j)
{
    if (!j->has_second) return;
    rp_mutex_lock(&j->mu);
    j->beside_is_ending = true;
    rp_cond_signal(&j->beside_cv);
    rp_mutex_unlock(&j->mu);
    (void)pthread_join(j->second, NULL);
}

static rp_status start_threads(rp_journal *j, rp_error *err)
{
    if (!j->o.sync) {
        j->has_second = rp_thread_start(&j->second, "journal-sync", rp_journal_run_beside, j);
        if (!j->has_second)
            return rp_fail(err, RP_NO_RESOURCE, "journal: the thread could not be started");
    }
    if (rp_thread_start(&j->thread, "journal", rp_journal_run, j)) return RP_OK;
    end_second(j);
    return rp_fail(err, RP_NO_RESOURCE, "journal: the thread could not be started");
}

rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                           rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_journal *j = rp_alloc_zero(options->alloc, sizeof *j);
    rp_number_list files = {0};
    rp_status st;

    assert(options->next_lsn >= 1);
    if (j == NULL) return rp_fail_memory(err, sizeof *j);
    j->o = *options;
    j->alloc = *options->alloc;
    j->o.alloc = &j->alloc;
    if (j->o.file_bytes == 0) j->o.file_bytes = DEFAULT_BYTES;
    if (j->o.max_queued == 0) j->o.max_queued = DEFAULT_BYTES;
    if (j->o.retry_ns == 0) j->o.retry_ns = default_retry_ns;
    rp_mutex_init(&j->mu, RP_RANK_JOURNAL);
    rp_cond_init(&j->cv);
    rp_cond_init(&j->beside_cv);
    rp_cond_init(&j->idle);
    rp_buf_init(&j->piece.bytes, &j->alloc);
    j->written = j->synced = j->reached = options->next_lsn - 1;
    atomic_init(&j->last, options->next_lsn - 1);
    atomic_init(&j->safe, options->next_lsn - 1);
    j->due_at = RP_FOREVER;
    rp_journal_space_init(&j->space, j->o.files, j->o.sync ? j->o.segments : NULL, j->o.reserve,
                          j->o.ctx);
    (void)rp_journal_space_update(&j->space, 0);
    st = rp_journal_take_over(&j->o, &files, err);
    j->files = files.at;
    j->file_count = files.count;
    j->file_capacity = files.capacity;
    assert(j->file_count <= j->file_capacity);
    if (st == RP_OK) st = start_threads(j, err);
    if (st != RP_OK) {
        free_journal(j);
        return st;
    }
    *out = j;
    return RP_OK;
}

/* Seals the open file. The thread has ended. */
static rp_status seal(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = RP_OK;

    if (j->info.in_trouble) {
        if (err != NULL) *err = j->info.trouble;
        return j->info.trouble.code;
    }
    if (j->file.handle != NULL) st = rp_journal_file_seal(&j->file, &j->o, j->written, err);
    return st;
}

rp_status rp_journal_stop(rp_journal *j, rp_error *err)
{
    rp_status st;

    if (j == NULL) return RP_OK;
    rp_mutex_lock(&j->mu);
    j->is_stopping = true;
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    (void)pthread_join(j->thread, NULL);
    end_second(j);
    st = seal(j, err);
    free_journal(j);
    return st;
}

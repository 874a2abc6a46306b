/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for checkpoints, and the thread that writes them, one at a time. A checkpoint
 * completes the requests that were made before it began; a request made meanwhile waits for the
 * next one.
 *
 * A thread that waits for a checkpoint owns a sleeper, shared with its request. Invariants:
 *
 *   Z1  the request of a sleeper is in `waiting`, or taken by the checkpoint thread, or over;
 *   Z2  the sleeper is freed once: by its thread, or, if the thread has stopped waiting before
 *       the request is over (`left`), by on_written(). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "durable/durable_inside.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

#define FIRST_BACKOFF_NS (INT64_C(1000) * 1000 * 1000)
#define SHORT_PAUSE_NS (INT64_C(100) * 1000 * 1000) /* between checkpoints on a full disk */
#define LAST_BACKOFF_NS (INT64_C(60) * 1000 * 1000 * 1000)
#define URGENT_BACKOFF_NS (INT64_C(4) * 1000 * 1000 * 1000) /* if the journal waits */

static int64_t later(int64_t now_ns, int64_t by_ns)
{
    return by_ns >= RP_FOREVER - now_ns ? RP_FOREVER : now_ns + by_ns;
}

static void note_success_locked(rp_durable *d, const rp_checkpoint_result *result,
                                int64_t took_ns) RP_REQUIRES(d->mu)
{
    d->info.checkpoints++;
    d->info.last_checkpoint = result->number;
    d->info.last_checkpoint_took_ns = took_ns;
    d->info.last_pause_ns = result->pause_ns;
    d->info.last_checkpoint_bytes = result->bytes;
    d->info.segments = result->segments;
    d->info.disk_bytes = result->disk_bytes;
    d->info.live_bytes = result->live_bytes;
    d->last_ended_ns = rp_now_ns();
    d->backoff_ns = 0;
    d->due_ns = later(d->last_ended_ns, d->options.period_ns);
    /* A journal that gave up records after the cut needs another checkpoint. */
    if (d->journal != NULL && rp_journal_is_lost(d->journal)) d->is_wanted = true;
}

enum {
    MOST_MENDS = 3
}; /* the first checkpoint finds the dead bytes, the second moves the live
      ones out of the same segments, the third removes the segments */

/* After a checkpoint on a full disk: requests another one if that may make the reserve whole
 * again. */
static void mend_reserve(rp_durable *d)
{
    uint64_t held = atomic_load(&d->reserve.held);
    bool is_whole = rp_durable_check_reserve(d);

    if (is_whole || !d->checkpointer.is_short) {
        d->mends = 0;
        d->most_held = 0;
        return;
    }
    if (held > d->most_held) {
        d->most_held = held;
        d->mends = 0;
    }
    if (d->mends >= MOST_MENDS) return;
    d->mends++;
    rp_mutex_lock(&d->mu);
    if (d->backoff_ns == 0) d->is_wanted = true;
    rp_mutex_unlock(&d->mu);
}

static void note_failure_locked(rp_durable *d) RP_REQUIRES(d->mu)
{
    int64_t first_ns = d->tuning.retry_ns != 0 ? d->tuning.retry_ns : FIRST_BACKOFF_NS;
    int64_t backoff_ns = d->backoff_ns == 0 ? first_ns : 2 * d->backoff_ns;
    rp_journal_info journal = {0};

    if (d->journal != NULL) rp_journal_get_info(d->journal, &journal);
    if (backoff_ns > LAST_BACKOFF_NS) backoff_ns = LAST_BACKOFF_NS;
    if (backoff_ns > URGENT_BACKOFF_NS && journal.is_lost) backoff_ns = URGENT_BACKOFF_NS;
    if (backoff_ns > d->options.period_ns) backoff_ns = d->options.period_ns;
    d->info.failed_checkpoints++;
    assert(backoff_ns > 0 && backoff_ns <= LAST_BACKOFF_NS); /* D2 */
    d->backoff_ns = backoff_ns;
    d->due_ns = later(rp_now_ns(), backoff_ns);
}

/* True if a checkpoint that failed with RP_NO_RESOURCE may have lacked disk space, rather than
 * memory or descriptors. */
static bool is_disk_short(rp_durable *d)
{
    uint64_t total = 0, available = 0, held;

    if (rp_segments_is_full(d->segments)) return true;
    if (d->files->ops->space == NULL) return true;
    if (d->files->ops->space(d->files, &total, &available, NULL) != RP_OK) return true;
    if (rp_reserve_lacks_files(&d->reserve)) return true;
    return available < total / 8 || available < rp_durable_reserve_wanted(d, &held);
}

/* Writes a checkpoint on a full disk, into the space of the reserve. The second attempt moves
 * chunks as the first has found the segments and the new chunks. If there is no space to move
 * chunks, writes it without moving any. If that would leave too little space for the next
 * checkpoint, writes all blocks: then the segments of the blocks before can be removed. */
static rp_status write_short(rp_durable *d, rp_checkpoint_result *result, rp_error *why)
{
    rp_checkpointer *c = &d->checkpointer;
    rp_status st = RP_NO_RESOURCE;

    assert(!c->moves_nothing && !c->rewrites && d->reserve.wanted > 0);
    /* If more inodes are free than those of the reserve, bytes are short and not inodes. */
    (void)rp_reserve_keep_files(&d->reserve, RP_RESERVE_FILES);
    c->free_files = rp_reserve_lacks_files(&d->reserve) ? (uint64_t)d->reserve.files_held
                                                        : RP_FILES_UNBOUND;
    rp_reserve_release(&d->reserve);
    c->is_short = true;
    c->largest = rp_durable_largest(d);
    c->largest_rollouts = rp_durable_largest_rollouts(d);
    c->spare = rp_durable_spare(d);
    for (int attempt = c->has_moved_in_vain ? 2 : 0; attempt < 4 && st == RP_NO_RESOURCE;
         attempt++) {
        c->moves_nothing = attempt > 1;
        /* If inodes are short, the segments of the blocks before give back theirs. */
        c->rewrites = attempt > 2 || (attempt == 1 && c->free_files != RP_FILES_UNBOUND);
        *result = (rp_checkpoint_result){0};
        st = rp_checkpoint_write(c, result, why);
    }
    c->moves_nothing = c->rewrites = false;
    return st;
}

/* After a checkpoint on a disk that lacks inodes: writes more of them, which remove vacated
 * segments and vacate others, as long as that gains inodes (R5). The journal waits. */
static void gain_files(rp_durable *d, rp_checkpoint_result *result)
{
    int most = 0;

    for (int vain = 0; vain < 2; vain++) {
        rp_checkpoint_result more = {0};
        rp_error why;

        (void)rp_reserve_keep_files(&d->reserve, RP_RESERVE_FILES);
        if (d->reserve.files_held == RP_RESERVE_FILES) return;
        if (d->reserve.files_held > most) {
            most = d->reserve.files_held;
            vain = 0;
        }
        if (write_short(d, &more, &why) != RP_OK) return;
        *result = more;
    }
}

/* True if the journal has yielded because inserts wait for disk space, and there is a reserve
 * to write into. */
static bool is_room_wanted(const rp_durable *d)
{
    return d->journal != NULL && d->reserve.wanted > 0 && rp_journal_is_lost(d->journal) &&
           rp_journal_is_space_wanted(d->journal);
}

/* Writes a checkpoint. If the disk is full, or too full for the reserve, writes it into the
 * reserve. The reserve is taken again before the journal may write (R1). */
static rp_status write_with_reserve(rp_durable *d, rp_checkpoint_result *result, rp_error *why)
{
    rp_checkpointer *c = &d->checkpointer;
    rp_status st = rp_durable_keep_reserve(d);
    bool is_wanted = is_room_wanted(d), is_paused = false;

    if (st == RP_OK && !(d->journal != NULL && rp_journal_is_lost(d->journal)))
        st = rp_reserve_keep_files(&d->reserve, RP_RESERVE_FILES);
    c->is_short = false;
    if (is_wanted)
        st = RP_NO_RESOURCE;
    else if (st != RP_NO_RESOURCE || !is_disk_short(d))
        st = rp_checkpoint_write(c, result, why);
    if (st == RP_NO_RESOURCE && d->reserve.wanted > 0 && (is_wanted || is_disk_short(d))) {
        is_paused = d->journal != NULL && rp_journal_pause(d->journal);
        st = write_short(d, result, why);
        if (st == RP_OK && c->free_files != RP_FILES_UNBOUND) gain_files(d, result);
    }
    (void)rp_durable_keep_reserve(d);
    if (c->is_short) (void)rp_reserve_keep_files(&d->reserve, RP_RESERVE_FIRST_FILES);
    if (st == RP_OK && d->journal != NULL) rp_journal_resume(d->journal, result->lsn);
    if (is_paused) rp_journal_unpause(d->journal);
    return st;
}

rp_status rp_durable_write_checkpoint(rp_durable *d, rp_error *err)
{
    int64_t started_ns = rp_now_ns();
    rp_checkpoint_result result = {0};
    rp_error why = {0};
    rp_status st = write_with_reserve(d, &result, &why);
    const rp_durable_written written = {result.number, result.bytes, rp_now_ns() - started_ns,
                                        result.pause_ns};

    rp_mutex_lock(&d->mu);
    d->not_before_ns = d->checkpointer.is_short ? rp_now_ns() + SHORT_PAUSE_NS : 0;
    if (st == RP_OK)
        note_success_locked(d, &result, written.took_ns);
    else
        note_failure_locked(d);
    rp_mutex_unlock(&d->mu);
    if (st == RP_OK && d->options.on_checkpoint != NULL)
        d->options.on_checkpoint(d->options.ctx, &written);
    rp_durable_trouble(d, RP_TROUBLE_CHECKPOINT, st == RP_OK ? NULL : why.text);
    mend_reserve(d);
    if (st != RP_OK && err != NULL) *err = why;
    return st;
}

/* Completes all requests of the list, the oldest first. */
static void complete(rp_durable *d, rp_checkpoint_request *list, rp_status status,
                     const char *path, const char *text)
{
    rp_checkpoint_request *first = NULL, *next;

    for (; list != NULL; list = next) { /* reverses the list */
        next = list->next;
        list->next = first;
        first = list;
    }
    for (; first != NULL; first = next) {
        rp_checkpoint_request r = *first;

        next = r.next;
        if (r.is_allocated) rp_release(&d->alloc, first, sizeof *first);
        r.on_done(r.ctx, status, path, text);
    }
}

/* Reads the free space of the disk, for rp_durable_space(). */
static void read_space(rp_durable *d)
{
    uint64_t total = 0, available = 0;
    bool is_known = d->files->ops->space != NULL &&
                    d->files->ops->space(d->files, &total, &available, NULL) == RP_OK;

    rp_mutex_lock(&d->mu);
    d->is_space_wanted = false;
    d->space_ns = is_known ? rp_now_ns() : 0;
    d->space_total = total;
    d->space_free = available;
    rp_mutex_unlock(&d->mu);
}

static void *run(void *arg)
{
    rp_durable *d = arg;
    char path[RP_DURABLE_PATH_BYTES + RP_MANIFEST_PATH_BYTES], name[RP_MANIFEST_PATH_BYTES];

    rp_mutex_lock(&d->mu);
    for (;;) {
        rp_checkpoint_request *list = d->waiting;
        rp_error err = {0};
        int64_t until_ns;
        rp_status st;

        if (list == NULL && d->stopping) break;
        if (list == NULL && d->is_space_wanted) {
            rp_mutex_unlock(&d->mu);
            read_space(d);
            rp_mutex_lock(&d->mu);
            continue;
        }
        until_ns = d->is_wanted ? d->not_before_ns : d->due_ns;
        if (list == NULL && rp_now_ns() < until_ns) {
            (void)rp_cond_wait(&d->wake, &d->mu, until_ns);
            continue;
        }
        if (!d->is_wanted || list != NULL) d->mends = 0;
        d->waiting = NULL;
        d->is_wanted = false;
        rp_mutex_unlock(&d->mu);
        st = rp_durable_write_checkpoint(d, &err);
        (void)snprintf(path, sizeof path, "%s/%s", d->directory,
                       rp_manifest_path(name, d->checkpointer.last_number));
        complete(d, list, st, st == RP_OK ? path : "", err.text);
        if (st == RP_OK) rp_durable_save_runs(d); /* no caller waits for runs */
        rp_mutex_lock(&d->mu);
    }
    rp_mutex_unlock(&d->mu);
    return NULL;
}

rp_status rp_durable_start_thread(rp_durable *d, rp_error *err)
{
    assert(!d->has_thread);
    rp_mutex_lock(&d->mu);
    if (d->due_ns == 0) d->due_ns = later(rp_now_ns(), d->options.period_ns);
    rp_mutex_unlock(&d->mu);
    read_space(d);
    d->has_thread = rp_thread_start(&d->thread, "rp-checkpoint", run, d);
    if (d->has_thread) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE, "durable: no thread for checkpoints");
}

void rp_durable_stop_thread(rp_durable *d)
{
    if (!d->has_thread) return;
    rp_mutex_lock(&d->mu);
    d->stopping = true;
    rp_cond_signal(&d->wake);
    rp_mutex_unlock(&d->mu);
    (void)pthread_join(d->thread, NULL);
    d->has_thread = false;
    assert(d->waiting == NULL); /* D1 */
}

static void add_request(rp_durable *d, rp_checkpoint_request *request)
{
    rp_mutex_lock(&d->mu);
    request->next = d->waiting;
    d->waiting = request;
    rp_cond_signal(&d->wake);
    rp_mutex_unlock(&d->mu);
}

/* Removes a request. Returns false if the thread has taken it already. */
static bool withdraw(rp_durable *d, const rp_checkpoint_request *request)
{
    bool found = false;

    rp_mutex_lock(&d->mu);
    for (rp_checkpoint_request **at = &d->waiting; *at != NULL && !found; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            found = true;
            break;
        }
    rp_mutex_unlock(&d->mu);
    return found;
}

rp_status rp_durable_start_checkpoint(rp_durable *d, rp_checkpoint_done *on_done, void *ctx,
                                      rp_error *err)
{
    rp_checkpoint_request *request = rp_alloc_zero(&d->alloc, sizeof *request);

    if (request == NULL) return rp_fail_memory(err, sizeof *request);
    *request = (rp_checkpoint_request){.on_done = on_done, .ctx = ctx, .is_allocated = true};
    add_request(d, request);
    return RP_OK;
}

/* A thread that waits for a checkpoint. It may stop waiting before the end (Z2). */
typedef struct sleeper {
    rp_cancel_link link; /* first: on_fire gets this */
    rp_checkpoint_request request;
    rp_durable *durable;
    rp_mutex mu; /* rank 60 */
    rp_cond cv;
    bool over RP_GUARDED_BY(mu);
    bool cancelled RP_GUARDED_BY(mu);
    bool left RP_GUARDED_BY(mu); /* the thread does not wait any more */
    rp_status status RP_GUARDED_BY(mu);
    char path[RP_DURABLE_PATH_BYTES + RP_MANIFEST_PATH_BYTES] RP_GUARDED_BY(mu);
    char text[RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu);
} sleeper;

static void free_sleeper(sleeper *s)
{
    const rp_allocator *alloc = &s->durable->alloc;

    rp_cond_deinit(&s->cv);
    rp_mutex_deinit(&s->mu);
    rp_release(alloc, s, sizeof *s);
}

static void on_cancel(rp_cancel_link *link)
{
    sleeper *s = (sleeper *)link;

    rp_mutex_lock(&s->mu);
    s->cancelled = true;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void on_written(void *ctx, rp_status status, const char *path, const char *text)
{
    sleeper *s = ctx;
    bool left;

    rp_mutex_lock(&s->mu);
    assert(!s->over);
    s->over = true;
    s->status = status;
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    (void)snprintf(s->text, sizeof s->text, "%s", text);
    left = s->left;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
    if (left) free_sleeper(s);
}

/* Waits until the request is over (RP_OK), or fails. */
static rp_status sleep_until(sleeper *s, int64_t until_ns)
{
    rp_status why = RP_OK;

    rp_mutex_lock(&s->mu);
    while (!s->over && why == RP_OK) {
        if (s->cancelled)
            why = RP_CANCELLED;
        else if (until_ns == RP_NOW ||
                 (!rp_cond_wait(&s->cv, &s->mu, until_ns) && !s->over && !s->cancelled))
            why = RP_DEADLINE;
    }
    rp_mutex_unlock(&s->mu);
    return why;
}

static rp_status report(sleeper *s, char *path, size_t path_bytes, rp_error *err)
{
    rp_status st;

    rp_mutex_lock(&s->mu);
    assert(s->over && !s->left);
    st = s->status;
    if (st == RP_OK && path != NULL && path_bytes > 0)
        (void)snprintf(path, path_bytes, "%s", s->path);
    if (st != RP_OK) (void)rp_fail(err, st, "%s", s->text);
    rp_mutex_unlock(&s->mu);
    return st;
}

/* Stops waiting. The checkpoint thread still writes the checkpoint. */
static rp_status leave(rp_durable *d, sleeper *s, rp_status why, rp_error *err)
{
    bool is_over;

    if (withdraw(d, &s->request)) {
        /* The checkpoint is still wanted, but no request waits for it. */
        rp_mutex_lock(&d->mu);
        d->is_wanted = true;
        rp_cond_signal(&d->wake);
        rp_mutex_unlock(&d->mu);
        free_sleeper(s);
    } else {
        rp_mutex_lock(&s->mu);
        s->left = true;
        is_over = s->over;
        rp_mutex_unlock(&s->mu);
        if (is_over) free_sleeper(s);
    }
    return rp_fail(err, why, "checkpoint: %s; it goes on",
                   why == RP_CANCELLED ? "the wait was cancelled" : "the deadline passed");
}

rp_status rp_durable_checkpoint(rp_durable *d, rp_wait wait, char *path, size_t path_bytes,
                                rp_error *err)
{
    sleeper *s = rp_alloc_zero(&d->alloc, sizeof *s);
    rp_status why, st;

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->link.on_fire = on_cancel;
    s->durable = d;
    s->request = (rp_checkpoint_request){.on_done = on_written, .ctx = s};
    rp_mutex_init(&s->mu, RP_RANK_WAITER);
    rp_cond_init(&s->cv);
    add_request(d, &s->request);
    rp_cancel_join(wait.cancel, &s->link);
    why = sleep_until(s, wait.until_ns);
    rp_cancel_part(wait.cancel, &s->link);
    if (why != RP_OK) return leave(d, s, why, err);
    st = report(s, path, path_bytes, err);
    free_sleeper(s);
    return st;
}

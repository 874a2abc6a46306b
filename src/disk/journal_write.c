/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes raw records and writes them to files, on the journal thread. Only the thread changes
 * `written` and `synced`, so it reads them without the lock. */
#include <assert.h>

#include "disk/journal_inside.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    PIECE_BYTES = 4 << 20, /* encoded and written with one call */
    MOST_TURNS = 8         /* attempts without progress while locations keep changing */
};

uint64_t rp_journal_generation(const rp_journal *j)
{
    return j->o.segments != NULL ? rp_segments_generation(j->o.segments) : 0;
}

void rp_journal_release_kept(rp_journal *j, uint64_t lsn)
{
    while (j->kept.first != NULL && j->kept.first->last <= lsn) {
        rp_raw_batch *batch = rp_raw_queue_take(&j->kept);
        rp_raw_cursor at = {batch, 0};
        const rp_raw *raw;

        while ((raw = rp_raw_next(&at)) != NULL)
            rp_journal_release(j, (rp_record_kind)raw->kind, rp_raw_payload(raw), raw->size);
        rp_buf_clear(&batch->buf);
        rp_mutex_lock(&j->mu);
        if (j->spare == NULL) {
            j->spare = batch;
            batch = NULL;
        }
        rp_mutex_unlock(&j->mu);
        rp_raw_batch_free(batch, &j->alloc);
    }
}

void rp_journal_set_written(rp_journal *j, uint64_t written, uint64_t synced)
{
    rp_mutex_lock(&j->mu);
    assert(synced >= j->synced); /* what is synced stays so */
    j->written = written;
    j->synced = synced;
    RP_VERIFY(j->file_count, rp_journal_is_valid_locked(j));
    rp_mutex_unlock(&j->mu);
}

void rp_journal_note_synced(rp_journal *j, uint64_t lsn, uint64_t put)
{
    RP_KILL_POINT("journal.synced");
    j->put_synced = put;
    rp_mutex_lock(&j->mu);
    assert(lsn >= j->synced && lsn <= j->written); /* J5 */
    j->info.syncs++;
    j->synced = lsn;
    rp_mutex_unlock(&j->mu);
    j->begins_after_gap = false;
    rp_journal_release_kept(j, lsn);
}

uint64_t rp_journal_put_bytes(const rp_journal *j)
{
    uint64_t waiting;

    return j->o.segments != NULL ? rp_segments_put_bytes(j->o.segments, &waiting) : 0;
}

void rp_journal_condemn(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    (void)!rp_journal_end_sync(j, true, NULL); /* which may condemn the file itself */
    if (j->file.handle == NULL) return;
    if (j->superseded < j->written) j->superseded = j->written;
    rp_journal_file_condemn(&j->file, &j->o);
    rp_mutex_lock(&j->mu);
    j->info.condemned++;
    rp_mutex_unlock(&j->mu);
    rp_journal_set_written(j, j->synced, j->synced);
    j->has_marker = false;
}

/* Adds a file that is about to be created to the list. RP_NO_RESOURCE. */
static rp_status list_file(rp_journal *j, uint64_t first)
{
    rp_status st = RP_OK;

    rp_mutex_lock(&j->mu);
    if (j->file_count == 0 || j->files[j->file_count - 1] < first) {
        if (j->file_count == j->file_capacity) {
            size_t capacity = j->file_capacity < 16 ? 16 : 2 * j->file_capacity;

            if (rp_resize_array(&j->alloc, &j->files, j->file_capacity, capacity,
                                sizeof *j->files))
                j->file_capacity = capacity;
            else
                st = RP_NO_RESOURCE;
        }
        if (st == RP_OK) j->files[j->file_count++] = first;
    }
    assert(st != RP_OK || j->files[j->file_count - 1] >= first); /* J7 */
    RP_VERIFY(j->file_count, rp_journal_is_valid_locked(j));
    rp_mutex_unlock(&j->mu);
    return st;
}

/* Encodes the next records, up to one piece. `*last` is the last of them. */
static rp_status encode_piece(rp_journal *j, bool is_sync, uint64_t *last,
                              rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_raw_cursor at = rp_raw_seek(&j->kept, j->written);
    rp_journal_piece *piece = &j->piece;
    const rp_raw *raw = NULL;
    rp_status st = rp_journal_piece_begin(piece, &j->file, j->written + 1, &j->o.store);
    rp_journal_options plain = j->o;

    assert(j->synced <= j->written);
    plain.encode = NULL;
    *last = j->written;
    if (st == RP_OK && j->file.handle == NULL && j->begins_after_gap)
        st = rp_journal_piece_add(piece, &plain, RP_RECORD_LOST, j->written, NULL, 0);
    if (st == RP_OK && j->has_marker)
        st = rp_journal_piece_add(piece, &plain, RP_RECORD_SYNCED, j->synced, NULL, 0);
    while (st == RP_OK && piece->bytes.size < PIECE_BYTES && (raw = rp_raw_next(&at)) != NULL) {
        assert(raw->lsn == *last + 1); /* J6 */
        st = rp_journal_piece_add(piece, &j->o, (rp_record_kind)raw->kind, raw->lsn,
                                  rp_raw_payload(raw), raw->size);
        if (st == RP_OK) *last = raw->lsn;
    }
    if (st == RP_OK && is_sync) st = rp_journal_piece_pad(piece, &j->file, *last);
    if (st != RP_OK)
        return rp_fail(err, st, "the journal has no memory for the bytes of a record");
    return RP_OK;
}

static rp_status settle_segments(const rp_journal *j, bool is_sync, rp_error *err)
{
    if (j->o.segments == NULL) return RP_OK;
    return is_sync ? rp_segments_sync(j->o.segments, err)
                   : rp_segments_flush(j->o.segments, err);
}

rp_status rp_journal_write_pad(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = rp_journal_piece_begin(&j->piece, &j->file, 0, &j->o.store);

    if (st == RP_OK) st = rp_journal_piece_pad(&j->piece, &j->file, j->written);
    if (st != RP_OK) return rp_fail_memory(err, RP_JOURNAL_SECTOR);
    st = rp_journal_file_write(&j->file, &j->o, 0, false, &j->piece, err);
    if (st != RP_OK && j->file.is_bad) rp_journal_condemn(j);
    return st;
}

/* Syncs what is written, and seals the file if it is full. */
static rp_status sync_file(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = rp_journal_end_sync(j, true, err);
    uint64_t generation = j->generation, put = 0, waiting;
    bool is_full = j->file.handle != NULL && j->file.offset >= j->o.file_bytes;

    if (st != RP_OK) return st;
    if (j->file.handle == NULL || (j->synced == j->written && !is_full)) return RP_OK;
    if (j->file.is_hidden) return RP_OK;
    st = settle_segments(j, true, err);
    if (st != RP_OK) return st;
    if (rp_journal_generation(j) != generation)
        return rp_fail(err, RP_UNAVAILABLE, "locations have changed"); /* the caller retries */
    if (!is_full) st = rp_journal_write_pad(j, err);
    if (st != RP_OK) return st;
    st = is_full ? rp_journal_file_seal(&j->file, &j->o, j->written, err)
                 : rp_journal_file_sync(&j->file, &j->o, err);
    if (st != RP_OK) {
        if (j->file.is_bad) rp_journal_condemn(j);
        return st;
    }
    if (j->o.segments != NULL) {
        put = rp_segments_put_bytes(j->o.segments, &waiting);
        put -= waiting;
    }
    rp_journal_note_synced(j, j->written, put);
    j->has_marker = !is_full;
    return RP_OK;
}

/* Writes the next piece. Sets `*done` if there is nothing more to write. */
static rp_status write_piece(rp_journal *j, bool is_sync, bool *done,
                             rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t generation = rp_journal_generation(j), last, first;
    rp_raw_cursor at;
    rp_status st;
    bool hide;

    if (j->written > j->synced && generation != j->generation) rp_journal_condemn(j);
    at = rp_raw_seek(&j->kept, j->written);
    *done = rp_raw_next(&at) == NULL;
    if (*done) return RP_OK;
    first = j->written + 1;
    st = encode_piece(j, is_sync, &last, err);
    if (st == RP_OK) st = settle_segments(j, is_sync, err);
    if (st != RP_OK) return st;
    if (rp_journal_generation(j) != generation) return RP_OK; /* retry with the new locations */
    hide = j->superseded >= first || j->piece.says_lost;
    if (j->file.handle == NULL && !hide) st = list_file(j, first);
    if (st != RP_OK) return rp_fail_memory(err, sizeof first);
    RP_KILL_POINT("journal.flushed");
    st = rp_journal_file_write(&j->file, &j->o, first, hide, &j->piece, err);
    rp_mutex_lock(&j->mu);
    if ((st == RP_OK || j->file.is_bad) && j->reached < last) j->reached = last;
    rp_mutex_unlock(&j->mu);
    if (st != RP_OK) {
        if (j->file.is_bad) rp_journal_condemn(j);
        return st;
    }
    RP_KILL_POINT("journal.written");
    assert(last >= first);
    j->generation = generation;
    j->has_marker = false;
    rp_mutex_lock(&j->mu);
    j->info.writes++;
    j->info.bytes += j->piece.bytes.size;
    j->written = last;
    rp_mutex_unlock(&j->mu);
    return RP_OK;
}

/* Gives a hidden file its name once it has all records of the condemned files (J2), and lists
 * it. Not before: trimming removes a file when the next one in the list has what is needed. */
static rp_status reveal_file(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st;

    if (j->file.handle == NULL || !j->file.is_hidden || j->written < j->superseded)
        return RP_OK;
    st = rp_journal_file_reveal(&j->file, &j->o, err);
    if (st == RP_OK && list_file(j, j->file.first) != RP_OK)
        st = rp_fail_memory(err, sizeof j->file.first);
    if (st == RP_OK)
        j->superseded = 0;
    else
        rp_journal_condemn(j);
    return st;
}

rp_status rp_journal_write_out(rp_journal *j, bool is_sync,
                               rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = RP_OK;
    bool done = false;

    for (int turns = 0; st == RP_OK && turns < MOST_TURNS; turns++) {
        uint64_t before = j->written;

        st = write_piece(j, is_sync, &done, err);
        if (st == RP_OK && j->written > before) turns = 0;
        if (st == RP_OK) st = reveal_file(j, err);
        if (st == RP_OK && j->file.handle != NULL && j->file.offset >= j->o.file_bytes)
            st = sync_file(j, err);
        if (st != RP_OK || !done) continue;
        if (is_sync) st = sync_file(j, err);
        /* Locations changed during the write: the next turn condemns the file. */
        if (rp_journal_generation(j) != j->generation && j->written > j->synced) {
            st = RP_OK;
            continue;
        }
        return st;
    }
    return st != RP_OK
               ? st
               : rp_fail(err, RP_UNAVAILABLE,
                         "segments failed %d times while the journal was written", MOST_TURNS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Steps 1 to 4 of a checkpoint; retention.c has the fifth. */
#include "durable/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chunk/trajectory.h"
#include "disk/reserve.h"
#include "durable/retention.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

enum {
    FLUSH_BYTES = 8 << 20,
    SHORT_FLUSH_BYTES = 64 << 20, /* on a full disk */
    RECORDS_SHARE = 16,           /* seals take at most one of so many parts of the records */
    FILES_BYTES = 16 << 10,       /* ends of blocks of the file system, CURRENT */
    BLOCK_ENTRY_BYTES = 32,       /* at most so many in the manifest for a block of slots, */
    SLOT_ENTRY_BYTES = 5,         /* a slot in a set, */
    SEGMENT_ENTRY_BYTES = 40,     /* a segment */
    DEAD_SHARE = 6, /* R3: one of so many parts of the dead bytes counts as room. More than a
                       quarter must be dead to make up for the whole reserve, and then there are
                       segments to empty */
    MOVED_BYTES = 64 << 20,
    MAX_TRIES = 8,
    SET_PAGE = 1 << 14,
    BLOCK_BYTES = RP_SLOTS_PER_BLOCK * sizeof(rp_slot),
};

/* A checkpoint that is being written. */
typedef struct run {
    rp_checkpointer *c;
    rp_cut *cut;
    rp_table **tables; /* references */
    size_t table_count;
    rp_store_state store;
    uint64_t lsn;
    rp_kept_tables kept; /* what it consists of so far */
    uint64_t *moving;    /* segments to be emptied, ascending */
    size_t moving_count, moving_capacity;
    rp_manifest_segment *segments; /* that it needs, ascending */
    size_t segment_count, segment_capacity;
    rp_image image;
    rp_buf payload;
    rp_slot *slots;       /* of one block */
    uint64_t chunk_bytes; /* of chunks that were not on disk */
    rp_checkpoint_result result;
} run;

/* --- 1: the cut ---------------------------------------------------------------------------------- */

static void release_tables(run *r)
{
    for (size_t i = 0; i < r->table_count; i++) rp_table_unref(r->tables[i]);
    rp_release(r->c->alloc, r->tables, r->table_count * sizeof(rp_table *));
    r->tables = NULL;
    r->table_count = 0;
}

static rp_status find_tables(run *r, rp_error *err)
{
    for (;;) {
        size_t count = rp_store_find_tables(r->c->store, NULL, 0), found;

        r->table_count = 0;
        if (count == 0) return RP_OK;
        r->tables = rp_alloc_array(r->c->alloc, count, sizeof(rp_table *));
        if (r->tables == NULL) return rp_fail_memory(err, count * sizeof(rp_table *));
        found = rp_store_find_tables(r->c->store, r->tables, count);
        r->table_count = count;
        if (found == count) return RP_OK;
        /* One was made or dropped in between: what was written are references. */
        for (size_t i = found; i < count; i++) r->tables[i] = NULL;
        release_tables(r);
    }
}

static void note_lsn(void *ctx)
{
    run *r = ctx;

    /* Without a journal, a leap: what one tells that begins after this checkpoint must not seem
     * to follow on those before it, nor what is torn at the end of an old one on this. */
    if (r->c->journal == NULL && r->c->catalogue.checkpoint_count > 0) r->c->lsn += RP_LSN_LEAP;
    r->lsn = r->c->journal != NULL ? rp_journal_cut(r->c->journal) : r->c->lsn;
}

static rp_status take_frozen(void *ctx, rp_table *const *tables, size_t count,
                             const rp_store_state *state, rp_error *err)
{
    run *r = ctx;
    bool same = count == r->table_count;

    for (size_t i = 0; same && i < count; i++) same = tables[i] == r->tables[i];
    if (!same) return rp_fail(err, RP_EXISTS, "checkpoint: tables come and go");
    r->store = *state;
    if (count > 0) return rp_cut_take(r->cut, note_lsn, r, &r->result.pause_ns, err);
    note_lsn(r);
    return RP_OK;
}

static rp_status take_cut(run *r, rp_error *err)
{
    rp_status st = RP_OK;

    for (int i = 0; i < MAX_TRIES; i++) {
        st = find_tables(r, err);
        if (st == RP_OK && r->table_count > 0)
            st = rp_cut_new(r->c->alloc, r->tables, r->table_count, &r->cut, err);
        if (st != RP_OK) return st;
        st = rp_store_freeze(r->c->store, take_frozen, r, err);
        if (st == RP_OK) return RP_OK;
        rp_cut_free(r->cut, false);
        r->cut = NULL;
        release_tables(r);
    }
    if (st == RP_EXISTS) st = RP_UNAVAILABLE;
    if (err != NULL) err->code = st;
    return st;
}

/* --- 2: segments --------------------------------------------------------------------------------- */

static bool is_moving(const run *r, uint64_t segment)
{
    size_t low = 0, high = r->moving_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->moving[middle] == segment) return true;
        if (r->moving[middle] < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool is_damaged(const run *r, uint64_t segment)
{
    for (size_t i = 0; i < r->c->damaged_count; i++)
        if (r->c->damaged[i] == segment) return true;
    return false;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* How many bytes may be moved: not more than there is room for. */
static uint64_t most_moved(const rp_checkpointer *c)
{
    uint64_t most = c->max_moved != 0 ? c->max_moved : MOVED_BYTES, total, available;

    if (c->moves_nothing) return 0;
    if (c->files->ops->space == NULL ||
        c->files->ops->space(c->files, &total, &available, NULL) != RP_OK)
        return most;
    return available / 4 < most ? available / 4 : most;
}

/* Whether so little of a segment is live that it is to be emptied. */
static bool is_sparse(const rp_checkpointer *c, uint64_t live, uint64_t bytes)
{
    return live < (c->is_short ? bytes - bytes / 4 : bytes / 4);
}

/* The segments that are damaged; and those that have little that is live, the first of them
 * first, as far as what is live there may be moved. */
static rp_status choose_moving(run *r, rp_error *err)
{
    const rp_catalogue *k = &r->c->catalogue;
    uint64_t left = most_moved(r->c);
    const rp_kept_checkpoint *last = NULL;

    if (k->checkpoint_count > 0 && k->last.count > 0)
        last = &k->checkpoints[k->checkpoint_count - 1];
    r->moving_capacity = r->c->damaged_count + (last != NULL ? last->segment_count : 0);
    if (r->moving_capacity == 0) return RP_OK;
    r->moving = rp_alloc_array(r->c->alloc, r->moving_capacity, sizeof *r->moving);
    if (r->moving == NULL) return rp_fail_memory(err, r->moving_capacity * sizeof *r->moving);
    for (size_t i = 0; i < r->c->damaged_count; i++)
        r->moving[r->moving_count++] = r->c->damaged[i];
    for (size_t i = 0; last != NULL && i < last->segment_count; i++) {
        const rp_manifest_segment *s = &last->segments[i];

        uint64_t bytes = 0;

        /* Of one that is not written any more all of the file counts, also what nobody needs at
         * its end. */
        if (s->number >= r->c->next_segment || is_damaged(r, s->number) ||
            rp_segments_open(r->c->segments, s->number, &bytes, NULL) != RP_OK ||
            !is_sparse(r->c, s->live, bytes))
            continue;
        if (s->live > left) continue;
        left -= s->live;
        r->moving[r->moving_count++] = s->number;
        r->result.moved_bytes += s->live;
    }
    qsort(r->moving, r->moving_count, sizeof *r->moving, compare_numbers);
    return RP_OK;
}

static rp_status place_chunk(run *r, rp_chunk *chunk, rp_place *out, rp_error *err)
{
    rp_status st;

    if (rp_segments_place(r->c->segments, chunk, out)) {
        if (!is_moving(r, out->segment)) return RP_OK;
        return rp_segments_move_chunk(r->c->segments, chunk, out, err);
    }
    r->result.bytes += RP_RECORD_HEADER_BYTES + chunk->wire_bytes;
    r->chunk_bytes += RP_RECORD_HEADER_BYTES + chunk->wire_bytes;
    st = rp_segments_put_chunk(r->c->segments, chunk, out);
    if (st == RP_NO_RESOURCE) return rp_fail_memory(err, chunk->wire_bytes);
    return st == RP_OK ? st : rp_fail(err, st, "checkpoint: a chunk could not be queued");
}

static rp_status add_item(run *r, size_t index, const rp_slot *slot, rp_error *err)
{
    rp_image_slot *to = &r->image.slots[index];
    const rp_trajectory *trajectory = slot->trajectory;

    to->live = true;
    to->key = slot->key;
    to->priority = slot->priority;
    to->inserted_at_ns = slot->inserted_at_ns;
    to->sequence = slot->sequence;
    to->turn = slot->turn;
    to->times_sampled = slot->times_sampled;
    for (size_t c = 0; c < trajectory->column_count; c++) {
        rp_slices column = rp_trajectory_slices(trajectory, c);

        rp_image_add_column(&r->image, index, column.squeeze);
        for (size_t i = 0; i < column.slice_count; i++) {
            const rp_slice *slice = &column.slices[i];
            rp_place place;
            rp_status st = place_chunk(r, slice->chunk, &place, err);

            if (st != RP_OK) return st;
            rp_image_add_slice(&r->image,
                               &(rp_image_slice){rp_image_add_place(&r->image, &place),
                                                 slice->column, slice->offset, slice->length});
        }
    }
    return RP_OK;
}

/* Adds a record to the shares of a block. */
static void share(rp_kept_block *block, const rp_place *place)
{
    uint64_t bytes = (uint64_t)RP_RECORD_HEADER_BYTES + place->size;
    uint64_t end = place->offset + bytes;

    for (uint32_t i = block->share_count; i-- > 0;)
        if (block->shares[i].segment == place->segment) {
            block->shares[i].bytes += bytes;
            if (block->shares[i].end < end) block->shares[i].end = end;
            return;
        }
    block->shares[block->share_count++] = (rp_share){place->segment, bytes, end};
}

/* Notes which segments a block needs. The scratch array has room for each place to be in one
 * of its own. */
static rp_status note_shares(run *r, rp_kept_block *block, rp_error *err)
{
    size_t room = r->image.place_count + 1;
    rp_share *scratch = rp_alloc_array(r->c->alloc, room, sizeof *scratch);
    rp_share *exact;

    if (scratch == NULL) return rp_fail_memory(err, room * sizeof *scratch);
    block->shares = scratch;
    block->share_count = 0;
    share(block, &block->at.place);
    for (size_t i = 0; i < r->image.place_count; i++) share(block, &r->image.places[i]);
    exact = rp_alloc_array(r->c->alloc, block->share_count, sizeof *exact);
    if (exact != NULL) memcpy(exact, scratch, block->share_count * sizeof *exact);
    rp_release(r->c->alloc, scratch, room * sizeof *scratch);
    block->shares = exact;
    if (exact != NULL) return RP_OK;
    room = block->share_count;
    block->share_count = 0;
    return rp_fail_memory(err, room * sizeof *exact);
}

static rp_status write_block(run *r, size_t table, size_t index, rp_kept_block *out,
                             rp_error *err)
{
    rp_status st = RP_OK;

    rp_cut_read_block(r->cut, table, index, r->slots);
    rp_image_clear(&r->image);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK && st == RP_OK; i++) {
        if (r->slots[i].state == RP_SLOT_LIVE)
            st = add_item(r, i, &r->slots[i], err);
        else
            r->image.slots[i].next = r->slots[i].next;
    }
    if (st != RP_OK) return st;
    rp_buf_clear(&r->payload);
    if (rp_image_write(&r->image, &r->payload) != RP_OK)
        return rp_fail_memory(err, r->payload.size);
    out->at.hash = rp_manifest_hash_block(r->payload.data, r->payload.size);
    if (r->payload.size > RP_MAX_RECORD_BYTES)
        return rp_fail(err, RP_NO_RESOURCE, "checkpoint: a block of %zu bytes is over %d",
                       r->payload.size, RP_MAX_RECORD_BYTES);
    st = rp_segments_put(r->c->segments, RP_RECORD_BLOCK, index, r->payload.data,
                         r->payload.size, &out->at.place);
    if (st != RP_OK) return rp_fail_memory(err, r->payload.size);
    r->result.bytes += RP_RECORD_HEADER_BYTES + r->payload.size;
    out->fresh = true;
    return note_shares(r, out, err);
}

static bool touches_moving(const run *r, const rp_kept_block *block)
{
    if (r->moving_count == 0) return false;
    for (uint32_t i = 0; i < block->share_count; i++)
        if (is_moving(r, block->shares[i].segment)) return true;
    return false;
}

/* Bytes that the manifest has at most, and files beside it. */
static uint64_t manifest_bytes(const run *r)
{
    uint64_t bytes = FILES_BYTES + r->c->catalogue.segment_count * SEGMENT_ENTRY_BYTES;

    for (size_t t = 0; t < r->table_count; t++) {
        const rp_table_state *state = rp_cut_state(r->cut, t);

        bytes += rp_cut_block_count(r->cut, t) * BLOCK_ENTRY_BYTES;
        bytes += (state->set_counts[0] + state->set_counts[1]) * SLOT_ENTRY_BYTES;
    }
    return bytes;
}

/* Bytes on disk that this checkpoint does not need. */
static uint64_t dead_bytes(const run *r)
{
    const rp_catalogue *k = &r->c->catalogue;
    uint64_t all = rp_segments_queued(r->c->segments), live = 0, bytes;

    for (size_t i = 0; i < k->segment_count; i++)
        if (rp_segments_open(r->c->segments, k->segments[i].number, &bytes, NULL) == RP_OK)
            all += bytes;
    for (size_t t = 0; t < r->kept.count; t++)
        for (size_t b = 0; b < r->kept.tables[t].block_count; b++) {
            const rp_kept_block *block = &r->kept.tables[t].blocks[b];

            for (uint32_t i = 0; i < block->share_count; i++) live += block->shares[i].bytes;
        }
    return all > live ? all - live : 0;
}

/* On a full disk: whether what is queued may be written. If not, drops it (R2). `is_all`: the
 * whole checkpoint is queued, so it is known what remains (R3). */
static rp_status check_room(run *r, bool is_all, rp_error *err)
{
    const rp_checkpointer *c = r->c;
    uint64_t queued = rp_segments_queued(c->segments), total, available = 0, left, spent;
    uint64_t needed = queued + queued / RECORDS_SHARE + manifest_bytes(r);
    rp_status st = RP_OK;

    if (!c->is_short || c->files->ops->space == NULL ||
        c->files->ops->space(c->files, &total, &available, NULL) != RP_OK)
        return RP_OK;
    left = available > needed ? available - needed : 0;
    spent = c->reserve / RP_RESERVE_PARTS * RP_RESERVE_SPENT;
    if (available < needed)
        st = rp_fail(err, RP_NO_RESOURCE,
                     "checkpoint: the disk is full: %" PRIu64 " bytes are needed, %" PRIu64
                     " are free; delete items or make room",
                     needed, available);
    else if (is_all && r->chunk_bytes > 0 &&
             left + dead_bytes(r) / DEAD_SHARE + spent < c->reserve)
        st = rp_fail(err, RP_NO_RESOURCE,
                     "checkpoint: the disk is full of items: %" PRIu64
                     " bytes of new ones would leave %" PRIu64
                     " free, and the next checkpoint may need %" PRIu64
                     "; delete items or make room",
                     r->chunk_bytes, left, c->reserve);
    if (st != RP_OK) rp_segments_drop_queue(c->segments, true);
    return st;
}

/* Every now and then: writes what is queued. */
static rp_status breathe(run *r, rp_error *err)
{
    uint64_t most = r->c->is_short ? SHORT_FLUSH_BYTES : FLUSH_BYTES;
    rp_status st;

    if (rp_segments_queued(r->c->segments) < most) return RP_OK;
    st = check_room(r, false, err);
    if (st != RP_OK) return st;
    RP_KILL_POINT("checkpoint.segments");
    return rp_segments_flush(r->c->segments, err);
}

static rp_status write_table(run *r, size_t index, rp_kept_table *out, rp_error *err)
{
    const rp_kept_table *before = rp_kept_tables_find(&r->c->catalogue.last, out->table);
    size_t count = rp_cut_block_count(r->cut, index);
    rp_status st = RP_OK;

    out->blocks = count > 0 ? rp_alloc_array(r->c->alloc, count, sizeof *out->blocks) : NULL;
    if (count > 0 && out->blocks == NULL) return rp_fail_memory(err, count);
    out->block_count = count;
    for (size_t b = 0; b < count && st == RP_OK; b++) {
        const rp_kept_block *old =
            before != NULL && b < before->block_count ? &before->blocks[b] : NULL;

        rp_progress_add(r->c->meter, BLOCK_BYTES);
        if (old != NULL && !rp_cut_block_changed(r->cut, index, b) && !touches_moving(r, old))
            out->blocks[b] = *old; /* its shares are borrowed, until this one is kept */
        else
            st = write_block(r, index, b, &out->blocks[b], err);
        rp_cut_release_block(r->cut, index, b);
        if (st == RP_OK) st = breathe(r, err);
    }
    return st;
}

static rp_status write_tables(run *r, rp_error *err)
{
    uint64_t total = 0;
    rp_status st = RP_OK;

    for (size_t t = 0; t < r->table_count; t++)
        total += rp_cut_block_count(r->cut, t) * BLOCK_BYTES;
    rp_progress_begin(r->c->meter, "checkpoint", total);
    if (r->table_count == 0) return RP_OK;
    r->kept.tables = rp_alloc_array(r->c->alloc, r->table_count, sizeof *r->kept.tables);
    if (r->kept.tables == NULL) return rp_fail_memory(err, r->table_count);
    r->kept.count = r->table_count;
    for (size_t t = 0; t < r->table_count; t++)
        r->kept.tables[t].table = rp_table_ref(r->tables[t]);
    for (size_t t = 0; t < r->table_count && st == RP_OK; t++)
        st = write_table(r, t, &r->kept.tables[t], err);
    return st;
}

/* If a segment fails on the way, what was in it gets new places: those in the blocks are wrong
 * then, and what they were made of is gone. */
static rp_status write_segments(run *r, rp_error *err)
{
    uint64_t generation = rp_segments_generation(r->c->segments);
    rp_status st = write_tables(r, err);

    RP_KILL_POINT("checkpoint.queued");
    if (st == RP_OK) st = check_room(r, true, err);
    if (st == RP_OK) st = rp_segments_sync(r->c->segments, err);
    if (st == RP_OK && rp_segments_generation(r->c->segments) != generation)
        st = rp_fail(err, RP_UNAVAILABLE, "checkpoint: a segment failed on the way");
    return st;
}

/* --- 3: the manifest ------------------------------------------------------------------------------ */

/* The segment's entry in the list, which is made if it is not there. */
static rp_manifest_segment *segment_entry(run *r, uint64_t number)
{
    size_t low = 0, high = r->segment_count, more = 2 * r->segment_capacity + 16;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->segments[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < r->segment_count && r->segments[low].number == number) return &r->segments[low];
    if (r->segment_count == r->segment_capacity) {
        if (!rp_resize_array(r->c->alloc, &r->segments, r->segment_capacity, more,
                             sizeof *r->segments))
            return NULL;
        r->segment_capacity = more;
    }
    memmove(r->segments + low + 1, r->segments + low,
            (r->segment_count - low) * sizeof *r->segments);
    r->segments[low] = (rp_manifest_segment){.number = number};
    r->segment_count++;
    return &r->segments[low];
}

static rp_status list_segments(run *r, rp_error *err)
{
    for (size_t t = 0; t < r->kept.count; t++)
        for (size_t b = 0; b < r->kept.tables[t].block_count; b++) {
            const rp_kept_block *block = &r->kept.tables[t].blocks[b];

            for (uint32_t i = 0; i < block->share_count; i++) {
                rp_manifest_segment *s = segment_entry(r, block->shares[i].segment);
                if (s == NULL) return rp_fail_memory(err, sizeof *s);
                s->live += block->shares[i].bytes;
                if (s->bytes < block->shares[i].end) s->bytes = block->shares[i].end;
            }
        }
    for (size_t i = 0; i < r->segment_count; i++) {
        rp_manifest_segment *s = &r->segments[i];
        uint64_t bytes = 0;
        rp_status st = rp_segments_open(r->c->segments, s->number, &bytes, err);

        if (st != RP_OK) return st;
        /* A chunk in two blocks was counted twice. */
        if (s->live > s->bytes) s->live = s->bytes;
        r->result.disk_bytes += bytes;
        r->result.live_bytes += s->live;
    }
    r->result.segments = r->segment_count;
    return RP_OK;
}

static void add_sets(run *r, rp_manifest_writer *w, size_t table, uint32_t *page)
{
    const rp_table_state *state = rp_cut_state(r->cut, table);

    for (int which = 0; which < 2; which++)
        for (uint64_t at = 0; at < state->set_counts[which];) {
            uint64_t left = state->set_counts[which] - at;
            size_t n = left < SET_PAGE ? (size_t)left : SET_PAGE;

            rp_cut_read_set(r->cut, table, which, (size_t)at, n, page);
            rp_manifest_add_set(w, which, page, n);
            at += n;
        }
}

static rp_status add_tables(run *r, rp_manifest_writer *w, rp_error *err)
{
    size_t room = SET_PAGE * sizeof(uint32_t);
    rp_manifest_block *blocks;
    uint32_t *page = rp_alloc(r->c->alloc, room);

    if (page == NULL) return rp_fail_memory(err, room);
    blocks = rp_alloc_array(r->c->alloc, RP_MANIFEST_PLACES, sizeof *blocks);
    for (size_t t = 0; t < r->table_count && blocks != NULL; t++) {
        const rp_kept_table *kept = &r->kept.tables[t];

        rp_manifest_add_table(w, rp_cut_state(r->cut, t), kept->block_count);
        for (size_t at = 0; at < kept->block_count;) {
            size_t n = kept->block_count - at;

            if (n > RP_MANIFEST_PLACES) n = RP_MANIFEST_PLACES;
            for (size_t i = 0; i < n; i++) blocks[i] = kept->blocks[at + i].at;
            rp_manifest_add_blocks(w, blocks, n);
            at += n;
        }
        add_sets(r, w, t, page);
    }
    rp_release(r->c->alloc, page, room);
    if (blocks == NULL) return rp_fail_memory(err, RP_MANIFEST_PLACES * sizeof *blocks);
    rp_release(r->c->alloc, blocks, RP_MANIFEST_PLACES * sizeof *blocks);
    return RP_OK;
}

static rp_status write_manifest(run *r, const char *path, rp_current *current, rp_error *err)
{
    rp_manifest_store store = {.checkpoint = r->result.number,
                               .lsn = r->lsn,
                               .seed = r->store.seed,
                               .keys = r->store.keys,
                               .written_at_ns = rp_wall_ns(NULL),
                               .table_count = (uint32_t)r->table_count};
    rp_manifest_writer *w = NULL;
    rp_status st =
        rp_manifest_writer_new(r->c->alloc, r->c->files, path, &r->c->id, &store, &w, err);

    if (st != RP_OK) return st;
    st = add_tables(r, w, err);
    if (st == RP_OK) {
        rp_manifest_add_segments(w, r->segments, r->segment_count);
        st = rp_manifest_writer_finish(w, &current->bytes, current->hash, err);
    }
    rp_manifest_writer_free(w);
    r->result.bytes += current->bytes;
    return st;
}

/* Reads it as recovery would: every record, and that the segments are there. */
static rp_status verify_manifest(run *r, const char *path, const rp_current *current,
                                 rp_error *err)
{
    rp_manifest *m = NULL;
    rp_status st =
        rp_manifest_load(r->c->alloc, r->c->files, path, r->result.number, &r->c->id, &m, err);

    if (st == RP_OK && (m->bytes != current->bytes ||
                        memcmp(m->hash, current->hash, RP_MANIFEST_HASH_BYTES) != 0))
        st = rp_fail(err, RP_CORRUPT, "%s: it is not what was written", path);
    for (size_t i = 0; st == RP_OK && i < m->segment_count; i++)
        st = rp_check_segment_size(r->c->files, &m->segments[i], err);
    rp_manifest_free(m);
    return st;
}

/* --- all of it ------------------------------------------------------------------------------------- */

/* Moves the blocks of the checkpoint before that are still good over, and lets the rest go. */
static void keep_tables(run *r)
{
    rp_catalogue *k = &r->c->catalogue;

    for (size_t t = 0; t < r->kept.count; t++) {
        rp_kept_table *now = &r->kept.tables[t];
        const rp_kept_table *before = rp_kept_tables_find(&k->last, now->table);

        for (size_t b = 0; b < now->block_count; b++) {
            if (!now->blocks[b].fresh) {
                before->blocks[b].shares = NULL;
                before->blocks[b].share_count = 0;
            }
            now->blocks[b].fresh = false;
        }
    }
    rp_kept_tables_free(&k->alloc, &k->last, false);
    k->last = r->kept;
    r->kept = (rp_kept_tables){0};
}

/* Steps 3 and 4. `*stays`: its manifest is there for good, even if this fails. */
static rp_status switch_over(run *r, bool *stays, rp_error *err)
{
    rp_current current = {.store_id = r->c->id, .checkpoint = r->result.number};
    char path[RP_MANIFEST_PATH_BYTES], temporary[RP_MANIFEST_PATH_BYTES];
    rp_files *files = r->c->files;
    rp_status st;

    (void)rp_manifest_path(path, r->result.number);
    (void)rp_manifest_temporary(temporary, r->result.number);
    st = write_manifest(r, temporary, &current, err);
    RP_KILL_POINT("checkpoint.manifest");
    if (st == RP_OK) st = verify_manifest(r, temporary, &current, err);
    RP_KILL_POINT("checkpoint.verified");
    if (st == RP_OK) st = files->ops->rename(files, temporary, path, err);
    RP_KILL_POINT("checkpoint.renamed");
    if (st == RP_OK) st = files->ops->sync_directory(files, "manifest", err);
    if (st == RP_OK) st = rp_current_prepare(files, &current, err);
    RP_KILL_POINT("checkpoint.current");
    if (st != RP_OK) {
        (void)files->ops->remove(files, temporary, NULL);
        (void)files->ops->remove(files, path, NULL);
        (void)files->ops->remove(files, RP_CURRENT_TEMPORARY, NULL);
        return st;
    }
    /* From here on it may be the live one, whatever this says. */
    *stays = true;
    st = rp_current_switch(files, err);
    RP_KILL_POINT("checkpoint.switched");
    return st;
}

static rp_status begin(run *r, rp_error *err)
{
    rp_status st;

    r->result.number = r->c->last_number + 1;
    r->slots = rp_alloc(r->c->alloc, BLOCK_BYTES);
    if (r->slots == NULL) return rp_fail_memory(err, BLOCK_BYTES);
    if (r->c->is_short) {
        rp_segments_drop_queue(r->c->segments, true);
        rp_retention_sweep(r->c);
        st = rp_segments_end_open(r->c->segments, err);
        if (st != RP_OK) return st;
    }
    /* Before the cut: who has no chunk in memory now is needed by no change after it. */
    st = rp_retention_note(r->c, r->result.number, err);
    if (st == RP_OK) st = choose_moving(r, err);
    if (st == RP_OK) st = take_cut(r, err);
    /* On a full disk, what waits to be written goes: what of it is needed is put again. */
    if (st == RP_OK) rp_segments_drop_queue(r->c->segments, r->c->is_short);
    return st;
}

static void end(run *r, bool kept)
{
    rp_cut_free(r->cut, kept);
    release_tables(r);
    rp_kept_tables_free(r->c->alloc, &r->kept, true);
    rp_release(r->c->alloc, r->moving, r->moving_capacity * sizeof *r->moving);
    rp_release(r->c->alloc, r->segments, r->segment_capacity * sizeof *r->segments);
    rp_release(r->c->alloc, r->slots, BLOCK_BYTES);
    rp_image_deinit(&r->image);
    rp_buf_deinit(&r->payload);
    rp_progress_end(r->c->meter);
}

rp_status rp_checkpoint_write(rp_checkpointer *c, rp_checkpoint_result *out, rp_error *err)
{
    run *r = rp_alloc_zero(c->alloc, sizeof *r);
    bool stays = false;
    rp_status st;

    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    r->c = c;
    rp_image_init(&r->image, c->alloc);
    rp_buf_init(&r->payload, c->alloc);
    st = begin(r, err);
    RP_KILL_POINT("checkpoint.cut");
    if (st == RP_OK) st = write_segments(r, err);
    if (st == RP_OK) st = list_segments(r, err);
    RP_KILL_POINT("checkpoint.synced");
    if (st == RP_OK) {
        /* First: what is on disk must be in the catalogue, or it is never removed. */
        st = rp_catalogue_add_checkpoint(&c->catalogue, r->result.number, r->lsn, r->segments,
                                         r->segment_count);
        if (st != RP_OK) st = rp_fail_memory(err, r->segment_count * sizeof *r->segments);
    }
    if (st == RP_OK) {
        c->last_number = r->result.number;
        st = switch_over(r, &stays, err);
        if (stays) c->is_unsure = st != RP_OK;
        if (!stays)
            rp_catalogue_drop_checkpoint(&c->catalogue, c->catalogue.checkpoint_count - 1);
    }
    if (st == RP_OK) {
        keep_tables(r);
        c->damaged_count = 0;
        r->result.lsn = r->lsn;
        r->result.is_swept = rp_retain(c) == RP_OK;
        *out = r->result;
    }
    end(r, st == RP_OK);
    rp_release(c->alloc, r, sizeof *r);
    return st;
}

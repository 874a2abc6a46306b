/* SPDX-License-Identifier: Apache-2.0 */
/* Step 2: puts chunks and blocks of slots into segments. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "chunk/trajectory.h"
#include "disk/reserve.h"
#include "durable/checkpoint/checkpoint.h"
#include "durable/checkpoint/checkpoint_inside.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    FLUSH_BYTES = 8 << 20,        /* queued at most */
    BESIDE_BYTES = 4 << 20,       /* queued before the flusher is started, */
    PASS_BYTES = 1 << 20,         /* and before each further pass of it */
    MOST_SAVED = 64,              /* blocks: if more have changed, the tables are in use */
    SAVED_SHARE = 8,              /* the same for small tables: a part of their blocks */
    SHORT_FLUSH_BYTES = 64 << 20, /* on a full disk */
    FILES_BYTES = 16 << 10,       /* CURRENT, and unused ends of file system blocks */
    BLOCK_ENTRY_BYTES = 32,       /* at most, in the manifest: for a block of slots, */
    SLOT_ENTRY_BYTES = 5,         /* for a slot in a set, */
    SEGMENT_ENTRY_BYTES = 40,     /* for a segment */
    MOVED_BYTES = 64 << 20,
    NEXT_FILES = 1 + RP_RESERVE_NAMED_FILES, /* of a checkpoint without new chunks */
    FIRM_SHARE = 3, /* R3: of c->spare; this part must be free, and not only vacated */
};

static bool is_moving(const rp_checkpoint_run *r, uint64_t segment)
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

static bool is_damaged(const rp_checkpoint_run *r, uint64_t segment)
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

/* True if inodes are short, and not only bytes. */
static bool lacks_files(const rp_checkpointer *c)
{
    return c->is_short && c->free_files != RP_FILES_UNBOUND;
}

/* How many bytes may be moved: at most a quarter of the free space. On a full disk more, if
 * there is space for new chunks and for two of the largest checkpoints: this one, and the next,
 * after which the vacated segments are removed. If inodes are short, only as many as fit into
 * the segments that can be created. */
static uint64_t most_moved(const rp_checkpointer *c)
{
    uint64_t most = c->max_moved != 0 ? c->max_moved : MOVED_BYTES, total, available, kept;

    if (c->moves_nothing) return 0;
    if (lacks_files(c) && c->segment_bytes > 0) {
        uint64_t files = c->free_files > NEXT_FILES ? c->free_files - NEXT_FILES : 0;
        uint64_t room = files < UINT32_MAX ? files * c->segment_bytes : most;

        room = room > c->new_bytes ? room - c->new_bytes : 0;
        if (room < most) most = room;
    }
    if (c->files->ops->space == NULL ||
        c->files->ops->space(c->files, &total, &available, NULL) != RP_OK)
        return most;
    kept = rp_reserve_for(c->largest) + rp_reserve_one(c->new_bytes) + c->spare / FIRM_SHARE;
    kept = available > kept ? available - kept : 0;
    kept -= kept / RP_RESERVE_SEALS;
    if (!c->is_short || (kept < available / 4 && c->new_bytes == 0)) kept = available / 4;
    return kept < most ? kept : most;
}

/* True if so little of a segment is live that it is to be vacated. If inodes are short, a small
 * segment counts like a large one: its chunks go into one segment with others. */
static bool is_sparse(const rp_checkpointer *c, uint64_t live, uint64_t bytes)
{
    if (lacks_files(c) && bytes < c->segment_bytes) bytes = c->segment_bytes;
    return live < (c->is_short ? bytes - bytes / 4 : bytes / 4);
}

/* A segment that may be vacated. */
typedef struct candidate {
    uint64_t number, live;
} candidate;

static int compare_live(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->live != y->live) return x->live < y->live ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool may_vacate(const rp_checkpoint_run *r, const candidate *s)
{
    uint64_t bytes = 0;

    /* The whole file counts, also bytes at its end that no checkpoint needs. */
    return s->number < r->c->next_segment && !is_damaged(r, s->number) &&
           rp_segments_open(r->c->segments, s->number, &bytes, NULL) == RP_OK &&
           is_sparse(r->c, s->live, bytes);
}

/* Finds the segments of which little is live: as the last checkpoint has them, or as an attempt
 * that has failed since then has found them. */
static size_t find_sparse(const rp_checkpoint_run *r, const rp_kept_checkpoint *last,
                          candidate *out)
{
    const rp_catalogue *k = &r->c->catalogue;
    bool is_known = r->c->is_short && r->c->knows_live;
    size_t count = is_known ? k->segment_count : last != NULL ? last->segment_count : 0;
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        candidate s = is_known ? (candidate){k->segments[i].number, k->segments[i].live}
                               : (candidate){last->segments[i].number, last->segments[i].live};

        if ((!is_known || s.live > 0) && may_vacate(r, &s)) out[found++] = s;
    }
    return found;
}

rp_status rp_checkpoint_choose_moving(rp_checkpoint_run *r, rp_error *err)
{
    rp_catalogue *k = &r->c->catalogue;
    uint64_t left = most_moved(r->c);
    const rp_kept_checkpoint *last = NULL;
    candidate *sparse;
    size_t most, count;

    if (k->checkpoint_count > 0 && k->last.count > 0)
        last = &k->checkpoints[k->checkpoint_count - 1];
    most = k->segment_count + (last != NULL ? last->segment_count : 0);
    r->moving_capacity = r->c->damaged_count + most;
    if (r->moving_capacity == 0) return RP_OK;
    r->moving = rp_alloc_array(r->c->alloc, r->moving_capacity, sizeof *r->moving);
    if (r->moving == NULL) return rp_fail_memory(err, r->moving_capacity * sizeof *r->moving);
    sparse = rp_alloc_array(r->c->alloc, most + 1, sizeof *sparse);
    if (sparse == NULL) return rp_fail_memory(err, (most + 1) * sizeof *sparse);
    for (size_t i = 0; i < r->c->damaged_count; i++)
        r->moving[r->moving_count++] = r->c->damaged[i];
    count = find_sparse(r, last, sparse);
    assert(count <= most);
    if (r->c->is_short) qsort(sparse, count, sizeof *sparse, compare_live);
    for (size_t i = 0; i < count; i++) {
        size_t at = rp_catalogue_position(k, sparse[i].number);

        if (sparse[i].live > left) continue;
        left -= sparse[i].live;
        assert(at < k->segment_count && k->segments[at].number == sparse[i].number); /* K1 */
        k->segments[at].live = sparse[i].live;
        r->moving[r->moving_count++] = sparse[i].number;
        r->result.moved_bytes += sparse[i].live;
    }
    rp_release(r->c->alloc, sparse, (most + 1) * sizeof *sparse);
    assert(r->moving_count <= r->moving_capacity);
    qsort(r->moving, r->moving_count, sizeof *r->moving, compare_numbers);
    for (size_t i = 1; i < r->moving_count; i++)
        assert(r->moving[i - 1] < r->moving[i]); /* P1 */
    return RP_OK;
}

static rp_status locate_chunk(rp_checkpoint_run *r, rp_chunk *chunk, rp_disk_location *out,
                              rp_error *err)
{
    rp_status st;

    if (rp_segments_locate(r->c->segments, chunk, out)) {
        if (!is_moving(r, out->segment)) return RP_OK;
        return rp_segments_move_chunk(r->c->segments, chunk, out, err);
    }
    r->result.bytes += RP_RECORD_HEADER_BYTES + chunk->wire_bytes;
    r->chunk_bytes += RP_RECORD_HEADER_BYTES + chunk->wire_bytes;
    st = rp_segments_put_chunk(r->c->segments, chunk, out);
    if (st == RP_NO_RESOURCE) return rp_fail_memory(err, chunk->wire_bytes);
    return st == RP_OK ? st : rp_fail(err, st, "checkpoint: a chunk could not be queued");
}

static rp_status add_item(rp_checkpoint_run *r, size_t index, const rp_slot *slot,
                          rp_error *err)
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
            const rp_chunk_slice *slice = &column.slices[i];
            rp_disk_location location;
            rp_status st = locate_chunk(r, slice->chunk, &location, err);

            if (st != RP_OK) return st;
            rp_image_add_slice(&r->image,
                               &(rp_image_slice){rp_image_add_location(&r->image, &location),
                                                 slice->column, slice->offset, slice->length});
        }
    }
    return RP_OK;
}

/* Adds a record to the shares of a block. */
static void share(rp_kept_block *block, const rp_disk_location *location)
{
    uint64_t bytes = rp_location_bytes(location), end = rp_location_end(location);

    for (uint32_t i = block->share_count; i-- > 0;)
        if (block->shares[i].segment == location->segment) {
            block->shares[i].bytes += bytes;
            if (block->shares[i].end < end) block->shares[i].end = end;
            return;
        }
    block->shares[block->share_count++] = (rp_share){location->segment, bytes, end};
}

/* Computes the shares of a block. The scratch array is large enough for each location to be in
 * a segment of its own. */
static rp_status note_shares(rp_checkpoint_run *r, rp_kept_block *block, rp_error *err)
{
    size_t room = r->image.location_count + 1;
    rp_share *scratch = rp_alloc_array(r->c->alloc, room, sizeof *scratch);
    rp_share *exact;

    if (scratch == NULL) return rp_fail_memory(err, room * sizeof *scratch);
    block->shares = scratch;
    block->share_count = 0;
    share(block, &block->at.location);
    for (size_t i = 0; i < r->image.location_count; i++) share(block, &r->image.locations[i]);
    assert(block->share_count >= 1 && block->share_count <= room); /* K3 */
    exact = rp_alloc_array(r->c->alloc, block->share_count, sizeof *exact);
    if (exact != NULL) memcpy(exact, scratch, block->share_count * sizeof *exact);
    rp_release(r->c->alloc, scratch, room * sizeof *scratch);
    block->shares = exact;
    if (exact != NULL) return RP_OK;
    room = block->share_count;
    block->share_count = 0;
    return rp_fail_memory(err, room * sizeof *exact);
}

static rp_status write_block(rp_checkpoint_run *r, size_t table, size_t index,
                             rp_kept_block *out, rp_error *err)
{
    rp_status st;

    rp_cut_read_block(r->cut, table, index, r->slots);
    st = rp_checkpoint_put_new(r, err);
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
                         r->payload.size, &out->at.location);
    if (st != RP_OK) return rp_fail_memory(err, r->payload.size);
    r->result.bytes += RP_RECORD_HEADER_BYTES + r->payload.size;
    out->fresh = true;
    return note_shares(r, out, err);
}

/* True if a block must be written again although it has not changed. */
static bool touches_moving(const rp_checkpoint_run *r, const rp_kept_block *block)
{
    if (r->c->rewrites) return true;
    if (r->moving_count == 0) return false;
    for (uint32_t i = 0; i < block->share_count; i++)
        if (is_moving(r, block->shares[i].segment)) return true;
    return false;
}

uint64_t rp_checkpoint_files(const rp_checkpointer *c)
{
    return FILES_BYTES + c->catalogue.segment_count * SEGMENT_ENTRY_BYTES;
}

/* An upper bound on the bytes of the manifest and of the files beside it. */
static rp_status manifest_bytes(const rp_checkpoint_run *r, uint64_t *bytes)
{
    *bytes = rp_checkpoint_files(r->c);
    for (size_t t = 0; t < r->table_count; t++) {
        const rp_table_state *state = rp_cut_state(r->cut, t);
        uint64_t table = 0;

        if (rp_image_table_bytes(r->c->alloc, state->options.signature, &table) != RP_OK)
            return RP_NO_RESOURCE;
        *bytes += table + rp_cut_block_count(r->cut, t) * BLOCK_ENTRY_BYTES;
        *bytes += (state->set_counts[0] + state->set_counts[1]) * SLOT_ENTRY_BYTES;
    }
    return RP_OK;
}

/* Counts the bytes that this checkpoint needs of each segment, except of those that it vacates.
 */
static void count_live(const rp_checkpoint_run *r)
{
    rp_catalogue *k = &r->c->catalogue;

    for (size_t i = 0; i < k->segment_count; i++)
        if (!is_moving(r, k->segments[i].number)) k->segments[i].live = 0;
    for (size_t t = 0; t < r->kept.count; t++)
        for (size_t b = 0; b < r->kept.tables[t].block_count; b++) {
            const rp_kept_block *block = &r->kept.tables[t].blocks[b];

            for (uint32_t i = 0; i < block->share_count; i++) {
                size_t at = rp_catalogue_position(k, block->shares[i].segment);

                if (at < k->segment_count && k->segments[at].number == block->shares[i].segment)
                    k->segments[at].live += block->shares[i].bytes;
            }
        }
    r->c->knows_live = true;
}

/* Segments that are removed as a whole: once this checkpoint is complete, and, since it vacates
 * them, once the next one is. */
typedef struct dead_segments {
    uint64_t removed, removed_bytes, vacated, vacated_bytes;
} dead_segments;

static dead_segments find_dead(const rp_checkpoint_run *r)
{
    const rp_catalogue *k = &r->c->catalogue;
    dead_segments dead = {0};
    uint64_t bytes;

    count_live(r);
    for (size_t i = 0; i < k->segment_count; i++) {
        const rp_owned_segment *segment = &k->segments[i];
        bool is_vacated = is_moving(r, segment->number);

        if (rp_catalogue_holds(k, segment->number) ||
            rp_segments_open(r->c->segments, segment->number, &bytes, NULL) != RP_OK)
            continue;
        if (segment->dead_at != 0 && (is_vacated || segment->live == 0)) {
            dead.removed++;
            dead.removed_bytes += bytes;
        } else if (is_vacated) {
            dead.vacated++;
            dead.vacated_bytes += bytes;
        }
    }
    return dead;
}

/* On a full disk: fails if the checkpoint would leave too little space (R3). */
static rp_status check_left(const rp_checkpoint_run *r, const dead_segments *dead,
                            uint64_t left, rp_error *err)
{
    const rp_checkpointer *c = r->c;
    uint64_t spare = r->chunk_bytes > 0 ? c->spare : 0;
    uint64_t firm = rp_reserve_one(c->largest) + spare / FIRM_SHARE;
    uint64_t wanted = rp_reserve_one(c->largest) + spare;

    /* No other would leave more. */
    if (c->rewrites && r->chunk_bytes + r->result.moved_bytes == 0) return RP_OK;
    left += dead->removed_bytes + rp_checkpoint_old_rollouts(r);
    if (left >= firm && left + dead->vacated_bytes >= wanted) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   "checkpoint: the disk is full of items: %" PRIu64
                   " bytes of new ones would leave %" PRIu64
                   " free, and the next checkpoint may need %" PRIu64
                   "; delete items or make room",
                   r->chunk_bytes, left, wanted);
}

/* On a full disk: fails if new or moved chunks would take inodes that the next checkpoint needs
 * (R5). A checkpoint without such chunks is always tried. */
static rp_status check_files(const rp_checkpoint_run *r, const dead_segments *dead, bool is_all,
                             rp_error *err)
{
    const rp_checkpointer *c = r->c;
    uint64_t segments = rp_segments_next(c->segments) - r->first_segment + (is_all ? 0 : 1);
    uint64_t needed = segments + RP_RESERVE_NAMED_FILES;

    assert(rp_segments_next(c->segments) >= r->first_segment);
    if (r->chunk_bytes + r->result.moved_bytes == 0 || !lacks_files(c)) return RP_OK;
    if (is_all) { /* the old CURRENT and the old manifests are removed, too */
        uint64_t freed = 1 + c->catalogue.checkpoint_count + dead->removed;
        uint64_t left = dead->vacated > 0 ? NEXT_FILES : RP_RESERVE_FIRST_FILES;

        if (freed < left) needed += left - freed;
    }
    if (c->free_files >= needed) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   "checkpoint: the disk has too few inodes: %" PRIu64
                   " files are needed, %" PRIu64
                   " can be created; delete items or remove other files",
                   needed, c->free_files);
}

/* On a full disk: checks that the queue may be written, and drops it if not (R2). `is_all`: the
 * whole checkpoint is queued, so that the space that remains is known (R3). Otherwise the rest
 * counts with its upper bound. */
static rp_status check_room(rp_checkpoint_run *r, bool is_all, rp_error *err)
{
    const rp_checkpointer *c = r->c;
    uint64_t queued = rp_segments_queued(c->segments), total, available = 0, needed = 0;
    uint64_t blocks = r->result.bytes - r->chunk_bytes; /* queued so far */
    dead_segments dead = {0};
    rp_status st;

    if (!c->is_short || c->files->ops->space == NULL ||
        c->files->ops->space(c->files, &total, &available, NULL) != RP_OK)
        return RP_OK;
    st = manifest_bytes(r, &needed);
    if (st != RP_OK) return rp_fail_memory(err, r->table_count);
    blocks += c->largest_rollouts; /* they are written */
    if (!is_all && c->largest > blocks + needed) needed = c->largest - blocks;
    needed += rp_reserve_one(queued);
    if (available < needed)
        st = rp_fail(err, RP_NO_RESOURCE,
                     "checkpoint: the disk is full: %" PRIu64 " bytes are needed, %" PRIu64
                     " are free; delete items or make room",
                     needed, available);
    if (is_all) dead = find_dead(r);
    if (st == RP_OK && is_all) st = check_left(r, &dead, available - needed, err);
    if (st == RP_OK) st = check_files(r, &dead, is_all, err);
    if (st != RP_OK) rp_segments_drop_queue(c->segments, true);
    return st;
}

/* True if the flusher may be used. If programs use the tables, or there is only one processor,
 * it would take processor time from them. */
static bool may_flush_beside(rp_checkpoint_run *r)
{
    size_t blocks = 0, saved;

    if (r->is_alone || r->c->is_short) return false;
    saved = rp_cut_saved_blocks(r->cut);
    for (size_t t = 0; t < r->table_count; t++) blocks += rp_cut_block_count(r->cut, t);
    r->is_alone = saved > MOST_SAVED || saved > blocks / SAVED_SHARE ||
                  (!r->flusher.has_thread && rp_thread_processors() == 1);
    return !r->is_alone;
}

/* Writes the queue if it is large: beside this thread if that is possible. */
static rp_status flush_if_large(rp_checkpoint_run *r, rp_error *err)
{
    uint64_t most = r->c->is_short ? SHORT_FLUSH_BYTES : FLUSH_BYTES;
    uint64_t queued = rp_segments_queued(r->c->segments);
    uint64_t least = r->flusher.has_thread ? PASS_BYTES : BESIDE_BYTES;
    rp_status st;

    if (queued < most && (queued < least || !may_flush_beside(r))) return RP_OK;
    st = check_room(r, false, err);
    if (st != RP_OK) return st;
    RP_KILL_POINT("checkpoint.segments");
    r->has_written = true;
    if (may_flush_beside(r)) return rp_flusher_request(&r->flusher, queued >= most, err);
    return rp_segments_flush(r->c->segments, err);
}

/* The location of a block in the last checkpoint if that is still right; NULL if the block must
 * be written. */
static const rp_kept_block *find_kept(const rp_checkpoint_run *r, const rp_kept_table *before,
                                      size_t table, size_t index)
{
    const rp_kept_block *old =
        before != NULL && index < before->block_count ? &before->blocks[index] : NULL;

    if (old == NULL || rp_cut_block_changed(r->cut, table, index) || touches_moving(r, old))
        return NULL;
    return old;
}

static void spare_chunk(rp_checkpoint_run *r, const rp_chunk *chunk)
{
    rp_catalogue *k = &r->c->catalogue;
    rp_disk_location location;
    size_t i;

    if (!rp_segments_locate(r->c->segments, chunk, &location)) return;
    i = rp_catalogue_position(k, location.segment);
    if (i < k->segment_count && k->segments[i].number == location.segment)
        k->segments[i].is_spared = true;
}

void rp_checkpoint_spare_segments(rp_checkpoint_run *r)
{
    rp_catalogue *k = &r->c->catalogue;

    for (size_t i = 0; i < k->segment_count; i++) k->segments[i].is_spared = false;
    for (size_t t = 0; t < r->table_count; t++) {
        const rp_kept_table *before = rp_kept_tables_find(&k->last, r->tables[t]);

        for (size_t b = 0; b < rp_cut_block_count(r->cut, t); b++) {
            if (find_kept(r, before, t, b) != NULL) continue; /* the last checkpoint needs it */
            rp_cut_read_block(r->cut, t, b, r->slots);
            for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
                const rp_trajectory *trajectory = r->slots[i].trajectory;

                if (r->slots[i].state != RP_SLOT_LIVE) continue;
                for (uint32_t n = 0; n < trajectory->chunk_count; n++)
                    spare_chunk(r, trajectory->chunks[n]);
            }
            rp_cut_release_block(r->cut, t, b);
        }
    }
}

/* Puts the chunks of a table that have no location yet, and those that are moved. */
static rp_status put_chunks(rp_checkpoint_run *r, size_t table, rp_error *err)
{
    const rp_kept_table *before =
        rp_kept_tables_find(&r->c->catalogue.last, r->kept.tables[table].table);
    rp_disk_location ignored;
    rp_status st = RP_OK;

    for (size_t b = 0; b < rp_cut_block_count(r->cut, table) && st == RP_OK; b++) {
        if (find_kept(r, before, table, b) != NULL) continue;
        rp_cut_read_block(r->cut, table, b, r->slots);
        st = rp_checkpoint_put_new(r, err);
        for (size_t i = 0; i < RP_SLOTS_PER_BLOCK && st == RP_OK; i++) {
            const rp_trajectory *t = r->slots[i].trajectory;

            if (r->slots[i].state != RP_SLOT_LIVE) continue;
            for (uint32_t k = 0; k < t->chunk_count && st == RP_OK; k++)
                st = locate_chunk(r, t->chunks[k], &ignored, err);
        }
        if (st == RP_OK) st = flush_if_large(r, err);
    }
    return st;
}

static rp_status write_table(rp_checkpoint_run *r, size_t index, rp_kept_table *out,
                             rp_error *err)
{
    const rp_kept_table *before = rp_kept_tables_find(&r->c->catalogue.last, out->table);
    size_t count = rp_cut_block_count(r->cut, index);
    rp_status st = RP_OK;

    out->blocks = count > 0 ? rp_alloc_array(r->c->alloc, count, sizeof *out->blocks) : NULL;
    if (count > 0 && out->blocks == NULL) return rp_fail_memory(err, count);
    out->block_count = count;
    for (size_t b = 0; b < count && st == RP_OK; b++) {
        const rp_kept_block *old = find_kept(r, before, index, b);

        rp_progress_add(r->c->meter, RP_SLOT_BLOCK_BYTES);
        if (old != NULL)
            out->blocks[b] = *old; /* borrows its shares (P3) */
        else
            st = write_block(r, index, b, &out->blocks[b], err);
        rp_cut_release_block(r->cut, index, b);
        if (st == RP_OK) st = flush_if_large(r, err);
    }
    return st;
}

static rp_status write_tables(rp_checkpoint_run *r, rp_error *err)
{
    uint64_t total = 0;
    rp_status st = RP_OK;

    for (size_t t = 0; t < r->table_count; t++)
        total += rp_cut_block_count(r->cut, t) * RP_SLOT_BLOCK_BYTES;
    rp_progress_begin(r->c->meter, "checkpoint", total);
    if (r->table_count == 0) return RP_OK;
    assert(r->kept.tables == NULL && r->cut != NULL);
    r->kept.tables = rp_alloc_array(r->c->alloc, r->table_count, sizeof *r->kept.tables);
    if (r->kept.tables == NULL) return rp_fail_memory(err, r->table_count);
    r->kept.count = r->table_count;
    for (size_t t = 0; t < r->table_count; t++)
        r->kept.tables[t].table = rp_table_ref(r->tables[t]);
    /* On a full disk chunks and blocks are in different segments: the segments with blocks can
     * be removed after the next checkpoint, whatever becomes of the chunks. */
    for (size_t t = 0; t < r->table_count && st == RP_OK && r->c->is_short; t++)
        st = put_chunks(r, t, err);
    if (r->c->is_short) rp_segments_end_tail(r->c->segments);
    for (size_t t = 0; t < r->table_count && st == RP_OK; t++)
        st = write_table(r, t, &r->kept.tables[t], err);
    if (r->c->is_short) rp_segments_end_tail(r->c->segments);
    return st;
}

/* As write_tables(), and ends the flusher. The first failure counts. */
static rp_status write_and_flush(rp_checkpoint_run *r, rp_error *err)
{
    rp_status st = write_tables(r, err);
    rp_status flushed = rp_flusher_end(&r->flusher, st == RP_OK ? err : NULL);

    return st == RP_OK ? flushed : st;
}

/* If a segment is condemned meanwhile, its chunks get new locations. Then the locations in the
 * blocks are wrong, and the checkpoint fails: the slots of the cut are released already. */
rp_status rp_checkpoint_write_segments(rp_checkpoint_run *r, rp_error *err)
{
    uint64_t generation = rp_segments_generation(r->c->segments);
    rp_status st = write_and_flush(r, err);

    RP_KILL_POINT("checkpoint.queued");
    if (st == RP_OK) st = check_room(r, true, err);
    if (st == RP_OK) {
        r->has_written = true;
        st = rp_segments_sync(r->c->segments, err);
    }
    if (st == RP_OK && rp_segments_generation(r->c->segments) != generation)
        st = rp_fail(err, RP_UNAVAILABLE, "checkpoint: a segment failed on the way");
    return st;
}
